"""The demo's steps: what it writes, what it asks, and the checks that each was right."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from demo.flights_data import KEY, ORDERING, PARTITION, Flights, months, read_airlines, sorted_by_key
from demo.report import Report
from pyhudi import HudiTable, WriteResult

NAME = "flights"
FIRST_LOAD = (1, 6)
LATER_MONTHS = {7: "July", 8: "August", 9: "September", 10: "October", 11: "November", 12: "December"}
STEPS = 15
CARRIERS_SHOWN = 8
CHANGES_SHOWN = 5

Answer: TypeAlias = tuple[str, Sequence[str], Sequence[Sequence[object]]]
"""A small table: its title, the names of its columns, its rows."""


class Mismatch(Exception):
    """The table does not hold what was put in."""


class InTheWay(Exception):
    """Something that is not the demo's lies where its table should go."""


@dataclass(frozen=True)
class Written:
    """The table, and the two commits that the queries are about."""

    table: HudiTable
    last_load: WriteResult
    corrections: WriteResult


def make_way(path: Path, name: str) -> None:
    """Remove the table of an earlier run, which has this name. Raises: InTheWay for anything else that lies there."""
    if not path.exists():
        return
    is_ours = HudiTable.exists(path) and HudiTable.open(path).name == name
    if not is_ours and (not path.is_dir() or any(path.iterdir())):
        raise InTheWay(f"{path}: expected nothing or the demo's own table, found other files; choose another --path")
    shutil.rmtree(path)


