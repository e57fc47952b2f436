"""An array of the driver as a value in a plan. Tasks get it with their code, so no job has to bring it to them.

Spark's own array of fixed-size values goes to the JVM as one sequence of bytes. Plans show its class and a hash.
"""

import numpy as np
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

from pyhudi.engine.spark.java import java_class

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_WORD_BYTES = 8
_ARRAY_AT = 16
"""Where the first element of a Java byte array lies: Spark's `Platform.BYTE_ARRAY_OFFSET`."""


def array_literal(spark: SparkSession, numbers: np.ndarray) -> Column:
    """The numbers (int64) as a value of type array<bigint>. Needs the gateway to the driver's JVM.

    Memory of each task: 8 bytes a number.
    Seen: `UnsafeArrayData` holds a count; a bit for each element that is null, in words; and the elements.
    """
    no_nulls = bytes(-(-len(numbers) // (8 * _WORD_BYTES)) * _WORD_BYTES)
    content = b"".join((len(numbers).to_bytes(_WORD_BYTES, "little"), no_nulls, numbers.astype("<i8").tobytes()))
    array = java_class(spark, f"{_EXPRESSIONS}.UnsafeArrayData")()
    array.pointTo(bytearray(content), _ARRAY_AT, len(content))
    kind = spark._jsparkSession.parseDataType('{"type":"array","elementType":"long","containsNull":false}')
    return _column(spark, java_class(spark, f"{_EXPRESSIONS}.Literal")(array, kind))


def _column(spark: SparkSession, expression: object) -> Column:
    """A Catalyst expression as a column. From Spark 4.0 on a helper wraps it; before, the class of columns did."""
    if spark.version.startswith("3."):
        column = java_class(spark, "org.apache.spark.sql.Column")(expression)
    else:
        column = java_class(spark, "org.apache.spark.sql.classic.ExpressionUtils").column(expression)
    return type(f.lit(0))(column)
