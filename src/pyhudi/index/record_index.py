"""The record index: the metadata table tells for each key the file group that holds it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Bug
from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.index.hits import Hits, KeyBounds
from pyhudi.metadata.kinds.record_index import find_record_index, locate_records, located_groups
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import FileSlice

_UNKNOWN = -1


def record_index_missing(indexes: MetadataIndexes | None, *, is_global: bool) -> str:
    """Why no record index can answer. Empty if one can. Costs a list request of the index's partition.

    An index kept by partition knows a key once in each partition; a global index knows one file group of a key. Neither
    can stand in for the other.
    """
    found = None if indexes is None else find_record_index(indexes)
    if found is None or not found.groups:
        return "expected a record index that is ready, found none"
    if is_global != (None in found.groups):
        kinds = ("kept by partition", "of the whole table")
        return f"expected a record index {kinds[is_global]}, found one {kinds[not is_global]}"
    return ""


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Looks keys up in the metadata table. `is_global`: in the whole index, else in that of the key's own partition.

    A location whose file group was replaced or is gone does not count: its key is new. Row positions are not known.
    `bring`: called with file groups, by partition, to add their slices to `slices`. None: all slices are there already.
    Memory: the distinct keys and their locations.
    Requests: a list of the index's partition, once; then a few for each of its file groups that may hold a key.
    Spec: format/indexes.md section 6.
    """

    indexes: MetadataIndexes
    is_global: bool
    bring: Callable[[Mapping[str, Collection[str]]], None] | None = None

    @property
    def prunes(self) -> bool:
        return True

    @property
    def is_exact(self) -> bool:
        return True

    @property
    def group_count(self) -> int:
        """Of a global index, the file groups over which its keys are spread."""
        found = find_record_index(self.indexes)
        return 1 if found is None else max(1, len(found.groups.get(None, ())))

    def locate(
        self, storage: Storage, keys: Mapping[str, pa.Array], slices: Sequence[FileSlice], executor: Executor
    ) -> dict[str, Hits]:
        if not keys:
            return {}
        if self.is_global:
            whole = pa.concat_arrays(list(keys.values()))

            located = self._read(whole, None)

            if self.bring is not None:
                self.bring(located_groups([located]))

            known = _known(located, slices)
            at = pc.index_in(whole, value_set=known.keys)
            starts = np.cumsum([0, *map(len, keys.values())])[:-1].tolist()
            parts = (
                at.slice(start, len(partition_keys))
                for start, partition_keys in zip(starts, keys.values(), strict=True)
            )
            return {path: _hits(part, known) for path, part in zip(keys, parts, strict=True)}

        paths = list(keys)
        located = [self._read(keys[paths[0]], paths[0])]
        located += executor.run(lambda path: self._read(keys[path], path), paths[1:])
        if self.bring is not None:
            self.bring(located_groups(located))

        def match(at: int) -> Hits:
            known = _known(located[at], slices)
            return _hits(pc.index_in(keys[paths[at]], value_set=known.keys), known)

        return dict(zip(paths, executor.run(match, range(len(paths))), strict=True))

    def candidates(
        self, storage: Storage, bounds: Mapping[str, KeyBounds], slices: Sequence[FileSlice], executor: Executor
    ) -> list[int]:
        keys = {path: bound.keys for path, bound in bounds.items() if bound.keys is not None}
        if len(keys) < len(bounds):
            return list(range(len(slices)))
        found = self.locate(storage, keys, slices, executor)
        groups = [np.zeros(0, np.int32), *(hits.groups for hits in found.values())]
        return [int(at) for at in np.unique(np.concatenate(groups))]

    def _read(self, keys: pa.Array | pa.ChunkedArray, partition: str | None) -> pa.Table:
        located = locate_records(self.indexes, keys, partition=partition)
        if located is None:
            raise Bug("record index: expected one that is ready, as the table's properties said, found none")
        return located


@dataclass(frozen=True, slots=True)
class _Known:
    """Known keys, and for each the number of its slice."""

    keys: pa.Array
    groups: np.ndarray


def _known(located: pa.Table, slices: Sequence[FileSlice]) -> _Known:
    """The locations whose file group is among the slices."""
    at = one_array(group_numbers(located.column("partition"), located.column("file_id"), slices))
    return _Known(one_array(located.column("key")).filter(at.is_valid()), np.asarray(at.drop_null(), dtype=np.int32))


def group_numbers(
    partitions: pa.ChunkedArray, file_ids: pa.ChunkedArray, slices: Sequence[FileSlice]
) -> pa.Array | pa.ChunkedArray:
    """For each file group its number among the slices; null if it is not there. File ids hold no slash."""
    names = pc.binary_join_element_wise(partitions, file_ids, "/")
    own = pa.array([f"{file_slice.partition}/{file_slice.file_id}" for file_slice in slices], pa.string())
    return pc.index_in(names, value_set=own)


def _hits(at: pa.Array, known: _Known) -> Hits:
    """Hits of the keys. `at`: for each key its position among the known keys, or null."""
    rows = np.flatnonzero(np.asarray(at.is_valid()))
    groups = known.groups[np.asarray(at.drop_null(), dtype=np.int64)]
    return Hits(rows, groups, np.full(len(rows), _UNKNOWN, dtype=np.int64))
