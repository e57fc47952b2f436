"""A base file could lack what readers look for in its footer, or a rewritten one tell of keys that it has not."""

import json
import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.format.keys.bloom import BloomFilter
from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.storage.memory import MemoryStorage
from pyhudi.write.handles.key_filter import FilterSettings, KeyFilter
from tests.support.model import SMALL_FILES, Handles, Row, arrow, read_rows

FOOTER = {
    "parquet.avro.schema",
    "writer.model.name",
    "org.apache.hudi.bloomfilter",
    "hoodie_bloom_filter_type_code",
    "hoodie_min_record_key",
    "hoodie_max_record_key",
}
ROOMY = {"hoodie.parquet.max.file.size": "1000000000"}

NESTED = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.int32()), ("names", pa.list_(pa.string()))])),
        ("attributes", pa.map_(pa.string(), pa.int64())),
    ]
)


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


def newest_files(storage: MemoryStorage, table: HudiTable) -> Iterable[pq.ParquetFile]:
    for path in table.scan().files():
        yield pq.ParquetFile(pa.BufferReader(storage.get(path)))


def footer(file: pq.ParquetFile) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in (file.metadata.metadata or {}).items()}


def check_keys(storage: MemoryStorage, table: HudiTable, *, entries: int) -> None:
    """Bloom filter and key range are, bit for bit, what all keys of the file give."""
    for file in newest_files(storage, table):
        entry = footer(file)
        assert set(entry) >= FOOTER or not file.metadata.num_rows
        keys = file.read([META_FIELDS[2]]).column(0).combine_chunks()
        bloom = BloomFilter.create("DYNAMIC_V0", entries=entries, false_positive_rate=1e-9, entries_max=100_000)
        if len(keys):
            bloom.add(keys)
            names = sorted(keys.to_pylist())
            assert (entry["hoodie_min_record_key"], entry["hoodie_max_record_key"]) == (names[0], names[-1])
        assert entry["org.apache.hudi.bloomfilter"] == bloom.encode()


def test_the_footer_holds_what_readers_look_for(storage: MemoryStorage) -> None:
    """Spec: format/layout.md section 7."""
    table = Handles(storage).create()
    table.upsert(arrow([Row("b", "oslo", 1, 1), Row("é", "oslo", 1, 1), Row("a", "oslo", 1, 1)]))
    (file,) = newest_files(storage, table)
    entry = footer(file)

    assert set(entry) == FOOTER
    assert entry["writer.model.name"] == "avro"
    assert entry["hoodie_bloom_filter_type_code"] == "DYNAMIC_V0"
    assert (entry["hoodie_min_record_key"], entry["hoodie_max_record_key"]) == ("a", "é")
    fields = json.loads(entry["parquet.avro.schema"])["fields"]
    assert [field["name"] for field in fields] == [*META_FIELDS, "id", "city", "ts", "v", "note"]
    assert file.schema_arrow.names == [field["name"] for field in fields]
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_of_a_simple_bloom_filter_the_footer_does_not_name_the_kind(storage: MemoryStorage) -> None:
    table = Handles(storage).create(properties={"hoodie.bloom.index.filter.type": "SIMPLE"})
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    (file,) = newest_files(storage, table)

    assert set(footer(file)) == FOOTER - {"hoodie_bloom_filter_type_code"}


def test_without_bloom_filter_there_is_no_key_range_either(storage: MemoryStorage) -> None:
    table = Handles(storage).create(properties={"hoodie.parquet.bloom.filter.enabled": "false"})
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    (file,) = newest_files(storage, table)

    assert set(footer(file)) == {"parquet.avro.schema", "writer.model.name"}


