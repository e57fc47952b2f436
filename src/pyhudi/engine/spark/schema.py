"""Translating Arrow schemas to Spark schemas and back."""

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pyhudi.errors import Invalid
from pyhudi.format.time_units import in_micros
from pyhudi.table.slices.conform import conform_batch


def spark_schema(schema: pa.Schema) -> t.StructType:
    """The Spark schema whose columns Spark hands over as these Arrow columns. All columns are nullable."""
    return t.StructType([t.StructField(field.name, spark_type(field.type, field.name)) for field in schema])


def rows_for_spark(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, path: str = "rows"
) -> Iterable[pa.RecordBatch]:
    """Rows with the columns of `schema`, in the one unit of timestamps that Spark takes. `path`: in errors."""
    taken = in_micros(schema)
    return batches if taken == schema else (conform_batch(rows, taken, path=path) for rows in batches)


def spark_type(kind: pa.DataType, name: str) -> t.DataType:
    """The Spark type of an Arrow type. Raises: Invalid for a type that Spark does not have, naming the column."""
    simple: list[tuple[bool, t.DataType]] = [
        (pa.types.is_boolean(kind), t.BooleanType()),
        (pa.types.is_int32(kind), t.IntegerType()),
        (pa.types.is_int64(kind), t.LongType()),
        (pa.types.is_float32(kind), t.FloatType()),
        (pa.types.is_float64(kind), t.DoubleType()),
        (pa.types.is_string(kind), t.StringType()),
        (pa.types.is_binary(kind), t.BinaryType()),
        (pa.types.is_date32(kind), t.DateType()),
    ]
    for matches, data_type in simple:
        if matches:
            return data_type

    if pa.types.is_timestamp(kind):
        return t.TimestampType() if kind.tz is not None else t.TimestampNTZType()
    if pa.types.is_decimal(kind):
        return t.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind):
        return t.ArrayType(spark_type(kind.value_type, f"{name}[]"), True)
    if pa.types.is_map(kind):
        return t.MapType(spark_type(kind.key_type, name), spark_type(kind.item_type, f"{name}{{}}"), True)
    if pa.types.is_struct(kind):
        return t.StructType([t.StructField(f.name, spark_type(f.type, f"{name}.{f.name}")) for f in kind])
    raise Invalid(f"column '{name}' of type {kind}: Spark has no such type")


def arrow_schema(schema: t.StructType) -> pa.Schema:
    """The Arrow schema of a Spark schema. Raises: Invalid for a type that a Hudi table cannot hold."""
    return pa.schema([pa.field(f.name, arrow_type(f.dataType, f.name), f.nullable) for f in schema.fields])


def arrow_type(kind: t.DataType, name: str) -> pa.DataType:
    """The Arrow type of a Spark type. Raises: Invalid for a type that a Hudi table cannot hold."""
    match kind:
        case t.NullType():  # the check of the input gives such a column the type of the table's column
            return pa.null()
        case t.BooleanType():
            return pa.bool_()
        case t.ByteType() | t.ShortType() | t.IntegerType():
            return pa.int32()
        case t.LongType():
            return pa.int64()
        case t.FloatType():
            return pa.float32()
        case t.DoubleType():
            return pa.float64()
        case t.StringType() | t.CharType() | t.VarcharType():
            return pa.string()
        case t.BinaryType():
            return pa.binary()
        case t.DateType():
            return pa.date32()
        case t.TimestampType():
            return pa.timestamp("us", "UTC")
        case t.TimestampNTZType():
            return pa.timestamp("us")
        case t.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case t.ArrayType():
            return pa.list_(arrow_type(kind.elementType, f"{name}[]"))
        case t.MapType():
            return pa.map_(arrow_type(kind.keyType, name), arrow_type(kind.valueType, f"{name}{{}}"))
        case t.StructType():
            return pa.struct([pa.field(f.name, arrow_type(f.dataType, f"{name}.{f.name}")) for f in kind.fields])

    raise Invalid(f"column '{name}' of Spark type {kind.simpleString()}: this release cannot store it; cast it first")


def cast_column(column: Column, found: t.DataType, wanted: t.DataType) -> Column:
    """The column as another type. Fields of structs are matched by name; Spark's own cast matches them by position.

    A float becomes the double or the decimal of its text, as everywhere (`pyhudi.table.slices.conform`).
    Example: the float 0.1 becomes the double 0.1.
    """
    if found == wanted:
        return column
    if isinstance(found, t.FloatType) and isinstance(wanted, t.DoubleType | t.DecimalType):
        return column.cast("string").cast(wanted)
    if not _moves_fields(found, wanted):
        return column.cast(wanted)

    match found, wanted:
        case t.StructType(), t.StructType():
            types = {field.name: field.dataType for field in found.fields}
            fields = [
                cast_column(column.getField(to.name), types[to.name], to.dataType).alias(to.name)
                if to.name in types
                else f.lit(None).cast(to.dataType).alias(to.name)
                for to in wanted.fields
            ]
            return f.when(column.isNotNull(), f.struct(*fields)).cast(wanted)
        case t.ArrayType(), t.ArrayType():
            return f.transform(column, lambda one: cast_column(one, found.elementType, wanted.elementType))
        case t.MapType(), t.MapType():
            return f.transform_values(column, lambda _, one: cast_column(one, found.valueType, wanted.valueType))
    raise AssertionError((found, wanted))


def _moves_fields(found: t.DataType, wanted: t.DataType) -> bool:
    """Whether Spark's own cast would give another value than `cast_column`."""
    match found, wanted:
        case t.FloatType(), t.DoubleType() | t.DecimalType():
            return True
        case t.StructType(), t.StructType():
            return found.names != wanted.names or any(
                _moves_fields(one.dataType, to.dataType) for one, to in zip(found.fields, wanted.fields, strict=True)
            )
        case t.ArrayType(), t.ArrayType():
            return _moves_fields(found.elementType, wanted.elementType)
        case t.MapType(), t.MapType():
            return _moves_fields(found.valueType, wanted.valueType)
    return False
