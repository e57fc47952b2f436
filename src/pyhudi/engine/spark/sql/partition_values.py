"""Values of `PARTITION (column = value)` in the types of the columns, as Spark reads them."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from pyhudi.engine.spark.schema import spark_schema
from pyhudi.errors import Invalid


def in_type_of(stored: pa.Field, text: str, spark_sql: Callable[..., DataFrame]) -> str:
    """The value as SQL text in the column's type, where it is a text. `text`: the value as SQL text.

    Raises: Invalid for a text that is none of the type.
    """
    kind = _spark_type(stored)
    if not isinstance(spark_sql(f"SELECT {text}").schema[0].dataType, t.StringType) or isinstance(kind, t.StringType):
        return text
    if _value(f"try_cast({text} AS {kind.simpleString()}) IS NULL AND {text} IS NOT NULL", spark_sql):
        raise Invalid(f"PARTITION ({stored.name} = {text}): expected {kind.simpleString()}, found no such value")
    return f"CAST({text} AS {kind.simpleString()})"


def value_in(stored: pa.Field, text: str, spark_sql: Callable[..., DataFrame]) -> pa.Scalar:
    """The value as one of the column. Raises: Invalid for a text that is none of its type."""
    kind = _spark_type(stored)
    cast = f"CAST({in_type_of(stored, text, spark_sql)} AS {kind.simpleString()})"
    if not isinstance(kind, t.TimestampType):
        return pa.scalar(_value(cast, spark_sql), stored.type)
    micros = _value(f"unix_micros({cast})", spark_sql)  # as a Python value it would be in the zone of this process
    return pa.scalar(micros, pa.timestamp("us", "UTC")).cast(stored.type)


def _spark_type(stored: pa.Field) -> t.DataType:
    return spark_schema(pa.schema([stored]))[0].dataType


def _value(text: str, spark_sql: Callable[..., DataFrame]) -> Any:
    row = spark_sql(f"SELECT {text}").first()
    assert row is not None
    return row[0]
