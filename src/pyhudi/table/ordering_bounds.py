"""Whether a log's rows are as new as every row of the base file, as footers alone can tell."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.merge.fold import Folded
from pyhudi.table.row_groups import alike_leaves

Footer = tuple[pa.Schema, pq.FileMetaData]
"""The columns of a Parquet file or block as they are stored, and what its end says of it."""


def least_ordering(folded: Folded) -> pa.Scalar | None:
    """The least ordering value of a log's records; None where some have none, or several columns order, or a field of
    one, or others than integers, dates and timestamps, whose bounds in a footer are exact.
    """
    if len(folded.entries.ordering) != 1 or folded.rules.ordering[0] not in folded.schema.names:
        return None
    (column,) = folded.entries.ordering
    if not _is_exact(column.type) or not len(column) or column.null_count:
        return None
    return pc.min(column)


def no_row_exceeds(base: Footer, least: pa.Scalar, field: pa.Field) -> bool:
    """Whether the footer says that each row has a value in this column, and none a greater one than `least`.

    False where the file has no such column of this very type, or no rows.
    """
    bounds = _bounds(base, field)
    return bounds is not None and least.type == field.type and bounds[1] <= _number(least)


def all_reach(blocks: Iterable[Footer], base: Footer, field: pa.Field) -> bool:
    """Whether the footers say that each row has a value in this column, and that those of the blocks are no less than
    any of the base file. False where one has no such column of this very type, or no rows, or where bounds of such
    values are not exact.
    """
    stored = _bounds(base, field)
    found = [_bounds(block, field) for block in blocks]
    return stored is not None and all(bounds is not None and bounds[0] >= stored[1] for bounds in found)


def _bounds(footer: Footer, field: pa.Field) -> tuple[int, int] | None:
    """The least and the greatest value of a column, as Parquet counts it; None where the footer does not say, or a row
    has none.
    """
    schema, metadata = footer
    leaf = alike_leaves(schema, metadata.schema, pa.schema([field]), (field.name,)).get(field.name)
    if leaf is None or not _is_exact(field.type):
        return None
    ends: list[int] = []
    for group in range(metadata.num_row_groups):
        found = metadata.row_group(group).column(leaf).statistics
        if found is None or not found.has_min_max or not found.has_null_count or found.null_count:
            return None
        if found.physical_type not in ("INT32", "INT64"):
            return None
        ends += found.min_raw, found.max_raw
    return (min(ends), max(ends)) if ends else None


def _is_exact(kind: pa.DataType) -> bool:
    return pa.types.is_signed_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def _number(value: pa.Scalar) -> int:
    """An integer, date or timestamp as Parquet counts it."""
    width = pa.int32() if pa.types.is_date32(value.type) else pa.int64()
    number: int = value.cast(width).as_py()
    return number
