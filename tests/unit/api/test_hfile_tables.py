"""A data table of HFiles could lose rows that do not ascend by key, or what its files note of their keys."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from pyhudi import CorruptFile, HudiTable, Invalid, Unsupported
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.keys.bloom import BloomFilter
from pyhudi.storage.memory import MemoryStorage
from tests.support.compare import assert_same_rows

HFILE = {"hoodie.table.base.file.format": "HFILE"}
FIRST = {0: "\ue000", 1: "\U0001f600"}
MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
TYPES = pa.schema(
    [
        ("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(30, 5)), ("day", pa.date32()), ("bytes", pa.binary()), ("f", pa.float32()),
        ("inner", pa.struct([("t", pa.timestamp("us", "UTC")), ("all", pa.list_(pa.int32()))])),
        ("by", pa.map_(pa.string(), pa.float64())), ("is", pa.bool_()),
    ]
)  # fmt: skip


def some(ids: range, ts: int) -> pa.Table:
    """Keys that ascend otherwise by bytes than by UTF-16 units are among them."""
    rows = [
        {
            "id": f"{FIRST.get(n % 7, '')}k{n}", "part": f"p{n % 2}",
            "ts": ts, "at": MOMENT, "price": Decimal(n).scaleb(-5), "day": date(1500, 1, 1), "bytes": b"\x00\xff",
            "f": n / 3, "inner": {"t": MOMENT, "all": [n, None]}, "by": [("a", n / 7)], "is": n % 2 == 0,
        }
        if n % 3
        else {"id": f"{FIRST.get(n % 7, '')}k{n}", "part": f"p{n % 2}", "ts": ts}
        for n in ids
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, TYPES)


def a_table(table_type: str = "COPY_ON_WRITE", version: int = 9, **facts: object) -> tuple[HudiTable, MemoryStorage]:
    storage = MemoryStorage()
    given = {"record_key": "id", "partition_by": "part", "ordering": "ts", "properties": HFILE, **facts}
    table = HudiTable.create(
        "unused", name="t", table_type=table_type, table_version=version, storage=storage,
        **given,  # type: ignore[arg-type]
    )  # fmt: skip
    return table, storage


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hfiles_hold_what_parquet_files_hold(table_type: str, version: int) -> None:
    table, storage = a_table(table_type, version)
    table.insert(some(range(300), 1))
    result = table.upsert(some(range(290, 310), 2))
    assert (result.updated, result.inserted) == (10, 10)
    table.delete(some(range(10), 3))
    expected = pa.concat_tables([some(range(10, 290), 1), some(range(290, 310), 2)])
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), expected)
    assert table.scan(where="part = 'p1' and ts = 2").count() == 10
    assert table.lookup(some(range(295, 298), 0)).num_rows == 3
    if table_type == "MERGE_ON_READ":
        assert table.compact().file_groups
        assert_same_rows(table.scan(query="read_optimized", meta_fields=False).to_arrow(), expected)

    (path, *_) = files = table.scan().files()
    assert all(path.endswith(".hfile") for path in files)
    reader = HFileReader(storage.get(path), path=path)
    assert reader.is_ordered
    keys = [key.decode() for key, _ in reader.scan()]
    info = reader.file_info
    assert info["bloomFilterTypeCode"] == b"DYNAMIC_V0"
    assert {info["minRecordKey"].decode(), info["maxRecordKey"].decode()} <= set(keys)
    bloom = BloomFilter.decode("DYNAMIC_V0", bytes(reader.meta("bloomFilter") or b""), path=path)
    assert bloom.may_contain(pa.array(keys)).to_pylist() == [True] * len(keys)
    assert '"_hoodie_commit_time"' in (reader.schema_text or "")

    late = table.upsert(some(range(300, 301), 5), options={"hoodie.index.type": "BLOOM"})
    assert (late.updated, late.inserted) == (1, 0)
    assert table.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "ts"}).file_groups
    assert table.scan().count() == 300
    assert table.build_index("record_index").partitions
    if version == 9:
        assert table.build_index("column_stats", columns=["ts"]).partitions
    assert table.scan(where="ts = 5").count() == 1


def test_a_key_that_comes_twice_is_refused_and_leaves_the_table_as_it_was() -> None:
    table, _ = a_table()
    table.insert(some(range(4), 1))
    with pytest.raises(Invalid, match="the record key 'k3' comes twice"):
        table.insert(pa.concat_tables([some(range(3, 4), 1)] * 2), options={"hoodie.parquet.small.file.limit": 0})
    assert table.scan().count() == 4


@pytest.mark.parametrize("key", ["id", ["key", "id"]])
def test_a_column_that_hfiles_would_overwrite_is_refused(key: str | list[str]) -> None:
    table, storage = a_table(record_key=key)
    rows = some(range(2), 1).append_column("key", pa.array(["", "x"]))
    with pytest.raises(Unsupported, match="a text column 'key' that is not the record key"):
        table.insert(rows)
    assert not [f for f in storage.list("", recursive=True) if not f.path.startswith(".hoodie/")]


def test_the_record_key_may_have_the_name_of_the_cell_s_key() -> None:
    table, _ = a_table(record_key="key", partition_by=None)
    rows = pa.table({"key": ["b", "a"], "ts": [1, 1]})
    table.insert(rows)
    table.upsert(rows.slice(1))
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), rows)


def test_a_damaged_file_names_itself() -> None:
    table, storage = a_table(partition_by=None)
    table.insert(some(range(40), 1))
    (path,) = table.scan().files()
    content = storage.get(path)
    for broken in (content[:-10], b"", content[:200] + bytes(50) + content[250:]):
        storage.put(path, broken)
        with pytest.raises(CorruptFile, match=path):
            table.scan().to_arrow()


def test_files_end_at_their_size() -> None:
    table, _ = a_table(partition_by=None)
    sizes = {"hoodie.parquet.max.file.size": 20_000, "hoodie.parquet.block.size": 1_000}
    table.bulk_insert(some(range(400), 1), options=sizes)
    assert len(table.scan().files()) > 3
    assert table.scan().count() == 400
