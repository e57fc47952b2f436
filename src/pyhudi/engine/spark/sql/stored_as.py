"""Rows cast to the columns of a table by Spark's own rules of store assignment, with its own errors."""

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pyhudi.engine.spark.connect.store_assignment import store_assigned
from pyhudi.engine.spark.java import java_class
from pyhudi.engine.spark.session import is_classic
from pyhudi.engine.spark.sql.gateway import CATALYST, dataframe_of, find_class
from pyhudi.engine.spark.write.keys import quoted

_RESOLVER = f"{CATALYST}.analysis.TableOutputResolver"
REFUSED = "pyhudi refuses: "
"""How messages begin that Spark raises for pyhudi in the midst of a query."""


def stored_as(rows: DataFrame, columns: Sequence[t.StructField], *, table_name: str, by_name: bool) -> DataFrame:
    """The rows with these columns, in these types. A value that does not fit is an error when it is met.

    `by_name`: columns are found by their names, otherwise by their places.
    Raises: Spark's AnalysisException for columns that are missing, too many, or of a type that may not be stored so.
    """
    spark = rows.sparkSession
    if not is_classic(spark):
        return store_assigned(rows, columns, table_name=table_name, by_name=by_name)
    wanted = t.StructType([t.StructField(field.name, field.dataType, True) for field in columns])
    types = java_class(spark, f"{CATALYST}.types.DataTypeUtils")
    expected = types.toAttributes(spark._jsparkSession.parseDataType(wanted.json()))
    plan = rows._jdf.queryExecution().analyzed()
    conf = spark._jsparkSession.sessionState().conf()
    resolver = java_class(spark, _RESOLVER)
    count = next(
        len(method.getParameterTypes())
        for method in find_class(spark, _RESOLVER).getMethods()
        if method.getName() == "resolveOutputColumns"
    )
    defaults = [getattr(resolver, f"resolveOutputColumns$default${at}")() for at in range(6, count + 1)]
    found = resolver.resolveOutputColumns(table_name, expected, plan, by_name, conf, *defaults)
    return dataframe_of(spark, found)


def from_text(name: str, found: t.DataType, wanted: t.DataType, *, what: str) -> Column:
    """A column as another type, where it holds text and store assignment would refuse that.

    A text that does not fit is an error. Fields of structs are put in order; other columns are left as they are.
    Seen: UPDATE and MERGE of 1.0.2 cast `'1697516137'` to a BIGINT. Texts that do not fit are NULL there.
    """
    column = f.col(quoted(name))
    if not isinstance(found, t.StringType) or isinstance(wanted, t.StringType | t.BinaryType):
        return fields_in_order(column, found, wanted).alias(name)
    cast = f.expr(f"try_cast({quoted(name)} AS {wanted.simpleString()})")
    message = f.concat(f.lit(f"{REFUSED}{what}: expected {wanted.simpleString()}, found '"), column, f.lit("'"))
    return f.when(column.isNull() | cast.isNotNull(), cast).otherwise(f.raise_error(message).cast(wanted)).alias(name)


def fields_in_order(value: Column, found: t.DataType, wanted: t.DataType) -> Column:
    """A value in whose structs fields stand as in another type, where both have the same names in another order.

    Store assignment by places would give each the value of another.
    """
    if not _is_turned(found, wanted):
        return value
    match found, wanted:
        case t.StructType(), t.StructType():
            pairs = _pairs(found, wanted)
            parts = [
                fields_in_order(value.getField(old.name), old.dataType, new.dataType).alias(new.name)
                for old, new in pairs
            ]
            return f.when(value.isNotNull(), f.struct(*parts))
        case t.ArrayType(), t.ArrayType():
            return f.transform(value, lambda one: fields_in_order(one, found.elementType, wanted.elementType))
        case t.MapType(), t.MapType():
            return f.transform_values(value, lambda _, one: fields_in_order(one, found.valueType, wanted.valueType))
    return value


