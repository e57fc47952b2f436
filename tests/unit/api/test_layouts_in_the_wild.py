"""A table as others lay it out could be written in another way than it is read: with ORC files, without meta fields, or
with its partitions marked by Parquet files.
"""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Unsupported
from pyhudi.api import creation
from pyhudi.format.keys.bloom import BloomFilter
from pyhudi.format.names import BaseFileName
from pyhudi.format.schema.conversion import FILE_NAME, META_FIELDS
from pyhudi.storage.memory import MemoryStorage
from tests.support.compare import assert_same_rows
from tests.support.versions import EVERY_VERSION

WITHOUT_META = {"hoodie.populate.meta.fields": "false"}


def rows(ids: range, ts: int) -> pa.Table:
    return pa.table(
        {"id": list(ids), "code": [f"c{n % 3}" for n in ids], "day": [f"d{n % 2}" for n in ids], "ts": [ts] * len(ids)}
    )


def a_table(**properties: str) -> tuple[HudiTable, MemoryStorage]:
    storage = MemoryStorage()
    table = HudiTable.create(
        "unused", name="t", record_key=["id", "code"], partition_by="day", ordering="ts", storage=storage,
        properties=properties,
    )  # fmt: skip
    return table, storage


def stored(storage: MemoryStorage, name: str) -> pa.Table:
    with storage.open_input(name) as file:
        return pq.read_table(file)


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "BUCKET"])
def test_keys_that_are_not_stored_are_found(index: str) -> None:
    table, storage = a_table(**WITHOUT_META, **{"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"})
    table.insert(rows(range(40), 1))
    result = table.upsert(rows(range(30, 50), 2))
    assert (result.updated, result.inserted) in ((10, 10), (20, 0))  # a bucket counts all of its rows as updates
    table.upsert(rows(range(40), 0))  # comes too late
    table.delete(rows(range(5), 9))
    model = pa.concat_tables([rows(range(5, 30), 1), rows(range(30, 50), 2)])
    assert_same_rows(table.scan().to_arrow(), model)

    table.update(set={"ts": "ts + 5"}, where="code = 'c1'")
    model = model.set_column(
        3, "ts", pc.if_else(pc.equal(model.column("code"), "c1"), pc.add(model.column("ts"), 5), model.column("ts"))
    )
    assert_same_rows(table.scan().to_arrow(), model)
    assert table.lookup(rows(range(3, 8), 0)).num_rows == 3

    files = [path for path in table.scan().files() if BaseFileName.parse(path.rpartition("/")[2])]
    for path in files:
        content = stored(storage, path)
        assert content.column_names[:5] == list(META_FIELDS)
        for name in META_FIELDS:
            found = pc.unique(content.column(name)).to_pylist()
            assert found == ([path.rpartition("/")[2]] if name == FILE_NAME else [None])
        assert not [key for key in content.schema.metadata or {} if b"bloom" in key or b"record_key" in key]

    if index != "BUCKET":
        assert table.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "id"}).file_groups
        assert_same_rows(table.scan().to_arrow(), model)


