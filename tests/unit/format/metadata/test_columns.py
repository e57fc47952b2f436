"""Metadata records by columns could differ from those one by one, from other libraries, or from the rules of merging.

Against the codec of single records (fastavro) and plain models; random bytes are refused as `CorruptFile`.
"""

import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.avro.container import decode_record
from pyhudi.format.avro.schema_files import metadata_record_schema
from pyhudi.format.metadata.assembly import write_records
from pyhudi.format.metadata.files import FILES_COLUMNS, decode_files, encode_files, merge_files
from pyhudi.format.metadata.groups import RECORD_INDEX_TYPE
from pyhudi.format.metadata.key_records import LOCATION_COLUMNS, decode_locations, encode_locations
from pyhudi.format.metadata.record import FilesRecord, FileState, encode_files_record, merge_files_records
from pyhudi.format.metadata.stats import STATS_COLUMNS, decode_column_stats, encode_column_stats
from pyhudi.format.metadata.stats_merge import merge_column_stats
from pyhudi.format.metadata.stats_values import (
    StatsVersion,
    ValueType,
    bounds_of,
    is_indexable,
    stored_bounds,
    value_type_of,
)

VERSIONS = (5, 6, 8, 9)
LONGS = st.integers(-(2**63), 2**63 - 1)
names = st.text(st.characters(codec="utf-8"), max_size=6)
states = st.builds(FileState, LONGS, st.booleans())
files_records = st.builds(FilesRecord, st.just(2), st.dictionaries(st.text("abé", max_size=2), states, max_size=4))


@given(st.lists(files_records, max_size=4), st.sampled_from(VERSIONS), st.none() | st.just("f" * 90 + ".hfile"))
def test_files_are_those_of_the_records_one_by_one(of: list[FilesRecord], version: int, base: str | None) -> None:
    rows = [(i, name, *state) for i, one in enumerate(of) for name, state in one.files.items()]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    entries = pa.table([pa.array(c, f.type) for c, f in zip(columns, FILES_COLUMNS, strict=True)], FILES_COLUMNS)
    values = encode_files(2, entries, len(of), table_version=version, base_file_name=base)
    assert decode_files(values, metadata_record_schema(version)).equals(entries)
    assert decode_files(values.cast(pa.large_binary()), metadata_record_schema(version)).equals(entries)
    if version >= 8:
        assert values.to_pylist() == [
            encode_files_record(one, metadata_record_schema(8), base_file_name=base) for one in of
        ]


@given(st.lists(files_records, min_size=1, max_size=6))
def test_merging_files_folds_records(of: list[FilesRecord]) -> None:
    rows = [("k", name, *state) for one in of for name, state in one.files.items()]
    schema = pa.schema([("key", pa.string()), ("name", pa.string()), ("size", pa.int64()), ("is_deleted", pa.bool_())])
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
    folded = FilesRecord(2, {})
    for one in of:
        folded = merge_files_records(folded, one)
    merged = merge_files(table).to_pylist()
    assert {row["name"]: FileState(row["size"], row["is_deleted"]) for row in merged} == folded.files


uuids = st.uuids().map(str)
locations = st.fixed_dictionaries(
    {
        "partition": st.none() | names,
        "file_id": uuids | st.builds("{}-{}".format, uuids, st.integers(0, 2**31 - 1)),
        "instant_ms": LONGS,
        "position": st.none() | LONGS,
    }
)


@given(st.lists(locations, max_size=5), st.sampled_from((8, 9)), st.booleans())
def test_locations_survive(of: list[dict[str, Any]], version: int, is_raw: bool) -> None:
    rows = pa.Table.from_pylist(of, LOCATION_COLUMNS)
    values = encode_locations(rows, table_version=version, is_raw=is_raw)
    assert decode_locations(values, metadata_record_schema(version)).equals(rows)
    for value, row in zip(values.to_pylist(), of, strict=True):
        stored: dict[str, Any] = decode_record(value, metadata_record_schema(version))
        info = stored["recordIndexMetadata"]
        assert (info["partitionName"], info["instantTime"]) == (row["partition"], row["instant_ms"])
        assert info["fileId"] == (row["file_id"] if is_raw else "")


