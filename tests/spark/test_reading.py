"""A scan on Spark could prune, filter or name columns in another way than the scan in this process.

The same questions are put to both; what only Spark has (readers of other formats, odd paths, its plan) is
asked there alone.
"""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi.spark
from pyhudi import HudiTable, Invalid, NotFound
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark

TABLE = "cow_part_v9_h120"


@pytest.fixture
def table(golden: GoldenTables) -> HudiTable:
    return HudiTable.open(golden.get(TABLE).path)


@pytest.fixture(scope="module")
def registered(spark: Any) -> Any:
    pyhudi.spark.register(spark)
    return spark


@pytest.mark.parametrize("values", [[11, 12], ["x", "y"]])
def test_a_column_that_sparks_scan_overwrites_is_read_as_it_is_stored(
    spark: Any, tmp_path: Path, values: list[Any]
) -> None:
    """Spark's Parquet scan puts row numbers into a long of this name, and fails at other types."""
    name = "_tmp_metadata_row_index"
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    table.bulk_insert(pa.table({"id": ["a", "b"], name: values}))

    assert_same_rows(collected(table.scan().to_spark(spark)), table.scan().to_arrow())
    assert_same_rows(collected(table.scan(columns=["id"]).to_spark(spark)), table.scan(columns=["id"]).to_arrow())
    found = table.scan(columns=["id"], where=f"{name} = '{values[1]}'").to_spark(spark)
    assert [row["id"] for row in found.collect()] == ["b"]


@pytest.mark.parametrize(
    "where",
    [
        "part = 'p1'",
        "part > 'p1' and i > 20",
        "part in ('p2', 'p9') or i is null",
        "part = 'no such partition'",
        "dt >= '2026-01-01'",
        "tms >= '2026-01-05 00:00:00' and not b",
        "l % 2 = 1",
        "dec10 > 5.5 or d < 0",
        "name like 'n%' and f is not null",
        "_hoodie_commit_time > '20261121112132093'",
        pc.field("i") > 20,
        (pc.field("part") == "p2") & pc.field("name").is_valid(),
    ],
    ids=str,
)
def test_spark_keeps_the_rows_that_this_process_keeps(spark: Any, table: HudiTable, where: Any) -> None:
    scan = table.scan(where=where)

    assert_same_rows(collected(scan.to_spark(spark)), scan.to_arrow())


def test_columns_come_in_the_order_asked_for(spark: Any, table: HudiTable) -> None:
    scan = table.scan(columns=["ts", "id", "_hoodie_commit_time"], where="i > 20")

    frame = scan.to_spark(spark)

    assert frame.columns == ["ts", "id", "_hoodie_commit_time"]
    assert_same_rows(collected(frame), scan.to_arrow())


def test_a_scan_of_no_files_has_the_schema_and_no_rows(spark: Any, table: HudiTable) -> None:
    scan = table.scan(where="part = 'no such partition'")

    frame = scan.to_spark(spark)

    assert scan.files() == []
    assert frame.columns == scan.schema.names
    assert frame.count() == 0


def test_the_plan_is_a_native_scan_with_pushed_filters(spark: Any, table: HudiTable) -> None:
    frame = table.scan(columns=["id"], where="i > 20").to_spark(spark)

    plan = frame._jdf.queryExecution().executedPlan().toString()

    assert "FileScan parquet" in plan
    assert "GreaterThan(i,20)" in plan
    assert "PythonUDF" not in plan
    assert "MapInArrow" not in plan


def test_settings_of_the_session_are_put_back(spark: Any, table: HudiTable) -> None:
    names = (
        "spark.sql.ansi.enabled",
        "spark.sql.session.timeZone",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism",
    )
    before = [spark.conf.get(name, None) for name in names]

    table.scan(where="i > 20").to_spark(spark).count()

    assert [spark.conf.get(name, None) for name in names] == before


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_times_in_a_predicate_are_utc_whatever_the_session_zone(spark: Any, table: HudiTable, zone: str) -> None:
    scan = table.scan(columns=["id"], where="tms >= '2026-01-05 00:00:00'")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        found = collected(scan.to_spark(spark))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)

    assert_same_rows(found, scan.to_arrow())


