"""`python -m bench.indexes`: the metadata table's indexes beside Apache Hudi: built, asked for keys, and written by.

Every side gets a copy of one table that pyhudi wrote; sides take turns in each step, and the first round warms up.
Writes `build/bench/indexes.md` and `.json`. Ends with 1 where a side finds another number of keys.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.data import SEED, BenchInput, make_input
from bench.on_spark import HUDI_VERSION, start_worker
from bench.processor import read_processor_seconds
from bench.report import markdown_table
from bench.worker import KEY, ORDERING, PARTITION
from pyhudi import HudiTable
from pyhudi.format.schema.conversion import avro_from_arrow
from tests.support.reference.client import Worker
from tests.support.reference.environment import PROJECT

OUTPUT = PROJECT / "build" / "bench"
WAIT_S = 1_800.0
POINT_KEYS = 10

HUDI = f"Apache Hudi {HUDI_VERSION}, Spark 3.5"
SIDES: Mapping[str, tuple[str, str]] = {
    HUDI: ("hudi35", "hudi"),
    "pyhudi, Spark 3.5": ("spark35", "pyhudi"),
    "pyhudi, Spark 4.3": ("spark43", "pyhudi"),
    "pyhudi, no Spark": ("spark43", "arrow"),
}
"""The session that works for a side, and how."""

ENABLED = {
    "column_stats": "hoodie.metadata.index.column.stats.enable",
    "bloom_filters": "hoodie.metadata.index.bloom.filter.enable",
    "record_index": "hoodie.metadata.record.index.enable",
}
COLUMNS = "hoodie.metadata.index.column.stats.column.list"


@dataclass(frozen=True, slots=True)
class Step:
    """What a worker is asked. `expected`: the keys that it must find."""

    title: str
    command: str
    arguments: Mapping[str, Any]
    expected: int | None = None


def make_steps(data: BenchInput, schema: str, columns: str) -> list[Step]:
    """In their order upon one table."""
    keys = pq.read_table(data.inserted, columns=[KEY]).column(KEY).to_pylist()
    points = random.Random(SEED).sample(keys, POINT_KEYS)
    told = dict.fromkeys(ENABLED.values(), "false")
    steps = []
    for kind, key in ENABLED.items():
        told[key] = "true"  # what was built stays
        options = {**told, COLUMNS: columns, "hoodie.avro.schema": schema}
        steps.append(Step(f"build {kind}", "build", {"kind": kind, "options": options}))
    few, changed = str(data.few), str(data.changed)
    reading = {"hoodie.avro.schema": schema, "hoodie.embed.timeline.server": "false"}
    return [
        *steps,
        Step("tag 1,000 keys", "tag", {"input": few, "options": reading}, 1_000),
        Step(f"tag {data.changed_rows:,} keys", "tag", {"input": changed, "options": reading}, data.changed_rows),
        Step(f"{POINT_KEYS} queries, each for a key", "find", {"keys": points}, POINT_KEYS),
        Step(f"{POINT_KEYS} queries by SQL, each for a key", "ask", {"keys": points}, POINT_KEYS),
        Step("upsert 1,000 rows by record index", "upsert", {"input": few, "options": {**told, COLUMNS: columns}}),
    ]


Measures = dict[str, dict[str, list[tuple[float, float]]]]


def measure(data: BenchInput, base: Path, steps: list[Step], workers: Mapping[str, Worker], rounds: int) -> Measures:
    """Wall and processor seconds by step and side, one entry a round."""
    found: Measures = {step.title: {side: [] for side in SIDES} for step in steps}
    started = time.perf_counter()
    for number in range(rounds + 1):
        paths = {side: base.with_name(f"copy-{at}") for at, side in enumerate(SIDES)}
        for path in paths.values():
            shutil.copytree(base, path)
        for step in steps:
            for side, (session, format) in SIDES.items():
                os.sync()
                worker = workers[session]
                before = read_processor_seconds(worker.pid)
                answer = worker.ask(step.command, wait_s=WAIT_S, path=str(paths[side]), format=format, **step.arguments)
                after = read_processor_seconds(worker.pid)
                if answer.get("count") != step.expected:
                    raise SystemExit(f"{step.title}, {side}: expected {step.expected} keys, found {answer['count']}")
                taken = (float(answer["seconds"]), 0.0 if before is None or after is None else after - before)
                if number:
                    found[step.title][side].append(taken)
                print(
                    f"[{time.perf_counter() - started:5.0f} s] round {number}: {step.title}: {side}: {taken[0]:.3f} s",
                    file=sys.stderr,
                    flush=True,
                )
        for side, path in paths.items():
            _check(workers["hudi35"], data, side, path)
            shutil.rmtree(path)
    return found


def _check(judge: Worker, data: BenchInput, side: str, path: Path) -> None:
    """Apache Hudi reads what each side wrote."""
    found = judge.ask("summary", wait_s=WAIT_S, path=str(path), format="hudi")
    few = pq.read_table(data.few, columns=[KEY, "n_long"])
    before = pq.read_table(data.inserted, columns=[KEY, "n_long"])
    replaced = before.join(few.select([KEY]), KEY, join_type="left semi")
    total = data.sum_inserted - sum(replaced["n_long"].to_pylist()) + sum(few["n_long"].to_pylist())
    expected = {"rows": data.rows, "keys": data.rows, "total": total}
    if found != expected:
        raise SystemExit(f"{side}: expected {expected}, found {found}")


def report(found: Measures, *, rows: int, rounds: int) -> str:
    """The table for docs/benchmarks.md: medians, and how often a side does it while Apache Hudi does it once."""
    lines = []
    for step, by_side in found.items():
        theirs = statistics.median(wall_s for wall_s, _ in by_side[HUDI])
        for side, taken in by_side.items():
            walls = [wall_s for wall_s, _ in taken]
            wall_s, processor_s = (statistics.median(of) for of in zip(*taken, strict=True))
            range_s = f"{min(walls):.2f} to {max(walls):.2f}"
            lines.append((step, side, f"{wall_s:.2f}", range_s, f"{processor_s:.2f}", f"{theirs / wall_s:.1f}"))
    headings = ("step", "side", "wall s", "min to max", "processor s", "times as fast")
    what = (
        f"{rows:,} rows, twelve columns, ten partitions, copy-on-write, table version 9. Medians of {rounds} "
        f"interleaved rounds after one that is not counted; `local[2]`, {os.cpu_count()} processors. “Times as fast”: "
        "as Apache Hudi. A key is tagged when its file group is known; the keys are in memory before. Apache Hudi "
        "reads every table at the end of a round, and finds the right rows."
    )
    return "\n".join([*markdown_table(headings, lines), "", what]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.indexes", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the table (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count (%(default)s)")
    arguments = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    data = make_input(OUTPUT, rows=arguments.rows)
    scratch = OUTPUT / f"indexes_{os.getpid()}"
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        base = scratch / "base"
        rows = pq.read_table(data.inserted)
        table = HudiTable.create(
            base, name="bench", record_key=KEY, partition_by=PARTITION, ordering=ORDERING, table_version=9,
        )  # fmt: skip
        table.bulk_insert(rows)
        schema = avro_from_arrow(table.schema(), record_name="bench")
        steps = make_steps(data, schema, ",".join(rows.column_names))
        workers = {
            name: stack.enter_context(start_worker(name, scratch, module="bench.index_worker"))
            for name in dict.fromkeys(session for session, _ in SIDES.values())
        }
        found = measure(data, base, steps, workers, arguments.rounds)
    text = report(found, rows=arguments.rows, rounds=arguments.rounds)
    (OUTPUT / "indexes.md").write_text(text)
    (OUTPUT / "indexes.json").write_text(json.dumps(found, indent=1))
    print(text)


if __name__ == "__main__":
    main()