@pytest.mark.parametrize("file_id", ["", "x" * 36, "0" * 36, "c7a28275-4738-423d-b6a4-7279480f521f-", "a-0"])
def test_ids_that_are_no_uuids_are_refused(file_id: str) -> None:
    rows = pa.Table.from_pylist([{"partition": "", "file_id": file_id, "instant_ms": 0}], LOCATION_COLUMNS)
    with pytest.raises(Invalid, match="file ids"):
        encode_locations(rows, table_version=8)


VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [False, True],
    pa.int32(): [-(2**31), 2**31 - 1],
    pa.int64(): [-(2**63), 2**63 - 1],
    pa.float32(): [-1.5, 3.25],
    pa.float64(): [-0.0, 1e300],
    pa.string(): ["", "é中"],
    pa.binary(): [b"", b"\xff"],
    pa.binary(3): [b"abc", b"abd"],
    pa.date32(): [-4883, 21944],
    pa.time32("ms"): [0, 86399999],
    pa.time64("us"): [1, 86399999999],
    pa.timestamp("ms", "UTC"): [-1, 10**12],
    pa.timestamp("us", "UTC"): [-1, 10**15],
    pa.timestamp("us"): [-1, 10**15],
    pa.timestamp("ns"): [-1, 10**18],
    pa.decimal128(10, 2): [Decimal("-1.28"), Decimal("1.27")],
    pa.decimal128(15, 15): [Decimal("-0.1"), Decimal("0.1")],
}


def stats_of(low: pa.Array, high: pa.Array, version: StatsVersion) -> pa.Table:
    count = len(low)
    least, most = stored_bounds(low, version), stored_bounds(high, version)
    kind, info = value_type_of(low.type) if version is StatsVersion.V2 else (None, None)
    columns = {
        "min_kind": least.kinds, "min_bits": least.bits, "min_bytes": least.data,
        "max_kind": most.kinds, "max_bits": most.bits, "max_bytes": most.data,
        "file_name": ["f"] * count, "column_name": ["c"] * count, "value_count": [3] * count, "null_count": [1] * count,
        "total_size": [5] * count, "total_uncompressed_size": [6] * count, "is_deleted": [False] * count,
        "is_tight_bound": [False] * count, "value_type": [kind] * count, "value_type_info": [info] * count,
    }  # fmt: skip
    return pa.table([pa.array(columns[one.name], one.type) for one in STATS_COLUMNS], STATS_COLUMNS)


@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("table_version", VERSIONS)
def test_bounds_of_every_type_survive(kind: pa.DataType, table_version: int) -> None:
    version = StatsVersion.V2 if table_version == 9 else StatsVersion.V1
    low, high = (pa.array([value, None], kind) for value in VALUES[kind])
    stats = stats_of(low, high, version)
    values = encode_column_stats(stats, table_version=table_version)
    assert decode_column_stats(values, metadata_record_schema(table_version)).equals(stats)
    decode_record(values[0].as_py(), metadata_record_schema(table_version))
    wanted = pa.binary() if pa.types.is_fixed_size_binary(kind) else kind
    bounds = bounds_of(wanted, stats)
    assert bounds.is_known.to_pylist() == [True, False]
    assert (bounds.min, bounds.max) == (low.cast(wanted), high.cast(wanted))


def test_uuids_are_stored_as_text() -> None:
    array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16)), None], pa.binary(16)))
    stored = stored_bounds(array, StatsVersion.V2)
    assert stored.data.to_pylist() == [b"00010203-0405-0607-0809-0a0b0c0d0e0f", b""]
    assert value_type_of(pa.uuid()) == (ValueType.UUID, None)


