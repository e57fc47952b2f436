"""Clustering one group of file slices: their rows become the base files of new file groups.

It is a module-level function over frozen values. A thread of this process and a Spark task run it with the same result.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from pyhudi.format.names import file_group_id
from pyhudi.format.timeline.records import WriteStat
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.protocol import BATCH_ROWS
from pyhudi.table.slices.base_files.rows import open_rows, read_stored_batches
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.slices.merged_slice import read_merged
from pyhudi.table.slices.slice_log import SliceFiles
from pyhudi.write.clustering.copied_file import write_copies
from pyhudi.write.clustering.copies import Copies, find_copies
from pyhudi.write.clustering.target import OVER, ClusteringTarget, GroupTask, NewFile
from pyhudi.write.handles.base_file_writer import BaseFileWriter
from pyhudi.write.place.curves import curve_order

log = logging.getLogger("pyhudi")

_LOG_FACTOR: Final = 6
"""How many times its stored size a log may take in memory, as a rule of thumb."""
_STEP_ROWS: Final = 4_096
"""After so many rows the size of a file is looked at, if that ends it."""


def cluster_group(
    target: ClusteringTarget, task: GroupTask, *, task_attempt: int, storage: Storage | None = None
) -> list[WriteStat]:
    """Write the rows of the slices to new file groups; none if no row is left. Returns the statement of each file.

    Rows keep the instant and the sequence number of their last write; only the name of their file is new. Sorted rows
    get equal shares of the files. Where no sort is asked, row groups are copied as they are, if `find_copies` says so.
    `task_attempt`: different in each attempt at one task.

    Memory: one row group. If rows are sorted, also `held_bytes_max` of rows, and the sort columns of all rows of the
    group if these are more; the slices are then read once for each such share.
    Spec: format/actions.md section 9.
    """
    store = storage if storage is not None else open_storage(target.location)
    if target.sort_columns:
        rows, batches = _sorted(store, target, task)
        limits = _Limits(rows_max=max(1, -(-rows // task.files)), size_bytes_max=int(target.file_size_bytes * OVER))
        return _write(store, target, task, batches, limits, task_attempt)

    copies = find_copies(store, target, task)
    if isinstance(copies, Copies):
        return write_copies(store, target, task, copies, task_attempt)

    log.info("group %d of clustering '%s': row groups are not copied: %s", task.number, target.requested, copies)
    share = min(target.file_size_bytes, -(-task.size_bytes // task.files))
    limits = _Limits(rows_max=None, size_bytes_max=share, last_bytes_max=int(target.file_size_bytes * OVER))
    batches = rows_of_slices(store, target, task, target.schema.names)
    return _write(store, target, task, batches, limits, task_attempt)


@dataclass(frozen=True, slots=True)
class _Limits:
    """When a file is full. `last_bytes_max`: for the last of the planned files, and those after it."""

    rows_max: int | None
    size_bytes_max: int
    last_bytes_max: int | None = None

    def is_full(self, writer: BaseFileWriter, *, is_last: bool) -> bool:
        if self.rows_max is not None and writer.rows >= self.rows_max:
            return True
        has_own = is_last and self.last_bytes_max is not None
        return writer.size_bytes >= (self.last_bytes_max if has_own else self.size_bytes_max)  # type: ignore[operator]


def _write(
    store: Storage,
    target: ClusteringTarget,
    task: GroupTask,
    batches: Iterator[pa.RecordBatch],
    limits: _Limits,
    task_attempt: int,
) -> list[WriteStat]:
    """Write rows to new files, another one each time a limit is reached."""
    stats: list[WriteStat] = []
    left = next(batches, None)

    while left is not None:
        new = NewFile.begin(store, target, task, file_group_id(task.uuid, len(stats)), task_attempt)
        is_last = len(stats) >= task.files - 1

        with new.writer as writer:
            while left is not None and not limits.is_full(writer, is_last=is_last):
                room = _STEP_ROWS if limits.rows_max is None else limits.rows_max - writer.rows
                batch, rest = left.slice(0, room), left.slice(room)
                new.write(batch)
                left = rest if len(rest) else next(batches, None)

        stats.append(new.stat(task))
    return stats


def rows_of_slices(
    store: Storage, target: ClusteringTarget, task: GroupTask, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """These columns of the rows of all slices, in the order in which they are stored. Batches without rows are left
    out."""
    schema = pa.schema([target.schema.field(name) for name in columns])
    for files in task.slices:
        for batch in _slice_rows(store, target, files, schema):
            if len(batch):
                yield batch.select(schema.names)


def _slice_rows(
    store: Storage, target: ClusteringTarget, files: SliceFiles, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    if files.logs:
        assert target.reading is not None, "a table with logs"
        yield from read_merged(store, files, target.reading, target.schema, schema.names, use_threads=False)
        return
    assert files.base_path is not None
    for batch in read_stored_batches(
        store, files.base_path, schema.names, use_threads=False, source=files.source, as_written=target.as_written
    ):
        yield conform_batch(batch, schema, path=files.base_path)


def _sorted(store: Storage, target: ClusteringTarget, task: GroupTask) -> tuple[int, Iterator[pa.RecordBatch]]:
    """How many rows there are, and the rows in order."""
    names = target.schema.names
    shares = -(-_held_bytes(store, task) // target.held_bytes_max)

    if shares <= 1:
        rows = pa.Table.from_batches(rows_of_slices(store, target, task, names), target.schema)
        order = curve_order(rows, target.sort_columns, target.curve)
        return len(rows), _taken(rows, order)

    tops = list(dict.fromkeys(name.partition(".")[0] for name in target.sort_columns))
    schema = pa.schema([target.schema.field(name) for name in tops])
    keys = pa.Table.from_batches(rows_of_slices(store, target, task, tops), schema)
    order = np.asarray(curve_order(keys, target.sort_columns, target.curve))
    return len(order), _by_shares(lambda: rows_of_slices(store, target, task, names), target.schema, order, shares)


def _by_shares(
    read: Callable[[], Iterator[pa.RecordBatch]], schema: pa.Schema, order: np.ndarray, shares: int
) -> Iterator[pa.RecordBatch]:
    """The rows in order, of which one share at a time is held. `order`: the numbers of the rows. Reads all rows for
    each share."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))

    for low, high in _spans(len(order), shares):
        held, places, start = [], [], 0
        for batch in read():
            own = place[start : start + len(batch)]
            start += len(batch)
            is_in = (own >= low) & (own < high)
            held.append(batch.filter(pa.array(is_in)))
            places.append(own[is_in])
        rows = pa.Table.from_batches(held, schema)
        yield from _taken(rows, pa.array(np.argsort(np.concatenate(places))))


def _spans(count: int, shares: int) -> Iterator[tuple[int, int]]:
    edges = [count * number // shares for number in range(shares + 1)]
    yield from ((low, high) for low, high in pairwise(edges) if low < high)


def _taken(rows: pa.Table, order: pa.Array) -> Iterator[pa.RecordBatch]:
    rows = rows.combine_chunks()
    for start in range(0, len(rows), BATCH_ROWS):
        yield from rows.take(order.slice(start, BATCH_ROWS)).to_batches()


def _held_bytes(store: Storage, task: GroupTask) -> int:
    """What the rows take in memory, roughly. Requests: the footer of each base file."""
    size_bytes = 0
    for files in task.slices:
        size_bytes += _LOG_FACTOR * sum(size for _, size in files.logs)
        if files.base_path is not None:
            with closing(open_rows(store, files.base_path, files.source)) as file:
                size_bytes += file.held_bytes
    return size_bytes