def stage(flights: Flights, folder: Path) -> None:
    """The input as Parquet files, as a job would find it."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(flights.rows, folder / "flights.parquet")
    pq.write_table(flights.corrections, folder / "corrections.parquet")


def write_all(report: Report, spark: SparkSession, flights: Flights, staged: Path, path: Path) -> Written:
    """Every write, each held against the input."""
    with report.step("create the table"):
        table = HudiTable.create(
            path,
            name=NAME,
            record_key=KEY,
            partition_by=PARTITION,
            ordering=ORDERING,
            properties={"hoodie.datasource.write.hive_style_partitioning": True},
        )
    everything = spark.read.parquet(str(staged / "flights.parquet"))
    first, last = FIRST_LOAD
    with report.step("bulk insert January-June") as cost:
        result = table.bulk_insert(everything.where(f.col("month").between(first, last)))
        cost.of_write(result)
    expect_counts(result, inserted=months(flights.rows, first, last).num_rows)
    for month, name in LATER_MONTHS.items():
        with report.step(f"upsert {name}") as cost:
            result = table.upsert(everything.where(f.col("month") == month))
            cost.of_write(result)
        expect_counts(result, inserted=months(flights.rows, month, month).num_rows)
    with report.step("upsert corrected delays") as cost:
        corrections = table.upsert(spark.read.parquet(str(staged / "corrections.parquet")))
        cost.of_write(corrections)
    expect_counts(corrections, updated=flights.corrections.num_rows)
    with report.step("delete, without Spark") as cost:
        deletes = table.delete(flights.cancelled.select(list(KEY)))  # Arrow data: the work is done in this process
        cost.of_write(deletes)
    expect_counts(deletes, deleted=flights.cancelled.num_rows)
    return Written(table, last_load=result, corrections=corrections)


def expect_counts(result: WriteResult, *, inserted: int = 0, updated: int = 0, deleted: int = 0) -> None:
    """Hold what a write did against what was asked of it. Raises: Mismatch."""
    found = {"inserted": result.inserted, "updated": result.updated, "deleted": result.deleted}
    wanted = {"inserted": inserted, "updated": updated, "deleted": deleted}
    if found != wanted:
        raise Mismatch(f"{result.operation} at {result.requested}: expected {wanted}, found {found}")


def snapshot_query(spark: SparkSession, flights: Flights, path: Path) -> Answer:
    """Flights and delays by carrier, of the table as it is now."""
    now = spark.read.format("hudi").load(str(path))
    by_carrier = now.groupBy("carrier").agg(
        f.count(f.lit(1)).alias("flights"), f.avg("dep_delay").alias("departure"), f.avg("arr_delay").alias("arrival")
    )
    found = sorted(by_carrier.collect(), key=lambda row: -row["flights"])
    expect_equal(
        "flights of the snapshot", sum(row["flights"] for row in found), flights.rows.num_rows - len(flights.cancelled)
    )
    names = read_airlines()
    rows = [(names[r["carrier"]], r["flights"], r["departure"], r["arrival"]) for r in found[:CARRIERS_SHOWN]]
    title = f"Snapshot: mean delays in minutes, the {CARRIERS_SHOWN} largest of {len(found)} carriers"
    return title, ("carrier", "flights", "departure", "arrival"), rows


def time_travel_query(spark: SparkSession, flights: Flights, written: Written, path: Path) -> Answer:
    """The table before the corrections beside the table now."""
    reader = spark.read.format("hudi")
    before = state_of(reader.option("as.of.instant", written.last_load.requested).load(str(path)))
    now = state_of(spark.read.format("hudi").load(str(path)))
    expect_equal("flights before the corrections", before[0], flights.rows.num_rows)
    expect_equal("delays missing before the corrections", before[1], flights.corrections.num_rows)
    expect_equal("delays missing now", now[1], 0)
    names = ("flights", "landed, delay missing", "mean arrival delay")
    rows = list(zip(names, before, now, strict=True))
    return f"Time travel: as of {written.last_load.requested}, and now", ("", "then", "now"), rows


def state_of(rows: DataFrame) -> tuple[int, int, float]:
    """The number of flights, of those that landed without a delay, and the mean arrival delay."""
    is_missing = f.col("arr_time").isNotNull() & f.col("arr_delay").isNull()
    found = rows.agg(f.count(f.lit(1)), f.count_if(is_missing), f.avg("arr_delay")).collect()[0]
    return found[0], found[1], found[2]


def incremental_query(spark: SparkSession, flights: Flights, written: Written, path: Path) -> Answer:
    """The rows that the corrections changed, and no others."""
    changed = (
        spark.read.format("hudi")
        .option("hoodie.datasource.query.type", "incremental")
        .option("hoodie.datasource.read.begin.instanttime", written.last_load.completed)
        .option("hoodie.datasource.read.end.instanttime", written.corrections.completed)
        .load(str(path))
    )
    dated = changed.withColumn("at", f.date_format(ORDERING, "yyyy-MM-dd"))  # in the session's zone, UTC
    found = dated.orderBy(f.desc("arr_delay"), *KEY).collect()
    expect_equal("rows that the corrections changed", len(found), flights.corrections.num_rows)
    rows = [
        (f"2013-{r['month']:02}-{r['day']:02}", f"{r['carrier']}{r['flight']}", f"{r['origin']}-{r['dest']}",
         r["arr_delay"], r["at"])
        for r in found[:CHANGES_SHOWN]
    ]  # fmt: skip
    title = f"Incremental: {len(found):,} rows that the corrections changed, the latest {CHANGES_SHOWN} arrivals"
    return title, ("day", "flight", "route", "arr_delay", ORDERING), rows


def check_table(table: HudiTable, flights: Flights) -> None:
    """Read the whole table, without Spark, and compare every row and column with the input. Raises: Mismatch."""
    stored = sorted_by_key(table.scan(meta_fields=False).to_arrow())
    expected = sorted_by_key(flights.expected())
    expect_equal("rows of the table", stored.num_rows, expected.num_rows)
    expect_equal("columns of the table", stored.schema.names, expected.schema.names)
    for name in expected.schema.names:
        if not same_values(stored[name], expected[name]):
            raise Mismatch(f"column '{name}' of the table: expected the input's values, found others")


def same_values(stored: pa.ChunkedArray, expected: pa.ChunkedArray) -> bool:
    return stored.type == expected.type and stored.equals(expected)


def expect_equal(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise Mismatch(f"{what}: expected {expected}, found {found}")
