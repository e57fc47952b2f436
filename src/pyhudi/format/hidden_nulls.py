"""Nulls of never-null fields that lie below a null struct. Nobody reads them; Arrow's Parquet writer refuses them."""

from functools import cache
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import flat_offsets, map_entries, null_mask

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def without_hidden_nulls(rows: Rows) -> Rows:
    """The rows, in which a never-null field of a null struct has some value.

    DuckDB, Polars and casts of Arrow leave null there, others a zero. A null in a struct that is there stays.
    Cost: nothing for tables without never-null fields in structs.
    """
    for at, field in enumerate(rows.schema):
        if _may_hide(field.type):
            column = rows.column(at)
            if isinstance(column, pa.Array):
                rows = rows.set_column(at, field, _filled(column))
            else:
                filled = [_filled(chunk) for chunk in column.chunks]
                rows = rows.set_column(at, field, pa.chunked_array(filled, field.type))
    return rows


@cache
def _may_hide(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):  # its keys are never null
        return _may_hide(kind.item_type)
    if pa.types.is_struct(kind) and any(not field.nullable for field in kind):
        return True
    return any(_may_hide(kind.field(at).type) for at in range(kind.num_fields))


def _filled(array: pa.Array) -> pa.Array:
    kind = array.type
    if not _may_hide(kind):
        return array
    nulls = null_mask(array)

    if pa.types.is_struct(kind):
        children = [_filled(child) for child in array.flatten()]  # null below each null of the struct
        if nulls is not None:
            children = [
                child if field.nullable else _shown(child, nulls) for child, field in zip(children, kind, strict=True)
            ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=nulls)

    if pa.types.is_map(kind):
        entries = map_entries(array)
        keys, items = entries.flatten().flatten()
        return pa.MapArray.from_arrays(flat_offsets(entries), keys, _filled(items), type=kind, mask=nulls)
    return pa.ListArray.from_arrays(flat_offsets(array), _filled(array.flatten()), type=kind, mask=nulls)


def _shown(child: pa.Array, nulls: pa.Array) -> pa.Array:
    """A field of structs, with its values where only the struct's null hides them."""
    kind = child.type
    if pc.any(pc.and_not(child.is_null(), nulls)).as_py():
        return child
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([child.field(at) for at in range(kind.num_fields)], fields=list(kind))
    children = [child.values] if pa.types.is_nested(kind) else []
    buffers = child.buffers()[: 2 if children else None]
    return pa.Array.from_buffers(kind, len(child), [None, *buffers[1:]], 0, child.offset, children)
