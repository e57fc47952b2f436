"""SQL texts with parameters and DataFrames in them, as PySpark takes them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f


def literal(value: Any) -> str:
    """A value as SQL text."""
    inner: Any = (value if isinstance(value, Column) else f.lit(value))._jc
    return str(inner.expr().sql()) if hasattr(inner, "expr") else str(inner.toString())


@contextmanager
def formatted(spark: SparkSession, text: str, frames: Mapping[str, Any]) -> Iterator[str]:
    """The text with the names of temporary views in place of `{frame}`, for the length of a block."""
    if not frames:
        yield text
        return
    from pyspark.sql.sql_formatter import SQLStringFormatter

    formatter = SQLStringFormatter(spark)
    try:
        yield formatter.format(text, **frames)
    finally:
        formatter.clear()
