"""A caller's columns in the types in which a table keeps them: without dictionaries, runs, views and extensions."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from pyhudi.engine.local.nulls import refuse_null_required
from pyhudi.errors import CorruptFile, Invalid
from pyhudi.format.arrow_arrays import flat_offsets, list_offsets, null_mask, one_array
from pyhudi.format.schema.arrow_types import canonical_arrow
from pyhudi.format.struct_fields import column_at, find_field
from pyhudi.format.time_units import UNITS, are_same_times, refuse_far_times
from pyhudi.table.slices.conform import conform_array

_NEARER: Final = "put null or a nearer time in its place, or leave it out"


def input_column(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    """A column, or the field of a struct at a path, as the table has it. It is null if the input lacks it.

    Raises: Invalid for a value that the type cannot hold; the message names the cast to make.
    """
    at = rows.schema.get_field_index(field.name)  # `column_names` makes a list of all of them, each time
    if at < 0 and find_field(rows.schema, field.name) is None:
        return pa.chunked_array([pa.nulls(len(rows), field.type)])

    column = rows.column(at) if at >= 0 else column_at(rows, field.name)
    _refuse_broken(column, field.name)

    if column.type != field.type:
        column = pa.chunked_array([_as_stored(chunk, field) for chunk in column.chunks], type=field.type)
    _refuse_far(column, field.name)
    if any(not below.nullable for below in _fields_below(field.type)):
        for chunk in column.chunks:
            refuse_null_required(_nulls_within(chunk, field.type, field.name))
    return column


def input_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of the input with the table's columns, in their types.

    No copy is made of fitting columns. Raises: Invalid.
    """
    rows = pa.Table.from_batches([batch])
    columns = [one_array(input_column(rows, field)) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def plain_rows(rows: pa.Table) -> pa.Table:
    """Rows with every column in the type that a table would give it. Raises: Invalid."""
    schema = canonical_arrow(rows.schema)
    return pa.Table.from_arrays([input_column(rows, field) for field in schema], schema=schema)


def refuse_broken_text(batch: pa.RecordBatch) -> None:
    """Raises: Invalid for text that is not UTF-8. The batch is of another engine, and well-formed otherwise.

    Example: `CAST(x'ff' AS STRING)` of Spark. Cost: next to nothing for a column of ASCII.
    """
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if _holds_text(field.type) and not _is_ascii(column):
            _refuse_broken(pa.chunked_array([column]), field.name)


def _holds_text(kind: pa.DataType) -> bool:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    return is_text or any(_holds_text(kind.field(at).type) for at in range(kind.num_fields))


def _is_ascii(array: pa.Array) -> bool:
    """Whether a column of text has ASCII alone; False for any other column."""
    if not pa.types.is_string(array.type):
        return False
    _, offsets, texts = array.buffers()
    if not len(array) or texts is None or not texts.size:
        return True
    ends = np.frombuffer(offsets, np.int32)
    own = np.frombuffer(texts, np.int8)[ends[array.offset] : ends[array.offset + len(array)]]
    return bool(own.min(initial=0) >= 0)


def _refuse_broken(column: pa.ChunkedArray, name: str) -> None:
    """Raises: Invalid for values that no reader could take: text that is not UTF-8, decimals of too many digits,
    offsets that lead out of the column. Arrow itself passes them on. Cost: some 20 ns a text.
    """
    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        raise Invalid(
            f"input: column '{name}' of type {column.type}: expected values that the type can have, found others: "
            f"{error}; mend the values, or hand text of another encoding in as binary"
        ) from error


def _refuse_far(column: pa.ChunkedArray, name: str) -> None:
    """Raises: Invalid for times that a column of milliseconds could hold, and no reader takes."""
    try:
        for chunk in column.chunks:
            refuse_far_times(chunk)
    except pa.ArrowException as error:
        raise Invalid(
            f"input: column '{name}' of type {column.type}: expected times whose microseconds fit 64 bits, in the "
            f"years -290308 to 294247, found others: {error}; {_NEARER}"
        ) from error


def _as_stored(array: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return conform_array(plain_array(array), field.type, path="input", name=field.name, keeps_times=True)
    except (CorruptFile, pa.ArrowException) as error:
        reason = error.found if isinstance(error, CorruptFile) else str(error)
        raise Invalid(
            f"input: column '{field.name}' of type {array.type}: expected values that fit {field.type}, found others: "
            f"{reason}; {_cast_hint(array.type, field)}"
        ) from error


def _nulls_within(array: pa.Array, kind: pa.DataType, path: str) -> dict[str, int]:
    """How many nulls there are in fields within a column that are never null: by the field's path."""
    present = pa.concat_arrays([array.drop_null()])  # a map's items begin where its buffer does
    if pa.types.is_struct(kind):
        children = present.flatten()
    else:
        children = [present.items if pa.types.is_map(kind) else present.flatten()]
    found: dict[str, int] = {}
    for field, child in zip(_fields_within(kind), children, strict=True):
        own = f"{path}.{field.name}"
        if child.null_count and not field.nullable:
            found[own] = child.null_count
        if pa.types.is_nested(field.type):
            found |= _nulls_within(child, field.type, own)
    return found


def _fields_within(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.item_field]
    return [kind.value_field] if pa.types.is_list(kind) else []


def _fields_below(kind: pa.DataType) -> Iterator[pa.Field]:
    """The fields within a type, at every depth; the keys of maps are none."""
    for field in _fields_within(kind):
        yield field
        yield from _fields_below(field.type)


def _cast_hint(found: pa.DataType, field: pa.Field) -> str:
    if are_same_times(found, field.type):
        if UNITS[found.unit] < UNITS[field.type.unit]:
            return _NEARER
        wanted = f"pyarrow.timestamp('{field.type.unit}')"
        return f"round them first: pyarrow.compute.cast(rows['{field.name}'], {wanted}, safe=False)"
    return "cast the column"


def plain_array(array: pa.Array) -> pa.Array:
    """The array without dictionaries, runs, views and extensions at any depth. A column of nulls stays one.

    No copy is made if nothing must be decoded. Raises: what Arrow raises for values that do not fit the plain type.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return array.storage.cast(pa.bool_()) if kind.extension_name == "arrow.bool8" else plain_array(array.storage)

    if pa.types.is_dictionary(kind):
        return plain_array(array.dictionary).take(array.indices)

    if pa.types.is_run_end_encoded(kind):
        return plain_array(array.values).take(_runs_of_rows(array))

    if pa.types.is_struct(kind):
        children = [plain_array(array.field(at)) for at in range(kind.num_fields)]
        fields = [one.with_type(child.type) for one, child in zip(kind, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=null_mask(array))

    if pa.types.is_map(kind):
        array = pa.concat_arrays([array])
        keys, items = plain_array(array.keys), plain_array(array.items)
        return pa.MapArray.from_arrays(list_offsets(array), keys, items, mask=null_mask(array))

    if (item := _item_field(kind)) is not None:
        values = plain_array(array.flatten())
        wanted = pa.list_(item.with_type(values.type))
        return pa.ListArray.from_arrays(flat_offsets(array), values, type=wanted, mask=null_mask(array))

    return array if pa.types.is_null(kind) else array.cast(_canonical(kind))


def _item_field(kind: pa.DataType) -> pa.Field | None:
    """The items of any kind of list; None for other types."""
    tests = (
        pa.types.is_list,
        pa.types.is_large_list,
        pa.types.is_fixed_size_list,
        pa.types.is_list_view,
        pa.types.is_large_list_view,
    )
    return kind.value_field if any(is_kind(kind) for is_kind in tests) else None


def _canonical(kind: pa.DataType) -> pa.DataType:
    return canonical_arrow(pa.schema([pa.field("value", kind)])).field(0).type


def _runs_of_rows(array: pa.Array) -> pa.Array:
    """The number of the run that each row lies in."""
    rows = np.arange(array.offset, array.offset + len(array))
    return pa.array(np.searchsorted(np.asarray(array.run_ends), rows, side="right"))
