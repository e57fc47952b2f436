"""The far side of the benchmark: a Spark session that writes the same input in the way it is told.

Like the reference's server, and spoken to in the same way; also runs where only PySpark 3.5 is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.support.reference.server import Handler, hudi_commands, serve, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY, PARTITION, ORDERING = "id", "part", "ts"


def bench_commands(spark: SparkSession) -> dict[str, Handler]:
    """Each write answers the seconds that it took here, without the way to and fro."""

    def plain_bulk_insert(path: str, input: str) -> float:
        frame = spark.read.parquet(input)
        started = time.perf_counter()
        frame.write.partitionBy(PARTITION).parquet(path)
        return time.perf_counter() - started

    def hudi_write(path: str, input: str, operation: str) -> float:
        """Apache Hudi with its default settings: copy-on-write, SIMPLE index, row writer."""
        frame = spark.read.parquet(input)
        options = {
            "hoodie.table.name": "bench",
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": KEY,
            "hoodie.datasource.write.partitionpath.field": PARTITION,
            "hoodie.datasource.write.precombine.field": ORDERING,
            "hoodie.index.type": "SIMPLE",
        }
        started = time.perf_counter()
        frame.write.format("hudi").options(**options).mode("append").save(path)
        return time.perf_counter() - started

    def pyhudi_write(path: str, input: str, operation: str) -> float:
        from pyhudi import HudiTable

        frame = spark.read.parquet(input)
        started = time.perf_counter()
        if operation == "bulk_insert":
            table = HudiTable.create(path, name="bench", record_key=KEY, partition_by=PARTITION, ordering=ORDERING)
            table.bulk_insert(frame)
        else:
            HudiTable.open(path).upsert(frame)
        return time.perf_counter() - started

    def summary(path: str, format: str) -> dict[str, Any]:
        """What a table holds, by this session's reader."""
        row = (
            spark.read.format(format)
            .load(path)
            .selectExpr("count(*) AS rows", f"count(DISTINCT {KEY}) AS keys", "sum(n_long) AS total")
            .first()
        )
        assert row is not None
        return row.asDict()

    return {
        **hudi_commands(spark),
        "plain_bulk_insert": plain_bulk_insert,
        "hudi_write": hudi_write,
        "pyhudi_write": pyhudi_write,
        "summary": summary,
    }


if __name__ == "__main__":
    serve(start_session, bench_commands)
