"""Rows whose key is stored in another partition: whether they move, and what is left where they were.

Only a global index finds such rows. Spec: format/indexes.md section 2.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.names import join
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.format.struct_fields import column_around, find_field, with_field_columns
from pyhudi.index.hits import Hits
from pyhudi.merge.latest import incoming_wins, latest_per_key
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.rows import AsWritten, open_rows
from pyhudi.table.slices.conform import conform_array
from pyhudi.table.slices.merged_slice import SliceReader
from pyhudi.table.view.file_system_view import FileSlice


@dataclass(frozen=True)
class Tagged:
    """Where the rows of one partition of the input go.

    Row `rows[i]` goes to file group `groups[i]`. It is written there or, if `leaves[i]`, it only deletes its key there,
    for the row moves to another partition. The group number after the last one means nowhere: the row is left out.
    `positions`: as in `Hits`. `new`: rows that the partition does not hold yet, ascending. A row that moves is in both.
    """

    rows: np.ndarray
    groups: np.ndarray
    positions: np.ndarray
    leaves: np.ndarray
    new: np.ndarray


def tag_where_stored(hits: Hits, row_count: int) -> Tagged:
    """Rows go where their keys are stored, whatever partition that is in. Rows with unknown keys are new."""
    is_new = np.ones(row_count, dtype=bool)
    is_new[hits.rows] = False
    leaves = np.zeros(len(hits.rows), dtype=bool)
    return Tagged(hits.rows, hits.groups, hits.positions, leaves, np.flatnonzero(is_new))


def living_hits(hits: Hits, is_live: np.ndarray) -> np.ndarray:
    """For each hit, whether its file group takes the row.

    It is if the stored row is alive. If logs deleted the key everywhere, the first hit is.
    Example: a log deleted a key of file group 1, and an insert stored it anew in file group 2. The base files of both
    have the key. An update goes to group 2 only: in group 1 it would bring a second row of the key to life.
    Shape: (hits,) bool.
    """
    is_first = np.diff(hits.rows, prepend=-1) > 0
    live_counts = np.bincount(hits.rows[is_live], minlength=int(hits.rows.max(initial=-1)) + 1)
    return is_live | (is_first & (live_counts[hits.rows] == 0))


def tag_absent(hits: Hits, row_count: int, *, is_live: np.ndarray, nowhere: int) -> Tagged:
    """Rows of an insert that keeps stored keys as they are: a row whose key is stored goes `nowhere`.

    A row whose key was deleted by a log goes to one file group that had the key, so that the key cannot come to lie in
    two. `hits`: only hits at `living_hits`.
    """
    is_stored = np.zeros(row_count, dtype=bool)
    is_stored[hits.rows[is_live]] = True
    stored, back = np.flatnonzero(is_stored), ~is_stored[hits.rows]
    is_new = np.ones(row_count, dtype=bool)
    is_new[hits.rows] = False
    return Tagged(
        np.concatenate([stored, hits.rows[back]]),
        np.concatenate([np.full(len(stored), nowhere, dtype=hits.groups.dtype), hits.groups[back]]),
        np.concatenate([np.full(len(stored), -1), hits.positions[back]]),
        np.zeros(len(stored) + int(back.sum()), dtype=bool),
        np.flatnonzero(is_new),
    )


def tag_moving(
    hits: Hits, row_count: int, *, is_elsewhere: np.ndarray, is_beaten: np.ndarray, has_logs: bool
) -> Tagged:
    """Rows whose key is stored in another partition move to their own, unless the stored row beats them.

    `is_elsewhere`, `is_beaten`: for each hit, whether its file group is in another partition, and whether the row
    stored there is greater, so that it stays. A row whose key is stored in its own partition too is not new there.
    `has_logs`: on a table with logs a beaten row goes nowhere, since a delete in the log is not compared with the row
    that it deletes. On other tables the row goes to the group, where it is merged with each row of its key.
    """
    assert len(is_elsewhere) == len(is_beaten) == len(hits.rows)
    assert not (is_beaten & ~is_elsewhere).any()
    is_new = np.ones(row_count, dtype=bool)
    is_new[hits.rows[~is_elsewhere | is_beaten]] = False
    goes = ~is_beaten if has_logs else np.ones(len(hits.rows), dtype=bool)
    return Tagged(hits.rows[goes], hits.groups[goes], hits.positions[goes], is_elsewhere[goes], np.flatnonzero(is_new))


def number_partitions(slices: Sequence[FileSlice]) -> tuple[np.ndarray, dict[str, int]]:
    """For each slice, the number of its partition; and the number of each partition."""
    numbers: dict[str, int] = {}
    of_slices = [numbers.setdefault(file_slice.partition, len(numbers)) for file_slice in slices]
    return np.array(of_slices, dtype=np.int64), numbers


def find_beaten(
    storage: Storage,
    slices: Sequence[FileSlice],
    rows: pa.Table,
    groups: np.ndarray,
    reader: SliceReader | None,
    as_written: AsWritten,
    executor: Executor,
) -> np.ndarray:
    """For each row, whether its file group holds a row with the same key that is greater by event time.

    `rows`: the record key and the ordering columns, in the order of comparison. `groups`: the file group of each row.
    `reader`: reads slices with logs. `as_written`: how files of others hold rows. Shape: (n,) bool.
    Memory: key and ordering columns of one slice for each worker.
    """
    if not len(rows):
        return np.zeros(0, dtype=bool)
    ordering = [name for name in rows.column_names if name != RECORD_KEY]

    order = np.argsort(groups, kind="stable")
    numbers, starts = np.unique(groups[order], return_index=True)
    parts = dict(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True))

    def beaten(group: int) -> np.ndarray:
        return _beaten_in(storage, slices[group], rows.take(pa.array(parts[group])), ordering, reader, as_written)

    answer = np.zeros(len(rows), dtype=bool)
    asked = list(parts)
    for group, found in zip(asked, executor.run(beaten, asked), strict=True):
        answer[parts[group]] = found
    return answer


def _read_order(
    storage: Storage, file_slice: FileSlice, ordering: Sequence[str], reader: SliceReader | None, as_written: AsWritten
) -> pa.Table | None:
    """Keys and ordering columns of a slice's rows. None if the base file lacks an ordering column."""
    columns = list(dict.fromkeys(map(column_around, ordering)))
    if file_slice.log_files and reader is not None:
        return with_field_columns(reader.rows(storage, file_slice, [RECORD_KEY, *columns]), ordering)
    assert file_slice.base_file is not None
    path = join(file_slice.partition, file_slice.base_file.name.format())
    with closing(open_rows(storage, path, file_slice.source, as_written)) as file:
        if any(find_field(file.schema, name) is None for name in ordering):
            return None
        return with_field_columns(file.read([RECORD_KEY, *columns]), ordering)


