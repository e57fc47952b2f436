"""A call for one pending plan could carry out another one, plan a new one, or pass over a plan that is not there."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid, NotFound


def rows(ts: int, *keys: int) -> pa.Table:
    return pa.table({"k": list(keys), "p": [str(key % 2) for key in keys], "ts": [ts] * len(keys)})


def made(path: Path, table_type: str) -> HudiTable:
    table = HudiTable.create(path, name="t", record_key="k", partition_by="p", ordering="ts", table_type=table_type)
    return HudiTable.open(table.path, options={"hoodie.parquet.small.file.limit": "0"})


def pending(table: HudiTable) -> list[str]:
    return [instant.requested for instant in table.timeline() if instant.completed is None]


def test_one_pending_compaction_is_carried_out(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "MERGE_ON_READ")
    table.insert(rows(1, 1, 2))
    plans = []
    for ts in (2, 3):
        table.upsert(rows(ts, ts - 1))  # another partition each time
        plans.append(str(table.schedule_compaction().requested))
    assert pending(table) == plans

    assert table.compact(instants=plans[1:]).requested == plans[1]
    assert pending(table) == plans[:1]
    with pytest.raises(NotFound, match=f"'{plans[1]}', found none; pending are {plans[0]}"):
        table.compact(instants=[plans[1]])
    with pytest.raises(Invalid, match="expected a sequence"):
        table.compact(instants=plans[0])
    assert table.compact(instants=[]).reason == "no compaction is pending"
    assert table.compact(instants=plans[:1]).completed
    assert pending(table) == []
    assert sorted(table.scan(["k", "ts"]).to_arrow().to_pylist(), key=str) == [{"k": 1, "ts": 2}, {"k": 2, "ts": 3}]
    with pytest.raises(NotFound, match="none is pending"):
        table.compact(instants=plans)


def test_one_pending_clustering_is_carried_out(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "COPY_ON_WRITE")
    table.insert(rows(1, 1, 2))
    table.insert(rows(1, 3, 4))
    plans = [str(table.schedule_clustering(partitions=[one]).requested) for one in ("0", "1")]

    assert table.run_clusterings(instants=plans[1:]).requested == plans[1]
    assert pending(table) == plans[:1]
    with pytest.raises(NotFound, match=f"pending clustering of '{plans[1]}'"):
        table.run_clusterings(instants=plans)
    assert table.run_clusterings().requested == plans[0]
    assert sorted(table.scan(["k"]).to_arrow()["k"].to_pylist()) == [1, 2, 3, 4]
