"""A key that is stored could be missed, and its row be there twice ever after; or every file be read, as if there
were no filters.

The Bloom search must find what reading all keys finds, whoever wrote the footer and whatever is amiss in it, and
must leave alone the files and row groups that its footers rule out.
"""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.footer import BLOOM_FILTER, BLOOM_FILTER_OLD, BLOOM_KIND, MAX_KEY, MIN_KEY, KeyFooter
from pyhudi.format.keys.bloom import BloomFilter
from pyhudi.format.names import BaseFileName
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.index.base_files import BaseFileIndex
from pyhudi.index.bloom import BloomSearch
from pyhudi.index.hits import KeyBounds
from pyhudi.index.simple import SimpleSearch
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import BaseFile, FileSlice
from pyhudi.testing.counting import CountingStorage

PATH = "f.parquet"


def java_order(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def put_file(
    storage: Storage,
    keys: Sequence[str],
    *,
    path: str = PATH,
    kind: str = "DYNAMIC_V0",
    rate: float = 1e-9,
    entries: dict[str, str | bytes] | None = None,
    row_group_size: int = 1_000,
    by_java: bool = False,
) -> None:
    """A base file of these keys. `entries`: instead of those that the footer would have; `by_java`: who sorted them."""
    if entries is None:
        bloom = BloomFilter.create(kind, entries=4, false_positive_rate=rate, entries_max=8)  # type: ignore[arg-type]
        bloom.add(pa.array(keys, pa.string()))
        entries = {BLOOM_FILTER: bloom.encode()}
        if kind != "SIMPLE":
            entries[BLOOM_KIND] = kind
        if keys:
            ordered = sorted(keys, key=java_order if by_java else None)
            entries |= {MIN_KEY: ordered[0], MAX_KEY: ordered[-1]}
    sink = pa.BufferOutputStream()
    rows = pa.table({RECORD_KEY: pa.array(keys, pa.string()), "v": np.arange(len(keys))})
    with pq.ParquetWriter(sink, rows.schema) as writer:
        writer.write_table(rows, row_group_size)
        writer.add_key_value_metadata(entries)
    storage.put(path, sink.getvalue().to_pybytes())


def found_by(search: Any, storage: Storage, wanted: Sequence[str], path: str = PATH) -> list[str]:
    encoded = search.encode(pa.array(wanted, pa.string()))
    assert encoded.to_pylist() == list(wanted)
    return [
        encoded.dictionary[n].as_py() for n in next(search.find(storage, [path], encoded.dictionary)).numbers.tolist()
    ]


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=3) | st.sampled_from(
    ["a", "b", "\ud7ff", "\ue000", "\uff21", "\U0001f600", "a\U0001f600", "a\uff21", "\U0010ffff"]
)


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    stored=st.lists(texts, max_size=12),
    wanted=st.lists(texts, min_size=1, max_size=12),
    kind=st.sampled_from(["SIMPLE", "DYNAMIC_V0"]),
    rate=st.sampled_from([1e-9, 0.9]),
    by_java=st.booleans(),
    prunes=st.booleans(),
    row_group_size=st.sampled_from([1, 3, 1_000]),
)
def test_it_finds_what_reading_every_key_finds(
    stored: list[str], wanted: list[str], kind: str, rate: float, by_java: bool, prunes: bool, row_group_size: int
) -> None:
    """Java and Parquet order characters beyond U+FFFF each in its own way; at a rate of 0.9 filters mostly err."""
    storage = MemoryStorage()
    put_file(storage, stored, kind=kind, rate=rate, by_java=by_java, row_group_size=row_group_size)

    found = found_by(BloomSearch(prunes), storage, wanted)

    assert sorted(found) == sorted(set(stored) & set(wanted))
    assert sorted(found_by(SimpleSearch(), storage, wanted)) == sorted(found)
    bounds = KeyBounds(min(wanted), max(wanted), pa.array(wanted))
    assert not found or BloomSearch(prunes).may_hold(storage, [PATH], bounds) == [True]
    assert not found or BloomSearch(prunes).may_hold(storage, [PATH], KeyBounds(min(wanted), max(wanted))) == [True]


KEYS = [f"k{n:05}" for n in range(0, 40_000, 2)]


def bytes_of_search(search: Any, storage: CountingStorage, wanted: Sequence[str]) -> int:
    storage.reset()
    assert found_by(search, storage, wanted) == sorted(set(wanted) & set(KEYS))
    assert storage.counts == {"open_input": 1}
    return storage.bytes_read


def footer_bytes(storage: Storage) -> int:
    """What is read to open the file: a guess at the footer's size, then the whole of it."""
    return int.from_bytes(storage.get(PATH)[-8:-4], "little") + 8 + 65_536


def test_it_reads_the_footer_only_where_range_or_filter_rule_the_file_out() -> None:
    storage = CountingStorage(MemoryStorage())
    bloom = BloomFilter.create("SIMPLE", entries=len(KEYS))
    bloom.add(pa.array(KEYS))
    ends = {MIN_KEY: KEYS[0], MAX_KEY: KEYS[-1]}
    put_file(storage, KEYS, entries={BLOOM_FILTER: bloom.encode(), **ends}, row_group_size=2_000)
    everything = bytes_of_search(SimpleSearch(), storage, ["k00002"])
    assert everything > 100_000
    footer = footer_bytes(storage)

    assert bytes_of_search(BloomSearch(), storage, ["k00001", "k39999"]) <= footer  # in range, not in the filter
    one_group = bytes_of_search(BloomSearch(), storage, ["k00002"]) - footer
    assert 0 < one_group < everything / 5

    put_file(storage, KEYS, entries=dict(ends), row_group_size=40_000)
    footer = footer_bytes(storage)
    assert bytes_of_search(BloomSearch(), storage, ["k4", "a"]) <= footer  # out of range
    assert bytes_of_search(BloomSearch(), storage, ["k00001"]) > 80_000  # nothing rules it out
    assert bytes_of_search(BloomSearch(prunes_by_range=False), storage, ["k20001"]) > 80_000


