"""A clustering on Spark could leave other rows or another order than one in this process, or files that its commit does
not know.

The same table is clustered both ways. Each task runs what a thread of this process would.
"""

import shutil
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Invalid
from pyhudi.engine.spark.slice_work import SparkSliceWork
from pyhudi.storage.local import LocalStorage
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables
from tests.support.merge_on_read import handle, in_memory, without_file_names
from tests.support.model import problems_on
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark

SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "_hoodie_record_key"}
NAMES = ["mor_event_time_v6_h0150", "mor_event_time_v8_h102", "cow_cluster_v9_h120"]


@pytest.mark.parametrize("name", NAMES)
def test_a_clustering_on_a_cluster_leaves_the_rows_of_one_in_this_process(
    spark: Any, golden: GoldenTables, tmp_path: Path, on_cluster: None, name: str
) -> None:
    here, there = (HudiTable.open(shutil.copytree(golden.get(name).path, tmp_path / where)) for where in "ab")
    before = without_file_names(there.scan().to_arrow())

    planned = there.schedule_clustering(options=SORTED)
    on_spark, in_process = there.run_clusterings(options=SORTED, spark=spark), here.cluster(options=SORTED)

    assert on_spark.requested == planned.requested
    assert on_spark.files > 0
    assert [getattr(on_spark, of) for of in ("file_groups", "files", "rows")] == [
        getattr(in_process, of) for of in ("file_groups", "files", "rows")
    ]
    assert_same_rows(without_file_names(there.scan().to_arrow()), before)
    assert_same_rows(without_file_names(collected(there.scan().to_spark(spark))), before)
    assert keys_by_file(there) == keys_by_file(here)
    assert there.incremental(start=on_spark.completed).to_arrow().num_rows == 0
    assert problems_on(LocalStorage(str(tmp_path / "b"))) == []


def test_row_groups_that_tasks_copied_are_read_by_spark_page_by_page(
    spark: Any, tmp_path: Path, on_cluster: None
) -> None:
    table = HudiTable.create(
        tmp_path, name="t", record_key="id", properties={"hoodie.parquet.small.file.limit": "0"}
    )  # fmt: skip
    for start in (0, 50_000):  # several pages of each column
        numbers = range(start, start + 50_000)
        table.insert(pa.table({"id": [f"{n:06}" for n in numbers], "v": numbers, "tags": [[n % 3] for n in numbers]}))
    before = without_file_names(table.scan().to_arrow())

    result = table.cluster(spark=spark)

    (new,) = (file for file in tmp_path.glob("*.parquet") if str(result.requested) in file.name)
    assert pq.read_metadata(new).num_row_groups == 2
    assert_same_rows(without_file_names(collected(table.scan().to_spark(spark))), before)
    rows = spark.read.parquet(str(new))
    assert [row["id"] for row in rows.where("v = 77777").collect()] == ["077777"]
    assert rows.where("v >= 49990 AND v < 50010 AND _hoodie_file_name IS NOT NULL").count() == 20


def keys_by_file(table: HudiTable) -> list[list[str]]:
    """The keys of each file of the newest slices, in the order in which they are stored."""
    rows = table.scan(["_hoodie_file_name", "_hoodie_record_key"]).to_arrow().to_pylist()
    files: dict[str, list[str]] = {}
    for row in rows:
        files.setdefault(row["_hoodie_file_name"], []).append(row["_hoodie_record_key"])
    return sorted(files.values())


def test_on_this_machine_no_task_of_spark_clusters(
    spark: Any, golden: GoldenTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("a clustering went to Spark's tasks")

    monkeypatch.setattr(SparkSliceWork, "run", refuse)
    table = HudiTable.open(shutil.copytree(golden.get("mor_event_time_v8_h102").path, tmp_path / "table"))
    before = without_file_names(table.scan().to_arrow())
    assert table.cluster(options=SORTED, spark=spark).file_groups > 0
    assert_same_rows(without_file_names(table.scan().to_arrow()), before)


def test_a_table_in_memory_is_not_clustered_on_spark(spark: Any, golden: GoldenTables) -> None:
    with pytest.raises(Invalid, match="memory"):
        handle(in_memory(golden.get("mor_nonpart_v9_h120"))).cluster(options=SORTED, spark=spark)


def test_a_write_on_a_cluster_goes_to_the_old_and_the_new_buckets(spark: Any, tmp_path: Path, on_cluster: None) -> None:
    ring = {
        "hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "2", "hoodie.bucket.index.max.num.buckets": "8",
        "hoodie.clustering.updates.strategy": "SparkConsistentBucketDuplicateUpdateStrategy",
    }  # fmt: skip
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", table_type="MERGE_ON_READ", table_version=9, properties=ring
    )
    table.upsert(spark.range(40).selectExpr("concat('k', id) AS id", "1 AS v"))
    planned = table.schedule_clustering(options={"hoodie.parquet.max.file.size": "1000"})
    table.upsert(spark.range(30, 50).selectExpr("concat('k', id) AS id", "2 AS v"))

    done = []
    for _ in range(2):
        rows = table.scan(["id", "v"]).to_spark(spark).collect()
        assert {row.id: row.v for row in rows} == {f"k{n}": 1 + (n >= 30) for n in range(50)}
        assert len(rows) == 50
        done.append(table.run_clusterings(spark=spark).requested)
    assert done == [planned.requested, None]
    assert problems_on(LocalStorage(str(tmp_path / "t"))) == []
