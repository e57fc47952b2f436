"""`python -m bench.clusterings`: clustering beside Apache Hudi on the same Spark, and beside deltalake in this process.

* On Spark 3.5: each side writes the rows and clusters them, sorted by two columns, by lines and along a curve.
* In a process: pyhudi along the Z curve, and `optimize.z_order` of deltalake, of one partition in 8 files.
* Copying: the same files joined without a sort, once with their row groups copied, once decoded, in MB of base files.
* Skipping: the files that range queries by either column cannot leave out, before a clustering and after it.

Sides take turns, and each round begins with new tables. Wall and processor seconds are medians; the first round on
Spark warms up. Prints tables, and writes them to `build/bench/clusterings.md`.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds

from bench.data import BenchInput, make_input
from bench.on_spark import SIDES_BY_KEY, STEP_WAIT_S, start_worker
from bench.processor import read_processor_seconds
from pyhudi import HudiTable
from tests.support.reference.environment import PROJECT

OUTPUT = PROJECT / "build" / "bench"
COLUMNS = ("n_int", "n_long")
LAYOUTS = ("linear", "z-order", "hilbert")
PLAN = "hoodie.clustering.plan.strategy"
SIDES = ("hudi35", "pyhudi35")
FILES = 64
QUERIES = 40
SELECTED = 0.03


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.clusterings", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count (%(default)s)")
    parser.add_argument("--no-spark", action="store_true", help="leave out the part on Spark")
    arguments = parser.parse_args()
    rounds: int = arguments.rounds

    scratch = OUTPUT / "clusterings"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    data = make_input(OUTPUT, rows=arguments.rows)
    parts = [in_process(data, scratch, rounds), copying(data, scratch, rounds), skipping(data, scratch)]
    if not arguments.no_spark:
        parts.insert(0, on_spark(data, scratch, rounds))

    lines: list[str] = []
    for part in parts:
        for line in part:
            print(line, flush=True)
            lines.append(line)
    (OUTPUT / "clusterings.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shutil.rmtree(scratch)
    return 0


def on_spark(data: BenchInput, scratch: Path, rounds: int) -> Iterator[str]:
    """The seconds that each side takes to sort the rows of its table by two columns."""
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with contextlib.ExitStack() as stack:
        sides = [SIDES_BY_KEY[key] for key in SIDES]
        workers = {side.session: stack.enter_context(start_worker(side.session, scratch)) for side in sides}
        for number in range(rounds + 1):
            for layout in ("linear", "hilbert"):
                for side in sides:
                    worker, path = workers[side.session], scratch / f"{side.format}-spark"
                    write = {"operation": "bulk_insert", "table_type": "COPY_ON_WRITE", "properties": {}}
                    named = {"path": str(path), "format": side.format}
                    worker.ask("bench_write", wait_s=STEP_WAIT_S, input=str(data.inserted), **named, **write)
                    before = read_processor_seconds(worker.pid) or 0.0
                    wall_s = worker.ask("cluster", wait_s=STEP_WAIT_S, columns=list(COLUMNS), layout=layout, **named)
                    used_s = (read_processor_seconds(worker.pid) or 0.0) - before
                    found = workers["hudi35"].ask("summary", wait_s=STEP_WAIT_S, path=str(path), format="hudi")
                    assert found == {"rows": data.rows, "keys": data.rows, "total": data.sum_inserted}, found
                    if number:
                        taken.setdefault((layout, side.name), []).append((wall_s, used_s))
                    shutil.rmtree(path)

    yield "| on Spark: layout | side | wall s | processor s |"
    yield "|---|---|---|---|"
    for (layout, name), seconds in taken.items():
        yield f"| {layout} | {name} | {_medians(seconds)} |"
    yield ""


def in_process(data: BenchInput, scratch: Path, rounds: int) -> Iterator[str]:
    """pyhudi and deltalake along the Z curve, each of the same rows in 8 files."""
    yield "| in a process: side | wall s | processor s |"
    yield "|---|---|---|"
    taken: dict[str, list[tuple[float, float]]] = {"pyhudi": [], "deltalake": []}
    for _ in range(rounds):
        path = scratch / "pyhudi"
        table = a_table(path, data)
        sorted_by = {f"{PLAN}.sort.columns": ",".join(COLUMNS), "hoodie.layout.optimize.strategy": "z-order"}
        taken["pyhudi"].append(_timed(lambda t=table, o=sorted_by: t.cluster(options=o)))  # type: ignore[misc]
        shutil.rmtree(path)
        for file in input_files(data):
            deltalake.write_deltalake(str(path), file, mode="append")
        delta = deltalake.DeltaTable(str(path))
        taken["deltalake"].append(_timed(lambda t=delta: t.optimize.z_order(list(COLUMNS))))  # type: ignore[misc]
        shutil.rmtree(path)
    for side, seconds in taken.items():
        yield f"| {side} | {_medians(seconds)} |"
    yield ""


def copying(data: BenchInput, scratch: Path, rounds: int) -> Iterator[str]:
    """8 files joined without a sort."""
    yield "| joined without a sort | wall s | processor s | MB/s by processor |"
    yield "|---|---|---|---|"
    # Another codec is asked for, so that rows are decoded. What the codec itself costs is told by the third line.
    kinds = {"row groups copied": "zstd", "decoded, zstd to snappy": "snappy", "decoded, snappy to zstd": "zstd"}
    for kind, codec in kinds.items():
        first = "snappy" if kind.startswith("decoded, snappy") else "zstd"
        seconds, size_bytes = [], 0
        for _ in range(rounds):
            path = scratch / "copied"
            table = a_table(path, data, codec=first)
            size_bytes = sum(file.stat().st_size for file in base_files(path))
            options = {"hoodie.parquet.compression.codec": codec}
            seconds.append(_timed(lambda t=table, o=options: t.cluster(options=o)))  # type: ignore[misc]
            shutil.rmtree(path)
        rate = size_bytes / 1e6 / statistics.median(used for _, used in seconds)
        yield f"| {kind} | {_medians(seconds)} | {rate:,.0f} |"
    yield ""


def skipping(data: BenchInput, scratch: Path) -> Iterator[str]:
    """Files that a range of 3 % of a column's values leaves to be read, as `Scan.files` tells."""
    yield f"| files read by a range of {SELECTED:.0%} of | {' | '.join(COLUMNS)} | both |"
    yield "|---|---|---|---|"
    for layout in ("as written", *LAYOUTS):
        path = scratch / "skipping"
        table = a_table(path, data, properties={"hoodie.metadata.index.column.stats.enable": "true"})
        size_bytes = sum(file.stat().st_size for file in base_files(path))
        options = {f"{PLAN}.target.file.max.bytes": str(size_bytes // FILES)}
        if layout != "as written":
            options |= {f"{PLAN}.sort.columns": ",".join(COLUMNS), "hoodie.layout.optimize.strategy": layout}
        else:
            options |= {"hoodie.parquet.compression.codec": "snappy", "hoodie.parquet.block.size": "4000000"}
        files = table.cluster(options=options).files
        shares = [_files_read(table, columns) / files for columns in ((COLUMNS[0],), (COLUMNS[1],), COLUMNS)]
        yield f"| {layout}, {files} files | {' | '.join(f'{share:.1%}' for share in shares)} |"
        shutil.rmtree(path)


def _files_read(table: HudiTable, columns: tuple[str, ...]) -> float:
    """The mean number of files that queries read. Ranges lie evenly between a column's least and greatest value."""
    rows = table.scan(list(columns), meta_fields=False).to_arrow()
    in_order = {name: rows.column(name).combine_chunks().sort() for name in columns}
    counts = []
    for number in range(QUERIES):
        ranges = []
        for place, name in enumerate(columns):
            # The two ranges of a query lie at different shares of their columns.
            start = int(len(rows) * (1 - SELECTED) * ((number + place * QUERIES / 2) % QUERIES) / QUERIES)
            low, high = in_order[name][start], in_order[name][start + int(len(rows) * SELECTED)]
            ranges.append(f"{name} BETWEEN {low} AND {high}")
        counts.append(len(list(table.scan(where=" AND ".join(ranges)).files())))
    return statistics.mean(counts)


def a_table(
    path: Path, data: BenchInput, *, codec: str = "zstd", properties: dict[str, str] | None = None
) -> HudiTable:
    """A table without partitions, of a file for each file of the input."""
    known = {"hoodie.parquet.small.file.limit": "0", **(properties or {})}
    table = HudiTable.create(path, name="bench", record_key="id", ordering="ts", properties=known)
    for file in input_files(data):
        table.bulk_insert(
            file, options={"hoodie.parquet.compression.codec": codec, "hoodie.parquet.max.file.size": "2000000000"}
        )
    return table


def input_files(data: BenchInput) -> Iterator[pa.Table]:
    for file in sorted(data.inserted.glob("*.parquet")):
        yield ds.dataset(file).to_table()


def base_files(path: Path) -> list[Path]:
    return [file for file in path.rglob("*.parquet") if ".hoodie" not in file.parts]


def _timed(step: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds."""
    wall, used = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - wall, time.process_time() - used


def _medians(seconds: list[tuple[float, float]]) -> str:
    return (
        f"{statistics.median(wall for wall, _ in seconds):.2f} | {statistics.median(used for _, used in seconds):.2f}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
