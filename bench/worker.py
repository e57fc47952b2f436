"""The far side of the benchmark: a Spark session that writes and reads the same rows in the way it is told.

Like the reference's server, and spoken to in the same way; also runs where only PySpark 3.5 is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
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

    def write(
        path: str,
        input: str,
        format: str,
        operation: str,
        table_type: str,
        properties: dict[str, str],
        is_computed: bool = False,
    ) -> float:
        frame = spark.read.parquet(input)
        if is_computed:
            frame = frame.withColumn("n_int", frame["n_int"].bitwiseOR(0))
        step, target = _WRITES[format], Target(path, table_type, properties)
        started = time.perf_counter()
        step(spark, frame, target, operation)
        return time.perf_counter() - started

    def compact(path: str, format: str) -> float:
        """All logs, or deletes and small files, into base files."""
        started = time.perf_counter()
        _COMPACTIONS[format](spark, path)
        return time.perf_counter() - started

    def cluster(path: str, format: str, columns: list[str], layout: str) -> float:
        """All file groups of a table into such that are sorted by the columns."""
        started = time.perf_counter()
        _CLUSTERINGS[format](spark, path, columns, layout)
        return time.perf_counter() - started

    def full_scan(path: str, format: str) -> float:
        """Every row and column into a sink that drops them."""
        started = time.perf_counter()
        open_rows(spark, path, format).select(*COLUMNS).write.format("noop").mode("overwrite").save()
        return time.perf_counter() - started

    def aggregate(path: str, format: str) -> float:
        started = time.perf_counter()
        rows = open_rows(spark, path, format).groupBy(PARTITION)
        rows.agg({"n_long": "sum", "n_double": "avg", "price": "max", "*": "count"}).collect()
        return time.perf_counter() - started

    def summary(path: str, format: str) -> dict[str, Any]:
        """What a table holds, by this session's reader."""
        texts = ("count(*) AS rows", f"count(DISTINCT {KEY}) AS keys", "sum(n_long) AS total")
        row = open_rows(spark, path, format).selectExpr(*texts).first()
        assert row is not None
        return row.asDict()

    return {
        **hudi_commands(spark),
        "bench_write": write,
        "compact": compact,
        "cluster": cluster,
        "full_scan": full_scan,
        "aggregate": aggregate,
        "summary": summary,
    }


def open_rows(spark: SparkSession, path: str, format: str) -> DataFrame:
    if format == "pyhudi":
        from pyhudi import HudiTable

        return HudiTable.open(path).scan(meta_fields=False).to_spark(spark)
    return spark.read.format(format).load(path)


@dataclass(frozen=True)
class Target:
    """The table to write. `properties`: of a Hudi table, its index among them."""

    path: str
    table_type: str
    properties: dict[str, str]

    @property
    def has_logs(self) -> bool:
        return self.table_type == "MERGE_ON_READ"


def _write_parquet(spark: SparkSession, frame: DataFrame, target: Target, operation: str) -> None:
    assert operation == "bulk_insert"
    frame.write.partitionBy(PARTITION).parquet(target.path)


def write_hudi(spark: SparkSession, frame: DataFrame, target: Target, operation: str) -> None:
    """Apache Hudi with its default settings, but for the index: row writer."""
    frame.write.format("hudi").options(**hudi_options(target, operation)).mode("append").save(target.path)


def hudi_options(target: Target, operation: str) -> dict[str, str]:
    """What Apache Hudi's writer is told."""
    return {
        "hoodie.table.name": "bench",
        "hoodie.datasource.write.table.type": target.table_type,
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.recordkey.field": KEY,
        "hoodie.datasource.write.partitionpath.field": PARTITION,
        "hoodie.datasource.write.precombine.field": ORDERING,
        **target.properties,
    }