@pytest.mark.parametrize(
    "facts, reason",
    [
        ({"record_key": None}, "no hoodie.table.recordkey.fields"),
        ({"properties": {**WITHOUT_META, "hoodie.table.cdc.enabled": "true"}}, "hoodie.table.cdc.enabled"),
    ],
)
def test_tables_whose_keys_cannot_be_told_are_refused_before_a_write(
    facts: dict[str, object], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = MemoryStorage()
    given = {"name": "t", "storage": storage, "record_key": "id", "properties": WITHOUT_META, **facts}
    with pytest.raises(Unsupported, match=f"'false' with {reason}"):
        HudiTable.create("unused", **given)  # type: ignore[arg-type]
    assert list(storage.list("", recursive=True)) == []

    monkeypatch.setattr(creation, "_refuse_never_written", lambda *_: None)  # as another tool makes it
    table = HudiTable.create("unused", **given)  # type: ignore[arg-type]
    before = [file.path for file in storage.list("", recursive=True)]
    with pytest.raises(Unsupported, match=f"'false' with {reason}"):
        table.insert(rows(range(3), 1))
    assert [file.path for file in storage.list("", recursive=True)] == before


def test_an_index_of_record_keys_is_refused_where_none_are_stored() -> None:
    table, storage = a_table(**WITHOUT_META)
    table.insert(rows(range(4), 1))
    before = [file.path for file in storage.list("", recursive=True)]
    with pytest.raises(Unsupported, match=r"metadata partitions record_index: .*hoodie\.populate\.meta\.fields"):
        table.build_index("record_index")
    with pytest.raises(Unsupported, match="metadata partitions record_index"):
        table.upsert(rows(range(4), 2), options={"hoodie.metadata.record.index.enable": "true"})
    assert [file.path for file in storage.list("", recursive=True)] == before
    assert table.build_index("column_stats", columns=["ts"]).partitions
    assert table.scan(where="ts = 1").count() == 4


@pytest.mark.parametrize(
    "version, options, reason",
    [
        (9, {**WITHOUT_META, "hoodie.metadata.record.index.enable": "true"}, "metadata partitions record_index"),
        (9, {**WITHOUT_META, "hoodie.table.base.file.format": "HFILE"}, "'HFILE', whose rows lie under their keys"),
        (6, {"hoodie.metadata.record.level.index.enable": "true"}, "metadata partitions partitioned record index"),
    ],
)
def test_a_table_is_not_made_that_each_write_would_refuse(version: int, options: dict[str, str], reason: str) -> None:
    storage = MemoryStorage()
    with pytest.raises(Unsupported, match=reason):
        HudiTable.create(
            "unused", name="t", storage=storage, record_key="id", table_version=version, properties=options
        )
    assert list(storage.list("", recursive=True)) == []


def test_partitions_are_marked_as_the_table_says() -> None:
    table, storage = a_table(**{"hoodie.partition.metafile.use.base.format": "true"})
    requested = table.insert(rows(range(4), 1)).requested
    assert requested is not None

    marks = [f.path for f in storage.list("", recursive=True) if ".hoodie_partition" in f.path and f.path[0] == "d"]
    assert marks == [f"{day}/.hoodie_partition_metadata.parquet" for day in ("d0", "d1")]
    with storage.open_input(marks[0]) as file:
        footer = pq.ParquetFile(file)
        assert footer.metadata.num_rows == 0
        assert footer.metadata.metadata == {b"commitTime": requested.encode(), b"partitionDepth": b"1"}
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), rows(range(4), 1))
    assert HudiTable.open("unused", storage=storage, options={"hoodie.metadata.enable": False}).scan().count() == 4


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("codec", ["ZLIB", "ZSTD", "NONE"])
def test_orc_files_hold_what_parquet_files_hold(table_type: str, codec: str) -> None:
    storage = MemoryStorage()
    table = HudiTable.create(
        "unused", name="t", record_key="id", partition_by="part", ordering="ts", table_type=table_type, storage=storage,
        properties={"hoodie.base.file.format": "orc", "hoodie.orc.compression.codec": codec},
    )  # fmt: skip
    assert table.properties["hoodie.table.base.file.format"] == "ORC"
    types = pa.schema(
        [
            ("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("at", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(30, 5)), ("day", pa.date32()), ("bytes", pa.binary()), ("f", pa.float32()),
            ("inner", pa.struct([("t", pa.timestamp("us", "UTC")), ("all", pa.list_(pa.int32()))])),
            ("by", pa.map_(pa.string(), pa.float64())), ("is", pa.bool_()),
        ]
    )  # fmt: skip
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

    def some(ids: range, ts: int) -> pa.Table:
        rows = [
            {
                "id": f"k{n}", "part": f"p{n % 2}", "ts": ts, "at": moment, "price": Decimal(n).scaleb(-5),
                "day": date(1500, 1, 1),
                "bytes": b"\x00\xff", "f": n / 3, "inner": {"t": moment, "all": [n, None]}, "by": [("a", n / 7)],
                "is": n % 2 == 0,
            }
            if n % 3
            else {"id": f"k{n}", "part": f"p{n % 2}", "ts": ts}
            for n in ids
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, types)

    table.insert(some(range(300), 1))
    result = table.upsert(some(range(290, 310), 2))
    assert (result.updated, result.inserted) == (10, 10)
    table.delete(some(range(10), 3))
    expected = pa.concat_tables([some(range(10, 290), 1), some(range(290, 310), 2)])
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), expected)
    if table_type == "MERGE_ON_READ":
        assert table.compact().file_groups
        assert_same_rows(table.scan(query="read_optimized", meta_fields=False).to_arrow(), expected)

    (path, *_) = files = table.scan().files()
    assert all(path.endswith(".orc") for path in files)
    with storage.open_input(path) as source:
        file = orc.ORCFile(source)
        assert file.compression == ("UNCOMPRESSED" if codec == "NONE" else codec)
        assert "at: timestamp[ns]" in str(file.schema)
        entries = {name.decode(): value.decode() for name, value in file.metadata.items()}
        keys = sorted(file.read(["_hoodie_record_key"]).column(0).to_pylist())
    assert (entries["hoodie_min_record_key"], entries["hoodie_max_record_key"]) == (keys[0], keys[-1])
    assert entries["hoodie_bloom_filter_type_code"] == "DYNAMIC_V0"
    assert json.loads(entries["orc.avro.schema"])["fields"][0]["name"] == "_hoodie_commit_time"
    bloom = BloomFilter.decode("DYNAMIC_V0", entries["org.apache.hudi.bloomfilter"].encode(), path=path)
    assert bloom.may_contain(pa.array(keys)).to_pylist() == [True] * len(keys)

    late = table.upsert(some(range(300, 301), 5), options={"hoodie.index.type": "BLOOM"})
    assert (late.updated, late.inserted) == (1, 0)


@pytest.mark.parametrize("version", EVERY_VERSION)
@pytest.mark.parametrize("with_metadata_table", ["true", "false"])
def test_a_file_that_ends_like_no_base_file_is_none(version: int, with_metadata_table: str) -> None:
    """Whatever else its name is like: a file id, a write token and an instant, old enough to count as archived."""
    storage = MemoryStorage()
    options = {
        "hoodie.metadata.enable": with_metadata_table, "hoodie.clean.commits.retained": "2",
        "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
    }  # fmt: skip
    HudiTable.create(
        "t", name="t", record_key="id", partition_by="day", ordering="ts", storage=storage, table_version=version,
        table_type="MERGE_ON_READ",
    ).insert(rows(range(4), 1))  # fmt: skip
    mine = ["d0/my_notes_2024.txt", "d1/IMG_0001_2024.jpg", "d1/1_2_3.md"]
    for path in mine:
        storage.put(path, b"mine")

    table = HudiTable.open("t", storage=storage, options=options)
    for ts in range(2, 10):
        newest = table.upsert(rows(range(4), ts)).requested
    assert table.scan(where="ts = 9").count() == 4
    assert newest is not None
    assert {instant.action for instant in table.timeline(history=True)} == {"deltacommit", "commit", "clean"}
    assert len(table.timeline()) < len(table.timeline(history=True))
    table.rollback(newest)
    table.metadata.create()

    assert table.metadata.validate().differences == ()
    assert table.scan(where="ts = 8").count() == 4
    assert [storage.get(path) for path in mine] == [b"mine"] * len(mine)
