"""What a file of copied row groups notes of its record keys: made of the old notes, or of the keys."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.footer import BLOOM_FILTER, BLOOM_KIND, MAX_KEY, MIN_KEY, KeyFooter
from pyhudi.format.keys.bloom import BloomFilter
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.opening import open_base_file
from pyhudi.write.handles.key_filter import ENTRIES_MAX, FilterSettings, KeyFilter


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """Row groups of one file. `noted`: what the file notes of its keys. `is_whole`: these are all of its rows."""

    path: str
    noted: KeyFooter
    groups: tuple[int, ...]
    rows: int
    is_whole: bool


def key_entries(store: Storage, parts: Sequence[CopiedPart], settings: FilterSettings | None) -> dict[str, str]:
    """The entries of a footer, as `BaseFileWriter` writes them; none where files have no filter.

    Old filters are joined where the result has room for all keys. Else the keys are read: one column of the parts.
    """
    if settings is None:
        return {}
    bloom, ends = _joined(parts, settings), _joined_range(parts)
    if bloom is None or ends is None:
        bloom, ends = _of_keys(_keys(store, parts), settings)
    kind = {} if bloom.kind == "SIMPLE" else {BLOOM_KIND: bloom.kind}
    return {BLOOM_FILTER: bloom.encode(), **kind, MIN_KEY: ends[0], MAX_KEY: ends[1]}


def _joined(parts: Sequence[CopiedPart], settings: FilterSettings) -> BloomFilter | None:
    """The filters of all parts as one, if it is as good as one that is made of the keys."""
    rows = sum(part.rows for part in parts)
    if rows > ENTRIES_MAX or not all(part.is_whole for part in parts):
        return None
    wanted = settings.empty(rows)
    if wanted.kind == "DYNAMIC_V0" and rows > wanted.entries:
        return None

    found: list[BloomFilter] = []
    for part in parts:
        bloom, _ = part.noted.usable_bloom(path=part.path)
        if bloom is None or not _is_alike(bloom, found[0] if found else bloom, wanted, settings):
            return None
        found.append(bloom)
    bits = np.bitwise_or.reduce([bloom.rows for bloom in found])
    return replace(found[0], rows=bits, entries_max=settings.entries_max, last_row_key_count=rows)


def _is_alike(bloom: BloomFilter, other: BloomFilter, wanted: BloomFilter, settings: FilterSettings) -> bool:
    """Whether a filter has the form of another one, and the room that is asked for."""
    if len(bloom.rows) > 1 or (bloom.bit_count, bloom.entries) != (other.bit_count, other.entries):
        return False
    if (bloom.kind, bloom.hash_count) != (wanted.kind, wanted.hash_count):
        return False
    return bloom.bit_count == wanted.bit_count or (settings.entries is None and bloom.bit_count > wanted.bit_count)


def _joined_range(parts: Sequence[CopiedPart]) -> tuple[str, str] | None:
    if not all(part.is_whole and part.noted.has_bytewise_range for part in parts):
        return None
    ranges = [part.noted.key_range for part in parts if part.noted.key_range is not None]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _of_keys(keys: Iterator[pa.Array], settings: FilterSettings) -> tuple[BloomFilter, tuple[str, str]]:
    held = KeyFilter(settings)
    ends: list[tuple[str, str]] = []
    for some in keys:
        held.add(some)
        seen = pc.min_max(some).as_py()
        ends.append((seen["min"], seen["max"]))
    assert ends, "no file is written without a row"
    return held.finish(), (min(low for low, _ in ends), max(high for _, high in ends))


def _keys(store: Storage, parts: Sequence[CopiedPart]) -> Iterator[pa.Array]:
    for part in parts:
        with closing(open_base_file(store, part.path)) as file:
            for batch in file.batches([RECORD_KEY], groups=part.groups):
                if len(batch):
                    yield batch.column(RECORD_KEY)
