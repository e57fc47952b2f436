"""Fields of structs by their paths, as Spark's columns. `format/struct_fields.py` is the same over Arrow."""

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pyhudi.engine.spark.write.keys import quoted
from pyhudi.format.struct_fields import is_path


def quoted_path(name: str) -> str:
    """The field at a path, each step in backticks. A column's name is a path of one step."""
    return ".".join(map(quoted, name.split(".")))


def type_at(schema: t.StructType, name: str) -> t.DataType | None:
    """The type of the field at a path; None where there is none."""
    found: t.DataType = schema
    for step in name.split("."):
        if not isinstance(found, t.StructType) or step not in found.names:
            return None
        found = found[step].dataType
    return found


def with_field_columns(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """The rows, with each field at a path as a column of this name."""
    found = {name: f.col(quoted_path(name)) for name in names if is_path(name)}
    return rows.withColumns(found) if found else rows
