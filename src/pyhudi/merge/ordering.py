"""Ordering values of rows and deletes, as columns that compare as they do in Apache Hudi."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.struct_fields import column_at, find_field
from pyhudi.merge.latest import comparable
from pyhudi.options.told_names import listed

Columns = list[pa.Array]


def ordering_fields(schema: pa.Schema, names: Sequence[str]) -> list[pa.Field]:
    """The ordering columns in a schema, in the order in which they are compared.

    Raises: Invalid for a column that the schema lacks. Without it, other columns would decide, or none.
    """
    return [_field(schema, name) for name in names]


def read_ordering(rows: pa.RecordBatch, names: Sequence[str], fields: Sequence[pa.Field]) -> Columns:
    """The ordering values of rows. A column that the rows lack, as rows of a partial block may, is null."""
    return [_values(rows, name, field.type) for name, field in zip(names, fields, strict=True)]


def lacks_value(columns: Sequence[pa.Array], row_count: int, *, is_block: bool) -> np.ndarray:
    """For each delete, whether it is a commit-time delete: one whose ordering value is the default, the int 0.

    A null stands for the default. Seen: with several ordering columns, a row's value is an array, which never equals
    the default; a delete block stores an int 0 instead of the array. Spec: format/log-format.md section 6.
    """
    if not columns:
        return np.ones(row_count, np.bool_)
    if len(columns) > 1 and not is_block:
        return np.zeros(row_count, np.bool_)
    lacking = np.logical_and.reduce([np.asarray(column.is_null()) for column in columns])
    if len(columns) == 1 and columns[0].type == pa.int32():
        lacking |= np.asarray(pc.fill_null(pc.equal(columns[0], 0), True))
    return lacking


def normalized(columns: Sequence[pa.Array]) -> Columns:
    """The columns as they are compared: a null int becomes 0, its default; other nulls stay, and count as least.

    Seen: Apache Hudi takes the int 0 for a null of any type, and fails to compare it with values of another class.
    """
    return [pc.fill_null(column, 0) if column.type == pa.int32() else column for column in columns]


def ranks(columns: Sequence[pa.Array], row_count: int) -> np.ndarray:
    """An integer for each row, so that the integers compare as the rows' ordering values do, column after column.

    Null counts as least, NaN as greatest. Memory: two integers for each row, and a sort. A single column of integers
    without null needs no sort.
    """
    if not columns:
        return np.zeros(row_count, np.int64)
    if len(columns) == 1 and (plain := _integers(columns[0])) is not None:
        return plain
    ranked = _dense(columns[0])
    for column in columns[1:]:
        ranked = np.unique(ranked, return_inverse=True)[1] * np.int64(row_count + 1) + _dense(column)
    return ranked


def null_patterns(columns: Sequence[pa.Array], row_count: int) -> np.ndarray:
    """For each row, the null columns as bits of an integer. Values with different patterns have different classes."""
    pattern = np.zeros(row_count, np.int64)
    for bit, column in enumerate(columns):
        if column.null_count:
            pattern |= np.asarray(column.is_null()).astype(np.int64) << bit
    return pattern


def _field(schema: pa.Schema, name: str) -> pa.Field:
    found = find_field(schema, name)
    if found is not None:
        return found

    column, _, steps = name.partition(".")
    if column in schema.names:
        raise Invalid(f"ordering column '{name}': expected a struct with '{steps}', found {schema.field(column).type}")
    raise Invalid(
        f"ordering column '{name}': expected one of {listed(schema.names)}; read it along, or leave it out of the "
        "rules where the table does not have it"
    )


def _values(rows: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(rows), kind) if find_field(rows.schema, name) is None else column_at(rows, name)


def _integers(column: pa.Array) -> np.ndarray | None:
    column = one_array(comparable(column))
    kind = column.type
    if column.null_count:
        return None
    if pa.types.is_signed_integer(kind):
        return np.asarray(column).astype(np.int64, copy=False)
    if pa.types.is_timestamp(kind) or kind in (pa.time64("us"), pa.time64("ns")):
        return np.asarray(column.view(pa.int64()))
    return np.asarray(column.view(pa.int32())).astype(np.int64) if kind == pa.date32() else None


def _dense(column: pa.Array) -> np.ndarray:
    """The rank of each value among the values of the column, from 1; 0 for null."""
    column = comparable(column)
    found = np.asarray(pc.rank(column, sort_keys="ascending", tiebreaker="dense")).astype(np.int64)
    found[np.asarray(column.is_null())] = 0
    return found
