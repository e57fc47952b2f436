"""Clock readings as instants: timestamps without a zone become timestamps of UTC, in columns and within them."""

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import list_offsets, null_mask

UTC_NAMES = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z", "Zulu", "UCT", "Universal", "Greenwich"})

NANOSECOND_MILLIS = (1 << 63) // 1_000_000
"""PyArrow reads times of ORC files as nanoseconds in 64 bits: so many milliseconds before or after 1970 it fails."""

_INSTANT = pa.timestamp("us", "UTC")


def instants_of(kind: pa.DataType) -> pa.DataType:
    """The type with every timestamp in it as an instant, in microseconds."""
    if pa.types.is_timestamp(kind):
        return _INSTANT
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(instants_of(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(instants_of(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(instants_of(kind.key_type), kind.item_field.with_type(instants_of(kind.item_type)))
    return kind


def has_timestamp(kind: pa.DataType) -> bool:
    """Whether the type, or a type within it, is a timestamp."""
    if pa.types.is_nested(kind):
        return any(has_timestamp(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind))


def as_instants(array: pa.Array, target: pa.DataType, zone: str | None = None) -> pa.Array:
    """The array as type `target`, which is `instants_of` its type. `zone`: of the clock; None: UTC.

    A clock reading that came twice, when summer time ended, is the first of the two instants.
    """
    kind = array.type
    if kind == target:
        return array
    if pa.types.is_timestamp(kind):
        in_micros = pc.cast(array, pa.timestamp("us", kind.tz), safe=False)
        if kind.tz is None and zone is not None:
            in_micros = pc.assume_timezone(in_micros, zone, ambiguous="earliest", nonexistent="earliest")
        return in_micros.cast(target)
    if pa.types.is_struct(kind):
        pairs = zip((array.field(number) for number in range(kind.num_fields)), target, strict=True)
        children = [as_instants(child, field.type, zone) for child, field in pairs]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=null_mask(array))
    if pa.types.is_list(kind):
        values = as_instants(array.values, target.value_type, zone)
        return pa.ListArray.from_arrays(list_offsets(array), values, type=target, mask=null_mask(array))
    if pa.types.is_map(kind):
        keys, items = as_instants(array.keys, target.key_type, zone), as_instants(array.items, target.item_type, zone)
        return pa.MapArray.from_arrays(list_offsets(array), keys, items, type=target, mask=null_mask(array))
    return array
