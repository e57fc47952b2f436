"""Which rows are deletes, by the values in their columns."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Unsupported
from pyhudi.merge.rules import IS_DELETED, OPERATION, DeleteMark, MergeRules


@cache
def _delete_operations() -> pa.Array:
    return pa.array(["D", "-U"])  # may import pandas, so not at the top


def find_deleted(rows: pa.RecordBatch | pa.Table, rules: MergeRules) -> np.ndarray | None:
    """For each row, whether it is a delete. None: no row is.

    Those whose `_hoodie_is_deleted` is true, whose `_hoodie_operation` is D or -U, or that a mark of the table's
    calls deleted. Null is no mark, and a column of these names that holds anything else is a column like any other.
    Spec: format/log-format.md section 6.
    """
    found = []
    if has_mark(rows.schema):
        found.append(rows.column(IS_DELETED))
    if OPERATION in rows.schema.names and _is_text(rows.schema.field(OPERATION).type):
        found.append(pc.is_in(rows.column(OPERATION), value_set=_delete_operations()))
    found.extend(_marked(rows.column(mark.column), mark) for mark in rules.marks if mark.column in rows.schema.names)
    deleted = np.zeros(rows.num_rows, np.bool_)
    for column in found:
        deleted |= np.asarray(pc.fill_null(column, False))
    return deleted if deleted.any() else None


def has_mark(schema: pa.Schema) -> bool:
    """Whether rows are marked by `_hoodie_is_deleted`. Of another type than boolean it marks nothing."""
    at = schema.get_field_index(IS_DELETED)
    return at >= 0 and bool(pa.types.is_boolean(schema.field(at).type))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _marked(column: pa.Array | pa.ChunkedArray, mark: DeleteMark) -> pa.Array | pa.ChunkedArray:
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.string())
    elif not _is_text(kind):
        raise Unsupported(
            f"column '{mark.column}', hoodie.payload.delete.field: expected text, a whole number or a boolean, "
            f"found {kind}; its other spellings in Java are not known here"
        )
    if mark.ignores_case:
        return pc.equal(pc.utf8_lower(column), mark.text.lower())
    return pc.equal(column, mark.text)
