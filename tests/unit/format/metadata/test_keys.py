"""A key of the metadata table could differ from Java's, or lie in another file group: nobody would ever find it.

Against vectors of Apache Hudi and of the hashes' own libraries, a plain model of Java's rules, and every record of
real tables in `tests/golden/test_metadata_records.py`.
"""

import base64
import hashlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, Invalid
from pyhudi.format.metadata import keys
from pyhudi.format.metadata.groups import MetadataGroupId, file_group_prefix
from pyhudi.format.metadata.hashes import long_hashes, short_hashes

# Of `abcd…`, so many letters long; by the xxhash library, with the metadata table's seed.
XXHASHES = {
    0: "DW/eaNVbRdo=",
    4: "Q6P7XKXdBWE=",
    8: "OczryHo04zA=",
    31: "hHypb2Jn7CI=",
    32: "7FT9QPEjhmA=",
    33: "zHK1FvEfcI4=",
    63: "DIKHSuHABPg=",
    64: "kr8BBqKd6vs=",
    100: "RZBEsIs6rIE=",
}
texts = st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=8)
partly_null = st.lists(st.none() | st.text("a$\\\0é", max_size=6), max_size=8)


def java_hash(text: str) -> int:
    h = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        h = (31 * h + (high << 8 | low)) & 0xFFFFFFFF
    return h - (1 << 32) if h >= 1 << 31 else h


def test_short_hashes_are_those_of_the_reference() -> None:
    assert [bytes(row).decode() for row in short_hashes(pa.array(["_hoodie_commit_time", "k", "0"]))] == [
        "JBBzUToHtLc=",
        "qEGXt0PKrbQ=",
        "06zdpyCf3Jg=",
    ]
    letters = ["".join(chr(97 + index % 26) for index in range(size)) for size in XXHASHES]
    assert [bytes(row).decode() for row in short_hashes(pa.array(letters))] == list(XXHASHES.values())


@given(texts)
def test_long_hashes_are_md5(of: list[str]) -> None:
    long = [text * 5 for text in of]
    expected = [base64.b64encode(hashlib.md5(text.encode()).digest()) for text in long]
    assert [bytes(row) for row in long_hashes(pa.array(long, pa.large_string()))] == expected


def test_md5_holds_at_every_size_around_its_blocks() -> None:
    of = ["x" * size for size in range(200)]
    expected = [base64.b64encode(hashlib.md5(text.encode()).digest()) for text in of]
    assert [bytes(row) for row in long_hashes(pa.array(of))] == expected


def test_keys_are_made_of_their_parts() -> None:
    column, partition, mark = "oyTjviKHuhI=", "06zdpyCf3Jg=", "2CMHrhWVE9w="
    file = base64.b64encode(hashlib.md5(b"f.parquet").digest()).decode()
    assert keys.column_stats_keys("ts", "0", "f.parquet").to_pylist() == [column + partition + file]
    files = pa.chunked_array([["f.parquet"], ["f.parquet"]])
    assert keys.column_stats_keys("ts", "0", files).to_pylist() == [column + partition + file] * 2
    assert keys.column_stats_prefixes("ts").to_pylist() == [column]
    assert keys.column_stats_prefixes(pa.array(["ts"]), "0").to_pylist() == [column + partition]
    assert keys.partition_stats_keys("ts", pa.array(["0"])).to_pylist() == [column + partition]
    assert keys.expression_partition_stats_keys("ts", "0").to_pylist() == [column + mark + partition]
    assert keys.bloom_filter_keys("0", "f.parquet").to_pylist() == [partition + file]
    assert keys.bloom_filter_keys("", "f") == keys.bloom_filter_keys(pa.array([""]), "f")
    assert keys.bloom_filter_keys("", "f") == keys.bloom_filter_keys(".", "f")
    assert len(keys.bloom_filter_keys("", pa.array([], pa.string()))) == 0


def test_nulls_have_no_keys() -> None:
    with pytest.raises(Invalid, match="null"):
        keys.partition_stats_keys("ts", pa.array(["0", None]))


@given(texts, st.integers(1, 40))
def test_file_groups_are_those_of_java(of: list[str], count: int) -> None:
    expected = [abs(java_hash(text)) % count for text in of]
    assert keys.file_groups(pa.array(of, pa.string()), count).tolist() == expected


def test_the_least_hash_has_a_file_group_too() -> None:
    least = "polygenelubricants"
    assert java_hash(least) == -(2**31)
    assert keys.file_groups(pa.array([least]), 10).tolist() == [8]


@given(partly_null, st.integers(1, 9), st.booleans())
def test_secondary_keys_split_into_what_they_were_made_of(of: list[str | None], count: int, is_sliced: bool) -> None:
    values = pa.array(of, pa.string())
    records = pa.array([text or "" for text in reversed(of)], pa.string())
    made = keys.secondary_keys(values, records)
    at = 1 if is_sliced else 0
    found_values, found_records = keys.split_secondary_keys(made.slice(at))
    assert found_values.to_pylist() == of[at:]
    assert found_records.to_pylist() == records.to_pylist()[at:]
    prefixes = keys.secondary_prefixes(values)
    assert all(key.startswith(prefix) for key, prefix in zip(made.to_pylist(), prefixes.to_pylist(), strict=True))
    by_prefix = keys.file_groups(made.slice(at), count, hashing=keys.KeyHashing.SECONDARY_PREFIX)
    assert by_prefix.tolist() == keys.file_groups(prefixes.slice(at), count).tolist()


def test_secondary_keys_are_spelled_as_java_does() -> None:
    made = keys.secondary_keys(pa.array(["r$0", None, "a\0\\"]), pa.array(["k", "k$", ""]))
    assert made.to_pylist() == ["r\\$0$k", "\0$k\\$", "a\\\0\\\\$"]
    with pytest.raises(CorruptFile, match="unescaped"):
        keys.split_secondary_keys(pa.array(["a\\$b"]))


@pytest.mark.parametrize(
    "file_id,partition,index,data_partition",
    [
        ("files-0000-0", "files", 0, None),
        ("files-0000", "files", 0, None),
        ("col-stats-0001-0", "column_stats", 1, None),
        ("bloom-filters-0003-0", "bloom_filters", 3, None),
        ("record-index-9999-0", "record_index", 9999, None),
        ("record-index-p%3Da%2Db%2Fc0-0000-0", "record_index", 0, "p=a-b/c0"),
        ("secondary-index-idx-rider-0003-0", "secondary_index_idx_rider", 3, None),
        ("expr-index-idx-day-0001-0", "expr_index_idx_day", 1, None),
    ],
)
def test_ids_of_file_groups(file_id: str, partition: str, index: int, data_partition: str | None) -> None:
    parsed = MetadataGroupId.parse(file_id, partition=partition)
    assert parsed == MetadataGroupId(partition, index, data_partition, file_id.endswith("-0"))
    assert parsed.format() == file_id


@given(st.text(st.characters(codec="utf-8"), max_size=10), st.integers(0, 20000))
def test_ids_with_data_partitions_survive(data_partition: str, index: int) -> None:
    group = MetadataGroupId("record_index", index, data_partition)
    assert MetadataGroupId.parse(group.format(), partition="record_index") == group


def test_other_ids_are_none() -> None:
    assert MetadataGroupId.parse("files-0000-0", partition="column_stats") is None
    assert MetadataGroupId.parse("files-0-0", partition="files") is None
    with pytest.raises(Invalid, match="metadata table"):
        file_group_prefix("rows")
