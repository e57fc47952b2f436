"""The demo's second table: a departures board, merge-on-read, to which reports come every few seconds.

Real: December's flights, and what became of each. Made here: that the board first knows the schedule only, and that
the reports of an hour of departure come in together.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from demo.flights_data import KEY, ORDERING, Flights, months, sorted_by_key
from demo.flights_steps import Answer, Mismatch, expect_counts, expect_equal, same_values
from demo.report import Report
from pyhudi import HudiTable

NAME = "departures"
MONTH = 12
HOURS = ((0, 7), (8, 10), (11, 13), (14, 16), (17, 19), (20, 23))
SECONDS_BETWEEN_REPORTS = 2.0
STEPS = 5 + len(HOURS)
REPORTED = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
"""The columns that are empty until a flight's report comes."""

PLANNED_BEFORE_S = 24 * 3600
"""The schedule is dated a day before the scheduled departure, so that a report is the later of the two."""


@dataclass
class Board:
    """What the steps saw. `growth`: of each report its flights, and the logs and their bytes after it."""

    table: HudiTable
    growth: list[tuple[str, int, int, float]] = field(default_factory=list)
    queries: list[tuple[str, float, int, int, float]] = field(default_factory=list)

    def answers(self) -> list[Answer]:
        growth = "Merge-on-read: reports go to logs, base files stay as they are"
        queries = "The same query before and after the compaction"
        return [
            (growth, ("departures of", "reports", "log files", "MB of logs"), self.growth),
            (queries, ("", "seconds", "flights", "departed", "mean delay"), self.queries),
        ]


def run_board(report: Report, spark: SparkSession, flights: Flights, path: Path) -> Board:
    """Load the schedule, take in the reports, ask, compact, ask again."""
    real = months(flights.rows, MONTH, MONTH)
    with report.step("create the board"):
        table = HudiTable.create(
            path, name=NAME, record_key=KEY, partition_by="origin", ordering=ORDERING, table_type="MERGE_ON_READ"
        )
    with report.step("bulk insert the schedule") as cost:
        result = table.bulk_insert(schedule_of(real))
        cost.of_write(result)
    expect_counts(result, inserted=real.num_rows)
    board = Board(table)
    for first, last in HOURS:
        started = time.perf_counter()
        reports = real.filter(pc.and_(pc.greater_equal(real["hour"], first), pc.less_equal(real["hour"], last)))
        with report.step(f"reports of {first:02}:00 to {last:02}:59") as cost:
            result = table.upsert(reports)
            cost.of_write(result)
        expect_counts(result, updated=reports.num_rows)
        logs, size_bytes = logs_of(table, path)
        board.growth.append((f"{first:02}:00 to {last:02}:59", reports.num_rows, logs, size_bytes / 1e6))
        time.sleep(max(0.0, SECONDS_BETWEEN_REPORTS - (time.perf_counter() - started)))
    with report.step("query, logs merged"):
        board.queries.append(("with logs", *timed(lambda: ask(spark, path))))
    with report.step("compaction"):
        table.compact(spark=spark)
    expect_equal("log files after the compaction", logs_of(table, path), (0, 0))
    with report.step("query, base files alone"):
        board.queries.append(("compacted", *timed(lambda: ask(spark, path))))
    expect_equal("answer after the compaction", board.queries[1][2:], board.queries[0][2:])
    check_board(table, real)
    return board


def schedule_of(rows: pa.Table) -> pa.Table:
    """The flights as they are planned: nothing of what will become of them."""
    for name in REPORTED:
        column = rows.schema.get_field_index(name)
        rows = rows.set_column(column, rows.schema.field(name), pa.nulls(rows.num_rows, rows.schema.field(name).type))
    planned = pc.subtract(rows[ORDERING], pa.scalar(PLANNED_BEFORE_S, pa.duration("s")))
    return rows.set_column(rows.schema.get_field_index(ORDERING), ORDERING, planned)


def logs_of(table: HudiTable, path: Path) -> tuple[int, int]:
    """How many logs a query reads, and their bytes."""
    logs = [file for file in table.scan().files() if ".log." in file]
    return len(logs), sum((path / file).stat().st_size for file in logs)


def ask(spark: SparkSession, path: Path) -> DataFrame:
    """Flights, how many of them have departed, and their mean delay."""
    board = spark.read.format("hudi").load(str(path))
    departed = f.count(f.col("dep_time"))
    return board.agg(f.count(f.lit(1)).alias("flights"), departed.alias("departed"), f.avg("dep_delay").alias("delay"))


def timed(query: Callable[[], DataFrame]) -> tuple[float, int, int, float]:
    """Seconds and the answer."""
    started = time.perf_counter()
    row = query().collect()[0]
    return time.perf_counter() - started, row["flights"], row["departed"], row["delay"]


def check_board(table: HudiTable, real: pa.Table) -> None:
    """Compare every row and column, without Spark, with the flights as they were. Raises: Mismatch."""
    stored, expected = sorted_by_key(table.scan(meta_fields=False).to_arrow()), sorted_by_key(real)
    for name in expected.schema.names:
        if not same_values(stored[name], expected[name]):
            raise Mismatch(f"column '{name}' of the board: expected what became of the flights, found something else")
