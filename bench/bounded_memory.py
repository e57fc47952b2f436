"""`python -m bench.bounded_memory`: the memory and the time of the write of a stream, within a bound and without.

Each figure is of a process of its own, which makes narrow rows (five columns, ten partitions) as they are asked for.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from pyhudi import HudiTable

EACH = 100_000
UNBOUNDED = 1 << 50


def batches(count: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, count, EACH):
        numbers = np.arange(start, min(count, start + EACH))
        yield pa.record_batch(
            {
                "id": pa.array(numbers).cast(pa.string()),
                "part": pa.array(numbers * 7_919 % 10).cast(pa.string()),
                "ts": pa.array(numbers),
                "number": pa.array(numbers * 0.5),
                "count": pa.array(numbers % 1_000),
            }
        )


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def work(path: str, operation: str, count: int, bound: int) -> None:
    """In the process that is measured: its peak beyond that of a first, small write."""
    table = HudiTable.create(path, name="t", record_key="id", partition_by="part", ordering="ts")
    table.bulk_insert(pa.Table.from_batches(batches(1_000)))
    before, started = peak_bytes(), time.perf_counter()
    reader = pa.RecordBatchReader.from_batches(next(batches(1)).schema, batches(count))
    result = getattr(table, operation)(reader, options={"pyhudi.memory.max.bytes": bound})
    assert result.inserted + result.updated == count
    print(json.dumps({"seconds": time.perf_counter() - started, "mib": (peak_bytes() - before) / (1 << 20)}))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.bounded_memory", description=__doc__)
    parser.add_argument("--rows", default="4000000,16000000", help="rows of the streams (%(default)s)")
    parser.add_argument("--bound-mib", type=int, default=256, help="of the side that has one (%(default)s)")
    parser.add_argument("--operation", default="bulk_insert", choices=("bulk_insert", "insert", "upsert"))
    parser.add_argument("--work", nargs=2, metavar=("PATH", "BYTES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        path, bound = arguments.work
        work(path, arguments.operation, int(arguments.rows), int(bound))
        return 0
    print("| rows | Arrow MiB | bound | seconds | MiB beyond a small write |")
    print("| ---: | --------: | ----: | ------: | -----------------------: |")
    row_bytes = next(batches(EACH)).nbytes / EACH
    for count in map(int, arguments.rows.split(",")):
        for bound in (arguments.bound_mib << 20, UNBOUNDED):
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-m", "bench.bounded_memory", "--operation", arguments.operation]
                command += ["--rows", str(count), "--work", str(Path(folder) / "t"), str(bound)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
            seen = json.loads(done.stdout)
            said = "none" if bound == UNBOUNDED else f"{bound >> 20:,} MiB"
            size_mib = count * row_bytes / (1 << 20)
            print(f"| {count:,} | {size_mib:,.0f} | {said} | {seen['seconds']:.1f} | {seen['mib']:,.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