@pytest.mark.parametrize(
    "folder", ["with space", "100%25 [a] {b,c}", "star*?", "plus+and&semi;", "ünïcode", "_hidden", "a=1"]
)
def test_a_table_is_read_wherever_it_lies(spark: Any, golden: GoldenTables, tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder / "table"
    shutil.copytree(golden.get(TABLE).path, path)
    scan = HudiTable.open(path).scan()

    assert_same_rows(collected(scan.to_spark(spark)), scan.to_arrow())


def test_the_path_may_be_an_option(registered: Any, golden: GoldenTables, table: HudiTable) -> None:
    path = str(golden.get(TABLE).path)

    frame = registered.read.format("hudi").option("path", path).load()

    assert frame.count() == table.scan().to_arrow().num_rows


def test_the_format_may_be_an_argument_of_load(registered: Any, golden: GoldenTables, table: HudiTable) -> None:
    path = str(golden.get(TABLE).path)

    assert registered.read.load(path, format="org.apache.hudi").count() == table.scan().to_arrow().num_rows


def test_a_file_path_with_its_scheme_is_the_same_table(registered: Any, golden: GoldenTables) -> None:
    path = golden.get(TABLE).path

    frames = [registered.read.format("hudi").load(text) for text in (str(path), path.as_uri())]

    assert_same_rows(collected(frames[0]), collected(frames[1]))


def test_other_formats_go_through_untouched(registered: Any, tmp_path: Path) -> None:
    pyhudi.spark.register(registered)  # twice is harmless
    path = str(tmp_path / "rows")

    registered.range(7).write.format("parquet").mode("overwrite").save(path)

    assert registered.read.format("parquet").load(path).count() == 7
    assert registered.read.parquet(path).count() == 7
    assert registered.read.option("mergeSchema", "true").schema("id long").load(path).count() == 7


def test_errors_of_a_reader_say_what_to_change(registered: Any, golden: GoldenTables, tmp_path: Path) -> None:
    path = str(golden.get(TABLE).path)

    with pytest.raises(NotFound, match=str(tmp_path)):
        registered.read.format("hudi").load(str(tmp_path))
    with pytest.raises(Invalid, match="path"):
        registered.read.format("hudi").load()
    with pytest.raises(Invalid, match="schema"):
        registered.read.format("hudi").schema("id string").load(path)
    with pytest.raises(Invalid, match=r"begin\.instanttime"):
        registered.read.format("hudi").option("hoodie.datasource.query.type", "incremental").load(path)
    with pytest.raises(Invalid, match=r"as\.of\.instant|as_of"):
        registered.read.format("hudi").option("as.of.instant", "yesterday").load(path)
    with pytest.raises(Invalid, match=r"'incremental', with option '[a-z.]+\.format'='cdc'"):
        registered.read.format("hudi").option("hoodie.datasource.query.type", "cdc").load(path)


@pytest.mark.parametrize(
    "name", ["cow_cdc_ops_simple_data_before_after_v9_h120", "mor_cdc_ops_simple_op_key_only_v9_h120"]
)
def test_change_data_are_those_of_this_process(registered: Any, golden: GoldenTables, name: str) -> None:
    table = HudiTable.open(golden.get(name).path)
    start = table.timeline()[0].requested
    reader = registered.read.format("hudi").options(
        **{
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.query.incremental.format": "cdc",
            "hoodie.datasource.read.begin.instanttime": start,
        }
    )

    texts = reader.load(str(golden.get(name).path))
    whole = table.cdc(start, columns=["id", "dec10", "tms"], where="ts > 235")

    assert_same_rows(collected(texts), table.cdc(start).as_json().to_arrow())
    assert_same_rows(collected(whole.to_spark(registered)), whole.to_arrow())
    assert collected(table.cdc("2030-01-01").to_spark(registered)).num_rows == 0
