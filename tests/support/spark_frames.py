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
    """The same rows as a DataFrame, by a Parquet file: what Spark reads is bit for bit what was written.

    A column of no type, and columns whose names differ in case, are in no such file: Spark selects them.
    """
    from pyspark.sql import functions as f

    numbered = rows.rename_columns([str(at) for at in range(rows.num_columns)])
    void = [str(at) for at, field in enumerate(rows.schema) if field.type == pa.null()]
    if not void and len({name.lower() for name in rows.column_names}) == rows.num_columns:
        return _in_a_file(spark, rows, folder)
    read = _in_a_file(spark, numbered.drop_columns(void), folder)
    columns = [(f.lit(None) if name in void else f.col(name)) for name in numbered.column_names]
    return read.select(*(one.alias(name) for one, name in zip(columns, rows.column_names, strict=True)))


def _in_a_file(spark: Any, rows: pa.Table, folder: Path) -> Any:
    from pyhudi.engine.spark.schema import spark_schema

    path = folder / f"rows-{len(list(folder.glob('rows-*')))}.parquet"
    pa.parquet.write_table(rows, path, version="2.6", coerce_timestamps="us")
    return reader(spark).schema(spark_schema(rows.schema)).parquet(str(path))