def _write_pyhudi(spark: SparkSession, frame: DataFrame, target: Target, operation: str) -> None:
    from pyhudi import HudiTable

    if operation == "bulk_insert":
        table = HudiTable.create(
            target.path, name="bench", record_key=KEY, partition_by=PARTITION, ordering=ORDERING,
            table_type=target.table_type, properties=target.properties,
        )  # fmt: skip
        table.bulk_insert(frame)
    else:
        HudiTable.open(target.path).upsert(frame)


def _write_delta(spark: SparkSession, frame: DataFrame, target: Target, operation: str) -> None:
    if operation == "bulk_insert":
        frame.write.format("delta").partitionBy(PARTITION).save(target.path)
    else:
        _merge(spark, frame, f"delta.`{target.path}`")


def write_iceberg(spark: SparkSession, frame: DataFrame, target: Target, operation: str) -> None:
    name = iceberg_name(target.path)
    if operation == "bulk_insert":
        writer = frame.writeTo(name).partitionedBy(frame[PARTITION])
        if target.has_logs:
            for change in ("merge", "update", "delete"):
                writer = writer.tableProperty(f"write.{change}.mode", "merge-on-read")
        writer.create()
    else:
        _merge(spark, frame, name)


def iceberg_name(path: str) -> str:
    """The path is that of `bench.<folder>.<table>` in a catalog whose warehouse is the folder above."""
    return "bench." + ".".join(path.split("/")[-2:])


def _merge(spark: SparkSession, frame: DataFrame, target: str) -> None:
    """An upsert as Apache Hudi does it: looked up within the partition, the later row wins."""
    frame.createOrReplaceTempView("changes")
    spark.sql(
        f"MERGE INTO {target} t USING changes s ON t.{PARTITION} = s.{PARTITION} AND t.{KEY} = s.{KEY} "
        f"WHEN MATCHED AND s.{ORDERING} >= t.{ORDERING} THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def _compact_hudi(spark: SparkSession, path: str) -> None:
    due = "hoodie.compact.inline.max.delta.commits=1"
    for step in ("schedule", "run"):
        spark.sql(f"CALL run_compaction(op => '{step}', path => '{path}', options => '{due}')").collect()


def _compact_pyhudi(spark: SparkSession, path: str) -> None:
    from pyhudi import HudiTable

    HudiTable.open(path).compact(spark=spark)


def _compact_iceberg(spark: SparkSession, path: str) -> None:
    table = iceberg_name(path).removeprefix("bench.")
    spark.sql(
        f"CALL bench.system.rewrite_data_files(table => '{table}', options => map('delete-file-threshold', '1', "
        "'min-input-files', '1'))"
    ).collect()


_COMPACTIONS: dict[str, Callable[[SparkSession, str], None]] = {
    "hudi": _compact_hudi,
    "pyhudi": _compact_pyhudi,
    "iceberg": _compact_iceberg,
}


def _cluster_hudi(spark: SparkSession, path: str, columns: list[str], layout: str) -> None:
    spark.sql(
        f"CALL run_clustering(path => '{path}', op => 'scheduleAndExecute', order => '{','.join(columns)}', "
        f"options => 'hoodie.layout.optimize.strategy={layout}')"
    ).collect()


def _cluster_pyhudi(spark: SparkSession, path: str, columns: list[str], layout: str) -> None:
    from pyhudi import HudiTable

    options = {
        "hoodie.clustering.plan.strategy.sort.columns": ",".join(columns),
        "hoodie.layout.optimize.strategy": layout,
    }
    assert HudiTable.open(path).cluster(options=options, spark=spark).files


_CLUSTERINGS: dict[str, Callable[[SparkSession, str, list[str], str], None]] = {
    "hudi": _cluster_hudi,
    "pyhudi": _cluster_pyhudi,
}

_WRITES: dict[str, Callable[[SparkSession, DataFrame, Target, str], None]] = {
    "parquet": _write_parquet,
    "hudi": write_hudi,
    "pyhudi": _write_pyhudi,
    "delta": _write_delta,
    "iceberg": write_iceberg,
}


if __name__ == "__main__":
    serve(start_session, bench_commands)
