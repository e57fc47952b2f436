"""Apache Hudi could trip over a table that is written by an index or a key generator of one's own, or write what the
index never hears of."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, register_index, register_key_generator
from tests.support.own_index import assert_true
from tests.support.reference.client import ReferenceHudi
from tests.support.sqlite_index import SqliteIndex

RELEASES = [("0.15.0", 6), ("1.0.2", 8), ("1.2.0", 9)]


def rows(*of: tuple[str, str, int]) -> pa.Table:
    ids, cities, values = zip(*of, strict=True)
    return pa.table({"id": list(ids), "city": list(cities), "v": list(values)})


def listed(table: pa.Table) -> list[tuple[str, str, int]]:
    return sorted((of["id"], of["city"], of["v"]) for of in table.select(["id", "city", "v"]).to_pylist())


@pytest.mark.parametrize("release, version", RELEASES)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_apache_hudi_writes_beside_the_index_which_learns_of_it(
    tmp_path: Path, release: str, version: int, kind: str
) -> None:
    """The table stores nothing of the index."""
    path = str(tmp_path / "index.db")
    register_index(name := f"hudi.{tmp_path.name}", lambda table: SqliteIndex(path, table))
    HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="city", ordering="v", table_type=kind,
        table_version=version,
    )  # fmt: skip
    table = HudiTable.open(tmp_path / "t", options={"hoodie.index.class": name})
    table.upsert(rows(("a", "oslo", 1), ("b", "rome", 1), ("c", "rome", 1)))
    asked = {
        "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.table.name": "t", "hoodie.datasource.write.table.type": kind, "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.write.table.version": str(version), "hoodie.datasource.write.precombine.field": "v",
    }  # fmt: skip
    with ReferenceHudi(release) as hudi:
        hudi.write(table.path, rows(("a", "rome", 2), ("d", "oslo", 2)), operation="upsert", **asked)
        table.upsert(rows(("a", "rome", 3), ("b", "oslo", 3), ("d", "oslo", 3)))
        expected = [("a", "rome", 3), ("b", "oslo", 3), ("c", "rome", 1), ("d", "oslo", 3)]
        assert listed(table.scan().to_arrow()) == expected
        assert listed(hudi.read(table.path)) == expected
    assert_true(table, path)


@pytest.mark.parametrize("release, version", RELEASES)
def test_apache_hudi_reads_tables_of_a_key_generator_of_ones_own(tmp_path: Path, release: str, version: int) -> None:
    """Where paths are the values of the partition column. Of others it shows what the path tells."""

    def lower(batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        return pc.utf8_lower(batch.column("id")), batch.column("city")

    register_key_generator(name := f"lower.{tmp_path.name}", lower)
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="city", table_version=version,
        properties={"hoodie.datasource.write.keygenerator.class": name},
    )  # fmt: skip
    table.upsert(rows(("A", "oslo", 1), ("b", "rome", 1)))
    table.upsert(rows(("a", "oslo", 2)))
    with ReferenceHudi(release) as hudi:
        assert listed(hudi.read(table.path)) == listed(table.scan().to_arrow()) == [("a", "oslo", 2), ("b", "rome", 1)]
