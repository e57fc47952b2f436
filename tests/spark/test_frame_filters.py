"""Filters and column choices of a DataFrame could stay above the scan, so that a query of one partition opens the files
of all; or reach it too early, so that a row shows that a log replaced.

Which files a query opens is seen by taking the others away: a query that needed them would fail. Rows are compared with
those of this process, over random filters.
"""

import gc
import random
import threading
import time
import weakref
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi.spark
from pyhudi import HudiTable
from pyhudi.engine.spark.read import local_rows, merge_design, merged
from pyhudi.engine.spark.session import with_settings
from tests.spark.test_merge_designs import GOLDEN, random_table
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark

MERGE_ON_READ = {"table_type": "MERGE_ON_READ", "properties": {"hoodie.compact.inline": "false"}}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2", "hoodie.compact.inline": "false"}
KINDS: dict[str, dict[str, Any]] = {
    "copy on write": {},
    "few rows in logs": MERGE_ON_READ,
    "logs larger than base files": MERGE_ON_READ,
    "buckets": {"table_type": "MERGE_ON_READ", "properties": BUCKETS},
}


@pytest.fixture(scope="module")
def registered(spark: Any) -> Any:
    pyhudi.spark.register(spark)
    return spark


def rows(numbers: range, x: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{n}" for n in numbers],
            "p": [f"p{n % 3}" for n in numbers],
            "ts": [x] * len(numbers),
            "x": [x * 1_000 + n for n in numbers],
            "unread": ["wide" * 20] * len(numbers),
        }
    )


def make_table(path: Path, kind: str) -> HudiTable:
    table = HudiTable.create(path, name="t", record_key="id", partition_by="p", ordering="ts", **KINDS[kind])
    table.upsert(rows(range(30), 1))
    for ts in (2, 3, 4) if kind == "logs larger than base files" else (2,):
        table.upsert(rows(range(30 if ts == 3 else 6), ts))
    return table


def take_away(path: Path, *partitions: str) -> None:
    for partition in partitions:
        files = [file for file in (path / partition).iterdir() if ".parquet" in file.name or ".log." in file.name]
        assert files
        for file in files:
            file.unlink()


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, HudiTable]:
    table = make_table(tmp_path / "t", request.param)
    logged = [bool(file.logs) for file in table.scan()._plan.files]
    assert any(logged) is (request.param != "copy on write")
    return tmp_path / "t", table


def test_a_query_of_one_partition_opens_no_file_of_another(registered: Any, made: tuple[Path, HudiTable]) -> None:
    path, table = made
    expected = table.scan(columns=["x"], where="p = 'p1'").to_arrow()
    frame = registered.read.format("hudi").load(str(path))
    take_away(path, "p0", "p2")

    found = frame.filter("p = 'p1'").select("x")

    assert_same_rows(collected(found), expected)
    assert_same_rows(collected(frame.where(frame._hoodie_partition_path == "p1").select("x")), expected)
    with pytest.raises(Exception, match=r"\.parquet|\.log\."):
        frame.select("x").collect()


def test_the_plan_shows_filters_and_no_column_that_is_not_needed(registered: Any, made: tuple[Path, HudiTable]) -> None:
    plan = plan_of(registered.read.format("hudi").load(str(made[0])).filter("p = 'p1' and x > 5").select("x"))

    assert "EqualTo(p,p1), GreaterThan(x,5)" in plan
    assert "ReadSchema: struct<p:string,x:bigint>" in plan
    assert "unread" not in plan
    assert "MapInArrow" not in plan


def test_frames_are_joined_cached_and_viewed(registered: Any, made: tuple[Path, HudiTable]) -> None:
    path, table = made
    frame = registered.read.format("hudi").load(str(path)).select("id", "p", "x")
    every = table.scan(columns=["id", "p", "x"]).to_arrow()
    one = table.scan(columns=["id", "p", "x"], where="p = 'p1'").to_arrow()

    assert frame.join(frame.filter("p = 'p1'"), "id").count() == len(one)
    assert frame.alias("a").join(frame.alias("b"), "p").where("a.id = b.id and b.p in ('p1', 'p9')").count() == len(one)
    frame.createOrReplaceTempView("viewed")
    assert_same_rows(collected(registered.sql("SELECT * FROM viewed WHERE p = 'p1'")), one)
    largest = registered.sql("SELECT id FROM viewed WHERE x = (SELECT max(x) FROM viewed WHERE p = 'p1')")
    assert len(largest.collect()) == 1
    frame.cache()
    assert_same_rows(collected(frame.filter("p = 'p1'")), one)
    assert_same_rows(collected(frame), every)
    frame.unpersist()
    take_away(path, "p0", "p2")
    assert_same_rows(collected(frame.filter("p = 'p1'")), one)


