"""Turns stored columns into the columns of an answer: missing columns become null, narrower types are cast."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.arrow_arrays import list_offsets, null_mask, one_array
from pyhudi.format.keys.java_numbers import numeric_texts
from pyhudi.format.keys.record_keys import value_text
from pyhudi.format.time_units import are_same_times, in_unit
from pyhudi.predicate.casts import round_decimal
from pyhudi.predicate.text_casts import text_to_wide_decimal

_DIGITS_MAX: Final = 19
"""Of a whole number: a decimal with as many digits before the point holds each."""


def conform_batch(batch: pa.RecordBatch, schema: pa.Schema, *, path: str, keeps_times: bool = False) -> pa.RecordBatch:
    """The batch with exactly the fields of `schema`. Fields that the batch lacks are null.

    `keeps_times`: see `conform_array`. Raises: CorruptFile for a stored type that cannot be read as the schema's type.
    """
    if batch.schema.equals(schema):
        return batch
    columns = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        column = pa.nulls(len(batch), field.type) if at < 0 else batch.column(at)
        columns.append(conform_array(column, field.type, path=path, name=field.name, keeps_times=keeps_times))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def conform_input(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """As `conform_batch`, for rows to write. Raises: Invalid for values that the types cannot hold."""
    try:
        return conform_batch(batch, schema, path="input", keeps_times=True)
    except CorruptFile as error:
        raise Invalid(
            f"input: expected {error.expected}, found {error.found}; cast or round the column first, such as a "
            "timestamp by date_trunc('MILLISECOND', ...)"
        ) from error


def conform_array(array: pa.Array, target: pa.DataType, *, path: str, name: str, keeps_times: bool = False) -> pa.Array:
    """The array as type `target`. Fields of structs are matched by name. A view if the types are equal.

    `keeps_times`: for rows of an input: a timestamp that is no whole number of the target's units is an error. In a
    file, it is read as the last unit that it has reached: see `in_unit`.
    """
    if array.type == target:
        return array
    kind = array.type

    if pa.types.is_null(kind):
        return pa.nulls(len(array), target)

    if pa.types.is_struct(kind) and pa.types.is_struct(target):
        return _conform_struct(array, target, path=path, name=name, keeps_times=keeps_times)
    if pa.types.is_list(kind) and pa.types.is_list(target):
        values = conform_array(array.values, target.value_type, path=path, name=f"{name}[]", keeps_times=keeps_times)
        return pa.ListArray.from_arrays(list_offsets(array), values, type=target, mask=null_mask(array))
    if pa.types.is_map(kind) and pa.types.is_map(target):
        keys = conform_array(array.keys, target.key_type, path=path, name=f"{name}.key")
        items = conform_array(array.items, target.item_type, path=path, name=f"{name}.value", keeps_times=keeps_times)
        return pa.MapArray.from_arrays(list_offsets(array), keys, items, type=target, mask=null_mask(array))
    try:
        if are_same_times(kind, target) and not keeps_times:
            return in_unit(array, target)
        return _promoted(array, target, name)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorruptFile(
            path, 0, expected=f"column '{name}' readable as {target}", found=f"{kind} ({error})",
            hint="The file does not fit the table's schema. Where the column has got another type since, leave it out, "
            "or ask for a later range.",
        ) from error  # fmt: skip


def _promoted(array: pa.Array, target: pa.DataType, name: str) -> pa.Array:
    """Values of a simple type, cast to another.

    Seen: Apache Hudi converts a float to a double by its text (0.1 stays 0.1), rounds whole numbers to the nearest
    float or double, and spells numbers as Java does (`HoodieAvroUtils`, and its Spark readers alike).
    """
    kind = array.type
    if pa.types.is_float32(kind) and pa.types.is_float64(target):
        return numeric_texts(array).cast(target)
    if pa.types.is_integer(kind) and pa.types.is_floating(target):
        return pc.cast(array, target, safe=False)
    if pa.types.is_floating(kind) and pa.types.is_string(target):
        return one_array(value_text(pa.chunked_array([array]), name))
    if pa.types.is_decimal(target) and (pa.types.is_floating(kind) or pa.types.is_string(kind)):
        return _decimals(array, target)
    if pa.types.is_decimal(target) and pa.types.is_integer(kind) and target.precision - target.scale < _DIGITS_MAX:
        return _decimals(array.cast(pa.string()), target)
    if pa.types.is_integer(kind) and pa.types.is_date(target):
        raise pa.ArrowInvalid("a whole number is no date")  # Arrow would count days
    return pc.cast(array, target)


def _decimals(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Texts, or floats by their texts, as decimals: rounded half up, so that 1.005 becomes 1.01.

    Raises: pa.ArrowInvalid, with the first value that is no number, or has more digits than the type.
    """
    texts = array
    if pa.types.is_floating(array.type):  # tiny ones are zeros, whose texts have more digits than are read
        tiny = pc.less(pc.abs(array), pa.scalar(10.0 ** -(target.scale + 1), array.type))
        texts = numeric_texts(pc.if_else(tiny, pa.scalar(0, array.type), array))
    try:
        found = round_decimal(text_to_wide_decimal(texts), target)
    except Unsupported as error:
        raise pa.ArrowInvalid(str(error)) from error
    if found.null_count > array.null_count:
        value = array.filter(pc.and_(pc.is_null(found), pc.is_valid(array)))[0]
        raise pa.ArrowInvalid(f"{value.as_py()!r:.80} does not fit decimal({target.precision}, {target.scale})")
    return found


def _conform_struct(
    array: pa.StructArray, target: pa.StructType, *, path: str, name: str, keeps_times: bool
) -> pa.Array:
    children = []
    for field in target:
        at = array.type.get_field_index(field.name)
        child = pa.nulls(len(array), field.type) if at < 0 else array.field(at)
        own = f"{name}.{field.name}"
        children.append(conform_array(child, field.type, path=path, name=own, keeps_times=keeps_times))
    return pa.StructArray.from_arrays(children, fields=list(target), mask=null_mask(array))
