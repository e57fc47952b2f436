"""File groups and files that indexes of record keys rule out. What an index cannot rule out for certain is read.

Useful for predicates that name record keys, or column values that a secondary index turns into record keys.
Such an index tells where keys are in the merged rows of today. It says nothing about the past, nor about base files
read without their logs. It knows one file group for a key: one in the table or, if the index is kept by partition,
one in each partition.
Spec: format/indexes.md sections 6 and 11.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.record_keys import KeySpec, missing_keys, record_keys
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.predicate import Predicate
from pyhudi.predicate.allowed import allowed_values
from pyhudi.table.facts.config import KeyKind
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.snapshot import Snapshot

KEYS_MAX: Final = 1_000
"""An index is asked for at most so many record keys or column values. More of them are usually in most files."""

PARTITIONS_MAX: Final = 16
"""An index kept by partition is asked for at most so many partitions, since each has file groups of its own."""

_ONE_SPELLING: Final = (KeyKind.SIMPLE, KeyKind.TIMESTAMP)
"""Key generators that spell a key of one column in one way. Spec: format/layout.md section 5.1."""


class KeyLocations(Protocol):
    """Where record keys are, as of the latest commit. Raises: CorruptFile, naming the file."""

    @property
    def is_by_partition(self) -> bool:
        """Whether keys are looked up in each partition by itself."""

    def locate(self, keys: pa.Array, partitions: Sequence[str]) -> Mapping[str, Collection[str] | None] | None:
        """By partition the ids of the file groups that hold keys; None for one of which it is not known.

        A partition without an entry holds none. None: nothing is known of keys.
        """


class ValueIndexes(Protocol):
    """The record keys of columns' values, as of the latest commit. Raises: CorruptFile, naming the file."""

    def columns(self) -> Mapping[str, str]:
        """The columns whose values lead to record keys, by the names of their indexes."""

    def keys_of(self, index: str, column: pa.Field, values: pa.Array) -> pa.Array | None:
        """The record keys of the rows with these values of a column.

        Values are distinct. None if the index cannot tell.
        """


class KeyFilters(Protocol):
    """Filters of the record keys of base files. Raises: CorruptFile, naming the file."""

    def may_hold(self, keys: pa.Array, paths: Sequence[str]) -> npt.NDArray[np.bool_] | None:
        """Which base files a filter does not rule out for all of the keys; None where there are no filters."""


@dataclass(frozen=True, slots=True)
class LocatedSlices:
    """Slices that may hold the keys. `index`: the one asked. `files_pruned`: the other files of their partitions."""

    index: str
    slices: Sequence[FileSlice]
    files_pruned: int


def sought_keys(snapshot: Snapshot, predicate: Predicate, besides: Collection[str]) -> pa.Array | None:
    """Every record key that a matching row may have, ascending. None if any key is possible, or too many are.

    The predicate must bound the stored record key, or every key column. Key columns must be text or whole numbers:
    every release of Hudi writes them alike. `besides`: columns that the query shows in another form than the stored
    one.
    """
    if snapshot.config.has_meta_fields and RECORD_KEY not in besides:
        keys = allowed_values(predicate, RECORD_KEY)
        if keys is not None:
            return keys if len(keys) <= KEYS_MAX else None

    spec, kind = snapshot.key_spec, snapshot.config.key_kind
    if spec.makes_keys or kind is KeyKind.OTHER or set(spec.record_key) & set(besides):
        return None

    values = [_of_one_spelling(allowed_values(predicate, name)) for name in spec.record_key]
    known = [one for one in values if one is not None]
    if len(known) < len(values) or prod(map(len, known)) > KEYS_MAX:
        return None

    # A table may hold both spellings of a key of one column: `7` and `id:7`.
    spellings = [spec]
    if len(known) == 1 and kind not in _ONE_SPELLING:
        spellings.append(replace(spec, is_composite=not spec.is_composite))

    keys = pa.concat_arrays([_spelled(known, one) for one in spellings]).unique()
    return keys.take(pc.array_sort_indices(keys))


def _of_one_spelling(values: pa.Array | None) -> pa.Array | None:
    return None if values is None or pa.types.is_date32(values.type) else values


def _spelled(values: Sequence[pa.Array], spec: KeySpec) -> pa.Array:
    """The keys for every combination of these values of the key columns. Keys that would be all empty are left out."""
    rows = list(product(*(one.to_pylist() for one in values)))
    columns = [pa.array([row[at] for row in rows], one.type) for at, one in enumerate(values)]
    table = pa.table(columns, names=list(spec.record_key))
    return one_array(record_keys(table.filter(pc.invert(missing_keys(table, spec))), spec))


def locate_slices(
    locations: KeyLocations, snapshot: Snapshot, keys: pa.Array, partitions: Sequence[str], *, index: str
) -> LocatedSlices | None:
    """Of these partitions the slices that hold rows of these keys; None where that is not known.

    `index`: which one led to the keys. A location whose file group is not there puts all in doubt.
    Cost: a look-up a key, in as many file groups of the index as the keys are spread over.
    """
    if locations.is_by_partition and len(partitions) > PARTITIONS_MAX:
        return None
    located = locations.locate(keys, partitions)
    if located is None:
        return None

    found: list[FileSlice] = []
    files_pruned = 0
    for partition in (one for one in partitions if one in located):
        file_ids, slices = located[partition], snapshot.slices(partition)
        own = [file_slice for file_slice in slices if file_ids is None or file_slice.file_id in file_ids]
        if file_ids is not None and len(own) < len(file_ids):
            return None
        found += own
        files_pruned += sum(map(_count_files, slices)) - sum(map(_count_files, own))
    return LocatedSlices(index, found, files_pruned)


def _count_files(file_slice: FileSlice) -> int:
    return len(file_slice.log_files) + (file_slice.base_file is not None)


def keys_by_values(
    indexes: ValueIndexes, locations: KeyLocations, predicate: Predicate, besides: Collection[str]
) -> tuple[str, pa.Array] | None:
    """The index of that column of which a predicate allows the fewest values, and the record keys that it leads to.

    None where no index tells. `besides`: columns that a query shows otherwise than they are stored.
    Cost: a look-up a value.
    """
    allowed = []
    for index, column in sorted(indexes.columns().items()):
        values = allowed_values(predicate, column) if column not in besides else None
        if values is not None and len(values) <= KEYS_MAX:
            allowed.append((len(values), index, predicate.schema.field(column), values))
    if not allowed or locations.is_by_partition:  # an entry would stand for rows of a key in several partitions
        return None
    _, index, column, values = min(allowed, key=lambda one: one[:2])
    keys = indexes.keys_of(index, column, values)
    return None if keys is None else (index, keys)


def match_base_files(
    filters: KeyFilters, keys: pa.Array, slices: Sequence[tuple[str, bool]]
) -> npt.NDArray[np.bool_] | None:
    """For each slice, whether it may hold one of the keys.

    `slices`: path of the base file, and whether logs are read with it.

    A slice with logs may hold any key, since a log may have keys that the base file lacks. None: there are no filters.
    Cost: a look-up for each file.
    """
    plain = np.array([not has_logs for _, has_logs in slices], np.bool_)
    may = filters.may_hold(keys, [path for path, has_logs in slices if not has_logs]) if plain.any() else None
    if may is None:
        return None

    result = np.ones(len(slices), np.bool_)
    result[plain] = may
    return result
