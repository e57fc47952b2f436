"""Tells from footers alone whether the rows of a log are at least as new as every row of the base file."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.fold import Folded
from pyhudi.table.slices.base_files.statistics import Statistics


def least_ordering(folded: Folded) -> pa.Scalar | None:
    """The least ordering value of a log's records. None if footers could not be compared with it.

    That is so if a record has no ordering value, if there are several ordering columns or a struct's field, or if the
    type is not an integer, date or timestamp: only these have exact bounds in a footer.
    """
    if len(folded.entries.ordering) != 1 or folded.rules.ordering[0] not in folded.schema.names:
        return None
    (column,) = folded.entries.ordering
    if not _is_exact(column.type) or not len(column) or column.null_count:
        return None
    return pc.min(column)


def no_row_exceeds(base: Statistics, least: pa.Scalar, field: pa.Field) -> bool:
    """Whether the footer states that every row has a value in this column, and none is greater than `least`.

    False if the file lacks the column, has it in another type, or has no rows.
    """
    bounds = _bounds(base, field)
    return bounds is not None and least.type == field.type and bounds[1] <= _number(least)


def all_reach(blocks: Iterable[Statistics], base: Statistics, field: pa.Field) -> bool:
    """Whether footers state that every row has a value in this column, and no block's value is less than a base row's.

    False if a file or block lacks the column, has it in another type, has no rows, or has no exact bounds.
    """
    stored = _bounds(base, field)
    found = [_bounds(block, field) for block in blocks]
    return stored is not None and all(bounds is not None and bounds[0] >= stored[1] for bounds in found)


def _bounds(file: Statistics, field: pa.Field) -> tuple[int, int] | None:
    """The least and the greatest value of a column, as the numbers that Parquet stores.

    None if the footer does not tell, or if a row has no value.
    """
    at = file.schema.get_field_index(field.name)
    if at < 0 or file.schema.field(at).type != field.type or not _is_exact(field.type):
        return None

    ends: list[int] = []
    for group in range(len(file.group_rows)):
        found = file.chunk(group, field.name)
        if found is None or found.null_count != 0 or found.exact_bounds is None:
            return None
        ends += found.exact_bounds
    return (min(ends), max(ends)) if ends else None


def _is_exact(kind: pa.DataType) -> bool:
    return pa.types.is_signed_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def _number(value: pa.Scalar) -> int:
    """An integer, date or timestamp as the number that Parquet stores."""
    width = pa.int32() if pa.types.is_date32(value.type) else pa.int64()
    number: int = value.cast(width).as_py()
    return number