def test_what_says_nothing_is_not_known() -> None:
    stats = stats_of(pa.array([1.0, float("nan")]), pa.array([float("nan"), 2.0]), StatsVersion.V2)
    assert bounds_of(pa.float64(), stats).is_known.to_pylist() == [False, False]
    numbers = stats_of(pa.array([9]), pa.array([2**60 + 1]), StatsVersion.V1)
    assert bounds_of(pa.string(), numbers).is_known.to_pylist() == [False]
    assert bounds_of(pa.float64(), numbers).is_known.to_pylist() == [False]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("version", StatsVersion)
def test_two_zeros_may_stand_for_any_values_beside_nan(kind: pa.DataType, version: StatsVersion) -> None:
    """Apache Hudi would state them of -7.0 and NaN, too. Of zeros alone its lower bound is -0.0."""
    lows, highs = [0.0, -0.0, 0.0, -1.0, None], [0.0, 0.0, 1.0, 0.0, None]
    stats = stats_of(pa.array(lows, kind), pa.array(highs, kind), version)
    for wanted in (kind, pa.float64()):
        bounds = bounds_of(wanted, stats)
        assert bounds.is_known.to_pylist() == [False, True, True, True, False]
        assert (bounds.min[0].as_py(), bounds.max[0].as_py()) == (None, None)


def test_promoted_columns_have_bounds_as_wide_as_their_values() -> None:
    stats = stats_of(pa.array([0.1], pa.float32()), pa.array([0.1], pa.float32()), StatsVersion.V2)
    bounds = bounds_of(pa.float64(), stats)
    assert bounds.min[0].as_py() < 0.1 < bounds.max[0].as_py()
    ints = stats_of(pa.array([-1], pa.int32()), pa.array([7], pa.int32()), StatsVersion.V2)
    assert bounds_of(pa.int64(), ints).max.to_pylist() == [7]
    assert bounds_of(pa.float64(), ints).min.to_pylist() == [-1.0]


def test_types_without_statistics_are_refused() -> None:
    for kind in (pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.int32())):
        assert not is_indexable(kind, StatsVersion.V2)
    assert not is_indexable(pa.decimal128(30, 5), StatsVersion.V1)
    assert is_indexable(pa.decimal128(30, 5), StatsVersion.V2)
    assert not is_indexable(pa.binary(), StatsVersion.V1, has_bytes=False)
    with pytest.raises(Unsupported, match="version 1"):
        stored_bounds(pa.array([Decimal("1")], pa.decimal128(30, 5)), StatsVersion.V1)


def test_merging_statistics_follows_the_rules() -> None:
    stats = stats_of(pa.array([5, 3, None, 4]), pa.array([6, 9, None, 4]), StatsVersion.V2)
    at = stats.schema.get_field_index("null_count")
    stats = stats.set_column(at, stats.schema.field(at), pa.array([1, 1, 3, 1]))
    keyed = stats.append_column("key", pa.array(["a", "a", "a", "b"]))
    merged = merge_column_stats(keyed).to_pylist()
    assert [(row["key"], row["min_bits"], row["max_bits"], row["value_count"]) for row in merged] == [
        ("a", 3, 9, 9),
        ("b", 4, 4, 3),
    ]
    for flag in ("is_deleted", "is_tight_bound"):
        at = keyed.schema.get_field_index(flag)
        replaced = keyed.set_column(at, keyed.schema.field(at), pa.array([False, True, False, False]))
        row = merge_column_stats(replaced).to_pylist()[0]
        expected = (0, 3) if flag == "is_deleted" else (3, 6)
        assert (row["min_bits"], row["value_count"]) == expected


def test_bounds_beside_some_that_are_not_known_are_not_known() -> None:
    stats = stats_of(pa.array([5, None]), pa.array([6, None]), StatsVersion.V2)
    merged = merge_column_stats(stats.append_column("key", pa.array(["a", "a"]))).to_pylist()
    assert [(row["min_kind"], row["max_kind"], row["value_count"]) for row in merged] == [(0, 0, 6)]


