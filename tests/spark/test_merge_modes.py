"""Tasks of Spark could settle rows otherwise than this process does, where rules make one row of two."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, register_merger, register_payload_class
from tests.support.compare import assert_same_rows
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("note", pa.string())])
MODES = {
    "merger": {
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "b2f0a8de-2f43-4a0e-9c61-3f6b8f5a1c77",
    },
    "payload": {"hoodie.compaction.payload.class": "com.acme.SumPayload"},
    "partial": {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"},
    "marks": {"hoodie.payload.delete.field": "note", "hoodie.payload.delete.marker": "gone"},
}


def new_merger() -> Any:
    class Sum:  # a class of this function travels by its code, as one of a script does
        def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
            at = newer.schema.get_field_index("v")
            total = pc.add(pc.fill_null(older.column(at), 0), pc.fill_null(newer.column(at), 0))
            return newer.set_column(at, newer.schema.field(at), total)

    return Sum()


register_merger(MODES["merger"]["hoodie.record.merge.strategy.id"], new_merger)
register_payload_class("com.acme.SumPayload", new_merger)

BATCHES: list[list[tuple[Any, ...]]] = [
    [(f"k{n}", 5, n, "first") for n in range(20)],
    [row for n in range(0, 30, 2) for row in ((f"k{n}", 6, 100, None), (f"k{n}", 7, None, "gone" if n % 3 else None))],
]


@pytest.mark.parametrize(
    "kind, mode",
    [
        *(("MERGE_ON_READ", mode) for mode in MODES if mode != "payload"),
        ("COPY_ON_WRITE", "payload"),
        pytest.param("COPY_ON_WRITE", "merger", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", "payload", marks=pytest.mark.long),
        pytest.param("COPY_ON_WRITE", "partial", marks=pytest.mark.long),
        pytest.param("COPY_ON_WRITE", "marks", marks=pytest.mark.long),
    ],
)
@pytest.mark.usefixtures("by_shuffle")
def test_tasks_settle_rows_as_this_process_does(tmp_path: Path, spark: Any, kind: str, mode: str) -> None:
    def new_table(name: str) -> HudiTable:
        return HudiTable.create(
            tmp_path / name, name=name, record_key="id", ordering="ts", table_type=kind, table_version=9,
            properties=MODES[mode],
        )  # fmt: skip

    here, there = new_table("here"), new_table("there")
    for rows in BATCHES:
        batch = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
        here.upsert(batch)
        there.upsert(spark.createDataFrame(rows, "id string, ts bigint, v bigint, note string"))
        found = there.scan(meta_fields=False).to_arrow()
        assert_same_rows(found, here.scan(meta_fields=False).to_arrow())
    assert_same_rows(collected(there.scan(meta_fields=False).to_spark(spark)), found)
