"""`hudi_metadata` could leave out records, or show those of an index that are gone; and so could the table's path."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import NotFound, Unsupported
from pyhudi.spark import register

pytestmark = pytest.mark.spark

INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}  # fmt: skip


@pytest.fixture
def registered(spark: Any) -> Any:
    register(spark)
    return spark


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("metadata") / "a b"
    HudiTable.create(path, name="t", record_key="k", partition_by="p")
    table = HudiTable.open(path, options=INDEXES)
    table.insert(pa.table({"k": ["a", "b", "c"], "p": ["x", "y", "y"], "n": [1, 2, None]}))
    table.delete(pa.table({"k": ["b"], "p": ["y"]}))
    return str(path)


def test_each_kind_of_record_has_its_columns(registered: Any, path: str) -> None:
    def asked(columns: str, kind: int) -> list[tuple[object, ...]]:
        rows = registered.sql(f"SELECT {columns} FROM hudi_metadata('{path}') WHERE type = {kind}").collect()
        return sorted(tuple(row) for row in rows)

    files = HudiTable.open(path).metadata.list_files()
    assert asked("key, filesystemMetadata['p=x'].size", 1) == [("__all_partitions__", None)]
    assert asked("key, size(filesystemMetadata)", 2) == [("x", 1), ("y", 2)]
    shown = "explode(filesystemMetadata) AS (name, file)"
    listed = registered.sql(f"SELECT name, file.size FROM (SELECT {shown} FROM hudi_metadata('{path}') WHERE type = 2)")
    assert sorted(map(tuple, listed.collect())) == sorted(
        zip(files["name"].to_pylist(), files["size_bytes"].to_pylist(), strict=True)
    )

    assert asked("key, recordIndexMetadata.partitionName", 5) == [("a", "x"), ("c", "y")]
    bounds = "ColumnStatsMetadata.minValue.member2.value, ColumnStatsMetadata.maxValue.member2.value"
    column = "ColumnStatsMetadata.columnName"
    of_n = registered.sql(f"SELECT {bounds} FROM hudi_metadata('{path}') WHERE {column} = 'n' AND type = 3").collect()
    assert sorted(of_n, key=str) == [(1, 1), (2, 2), (None, None)]
    assert {name for (name,) in asked("BloomFilterMetadata.type", 4)} == {"DYNAMIC_V0"}


def test_the_metadata_table_can_be_loaded_by_its_path(registered: Any, path: str) -> None:
    reader = registered.read.format("hudi")
    rows = reader.load(f"{path}/.hoodie/metadata/")
    assert rows.schema == registered.sql(f"SELECT * FROM hudi_metadata('{path}')").schema
    expected = HudiTable.open(path).metadata.read_records().read_all()
    assert (rows.columns, rows.count()) == (expected.schema.names, len(expected))
    assert reader.option("pyhudi.where", "type = 5").load(f"{path}/.hoodie/metadata").count() == 2

    with pytest.raises(Unsupported, match="as they are now"):
        registered.read.option("as.of.instant", "20990101000000000").format("hudi").load(f"{path}/.hoodie/metadata")
    with pytest.raises(NotFound):
        registered.read.format("hudi").load(f"{path}/x/.hoodie/metadata")


def test_a_table_without_a_metadata_table_says_so(registered: Any, path: str) -> None:
    bare = f"{path} bare"
    HudiTable.create(bare, name="t", record_key="k")
    with pytest.raises(NotFound, match="no metadata table yet"):
        registered.sql(f"SELECT * FROM hudi_metadata('{bare}')")
    with pytest.raises(NotFound, match="no metadata partition 'nothing'"):
        HudiTable.open(path).metadata.read_records(["nothing"])
