"""Tagging rows that lie in this process: an index finds where each row goes."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from pyhudi.engine.local.partition_rows import PartitionRows
from pyhudi.executor import Executor
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.index.hits import Hits
from pyhudi.index.moves import (
    Tagged,
    find_beaten,
    living_hits,
    number_partitions,
    still_stored,
    tag_absent,
    tag_moving,
    tag_where_stored,
    winning_partitions,
)
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.merged_slice import SliceReader
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.write.input.source import Tagging


def settle_partitions(partitions: Mapping[str, PartitionRows], ordering: Sequence[str]) -> dict[str, PartitionRows]:
    """The rows, without the keys whose greatest row lies in another partition of the input.

    Memory: the keys of all rows, and the ordering columns.
    """
    if len(partitions) < 2:
        return dict(partitions)

    lengths = [len(rows) for rows in partitions.values()]
    codes = pa.concat_arrays([rows.keys() for rows in partitions.values()]).dictionary_encode().indices
    stays = winning_partitions(
        np.asarray(codes),
        np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
        {name: pa.concat_arrays([rows.column(name) for rows in partitions.values()]) for name in ordering},
        np.concatenate([rows.arrivals() for rows in partitions.values()]),
    )

    parts = np.split(stays, np.cumsum(lengths)[:-1])
    kept = {
        path: rows if part.all() else rows.chosen(np.flatnonzero(part))
        for (path, rows), part in zip(partitions.items(), parts, strict=True)
    }
    return {path: rows for path, rows in kept.items() if len(rows)}


def tag_partitions(
    partitions: Mapping[str, PartitionRows],
    slices: Sequence[FileSlice],
    tagging: Tagging,
    storage: Storage,
    executor: Executor,
) -> dict[str, Tagged]:
    """Where the rows of each partition go whose keys may be stored; the rows of the others are all new."""
    index, wanted = tagging.index, {file_slice.partition for file_slice in slices}
    keys = {p: rows.keys() for p, rows in partitions.items() if index.is_global or index.is_exact or p in wanted}
    found = tagging.index.locate(storage, keys, slices, executor)

    reader = None if index.is_exact else tagging.reader
    if index.is_global and reader is not None:
        # A row may move to its own partition. A key that logs deleted everywhere is stored nowhere.
        found = {
            path: _chosen(hits, _is_live(hits, keys[path], slices, reader, storage)) for path, hits in found.items()
        }
    elif reader is not None and not tagging.drops_stored:
        found = {path: _without_dead(hits, keys[path], slices, reader, storage) for path, hits in found.items()}

    if tagging.drops_stored:
        return {
            path: _absent(hits, keys[path], slices, None if index.is_global else reader, storage)
            for path, hits in found.items()
        }
    if not tagging.moves:
        return {path: tag_where_stored(hits, len(partitions[path])) for path, hits in found.items()}

    of_slices, numbers = number_partitions(slices)
    is_elsewhere = {path: of_slices[hits.groups] != numbers.get(path, -1) for path, hits in found.items()}

    is_beaten = {path: np.zeros(len(hits.rows), dtype=bool) for path, hits in found.items()}
    if tagging.compares_stored:
        is_beaten = _beaten(partitions, found, is_elsewhere, slices, tagging, storage, executor)

    return {
        path: tag_moving(
            hits,
            len(partitions[path]),
            is_elsewhere=is_elsewhere[path],
            is_beaten=is_beaten[path],
            has_logs=tagging.reader is not None,
        )
        for path, hits in found.items()
    }


def _beaten(
    partitions: Mapping[str, PartitionRows],
    found: Mapping[str, Hits],
    is_elsewhere: Mapping[str, np.ndarray],
    slices: Sequence[FileSlice],
    tagging: Tagging,
    storage: Storage,
    executor: Executor,
) -> dict[str, np.ndarray]:
    """For each hit in another partition, whether the row that is stored there is greater."""
    if not found:
        return {}

    tables = []
    for path, hits in found.items():
        moving = partitions[path].chosen(hits.rows[is_elsewhere[path]])
        columns = [moving.keys(), *map(moving.column, tagging.ordering)]
        tables.append(pa.table(columns, names=[RECORD_KEY, *tagging.ordering]))

    groups = [hits.groups[is_elsewhere[path]] for path, hits in found.items()]
    beaten = find_beaten(
        storage, slices, pa.concat_tables(tables), np.concatenate(groups), tagging.reader, tagging.as_written, executor
    )

    answer: dict[str, np.ndarray] = {}
    parts = np.split(beaten, np.cumsum([len(own_groups) for own_groups in groups])[:-1])
    for (path, hits), part in zip(found.items(), parts, strict=True):
        answer[path] = np.zeros(len(hits.rows), dtype=bool)
        answer[path][is_elsewhere[path]] = part
    return answer


def _is_live(
    hits: Hits, keys: pa.Array, slices: Sequence[FileSlice], reader: SliceReader | None, storage: Storage
) -> np.ndarray:
    """For each hit, whether its key is still stored: no log has deleted it."""
    if reader is None:
        return np.ones(len(hits.rows), dtype=bool)
    return still_stored(storage, slices, keys.take(pa.array(hits.rows)), hits.groups, reader)


def _without_dead(
    hits: Hits, keys: pa.Array, slices: Sequence[FileSlice], reader: SliceReader, storage: Storage
) -> Hits:
    """The hits, without rows that a log deleted, where several file groups hold the key.

    A key of only one group stays there even if it was deleted, because a write to the group's log brings it back. So no
    log is read for it.
    """
    has_logs = np.array([bool(file_slice.log_files) for file_slice in slices])
    contested = np.flatnonzero(np.bincount(hits.rows, minlength=len(keys))[hits.rows] > 1)
    if not has_logs[hits.groups[contested]].any():
        return hits

    is_live = np.ones(len(hits.rows), dtype=bool)
    is_live[contested] = _is_live(_chosen(hits, contested), keys, slices, reader, storage)
    return _chosen(hits, living_hits(hits, is_live))


def _absent(
    hits: Hits, keys: pa.Array, slices: Sequence[FileSlice], reader: SliceReader | None, storage: Storage
) -> Tagged:
    """Where the rows of an insert that drops stored keys go. The hits tell which keys are alive."""
    is_live = _is_live(hits, keys, slices, reader, storage)
    living = living_hits(hits, is_live)
    return tag_absent(_chosen(hits, living), len(keys), is_live=is_live[living], nowhere=len(slices))


def _chosen(hits: Hits, mask: np.ndarray) -> Hits:
    """Some of the hits, chosen by a mask or by their numbers."""
    return Hits(hits.rows[mask], hits.groups[mask], hits.positions[mask])
