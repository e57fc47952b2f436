"""Every way in which the rows of a write may differ from a table's columns, and what the table's rows are afterwards.

A change is two Arrow tables: rows that are stored, and rows that come in. What either must read as by the columns that
the table has in the end is computed here, a value at a time.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Row: TypeAlias = dict[str, Any]

STORED_KEYS = ("k0", "k1", "k2", "k3")
CITIES = ("touched", "touched", "untouched", "untouched")
BEFORE, AFTER = 1, 9
"""Ordering values of what is stored, and of what comes in."""


@dataclass(frozen=True, eq=False)
class Change:
    """`stored`: four rows. `given`: two; the first has a key that is stored, unless a write only inserts."""

    group: str
    name: str
    stored: pa.Table
    given: pa.Table

    def __str__(self) -> str:
        return self.name

    def keyed(self, *, is_new: bool) -> pa.Table:
        """The rows that come in, the first with a key that is stored or not."""
        at = self.given.schema.get_field_index("id")
        keys = pa.array(["n0" if is_new else "k0", "n1"])
        return self.given.set_column(at, self.given.schema.field(at), keys)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the change is about."""
        names = dict.fromkeys([*self.stored.column_names, *self.given.column_names])
        return tuple(name for name in names if name not in ("id", "city", "ts", "z"))


def read_as(value: Any, stored: pa.DataType, wanted: pa.DataType) -> Any:
    """A stored value as a column of another type shows it."""
    if value is None or pa.types.is_null(stored):
        return None
    if pa.types.is_struct(wanted):
        types = {field.name: field.type for field in stored}
        return {
            field.name: read_as(value[field.name], types[field.name], field.type) if field.name in types else None
            for field in wanted
        }
    if pa.types.is_list(wanted):
        return [read_as(one, stored.value_type, wanted.value_type) for one in value]
    if pa.types.is_map(wanted):
        return [(key, read_as(one, stored.item_type, wanted.item_type)) for key, one in value]
    if stored == wanted:
        return value
    if pa.types.is_float32(stored) and pa.types.is_float64(wanted):
        return float(str(np.float32(value)))
    if pa.types.is_float32(wanted):
        return float(np.float32(value))
    if pa.types.is_float64(wanted):
        return float(value)
    if pa.types.is_decimal(wanted):
        return Decimal(value).quantize(Decimal(1).scaleb(-wanted.scale))
    if pa.types.is_binary(wanted):
        return value.encode()
    if pa.types.is_timestamp(wanted) and pa.types.is_timestamp(stored):
        return value
    assert pa.types.is_integer(stored), f"{stored} as {wanted}"
    assert pa.types.is_integer(wanted), f"{stored} as {wanted}"
    return value


def conformed(rows: pa.Table, schema: pa.Schema) -> Iterator[Row]:
    """Rows under the columns of a table. A column that they lack is null."""
    for row in rows.to_pylist():
        yield {
            field.name: read_as(row[field.name], rows.schema.field(field.name).type, field.type)
            if field.name in rows.column_names
            else None
            for field in schema
        }


def by_key(rows: Iterator[Row]) -> dict[str, Row]:
    return {row["id"]: row for row in rows}


def _rows(columns: Mapping[str, tuple[pa.DataType, list[Any]]], keys: tuple[str, ...], ts: int) -> pa.Table:
    count = len(keys)
    made = {"id": pa.array(keys), "city": pa.array(CITIES[:count]), "ts": pa.array([ts] * count, pa.int64())}
    made |= {name: pa.array(values, kind) for name, (kind, values) in columns.items()}
    return pa.table({**made, "z": pa.array(["z"] * count)})


def _stored(**columns: tuple[pa.DataType, list[Any]]) -> pa.Table:
    return _rows(columns, STORED_KEYS, BEFORE)


def _given(**columns: tuple[pa.DataType, list[Any]]) -> pa.Table:
    return _rows(columns, ("k0", "n1"), AFTER)


def _retyped(
    group: str, name: str, before: pa.DataType, values: list[Any], after: pa.DataType, new: list[Any]
) -> Change:
    return Change(group, name, _stored(c=(before, values)), _given(c=(after, new)))


def _never_null(rows: pa.Table, name: str) -> pa.Table:
    fields = [field.with_nullable(False) if field.name == name else field for field in rows.schema]
    return rows.cast(pa.schema(fields))


_DAY, _MOMENT = dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 3, 4, 5, 6)
_UTC = _MOMENT.replace(tzinfo=dt.UTC)
_I, _L, _F, _D, _S, _B = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary()
_WHOLE, _PLAIN = [1, -2, None, 2**31 - 1], (_I, [1, -2, None, 2**31 - 1])
_NEW = (_I, [7, None])


