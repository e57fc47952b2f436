"""Spark could go on from files that a restore or a rollback took away: by an index or a listing that it had before."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.storage.local import LocalStorage
from tests.support.compare import assert_same_rows
from tests.support.merge_on_read import without_file_names
from tests.support.model import problems_on
from tests.support.spark_frames import collected, on_spark

pytestmark = pytest.mark.spark

INDEXES = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}


def rows(keys: range, value: int) -> pa.Table:
    return pa.table({"id": [f"k{key:03}" for key in keys], "part": [f"p{key % 3}" for key in keys],
                     "ts": [value] * len(keys), "v": [value * key for key in keys]})  # fmt: skip


@pytest.mark.parametrize(
    "table_type, way",
    [
        ("COPY_ON_WRITE", "rollback"),
        ("MERGE_ON_READ", "restore"),
        pytest.param("COPY_ON_WRITE", "restore", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", "rollback", marks=pytest.mark.long),
    ],
)
def test_spark_reads_and_writes_on_from_what_was_taken_back(
    spark: Any, tmp_path: Path, table_type: str, way: str
) -> None:
    path = tmp_path / "t"
    table = HudiTable.create(path, name="t", record_key="id", partition_by="part", ordering="ts",
                             table_type=table_type, properties=INDEXES)  # fmt: skip

    def upsert(keys: range, value: int) -> str:
        requested = table.upsert(on_spark(spark, rows(keys, value), tmp_path)).requested
        assert requested is not None
        return requested

    def seen() -> pa.Table:
        return without_file_names(collected(HudiTable.open(path).scan().to_spark(spark)))

    upsert(range(60), 1)
    kept = upsert(range(30), 2)
    before = seen()
    if way == "restore":
        table.savepoint(kept)
        upsert(range(20, 80), 3)
    last = upsert(range(10, 90), 4)
    assert len(seen()) == 90

    table.restore(kept) if way == "restore" else table.rollback(last)

    assert_same_rows(seen(), before)
    found = collected(HudiTable.open(path).scan(where="id = 'k085'").to_spark(spark))
    assert len(found) == 0
    upsert(range(50, 70), 5)
    after = collected(HudiTable.open(path).scan(columns=["id", "v"]).to_spark(spark))
    values = {f"k{key:03}": key for key in range(60)} | {f"k{key:03}": 2 * key for key in range(30)}
    values |= {f"k{key:03}": 5 * key for key in range(50, 70)}
    assert dict(zip(*(after.column(name).to_pylist() for name in ("id", "v")), strict=True)) == values
    assert problems_on(LocalStorage(str(path))) == []
