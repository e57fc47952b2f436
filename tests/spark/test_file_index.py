"""A scan could plan with a storage call a file, read other files than those planned, or confuse two scans.

Spark is handed names and sizes; the test counts what it asks the file system, and looks at folders whose names Spark's
own readers would take for patterns or partitions.
"""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.engine.spark.read.base_files import read_files
from pyhudi.engine.spark.read.file_index import KnownFiles, scan_known_files
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.storage.protocol import StorageLocation

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("n", pa.int64())])


def write_files(folder: Path, count: int) -> list[tuple[str, int]]:
    folder.mkdir(parents=True)
    files = []
    for n in range(count):
        path = folder / f"f{n}.parquet"
        pq.write_table(pa.table({"n": pa.array([n], pa.int64())}), path)
        files.append((path.name, path.stat().st_size))
    return files


@pytest.mark.parametrize("folder", ["plain", "a b", "p=1", "x%20y", "[ab]{c,d}*?", "ü"])
def test_only_the_given_files_are_read_whatever_their_folders_are_called(
    spark: Any, tmp_path: Path, folder: str
) -> None:
    files = write_files(tmp_path / folder, 5)
    location = StorageLocation(str(tmp_path / folder), ())

    rows = read_files(spark, location, files[1:4], spark_schema(SCHEMA))

    assert rows.columns == ["n"]
    assert sorted(row["n"] for row in rows.collect()) == [1, 2, 3]


def test_scans_are_equal_to_spark_only_when_their_files_are(spark: Any, tmp_path: Path) -> None:
    """Equal scans share cached rows and exchanges: a scan that were equal to another table's would show its rows."""
    files = [(f"file://{tmp_path}/t/{name}", size) for name, size in write_files(tmp_path / "t", 4)]
    one, same, other = (
        scan_known_files(spark, of, spark_schema(SCHEMA), {}) for of in (files[:2], files[:2], files[2:])
    )

    assert one.sameSemantics(same)
    assert not one.sameSemantics(other)
    one.cache().count()
    assert sorted(row["n"] for row in other.collect()) == [2, 3]
    one.unpersist()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_reads_of_a_partitioned_table_are_equal_until_it_changes(spark: Any, tmp_path: Path, table_type: str) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="n", partition_by="p", table_type=table_type)
    table.bulk_insert(pa.table({"n": [1, 2], "p": ["a", "b"]}))
    one, same = table.scan().to_spark(spark), table.scan().to_spark(spark)
    assert one.sameSemantics(same)
    assert one.cache().count() == 2

    table.insert(pa.table({"n": [3], "p": ["a"]}))
    other = table.scan().to_spark(spark)
    assert not one.sameSemantics(other)
    assert sorted(row["n"] for row in other.collect()) == [1, 2, 3]
    one.unpersist()


def test_a_scan_of_ten_thousand_files_is_planned_in_two_seconds_without_a_look_at_any(
    spark: Any, tmp_path: Path
) -> None:
    """The files do not even exist: whoever looked at one would fail."""
    files = [(f"file://{tmp_path}/p{n % 100}/f{n}.parquet", 1_000) for n in range(10_000)]
    schema = spark_schema(SCHEMA)
    scan_known_files(spark, files[:10], schema, {})

    times = []
    for _ in range(3):
        started = time.perf_counter()
        rows = scan_known_files(spark, files, schema, {}).where("n > 3")
        rows._jdf.queryExecution().executedPlan()
        times.append(time.perf_counter() - started)

    assert min(times) < 2
    assert len(rows.inputFiles()) == 10_000


def test_a_scan_still_reads_its_files_after_a_refresh_of_the_tables_path(spark: Any, tmp_path: Path) -> None:
    """A refresh lists a path's files anew: it must not bring the older file slices in."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="n")
    table.bulk_insert(pa.table({"n": [1, 2, 3]}))
    table.upsert(pa.table({"n": [2, 4]}))
    rows = table.scan().to_spark(spark).cache()

    spark.catalog.refreshByPath(str(tmp_path / "t"))

    assert sorted(row["n"] for row in rows.collect()) == [1, 2, 3, 4]
    rows.unpersist()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("partition_by", [None, "p"])
@pytest.mark.parametrize("is_cached", [False, True], ids=["not cached", "cached"])
def test_a_view_shows_the_same_rows_after_it_is_refreshed(
    spark: Any, tmp_path: Path, table_type: str, partition_by: str | None, is_cached: bool
) -> None:
    """Spark then lists the files of the view's relations anew. Cached, an empty answer would be that of later reads."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="n", partition_by=partition_by, table_type=table_type)
    table.bulk_insert(pa.table({"n": [1, 2, 3], "p": ["a", "b", "a"]}))
    table.upsert(pa.table({"n": [2, 4], "p": ["b", "a"]}))
    load = lambda: table.scan().to_spark(spark)  # noqa: E731
    rows = load().cache() if is_cached else load()
    rows.createOrReplaceTempView("refreshed")
    assert spark.table("refreshed").count() == 4

    spark.sql("REFRESH TABLE refreshed")
    assert spark.table("refreshed").count() == 4
    spark.catalog.refreshTable("refreshed")
    assert sorted(row["n"] for row in spark.table("refreshed").collect()) == [1, 2, 3, 4]
    assert sorted(row["n"] for row in load().where("n > 1").collect()) == [2, 3, 4]
    spark.catalog.dropTempView("refreshed")
    rows.unpersist()


def test_filters_and_columns_are_pushed_into_the_scan(spark: Any, tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    table.bulk_insert(pa.table({"id": ["a", "b"], "n": [1, 2], "unread": [0, 0]}))

    plan = table.scan(columns=["id"], where="n > 1").to_spark(spark)._jdf.queryExecution().executedPlan().toString()

    assert "GreaterThan(n,1)" in plan
    assert "Batched: true" in plan
    assert "unread" not in plan


def test_the_jvm_finds_every_method_that_it_may_call(spark: Any) -> None:
    """A method with a body in Spark is missing in an object of Python all the same."""
    thread = spark._jvm.java.lang.Thread.currentThread()
    kind = spark._jvm.java.lang.Class.forName(KnownFiles.Java.implements[0], True, thread.getContextClassLoader())
    asked = {str(method.getName()) for method in kind.getMethods()}
    assert {name for name in asked if "$" not in name and not hasattr(KnownFiles, name)} == set()
    assert "listFiles" in asked


@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_files_are_written_while_rows_of_a_table_are_cached(
    spark: Any, tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    """Seen: Spark 4.3 asks each cached file index something new, after any write of files."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="k", partition_by=partition_by)
    table.insert(pa.table({"k": [1, 2], "p": ["x", "y"]}))
    rows = table.scan().to_spark(spark).cache()
    assert rows.count() == 2
    for _ in range(2):
        spark.range(3).write.mode("overwrite").parquet(str(tmp_path / "t2"))
    spark.catalog.refreshByPath(str(tmp_path / "t"))
    assert sorted(row["k"] for row in rows.collect()) == [1, 2]
    rows.unpersist()
