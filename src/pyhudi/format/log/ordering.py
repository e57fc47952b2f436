"""Ordering values of deletes, as delete blocks store them: each in a wrapper for its type.

A block's deletes are columns. A delete's `ordering_kind` names the wrapper, and the member of `ordering` with that name
holds the value. Example: the long 7 has the kind LONG, and its member `long` is 7.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.keys.java_numbers import numeric_texts

DECIMAL: Final = pa.decimal128(30, 15)


class OrderingKind(IntEnum):
    """The wrapper an ordering value is stored in, by its branch number in the stored union.

    ARRAY and LOCAL_DATE exist from Hudi 1.1 on. LOCAL_DATE occurs only inside an ARRAY, and has branch number 12 there.
    """

    NULL = 0
    BOOLEAN = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6
    STRING = 7
    DATE = 8
    DECIMAL = 9
    TIME_MICROS = 10
    TIMESTAMP_MICROS = 11
    ARRAY = 12
    LOCAL_DATE = 13


_SCALARS: Final = (
    ("boolean", pa.bool_()),
    ("int", pa.int32()),
    ("long", pa.int64()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("bytes", pa.binary()),
    ("string", pa.string()),
    ("date", pa.date32()),
    ("decimal", DECIMAL),
    ("time_micros", pa.int64()),
    ("timestamp_micros", pa.timestamp("us", "UTC")),
)
INNER: Final = pa.struct([*_SCALARS, ("local_date", pa.date32())])
ORDERING: Final = pa.struct([*_SCALARS, ("array", pa.list_(pa.field("element", INNER, False)))])

_KINDS: Final = {
    pa.bool_(): OrderingKind.BOOLEAN,
    pa.int32(): OrderingKind.INT,
    pa.int64(): OrderingKind.LONG,
    pa.float32(): OrderingKind.FLOAT,
    pa.float64(): OrderingKind.DOUBLE,
    pa.binary(): OrderingKind.BYTES,
    pa.string(): OrderingKind.STRING,
    pa.date32(): OrderingKind.DATE,
}

_NUMBERS: Final = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
"""Avro's promotions: numbers of each type may be read as any type after it."""

Kinds = npt.NDArray[np.int8]


def ordering_kind(kind: pa.DataType) -> OrderingKind:
    """The wrapper for the values of a table's column. Seen: Apache Hudi wraps a timestamp as the long that stores it.

    Raises: Invalid for a type that no wrapper holds.
    """
    if pa.types.is_decimal(kind):
        return OrderingKind.DECIMAL
    if pa.types.is_timestamp(kind):
        return OrderingKind.LONG
    if kind not in _KINDS:
        raise Invalid(f"delete record: an ordering value of type {kind}; expected a number, text, bytes, date or time")
    return _KINDS[kind]


def wrap_ordering(columns: Sequence[pa.Array], row_count: int) -> tuple[Kinds, pa.StructArray]:
    """The kinds and values to store for deletes with these ordering columns. Several columns make an ARRAY.

    Without columns, or where all are null, the value is an INT of 0: such a delete has no ordering value, and wins over
    every earlier record of its key. Timestamps are wrapped in the unit of their column.
    Raises: Invalid for a value that its wrapper cannot hold.
    """
    if not columns:
        missing = np.ones(row_count, np.bool_)
        members, kind = {}, OrderingKind.INT
    elif len(columns) == 1:
        missing = columns[0].is_null().to_numpy(zero_copy_only=False)
        kind = ordering_kind(columns[0].type)
        members = {_name(kind): _wrapped(columns[0], kind)}
    else:
        nulls = [column.is_null().to_numpy(zero_copy_only=False) for column in columns]
        missing = np.logical_and.reduce(nulls)
        kind = OrderingKind.ARRAY
        members = {_name(kind): _wrapped_lists(columns, row_count, missing)}

    kinds = np.where(missing, OrderingKind.INT, kind).astype(np.int8)
    zeros = pa.array(np.zeros(row_count, np.int32), mask=~missing)
    members["int"] = pc.coalesce(members["int"], zeros) if "int" in members else zeros
    return kinds, _struct(ORDERING, members, row_count)


def unwrap_ordering(kinds: pa.Array, values: pa.StructArray, types: Sequence[pa.DataType]) -> list[pa.Array]:
    """The ordering values of deletes, as a table's ordering columns of these types.

    A value is null if the delete has no ordering value, or one of another class, which compares with nothing; see
    `is_commit_time` for which of the two. A number that was stored before its column widened counts as a number of the
    column's type. A timestamp stored as long counts in the unit of its type.
    """
    if len(types) == 1:
        members = dict(zip([field.name for field in ORDERING], values.flatten(), strict=True))
        column = _unwrapped(members, types[0])
        return [pc.if_else(is_commit_time(kinds, values), pa.scalar(None, column.type), column)]

    lists = values.flatten()[OrderingKind.ARRAY - 1]
    is_whole = np.asarray(pc.fill_null(pc.equal(pc.list_value_length(lists), len(types)), False))
    offsets = np.asarray(lists.offsets)[:-1].astype(np.int64)
    inner = dict(zip([field.name for field in INNER], lists.values.flatten(), strict=True))
    columns = []
    for index, kind in enumerate(types):
        rows = pa.array(np.where(is_whole, offsets + index, 0), mask=~is_whole)
        columns.append(_unwrapped({name: member.take(rows) for name, member in inner.items()}, kind))
    return columns