def _beaten_in(
    storage: Storage,
    file_slice: FileSlice,
    rows: pa.Table,
    ordering: Sequence[str],
    reader: SliceReader | None,
    as_written: AsWritten,
) -> np.ndarray:
    stored = _read_order(storage, file_slice, ordering, reader, as_written)
    if stored is None:
        return np.zeros(len(rows), dtype=bool)

    stored = stored.filter(pc.is_in(stored.column(RECORD_KEY), value_set=one_array(rows.column(RECORD_KEY))))
    stored = latest_per_key(stored, key=RECORD_KEY, order=ordering)

    found = pc.index_in(rows.column(RECORD_KEY), value_set=one_array(stored.column(RECORD_KEY)))
    met = np.flatnonzero(np.asarray(found.is_valid()))
    incoming = [one_array(rows.column(name)).take(pa.array(met)) for name in ordering]
    at = one_array(found).take(pa.array(met))
    path = join(file_slice.partition, file_slice.file_id)
    before = [
        conform_array(one_array(stored.column(name)).take(at), new.type, path=path, name=name)
        for name, new in zip(ordering, incoming, strict=True)
    ]

    answer = np.zeros(len(rows), dtype=bool)
    answer[met] = ~incoming_wins(incoming, before)
    return answer


def still_stored(
    storage: Storage, slices: Sequence[FileSlice], keys: pa.Array, groups: np.ndarray, reader: SliceReader
) -> np.ndarray:
    """For each key, whether its file group still holds it. The base file has the key; a log may have deleted it.

    Shape: (n,) bool. Memory: the keys of one slice.
    """
    answer = np.ones(len(keys), dtype=bool)
    for group in np.unique(groups).tolist():
        if not slices[group].log_files:
            continue
        at = np.flatnonzero(groups == group)
        stored = one_array(reader.rows(storage, slices[group], [RECORD_KEY]).column(RECORD_KEY))
        answer[at] = np.asarray(pc.is_in(keys.take(pa.array(at)), value_set=stored))
    return answer


def winning_partitions(
    codes: np.ndarray, partitions: np.ndarray, order: Mapping[str, pa.Array], arrival: np.ndarray
) -> np.ndarray:
    """For each row, whether it stays, if a key may come from one partition only: that of the key's greatest row.

    `codes`, `partitions`: for each row the number of its key and of its partition. `order`: the ordering columns. On a
    tie, the row that arrived last counts. Rows with the same key and partition stay together. Shape: (n,) bool.
    """
    # A key is contested if its rows come from several partitions. `somewhere` holds one partition of each key.
    somewhere = np.zeros(int(codes.max(initial=-1)) + 1, dtype=partitions.dtype)
    somewhere[codes] = partitions
    is_contested = np.zeros(len(somewhere), dtype=bool)
    is_contested[codes[somewhere[codes] != partitions]] = True

    stays = np.ones(len(codes), dtype=bool)
    at = np.flatnonzero(is_contested[codes])
    if not len(at):
        return stays

    names = [f"order {n}" for n in range(len(order))]
    columns = [column.take(pa.array(at)) for column in order.values()]
    contested = pa.table(
        [codes[at], partitions[at], *columns, arrival[at]], names=["key", "partition", *names, "arrival"]
    )

    winners = latest_per_key(contested, key="key", order=[*names, "arrival"])
    somewhere[winners.column("key").to_numpy()] = winners.column("partition").to_numpy()
    stays[at] = somewhere[codes[at]] == partitions[at]
    return stays
