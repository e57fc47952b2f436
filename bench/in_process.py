"""Writes and reads without Spark: pyhudi, deltalake and hudi-rs, each in a process of its own, in turns."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.data import BenchInput
from bench.processor import MemoryWatch
from bench.workload import Workload
from tests.support.reference.environment import PROJECT

SIDES = {"COPY_ON_WRITE": ("pyhudi", "deltalake", "hudi-rs"), "MERGE_ON_READ": ("pyhudi", "hudi-rs")}
STEPS = ("bulk insert", "upsert 10 %", "upsert 1,000 rows", "full scan", "compaction")


@dataclass
class ProcessResults:
    """Wall and processor seconds by step and side, one entry a round; the most memory by side."""

    measures: dict[str, dict[str, list[dict[str, float]]]] = field(default_factory=lambda: {s: {} for s in STEPS})
    memory_bytes: dict[str, int] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def run(
    data: BenchInput, scratch: Path, *, workload: Workload, rounds: int, say: Callable[[str], None]
) -> ProcessResults:
    """Measure. A round starts each side anew; within its process each step is done once to warm up."""
    results = ProcessResults()
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        for side in SIDES[workload.table_type]:
            if side in results.failures:
                continue
            folder = scratch / f"process-{side}"
            command = [sys.executable, "-m", "bench.process_worker", side, str(folder)]
            command += [str(data.inserted), str(data.changed), str(data.few)]
            command += [workload.table_type, json.dumps(workload.properties)]
            process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            with MemoryWatch(process.pid) as memory:
                said, complaint = process.communicate()
            shutil.rmtree(folder, ignore_errors=True)
            if not said.strip():  # deltalake now and then aborts while its process ends, with its answer given
                results.failures[side] = (complaint.strip().splitlines() or ["no answer"])[-1]
                say(f"  {side:10} failed: {results.failures[side]}")
                continue
            answer = json.loads(said)
            scanned = data.sum_upserted if workload.table_type == "MERGE_ON_READ" else data.sum_upserted_few
            expected = {"rows": data.rows, "total": scanned}
            if answer["answer"] != expected:
                results.failures[side] = f"holds {answer['answer']}, expected {expected}"
                continue
            results.memory_bytes[side] = max(results.memory_bytes.get(side, 0), memory.peak_bytes)
            for step, measure in answer["measures"].items():
                if side != "hudi-rs" or step == "full scan":
                    results.measures[step].setdefault(side, []).append(measure)
            figures = ", ".join(f"{step} {measure['wall_s']:.2f} s" for step, measure in answer["measures"].items())
            say(f"  {side:10} {figures}")
    return results
