"""`python -m bench.many_small_logs`: what scans and upserts of a merge-on-read table take as its logs grow.

Writes 50 rows a commit, in this process, to a table of 20,000 rows in four partitions; nothing compacts it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.data import SEED
from pyhudi import HudiTable

ROWS, PARTITIONS, A_COMMIT, ROUNDS = 20_000, 4, 50, 5


def make_rows(keys: np.ndarray, ordering: int) -> pa.Table:
    return pa.table(
        {
            "id": np.char.add("k", keys.astype(str)),
            "part": np.char.add("p", (keys % PARTITIONS).astype(str)),
            "ts": np.full(len(keys), ordering),
            "number": keys * 0.5,
            "text": np.char.add("text ", (keys * ordering).astype(str)),
        }
    )


def scan_seconds(path: Path) -> tuple[float, float]:
    """Seconds, and processor seconds, of a full scan: the least of `ROUNDS`."""
    times = []
    for _ in range(ROUNDS):
        start, busy = time.perf_counter(), time.process_time()
        assert HudiTable.open(path).scan().to_arrow().num_rows == ROWS
        times.append((time.perf_counter() - start, time.process_time() - busy))
    return min(wall for wall, _ in times), min(busy for _, busy in times)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.many_small_logs", description=__doc__)
    parser.add_argument("--commits", default="0,10,50,100,300", help="look after so many (%(default)s)")
    parser.add_argument("--inline", action="store_true", help="with inline compaction, every five delta commits")
    parser.add_argument("--block-format", default="", help="format of all blocks: parquet, avro, hfile")
    arguments = parser.parse_args()
    rand = np.random.default_rng(SEED)
    options = {"hoodie.compact.inline": str(arguments.inline).lower()}
    options["hoodie.logfile.data.block.format"] = arguments.block_format
    print("| commits | scan, s | its processor, s | upsert, median s | files |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "t"
        table = HudiTable.create(
            path, name="t", record_key="id", partition_by="part", ordering="ts", table_type="MERGE_ON_READ"
        )
        table.bulk_insert(make_rows(np.arange(ROWS), 0))
        done, upserts = 0, [0.0]
        for count in map(int, arguments.commits.split(",")):
            for number in range(done + 1, count + 1):
                rows = make_rows(rand.choice(ROWS, A_COMMIT, replace=False), number)
                start = time.perf_counter()
                table.upsert(rows, options=options)
                upserts.append(time.perf_counter() - start)
            done = count
            wall, busy = scan_seconds(path)
            files = sum(file.is_file() for file in path.rglob("*"))
            print(f"| {count:,} | {wall:.3f} | {busy:.3f} | {statistics.median(upserts[-10:]):.3f} | {files:,} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
