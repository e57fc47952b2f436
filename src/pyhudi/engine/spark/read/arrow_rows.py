"""Arrow rows of the driver as a DataFrame: they reach the JVM as Arrow, and no Python task touches them."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.pandas.serializers import ArrowStreamSerializer

from pyhudi.engine.spark.java import java_class
from pyhudi.engine.spark.schema import arrow_schema
from pyhudi.engine.spark.session import core_count, is_classic, with_settings

_UTILS = "org.apache.spark.sql.api.python.PythonSQLUtils"
_PLAN_BYTES_MAX = "spark.sql.execution.arrow.localRelationThreshold"
_PLAN_BYTES = "1m"
"""Arrow bytes up to which rows become part of the plan. Beyond, each task gets its own as Arrow: Spark would send
them row by row (200,000 rows of 12 columns took twice as long).
"""

_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


def can_take_arrow(spark: SparkSession) -> bool:
    """Whether `arrow_dataframe` works: not through Connect, nor if Spark is told to expect large types."""
    return is_classic(spark) and spark.conf.get(_LARGE_TYPES, "false") == "false"


def arrow_dataframe(spark: SparkSession, rows: pa.Table, schema: t.StructType) -> DataFrame:
    """The rows as a DataFrame with this schema, with a partition for each core; few rows become part of the plan.

    Memory: the rows, in the driver's JVM, as long as the DataFrame lives. The given rows may be released.
    Seen: from 4.0 on `createDataFrame` does the same with an Arrow table, in pieces of ten thousand rows.
    """
    jvm, utils = spark._jvm, java_class(spark, _UTILS)
    fitting = rows.cast(arrow_schema(schema))
    share = 1 if len(rows) <= 1 else -(-len(rows) // core_count(spark))

    kept = spark.sparkContext._serialize_to_jvm(
        fitting.to_batches(max_chunksize=share),
        ArrowStreamSerializer(),
        lambda file: utils.readArrowStreamFromFile(file),
        lambda: jvm.ArrowIteratorServer(),  # type: ignore[union-attr]
    )
    with with_settings(spark, {_PLAN_BYTES_MAX: _PLAN_BYTES}):
        return DataFrame(utils.toDataFrame(kept, schema.json(), spark._jsparkSession), spark)