def _is_turned(found: t.DataType, wanted: t.DataType) -> bool:
    """Whether a struct in a type has the fields of the wanted one in another order."""
    match found, wanted:
        case t.StructType(), t.StructType():
            pairs = _pairs(found, wanted)
            is_turned = [old for old, _ in pairs] != found.fields
            return len(found) == len(wanted) and (
                is_turned or any(_is_turned(o.dataType, n.dataType) for o, n in pairs)
            )
        case t.ArrayType(), t.ArrayType():
            return _is_turned(found.elementType, wanted.elementType)
        case t.MapType(), t.MapType():
            return _is_turned(found.valueType, wanted.valueType)
    return False


def _pairs(found: t.StructType, wanted: t.StructType) -> list[tuple[t.StructField, t.StructField]]:
    """The field for each wanted one: by names, where both structs have the same, else by places."""
    by_name = {field.name.lower(): field for field in found.fields}
    if len(by_name) == len(found) and set(by_name) == {field.name.lower() for field in wanted.fields}:
        return [(by_name[field.name.lower()], field) for field in wanted.fields]
    return list(zip(found.fields, wanted.fields, strict=False))


def without(rows: DataFrame, names: Collection[str]) -> DataFrame:
    """The rows without some columns."""
    return rows.drop(*(name for name in rows.columns if name in names)) if set(rows.columns) & set(names) else rows


def with_constants(rows: DataFrame, missing: Sequence[t.StructField], columns: Sequence[t.StructField]) -> DataFrame:
    """The rows with nulls in columns that they lack, and all of `columns` in their order."""
    if not missing:
        return rows
    absent = {field.name for field in missing}
    return rows.select(
        *(
            f.lit(None).cast(field.dataType).alias(field.name) if field.name in absent else f.col(quoted(field.name))
            for field in columns
        )
    )


def changed_rows(
    rows: DataFrame,
    columns: Sequence[t.StructField],
    others: Sequence[str],
    ordering: Sequence[str],
    assigned: Collection[str],
    *,
    table_name: str,
) -> DataFrame:
    """Rows with new values as rows of the table. `others`: further columns, which are kept but for old values.

    `ordering`: ordering columns some of which were assigned, with their old values in `others`, whose names end alike.
    A row that would lose against the stored one is an error when it is met.
    """
    types = {field.name: field.dataType for field in rows.schema.fields}
    plain = rows.select(
        *(
            from_text(field.name, types[field.name], field.dataType, what=f"UPDATE SET {field.name}")
            if field.name in assigned
            else f.col(quoted(field.name))
            for field in columns
        ),
        *(f.col(quoted(name)) for name in others),
    )
    wanted = [*columns, *(rows.schema[name] for name in others)]
    typed = stored_as(plain, wanted, table_name=table_name, by_name=False)
    if not ordering:
        return typed
    old = {name: next(other for other in others if other.endswith(name)) for name in ordering}
    new = {name: f.col(quoted(name)) for name in ordering}
    stored = {name: f.col(quoted(old[name])) for name in ordering}
    checked = not_less(new, stored, typed.schema[ordering[0]].dataType, what=f"UPDATE in table '{table_name}'")
    return typed.withColumn(ordering[0], checked).drop(*old.values())


def not_less(new: Mapping[str, Column], stored: Mapping[str, Column], first_type: t.DataType, *, what: str) -> Column:
    """The first of the new values of ordering columns. Where they are less than the stored ones, compared one after the
    other, it is an error when it is met. `what`: the change, for this error.
    """
    loses = f.struct(*(column.alias(name) for name, column in new.items())) < f.struct(
        *(stored[name].alias(name) for name in new)
    )
    message = f.lit(
        f"{REFUSED}{what}: a new value of {', '.join(new)} is less than the stored one, so that the row would lose "
        "against it by event-time ordering; nothing was written"
    )
    return f.when(loses, f.raise_error(message).cast(first_type)).otherwise(next(iter(new.values())))
