"""How values of one type are stored in a column of another: Spark's store assignment with the ANSI policy.

A cast that may lose what kind of value it was is refused, and a value that does not fit is an error, never NULL. Within
lists, maps and structs the same holds for each part. Seen: PySpark 4.3.0.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import flat_offsets, map_entries, null_mask
from pyhudi.predicate.casts import can_cast, cast_array
from pyhudi.predicate.types import canonical_type, is_datetime, is_numeric


def may_be_stored(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark stores values of a type in a column of another: numbers as numbers, dates as times, all as text.

    A struct fits one that has the same names, in any order.
    """
    if found in (wanted, pa.null()):
        return True
    if types.is_struct(wanted):
        if not types.is_struct(found) or sorted(found.names) != sorted(wanted.names):
            return False
        return all(may_be_stored(found.field(one.name).type, one.type) for one in wanted)
    if types.is_map(wanted):
        pairs = ((found.key_type, wanted.key_type), (found.item_type, wanted.item_type)) if types.is_map(found) else ()
        return bool(pairs) and all(may_be_stored(*pair) for pair in pairs)
    if types.is_list(wanted):
        return _is_any_list(found) and may_be_stored(found.value_type, wanted.value_type)

    source, target = canonical_type(found), canonical_type(wanted)
    if types.is_nested(source):
        return False
    if source == target:
        return True
    if target == pa.string():
        return source != pa.binary() and can_cast(source, target)
    if is_numeric(source) and is_numeric(target):
        return can_cast(source, target)
    return is_datetime(source) and is_datetime(target)


def stored_array(values: pa.Array, field: pa.Field, *, what: str) -> pa.Array:
    """The values in the type of a column.

    `field`: the column, or a part of one, named by its path. `what`: names the assignment in messages.
    Raises: Invalid for types that do not fit, and for values that the type cannot hold.
    """
    kind = field.type
    if values.type == kind:
        return values
    if not may_be_stored(values.type, kind):
        raise Invalid(refusal(what, values.type, field))
    return _stored(values, field, what)


def _stored(values: pa.Array, field: pa.Field, what: str) -> pa.Array:
    """As `stored_array`, of a type that may be stored in the field's."""
    kind = field.type
    if values.type == kind:
        return values
    if types.is_null(values.type):
        return pa.nulls(len(values), kind)
    if types.is_nested(kind):
        return _nested(values, field, what)

    found, target = canonical_type(values.type), canonical_type(kind)
    try:
        cast = cast_array(values.cast(found), target)
        lost = pc.and_(pc.is_valid(values), pc.is_null(cast))
        if is_numeric(found) and is_numeric(target):
            lost = pc.or_(lost, _overflown(values, cast))
        if pc.any(lost).as_py():
            example = values.filter(lost)[0].as_py()
            raise Invalid(
                f"{what}: expected values that fit column '{field.name}' of type {kind}, found {example}; "
                "cast it to what the column can hold"
            )
        return cast.cast(kind)
    except pa.ArrowException as error:
        raise Invalid(
            f"{what}: expected values that fit column '{field.name}' of type {kind}, found others: {error}"
        ) from error


def part_of(field: pa.Field, part: pa.Field, name: str | None = None) -> pa.Field:
    """A part of a column's type, named by its path, as in `place.street` and `tags.element`."""
    return part.with_name(f"{field.name}.{name or part.name}")


def refusal(what: str, found: pa.DataType, field: pa.Field) -> str:
    """The message where a type cannot be stored in a column's."""
    return (
        f"{what}: expected a value that column '{field.name}' of type {field.type} can store, found {found}; "
        "write a CAST"
    )


def _nested(values: pa.Array, field: pa.Field, what: str) -> pa.Array:
    kind = field.type
    nulls = null_mask(values)

    if types.is_struct(kind):
        given = dict(zip(values.type.names, values.flatten(), strict=True))
        children = [_stored(given[one.name], part_of(field, one), what) for one in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=nulls)

    if types.is_map(kind):
        entries = map_entries(values)
        keys, items = entries.flatten().flatten()
        keys = _stored(keys, part_of(field, kind.key_field, "key"), what)
        items = _stored(items, part_of(field, kind.item_field, "value"), what)
        return pa.MapArray.from_arrays(flat_offsets(entries), keys, items, type=kind, mask=nulls)

    items = _stored(values.flatten(), part_of(field, kind.value_field, "element"), what)
    return pa.ListArray.from_arrays(flat_offsets(values), items, type=kind, mask=nulls)


def _is_any_list(kind: pa.DataType) -> bool:
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _overflown(values: pa.Array, cast: pa.Array) -> pa.Array:
    """Which whole numbers did not fit: wider ones wrap around in a cast, and floats are cut to the limits."""
    if not types.is_integer(cast.type):
        return pa.repeat(pa.scalar(False), len(values))
    if types.is_floating(values.type):
        limit = float(2 ** (cast.type.bit_width - 1))
        whole = pc.trunc(values.cast(pa.float64()))
        fits = pc.and_(pc.greater_equal(whole, -limit), pc.less(whole, limit))
        return pc.and_(pc.is_valid(values), pc.invert(pc.fill_null(fits, False)))
    if types.is_decimal(values.type):
        wide = pc.trunc(values.cast(pa.decimal256(76, values.type.scale)))
        return pc.fill_null(pc.not_equal(wide, cast.cast(pa.int64()).cast(pa.decimal256(76, values.type.scale))), False)
    return pc.fill_null(pc.not_equal(values.cast(pa.int64()), cast.cast(pa.int64())), False)
