"""`python -m bench.service_process`: a table that writers fill without a pause, with and without a service process.

The writers run no service of their own. Now and then the table is scanned, and its data files and its instants on the
timeline are counted: with a service process all three should stay within bounds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import threading
import time
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

import pyhudi.services
from bench.several_writers import A_COMMIT, ROWS, TABLE_TYPES, make_rows
from pyhudi import HudiTable
from pyhudi.services import ServiceReport

ALONE = {"hoodie.table.services.enabled": "false"}
SERVED = {
    "hoodie.clean.commits.retained": 20, "hoodie.keep.min.commits": 30, "hoodie.keep.max.commits": 40,
    "hoodie.compact.inline.max.delta.commits": 10,
}  # fmt: skip
INTERVAL_S = 2.0


@dataclass(frozen=True)
class Sample:
    """The table at one moment. `at_s`: since the writers began. `scan_s`: of all columns, the fastest of three."""

    at_s: float
    commits: int
    scan_s: float
    files: int
    instants: int


def write(path: str, writer: int, writers: int, stop: Event) -> None:
    """Upsert rows of the writer's own share of the keys, until it is told to stop."""
    rand = np.random.default_rng(writer)
    own, ordering = np.arange(writer, ROWS, writers), 1
    while not stop.is_set():
        keys = rand.choice(own, A_COMMIT, replace=False)
        HudiTable.open(path, options=ALONE).upsert(make_rows(keys, ordering))
        ordering += 1


def serve(path: str, stop: Event, report: str) -> None:
    found: ServiceReport = pyhudi.services.run(path, options=SERVED, interval_s=INTERVAL_S, stop=_Stop(stop))
    (services,) = found.tables.values()
    lines = [f"{one.service}: {one.runs:,} runs, {one.failures:,} failures" for one in services if one.runs]
    Path(report).write_text("\n".join(lines), encoding="utf-8")


class _Stop(threading.Event):
    """A stop of another process."""

    def __init__(self, stop: Event) -> None:
        super().__init__()
        self._stop = stop

    def is_set(self) -> bool:
        return self._stop.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        return self._stop.wait(timeout)


def sample(path: str, began: float, rows: int) -> Sample:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        assert HudiTable.open(path).scan().to_arrow().num_rows == rows
        times.append(time.perf_counter() - start)
    instants = HudiTable.open(path).timeline()
    files = sum(len(names) for folder, _, names in os.walk(path) if ".hoodie" not in folder)
    commits = sum(one.is_completed and one.action in ("commit", "deltacommit") for one in instants)
    return Sample(time.time() - began, commits, min(times), files, len(instants))


def measure(table_type: str, writers: int, seconds: float, every_s: float, *, is_served: bool) -> list[Sample]:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch:
        path, report = f"{scratch}/t", f"{scratch}/report"
        table = HudiTable.create(
            path, name="t", record_key="id", partition_by="part", ordering="ts", table_type=table_type
        )
        table.bulk_insert(make_rows(np.arange(ROWS), 0), options=ALONE)

        stop = context.Event()
        processes = [context.Process(target=write, args=(path, number, writers, stop)) for number in range(writers)]
        if is_served:
            processes.append(context.Process(target=serve, args=(path, stop, report)))
        for process in processes:
            process.start()

        began, samples = time.time(), []
        try:
            while time.time() - began < seconds:
                time.sleep(every_s)
                samples.append(sample(path, began, ROWS))
        finally:
            stop.set()
            for process in processes:
                process.join()
        assert [process.exitcode for process in processes] == [0] * len(processes)
        samples.append(sample(path, began, ROWS))
        if is_served:
            print(Path(report).read_text(encoding="utf-8"))
    return samples


def show(title: str, samples: list[Sample]) -> None:
    print(f"\n{title}\n")
    print("| after | commits on the timeline | scan | data files | instants |\n| --- | --- | --- | --- | --- |")
    for one in samples:
        print(f"| {one.at_s:.0f} s | {one.commits:,} | {one.scan_s:.3f} s | {one.files:,} | {one.instants:,} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--every", type=float, default=60)
    parser.add_argument("--type", choices=TABLE_TYPES, default="merge-on-read")
    parser.add_argument("--without", action="store_true", help="without the service process")
    given = parser.parse_args()

    found = measure(TABLE_TYPES[given.type], given.writers, given.seconds, given.every, is_served=not given.without)
    show(f"{given.type}, {given.writers} writers, {'no' if given.without else 'one'} service process", found)


if __name__ == "__main__":
    main()
