"""DataFrames whose rows this process has: it tells them itself, and Spark gets them once it is asked for anything else.

A few rows take Spark longer to plan, to run and to hand back than they take to be read.
"""

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from pyhudi.engine.spark.read.arrow_rows import arrow_dataframe
from pyhudi.errors import Invalid

try:
    from pyspark.sql.classic.dataframe import DataFrame as _ClassicDataFrame
except ImportError:  # PySpark 3.5 has one class for both kinds of sessions
    _ClassicDataFrame = DataFrame  # type: ignore[misc, assignment]

_AS_ARROW_HAS_THEM = (t.StringType, t.BooleanType, t.IntegerType, t.LongType, t.FloatType, t.DoubleType, t.DecimalType)
_BY_MICROSECONDS = (t.TimestampType, t.TimestampNTZType)


def can_tell(schema: t.StructType) -> bool:
    """Whether rows of this schema can be told as Spark tells them."""
    return all(isinstance(one.dataType, (*_AS_ARROW_HAS_THEM, *_BY_MICROSECONDS, t.DateType)) for one in schema.fields)


def told_dataframe(spark: SparkSession, rows: pa.Table, schema: t.StructType) -> DataFrame:
    """As `arrow_dataframe`, for a schema that `can_tell` takes: Spark hears of the rows when it needs them."""
    return _ToldRows(spark, rows, schema)


class _ToldRows(_ClassicDataFrame):
    """Answers `collect`, `take` and what is made of them (`first`, `head`), `count` and `isEmpty`."""

    def __new__(cls, *_: Any) -> "_ToldRows":  # of PySpark 4.0 and 4.1, the class takes its own arguments only
        return object.__new__(cls)

    def __init__(self, spark: SparkSession, rows: pa.Table, schema: t.StructType) -> None:
        super().__init__(None, spark)
        self._rows, self._row_schema = rows, schema

    @property
    def _jdf(self) -> Any:
        found = self.__dict__.get("_jdf")
        if found is None:
            if self._session.sparkContext._jsc is None:
                raise Invalid("DataFrame: its Spark session was stopped; run the query again in another one")
            found = self.__dict__["_jdf"] = arrow_dataframe(self._session, self._rows, self._row_schema)._jdf
        return found

    @_jdf.setter
    def _jdf(self, given: Any) -> None:
        self.__dict__["_jdf"] = given

    def collect(self) -> list[t.Row]:
        return spark_rows(self._rows, self._row_schema)

    def take(self, num: int) -> list[t.Row]:
        return super().take(num) if num < 0 else spark_rows(self._rows.slice(0, num), self._row_schema)

    def count(self) -> int:
        return len(self._rows)

    def isEmpty(self) -> bool:  # noqa: N802
        return len(self._rows) == 0


def spark_rows(rows: pa.Table, schema: t.StructType) -> list[t.Row]:
    """Rows as `DataFrame.collect` gives them, of a schema that `can_tell` takes."""
    columns = [_values(rows.column(at), field.dataType) for at, field in enumerate(schema.fields)]
    found = []
    for values in zip(*columns, strict=True):
        row = t.Row(*values)
        row.__fields__ = schema.names
        found.append(row)
    return found


def _values(column: pa.ChunkedArray, kind: t.DataType) -> list[Any]:
    if isinstance(kind, _BY_MICROSECONDS):
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
        return [None if one is None else kind.fromInternal(one) for one in micros]
    return column.to_pylist()
