"""Fields of structs by their paths. Key, partition and ordering columns may be such fields: `address.city`.

No column of a table has a dot in its name, so a name with dots is a path.
"""

from collections.abc import Iterable
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)


def is_path(name: str) -> bool:
    """Whether a name is that of a field within a column."""
    return "." in name


def column_around(name: str) -> str:
    """The column that has the field; a column itself."""
    return name.partition(".")[0]


def find_field(schema: pa.Schema, name: str) -> pa.Field | None:
    """A column, or the field at a path under its whole name; None where the schema has neither.

    A field may be null where a struct around it may.
    """
    at = schema.get_field_index(name)
    if at >= 0:
        return schema.field(at)
    head, *steps = name.split(".")
    at = schema.get_field_index(head)
    if at < 0:
        return None

    found = schema.field(at)
    for step in steps:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(step) < 0:
            return None
        within = found.type.field(step)
        found = within.with_nullable(within.nullable or found.nullable)
    return found.with_name(name)


def column_at(rows: pa.Table | pa.RecordBatch, name: str) -> pa.ChunkedArray | pa.Array:
    """The values of a column, or of the field at a path: null where a struct around it is null.

    Raises: KeyError for a column that the rows lack; Arrow's error for a field that they lack.
    """
    at = rows.schema.get_field_index(name)
    if at >= 0 or not is_path(name):
        return rows.column(at if at >= 0 else name)
    head, *steps = name.split(".")
    return pc.struct_field(rows.column(head), steps)


def find_fields(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Those of these columns, and fields at paths, that the schema has, each once, in the order of the names."""
    found = [find_field(schema, name) for name in dict.fromkeys(names)]
    return pa.schema([field for field in found if field is not None])


def with_fields(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """The columns, and those fields at paths that the schema has as columns of their own after the others."""
    return pa.schema([*schema, *find_fields(schema, filter(is_path, names))])


def with_field_columns(rows: _Rows, names: Iterable[str]) -> _Rows:
    """The rows, with each field at a path as a column of this name after the others. No other copy is made."""
    for name in names:
        if is_path(name) and name not in rows.schema.names:
            rows = rows.append_column(name, column_at(rows, name))
    return rows
