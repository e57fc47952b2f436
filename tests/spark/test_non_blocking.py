"""Spark's writers could block each other, or open two file groups of one bucket, where they were asked not to."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import pyhudi.spark
from pyhudi import HudiTable

pytestmark = pytest.mark.spark

WRITERS = 3
OPTIONS = {
    "hoodie.table.name": "meters",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.write.num.retries.on.conflict.failures": "0",
}


def test_writers_without_blocking_on_spark(spark: Any, tmp_path: Path) -> None:
    pyhudi.spark.register(spark)
    path = str(tmp_path / "meters")

    def write(writer: int) -> None:
        rows = [("shared", "oslo", writer, writer), *((f"{writer}-{key}", "oslo", writer, key) for key in range(5))]
        frame = spark.createDataFrame(rows, "id string, city string, ts long, v long")
        frame.write.format("hudi").options(**OPTIONS).mode("append").save(path)

    HudiTable.create(
        path, name="meters", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    )  # fmt: skip
    for _ in range(2):
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write, range(WRITERS)))

    expected = {("shared", WRITERS - 1), *((f"{w}-{key}", key) for w in range(WRITERS) for key in range(5))}
    for _ in range(2):
        found = [(row.id, row.v) for row in spark.read.format("hudi").load(path).select("id", "v").collect()]
        assert sorted(found) == sorted(expected)
        HudiTable.open(path).compact()

    logs = {log.name.partition("_")[0] for log in (tmp_path / "meters" / "oslo").glob(".0*.log.*")}
    assert logs == {f".0000000{bucket}-0000-0000-0000-000000000000-0" for bucket in (0, 1)}
    assert HudiTable.open(path).metadata.validate().is_valid


def test_spark_is_told_where_it_cannot_be(spark: Any, tmp_path: Path) -> None:
    pyhudi.spark.register(spark)
    path = tmp_path / "meters"
    frame = spark.createDataFrame([("a", "oslo", 1)], "id string, city string, ts long")
    wrong = {**OPTIONS, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
    with pytest.raises(Exception, match="expected a table of type MERGE_ON_READ, found COPY_ON_WRITE"):
        frame.write.format("hudi").options(**wrong).mode("append").save(str(path))
    assert not path.exists() or not list(path.rglob("*.parquet"))
