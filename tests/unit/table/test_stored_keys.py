"""Keys of one column may be spelled in two ways. A write in the other one would store each row a second time."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable

NAMED = {"hoodie.write.complex.keygen.new.encoding": "false"}
BARE = {"hoodie.write.complex.keygen.new.encoding": "true"}


def rows(*ids: str, ts: int) -> pa.Table:
    return pa.table({"id": list(ids), "a": ["x"] * len(ids), "b": ["y"] * len(ids), "ts": [ts] * len(ids)})


def made(path: Path, version: int, table_type: str = "COPY_ON_WRITE", **options: object) -> HudiTable:
    return HudiTable.create(
        path, name="t", record_key="id", partition_by=("a", "b"), ordering="ts", table_version=version,
        table_type=table_type, properties=options,
    )  # fmt: skip


def keys(table: HudiTable) -> dict[str, int]:
    found = HudiTable.open(table.path).scan(["_hoodie_record_key", "ts"]).to_arrow().to_pylist()
    assert len({row["_hoodie_record_key"] for row in found}) == len(found)
    return {row["_hoodie_record_key"]: row["ts"] for row in found}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_write_spells_keys_as_the_stored_ones_are(tmp_path: Path, version: int, table_type: str) -> None:
    table = made(tmp_path / "t", version, table_type)
    table.upsert(rows("1", "2", ts=1), options=NAMED)
    assert keys(table) == {"id:1": 1, "id:2": 1}

    table.upsert(rows("1", "3", ts=2))
    table.upsert(rows("3", "4", ts=3), options=BARE)
    table.delete(rows("2", ts=4))
    assert keys(table) == {"id:1": 2, "id:3": 3, "id:4": 3}
    assert table.lookup(["1"]).num_rows == table.lookup(rows("1", ts=0)).num_rows == 1
    assert table.scan(where="id = '3'").count() == 1
    every = {name: f"source.{name}" for name in ("id", "a", "b", "ts")}
    table.merge(
        rows("4", "5", ts=9), on="target.id = source.id", when_matched_update={"ts": "source.ts"},
        when_not_matched_insert=every,
    )  # fmt: skip
    assert keys(table) == {"id:1": 2, "id:3": 3, "id:4": 9, "id:5": 9}


@pytest.mark.parametrize("version", [6, 8])
def test_bare_keys_stay_bare_even_where_they_look_otherwise(tmp_path: Path, version: int) -> None:
    table = made(tmp_path / "t", version)
    table.insert(rows("id:1", ts=1))
    assert keys(table) == {"id:1": 1}
    table.upsert(rows("id:1", "2", ts=2), options=NAMED)
    assert keys(table) == {"id:1": 2, "2": 2}


def test_rows_in_logs_alone_tell_too(tmp_path: Path) -> None:
    table = made(
        tmp_path / "t", 8, "MERGE_ON_READ", **{"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    )
    side_by_side = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
    table.upsert(rows("1", ts=1), options=NAMED | side_by_side)
    assert not list((tmp_path / "t").rglob("*.parquet"))
    table.upsert(rows("1", "2", ts=2), options=side_by_side)
    assert keys(table) == {"id:1": 2, "id:2": 2}


def test_a_table_whose_rows_are_gone_is_as_a_new_one(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 8)
    table.upsert(rows("1", ts=1), options=NAMED)
    table.delete_partitions(["x/y"])
    table.upsert(rows("1", ts=2))
    assert keys(table) == {"1": 2}
