"""Spark's store assignment under Connect: `DataFrame.to`, which casts as an INSERT by the policy ANSI does."""

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pyhudi.engine.spark.write.keys import quoted
from pyhudi.errors import Invalid, Unsupported

_POLICY = "spark.sql.storeAssignmentPolicy"


def store_assigned(rows: DataFrame, columns: Sequence[t.StructField], *, table_name: str, by_name: bool) -> DataFrame:
    """The rows with these columns, in these types. A value that does not fit is an error when it is met.

    `by_name`: columns are found by their names, otherwise by their places.
    Raises: Invalid for columns that are missing or too many, and for a type that may not be stored so; Unsupported
    under another policy than ANSI.
    """
    policy = str(rows.sparkSession.conf.get(_POLICY, "ANSI")).upper()
    if policy != "ANSI":
        raise Unsupported(
            f"{_POLICY}={policy}: expected ANSI under Spark Connect, where values are stored by DataFrame.to; unset "
            "it, and CAST values in the query"
        )
    found = rows.schema.fields
    if by_name:
        given = {field.name.lower(): field for field in found}
        missing = [field.name for field in columns if field.name.lower() not in given]
        if missing:
            raise Invalid(f"table '{table_name}': expected a value for column '{missing[0]}', found none in the query")
        known = {field.name.lower() for field in columns}
        more = [field.name for field in found if field.name.lower() not in known]
        found = [given[field.name.lower()] for field in columns]
        if more:
            raise Invalid(f"table '{table_name}': the query has columns that the table has not: {', '.join(more)}")
        rows = rows.select(*(quoted(field.name) for field in found))
    if len(found) != len(columns):
        what = "not enough" if len(found) < len(columns) else "too many"
        raise Invalid(
            f"table '{table_name}': {what} data columns: expected {len(columns)} "
            f"({', '.join(one.name for one in columns)}), found {len(found)}"
        )
    numbered = rows.toDF(*(f"c{at}" for at in range(len(found))))
    named = numbered.select(
        *(_named_as(f"c{at}", old, new) for at, (old, new) in enumerate(zip(found, columns, strict=True)))
    )
    wanted = t.StructType([t.StructField(field.name, field.dataType, True) for field in columns])
    typed = named.to(wanted)
    _refuse_unsafe(typed, table_name)
    return typed


def _refuse_unsafe(rows: DataFrame, table_name: str) -> None:
    """Let Spark look at the types now. Raises: Invalid for a type that may not be stored so.

    The schema of `DataFrame.to` itself is known to PySpark 4.3 without asking Spark.
    """
    try:
        rows.select("*").schema  # noqa: B018
    except PySparkException as error:
        if error.getCondition() != "INVALID_COLUMN_OR_FIELD_DATA_TYPE":
            raise
        told = error.getMessageParameters() or {}
        raise Invalid(
            f"table '{table_name}': column {told.get('name')}: cannot safely cast {told.get('type')} to "
            f"{told.get('expectedType')}; CAST it in the query"
        ) from error


def _named_as(column: str, old: t.StructField, new: t.StructField):  # type: ignore[no-untyped-def]
    """A column under its name in the table. Fields within it are found by their places, as in an INSERT."""
    found = _renamed(old.dataType, new.dataType)
    value = f.col(column)
    return (value if found == old.dataType else value.cast(found)).alias(new.name)


def _renamed(old: t.DataType, new: t.DataType) -> t.DataType:
    """The type with the names that fields within it have in another one of the same shape."""
    match old, new:
        case t.StructType(), t.StructType():
            if len(old.fields) != len(new.fields) or {x.name for x in old.fields} == {x.name for x in new.fields}:
                return old
            pairs = zip(old.fields, new.fields, strict=True)
            return t.StructType([t.StructField(n.name, _renamed(o.dataType, n.dataType), o.nullable) for o, n in pairs])
        case t.ArrayType(), t.ArrayType():
            return t.ArrayType(_renamed(old.elementType, new.elementType), old.containsNull)
        case t.MapType(), t.MapType():
            key, value = _renamed(old.keyType, new.keyType), _renamed(old.valueType, new.valueType)
            return t.MapType(key, value, old.valueContainsNull)
    return old
