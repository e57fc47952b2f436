"""Bulk insert and a 10 % upsert: plain Parquet, Apache Hudi and pyhudi, in turns.

A round is: every side bulk-inserts, then every side that can upserts into what it just wrote. Rounds
are interleaved, so that a slow minute of the machine hits all sides; the first one warms up and is
not counted. Every answer is checked before a figure counts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.data import BenchInput
from bench.processor import read_processor_seconds
from tests.support.reference.client import ReferenceFailed, Worker, hudi_settings
from tests.support.reference.environment import PROJECT, reference_java_home, reference_python

HUDI_VERSION = "1.2.0"
STEP_WAIT_S = 1_800.0
DRIVER_MEMORY = "4g"
SOURCE = PROJECT / "src"

BULK_INSERT = "bulk insert"
UPSERT = "upsert 10 %"


@dataclass(frozen=True, slots=True)
class Side:
    """One way to write the input. `session` names the worker; sides of one Spark share it."""

    name: str
    session: str
    command: str
    read_format: str
    can_upsert: bool


SIDES = (
    Side("Parquet, Spark 4.3", "spark43", "plain_bulk_insert", "parquet", can_upsert=False),
    Side("Parquet, Spark 3.5", "spark35", "plain_bulk_insert", "parquet", can_upsert=False),
    Side(f"Apache Hudi {HUDI_VERSION}, Spark 3.5", "hudi35", "hudi_write", "hudi", can_upsert=True),
    Side("pyhudi, Spark 4.3", "spark43", "pyhudi_write", "hudi", can_upsert=True),
    Side("pyhudi, Spark 3.5", "spark35", "pyhudi_write", "hudi", can_upsert=True),
)
SIDES_BY_KEY = dict(zip(("parquet43", "parquet35", "hudi35", "pyhudi43", "pyhudi35"), SIDES, strict=True))


@dataclass(frozen=True, slots=True)
class Measure:
    """One step of one side. Wall time is taken inside the worker, processor time of all its processes."""

    wall_s: float
    processor_s: float | None
    files: int
    size_bytes: int


@dataclass
class Results:
    """Measures by operation and side, and the sides that fell out, with the reason."""

    measures: dict[str, dict[str, list[Measure]]] = field(default_factory=lambda: {BULK_INSERT: {}, UPSERT: {}})
    failures: dict[str, str] = field(default_factory=dict)

    def median_wall_s(self, operation: str, side: Side) -> float | None:
        taken = self.measures[operation].get(side.name)
        return statistics.median(measure.wall_s for measure in taken) if taken else None


def start_worker(session: str) -> Worker:
    """A warm Spark of two threads that stays for the whole run."""
    settings = {"spark.driver.memory": DRIVER_MEMORY}
    module = "bench.worker"
    if session == "spark43":
        return Worker(Path(sys.executable), module, spark_settings=settings, python_path=[SOURCE])
    if session == "hudi35":
        settings |= hudi_settings(HUDI_VERSION)
    return Worker(
        reference_python(),
        module,
        spark_settings=settings,
        java_home=reference_java_home(),
        python_path=[SOURCE],
    )


def run(
    data: BenchInput,
    scratch: Path,
    *,
    warm_up: BenchInput,
    sides: Sequence[Side],
    rounds: int,
    say: Callable[[str], None],
) -> Results:
    """Measure; a side that fails is left out from then on, and its failure told."""
    results = Results()
    with contextlib.ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for session in dict.fromkeys([*(side.session for side in sides), "hudi35"]):  # hudi35 checks the answers
            started = time.perf_counter()
            workers[session] = stack.enter_context(start_worker(session))
            taken_s = time.perf_counter() - started
            say(f"{session}: Spark {workers[session].about['spark']} up in {taken_s:.1f} s")
        for number in range(rounds + 1):
            say("warm-up" if number == 0 else f"round {number} of {rounds}")
            with _fresh_folder(scratch) as folder:
                for operation in (BULK_INSERT, UPSERT):
                    for side in sides:
                        if side.name in results.failures or (operation == UPSERT and not side.can_upsert):
                            continue
                        try:
                            used = warm_up if number == 0 else data
                            measure = _run_step(side, operation, used, folder, workers)
                        except ReferenceFailed as failure:
                            results.failures[side.name] = f"{operation}: {failure}"
                            say(f"  {operation:12} {side.name:32} failed: {str(failure).splitlines()[0]}")
                            continue
                        if number > 0:
                            results.measures[operation].setdefault(side.name, []).append(measure)
                        say(f"  {operation:12} {side.name:32} {measure.wall_s:7.2f} s")
    return results


def _run_step(side: Side, operation: str, data: BenchInput, folder: Path, workers: dict[str, Worker]) -> Measure:
    worker = workers[side.session]
    path = folder / f"{side.session}-{side.command}"
    source = data.inserted if operation == BULK_INSERT else data.changed
    arguments = {"path": str(path), "input": str(source)}
    if side.command != "plain_bulk_insert":
        arguments["operation"] = "bulk_insert" if operation == BULK_INSERT else "upsert"
    os.sync()  # what the side before left for the disk is not paid for by this one
    processor_before = read_processor_seconds(worker.pid)
    wall_s = float(worker.ask(side.command, wait_s=STEP_WAIT_S, **arguments))
    processor_after = read_processor_seconds(worker.pid)
    _check_answer(side, operation, data, path, workers)
    files = [file for file in path.rglob("*.parquet") if ".hoodie" not in file.relative_to(path).parts]
    return Measure(
        wall_s=wall_s,
        processor_s=None if processor_before is None or processor_after is None else processor_after - processor_before,
        files=len(files),
        size_bytes=sum(file.stat().st_size for file in files),
    )


def _check_answer(side: Side, operation: str, data: BenchInput, path: Path, workers: dict[str, Worker]) -> None:
    """Apache Hudi reads what a Hudi side wrote: rows, distinct keys and a sum must be those of the input."""
    judge = workers["hudi35" if side.read_format == "hudi" else side.session]
    found = judge.ask("summary", wait_s=STEP_WAIT_S, path=str(path), format=side.read_format)
    total = data.sum_inserted if operation == BULK_INSERT else data.sum_upserted
    expected = {"rows": data.rows, "keys": data.rows, "total": total}
    if found != expected:
        raise ReferenceFailed("WrongAnswer", f"after {operation} the table holds {found}, expected {expected}")


@contextlib.contextmanager
def _fresh_folder(scratch: Path) -> Iterator[Path]:
    folder = scratch / f"tables-{os.getpid()}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
