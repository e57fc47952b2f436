"""The figures as text: a Markdown table that reads well on a terminal too, and JSON."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict

from bench.bulk_and_upsert import (
    BULK_INSERT,
    DRIVER_MEMORY,
    HUDI_VERSION,
    SIDES_BY_KEY,
    Measure,
    Results,
    Side,
)
from bench.data import BenchInput

HEADINGS = (
    "operation", "side", "wall s", "min to max", "processor s", "files", "MB", "× Hudi", "× Parquet"
)  # fmt: skip


def format_markdown(results: Results, data: BenchInput, *, warm_up: BenchInput, rounds: int) -> str:
    """A table, one line an operation and side, and under it how it was measured."""
    rows = [
        _row(results, operation, side)
        for operation in results.measures
        for side in SIDES_BY_KEY.values()
        if side.name in results.measures[operation]
    ]
    lines = [
        f"### Bulk insert of {data.rows:,} rows and upsert of {data.changed_rows:,} of them",
        "",
        *_table(HEADINGS, rows),
        "",
        f"Twelve columns, ten partitions; the changed rows are spread over all files. Medians of {rounds} "
        f"interleaved rounds after one of {warm_up.rows:,} rows that is not counted. `local[2]`, "
        f"driver memory {DRIVER_MEMORY}, {os.cpu_count()} processors ({platform.machine()}). Copy-on-write, "
        "SIMPLE index and default settings on both sides. Processor seconds are those of all processes. "
        f"“× Hudi” is the time of the side as a share of that of Apache Hudi {HUDI_VERSION} (Spark 3.5); "
        "“× Parquet” as a share of that of Spark's plain partitioned Parquet write on the same Spark. "
        "Every table was read back by Apache Hudi and held the right rows. Files and MB are all base files "
        "on disk, the replaced ones too.",
    ]
    for name, reason in results.failures.items():
        lines += ["", f"Left out: {name}. {reason.splitlines()[0]}"]
    return "\n".join(lines) + "\n"


def describe_results(results: Results, data: BenchInput, *, rounds: int) -> dict[str, object]:
    """The same as values for JSON, every measure by itself."""
    return {
        "rows": data.rows,
        "changed_rows": data.changed_rows,
        "rounds": rounds,
        "processors": os.cpu_count(),
        "driver_memory": DRIVER_MEMORY,
        "measures": {
            operation: {name: [asdict(measure) for measure in taken] for name, taken in by_side.items()}
            for operation, by_side in results.measures.items()
        },
        "failures": results.failures,
    }


def _row(results: Results, operation: str, side: Side) -> tuple[str, ...]:
    taken: list[Measure] = results.measures[operation][side.name]
    walls = [measure.wall_s for measure in taken]
    processors = [measure.processor_s for measure in taken if measure.processor_s is not None]
    plain = SIDES_BY_KEY["parquet43" if side.session == "spark43" else "parquet35"]
    return (
        operation,
        side.name,
        f"{statistics.median(walls):.2f}",
        f"{min(walls):.2f} to {max(walls):.2f}",
        f"{statistics.median(processors):.2f}" if processors else "",
        f"{statistics.median(measure.files for measure in taken):.0f}",
        f"{statistics.median(measure.size_bytes for measure in taken) / 1e6:,.0f}",
        _ratio(results, operation, side, SIDES_BY_KEY["hudi35"], operation),
        _ratio(results, operation, side, plain, BULK_INSERT),
    )


def _ratio(results: Results, operation: str, side: Side, base: Side, base_operation: str) -> str:
    """Upserts are held against the plain Parquet bulk write: it cannot upsert, and would write all anew."""
    ours = results.median_wall_s(operation, side)
    theirs = results.median_wall_s(base_operation, base)
    return "" if ours is None or theirs is None else f"{ours / theirs:.2f}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in (headings, *rows)) for i in range(len(headings))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * width if i < 2 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return [line(headings), line(rule), *(line(row) for row in rows)]