def is_commit_time(kinds: pa.Array, values: pa.StructArray, width: int = 1) -> pa.BooleanArray:
    """Flags of the deletes without an ordering value: those with an INT of 0, or null.

    `width`: how many ordering columns the table has. Where it has several, a delete with fewer values has none, either:
    earlier pyhudi stored the value of an ordering column that is also a key or partition column.
    """
    if width > 1:
        lengths = pc.list_value_length(values.flatten()[OrderingKind.ARRAY - 1])
        return pc.fill_null(pc.less(lengths, width), True)
    zero = pc.fill_null(pc.equal(values.flatten()[OrderingKind.INT - 1], 0), False)
    return pc.or_(pc.equal(kinds, int(OrderingKind.NULL)), pc.and_(pc.equal(kinds, int(OrderingKind.INT)), zero))


def kinds_of(members: Sequence[pa.Array], row_count: int) -> Kinds:
    """The kind of each value, found from its struct's member that is not null. At most one member is not null."""
    kinds = np.zeros(row_count, np.int8)
    for index, member in enumerate(members):
        if member.null_count < row_count:
            kinds[member.is_valid().to_numpy(zero_copy_only=False)] = index + 1
    return kinds


def _name(kind: OrderingKind) -> str:
    return kind.name.lower()


def _wrapped(column: pa.Array, kind: OrderingKind) -> pa.Array:
    wanted = ORDERING.field(_name(kind)).type
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise Invalid(f"delete record, ordering value: expected a {wanted}, found {error}") from error


def _wrapped_lists(columns: Sequence[pa.Array], row_count: int, missing: npt.NDArray[np.bool_]) -> pa.Array:
    """A list for each row: the row's values, each in its wrapper. A row that is `missing` gets a null."""
    width = len(columns)
    cells = np.arange(row_count * width).reshape(row_count, width)
    members: dict[str, pa.Array] = {}
    for index, column in enumerate(columns):
        kind = ordering_kind(column.type)
        kind = OrderingKind.LOCAL_DATE if kind is OrderingKind.DATE else kind
        wrapped = column if kind is OrderingKind.LOCAL_DATE else _wrapped(column, kind)

        spread = np.full(row_count * width, -1, np.int64)
        spread[cells[:, index]] = np.arange(row_count)
        laid = wrapped.take(pa.array(spread, mask=spread < 0))
        members[_name(kind)] = pc.coalesce(members[_name(kind)], laid) if _name(kind) in members else laid

    values = _struct(INNER, members, row_count * width)
    offsets = pa.array(np.arange(row_count + 1, dtype=np.int32) * width)
    return pa.ListArray.from_arrays(offsets, values, type=ORDERING.field("array").type, mask=pa.array(missing))


def _unwrapped(members: dict[str, pa.Array], kind: pa.DataType) -> pa.Array:
    """The values in the wrapper for this type or for a type that widens to it, as this type; null for all others."""
    if pa.types.is_timestamp(kind):
        found = pc.coalesce(members["long"].cast(pa.timestamp(kind.unit, "UTC")), _in_unit(members, kind))
        return found.cast(kind) if kind.tz is not None else found.view(kind)
    if pa.types.is_date(kind):
        others = [members[name] for name in ("local_date",) if name in members]
        return pc.coalesce(members["date"], *others, members["int"].view(pa.date32()))

    found = members[_name(ordering_kind(kind))]
    if kind in _NUMBERS:
        narrower = _NUMBERS[: _NUMBERS.index(kind)]
        return pc.coalesce(found, *(_widened(members[_name(_KINDS[one])], kind) for one in narrower))
    if not pa.types.is_decimal(kind):
        return found
    wide = pa.decimal256(60, max(DECIMAL.scale, kind.scale))
    try:
        return found.cast(wide).cast(kind)
    except pa.ArrowInvalid as error:
        raise Invalid(f"delete record: expected ordering values that {kind} holds, found {error}") from error


def _widened(numbers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers as a wider type. A float becomes the double of its text, as in rows: 0.1 stays 0.1."""
    if pa.types.is_float32(numbers.type):
        return numeric_texts(numbers).cast(kind)
    return numbers.cast(kind, safe=False)


def _in_unit(members: dict[str, pa.Array], kind: pa.TimestampType) -> pa.Array:
    return members["timestamp_micros"].cast(pa.timestamp(kind.unit, "UTC"), safe=False)


def _struct(kind: pa.StructType, members: dict[str, pa.Array], row_count: int) -> pa.StructArray:
    columns = [members.get(field.name) for field in kind]
    filled = [
        pa.nulls(row_count, field.type) if column is None else column
        for field, column in zip(kind, columns, strict=True)
    ]
    return pa.StructArray.from_arrays(filled, fields=list(kind))