def _struct(**members: pa.DataType) -> pa.DataType:
    return pa.struct(list(members.items()))


def _columns() -> Iterator[Change]:
    group, plain = "Columns", _stored(c=_PLAIN)
    yield Change(group, "a new column at the end", plain, _given(c=_NEW).append_column("n", pa.array(["n", None])))
    yield Change(group, "a new column in the middle", plain, _given(n=(_S, ["n", None]), c=_NEW))
    never = _never_null(_given(c=_NEW, n=(_S, ["n", "m"])), "n")
    yield Change(group, "a new column that is never null", plain, never)
    yield Change(group, "a new column whose name differs in case", plain, _given(c=_NEW, C=(_S, ["n", None])))
    yield Change(group, "a missing column", plain, _given())
    yield Change(group, "a missing column, and a new one at its place", plain, _given(n=_NEW))
    yield Change(group, "a column whose name differs in case", plain, _given(C=_NEW))
    yield Change(group, "other order", plain, _given(c=_NEW).select(["z", "c", "ts", "city", "id"]))
    yield Change(group, "a column of nulls alone", plain, _given(c=(pa.null(), [None, None])))
    full = _stored(c=(_I, [1, -2, 3, 2**31 - 1]))
    required = _never_null(full, "c")
    yield Change(group, "never null becomes nullable, without a null", required, _given(c=(_I, [7, 8])))
    yield Change(group, "never null becomes nullable, with a null", required, _given(c=_NEW))
    yield Change(group, "nullable becomes never null", plain, _never_null(_given(c=(_I, [7, 8])), "c"))
    yield Change(group, "a missing column that is never null", required, _given())


def _wider() -> Iterator[Change]:
    group, longs = "Wider types", [1, -2, None, 2**53 + 1]
    yield _retyped(group, "int to long", _I, _WHOLE, _L, [2**40, None])
    yield _retyped(group, "int to float", _I, _WHOLE, _F, [0.5, None])
    yield _retyped(group, "int to double", _I, _WHOLE, _D, [0.1, None])
    yield _retyped(group, "long to float", _L, longs, _F, [0.5, None])
    yield _retyped(group, "long to double", _L, longs, _D, [0.1, None])
    yield _retyped(group, "float to double", _F, [0.1, -2.7, None, 3.0e38], _D, [0.3, None])
    yield _retyped(group, "string to bytes", _S, ["a", "é", None, ""], _B, [b"\xff", None])
    tens = [Decimal("1.25"), Decimal("-99999999.99"), None, Decimal("0.00")]
    d10_2 = pa.decimal128(10, 2)
    yield _retyped(
        group, "decimal(10,2) to (12,2)", d10_2, tens, pa.decimal128(12, 2), [Decimal("1234567890.12"), None]
    )
    yield _retyped(group, "decimal(10,2) to (14,4)", d10_2, tens, pa.decimal128(14, 4), [Decimal("1.2345"), None])
    yield _retyped(group, "decimal(10,2) to (10,4)", d10_2, tens, pa.decimal128(10, 4), [Decimal("1.2345"), None])
    yield _retyped(group, "int to decimal(12,2)", _I, _WHOLE, pa.decimal128(12, 2), [Decimal("1.25"), None])
    yield _retyped(group, "boolean to int", pa.bool_(), [True, False, None, True], _I, [7, None])
    days = [_DAY, dt.date(1969, 12, 31), None, _DAY]
    yield _retyped(group, "date to timestamp", pa.date32(), days, pa.timestamp("us", "UTC"), [_UTC, None])
    local, utc = pa.timestamp("us"), pa.timestamp("us", "UTC")
    yield _retyped(group, "timestamp without zone to UTC", local, [_MOMENT, None, _MOMENT, None], utc, [_UTC, None])
    yield _retyped(group, "milliseconds to microseconds", utc, [_UTC, None, _UTC, None], pa.timestamp("ms", "UTC"),
                   [_UTC.replace(microsecond=0), None])  # fmt: skip
    to_text: list[tuple[str, pa.DataType, list[Any]]] = [
        ("int", _I, _WHOLE),
        ("long", _L, longs),
        ("float", _F, [0.1, None, 1.0, 2.0]),
        ("double", _D, [0.1, None, 1, 2]),
        ("decimal", d10_2, tens),
        ("boolean", pa.bool_(), [True, False, None, True]),
        ("date", pa.date32(), days),
        ("timestamp", utc, [_UTC, None, _UTC, None]),
    ]
    for name, kind, values in to_text:
        yield _retyped("To text", f"{name} to string", kind, values, _S, ["text", None])


