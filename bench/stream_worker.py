"""The far side of `bench.streams`: one query that writes small files to a table, one file a batch.

The script of the stream is the same for Apache Hudi and pyhudi. Also runs where only PySpark 3.5 is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.worker import Target, hudi_options, open_rows
from tests.support.reference.server import Handler, serve, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT_S = 3_600


def commands(spark: SparkSession) -> dict[str, Handler]:
    def make(path: str, input: str, format: str, table_type: str) -> None:
        _register(spark, format)
        options = hudi_options(Target(path, table_type, {}), "bulk_insert")
        spark.read.parquet(input).write.format("hudi").options(**options).mode("append").save(path)

    def stream(path: str, input: str, checkpoint: str, format: str, table_type: str) -> list[float]:
        """Milliseconds of each batch with rows, as Spark measures them: from one trigger to the end of the commit."""
        _register(spark, format)
        source = (
            spark.readStream.schema(spark.read.parquet(input).schema).option("maxFilesPerTrigger", 1).parquet(input)
        )
        options = hudi_options(Target(path, table_type, {}), "upsert")
        started = source.writeStream.format("hudi").options(**options).option("checkpointLocation", checkpoint)
        query = started.outputMode("append").trigger(availableNow=True).start(path)
        assert query.awaitTermination(WAIT_S)
        return [float(one["durationMs"]["triggerExecution"]) for one in query.recentProgress if one["numInputRows"]]

    def count(path: str) -> list[int]:
        """Rows and distinct keys, by this session's reader."""
        row = open_rows(spark, path, "hudi").selectExpr("count(*) rows", "count(DISTINCT id) keys").first()
        assert row is not None
        return [row["rows"], row["keys"]]

    return {"make": make, "stream": stream, "count": count}


def _register(spark: SparkSession, format: str) -> None:
    if format == "pyhudi":
        import pyhudi.spark

        pyhudi.spark.register(spark)


if __name__ == "__main__":
    serve(start_session, commands)
