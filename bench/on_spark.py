"""Writes and reads on Spark: plain Parquet, Apache Hudi, Delta, Iceberg and pyhudi, in turns.

A round is: every side does the first step, then every side that can does the next upon what it holds by then. Rounds
are interleaved, so that a slow minute of the machine hits all sides; the first one warms up and is not counted. Every
write is read back and checked before its figure counts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.data import BenchInput
from bench.processor import MemoryWatch, read_processor_seconds
from bench.workload import (
    AGGREGATE,
    BULK_INSERT,
    COMPACTION,
    READS,
    SCAN,
    UPSERT,
    UPSERT_FEW,
    WRITES,
    Workload,
)
from tests.support.reference.client import ReferenceFailed, Worker, hudi_settings
from tests.support.reference.environment import PROJECT, maven_jar, reference_java_home, reference_python
from tests.support.standalone_cluster import StandaloneCluster, standalone_cluster

HUDI_VERSION, DELTA_VERSION, ICEBERG_VERSION = "1.2.0", "3.3.2", "1.10.0"
STEP_WAIT_S = 1_800.0
DRIVER_MEMORY = "4g"
EXECUTOR_MEMORY_MB = 1_500
SOURCE = PROJECT / "src"
_DAEMON = "spark.python.daemon.module"
_SESSIONS_OF_PYHUDI = ("spark35", "spark43")


@dataclass(frozen=True, slots=True)
class Side:
    """One way to write and read. `session` names the worker; sides of one Spark share it."""

    name: str
    session: str
    format: str
    judge: str = ""  # the session that reads back what this side wrote; empty: its own
    is_computed: bool = False  # a column of the input is computed, so that rows come from Spark

    def can(self, step: str) -> bool:
        """Whether the step makes sense of it: plain Parquet is only written once and read."""
        return self.format != "parquet" or step in (BULK_INSERT, SCAN, AGGREGATE)


SIDES_BY_KEY = {
    "parquet43": Side("Parquet, Spark 4.3", "spark43", "parquet"),
    "parquet35": Side("Parquet, Spark 3.5", "spark35", "parquet"),
    "hudi35": Side(f"Apache Hudi {HUDI_VERSION}, Spark 3.5", "hudi35", "hudi"),
    "delta35": Side(f"Delta {DELTA_VERSION}, Spark 3.5", "delta35", "delta"),
    "iceberg35": Side(f"Iceberg {ICEBERG_VERSION}, Spark 3.5", "iceberg35", "iceberg"),
    "pyhudi43": Side("pyhudi, Spark 4.3", "spark43", "pyhudi", judge="hudi35"),
    "pyhudi35": Side("pyhudi, Spark 3.5", "spark35", "pyhudi", judge="hudi35"),
    "computed35": Side("pyhudi, computed rows, Spark 3.5", "spark35", "pyhudi", judge="hudi35", is_computed=True),
}
DEFAULT_SIDES = tuple(key for key, side in SIDES_BY_KEY.items() if not side.is_computed)


def sides_of(workload: Workload) -> list[str]:
    """The keys of the sides that have such tables: Delta has no log files that a compaction would merge."""
    return [key for key in DEFAULT_SIDES if SIDES_BY_KEY[key].format != "delta" or COMPACTION not in workload.steps]


@dataclass(frozen=True, slots=True)
class Measure:
    """One step of one side. Wall time is taken inside the worker; the rest is of it and all it started. Of a reading
    step it is the median of its readings, and the processor time their mean.

    `files`, `size_bytes`: data files on disk after it, replaced ones too.
    """

    wall_s: float
    processor_s: float | None
    memory_bytes: int
    files: int
    size_bytes: int


@dataclass
class Results:
    """Measures by step and side, and the sides that fell out, with the reason."""

    measures: dict[str, dict[str, list[Measure]]]
    failures: dict[str, str] = field(default_factory=dict)

    def median_wall_s(self, step: str, side: Side) -> float | None:
        taken = self.measures[step].get(side.name)
        return statistics.median(measure.wall_s for measure in taken) if taken else None


def start_worker(
    session: str, tables: Path, module: str = "bench.worker", *, more: Mapping[str, str] | None = None
) -> Worker:
    """A warm Spark of two threads that stays for the whole run. `more`: settings."""
    settings = {
        "spark.driver.memory": DRIVER_MEMORY,
        **_SESSION_SETTINGS.get(session, lambda _: {})(tables),
        **(more or {}),
    }
    jars = [*settings.get("spark.jars", "").split(","), settings.get("spark.driver.extraClassPath", "")]
    settings["spark.executor.extraClassPath"] = os.pathsep.join(jar for jar in jars if jar)
    if session == "spark43":
        return Worker(Path(sys.executable), module, spark_settings=settings, python_path=[SOURCE])
    java_home = reference_java_home()
    return Worker(reference_python(), module, spark_settings=settings, java_home=java_home, python_path=[SOURCE])


@contextlib.contextmanager
def session_cluster(session: str, folder: Path) -> Iterator[StandaloneCluster]:
    """Two workers for a session, of its Spark and Python."""
    folder.mkdir(parents=True)
    python, java_home = Path(sys.executable), os.environ.get("JAVA_HOME", "")
    if session != "spark43":
        python, java_home = reference_python(), reference_java_home()
    found = subprocess.run(
        [str(python), "-c", "import pyspark; print(pyspark.__path__[0])"], capture_output=True, text=True, check=True
    )
    path = os.pathsep.join(map(str, (PROJECT, SOURCE)))
    environment = os.environ | {"PYSPARK_PYTHON": str(python), "JAVA_HOME": java_home, "PYTHONPATH": path}
    with standalone_cluster(
        folder, Path(found.stdout.strip()), environment, worker_memory=f"{EXECUTOR_MEMORY_MB + 500}M"
    ) as cluster:
        yield cluster


def _delta_settings(tables: Path) -> dict[str, str]:
    jars = [maven_jar("io.delta", artifact, DELTA_VERSION) for artifact in ("delta-spark_2.12", "delta-storage")]
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def _iceberg_settings(tables: Path) -> dict[str, str]:
    return {
        "spark.jars": str(maven_jar("org.apache.iceberg", "iceberg-spark-runtime-3.5_2.12", ICEBERG_VERSION)),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.bench": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.bench.type": "hadoop",
        "spark.sql.catalog.bench.warehouse": str(tables.parent),
        "spark.sql.catalog.bench.cache-enabled": "false",
    }


_SESSION_SETTINGS: Mapping[str, Callable[[Path], dict[str, str]]] = {
    "hudi35": lambda _: hudi_settings(HUDI_VERSION),
    "delta35": _delta_settings,
    "iceberg35": _iceberg_settings,
}


def run(
    data: BenchInput,
    scratch: Path,
    *,
    warm_up: BenchInput,
    workload: Workload,
    sides: Sequence[Side],
    rounds: int,
    readings: int = 1,
    on_cluster: bool = False,
    say: Callable[[str], None],
) -> Results:
    """Measure; a side that fails is left out from then on, and its failure told.

    `readings`: how often a reading step reads. A session's first queries mostly wait for its JVM to compile; a side
    whose writes read within Spark, or that reads back what others wrote, has some of that behind it.
    `on_cluster`: each session has a standalone Spark of two workers of a core each, instead of two threads.
    """
    results = Results({step: {} for step in workload.steps})
    tables = scratch / f"tables_{os.getpid()}"
    with contextlib.ExitStack() as stack:
        workers: dict[str, Worker] = {}
        pids: dict[str, tuple[int, ...]] = {}
        for session in dict.fromkeys(name for side in sides for name in (side.session, side.judge) if name):
            started, more = time.perf_counter(), dict[str, str]()
            if on_cluster:
                cluster = stack.enter_context(session_cluster(session, scratch / f"cluster_{os.getpid()}_{session}"))
                more = {"spark.master": cluster.master, "spark.executor.memory": f"{EXECUTOR_MEMORY_MB}m"}
                if session in _SESSIONS_OF_PYHUDI:
                    more[_DAEMON] = "pyhudi.engine.spark.daemon"
                pids[session] = cluster.pids
            workers[session] = stack.enter_context(start_worker(session, tables, more=more))
            pids[session] = (*pids.get(session, ()), workers[session].pid)
            taken_s = time.perf_counter() - started
            say(f"{session}: Spark {workers[session].about['spark']} up in {taken_s:.1f} s")
        for number in range(rounds + 1):
            say("warm-up" if number == 0 else f"round {number} of {rounds}")
            with _fresh_folder(tables) as folder:
                for step, side in ((step, side) for step in workload.steps for side in sides if side.can(step)):
                    if side.name in results.failures:
                        continue
                    try:
                        of = warm_up if number == 0 else data
                        measure = _run_step(side, step, of, workload, folder, workers, pids[side.session], readings)
                    except ReferenceFailed as failure:
                        results.failures[side.name] = f"{step}: {failure}"
                        say(f"  {step:18} {side.name:32} failed: {str(failure).splitlines()[0]}")
                        continue
                    if number > 0:
                        results.measures[step].setdefault(side.name, []).append(measure)
                    say(f"  {step:18} {side.name:32} {measure.wall_s:7.2f} s")
    return results


def _run_step(
    side: Side,
    step: str,
    data: BenchInput,
    workload: Workload,
    folder: Path,
    workers: dict[str, Worker],
    pids: Sequence[int],
    readings: int,
) -> Measure:
    """`pids`: of the processes whose work, with that of their children, the step is."""
    worker = workers[side.session]
    path = folder / f"{side.session}_{side.format}{'_computed' if side.is_computed else ''}"
    arguments: dict[str, Any] = {"path": str(path), "format": side.format}
    if step in WRITES:
        source = {BULK_INSERT: data.inserted, UPSERT: data.changed, UPSERT_FEW: data.few}[step]
        arguments |= {"input": str(source), "operation": "bulk_insert" if step == BULK_INSERT else "upsert"}
        arguments |= {"table_type": workload.table_type, "properties": workload.properties}
        arguments |= {"is_computed": side.is_computed}
    command = {SCAN: "full_scan", AGGREGATE: "aggregate", COMPACTION: "compact"}.get(step, "bench_write")
    os.sync()  # what the side before left for the disk is not paid for by this one
    times = readings if step in READS else 1
    processor_before = _processor_seconds(pids)
    with MemoryWatch(worker.pid) as memory:
        taken = [float(worker.ask(command, wait_s=STEP_WAIT_S, **arguments)) for _ in range(times)]
    processor_after = _processor_seconds(pids)
    if step in (*WRITES, COMPACTION):
        _check_answer(side, step, data, path, workers)
    files = [file for file in path.rglob("*") if _is_data(file.relative_to(path)) and file.is_file()]
    spent = None if processor_before is None or processor_after is None else processor_after - processor_before
    return Measure(
        wall_s=statistics.median(taken),
        processor_s=None if spent is None else spent / times,
        memory_bytes=memory.peak_bytes,
        files=len(files),
        size_bytes=sum(file.stat().st_size for file in files),
    )


def _processor_seconds(pids: Sequence[int]) -> float | None:
    taken = [read_processor_seconds(pid) for pid in pids]
    known = [seconds for seconds in taken if seconds is not None]
    return sum(known) if len(known) == len(taken) else None


def _is_data(file: Path) -> bool:
    """Of a base file, a log, or rows and deletes of others; not of what a table keeps of itself."""
    is_own = not {".hoodie", "_delta_log", "metadata"} & set(file.parts)
    return is_own and (file.suffix == ".parquet" or ".log." in file.name)


def _check_answer(side: Side, step: str, data: BenchInput, path: Path, workers: dict[str, Worker]) -> None:
    """Rows, distinct keys and a sum must be those of the input; Apache Hudi reads what pyhudi wrote."""
    judge = workers[side.judge or side.session]
    format = "hudi" if side.format == "pyhudi" else side.format
    found = judge.ask("summary", wait_s=STEP_WAIT_S, path=str(path), format=format)
    total = {BULK_INSERT: data.sum_inserted, UPSERT: data.sum_upserted}.get(step, data.sum_upserted_few)
    expected = {"rows": data.rows, "keys": data.rows, "total": total}
    if found != expected:
        raise ReferenceFailed("WrongAnswer", f"after {step} the table holds {found}, expected {expected}")


@contextlib.contextmanager
def _fresh_folder(folder: Path) -> Iterator[Path]:
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