def _narrower() -> Iterator[Change]:
    group = "Narrower types"
    yield _retyped(group, "long to int", _L, [1, None, 2**40, 3], _I, [7, None])
    yield _retyped(group, "double to float", _D, [0.1, None, 1e300, 3.0], _F, [0.5, None])
    yield _retyped(group, "double to float, 0.1", _D, [0.1, None, 1e300, 3.0], _F, [0.1, None])
    yield _retyped(group, "double to long", _D, [0.5, None, 1e300, 3.0], _L, [7, None])
    yield _retyped(group, "float to int", _F, [0.5, None, 1.0, 3.0], _I, [7, None])
    yield _retyped(group, "bytes to string", _B, [b"\xff", None, b"", b"a"], _S, ["é", None])
    wide = pa.decimal128(14, 4)
    tens = [Decimal("1.2345"), Decimal("-9999999999.9999"), None, Decimal("0.0000")]
    yield _retyped(group, "decimal(14,4) to (10,2)", wide, tens, pa.decimal128(10, 2), [Decimal("1.25"), None])
    utc = pa.timestamp("us", "UTC")
    yield _retyped(group, "timestamp to date", utc, [_UTC, None, _UTC, None], pa.date32(), [_DAY, None])
    yield _retyped(group, "string to int", _S, ["1", None, "x", ""], _I, [7, None])
    yield _retyped(group, "string to date", _S, ["1", None, "x", ""], pa.date32(), [_DAY, None])


def _nested() -> Iterator[Change]:
    for where, within, put in (
        ("a struct", lambda kind: kind, lambda value: value),
        ("a list", pa.list_, lambda value: [value, None] if value is not None else None),
        ("a map", lambda kind: pa.map_(_S, kind), lambda value: [("m", value), ("n", None)] if value else None),
    ):
        group = f"Within {where}"
        plain, values = _struct(a=_I, b=_S), [{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None, {"a": 3, "b": None}]

        def change(name: str, kind: pa.DataType, new: Row, group: str = group, within: Any = within,
                   put: Any = put, plain: pa.DataType = plain, values: list[Any] = values) -> Change:  # fmt: skip
            return _retyped(f"{group}", f"{group.lower()}: {name}", within(plain), [put(value) for value in values],
                            within(kind), [put(new), None])  # fmt: skip

        yield change("a new field", _struct(a=_I, b=_S, n=_L), {"a": 7, "b": "y", "n": 2**40})
        yield change("a new field in the middle", _struct(a=_I, n=_L, b=_S), {"a": 7, "b": "y", "n": 2**40})
        never = pa.struct([("a", _I), ("b", _S), pa.field("n", _L, nullable=False)])
        yield change("a new field that is never null", never, {"a": 7, "b": "y", "n": 2})
        yield change("a missing field", _struct(a=_I), {"a": 7})
        yield change("a missing field, and a new one at its place", _struct(a=_I, n=_S), {"a": 7, "n": "n"})
        yield change("other order", _struct(b=_S, a=_I), {"a": 7, "b": "y"})
        yield change("a field whose name differs in case", _struct(a=_I, B=_S), {"a": 7, "B": "y"})
        yield change("int to long", _struct(a=_L, b=_S), {"a": 2**40, "b": "y"})
        yield change("int to double", _struct(a=_D, b=_S), {"a": 0.1, "b": "y"})
        yield change("int to string", _struct(a=_S, b=_S), {"a": "t", "b": "y"})
    parts, longs = "Elements and values", pa.list_(_L)
    lists, maps = [[1, None], [], None, [3]], [[("m", 1)], [], None, [("m", None)]]
    yield _retyped(parts, "list of int to list of long", pa.list_(_I), lists, longs, [[7], None])
    yield _retyped(parts, "list of long to list of int", longs, lists, pa.list_(_I), [[7], None])
    yield _retyped(parts, "map of int to map of long", pa.map_(_S, _I), maps, pa.map_(_S, _L), [[("m", 7)], None])
    yield _retyped(parts, "map of float to map of double", pa.map_(_S, _F), maps, pa.map_(_S, _D), [[("m", 0.5)], None])
    kinds = "Other kinds of types"
    structs = [{"a": 1}, {"a": None}, None, {"a": 3}]
    yield _retyped(kinds, "struct to string", _struct(a=_I), structs, _S, ["{}", None])
    yield _retyped(kinds, "int to list of int", _I, _WHOLE, pa.list_(_I), [[7], None])
    yield _retyped(kinds, "struct to map", _struct(a=_I), structs, pa.map_(_S, _I), [[("a", 7)], None])


CHANGES = (*_columns(), *_wider(), *_narrower(), *_nested())
