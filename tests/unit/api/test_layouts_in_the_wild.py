"""A table as others lay it out could be written in another way than it is read: without meta fields, or with its
partitions marked by Parquet files.
"""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Unsupported
from pyhudi.format.names import BaseFileName
from pyhudi.format.schema.conversion import FILE_NAME, META_FIELDS
from pyhudi.storage.memory import MemoryStorage
from tests.support.compare import assert_same_rows

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
        ({"table_type": "MERGE_ON_READ"}, "hoodie.table.type='MERGE_ON_READ'"),
        ({"record_key": None}, "no hoodie.table.recordkey.fields"),
        ({"properties": {**WITHOUT_META, "hoodie.table.cdc.enabled": "true"}}, "hoodie.table.cdc.enabled"),
    ],
)
def test_tables_whose_keys_cannot_be_told_are_refused_before_a_write(facts: dict[str, object], reason: str) -> None:
    storage = MemoryStorage()
    given = {"record_key": "id", "properties": WITHOUT_META, **facts}
    table = HudiTable.create("unused", name="t", storage=storage, **given)  # type: ignore[arg-type]
    before = [file.path for file in storage.list("", recursive=True)]
    with pytest.raises(Unsupported, match=f"'false' with {reason}"):
        table.insert(rows(range(3), 1))
    assert [file.path for file in storage.list("", recursive=True)] == before


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
