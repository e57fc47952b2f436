"""The far side of `bench.several_writers`: the threads of one warm Spark session upsert into one table at once.

A session of its own for each writer would starve on few processors, so this is the way that suits Spark best. Also runs
where only PySpark 3.5 is. A write that met another is tried again until it lands, and counts as a conflict each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tests.support.reference.server import Handler, serve, start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY, PARTITION, ORDERING = "id", "part", "ts"


def commands(spark: SparkSession) -> dict[str, Handler]:
    def make(format: str, path: str, input: str, table_type: str) -> None:
        _SIDES[format](spark, path, table_type).make(spark.read.parquet(input))

    def upsert(format: str, path: str, inputs: list[list[str]], table_type: str) -> dict[str, Any]:
        """The files of each writer, one a commit, of which the first does not count."""
        side = _SIDES[format](spark, path, table_type)
        with ThreadPoolExecutor(len(inputs)) as pool:
            list(pool.map(lambda files: side.upsert_until_it_lands(files[:1]), inputs))
            started = time.perf_counter()
            conflicts = sum(pool.map(lambda files: side.upsert_until_it_lands(files[1:]), inputs))
            seconds = time.perf_counter() - started
        return {"seconds": seconds, "conflicts": conflicts}

    return {"make": make, "upserts": upsert}


class Side:
    """One format. `conflict`: what the error says of a write that met another."""

    conflict: str

    def __init__(self, spark: SparkSession, path: str, table_type: str) -> None:
        self.spark, self.path, self.table_type = spark, path, table_type

    def make(self, rows: DataFrame) -> None:
        raise NotImplementedError

    def upsert(self, rows: DataFrame) -> None:
        raise NotImplementedError

    def upsert_until_it_lands(self, files: Sequence[str]) -> int:
        conflicts = 0
        for file in files:
            while True:
                try:
                    self.upsert(self.spark.read.parquet(file))
                    break
                except Exception as error:
                    if self.conflict not in str(error):
                        raise
                    conflicts += 1
        return conflicts


class Hudi(Side):
    """Optimistic concurrency with the lock of one process, the cheapest that there is."""

    conflict = "HoodieWriteConflictException"

    def make(self, rows: DataFrame) -> None:
        self._write(rows, "bulk_insert")

    def upsert(self, rows: DataFrame) -> None:
        self._write(rows, "upsert")

    def _write(self, rows: DataFrame, operation: str) -> None:
        options = {
            "hoodie.table.name": "bench",
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": KEY,
            "hoodie.datasource.write.partitionpath.field": PARTITION,
            "hoodie.datasource.write.precombine.field": ORDERING,
            "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
            "hoodie.clean.failed.writes.policy": "LAZY",
            "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
            "hoodie.write.lock.wait_time_ms": "600000",
        }
        rows.write.format("hudi").options(**options).mode("append").save(self.path)


class Iceberg(Side):
    """`MERGE INTO` by partition and key, with the isolation that it has by default."""

    conflict = "ValidationException"

    def _name(self) -> str:
        return "bench." + ".".join(self.path.split("/")[-2:])

    def make(self, rows: DataFrame) -> None:
        writer = rows.writeTo(self._name()).partitionedBy(rows[PARTITION])
        for change in ("merge", "update", "delete"):
            kind = "merge-on-read" if self.table_type == "MERGE_ON_READ" else "copy-on-write"
            writer = writer.tableProperty(f"write.{change}.mode", kind)
        writer.create()

    def upsert(self, rows: DataFrame) -> None:
        parts = ", ".join(f"'{row[0]}'" for row in rows.select(PARTITION).distinct().collect())
        view = f"changes_{id(rows)}"
        rows.createOrReplaceTempView(view)
        self.spark.sql(
            f"MERGE INTO {self._name()} t USING {view} s "
            f"ON t.{PARTITION} = s.{PARTITION} AND t.{KEY} = s.{KEY} AND t.{PARTITION} IN ({parts}) "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )


_SIDES: dict[str, Callable[..., Side]] = {"hudi": Hudi, "iceberg": Iceberg}


if __name__ == "__main__":
    serve(start_session, commands)
