"""Whether a log's rows are as new as every row of the base file, as its footer alone can tell."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.merge.fold import Folded
from pyhudi.table.row_groups import alike_leaves


def least_ordering(folded: Folded) -> pa.Scalar | None:
    """The least ordering value of a log's records; None where some have none, or several columns order, or a field of
    one, or others than integers, dates and timestamps, whose bounds in a footer are exact.
    """
    if len(folded.entries.ordering) != 1 or folded.rules.ordering[0] not in folded.schema.names:
        return None
    (column,) = folded.entries.ordering
    is_exact = pa.types.is_signed_integer(column.type) or pa.types.is_date(column.type)
    if not (is_exact or pa.types.is_timestamp(column.type)) or not len(column) or column.null_count:
        return None
    return pc.min(column)


def no_row_exceeds(file: pq.ParquetFile, least: pa.Scalar, field: pa.Field) -> bool:
    """Whether the footer says that each row has a value in this column, and none a greater one than `least`.

    False where the file has no such column of this very type.
    """
    leaf = alike_leaves(file, pa.schema([field]), (field.name,)).get(field.name)
    if leaf is None or least.type != field.type:
        return False
    bound = _number(least)
    for group in range(file.metadata.num_row_groups):
        found = file.metadata.row_group(group).column(leaf).statistics
        if found is None or not found.has_min_max or not found.has_null_count or found.null_count:
            return False
        if found.physical_type not in ("INT32", "INT64") or found.max_raw > bound:
            return False
    return True


def _number(value: pa.Scalar) -> int:
    """An integer, date or timestamp as Parquet counts it."""
    width = pa.int32() if pa.types.is_date32(value.type) else pa.int64()
    number: int = value.cast(width).as_py()
    return number
