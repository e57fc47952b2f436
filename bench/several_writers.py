"""`python -m bench.several_writers`: commits a second of writers that upsert into one table at once, on local disk.

Each writer makes small upserts, into a partition of its own or to keys that all share. A conflict is a write that was
planned anew or, by the others, tried again until it lands. Writers are processes; those of Apache Hudi and Iceberg are
threads of one warm Spark session.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.data import SEED
from bench.on_spark import HUDI_VERSION, ICEBERG_VERSION, start_worker
from pyhudi import HudiTable
from tests.support.reference.client import Worker

ROWS, PARTITIONS, A_COMMIT = 8_000, 8, 20
TABLE_TYPES = {"copy-on-write": "COPY_ON_WRITE", "merge-on-read": "MERGE_ON_READ"}
SPARK_SIDES = {
    f"Apache Hudi {HUDI_VERSION}, Spark 3.5": ("hudi35", "hudi"),
    f"Iceberg {ICEBERG_VERSION}, Spark 3.5": ("iceberg35", "iceberg"),
}
WAIT_S = 3_600.0


class Side(Protocol):
    """One that writes. `make`: a table with rows. `upsert`: returns how often the write met another."""

    def make(self, path: str, rows: pa.Table) -> None: ...

    def upsert(self, path: str, rows: pa.Table) -> int: ...


def make_rows(keys: np.ndarray, ordering: int) -> pa.Table:
    return pa.table(
        {
            "id": np.char.add("k", keys.astype(str)),
            "part": np.char.add("p", (keys % PARTITIONS).astype(str)),
            "ts": np.full(len(keys), ordering),
            "number": keys * 0.5,
        }
    )


class Retries(logging.Handler):
    """Counts the writes that were planned anew."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "planned anew" in record.getMessage()


class Ours:
    def __init__(self, table_type: str) -> None:
        self.table_type = table_type

    def make(self, path: str, rows: pa.Table) -> None:
        HudiTable.create(
            path, name="t", record_key="id", partition_by="part", ordering="ts", table_type=self.table_type
        ).bulk_insert(rows)

    def upsert(self, path: str, rows: pa.Table) -> int:
        retries, log = Retries(), logging.getLogger("pyhudi")
        log.setLevel(logging.INFO)
        log.addHandler(retries)
        HudiTable.open(path).upsert(rows)
        log.removeHandler(retries)
        return retries.count


class Delta:
    def make(self, path: str, rows: pa.Table) -> None:
        import deltalake

        deltalake.write_deltalake(path, rows, partition_by=["part"])

    def upsert(self, path: str, rows: pa.Table) -> int:
        import deltalake
        from deltalake.exceptions import CommitFailedError

        conflicts = 0
        while True:
            parts = ", ".join(f"'{part}'" for part in sorted(set(rows.column("part").to_pylist())))
            merge = deltalake.DeltaTable(path).merge(
                rows, f"t.part = s.part AND t.id = s.id AND t.part IN ({parts})", source_alias="s", target_alias="t"
            )
            try:
                merge.when_matched_update_all().when_not_matched_insert_all().execute()
                return conflicts
            except CommitFailedError:
                conflicts += 1


def batches(writer: int, commits: int, *, overlaps: bool) -> Iterator[pa.Table]:
    """What a writer upserts: a first batch that does not count, then `commits` that do."""
    rand = np.random.default_rng(SEED + writer)
    own = np.arange(writer % PARTITIONS, ROWS, PARTITIONS)
    for number in range(commits + 1):
        yield make_rows(rand.choice(np.arange(ROWS) if overlaps else own, A_COMMIT, replace=False), number + 1)


def work(side: Side, path: str, writer: int, commits: int, overlaps: bool, ready: Barrier, report: str) -> None:
    """One process."""
    conflicts = 0
    for number, rows in enumerate(batches(writer, commits, overlaps=overlaps)):
        met = side.upsert(path, rows)
        if number == 0:
            ready.wait()
            start = time.time()
        else:
            conflicts += met
    Path(report).write_text(f"{start} {time.time()} {conflicts}", encoding="utf-8")