def test_threads_ask_one_frame_at_once(registered: Any, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", "few rows in logs")
    frame = table.scan().to_spark(registered)
    counts: dict[int, int] = {}

    def count(number: int) -> None:
        counts[number] = frame.filter(f"p = 'p{number % 4}'").count()

    threads = [threading.Thread(target=count, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert counts == {number: 0 if number % 4 == 3 else 10 for number in range(8)}


@pytest.fixture(params=["driver", "tasks"])
def whole(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who merges slices that are read whole."""
    if request.param == "tasks":
        monkeypatch.setattr(merge_design, "WHOLE_ON_DRIVER_BYTES_MAX", -1)
    return str(request.param)


def test_tasks_merge_no_slice_of_a_partition_that_is_ruled_out(
    spark: Any, made: tuple[Path, HudiTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a cluster: no filter reaches the rows of a task, but a partition's plan is left out."""
    monkeypatch.setattr(merge_design, "WHOLE_ON_DRIVER_BYTES_MAX", -1)
    monkeypatch.setattr(merged, "PARTITION_BYTES_MIN", 0)
    path, table = made
    where = "p = 'p1' and x > 1010"
    expected = table.scan(columns=["x"], where=where).to_arrow()
    frame = table.scan().to_spark(spark)
    assert_same_rows(collected(frame), table.scan().to_arrow())
    take_away(path, "p0", "p2")

    found = frame.filter(where).select("x")

    assert plan_of(found).count("MapInArrow") <= 1
    assert_same_rows(collected(found), expected)


def test_tasks_read_small_partitions_together(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan each would start a task for each, which takes longer than merging the few rows."""
    monkeypatch.setattr(merge_design, "WHOLE_ON_DRIVER_BYTES_MAX", -1)
    table = make_table(tmp_path / "t", "few rows in logs")
    sizes = [file.size_bytes for file in table.scan()._plan.files]

    for least, plans in ((sum(sizes) // 3, 3), (sum(sizes) // 3 + 1, 1)):
        monkeypatch.setattr(merged, "PARTITION_BYTES_MIN", least)
        frame = table.scan().to_spark(spark)
        assert plan_of(frame).count("MapInArrow") == plans
        assert_same_rows(collected(frame.where("p = 'p1'")), table.scan(where="p = 'p1'").to_arrow())


@pytest.mark.parametrize(
    "whole, name",
    [
        pytest.param(way, name, marks=[] if at % 3 == remainder else [pytest.mark.long])
        for remainder, way in enumerate(("driver", "tasks"))  # each way another third; the rest in the long run
        for at, name in enumerate(GOLDEN)
    ],
    indirect=["whole"],
)
def test_golden_tables_have_the_rows_of_this_process(spark: Any, golden: GoldenTables, whole: str, name: str) -> None:
    table = HudiTable.open(golden.get(name).path)
    frame = table.scan().to_spark(spark)

    assert ("MapInArrow" in plan_of(frame)) is (whole == "tasks")
    assert_same_rows(collected(frame), table.scan().to_arrow())
    assert_filters(table, frame, seed=1, count=4 if whole == "driver" else 1)


def assert_filters(table: HudiTable, frame: Any, *, seed: int, count: int) -> None:
    """Random filters and columns give the rows of this process."""
    rand = random.Random(seed)
    stored = table.scan().to_arrow()
    kinds = {f.name: f.type for f in stored.schema if pa.types.is_string(f.type) or pa.types.is_integer(f.type)}

    def condition() -> str:
        name = rand.choice(list(kinds))
        value = rand.choice(stored.column(name).to_pylist() or [None])
        if value is None or rand.random() < 0.1:
            return f"{name} is {rand.choice(['', 'not '])}null"
        text = f"'{value}'" if isinstance(value, str) else str(value)
        return f"{name} {rand.choice(['=', '<>', '<', '>='])} {text}"

    for _ in range(count):
        where = f"{condition()} {rand.choice(['and', 'or'])} {condition()}"
        columns = rand.sample(stored.schema.names, rand.randint(1, 3))
        found = collected(frame.filter(where).select(*(f"`{name}`" for name in columns)))
        assert_same_rows(found, table.scan(columns=columns, where=where).to_arrow())


@pytest.mark.parametrize("seed, ordering", [(11, "ts"), (12, None), pytest.param(13, "x", marks=pytest.mark.long)])
def test_random_filters_have_the_rows_of_this_process(
    spark: Any, tmp_path: Path, seed: int, ordering: str | None
) -> None:
    table = random_table(tmp_path / "t", seed, ordering)

    assert_filters(table, table.scan().to_spark(spark), seed=seed, count=12)


@pytest.mark.parametrize("name", ["mor_partial_update_v8_h102", "mor_avro_v6_h0150", "cow_part_v9_h120"])
def test_filters_go_with_where_and_columns_of_the_scan(spark: Any, golden: GoldenTables, name: str) -> None:
    table = HudiTable.open(golden.get(name).path)
    path = table.scan().to_arrow().column("_hoodie_partition_path")[0].as_py()
    where = f"_hoodie_partition_path = '{path}'"

    frame = table.scan(columns=["_hoodie_record_key", "_hoodie_partition_path"], where="id is not null").to_spark(spark)

    expected = table.scan(columns=["_hoodie_record_key"], where=f"{where} and id is not null").to_arrow()
    assert_same_rows(collected(frame.filter(where).select("_hoodie_record_key")), expected)


@pytest.mark.parametrize("style", ["plain", pytest.param("hive", marks=pytest.mark.long)])
def test_partitions_of_all_types_and_odd_names_are_told(registered: Any, tmp_path: Path, style: str) -> None:
    """A value that is spelled or typed otherwise in Spark than in the path would lose its rows."""
    path = tmp_path / "t"
    texts = ["a b", "ü%41", "x'y\"", "[z]{1}^", "a=b:c", "*?#", "\\q", "", None, "__HIVE_DEFAULT_PARTITION__ "]
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by=["text", "n", "day", "flag"], table_type="MERGE_ON_READ",
        properties={
            "hoodie.datasource.write.partitionpath.urlencode": "true",
            "hoodie.datasource.write.hive_style_partitioning": str(style == "hive").lower(),
        },
    )  # fmt: skip
    given = pa.table(
        {
            "id": [str(n) for n in range(len(texts))],
            "text": pa.array(texts, pa.string()),
            "n": pa.array([n - 5 for n in range(len(texts))], pa.int64()),
            "day": pa.array([date(2020, 1, 1 + n) for n in range(len(texts))], pa.date32()),
            "flag": pa.array([n % 2 == 0 for n in range(len(texts))], pa.bool_()),
        }
    )
    table.bulk_insert(given)
    table.upsert(given.slice(0, 6))
    frame = registered.read.format("hudi").load(str(path))

    for text, n, day, flag in zip(*(given.column(at).to_pylist() for at in range(1, 5)), strict=True):
        same = frame.where(frame.text.eqNullSafe(text)).select("n").collect()
        assert [row["n"] for row in same] == [n], text
        for condition in (f"n = {n}", f"day = '{day}'", f"n <= {n} and n >= {n} and flag = {flag}"):
            assert [row["text"] for row in frame.where(condition).select("text").collect()] == [text], condition
    assert frame.where("n is null or day is null").count() == 0


def test_a_filter_that_fails_for_a_partition_without_a_matching_row_is_no_error(
    registered: Any, tmp_path: Path
) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="p", ordering="x")
    table.bulk_insert(pa.table({"id": ["a", "b"], "p": ["7", "oslo"], "x": [2, 1]}))

    frame = registered.read.format("hudi").load(str(tmp_path / "t"))

    assert [row["id"] for row in frame.where("x = 2 and cast(p as int) = 7").collect()] == ["a"]
    assert frame.where("p = '7' and rand(1) < 2").count() == 1


def test_a_damaged_log_is_named(registered: Any, tmp_path: Path) -> None:
    make_table(tmp_path / "t", "few rows in logs")
    frame = registered.read.format("hudi").load(str(tmp_path / "t"))
    (log,) = (tmp_path / "t" / "p1").glob(".*.log.*")
    log.write_bytes(log.read_bytes()[:-20])

    assert frame.where("p = 'p0'").count() == 10
    with pytest.raises(Exception, match=r"CorruptFile(.|\n)*\.log\."):
        frame.where("p = 'p1'").collect()


def test_merged_files_are_written_once_and_go_with_the_frame(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(local_rows, "KEPT_S", 0.0)
    monkeypatch.setattr(local_rows, "scratch_folder", lambda spark: str(scratch))
    frame = make_table(tmp_path / "t", "few rows in logs").scan().to_spark(spark)
    (folder,) = scratch.iterdir()

    assert not list(folder.glob("*.parquet"))
    assert frame.where("p = 'p1'").count() == 10
    (first,) = folder.glob("*.parquet")
    written = first.stat().st_mtime_ns
    assert pq.read_metadata(first).num_rows == 10
    assert frame.count() == 30
    assert len(list(folder.glob("*.parquet"))) == 3
    assert first.stat().st_mtime_ns == written

    del frame
    until = time.monotonic() + 60
    while folder.exists() and time.monotonic() < until:
        gc.collect()
        spark._jvm.System.gc()
        local_rows.takes_files(spark, 1)
    assert not folder.exists()


def test_a_scan_of_ten_thousand_files_is_pruned_in_seconds(spark: Any) -> None:
    """The files do not even exist: whoever looked at one would fail."""
    from pyhudi.engine.spark.read.pruned_index import ScanFile, scan_pruned_files
    from pyhudi.engine.spark.schema import spark_schema
    from pyhudi.format.keys.record_keys import KeySpec
    from pyhudi.table.prune.partition_values import PathValues

    schema = pa.schema([("p", pa.string()), ("n", pa.int64())])
    keys = KeySpec(("n",), ("p",), is_composite=False, is_hive_style=False, is_url_encoded=False)
    files = [ScanFile(f"p{n % 1_000}", f"file:///nowhere/p{n % 1_000}/f{n}.parquet", 1_000) for n in range(10_000)]
    frame = scan_pruned_files(spark, files, PathValues.as_stored(keys, schema), spark_schema(schema), {})

    times = []
    for number in range(3):
        started = time.perf_counter()
        assert frame.where(f"p = 'q{number}'").count() == 0
        times.append(time.perf_counter() - started)

    assert min(times) < 5
    assert len(frame.inputFiles()) == 10_000


@pytest.mark.parametrize("column", ["file_name", "file_path"])
def test_a_filter_on_what_spark_knows_of_files_is_none_on_a_column_of_that_name(
    registered: Any, tmp_path: Path, column: str
) -> None:
    """Spark passes both as columns of one name: judged by partitions, the first would rule all of them out."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by=column)
    table.bulk_insert(pa.table({"id": ["a", "b"], column: ["oslo", "rome"]}))
    frame = registered.read.format("hudi").load(str(tmp_path / "t"))

    assert frame.where(f"_metadata.{column} like '%.parquet'").count() == 2
    assert frame.where(f"_metadata.{column} like '%.parquet' and {column} = 'oslo'").count() == 1


def test_a_column_named_like_the_number_of_a_partition_prunes_by_its_own_values(spark: Any, tmp_path: Path) -> None:
    """pyhudi writes no such table. Another writer may."""
    from pyhudi.engine.spark.read.pruned_index import ScanFile, scan_pruned_files
    from pyhudi.engine.spark.schema import spark_schema
    from pyhudi.format.keys.record_keys import KeySpec
    from pyhudi.table.prune.partition_values import PathValues

    name, files = "__pyhudi_Number", []
    for value in ("7", "8"):
        path = tmp_path / value / "f.parquet"
        path.parent.mkdir()
        pq.write_table(pa.table({name: [value]}), path)
        files.append(ScanFile(value, path.as_uri(), path.stat().st_size))
    keys = KeySpec(("n",), (name,), is_composite=False, is_hive_style=False, is_url_encoded=False)
    schema = pa.schema([(name, pa.string())])
    frame = scan_pruned_files(spark, files, PathValues.as_stored(keys, schema), spark_schema(schema), {})

    assert [row[0] for row in frame.where(f"{name} = '8'").collect()] == ["8"]


@pytest.mark.parametrize(
    "setting", [("hive.filesourcePartitionFileCacheSize", "0"), ("hive.manageFilesourcePartitions", "false")]
)
def test_rows_are_those_whether_or_not_spark_may_cache_lists_of_files(
    registered: Any, tmp_path: Path, setting: tuple[str, str]
) -> None:
    """A cache that holds nothing must not make a table without files of it, nor change how many partitions it has."""
    table = make_table(tmp_path / "t", "few rows in logs")
    before = registered.read.format("hudi").load(str(tmp_path / "t"))

    with with_settings(registered, {f"spark.sql.{setting[0]}": setting[1]}):
        assert before.where("p = 'p1'").count() == 10
        assert registered.read.format("hudi").load(str(tmp_path / "t")).where("p = 'p1'").count() == 10
        assert table.scan(where="x >= 2000").to_spark(registered).count() == 6


def test_a_file_that_was_cleaned_is_told_near_the_top(registered: Any, tmp_path: Path) -> None:
    make_table(tmp_path / "t", "few rows in logs")
    frame = registered.read.format("hudi").load(str(tmp_path / "t"))
    take_away(tmp_path / "t", "p1")

    with pytest.raises(Exception, match=r"NotFound: .*/p1/.*for a DataFrame of Spark, load the table again") as told:
        frame.where("p = 'p1'").count()
    assert str(told.value)[: str(told.value).index("NotFound")].count("\n") < 12


def test_what_the_jvm_is_answered_is_kept_until_it_has_it(spark: Any) -> None:
    """py4j lets the JVM forget an object that nothing here refers to, by another thread even before the JVM has it."""
    from pyhudi.engine.spark.read.pruned_index import PrunedIndex
    from pyhudi.engine.spark.schema import spark_schema
    from pyhudi.format.keys.record_keys import KeySpec
    from pyhudi.table.prune.partition_values import PathValues

    schema = pa.schema([("p", pa.string())])
    keys = KeySpec(("n",), ("p",), is_composite=False, is_hive_style=False, is_url_encoded=False)
    values = PathValues.as_stored(keys, schema)
    index = PrunedIndex(spark, "file:///nowhere", [], ["a"], values, spark_schema(schema), lambda numbers: [])
    nothing = spark._jvm.org.apache.spark.api.python.PythonUtils.toSeq([])
    calls = [index.rootPaths, index.partitionSchema, index.metadataOpsTimeNs, lambda: index.listFiles(nothing, nothing)]

    for call in calls:
        found = weakref.ref(call())
        gc.collect()
        assert found() is not None


@pytest.mark.parametrize("kind", ["copy on write", "few rows in logs"])
def test_zeros_of_both_signs_are_one_value(registered: Any, tmp_path: Path, kind: str) -> None:
    """Spark skips row groups whose dictionary lacks a value, and takes 0.0 and -0.0 for two."""
    table = HudiTable.create(f"{tmp_path}/t", name="t", record_key="id", ordering="ts", **KINDS[kind])
    table.bulk_insert(pa.table({"id": ["a", "b", "c"], "ts": [1] * 3, "x": [-0.0, 1.0, -0.0]}))
    table.upsert(pa.table({"id": ["b"], "ts": [2], "x": [2.0]}))

    assert {row.id for row in table.scan().to_spark(registered).where("x = 0.0D").collect()} == {"a", "c"}
    frame = registered.read.format("hudi").load(f"{tmp_path}/t")
    assert {row.id for row in frame.where("x IN (0.0D, 7.0D)").collect()} == {"a", "c"}


@pytest.mark.parametrize("kind", ["copy on write", "few rows in logs", "logs larger than base files"])
def test_nan_is_found_by_filters(registered: Any, tmp_path: Path, kind: str) -> None:
    """Parquet's bounds pass over NaN, and Spark skips what is out of bounds."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering="ts", **KINDS[kind])
    nan, one = float("nan"), 1.0
    table.bulk_insert(pa.table({"id": ["a", "b", "c"], "ts": [1] * 3, "x": [nan, one, nan]}))
    table.upsert(pa.table({"id": ["b", "c", "d"], "ts": [2] * 3, "x": [nan, one, one]}))

    found = table.scan().to_spark(registered).where("x > 2 OR x = double('NaN')").collect()
    assert {row.id for row in found} == {"a", "b"}