def test_bounds_of_different_kinds_merge_into_none() -> None:
    numbers = stats_of(pa.array([5]), pa.array([6]), StatsVersion.V1)
    texts = stats_of(pa.array(["a"]), pa.array(["b"]), StatsVersion.V1)
    merged = merge_column_stats(pa.concat_tables([numbers, texts]).append_column("key", pa.array(["k", "k"])))
    assert merged["min_kind"].to_pylist() == merged["max_kind"].to_pylist() == [0]


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=40), max_size=3), st.sampled_from((8, 9)))
def test_random_bytes_decode_or_are_refused(noise: list[bytes], version: int) -> None:
    for decode in (decode_files, decode_column_stats, decode_locations):
        with suppress(CorruptFile):
            decode(pa.array(noise, pa.binary()), metadata_record_schema(version))


@given(st.integers(0, 60), st.integers(0, 255))
def test_damaged_records_decode_or_are_refused(at: int, byte: int) -> None:
    stats = stats_of(pa.array(["abc"]), pa.array(["abd"]), StatsVersion.V2)
    value = bytearray(encode_column_stats(stats, table_version=9)[0].as_py())
    value[at % len(value)] = byte
    with suppress(CorruptFile):
        decode_column_stats(pa.array([bytes(value)]), metadata_record_schema(9))
    for size in range(len(value)):
        with suppress(CorruptFile):
            decode_column_stats(pa.array([bytes(value[:size])]), metadata_record_schema(9))


def test_records_of_another_type_are_refused() -> None:
    value = encode_files_record(FilesRecord(2, {"a": FileState(1, False)}), metadata_record_schema(8))
    with pytest.raises(CorruptFile, match="another type"):
        decode_locations(pa.array([value]), metadata_record_schema(8))
    with pytest.raises(Unsupported, match="recordIndexMetadata"):
        decode_locations(pa.array([value]), metadata_record_schema(5))
    assert np.asarray(decode_files(pa.array([value]), metadata_record_schema(8))["size"]).tolist() == [1]


@pytest.mark.parametrize("index", [2**31, -(2**31) - 1, -(2**62)])
@pytest.mark.parametrize("rows", [1, 20_000])
def test_the_number_of_a_file_id_beyond_32_bits_is_refused(index: int, rows: int) -> None:
    """Interpreted and compiled: its digits would be written beyond the buffer of the ids."""
    values = location_records(rows, fileIndex=index)
    with pytest.raises(CorruptFile, match="a value of 'fileIndex' in record 0"):
        decode_locations(values, metadata_record_schema(9))


def test_a_schema_that_states_the_number_of_a_file_id_otherwise_is_refused() -> None:
    for stated in ("long", "string"):
        text = json.loads(metadata_record_schema(9))
        section = next(one for one in text["fields"] if one["name"] == "recordIndexMetadata")["type"][1]
        next(one for one in section["fields"] if one["name"] == "fileIndex")["type"] = ["null", stated]
        with pytest.raises(Unsupported, match=f"'recordIndexMetadata.fileIndex' to be int, found {stated}"):
            decode_locations(location_records(1, fileIndex=1), json.dumps(text))


def test_an_int_of_a_bound_beyond_32_bits_is_refused() -> None:
    stats = stats_of(pa.array([1], pa.int32()), pa.array([2], pa.int32()), StatsVersion.V2)
    stats = stats.set_column(stats.schema.get_field_index("max_bits"), "max_bits", pa.array([2**31]))
    with pytest.raises(CorruptFile, match="a value of 'maxValue'"):
        decode_column_stats(encode_column_stats(stats, table_version=9), metadata_record_schema(9))


def location_records(rows: int, **numbers: int) -> pa.Array:
    """Records of the record index with these numbers, also of more bits than the schema says."""
    held: dict[str, Any] = {"fileIdEncoding": 0, "fileIdHighBits": 1, "fileIdLowBits": 1, "instantTime": 1, **numbers}
    columns: dict[str, Any] = {name: pa.array(np.full(rows, number, np.int64)) for name, number in held.items()}
    columns |= {"partitionName": pa.array(["p"] * rows), "fileId": pa.array([""] * rows)}
    columns["position"] = pa.nulls(rows, pa.int64())
    return write_records("recordIndexMetadata", RECORD_INDEX_TYPE, columns, rows, table_version=9, base_file_name=None)
