"""A plan for an index of one side could be one that the other cannot run, or builds into something else.

Each side plans, the other builds; then both write, and what the index says is compared with a scan after every step.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.format.schema.conversion import avro_from_arrow
from pyhudi.storage.local import LocalStorage
from tests.support.metadata_indexes import index_problems
from tests.support.reference.client import ReferenceHudi

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
FACTS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
RECORD_INDEX = {"hoodie.metadata.global.record.level.index.enable": "true"}
STATS = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.index.column.stats.column.list": "ts,v"}
OFF = {
    "hoodie.metadata.index.column.stats.enable": "false", "hoodie.metadata.index.partition.stats.enable": "false",
}  # fmt: skip


def rows(start: int, stop: int, turn: int) -> pa.Table:
    values = [(f"k{n:02}", ("oslo", "rome", "bonn")[n % 3], turn, f"v{n % 5}") for n in range(start, stop)]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, of, strict=True)) for of in values], SCHEMA)


def made(path: Path) -> HudiTable:
    table = HudiTable.create(
        path, name="rides", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        table_version=9, properties={"hoodie.metadata.global.record.level.index.min.filegroup.count": "2"},
    )  # fmt: skip
    table.upsert(rows(0, 20, 1))
    table.upsert(rows(3, 9, 2))
    return table


def check(hudi: ReferenceHudi, table: HudiTable, partition: str) -> None:
    assert partition in table.properties["hoodie.table.metadata.partitions"].split(",")
    assert not table.properties.get("hoodie.table.metadata.partitions.inflight")
    assert index_problems(LocalStorage(table.path)) == []
    shown = sorted(tuple(row[n] for n in SCHEMA.names) for row in table.scan().to_arrow().to_pylist())
    assert shown == sorted(tuple(row[n] for n in SCHEMA.names) for row in hudi.read(table.path).to_pylist())


@pytest.mark.parametrize("planner", ["ours", "theirs"])
@pytest.mark.parametrize("kind, options", [("record_index", RECORD_INDEX), ("column_stats", STATS)])
def test_one_side_plans_an_index_and_the_other_builds_it(
    tmp_path: Path, hudi_120: ReferenceHudi, kind: str, options: dict[str, str], planner: str
) -> None:
    table = made(tmp_path / "rides")
    wanted = {**OFF, **options}
    if planner == "ours":
        columns = ["ts", "v"] if kind == "column_stats" else None
        requested = table.schedule_index(kind, columns=columns).requested
        assert requested is not None
        schema = avro_from_arrow(table.schema(), record_name="rides")
        hudi_120.run_index(table.path, requested, **wanted, **{"hoodie.avro.schema": schema})
    else:
        requested = hudi_120.schedule_index(table.path, kind, **wanted)
        table.upsert(rows(18, 22, 3))
        (result,) = table.run_indexes(options=options)
        assert (result.requested, result.partitions) == (requested, (kind,))
    check(hudi_120, table, kind)
    table.upsert(rows(5, 25, 4))
    check(hudi_120, table, kind)
    hudi_120.write(table.path, rows(15, 30, 5), **FACTS, **wanted)
    check(hudi_120, table, kind)
    table.delete(rows(0, 4, 6))
    check(hudi_120, table, kind)


def test_apache_hudi_writes_to_an_index_that_was_built_here_and_to_a_table_that_lost_it(
    tmp_path: Path, hudi_120: ReferenceHudi
) -> None:
    table = made(tmp_path / "rides")
    table.build_index("record_index")
    hudi_120.write(table.path, rows(15, 30, 5), **FACTS, **OFF, **RECORD_INDEX)
    check(hudi_120, table, "record_index")
    table.drop_index("record_index")
    hudi_120.write(table.path, rows(28, 32, 7), **FACTS, **OFF)
    assert table.scan().to_arrow().num_rows == hudi_120.read(table.path).num_rows == 32


def test_apache_hudi_makes_column_statistics_beside_an_index_that_was_just_built_here(
    tmp_path: Path, hudi_120: ReferenceHudi
) -> None:
    """It makes them at the time of the newest action, and rolls back what an indexing of that time has built."""
    table = made(tmp_path / "rides")
    table.build_index("record_index")
    hudi_120.write(table.path, rows(15, 30, 5), **FACTS, **RECORD_INDEX, **{"hoodie.index.type": "RECORD_INDEX"})
    assert "column_stats" in table.properties["hoodie.table.metadata.partitions"]
    check(hudi_120, table, "record_index")
    assert table.scan(where="id = 'k01'").to_arrow().num_rows == 1