def test_keys_from_the_driver_and_ranges_rule_files_out() -> None:
    storage = MemoryStorage()
    slices = []
    for partition, first in (("p", "a"), ("p", "k"), ("q", "a")):
        name = BaseFileName(f"{partition}{first}-0", "0-0-0", "20260101000000000", ".parquet")
        put_file(storage, [f"{first}{n}" for n in range(4)], path=f"{partition}/{name.format()}")
        slices.append(FileSlice(partition, name.file_id, name.requested, BaseFile(name, 1)))

    def candidates(bounds: dict[str, KeyBounds], *, is_global: bool, prunes: bool = True) -> list[int]:
        index = BaseFileIndex(BloomSearch(prunes), is_global)
        return index.candidates(storage, bounds, slices, SerialExecutor())

    in_p = {"p": KeyBounds("a", "b")}
    assert candidates(in_p, is_global=False) == [0]
    assert candidates(in_p, is_global=True) == [0, 2]
    assert candidates(in_p, is_global=False, prunes=False) == [0, 1]
    in_both = {"p": KeyBounds("a1", "k9", pa.array(["k9", "a1"])), "q": KeyBounds("k1", "k1", pa.array(["k1"]))}
    assert candidates(in_both, is_global=False) == [0]
    assert candidates(in_both, is_global=True) == [0, 1, 2]
    assert candidates({}, is_global=True) == []


BROKEN: dict[str, dict[str, str | bytes]] = {
    "no entries": {},
    "no filter": {MIN_KEY: "a", MAX_KEY: "c"},
    "no Base64": {BLOOM_FILTER: "%%%", BLOOM_KIND: "DYNAMIC_V0"},
    "cut short": {BLOOM_FILTER: "/////wAAAAcBAAAAYBIQAEAg"},
    "unknown kind": {BLOOM_FILTER: "/////wAAAAcBAAAAYBIQAEAgIFgCAAJAQA==", BLOOM_KIND: "RIBBON"},
    "Jenkins": {BLOOM_FILTER: "AAAAAgAAAAgB"},
    "one end": {MIN_KEY: "z"},
    "no text": {MIN_KEY: b"\xff\xfe", MAX_KEY: b"\xff"},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_footer_that_is_broken_or_bare_rules_nothing_out(name: str, caplog: pytest.LogCaptureFixture) -> None:
    storage = MemoryStorage()
    put_file(storage, ["a", "c"], entries=BROKEN[name])
    with caplog.at_level(logging.INFO, "pyhudi"):
        assert found_by(BloomSearch(), storage, ["a", "b", "c"]) == ["a", "c"]
    is_damaged = BLOOM_FILTER in BROKEN[name]
    (record,) = caplog.records
    assert PATH in record.getMessage()
    assert record.levelno == (logging.WARNING if is_damaged else logging.INFO)


def test_the_older_name_of_the_filter_counts_too() -> None:
    """The text is that of `k1` and `key2` in format/layout.md section 7.1."""
    storage = MemoryStorage()
    text = "/////wAAAAcBAAAAYBIQAEAgIFgCAAJAQA=="
    put_file(storage, ["k1", "key2", "other"], entries={BLOOM_FILTER_OLD: text})
    assert found_by(BloomSearch(), storage, ["k1", "key2", "other"]) == ["k1", "key2"], "the filter was not asked"
    assert KeyFooter.parse({BLOOM_FILTER_OLD.encode(): text.encode()}).bloom_kind == "SIMPLE"


def test_hits_of_a_global_index_are_of_each_partition_of_the_input() -> None:
    storage = MemoryStorage()
    slices = []
    for at, (partition, keys) in enumerate([("p", ["a", "b"]), ("q", ["b", "c"]), ("r", ["d"])]):
        name = BaseFileName(f"{at}-0", "0-0-0", "20260101000000000", ".parquet")
        put_file(storage, keys, path=f"{partition}/{name.format()}")
        slices.append(FileSlice(partition, name.file_id, name.requested, BaseFile(name, 1)))
    keys_in = {"q": pa.array(["b", "x", "a", "b"]), "new": pa.array(["y"]), "p": pa.array(["c", "b"])}
    for search in (SimpleSearch(), BloomSearch()):
        hits = BaseFileIndex(search, is_global=True).locate(storage, keys_in, slices, SerialExecutor())
        pairs = {path: list(zip(of.rows.tolist(), of.groups.tolist(), strict=True)) for path, of in hits.items()}
        assert pairs == {"q": [(0, 0), (0, 1), (2, 0), (3, 0), (3, 1)], "new": [], "p": [(0, 1), (1, 0), (1, 1)]}
        hits = BaseFileIndex(search, is_global=False).locate(storage, keys_in, slices, SerialExecutor())
        pairs = {path: list(zip(of.rows.tolist(), of.groups.tolist(), strict=True)) for path, of in hits.items()}
        assert pairs == {"q": [(0, 1), (3, 1)], "new": [], "p": [(1, 0)]}
