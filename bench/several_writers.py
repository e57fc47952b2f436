"""`python -m bench.several_writers`: commits a second of processes that upsert into one table at once, on local disk.

Each process makes small upserts, into a partition of its own or to keys that all share. A conflict is a write that was
planned anew. `--delta`: also deltalake's merge, tried again by the process until it lands.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from bench.data import SEED
from pyhudi import HudiTable

ROWS, PARTITIONS, A_COMMIT = 8_000, 8, 20
TABLE_TYPES = {"copy-on-write": "COPY_ON_WRITE", "merge-on-read": "MERGE_ON_READ"}


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


def work(side: Side, path: str, writer: int, commits: int, overlaps: bool, ready: Barrier, report: str) -> None:
    """One process: a first write that does not count, then `commits` that do."""
    rand = np.random.default_rng(SEED + writer)
    own = np.arange(writer % PARTITIONS, ROWS, PARTITIONS)
    conflicts = 0
    for number in range(commits + 1):
        keys = rand.choice(np.arange(ROWS) if overlaps else own, A_COMMIT, replace=False)
        met = side.upsert(path, make_rows(keys, number + 1))
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.several_writers", description=__doc__)
    parser.add_argument("--writers", default="1,2,4,8", help="processes at once (%(default)s)")
    parser.add_argument("--commits", type=int, default=20, help="of each process (%(default)s)")
    parser.add_argument("--delta", action="store_true", help="also deltalake, which must be installed")
    arguments = parser.parse_args()

    sides: dict[str, Side] = {name: Ours(table_type) for name, table_type in TABLE_TYPES.items()}
    if arguments.delta:
        sides["deltalake"] = Delta()
    print("| side | keys | writers | commits a second | conflicts |")
    print("| --- | --- | ---: | ---: | ---: |")
    for name, side in sides.items():
        for keys, overlaps in (("own partition", False), ("shared", True)):
            for writers in map(int, arguments.writers.split(",")):
                rate, conflicts = measure(side, writers, arguments.commits, overlaps=overlaps)
                print(f"| {name} | {keys} | {writers} | {rate:.1f} | {conflicts} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
