"""`python -m bench.bootstrap`: a folder of Parquet files becomes a table by metadata only, beside Apache Hudi.

Both sides bootstrap the same folder into a new table, in turns; the first round warms up and does not count. Then each
reads its table back: the number of rows must be that of the folder. Apache Hudi works on Spark 3.5, with the compilers
of the JVM as they come; pyhudi works in this process.
Writes `build/bench/bootstrap.md` and `.json`. Ends with 1 where a side finds another number of rows.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.on_spark import HUDI_VERSION
from bench.report import markdown_table
from pyhudi import HudiTable
from tests.support.reference.client import Worker, hudi_settings
from tests.support.reference.environment import PROJECT, reference_java_home, reference_python

OUTPUT = PROJECT / "build" / "bench"
PARTITIONS = 20
HUDI = f"Apache Hudi {HUDI_VERSION}, Spark 3.5"
OURS = "pyhudi, no Spark"

Side = Callable[[Path, Path], int]
"""Bootstraps the source, given first, to the table, given next, and returns the number of rows read back."""


def make_source(folder: Path, *, files: int, rows: int) -> None:
    """`files` files of `rows` rows each, in folders `part=N`."""
    for number in range(files):
        place = folder / f"part={number % PARTITIONS}"
        place.mkdir(parents=True, exist_ok=True)
        first = number * rows
        table = pa.table(
            {
                "id": [f"key-{n:012d}" for n in range(first, first + rows)],
                "ts": pa.array(range(first, first + rows), pa.int64()),
                **{f"c{column}": pa.array([n * column % 1_009 for n in range(rows)]) for column in range(6)},
            }
        )
        pq.write_table(table, place / f"{number:05d}.parquet")


def ours(source: Path, path: Path) -> int:
    table = HudiTable.bootstrap(
        source, path, name="bench", record_key="id", partition_by="part", ordering="ts", table_version=9
    )
    return table.scan().count()


def theirs(worker: Worker, empty: Path) -> Side:
    options = {
        "hoodie.table.name": "bench",
        "hoodie.datasource.write.operation": "bootstrap",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector",
        "hoodie.bootstrap.parallelism": "4",
        "hoodie.metadata.index.column.stats.enable": "false",  # 1.2.0 fails on a bootstrap with it
    }

    def run(source: Path, path: Path) -> int:
        place = {"hoodie.bootstrap.base.path": source.as_uri()}
        worker.ask("write", path=str(path), input=str(empty), options=options | place, mode="overwrite", wait_s=3_600.0)
        return HudiTable.open(path).scan().count()

    return run


def measure(side: Side, source: Path, path: Path, *, rows: int) -> float:
    """Seconds of a bootstrap, with the read that counts its rows. Raises: SystemExit for another number of rows."""
    shutil.rmtree(path, ignore_errors=True)
    started = time.perf_counter()
    found = side(source, path)
    seconds = time.perf_counter() - started
    if found != rows:
        raise SystemExit(f"{path}: expected {rows:,} rows, found {found:,}")
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.bootstrap", description=__doc__)
    parser.add_argument("--files", type=int, default=1_000, help="files of the source (%(default)s)")
    parser.add_argument("--rows", type=int, default=1_000, help="rows of each file (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count (%(default)s)")
    asked = parser.parse_args()

    folder = OUTPUT / "bootstrap"
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source"
    make_source(source, files=asked.files, rows=asked.rows)
    empty = folder / "empty"
    empty.mkdir()
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), *((f"c{n}", pa.int64()) for n in range(6))])
    pq.write_table(schema.append(pa.field("part", pa.int32())).empty_table(), empty / "none.parquet")

    worker = Worker(
        reference_python(), "tests.support.reference.server", java_home=reference_java_home(),
        spark_settings={"spark.driver.memory": "2g", **hudi_settings(HUDI_VERSION)},
    )  # fmt: skip
    found: dict[str, list[float]] = {HUDI: [], OURS: []}
    with worker:
        sides = {HUDI: theirs(worker, empty), OURS: ours}
        for number in range(asked.rounds + 1):
            for name, side in sides.items():
                seconds = measure(
                    side, source, folder / f"table-{list(sides).index(name)}", rows=asked.files * asked.rows
                )
                print(f"round {number}: {name}: {seconds:.2f} s", file=sys.stderr, flush=True)
                if number:
                    found[name].append(seconds)

    medians = {name: statistics.median(times) for name, times in found.items()}
    title = f"{asked.files:,} files of {asked.rows:,} rows, bootstrapped by metadata only and counted"
    lines = [
        [*name.split(", "), f"{seconds:.2f}", f"{medians[HUDI] / seconds:.1f}"] for name, seconds in medians.items()
    ]
    text = "\n".join([title, "", *markdown_table(["side", "works in", "seconds", "times as fast"], lines), ""])
    (OUTPUT / "bootstrap.md").write_text(text)
    (OUTPUT / "bootstrap.json").write_text(json.dumps({"title": title, "seconds": found}, indent=2) + "\n")
    print(text)
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