def test_keys_are_known_after_updates_inserts_and_deletes(storage: MemoryStorage) -> None:
    table = Handles(storage).create(partition_by=None, properties={**ROOMY, "hoodie.index.bloom.num_entries": "7"})
    table.upsert(arrow(Row(f"k{n:02}", "oslo", 1, n) for n in range(20, 30)))
    check_keys(storage, table, entries=7)
    table.upsert(arrow(Row(f"k{n:02}", "oslo", 1, n) for n in range(5, 22)))  # updates and inserts
    check_keys(storage, table, entries=7)
    table.upsert(arrow(Row(f"k{n:02}", "oslo", 1, n) for n in range(5, 9)))  # updates only
    check_keys(storage, table, entries=7)
    table.delete(arrow([Row("k05", "", 0, 0), Row("k29", "", 0, 0)], ["id"]))
    check_keys(storage, table, entries=7)
    table.upsert(arrow([Row("zz", "oslo", 1, 1)]), options={"hoodie.index.bloom.num_entries": "50"})
    check_keys(storage, table, entries=50)
    assert len(table.scan().files()) == 1


def test_a_filter_has_room_for_the_rows_of_its_file(storage: MemoryStorage) -> None:
    """Apache Hudi makes room for 60,000 in each file: 435 kB for two rows."""
    handles = Handles(storage)
    table = HudiTable.create(
        "", name="t", record_key="id", partition_by="city", ordering="ts", storage=storage, clock=handles.clock
    )
    table.upsert(arrow(Row(f"k{n:03}", "oslo", 1, n) for n in range(60)))
    assert sum(of.size_bytes for of in storage.list("oslo")) < 20_000
    check_keys(storage, table, entries=64)

    table.upsert(arrow([Row("k000", "oslo", 2, 0), *(Row(f"n{n}", "oslo", 1, n) for n in range(4))]))
    check_keys(storage, table, entries=64)
    table.upsert(arrow(Row(f"m{n}", "oslo", 1, n) for n in range(2)))
    check_keys(storage, table, entries=128)
    table.delete(arrow((Row(f"k{n:03}", "oslo", 2, n) for n in range(40)), ["id", "city"]))
    check_keys(storage, table, entries=64)
    handles.open(SMALL_FILES).upsert(arrow([Row("last", "oslo", 2, 0)]))
    check_keys(storage, table, entries=int(SMALL_FILES["hoodie.index.bloom.num_entries"]))


@pytest.mark.parametrize("keys, entries", [(1, 64), (64, 64), (65, 128), (59_999, 60_000), (60_001, 60_000)])
def test_keys_that_come_in_pieces_are_counted(keys: int, entries: int) -> None:
    settings = FilterSettings("DYNAMIC_V0", None, 1e-9, 100_000)
    growing, whole = KeyFilter(settings), BloomFilter.create("DYNAMIC_V0", entries=entries)
    names = pa.array(range(keys)).cast(pa.string())
    for start in range(0, keys, 7_000):
        growing.add(names.slice(start, 7_000))
    whole.add(names)

    assert growing.finish().encode() == whole.encode()


def test_a_delete_of_every_row_leaves_an_empty_file(storage: MemoryStorage) -> None:
    table = Handles(storage).create()
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    table.delete(arrow([Row("a", "oslo", 1, 1)], ["id", "city"]))

    (file,) = newest_files(storage, table)
    assert file.metadata.num_rows == 0
    assert table.upsert(arrow([Row("b", "oslo", 1, 1)])).files == 1
    assert len(table.scan().files()) == 1
    check_keys(storage, table, entries=int(SMALL_FILES["hoodie.index.bloom.num_entries"]))


def test_row_groups_end_at_their_size(storage: MemoryStorage) -> None:
    rows = [Row(f"k{n:06}", "oslo", n, n, "x" * 50) for n in range(300_000)]
    table = Handles(storage).create(properties={**ROOMY, "hoodie.parquet.block.size": "1000000"})
    table.bulk_insert(arrow(rows))
    (file,) = newest_files(storage, table)

    assert [file.metadata.row_group(n).num_rows for n in range(file.metadata.num_row_groups)] == [
        131_072,
        131_072,
        37_856,
    ]


def test_every_column_has_a_page_index(storage: MemoryStorage) -> None:
    table = Handles(storage).create(properties=ROOMY)
    table.bulk_insert(arrow([Row(f"k{n:06}", "oslo", n, n) for n in range(50_000)]))
    (file,) = newest_files(storage, table)
    group = file.metadata.row_group(0)

    for number in range(group.num_columns):
        column = group.column(number)
        assert (column.has_column_index, column.has_offset_index) == (True, True), column.path_in_schema