def measure(side: Side, writers: int, commits: int, *, overlaps: bool) -> tuple[float, int]:
    """Commits a second of all writers together, and conflicts."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/t"
        side.make(path, make_rows(np.arange(ROWS), 0))
        ready = context.Barrier(writers)
        reports = [f"{scratch}/{number}" for number in range(writers)]
        processes = [
            context.Process(target=work, args=(side, path, number, commits, overlaps, ready, report))
            for number, report in enumerate(reports)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        if any(process.exitcode for process in processes):
            raise SystemExit("a writer failed")

        ends = [tuple(map(float, Path(report).read_text(encoding="utf-8").split())) for report in reports]
    seconds = max(end for _, end, _ in ends) - min(start for start, _, _ in ends)
    return writers * commits / seconds, int(sum(conflicts for _, _, conflicts in ends))


def measure_on_spark(
    worker: Worker, tables: Path, format: str, table_type: str, writers: int, commits: int, *, overlaps: bool
) -> tuple[float, int]:
    """As `measure`, by threads of a Spark session. `tables`: the folder in which the session makes tables."""
    with tempfile.TemporaryDirectory() as scratch:
        stored, path = f"{scratch}/stored.parquet", tables / f"t{uuid4().hex}"
        pq.write_table(make_rows(np.arange(ROWS), 0), stored)
        inputs: list[list[str]] = []
        for writer in range(writers):
            inputs.append([])
            for number, rows in enumerate(batches(writer, commits, overlaps=overlaps)):
                inputs[-1].append(f"{scratch}/{writer}-{number}.parquet")
                pq.write_table(rows, inputs[-1][-1])

        told = {"format": format, "path": str(path), "table_type": table_type}
        worker.ask("make", wait_s=WAIT_S, input=stored, **told)
        answer = worker.ask("upserts", wait_s=WAIT_S, inputs=inputs, **told)
    return writers * commits / answer["seconds"], answer["conflicts"]


Measure = Callable[..., tuple[float, int]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.several_writers", description=__doc__)
    parser.add_argument("--writers", default="1,2,4,8", help="at once (%(default)s)")
    parser.add_argument("--commits", type=int, default=20, help="of each writer (%(default)s)")
    parser.add_argument("--spark-commits", type=int, default=5, help="of each writer on Spark (%(default)s)")
    parser.add_argument("--delta", action="store_true", help="also deltalake, which must be installed")
    parser.add_argument("--spark", action="store_true", help="also Apache Hudi and Iceberg")
    arguments = parser.parse_args()

    print("| side | keys | writers | commits a second | conflicts |")
    print("| --- | --- | ---: | ---: | ---: |")

    def table(name: str, measured: Measure, commits: int) -> None:
        for keys, overlaps in (("own partition", False), ("shared", True)):
            for writers in map(int, arguments.writers.split(",")):
                rate, conflicts = measured(writers, commits, overlaps=overlaps)
                print(f"| {name} | {keys} | {writers} | {rate:.2f} | {conflicts} |", flush=True)

    for name, table_type in TABLE_TYPES.items():
        table(f"pyhudi, {name}", partial(measure, Ours(table_type)), arguments.commits)
    if arguments.delta:
        table("deltalake", partial(measure, Delta()), arguments.commits)
    if arguments.spark:
        for title, (session, format) in SPARK_SIDES.items():
            with (
                tempfile.TemporaryDirectory() as scratch,
                start_worker(session, Path(scratch) / "tables", "bench.several_writers_worker") as worker,
            ):
                for name, table_type in TABLE_TYPES.items():
                    by_spark = partial(measure_on_spark, worker, Path(scratch) / "tables", format, table_type)
                    table(f"{title}, {name}", by_spark, arguments.spark_commits)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
