"""`python -m bench.streams`: how long a small batch of a stream into a table takes, of pyhudi and of Apache Hudi.

A stream reads one file of 1,000 rows a batch and upserts it into a table of 100,000 rows × 12 columns in ten
partitions, merge-on-read by default, with the default index of both. Half of the rows change stored ones, half are
new. Time is that of Spark's own report of each batch. The first batches warm up and are not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bench.data import PARTITIONS, SEED, make_rows
from bench.on_spark import HUDI_VERSION, start_worker

SIDES = {
    "pyhudi43": ("pyhudi, Spark 4.3", "spark43", "pyhudi"),
    "pyhudi35": ("pyhudi, Spark 3.5", "spark35", "pyhudi"),
    "hudi35": (f"Apache Hudi {HUDI_VERSION}, Spark 3.5", "hudi35", "hudi"),
}
TABLE_TYPES = {"copy-on-write": "COPY_ON_WRITE", "merge-on-read": "MERGE_ON_READ"}
STORED_ROWS, BATCH_ROWS, WARM_UP = 100_000, 1_000, 5
WAIT_S = 3_600.0


def make_input(folder: Path, batches: int) -> None:
    """The stored rows, and a file for each batch."""
    random = np.random.default_rng(SEED)
    partitions = random.integers(0, PARTITIONS, STORED_ROWS + batches * BATCH_ROWS)
    for name in ("stored", "batches"):
        (folder / name).mkdir()
    stored = np.arange(STORED_ROWS)
    pq.write_table(make_rows(random, stored, partitions[stored], ts=1), folder / "stored" / "rows.parquet")
    for at in range(batches):
        half = BATCH_ROWS // 2
        new = np.arange(STORED_ROWS + at * half, STORED_ROWS + (at + 1) * half)
        ids = np.concatenate([random.choice(STORED_ROWS, half, replace=False), new])
        path = folder / "batches" / f"{at:05}.parquet"
        pq.write_table(make_rows(random, ids, partitions[ids], ts=at + 2), path)
        os.utime(path, (1_000_000 + at, 1_000_000 + at))  # Spark takes the oldest first


def measure(side: str, folder: Path, table_type: str, batches: int) -> list[float]:
    """Seconds of each batch that counts."""
    _, session, format = SIDES[side]
    table = folder / f"table_{side}"
    with contextlib.ExitStack() as stack:
        worker = stack.enter_context(start_worker(session, folder, module="bench.stream_worker"))
        told = {"path": str(table), "format": format, "table_type": table_type}
        worker.ask("make", wait_s=WAIT_S, input=str(folder / "stored"), **told)
        checkpoint = str(folder / f"checkpoint_{side}")
        found = worker.ask("stream", wait_s=WAIT_S, input=str(folder / "batches"), checkpoint=checkpoint, **told)
        rows = STORED_ROWS + batches * BATCH_ROWS // 2
        assert worker.ask("count", wait_s=WAIT_S, path=str(table)) == [rows, rows]
    assert len(found) == batches
    return [ms / 1_000 for ms in found[WARM_UP:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--table-type", choices=TABLE_TYPES, default="merge-on-read")
    said = parser.parse_args()
    assert said.batches > WARM_UP
    print("| side | median s a batch | 90 % | slowest | batches a second |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as scratch:
        make_input(Path(scratch), said.batches)
        for side in said.sides.split(","):
            taken = measure(side, Path(scratch), TABLE_TYPES[said.table_type], said.batches)
            ninth = statistics.quantiles(taken, n=10)[8]
            shown = (statistics.median(taken), ninth, max(taken), len(taken) / sum(taken))
            print(f"| {SIDES[side][0]} | " + " | ".join(f"{one:.2f}" for one in shown) + " |", flush=True)


if __name__ == "__main__":
    main()
