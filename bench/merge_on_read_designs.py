"""`python -m bench.merge_on_read_designs`: each way in which Spark reads slices with logs, beside plain Parquet.

For each share of updated rows: a table of ten files with so many rows in its logs, and the same rows as plain Parquet.
Sides take turns; the first round warms up and is not counted. Every table is read in all ways and checked first.
Needs PySpark 4.3. Prints a table, and writes it to `build/bench/merge_on_read_designs.md`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from bench.data import SEED, make_input, make_rows
from bench.processor import read_processor_seconds
from bench.worker import KEY, ORDERING, PARTITION, bench_commands, open_rows
from pyhudi import HudiTable
from pyhudi.engine.spark.read import local_rows, merge_design
from tests.support.reference.environment import PROJECT
from tests.support.reference.server import Handler, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTPUT = PROJECT / "build" / "bench"
SESSION = {"spark.master": "local[2]", "spark.driver.memory": "4g", "spark.ui.enabled": "false"}
CASES: Mapping[str, tuple[float, int]] = {
    "1 %": (0.01, 1),
    "10 commits of 1 %": (0.01, 10),
    "50 commits of 0.2 %": (0.002, 50),
    "10 %": (0.1, 1),
    "100 %": (1.0, 1),
}
"""The share of the rows that a delta commit updates, and how many of these there are."""

PARQUET = "plain Parquet"
STANDING = "standing rows"
APART, APART_BY_TASKS = "apart, driver", "apart, tasks"
WHOLE, WHOLE_BY_TASKS = "whole, driver", "whole, tasks"
SIDES = (PARQUET, STANDING, APART, APART_BY_TASKS, WHOLE, WHOLE_BY_TASKS)
EVER = 1 << 60
STEPS = ("aggregate", "sums", "full_scan")
TITLES = {"aggregate": "aggregate by partition", "sums": "sums of all numbers", "full_scan": "full scan"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.merge_on_read_designs", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of each table (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count (%(default)s)")
    parser.add_argument("--cases", default=",".join(CASES), help="of: %(default)s")
    arguments = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUTPUT) as scratch:
        tables = make_tables(Path(scratch), arguments.cases.split(","), rows=arguments.rows)
        spark = start_session(SESSION)
        spark.sparkContext.setLogLevel("ERROR")
        text = measure(spark, tables, rounds=arguments.rounds)
        spark.stop()
    (OUTPUT / "merge_on_read_designs.md").write_text(text)
    print(text)
    return 0


def make_tables(folder: Path, cases: Sequence[str], *, rows: int) -> dict[str, Path]:
    """A table for each case, and beside it, with `.parquet` behind its name, its rows as plain Parquet."""
    inserted = pq.read_table(make_input(OUTPUT, rows=rows).inserted).sort_by(KEY)
    base = HudiTable.create(
        folder / "base", name="bench", record_key=KEY, partition_by=PARTITION, ordering=ORDERING,
        table_type="MERGE_ON_READ", properties={"hoodie.compact.inline": "false"},
    )  # fmt: skip
    base.bulk_insert(inserted)
    partition = np.array([int(text.rpartition("-")[2]) for text in inserted[PARTITION].to_pylist()])
    random = np.random.default_rng(SEED)
    tables = {}
    for number, case in enumerate(cases):
        share, commits = CASES[case]
        path = folder / f"case-{number}"
        shutil.copytree(folder / "base", path)
        for commit in range(commits):
            ids = np.sort(random.choice(rows, int(rows * share), replace=False))
            HudiTable.open(path).upsert(make_rows(random, ids, partition[ids], ts=2 + commit))
        merged = HudiTable.open(path).scan(meta_fields=False).to_arrow()
        pq.write_to_dataset(merged, f"{path}.parquet", partition_cols=[PARTITION], compression="zstd")
        tables[case] = path
    return tables


def measure(spark: SparkSession, tables: Mapping[str, Path], *, rounds: int) -> str:
    """A Markdown table: medians of wall seconds and of processor seconds."""
    commands = {**bench_commands(spark), "sums": lambda path, format: _sums(spark, path, format)}
    lines = [f"| updated rows | step | {' | '.join(SIDES)} |", "| --- | --- |" + " ---: |" * len(SIDES)]
    for case, path in tables.items():
        _check(commands, path)
        taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for number in range(rounds + 1):
            for step in STEPS:
                for side in SIDES:
                    found = _timed(commands[step], side, path)
                    if number:
                        taken.setdefault((step, side), []).append(found)
        for step in STEPS:
            cells = [_cell(taken[step, side]) for side in SIDES]
            lines.append(f"| {case} | {TITLES[step]} | {' | '.join(cells)} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def _check(commands: Mapping[str, Callable[..., object]], path: Path) -> None:
    answers = []
    for side in SIDES:
        use_design(side)
        answers.append(commands["summary"](path=_place(side, path), format=_format(side)))
    if any(answer != answers[0] for answer in answers):
        raise SystemExit(f"{path}: expected the same rows of every side, found {answers}")


def use_design(side: str) -> None:
    """Read slices with logs in this way, whatever their sizes are."""
    is_whole, is_by_tasks = side in (WHOLE, WHOLE_BY_TASKS), side in (APART_BY_TASKS, WHOLE_BY_TASKS)
    local_rows.KEPT_S = 0.0  # type: ignore[misc]
    merge_design.NATIVE_BYTES_MIN = 0  # type: ignore[misc]
    merge_design.LOG_SHARE_MAX = -1 if is_whole else EVER  # type: ignore[misc]
    merge_design.BASE_BYTES_A_BLOCK = 1 if side == STANDING else EVER  # type: ignore[misc]
    merge_design.DRIVER_LOG_BYTES_MAX = EVER  # type: ignore[misc]
    merge_design.DRIVER_BYTES_MAX = merge_design.WHOLE_ON_DRIVER_BYTES_MAX = -1 if is_by_tasks else EVER  # type: ignore[misc]


def _timed(step: Handler, side: str, path: Path) -> tuple[float, float]:
    use_design(side)
    before = read_processor_seconds(os.getpid())
    wall_s = float(step(path=_place(side, path), format=_format(side)))
    after = read_processor_seconds(os.getpid())
    return wall_s, 0.0 if before is None or after is None else after - before


def _sums(spark: SparkSession, path: str, format: str) -> float:
    started = time.perf_counter()
    names = ("n_int", "n_long", "n_double", "price", "ts")
    open_rows(spark, path, format).agg(dict.fromkeys(names, "sum")).collect()
    return time.perf_counter() - started


def _place(side: str, path: Path) -> str:
    return f"{path}.parquet" if side == PARQUET else str(path)


def _format(side: str) -> str:
    return "parquet" if side == PARQUET else "pyhudi"


def _cell(taken: Sequence[tuple[float, float]]) -> str:
    wall_s, processor_s = (statistics.median(values) for values in zip(*taken, strict=True))
    return f"{wall_s:.2f} ({processor_s:.1f})"


if __name__ == "__main__":
    sys.exit(main())
