"""The figures as text: Markdown tables that read well on a terminal too, and JSON."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict

from bench.data import BenchInput
from bench.in_process import ProcessResults
from bench.on_spark import DRIVER_MEMORY, EXECUTOR_MEMORY_MB, HUDI_VERSION, SIDES_BY_KEY, Measure, Results, Side
from bench.workload import AGGREGATE, BULK_INSERT, SCAN, Workload

HEADINGS = (
    "step", "side", "wall s", "min to max", "processor s", "peak GB", "files", "MB", "× Hudi", "× Parquet"
)  # fmt: skip
PROCESS_HEADINGS = ("step", "side", "wall s", "min to max", "processor s", "× pyhudi")


def format_spark(
    results: Results,
    data: BenchInput,
    workload: Workload,
    *,
    warm_up: BenchInput,
    rounds: int,
    readings: int = 1,
    on_cluster: bool = False,
) -> str:
    """A table, one line a step and side, and under it how it was measured."""
    rows = [
        _row(results, step, side)
        for step in results.measures
        for side in SIDES_BY_KEY.values()
        if side.name in results.measures[step]
    ]
    where = "`local[2]`"
    if on_cluster:
        where = f"A standalone Spark of two workers of one core and {EXECUTOR_MEMORY_MB:,} MB each"
    lines = [
        f"### On {'a cluster' if on_cluster else 'Spark'}: {workload}, {data.rows:,} rows",
        "",
        *markdown_table(HEADINGS, rows),
        "",
        f"Twelve columns, ten partitions; the changed rows are spread over all files. Medians of {rounds} "
        f"interleaved rounds after one of {warm_up.rows:,} rows that is not counted; of scan and aggregate "
        f"the median of {readings} in each. {where}, driver memory {DRIVER_MEMORY}, "
        f"{os.cpu_count()} processors ({platform.machine()}). "
        f"Default settings, {workload} on both Hudi sides. Processor seconds and memory are those of all "
        f"processes. “× Hudi” is the time of the side as a share of that of Apache Hudi {HUDI_VERSION} (Spark 3.5); "
        "“× Parquet” as a share of that of Spark's plain partitioned Parquet on the same Spark, for other writes of "
        "its bulk write. Steps follow each other on one table, in the order of the lines. Every write was read back, "
        "pyhudi's by Apache Hudi, and held the right rows. Files and MB are all data files on disk, the replaced ones "
        "too.",
    ]
    for name, reason in results.failures.items():
        lines += ["", f"Left out: {name}. {reason.splitlines()[0]}"]
    return "\n".join(lines) + "\n"


def format_in_process(results: ProcessResults, data: BenchInput, workload: Workload, *, rounds: int) -> str:
    """The same without Spark."""
    rows = []
    for step, by_side in results.measures.items():
        for side, taken in by_side.items():
            walls = [measure["wall_s"] for measure in taken]
            processor_s = statistics.median(measure["processor_s"] for measure in taken)
            ours = statistics.median(measure["wall_s"] for measure in by_side["pyhudi"]) if "pyhudi" in by_side else 0
            share = f"{statistics.median(walls) / ours:.2f}" if ours else ""
            rows.append((step, side, *_times(walls), f"{processor_s:.2f}", share))
    memory = ", ".join(f"{side} {size / 1e9:.1f} GB" for side, size in results.memory_bytes.items())
    lines = [
        f"### In one process without Spark: {workload}, {data.rows:,} rows",
        "",
        *markdown_table(PROCESS_HEADINGS, rows),
        "",
        f"The same rows, as Arrow tables in memory. Medians of {rounds} processes a side, in turns; in each, every "
        "step was done once before, to warm up. hudi-rs reads what pyhudi wrote. The most memory that a process "
        f"held, its input among it: {memory}.",
    ]
    for name, reason in results.failures.items():
        lines += ["", f"Left out: {name}. {reason}"]
    return "\n".join(lines) + "\n"


def describe_results(
    results: Results | None, in_process: ProcessResults | None, data: BenchInput, *, rounds: int
) -> dict[str, object]:
    """The same as values for JSON, every measure by itself."""
    values: dict[str, object] = {
        "rows": data.rows,
        "changed_rows": data.changed_rows,
        "rounds": rounds,
        "processors": os.cpu_count(),
        "driver_memory": DRIVER_MEMORY,
    }
    if results is not None:
        values["spark"] = {
            step: {name: [asdict(measure) for measure in taken] for name, taken in by_side.items()}
            for step, by_side in results.measures.items()
        }
    if in_process is not None:
        values["in_process"] = asdict(in_process)
    return values


def _row(results: Results, step: str, side: Side) -> tuple[str, ...]:
    taken: list[Measure] = results.measures[step][side.name]
    processors = [measure.processor_s for measure in taken if measure.processor_s is not None]
    plain = SIDES_BY_KEY["parquet43" if side.session == "spark43" else "parquet35"]
    return (
        step,
        side.name,
        *_times([measure.wall_s for measure in taken]),
        f"{statistics.median(processors):.2f}" if processors else "",
        f"{max(measure.memory_bytes for measure in taken) / 1e9:.1f}",
        f"{statistics.median(measure.files for measure in taken):.0f}",
        f"{statistics.median(measure.size_bytes for measure in taken) / 1e6:,.0f}",
        _ratio(results, step, side, SIDES_BY_KEY["hudi35"], step),
        _ratio(results, step, side, plain, step if step in (SCAN, AGGREGATE) else BULK_INSERT),
    )


def _times(walls: Sequence[float]) -> tuple[str, str]:
    return f"{statistics.median(walls):.2f}", f"{min(walls):.2f} to {max(walls):.2f}"


def _ratio(results: Results, step: str, side: Side, base: Side, base_step: str) -> str:
    """Upserts are held against the plain Parquet bulk write: it cannot upsert, and would write all anew."""
    ours, theirs = results.median_wall_s(step, side), results.median_wall_s(base_step, base)
    return "" if ours is None or theirs is None else f"{ours / theirs:.2f}"


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines; the first two columns are names, the others figures."""
    widths = [max(len(row[i]) for row in (headings, *rows)) for i in range(len(headings))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * width if i < 2 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return [line(headings), line(rule), *(line(row) for row in rows)]
