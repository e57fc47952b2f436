"""A DataFrame that is written while another writer changes its file group could be lost, or evaluated a second time."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

import pyhudi.spark
from pyhudi import HudiTable
from pyhudi.txn.action.write import RunningWrite
from tests.spark.handovers import handed

pytestmark = pytest.mark.spark


@handed(
    "table_type",
    ["COPY_ON_WRITE", "MERGE_ON_READ"],
    [("files", "COPY_ON_WRITE"), ("shuffle", "MERGE_ON_READ"), ("gathered", "COPY_ON_WRITE")],
)
def test_a_frame_is_planned_anew_from_what_was_read_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handover: str, table_type: str
) -> None:
    pyhudi.spark.register(spark)
    path = tmp_path / "t"
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="p", ordering="ts", table_type=table_type, table_version=9
    )
    columns = "id string, p string, ts long"
    stored = spark.createDataFrame([(key, "x", 1) for key in "abc"], columns)
    stored.write.format("hudi").mode("append").save(str(path))
    evaluated = spark.sparkContext.accumulator(0)

    def count(ts):  # Spark takes a function with annotations for one of another kind
        evaluated.add(1)
        return ts

    rows = spark.createDataFrame([("a", "x", 2), ("new", "x", 2)], columns)
    frame = rows.withColumn("ts", f.udf(count, "long").asNondeterministic()("ts"))
    put_inflight, met = RunningWrite.put_inflight, list[str]()

    def put_after_another(write: RunningWrite, content: bytes) -> None:
        put_inflight(write, content)
        if not met:
            met.append(write.run.requested)
            table.upsert(pa.table({"id": ["a", "b"], "p": ["x"] * 2, "ts": [3, 3]}))

    monkeypatch.setattr(RunningWrite, "put_inflight", put_after_another)
    frame.write.format("hudi").mode("append").save(str(path))

    found = table.scan().to_arrow().select(["id", "ts"]).to_pylist()
    assert {row["id"]: row["ts"] for row in found} == {"a": 3, "b": 3, "c": 1, "new": 2}
    assert len(found) == 4
    assert met[0] not in [
        instant.requested for instant in table.timeline() if instant.is_completed and instant.action != "rollback"
    ]
    assert evaluated.value == 2
