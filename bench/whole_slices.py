"""`python -m bench.whole_slices`: slices that Spark reads whole, merged by the driver and by tasks.

The two bounds of `engine/spark/read/` stand on it: up to how many bytes the driver merges
(`WHOLE_ON_DRIVER_BYTES_MAX`), and which partitions tasks read by a plan each (`PARTITION_BYTES_MIN`).
Every row of a table is updated once. Ways take turns; each query loads the table anew, so the driver merges anew. The
first round is not counted. Prints Markdown tables: medians of wall seconds, of processor seconds in brackets.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.data import SEED, make_rows
from bench.processor import read_processor_seconds
from bench.worker import KEY, ORDERING, PARTITION
from pyhudi import HudiTable
from pyhudi.engine.spark.read import local_rows, merge_design, merged
from tests.support.reference.environment import PROJECT
from tests.support.reference.server import start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OUTPUT = PROJECT / "build" / "bench"
SESSION = {"spark.master": "local[2]", "spark.driver.memory": "4g", "spark.ui.enabled": "false"}
DRIVER, TASKS = "driver", "tasks"
APART, TOGETHER = "a plan each", "one plan"
_PARTITIONS_MAX, _PARTITION_BYTES_MIN = merged.PARTITIONS_MAX, merged.PARTITION_BYTES_MIN


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.whole_slices", description=__doc__)
    parser.add_argument("--rows", default="250000,1000000,4000000", help="who merges: rows of tables (%(default)s)")
    parser.add_argument("--partitions", default="4,16,64,256", help="plans: partitions of tables (%(default)s)")
    parser.add_argument("--partitioned-rows", type=int, default=256_000, help="rows of each of these (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count (%(default)s)")
    arguments = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    OUTPUT.mkdir(parents=True, exist_ok=True)
    local_rows.KEPT_S = 0.0  # type: ignore[misc]

    with tempfile.TemporaryDirectory(dir=OUTPUT) as scratch:
        spark = start_session(SESSION)
        spark.sparkContext.setLogLevel("ERROR")
        for rows in [int(text) for text in arguments.rows.split(",") if text]:
            path = make_table(Path(scratch) / f"r{rows}", rows, partitions=10)
            measure(spark, path, f"{rows:,} rows", (DRIVER, TASKS), arguments.rounds)
        for partitions in [int(text) for text in arguments.partitions.split(",") if text]:
            path = make_table(Path(scratch) / f"p{partitions}", arguments.partitioned_rows, partitions=partitions)
            measure(spark, path, f"{partitions} partitions", (APART, TOGETHER), arguments.rounds)
        spark.stop()
    return 0


def make_table(path: Path, rows: int, *, partitions: int) -> Path:
    """A table with all of its rows in base files, and once more in logs."""
    table = HudiTable.create(
        path, name="bench", record_key=KEY, partition_by=PARTITION, ordering=ORDERING,
        table_type="MERGE_ON_READ", properties={"hoodie.compact.inline": "false"},
    )  # fmt: skip
    random = np.random.default_rng(SEED)
    of = random.integers(0, partitions, rows)
    table.bulk_insert(make_rows(random, np.arange(rows), of, ts=1))
    table.upsert(make_rows(random, np.arange(rows), of, ts=2))
    return path


def use_way(way: str) -> None:
    """Let the driver merge whatever the size is, or tasks, with this many plans."""
    merge_design.NATIVE_BYTES_MIN = 1 << 60  # type: ignore[misc]
    merge_design.WHOLE_ON_DRIVER_BYTES_MAX = 1 << 60 if way == DRIVER else -1  # type: ignore[misc]
    local_rows.FILES_BYTES_MAX = 1 << 60  # type: ignore[misc]
    merged.PARTITION_BYTES_MIN = 0 if way == APART else _PARTITION_BYTES_MIN
    merged.PARTITIONS_MAX = {APART: 1 << 30, TOGETHER: 0}.get(way, _PARTITIONS_MAX)


def measure(spark: SparkSession, path: Path, title: str, ways: tuple[str, str], rounds: int) -> None:
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
    plan = HudiTable.open(path).scan()._plan
    one = min(planned_file.partition for planned_file in plan.files)
    size_bytes = sum(planned_file.size_bytes for planned_file in plan.files)
    for number in range(rounds + 1):
        for name, query in QUERIES.items():
            for way in ways:
                use_way(way)
                found = _timed(partial(query, spark, path, one))
                if number:
                    taken.setdefault((name, way), []).append(found)
                gc.collect()

    for name in QUERIES:
        cells = [_cell(taken[name, way]) for way in ways]
        print(f"| {title} ({size_bytes >> 20:,} MiB) | {name} | {' | '.join(cells)} |", flush=True)


def _full_scan(spark: SparkSession, path: Path, one: str) -> None:
    _rows(spark, path).write.format("noop").mode("overwrite").save()


def _sum(spark: SparkSession, path: Path, one: str) -> None:
    _rows(spark, path).agg({"n_long": "sum"}).collect()


def _sum_of_one(spark: SparkSession, path: Path, one: str) -> None:
    rows = _rows(spark, path)
    rows.where(rows[PARTITION] == one).agg({"n_long": "sum"}).collect()


def _rows(spark: SparkSession, path: Path) -> DataFrame:
    return HudiTable.open(path).scan(meta_fields=False).to_spark(spark)


QUERIES: Mapping[str, Callable[[SparkSession, Path, str], None]] = {
    "full scan": _full_scan,
    "sum of a column": _sum,
    "of one partition": _sum_of_one,
}


def _timed(query: Callable[[], object]) -> tuple[float, float]:
    before, started = read_processor_seconds(os.getpid()), time.perf_counter()
    query()
    wall_s, after = time.perf_counter() - started, read_processor_seconds(os.getpid())
    return wall_s, 0.0 if before is None or after is None else after - before


def _cell(taken: list[tuple[float, float]]) -> str:
    wall_s, processor_s = (statistics.median(values) for values in zip(*taken, strict=True))
    return f"{wall_s:.2f} ({processor_s:.1f})"


if __name__ == "__main__":
    sys.exit(main())
