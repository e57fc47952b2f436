"""An index that Spark's tasks read the data files for could differ from one built here, or a failure could be hidden.

The same table gets each index both ways; record for record they must be equal.
"""

import shutil
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import CorruptFile, HudiTable, Invalid, NotFound
from pyhudi.engine.spark.executor import SparkExecutor
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.snapshot import read_snapshot
from pyhudi.testing.counting import CountingStorage
from tests.support.metadata_indexes import index_cells, index_problems
from tests.support.model import StepClock, problems_on
from tests.support.spark_frames import on_spark

pytestmark = pytest.mark.spark

KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("column_stats", {"columns": ["v", "name"]}),
    ("partition_stats", {}),
    ("bloom_filters", {}),
    ("record_index", {"options": {"hoodie.metadata.global.record.level.index.min.filegroup.count": "3"}}),
    ("secondary_index", {"columns": "name", "name": "by_name"}),
    ("expr_index", {"name": "by_day", "expression": "from_unixtime(v, 'yyyy-MM-dd')"}),
    ("bloom_filters", {"columns": "name", "expression": "lower(name)"}),
)


def rows(first: int, last: int, of: str) -> pa.Table:
    ids = range(first, last)
    return pa.table(
        {
            "id": [f"k{n:03}" for n in ids],
            "part": [f"p{n % 5}" for n in ids],
            "name": [f"{of}{n % 7}" for n in ids],
            "v": pa.array([n * 40_000 for n in ids], pa.int64()),
        }
    )


def stored(path: Path, table_type: str, **properties: str) -> HudiTable:
    """Five partitions; on a merge-on-read table with logs upon some of their files."""
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="part", table_type=table_type, properties=properties,
        clock=StepClock(),
    )  # fmt: skip
    table.insert(rows(0, 200, "Anna"))
    table.upsert(rows(150, 230, "Ben"))
    table.delete(rows(20, 40, ""))
    return table


def cells(path: Path) -> dict[str, dict[str, bytes]]:
    snapshot = read_snapshot(LocalStorage(str(path)), UTC, open_listing)
    return {name: index_cells(snapshot, name) for name in snapshot.config.metadata_partitions if name != "files"}


@pytest.mark.parametrize("table_type", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.long), "MERGE_ON_READ"])
def test_indexes_built_on_spark_are_those_built_here(
    spark: Any, tmp_path: Path, on_cluster: None, table_type: str
) -> None:
    stored(tmp_path / "here", table_type)
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    for where, session in (("here", None), ("there", spark)):
        table = HudiTable.open(tmp_path / where, clock=StepClock(1_790_000_000_000))
        for kind, of in KINDS[:-1]:
            assert table.build_index(kind, spark=session, **of).completed
        table.schedule_index(KINDS[-1][0], **KINDS[-1][1])
        assert all(result.completed for result in table.run_indexes(spark=session))

    here, there = cells(tmp_path / "here"), cells(tmp_path / "there")

    assert set(there) == set(here)
    assert len(here) == len(KINDS)
    assert all(here.values())
    assert there == here
    assert index_problems(LocalStorage(str(tmp_path / "there"))) == []


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that Spark's tasks run meanwhile."""
    names: list[str] = []
    run = SparkExecutor.run

    def noting(self: SparkExecutor, function: Any, tasks: Any) -> Any:
        names.append(function.__name__)
        return run(self, function, tasks)

    monkeypatch.setattr(SparkExecutor, "run", noting)
    return names


def test_a_write_on_a_cluster_builds_its_indexes_there(
    spark: Any, tmp_path: Path, on_cluster: None, ran: list[str]
) -> None:
    stored(tmp_path / "t", "COPY_ON_WRITE")
    table = HudiTable.open(tmp_path / "t", options={
        "hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
    })  # fmt: skip

    table.upsert(on_spark(spark, rows(0, 10, "Carl"), tmp_path))

    assert sorted(ran) == ["_locate", "_read", "read_file_bounds"]
    assert index_problems(LocalStorage(table.path)) == []
    assert problems_on(LocalStorage(table.path)) == []


def test_where_spark_runs_on_this_machine_its_tasks_read_nothing(spark: Any, tmp_path: Path, ran: list[str]) -> None:
    table = stored(tmp_path / "t", "COPY_ON_WRITE")

    assert table.build_index("record_index", spark=spark).completed

    assert ran == []
    assert index_problems(LocalStorage(table.path)) == []


def test_a_damaged_file_fails_the_build_by_name_and_leaves_nothing(
    spark: Any, tmp_path: Path, on_cluster: None
) -> None:
    table = stored(tmp_path / "t", "COPY_ON_WRITE")
    victim = max((tmp_path / "t" / "p2").glob("*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-100])

    with pytest.raises(CorruptFile, match=victim.name):
        table.build_index("record_index", spark=spark)

    assert "record_index" not in table.properties["hoodie.table.metadata.partitions"]
    assert table.properties.get("hoodie.table.metadata.partitions.inflight", "") == ""
    assert not (tmp_path / "t" / ".hoodie" / "metadata" / "record_index").exists()


def test_a_table_in_memory_is_not_indexed_on_spark(spark: Any) -> None:
    with pytest.raises(Invalid, match="memory"):
        HudiTable.create("memory://unshared", name="t", record_key="id").build_index("record_index", spark=spark)


def read_size(task: tuple[Storage, str]) -> tuple[str, int]:
    storage, path = task
    return type(storage).__name__, len(storage.get(path))


def test_values_come_in_the_order_of_the_tasks_and_storages_travel_as_locations(spark: Any, tmp_path: Path) -> None:
    for number in range(23):
        (tmp_path / f"f{number:02}").write_bytes(b"." * number)
    counted = CountingStorage(LocalStorage(str(tmp_path)))

    found = SparkExecutor(spark).run(read_size, [(counted, f"f{number:02}") for number in range(23)])

    assert found == [("LocalStorage", number) for number in range(23)]
    assert SparkExecutor(spark).run(read_size, []) == []


def test_of_several_failures_the_first_one_is_raised(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"1")
    storage = LocalStorage(str(tmp_path))
    names = ["there"] * 9 + ["gone first"] + ["there"] * 9 + ["gone second"]

    with pytest.raises(NotFound, match="gone first"):
        SparkExecutor(spark).run(read_size, [(storage, name) for name in names])
