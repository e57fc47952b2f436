"""`python -m bench.fresh_process`: a new process that writes and reads a few rows, pyhudi beside deltalake.

Each process imports its library, creates a table, upserts two rows, then one, and reads them: what a script, a function
in the cloud or a command costs before there is any work to speak of. The first process of each side does not count: it
may compile loops and write bytecode.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.report import markdown_table

HEADINGS = ("side", "compiler", "wall s", "min to max", "processor s", "peak MiB")
EXPECTED = [["a", "second", 2], ["b", "first", 1]]


def pyhudi_rows(path: str) -> list[list[object]]:
    import pyarrow as pa

    from pyhudi import HudiTable

    table = HudiTable.create(path, name="few", record_key="id", ordering="ts")
    table.upsert(pa.table({"id": ["a", "b"], "name": ["first", "first"], "ts": [1, 1]}))
    table.upsert(pa.table({"id": ["a"], "name": ["second"], "ts": [2]}))
    rows = table.scan(meta_fields=False).to_arrow()
    return [list(row.values()) for row in rows.to_pylist()]


def deltalake_rows(path: str) -> list[list[object]]:
    import pyarrow as pa
    from deltalake import DeltaTable

    def upsert(rows: pa.Table) -> None:
        merger = DeltaTable(path).merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all("s.ts >= t.ts").when_not_matched_insert_all().execute()

    DeltaTable.create(path, pa.schema([("id", pa.string()), ("name", pa.string()), ("ts", pa.int64())]))
    upsert(pa.table({"id": ["a", "b"], "name": ["first", "first"], "ts": [1, 1]}))
    upsert(pa.table({"id": ["a"], "name": ["second"], "ts": [2]}))
    return [list(row.values()) for row in DeltaTable(path).to_pyarrow_table().to_pylist()]


SIDES = {"pyhudi": pyhudi_rows, "deltalake": deltalake_rows}


def work(side: str, path: str) -> None:
    """In the process that is measured. Its start up to here, some 20 ms of the interpreter, is not counted."""
    started, processor = time.perf_counter(), time.process_time()
    rows = SIDES[side](path)
    measure = {
        "wall_s": time.perf_counter() - started,
        "processor_s": time.process_time() - processor,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "compiler": "numba" in sys.modules,
    }
    assert sorted(rows, key=str) == EXPECTED, rows
    print(json.dumps(measure), flush=True)


def measured(side: str) -> dict[str, float]:
    folder = tempfile.mkdtemp(prefix="fresh-process-")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        command = [sys.executable, "-m", "bench.fresh_process", "--work", side, str(Path(folder) / "table")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    finally:
        shutil.rmtree(folder)
    if not done.stdout.strip():  # deltalake now and then aborts while its process ends, with its answer given
        raise SystemExit(f"{side} failed: {done.stderr}")
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fresh_process", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="processes of each side that count (%(default)s)")
    parser.add_argument("--work", nargs=2, metavar=("SIDE", "PATH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(*arguments.work)
        return
    taken: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for number in range(arguments.rounds + 1):
        for side in SIDES:
            measure = measured(side)
            if number:
                taken[side].append(measure)
    rows = []
    for side, measures in taken.items():
        walls, processors = ([each[name] for each in measures] for name in ("wall_s", "processor_s"))
        rows.append((
            side,
            "loaded" if any(each["compiler"] for each in measures) else "not loaded",
            f"{statistics.median(walls):.2f}",
            f"{min(walls):.2f} to {max(walls):.2f}",
            f"{statistics.median(processors):.2f}",
            f"{max(each['memory_mib'] for each in measures):.0f}",
        ))  # fmt: skip
    print("\n".join(markdown_table(HEADINGS, rows)))


if __name__ == "__main__":
    main()
