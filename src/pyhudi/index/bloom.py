"""The Bloom search.

A base file's Bloom filter says which keys the file may hold; only those keys are looked up in it.
"""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.footer import KeyFooter
from pyhudi.format.keys.bloom import BloomFilter
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.index.bloom_metadata import KeyRange, KeyStatistics
from pyhudi.index.hits import FoundKeys, KeyBounds
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.protocol import OpenBaseFile
from pyhudi.table.slices.base_files.rows import TODAY, AsWritten, open_rows

log = logging.getLogger("pyhudi")

_ASKED_TOGETHER = 64


@dataclass(frozen=True, slots=True)
class BloomSearch:
    """Rules files out by key range, then by Bloom filter; then reads the keys of row groups whose statistics fit.

    `prunes_by_range`: whether key ranges are used. They cost next to nothing, and rule nothing out if keys are random.
    A file whose footer has no usable range or filter may hold any key.

    `statistics`: from a metadata table that knows ranges or filters (`hoodie.bloom.index.use.metadata`). If it lacks
    one of a file, the file's footer is read. `ranges`: the ranges that it knows of the files to be searched.
    `as_written`: how the files hold their keys.

    Requests: the footer of each file once, unless the metadata table rules the file out; key columns only of row groups
    for which a filter let a key through.
    Memory: one file's filter, or the filters of all files that are searched together if the metadata table has them;
    the keys of one row group. Spec: format/indexes.md section 2.
    """

    prunes_by_range: bool = True
    statistics: KeyStatistics | None = None
    ranges: Mapping[str, KeyRange] = field(default_factory=dict)
    as_written: AsWritten = TODAY

    @property
    def prunes(self) -> bool:
        return True

    def encode(self, keys: pa.Array) -> pa.DictionaryArray:
        """The keys as numbers. Distinct keys ascend by their bytes, so that a key range is a slice of them."""
        encoded = keys.dictionary_encode()
        order = np.asarray(pc.array_sort_indices(encoded.dictionary))
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        indices = rank[np.asarray(encoded.indices)]
        return pa.DictionaryArray.from_arrays(pa.array(indices), encoded.dictionary.take(pa.array(order)))

    def prepare(self, paths: Sequence[str]) -> "BloomSearch":
        if self.statistics is None or not self.prunes_by_range:
            return self
        return replace(self, ranges=self.statistics.read_ranges(paths))

    def find(self, storage: Storage, paths: Sequence[str], keys: pa.Array) -> Iterator[FoundKeys]:
        filters = self._read_filters(paths, keys)
        return (self._find_in(storage, path, keys, filters.get(path)) for path in paths)

    def _read_filters(self, paths: Sequence[str], keys: pa.Array) -> dict[str, BloomFilter]:
        """The metadata table's filters of the files that may hold a key, as their key ranges say."""
        if self.statistics is None:
            return {}
        ends = {path: self.ranges.get(path) for path in paths}
        return self.statistics.read_filters(
            [p for p, key_range in ends.items() if key_range is None or _has_some(keys, key_range)]
        )

    def _find_in(self, storage: Storage, path: str, keys: pa.Array, bloom: BloomFilter | None) -> FoundKeys:
        maybe = _survivors(keys, self.ranges.get(path), bloom)
        if not len(maybe):
            return FoundKeys(maybe, maybe)

        with closing(open_rows(storage, path, as_written=self.as_written)) as file:
            # Without a filter in the metadata table, the file's footer may have one.
            if bloom is None:
                known = _read_footer(file, path)
                maybe = _survivors(keys, self._ends(known), known.bloom)
                if not len(maybe):
                    return FoundKeys(maybe, maybe)
            found = _stored_among(file, keys.take(pa.array(maybe)))
        return FoundKeys(maybe[found.numbers], found.positions)

    def may_hold(self, storage: Storage, paths: Sequence[str], bounds: KeyBounds) -> list[bool]:
        if bounds.keys is None:
            return [self._may_overlap(storage, path, bounds) for path in paths]
        keys = pc.unique(bounds.keys)
        keys = keys.take(pc.array_sort_indices(keys))
        filters = self._read_filters(paths, keys)
        return [self._may_hold_some(storage, path, keys, filters.get(path)) for path in paths]

    def _may_overlap(self, storage: Storage, path: str, bounds: KeyBounds) -> bool:
        ends = self.ranges.get(path)
        if ends is None:
            with closing(open_rows(storage, path, as_written=self.as_written)) as file:
                ends = self._ends(_read_footer(file, path))
        low, high = ends or (bounds.low, bounds.high)
        return bounds.low <= high and low <= bounds.high

    def _may_hold_some(self, storage: Storage, path: str, keys: pa.Array, bloom: BloomFilter | None) -> bool:
        maybe = _survivors(keys, self.ranges.get(path), bloom)
        if bloom is not None or not len(maybe):
            return bool(len(maybe))
        with closing(open_rows(storage, path, as_written=self.as_written)) as file:
            known = _read_footer(file, path)
        return bool(len(_survivors(keys, self._ends(known), known.bloom)))

    def _ends(self, known: "_Known") -> KeyRange | None:
        return known.ends if self.prunes_by_range else None


