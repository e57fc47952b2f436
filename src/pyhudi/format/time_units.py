"""Timestamps from one unit to another.

The unit of a table's column is part of how the column is stored: the column's keys, ordering values and bounds are the
number of its units. So its Arrow type has the same unit, and values are cast where they come from elsewhere.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

UNITS: Final = {"s": 0, "ms": 1, "us": 2, "ns": 3}
"""How fine a unit is."""


def are_same_times(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether both are timestamps with a zone, or both without, whatever their units."""
    return (
        pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted) and ((found.tz is None) == (wanted.tz is None))
    )


def stored_numbers(times: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The numbers that a column of timestamps stores, as `int64`: of milliseconds, or else of microseconds."""
    unit = "ms" if times.type.unit == "ms" else "us"
    return times.cast(pa.timestamp(unit, times.type.tz)).cast(pa.int64())


def stored_unit_ns(kind: pa.TimestampType) -> int:
    """How many nanoseconds one of `stored_numbers` counts."""
    return 1_000_000 if kind.unit == "ms" else 1_000


def in_unit(times: pa.Array, wanted: pa.TimestampType) -> pa.Array:
    """Timestamps in another unit. In a coarser one, each is the last unit that it has reached.

    Example: 1.9996 s before 1970 are -2,000 ms. Seen: Apache Hudi writes microseconds into columns of milliseconds so
    (1.2.0, `HoodieRowParquetWriteSupport`). Raises: pa.ArrowInvalid for times that do not fit 64 bits.
    """
    if UNITS[times.type.unit] <= UNITS[wanted.unit]:
        return times.cast(wanted)
    step = 1_000 ** (UNITS[times.type.unit] - UNITS[wanted.unit])
    numbers = times.view(pa.int64())
    whole = pc.divide(numbers, step)  # rounds towards zero
    is_rest_below = pc.less(pc.subtract(numbers, pc.multiply(whole, step)), 0)
    return pc.subtract(whole, is_rest_below.cast(pa.int64())).view(wanted)


def refuse_far_times(array: pa.Array) -> None:
    """Raises: pa.ArrowInvalid for timestamps, at any depth, whose microseconds do not fit 64 bits: Spark and SQL count
    in those. Cost: none for a type without timestamps coarser than microseconds.
    """
    kind = array.type
    if not _may_be_far(kind):
        return
    if pa.types.is_map(kind):
        refuse_far_times(pa.concat_arrays([array.drop_null()]).items)  # a map's items begin where its buffer does
    elif pa.types.is_list(kind):
        refuse_far_times(array.flatten())
    elif pa.types.is_struct(kind):
        for child in array.flatten():
            refuse_far_times(child)
    else:
        ends = pc.min_max(array)
        for end in (ends["min"], ends["max"]):
            end.cast(pa.timestamp("us", kind.tz))


def _may_be_far(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return UNITS[kind.unit] < UNITS["us"]
    return any(_may_be_far(kind.field(at).type) for at in range(kind.num_fields))


def in_micros(schema: pa.Schema) -> pa.Schema:
    """The schema with microseconds as the unit of every timestamp, at any depth: the one unit that Spark takes."""
    return pa.schema([field.with_type(_in_micros(field.type)) for field in schema])


def _in_micros(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_micros(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_in_micros(kind.item_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_micros(field.type)) for field in kind])
    return kind