def test_a_file_that_outgrows_its_size_is_followed_by_another_of_its_group_of_ids(storage: MemoryStorage) -> None:
    """The plan reckons with small rows; these are large, and do not compress."""
    rows = [Row(f"k{n:06}", "oslo", n, n * 7_919 * 104_729) for n in range(300_000)]
    table = Handles(storage).create(
        properties={
            "hoodie.parquet.max.file.size": "2000000", "hoodie.parquet.block.size": "100000",
            "hoodie.copyonwrite.record.size.estimate": "1",
        }
    )  # fmt: skip
    result = table.bulk_insert(arrow(rows))

    assert result.inserted == 300_000
    assert result.files >= 2
    ids = sorted(path.rpartition("/")[2].partition("_")[0] for path in table.scan().files())
    assert [re.sub(r".*-", "", file_id) for file_id in ids][:2] == ["0", "1"]
    keys = table.scan(columns=["id"]).to_arrow().column("id")
    assert sorted(keys.to_pylist()) == [row.id for row in rows]


def nested(key: str, ts: int | None, tag: str | None) -> dict[str, object]:
    if tag is None:
        return {"id": key, "ts": ts, "tags": None, "place": None, "attributes": None}
    return {
        "id": key, "ts": ts, "tags": [tag, None], "place": {"x": ts, "names": [tag]}, "attributes": [(tag, ts)],
    }  # fmt: skip


def nested_rows(table: HudiTable) -> dict[str, dict[str, object]]:
    return {row["id"]: row for row in table.scan(meta_fields=False).to_arrow().to_pylist()}


def test_nested_columns_are_replaced_row_by_row(storage: MemoryStorage) -> None:
    table = Handles(storage).create(partition_by=None, properties=ROOMY)
    first = [nested(f"k{n}", 5, f"t{n}" if n % 3 else None) for n in range(9)]
    second = [nested("k1", 6, None), nested("k3", 6, "new"), nested("k4", 4, "late"), nested("k9", 1, "more")]
    table.upsert(pa.Table.from_pylist(first, NESTED))
    result = table.upsert(pa.Table.from_pylist(second, NESTED))

    wanted = {row["id"]: row for row in [*first, second[0], second[1], second[3]]}
    assert (result.inserted, result.updated) == (1, 2)
    assert nested_rows(table) == wanted


def test_equal_ordering_values_let_the_newer_row_win(storage: MemoryStorage) -> None:
    table = Handles(storage).create(partition_by=None, properties=ROOMY)
    table.upsert(arrow([Row("a", "", 5, 1), Row("b", "", 5, 1)]))
    result = table.upsert(arrow([Row("a", "", 5, 2), Row("a", "", 5, 3), Row("b", "", 4, 9)]))

    assert (result.inserted, result.updated) == (0, 1)
    assert {key: of.row.v for (_, key), of in read_rows(table.scan().to_arrow()).items()} == {"a": 3, "b": 1}


def test_a_key_that_is_stored_twice_in_a_file_is_updated_and_deleted_twice(storage: MemoryStorage) -> None:
    table = Handles(storage).create(partition_by=None, properties=ROOMY)
    table.bulk_insert(arrow([Row("a", "", 1, 1), Row("b", "", 1, 1), Row("a", "", 9, 2)]))
    result = table.upsert(arrow([Row("a", "", 5, 3)]))

    values = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
    assert values == [{"id": "a", "v": 3}, {"id": "b", "v": 1}, {"id": "a", "v": 2}]
    assert result.updated == 1
    result = table.delete(arrow([Row("a", "", 0, 0)], ["id"]))
    assert result.deleted == 2
    assert table.scan(columns=["id"]).to_arrow().to_pylist() == [{"id": "b"}]