@dataclass(frozen=True, slots=True)
class _Known:
    """What a footer says about its file's keys. None: it says nothing usable."""

    ends: KeyRange | None
    bloom: BloomFilter | None


def _read_footer(file: OpenBaseFile, path: str) -> _Known:
    footer = KeyFooter.parse(file.entries)
    bloom, why_none = footer.usable_bloom(path=path)
    if bloom is None:
        level = logging.WARNING if footer.bloom_text is not None else logging.INFO
        log.log(level, "the keys of a file are read instead of its Bloom filter: %s", why_none)
    return _Known(footer.key_range if footer.has_bytewise_range else None, bloom)


def _survivors(keys: pa.Array, ends: KeyRange | None, bloom: BloomFilter | None) -> np.ndarray:
    """The numbers of the keys (ascending) that neither range nor filter rules out."""
    start, stop = (0, len(keys)) if ends is None else _span(keys, *ends)
    return start + _let_through(bloom, keys.slice(start, stop - start))


def _let_through(bloom: BloomFilter | None, keys: pa.Array) -> np.ndarray:
    """The numbers of the keys that the filter may contain. Without a filter, all."""
    if bloom is None or not len(keys):
        return np.arange(len(keys))
    return np.flatnonzero(np.asarray(bloom.may_contain(keys)))


def _stored_among(file: OpenBaseFile, keys: pa.Array) -> FoundKeys:
    """Which of the keys (ascending) the file holds."""
    found = list(find_in_groups(file, keys))
    nothing = [np.zeros(0, np.int64)]
    return FoundKeys.of(
        np.concatenate(nothing + [group.numbers for group in found]),
        np.concatenate(nothing + [group.first_row + group.positions for group in found]),
    )


@dataclass(frozen=True, slots=True)
class FoundInGroup:
    """The rows of a row group that have one of the keys: their positions in it, ascending, and the keys' numbers."""

    row_group: int
    first_row: int
    positions: np.ndarray
    numbers: np.ndarray


def find_in_groups(file: OpenBaseFile, keys: pa.Array) -> Iterator[FoundInGroup]:
    """Where the file holds the keys (ascending): the row groups that do. Reads keys only where statistics allow one."""
    start_row = 0
    for number, row_count in enumerate(file.group_rows):
        first_row = start_row
        start_row += row_count

        start, stop = 0, len(keys)
        facts = file.chunk(number, RECORD_KEY)
        low, high = (facts.bounds if facts is not None else None) or (None, None)
        if isinstance(low, str) and isinstance(high, str):
            start, stop = _span(keys, low, high)

        if start == stop:
            continue

        stored = file.read([RECORD_KEY], groups=[number]).column(RECORD_KEY)
        at = one_array(pc.index_in(stored, value_set=keys.slice(start, stop - start)))
        positions = np.flatnonzero(np.asarray(at.is_valid()))
        if len(positions):
            yield FoundInGroup(number, first_row, positions, start + np.asarray(at.drop_null(), dtype=np.int64))


def metadata_survivors(statistics: KeyStatistics, paths: Sequence[str], keys: Sequence[pa.Array]) -> list[pa.Array]:
    """For each file, those of its keys (ascending) that the metadata table does not rule out. Opens no file.

    Memory: the filters of `_ASKED_TOGETHER` files.
    """
    ranges = statistics.read_ranges(paths)
    left = [
        file_keys.take(pa.array(_survivors(file_keys, ranges.get(path), None)))
        for path, file_keys in zip(paths, keys, strict=True)
    ]

    some = [at for at, file_keys in enumerate(left) if len(file_keys)]
    for start in range(0, len(some), _ASKED_TOGETHER):
        asked = some[start : start + _ASKED_TOGETHER]
        filters = statistics.read_filters([paths[at] for at in asked])
        for at in asked:
            left[at] = left[at].take(pa.array(_let_through(filters.get(paths[at]), left[at])))
    return left


def footer_survivors(file: OpenBaseFile, path: str, keys: pa.Array) -> pa.Array:
    """The keys (ascending) that range and filter in an open file's footer do not rule out."""
    known = _read_footer(file, path)
    return keys.take(pa.array(_survivors(keys, known.ends, known.bloom)))


def _has_some(keys: pa.Array, ends: KeyRange) -> bool:
    start, stop = _span(keys, *ends)
    return start < stop


def _span(keys: pa.Array, low: str, high: str) -> tuple[int, int]:
    """Where ascending keys enter `[low, high]` and leave it. Looks at a few dozen keys only."""
    start = bisect_left(keys, low, key=_text)
    return start, bisect_right(keys, high, lo=start, key=_text)


def _text(key: pa.StringScalar) -> str:
    text = key.as_py()
    assert isinstance(text, str)
    return text
