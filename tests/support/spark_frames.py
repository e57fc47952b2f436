"""Rows to Spark and back, alike on every PySpark."""

from pathlib import Path
from typing import Any

import pyarrow as pa


def collected(frame: Any) -> pa.Table:
    """The rows as Arrow; PySpark before 4.0 has another name for it, and no batch for no rows."""
    if hasattr(frame, "toArrow"):
        found: pa.Table = frame.toArrow()
        return found
    from pyspark.sql.pandas.types import to_arrow_schema

    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches) if batches else to_arrow_schema(frame.schema).empty_table()


def reader(spark: Any) -> Any:
    """A reader that takes dates as they are: before 4.0 Spark refuses old ones of files that name no calendar."""
    return spark.read.option("datetimeRebaseMode", "CORRECTED")


def on_spark(spark: Any, rows: pa.Table, folder: Path) -> Any:
    """The same rows as a DataFrame, by a Parquet file: what Spark reads is bit for bit what was written."""
    from pyhudi.engine.spark.schema import spark_schema

    path = folder / f"rows-{len(list(folder.glob('rows-*')))}.parquet"
    pa.parquet.write_table(rows, path, version="2.6", coerce_timestamps="us")
    return reader(spark).schema(spark_schema(rows.schema)).parquet(str(path))
