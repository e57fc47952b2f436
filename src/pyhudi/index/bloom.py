"""The Bloom search: a base file's footer says which keys it may hold; only those are looked for among its keys."""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.bloom import BloomFilter
from pyhudi.format.footer import KeyFooter
from pyhudi.format.schema import RECORD_KEY
from pyhudi.index.hits import FoundKeys, KeyBounds
from pyhudi.storage.protocol import Storage
from pyhudi.table.parquet_files import open_parquet

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class BloomSearch:
    """Key ranges first, then Bloom filters, then the keys of the row groups whose statistics fit.

    `prunes_by_range`: off, the footers' ranges are passed over; it saves nothing where keys are random, and costs
    next to nothing. A file whose footer has no range or no filter that can be used may hold any key.

    Requests: the footer of each file, once; key columns of row groups only where a filter lets a key through.
    Memory: a file's filter, and the keys of one row group. Spec: format/indexes.md section 2.
    """

    prunes_by_range: bool = True

    @property
    def prunes(self) -> bool:
        return True

    def encode(self, keys: pa.Array) -> pa.DictionaryArray:
        """Distinct keys ascend by their bytes, so that a range of them is a slice."""
        encoded = keys.dictionary_encode()
        order = np.asarray(pc.array_sort_indices(encoded.dictionary))
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        indices = rank[np.asarray(encoded.indices)]
        return pa.DictionaryArray.from_arrays(pa.array(indices), encoded.dictionary.take(pa.array(order)))

    def find(self, storage: Storage, paths: Sequence[str], keys: pa.Array) -> Iterator[FoundKeys]:
        return (self._find_in(storage, path, keys) for path in paths)

    def _find_in(self, storage: Storage, path: str, keys: pa.Array) -> FoundKeys:
        with closing(open_parquet(storage, path)) as file:
            known = _read_footer(file, path)
            start, stop = self._range(known, keys)
            maybe = start + _let_through(known.bloom, keys.slice(start, stop - start))
            if not len(maybe):
                return FoundKeys(maybe, maybe)
            found = _stored_among(file, keys.take(pa.array(maybe)))
        return FoundKeys(maybe[found.numbers], found.positions)

    def may_hold(self, storage: Storage, path: str, bounds: KeyBounds) -> bool:
        with closing(open_parquet(storage, path)) as file:
            known = _read_footer(file, path)
        if bounds.keys is None:
            low, high = self._ends(known) or (bounds.low, bounds.high)
            return bounds.low <= high and low <= bounds.high
        keys = pc.unique(bounds.keys)
        keys = keys.take(pc.array_sort_indices(keys))
        start, stop = self._range(known, keys)
        return bool(len(_let_through(known.bloom, keys.slice(start, stop - start))))

    def _ends(self, known: "_Known") -> tuple[str, str] | None:
        return known.ends if self.prunes_by_range else None

    def _range(self, known: "_Known", keys: pa.Array) -> tuple[int, int]:
        """Where the keys that lie in the file's range begin and end, both of its ends counted in."""
        ends = self._ends(known)
        return (0, len(keys)) if ends is None else _span(keys, *ends)


@dataclass(frozen=True, slots=True)
class _Known:
    """What a footer says of its file's keys; None where it says nothing that can be used."""

    ends: tuple[str, str] | None
    bloom: BloomFilter | None


def _read_footer(file: pq.ParquetFile, path: str) -> _Known:
    footer = KeyFooter.parse(file.metadata.metadata)
    bloom, why_none = footer.usable_bloom(path=path)
    if bloom is None:
        level = logging.WARNING if footer.bloom_text is not None else logging.INFO
        log.log(level, "the keys of a file are read instead of its Bloom filter: %s", why_none)
    return _Known(footer.key_range if footer.has_bytewise_range else None, bloom)


def _let_through(bloom: BloomFilter | None, keys: pa.Array) -> np.ndarray:
    """Numbers of the keys that the filter may contain."""
    if bloom is None or not len(keys):
        return np.arange(len(keys))
    return np.flatnonzero(np.asarray(bloom.may_contain(keys)))


def _stored_among(file: pq.ParquetFile, keys: pa.Array) -> FoundKeys:
    """Which of the keys, which ascend, the file holds."""
    column = next(n for n in range(len(file.schema)) if file.schema.column(n).path == RECORD_KEY)
    numbers, positions, start_row = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        statistics, first_row = group.column(column).statistics, start_row
        start_row += group.num_rows
        start, stop = 0, len(keys)
        if statistics is not None and statistics.has_min_max and isinstance(statistics.min, str):
            start, stop = _span(keys, statistics.min, statistics.max)
        if start == stop:
            continue
        stored = file.read_row_group(number, [RECORD_KEY], use_threads=False).column(RECORD_KEY)
        places = one_array(pc.index_in(stored, value_set=keys.slice(start, stop - start)))
        numbers.append(start + np.asarray(places.drop_null(), dtype=np.int64))
        positions.append(first_row + np.flatnonzero(np.asarray(places.is_valid())))
    return FoundKeys.of(np.concatenate(numbers), np.concatenate(positions))


def _span(keys: pa.Array, low: str, high: str) -> tuple[int, int]:
    """Where keys that ascend enter `[low, high]` and leave it. A few dozen keys are looked at."""
    start = bisect_left(keys, low, key=_text)
    return start, bisect_right(keys, high, lo=start, key=_text)


def _text(key: pa.StringScalar) -> str:
    text = key.as_py()
    assert isinstance(text, str)
    return text
