"""One library in one process without Spark: every step once to warm up, then once measured, as JSON.

python -m bench.process_worker SIDE FOLDER INSERTED CHANGED FEW
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY, PARTITION, ORDERING = "id", "part", "ts"

Steps = dict[str, Callable[[], Any]]


def pyhudi_steps(path: str, inserted: pa.Table, changed: pa.Table, few: pa.Table) -> Steps:
    from pyhudi import HudiTable

    def bulk_insert() -> None:
        table = HudiTable.create(path, name="bench", record_key=KEY, partition_by=PARTITION, ordering=ORDERING)
        table.bulk_insert(inserted)

    return {
        "bulk insert": bulk_insert,
        "upsert 10 %": lambda: HudiTable.open(path).upsert(changed),
        "upsert 1,000 rows": lambda: HudiTable.open(path).upsert(few),
        "full scan": lambda: HudiTable.open(path).scan(meta_fields=False).to_arrow(),
    }


def deltalake_steps(path: str, inserted: pa.Table, changed: pa.Table, few: pa.Table) -> Steps:
    from deltalake import DeltaTable, write_deltalake

    def merge(rows: pa.Table) -> None:
        same = f"t.{PARTITION} = s.{PARTITION} AND t.{KEY} = s.{KEY}"
        merger = DeltaTable(path).merge(rows, same, source_alias="s", target_alias="t")
        merger = merger.when_matched_update_all(f"s.{ORDERING} >= t.{ORDERING}")
        merger.when_not_matched_insert_all().execute()

    return {
        "bulk insert": lambda: write_deltalake(path, inserted, partition_by=[PARTITION]),
        "upsert 10 %": lambda: merge(changed),
        "upsert 1,000 rows": lambda: merge(few),
        "full scan": lambda: DeltaTable(path).to_pyarrow_table(),
    }


def hudi_rs_steps(path: str, inserted: pa.Table, changed: pa.Table, few: pa.Table) -> Steps:
    """hudi-rs reads what pyhudi wrote: it writes no tables. The writes are there for the scan only."""
    from tests.support.hudi_rs import read_hudi_rs

    def full_scan() -> pa.Table:
        return read_hudi_rs(path).select(inserted.schema.names)

    return {**pyhudi_steps(path, inserted, changed, few), "full scan": full_scan}


SIDES = {"pyhudi": pyhudi_steps, "deltalake": deltalake_steps, "hudi-rs": hudi_rs_steps}


def main() -> None:
    side, folder, *inputs = sys.argv[1:]
    tables = [pq.read_table(path) for path in inputs]
    measures: dict[str, dict[str, float]] = {}
    for _ in ("warm up", "measured"):
        path = Path(folder) / "table"
        shutil.rmtree(path, ignore_errors=True)
        for name, step in SIDES[side](str(path), tables[0], tables[1], tables[2]).items():
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
