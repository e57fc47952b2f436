"""One library in one process without Spark: every step once to warm up, then once measured, as JSON.

python -m bench.process_worker SIDE FOLDER INSERTED CHANGED FEW TABLE_TYPE PROPERTIES
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY, PARTITION, ORDERING = "id", "part", "ts"

Steps = dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Task:
    """The table to write, and its rows."""

    path: str
    inserted: pa.Table
    changed: pa.Table
    few: pa.Table
    table_type: str
    properties: dict[str, str]


def pyhudi_steps(task: Task) -> Steps:
    from pyhudi import HudiTable

    def bulk_insert() -> None:
        table = HudiTable.create(
            task.path, name="bench", record_key=KEY, partition_by=PARTITION, ordering=ORDERING,
            table_type=task.table_type, properties=task.properties,
        )  # fmt: skip
        table.bulk_insert(task.inserted)

    steps: Steps = {
        "bulk insert": bulk_insert,
        "upsert 10 %": lambda: HudiTable.open(task.path).upsert(task.changed),
        "full scan": lambda: HudiTable.open(task.path).scan(meta_fields=False).to_arrow(),
        "upsert 1,000 rows": lambda: HudiTable.open(task.path).upsert(task.few),
        "compaction": lambda: HudiTable.open(task.path).compact(),
    }
    if task.table_type == "COPY_ON_WRITE":
        steps["full scan"] = steps.pop("full scan")  # the last of all
        del steps["compaction"]
    return steps


def deltalake_steps(task: Task) -> Steps:
    from deltalake import DeltaTable, write_deltalake

    def merge(rows: pa.Table) -> None:
        same = f"t.{PARTITION} = s.{PARTITION} AND t.{KEY} = s.{KEY}"
        merger = DeltaTable(task.path).merge(rows, same, source_alias="s", target_alias="t")
        merger = merger.when_matched_update_all(f"s.{ORDERING} >= t.{ORDERING}")
        merger.when_not_matched_insert_all().execute()

    return {
        "bulk insert": lambda: write_deltalake(task.path, task.inserted, partition_by=[PARTITION]),
        "upsert 10 %": lambda: merge(task.changed),
        "upsert 1,000 rows": lambda: merge(task.few),
        "full scan": lambda: DeltaTable(task.path).to_pyarrow_table(),
    }


def hudi_rs_steps(task: Task) -> Steps:
    """hudi-rs reads what pyhudi wrote: it writes no tables. The writes are there for the scan only."""
    from tests.support.hudi_rs import read_hudi_rs

    def full_scan() -> pa.Table:
        return read_hudi_rs(task.path).select(task.inserted.schema.names)

    return {**pyhudi_steps(task), "full scan": full_scan}


SIDES = {"pyhudi": pyhudi_steps, "deltalake": deltalake_steps, "hudi-rs": hudi_rs_steps}


def main() -> None:
    side, folder, *inputs, table_type, properties = sys.argv[1:]
    tables = [pq.read_table(path) for path in inputs]
    measures: dict[str, dict[str, float]] = {}
    for _ in ("warm up", "measured"):
        path = Path(folder) / "table"
        shutil.rmtree(path, ignore_errors=True)
        task = Task(str(path), tables[0], tables[1], tables[2], table_type, json.loads(properties))
        for name, step in SIDES[side](task).items():
            processor, started = time.process_time(), time.perf_counter()
            found = step()
            measures[name] = {
                "wall_s": time.perf_counter() - started,
                "processor_s": time.process_time() - processor,
            }
            if name == "full scan":
                answer = {"rows": len(found), "total": pc.sum(found.column("n_long")).as_py()}
            del found
    print(json.dumps({"measures": measures, "answer": answer}))


if __name__ == "__main__":
    main()