def test_rows_that_did_not_change_keep_their_place_and_their_commit(storage: MemoryStorage) -> None:
    table = Handles(storage).create(partition_by=None, properties=ROOMY)
    table.upsert(arrow(Row(key, "", 1, 1) for key in "cab"))
    before = table.scan().to_arrow().to_pylist()
    result = table.upsert(arrow([Row("z", "", 1, 1), Row("a", "", 2, 2)]))
    after = table.scan().to_arrow().to_pylist()

    assert [row["id"] for row in after] == ["c", "a", "b", "z"]
    names = {row["_hoodie_file_name"] for row in after}
    assert names == {path.rpartition("/")[2] for path in table.scan().files()}
    assert [row["_hoodie_commit_time"] == result.requested for row in after] == [False, True, False, True]
    for at in (0, 2):
        assert {**after[at], "_hoodie_file_name": ""} == {**before[at], "_hoodie_file_name": ""}


def test_a_write_that_changes_no_row_writes_no_file(storage: MemoryStorage) -> None:
    table = Handles(storage).create(partition_by=None, properties=ROOMY)
    table.upsert(arrow([Row("a", "", 5, 1)]))
    result = table.upsert(arrow([Row("a", "", 4, 2)]))

    assert (result.updated, result.files) == (0, 0)
    assert len([f for f in storage.list("") if f.path.endswith(".parquet")]) == 1


def test_rows_of_an_orc_file_keep_their_nulls_wherever_their_arrays_begin(storage: MemoryStorage) -> None:
    deep = pa.struct([("x", pa.int32()), ("in", pa.struct([("y", pa.string())])), ("l", pa.list_(pa.int32()))])
    pattern = [{"x": 1, "in": None, "l": [1]}, None, {"x": None, "in": {"y": None}, "l": None}, None]
    values = pattern * 3
    columns = {"s": pa.array(values, deep), "l": pa.array([[value] for value in values], pa.list_(deep))}
    parts = pa.array([f"p{at % 3}" for at in range(12)])
    rows = pa.table({"id": [f"k{at:02}" for at in range(12)], "part": parts, **columns})
    facts = {"hoodie.table.base.file.format": "ORC"}
    table = HudiTable.create(
        "memory://t", name="t", record_key="id", partition_by="part", properties=facts, storage=storage
    )
    table.insert(rows)
    stored = table.scan(columns=rows.column_names).to_arrow().sort_by("id")
    assert stored.to_pylist() == rows.to_pylist()


def test_fields_of_null_structs_move_no_values_of_later_rows_in_an_orc_file(storage: MemoryStorage) -> None:
    inner = pa.struct([("x", pa.string())])
    outer = pa.struct([("in", inner), ("l", pa.list_(inner))])
    values = [{"in": None, "l": [None, {"x": "q"}]}, {"in": {"x": "p"}, "l": None}]
    lists = [[{"in": None, "l": None}, {"in": {"x": "r"}, "l": []}], None]
    maps = [[("k", values[0]), ("m", values[1])], []]
    columns = {
        "s": pa.array(values, outer),
        "l": pa.array(lists, pa.list_(outer)),
        "m": pa.array(maps, pa.map_(pa.string(), outer)),
    }
    rows = pa.table({"id": ["a", "b"], **columns})
    facts = {"hoodie.table.base.file.format": "ORC"}
    table = HudiTable.create("memory://t", name="t", record_key="id", properties=facts, storage=storage)
    table.insert(rows)
    assert table.scan(columns=rows.column_names).to_arrow().sort_by("id").to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("codec", ["ZLIB", "NONE", "SNAPPY", "LZ4", "ZSTD"])
def test_orc_files_are_written_with_every_codec(storage: MemoryStorage, codec: str) -> None:
    facts = {"hoodie.table.base.file.format": "ORC", "hoodie.orc.compression.codec": codec}
    table = HudiTable.create("memory://t", name="t", record_key="id", properties=facts, storage=storage)
    table.insert(pa.table({"id": ["a"], "at": pa.array([1], pa.timestamp("us", "UTC")), "text": ["a" * 9_999]}))
    assert table.scan(columns=["id", "at"]).to_arrow()["at"].cast("int64").to_pylist() == [1]
