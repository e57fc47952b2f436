"""The rows of an input with the columns of a table, in its types."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pyhudi.engine.spark.schema import cast_column, spark_type
from pyhudi.engine.spark.struct_fields import quoted_path, type_at
from pyhudi.engine.spark.write.keys import quoted


def typed_rows(rows: DataFrame, schema: pa.Schema, also: Sequence[str] = ()) -> DataFrame:
    """The columns of the schema, in its order. `also`: columns that follow as they are."""
    given = frozenset(rows.columns)
    return rows.select(*(_typed(rows, given, name, schema) for name in schema.names), *map(quoted, also))


def _typed(rows: DataFrame, given: frozenset[str], name: str, schema: pa.Schema) -> Column | str:
    """A column of the input, or the field of a struct at a path, cast natively to what the table holds; null where the
    input lacks it.

    A column that stays as it is goes by its name: to make a `Column` of it asks the JVM many times.
    """
    wanted = spark_type(schema.field(name).type, name)
    found = rows.schema[name].dataType if name in given else type_at(rows.schema, name)
    if found is None:
        return f.lit(None).cast(wanted).alias(name)
    if name in given and found == wanted:
        return quoted(name)
    return cast_column(f.col(quoted(name) if name in given else quoted_path(name)), found, wanted).alias(name)
