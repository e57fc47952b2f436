"""Rows of one new key that end up in two file groups are two rows for ever: no later write can settle them."""

import pyarrow as pa

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage


def test_equal_new_keys_of_a_batch_become_one_row_however_many_file_groups_take_new_rows() -> None:
    options = {"hoodie.parquet.max.file.size": "200", "hoodie.copyonwrite.record.size.estimate": "50"}
    table = HudiTable.create(
        "unused", name="t", record_key="id", ordering="ts", properties=options, storage=MemoryStorage()
    )
    keys = [f"k{n % 40}" for n in range(200)]

    result = table.upsert(pa.table({"id": keys, "ts": pa.array(range(200), pa.int64())}))

    assert result.files > 1
    assert (result.inserted, result.updated) == (40, 0)
    rows = table.scan(columns=["id", "ts"]).to_arrow().sort_by("ts").to_pylist()
    assert rows == [{"id": f"k{n % 40}", "ts": n} for n in range(160, 200)]


def test_a_key_that_several_file_groups_hold_is_updated_and_deleted_in_each() -> None:
    """Spec: format/indexes.md section 2: several hits of one key are all tagged; duplicates stay duplicates."""
    table = HudiTable.create("unused", name="t", record_key="id", ordering="ts", storage=MemoryStorage())
    for ts in (1, 2, 3):
        table.bulk_insert(pa.table({"id": ["twice", f"k{ts}"], "ts": pa.array([ts, ts], pa.int64())}))

    updated = table.upsert(pa.table({"id": ["twice", "new"], "ts": pa.array([9, 9], pa.int64())}))
    rows = table.scan(columns=["id", "ts"]).to_arrow().to_pylist()
    deleted = table.delete(pa.table({"id": ["twice", "absent"]}))

    assert (updated.updated, updated.inserted) == (3, 1)
    assert sorted(row["ts"] for row in rows if row["id"] == "twice") == [9, 9, 9]
    assert deleted.deleted == 3
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ["k1", "k2", "k3", "new"]
