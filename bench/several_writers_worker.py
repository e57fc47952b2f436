"""The far side of `bench.several_writers`: the threads of one warm Spark session upsert into one table at once.

A session of its own for each writer would starve on few processors, so this is the way that suits Spark best. Also runs
where only PySpark 3.5 is. A write that met another is tried again until it lands, and counts as a conflict each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar

from bench.worker import KEY, PARTITION, Target, iceberg_name, write_hudi, write_iceberg
from tests.support.reference.server import Handler, serve, start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def commands(spark: SparkSession) -> dict[str, Handler]:
    def make(format: str, path: str, input: str, table_type: str) -> None:
        _SIDES[format](spark, path, table_type).make(spark.read.parquet(input))

    def upserts(format: str, path: str, inputs: list[list[str]], table_type: str) -> dict[str, Any]:
        """The files of each writer, one a commit, of which the first does not count."""
        side = _SIDES[format](spark, path, table_type)
        with ThreadPoolExecutor(len(inputs)) as pool:
            list(pool.map(lambda files: side.upsert_until_it_lands(files[:1]), inputs))
            started = time.perf_counter()
            conflicts = sum(pool.map(lambda files: side.upsert_until_it_lands(files[1:]), inputs))
            seconds = time.perf_counter() - started
        return {"seconds": seconds, "conflicts": conflicts}

    return {"make": make, "upserts": upserts}


class Side:
    """One format. `conflict`: what the error says of a write that met another. `properties`: of its tables."""

    conflict: str
    properties: ClassVar[Mapping[str, str]] = {}

    def __init__(self, spark: SparkSession, path: str, table_type: str) -> None:
        self.spark, self.target = spark, Target(path, table_type, dict(self.properties))

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
    properties: ClassVar[Mapping[str, str]] = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        "hoodie.write.lock.wait_time_ms": "600000",
    }

    def make(self, rows: DataFrame) -> None:
        write_hudi(self.spark, rows, self.target, "bulk_insert")

    def upsert(self, rows: DataFrame) -> None:
        write_hudi(self.spark, rows, self.target, "upsert")


class Iceberg(Side):
    """`MERGE INTO` by partition and key, with the isolation that it has by default.

    The partitions are literals in the statement, so that writers of other partitions are not in its way. Each writer
    has a view of its own.
    """

    conflict = "ValidationException"

    def make(self, rows: DataFrame) -> None:
        write_iceberg(self.spark, rows, self.target, "bulk_insert")

    def upsert(self, rows: DataFrame) -> None:
        parts = ", ".join(f"'{row[0]}'" for row in rows.select(PARTITION).distinct().collect())
        view = f"changes_{id(rows)}"
        rows.createOrReplaceTempView(view)
        self.spark.sql(
            f"MERGE INTO {iceberg_name(self.target.path)} t USING {view} s "
            f"ON t.{PARTITION} = s.{PARTITION} AND t.{KEY} = s.{KEY} AND t.{PARTITION} IN ({parts}) "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )


_SIDES: dict[str, Callable[..., Side]] = {"hudi": Hudi, "iceberg": Iceberg}


if __name__ == "__main__":
    serve(start_session, commands)
