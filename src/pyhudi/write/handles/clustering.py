"""Clustering one group of file slices: their rows become the base files of new file groups.

It is a module-level function over frozen values. A thread of this process and a Spark task run it with the same result.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from pyhudi.format.names import BaseFileName, file_group_id, join
from pyhudi.format.schema.conversion import FILE_NAME, RECORD_KEY
from pyhudi.format.timeline.records import WriteStat
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.table.slices.base_files.protocol import BATCH_ROWS
from pyhudi.table.slices.base_files.rows import AsWritten, open_rows, read_stored_batches
from pyhudi.table.slices.conform import conform_batch
from pyhudi.table.slices.log_reading import LogReading
from pyhudi.table.slices.merged_slice import read_merged
from pyhudi.table.slices.slice_log import SliceFiles
from pyhudi.write.handles.attempt import AttemptedFile
from pyhudi.write.handles.base_file_writer import BaseFileSettings, BaseFileWriter
from pyhudi.write.place.curves import Curve, curve_order

HELD_BYTES_MAX: Final = 1 << 30
"""Rows that one task sorts at a time, at most, as their files state their size before it was compressed."""

_LOG_FACTOR: Final = 6
"""How many times its stored size a log may take in memory, as a rule of thumb."""
_STEP_ROWS: Final = 4_096
"""After so many rows the size of a file is looked at, if that ends it."""
_OVER: Final = 1.25
"""A file may exceed the size that is asked for by this factor. Otherwise rounding would leave tiny last files."""


@dataclass(frozen=True, slots=True)
class ClusteringTarget:
    """What all groups of one attempt at a clustering share. Picklable.

    `attempt`: part of the files' names, different in each attempt at this clustering. `schema`, `avro_schema`: rows as
    stored, with meta fields. `reading`: how logs are read; None for a table without logs. `as_written`: how base files
    may differ from `schema`. `sort_columns`: rows are written in the order of these; none: as they are stored.
    `curve`: what that order is. `file_size_bytes`: what a file is written to. `held_bytes_max`: of rows that are
    sorted at a time.
    """

    location: StorageLocation
    requested: str
    attempt: int
    schema: pa.Schema
    avro_schema: str
    settings: BaseFileSettings
    reading: LogReading | None
    as_written: AsWritten
    sort_columns: tuple[str, ...]
    curve: Curve
    file_size_bytes: int
    held_bytes_max: int = HELD_BYTES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTask:
    """Slices of one partition that are clustered together. `number`: of the group in the plan.

    `files`: how many files they are to become. `uuid`: begins the ids of the new file groups. `size_bytes`: of all
    files of the slices.
    """

    number: int
    partition: str
    slices: tuple[SliceFiles, ...]
    files: int
    uuid: str
    size_bytes: int


def cluster_group(
    target: ClusteringTarget, task: GroupTask, *, task_attempt: int, storage: Storage | None = None
) -> list[WriteStat]:
    """Write the rows of the slices to new file groups; none if no row is left. Returns the statement of each file.

    Rows keep the instant and the sequence number of their last write; only the name of their file is new. Sorted rows
    get equal shares of the files. `task_attempt`: different in each attempt at one task.

    Memory: one row group. If rows are sorted, also `held_bytes_max` of rows, and the sort columns of all rows of the
    group if these are more; the slices are then read once for each such share.
    Spec: format/actions.md section 9.
    """
    store = storage if storage is not None else open_storage(target.location)
    if target.sort_columns:
        rows, batches = _sorted(store, target, task)
        limits = _Limits(rows_max=max(1, -(-rows // task.files)), size_bytes_max=int(target.file_size_bytes * _OVER))
        return _write(store, target, task, batches, limits, task_attempt)

    share = min(target.file_size_bytes, -(-task.size_bytes // task.files))
    limits = _Limits(rows_max=None, size_bytes_max=share, last_bytes_max=int(target.file_size_bytes * _OVER))
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


@dataclass(frozen=True, slots=True)
class NewFile:
    """The first base file of a new file group. Whoever writes it enters `writer`."""

    file_id: str
    file: AttemptedFile
    writer: BaseFileWriter

    @classmethod
    def begin(
        cls, store: Storage, target: ClusteringTarget, task: GroupTask, file_id: str, task_attempt: int
    ) -> "NewFile":
        token = f"{task.number}-{target.attempt}-{task_attempt}"
        name = BaseFileName(file_id, token, target.requested, target.settings.extension).format()
        file = AttemptedFile(store, target.requested, join(task.partition, name), "CREATE")
        file.begin()
        writer = BaseFileWriter(
            store, file.path, target.schema, target.avro_schema, target.settings, constants={FILE_NAME: name},
            bloom=target.settings.new_bloom(), before_visible=file.refuse_when_given_up,
        )  # fmt: skip
        return cls(file_id, file, writer)

    def write(self, rows: pa.RecordBatch) -> None:
        self.writer.write(rows.select(self.writer.given.names), new_keys=rows.column(RECORD_KEY))

    def stat(self, task: GroupTask) -> WriteStat:
        """Seen: all rows of the new file count as inserted (0.15.0, 1.0.2, 1.2.0)."""
        size_bytes = self.file.shown_size()
        return WriteStat(
            file_id=self.file_id, path=self.file.path, partition_path=task.partition, num_writes=self.writer.rows,
            num_inserts=self.writer.rows, total_write_bytes=size_bytes, file_size_in_bytes=size_bytes,
        )  # fmt: skip


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
