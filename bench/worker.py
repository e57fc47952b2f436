"""The far side of the benchmark: a Spark session that writes and reads the same rows in the way it is told.

Like the reference's server, and spoken to in the same way; also runs where only PySpark 3.5 is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.support.reference.server import Handler, hudi_commands, serve, start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY, PARTITION, ORDERING = "id", "part", "ts"
COLUMNS = (
    KEY, PARTITION, ORDERING, "n_int", "n_long", "n_double", "s_one", "s_two", "on_date", "at", "flag", "price"
)  # fmt: skip


def bench_commands(spark: SparkSession) -> dict[str, Handler]:
    """Each step answers the seconds that it took here, without the way to and fro."""

    def write(path: str, input: str, format: str, operation: str) -> float:
        frame = spark.read.parquet(input)
        step = _WRITES[format]
        started = time.perf_counter()
        step(spark, frame, path, operation)
        return time.perf_counter() - started

    def full_scan(path: str, format: str) -> float:
        """Every row and column into a sink that drops them."""
        started = time.perf_counter()
        _open(spark, path, format).select(*COLUMNS).write.format("noop").mode("overwrite").save()
        return time.perf_counter() - started

    def aggregate(path: str, format: str) -> float:
        started = time.perf_counter()
        rows = _open(spark, path, format).groupBy(PARTITION)
        rows.agg({"n_long": "sum", "n_double": "avg", "price": "max", "*": "count"}).collect()
        return time.perf_counter() - started

    def summary(path: str, format: str) -> dict[str, Any]:
        """What a table holds, by this session's reader."""
        texts = ("count(*) AS rows", f"count(DISTINCT {KEY}) AS keys", "sum(n_long) AS total")
        row = _open(spark, path, format).selectExpr(*texts).first()
        assert row is not None
        return row.asDict()

    return {
        **hudi_commands(spark),
        "bench_write": write,
        "full_scan": full_scan,
        "aggregate": aggregate,
        "summary": summary,
    }


def _open(spark: SparkSession, path: str, format: str) -> DataFrame:
    if format == "pyhudi":
        from pyhudi import HudiTable

        return HudiTable.open(path).scan(meta_fields=False).to_spark(spark)
    return spark.read.format(format).load(path)


def _write_parquet(spark: SparkSession, frame: DataFrame, path: str, operation: str) -> None:
    assert operation == "bulk_insert"
    frame.write.partitionBy(PARTITION).parquet(path)


def _write_hudi(spark: SparkSession, frame: DataFrame, path: str, operation: str) -> None:
    """Apache Hudi with its default settings: copy-on-write, SIMPLE index, row writer."""
    options = {
        "hoodie.table.name": "bench",
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.recordkey.field": KEY,
        "hoodie.datasource.write.partitionpath.field": PARTITION,
        "hoodie.datasource.write.precombine.field": ORDERING,
        "hoodie.index.type": "SIMPLE",
    }
    frame.write.format("hudi").options(**options).mode("append").save(path)


def _write_pyhudi(spark: SparkSession, frame: DataFrame, path: str, operation: str) -> None:
    from pyhudi import HudiTable

    if operation == "bulk_insert":
        table = HudiTable.create(path, name="bench", record_key=KEY, partition_by=PARTITION, ordering=ORDERING)
        table.bulk_insert(frame)
    else:
        HudiTable.open(path).upsert(frame)


def _write_delta(spark: SparkSession, frame: DataFrame, path: str, operation: str) -> None:
    if operation == "bulk_insert":
        frame.write.format("delta").partitionBy(PARTITION).save(path)
    else:
        _merge(spark, frame, f"delta.`{path}`")


def _write_iceberg(spark: SparkSession, frame: DataFrame, path: str, operation: str) -> None:
    """`path` is that of `bench.<folder>.<table>` in a catalog whose warehouse is the folder above."""
    name = "bench." + ".".join(path.split("/")[-2:])
    if operation == "bulk_insert":
        frame.writeTo(name).partitionedBy(frame[PARTITION]).create()
    else:
        _merge(spark, frame, name)


def _merge(spark: SparkSession, frame: DataFrame, target: str) -> None:
    """An upsert as Apache Hudi does it: looked up within the partition, the later row wins."""
    frame.createOrReplaceTempView("changes")
    spark.sql(
        f"MERGE INTO {target} t USING changes s ON t.{PARTITION} = s.{PARTITION} AND t.{KEY} = s.{KEY} "
        f"WHEN MATCHED AND s.{ORDERING} >= t.{ORDERING} THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


_WRITES: dict[str, Callable[[SparkSession, DataFrame, str, str], None]] = {
    "parquet": _write_parquet,
    "hudi": _write_hudi,
    "pyhudi": _write_pyhudi,
    "delta": _write_delta,
    "iceberg": _write_iceberg,
}


if __name__ == "__main__":
    serve(start_session, bench_commands)
