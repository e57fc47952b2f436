"""Values for columns, computed from rows: what the right side of `SET column = …` means.

A value becomes the column's type as in Spark's store assignment with the ANSI policy: a cast that may lose what kind of
value it was is refused, and a value that does not fit is an error, never NULL. Seen: PySpark 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.arrow_arrays import one_array
from pyhudi.predicate.casts import can_cast, cast_array
from pyhudi.predicate.evaluate import evaluate
from pyhudi.predicate.nodes import Node, columns_in, type_of
from pyhudi.predicate.parse import require_names
from pyhudi.predicate.types import canonical_type, is_datetime, is_numeric


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column and the value that it gets, as a typed tree of Spark SQL, an Arrow expression, or one value for all.

    `columns`: the top-level columns that the value reads. `what`: how messages name the assignment.
    """

    field: pa.Field
    value: Node | pc.Expression | pa.Scalar
    columns: frozenset[str]
    what: str

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """The column's new values, in its type. Raises: Invalid for a value that the type cannot hold."""
        match self.value:
            case pa.Scalar():
                return pa.repeat(self.value, len(rows))
            case pc.Expression():
                return self._stored(_projected(self.value, rows, self.what))
            case _:
                return self._stored(evaluate(self.value, rows))

    def _stored(self, values: pa.Array) -> pa.Array:
        kind = self.field.type
        if values.type == kind:
            return values
        if not _may_be_stored(values.type, kind):
            raise Invalid(_refusal(self.what, values.type, self.field))
        found = canonical_type(values.type)
        target = canonical_type(kind)
        cast = values if types.is_nested(kind) else cast_array(values.cast(found), target)
        lost = pc.and_(pc.is_valid(values), pc.is_null(cast))
        if is_numeric(found) and is_numeric(target):
            lost = pc.or_(lost, _overflown(values, cast))
        if pc.any(lost).as_py():
            example = values.filter(lost)[0].as_py()
            raise Invalid(
                f"{self.what}: expected values that fit column '{self.field.name}' of type {kind}, found {example}; "
                "cast it to what the column can hold"
            )
        try:
            return cast.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise Invalid(f"{self.what}: expected values that fit {kind}, found others: {error}") from error


def parse_assignment(value: Any, field: pa.Field, schema: pa.Schema, *, what: str) -> Assignment:
    """The assignment of a value to a column.

    `value`: Spark SQL text over the columns of `schema`, a `pyarrow.compute.Expression`, or a value: anything else that
    the column can hold (text as `pyarrow.scalar`, since a str is SQL). `what`: names the assignment in messages.
    Raises: Invalid for what Spark refuses too, such as an unknown column or function; Unsupported for SQL that Spark
    would accept.
    """
    if isinstance(value, str):
        node = _parsed(value, schema, what)
        if not _may_be_stored(type_of(node), field.type):
            raise Invalid(_refusal(what, type_of(node), field))
        return Assignment(field, node, frozenset(column.path[0] for column in columns_in(node)), what)
    if isinstance(value, pc.Expression):
        require_names(value, f"{what}:")
        found = _projected(value, _no_rows(schema), what) if schema.names else None
        if found is not None and not _may_be_stored(found.type, field.type):
            raise Invalid(_refusal(what, found.type, field))
        return Assignment(field, value, _columns_read(value, schema), what)
    return Assignment(field, _given(value, field, what), frozenset(), what)


def _given(value: Any, field: pa.Field, what: str) -> pa.Scalar:
    """A value of Python's in the column's type."""
    kind = field.type
    try:
        if not isinstance(value, pa.Scalar):
            within = Assignment(field, pa.scalar(None), frozenset(), what)
            return pa.scalar(_plain(value, kind, within), kind)
        if not _may_be_stored(value.type, kind):
            raise TypeError(f"expected a value of {kind}, found {value.type}")
        if types.is_timestamp(value.type) and types.is_string(kind):
            value = value.cast(canonical_type(value.type))
        return value.cast(kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise Invalid(
            f"{what}: expected SQL text, an expression, or a value that fits column '{field.name}' of type "
            f"{kind}, found {value!r}: {error}"
        ) from error


def _plain(value: Any, kind: pa.DataType, within: Assignment) -> Any:
    """A value of Python's as one that PyArrow stores in a type as it is.

    Told a type, PyArrow takes numbers for times, cuts what is finer than a unit, passes over names that a struct lacks,
    and ends the process where a map has a null for an entry. So each part of a value is looked at by itself.
    `within`: the assignment of the whole value.
    Raises: TypeError, ValueError, OverflowError or pa.ArrowException for a value that the type cannot hold.
    """
    if value is None or (isinstance(value, datetime) and value != value):  # a NaT of pandas
        return None
    if types.is_struct(kind):
        pairs = _pairs(value, kind)
        if (name := next((one for one, _ in pairs if kind.get_field_index(one) < 0), None)) is not None:
            raise ValueError(f"no field {name!r} in {kind}")
        return {name: _plain(below, kind.field(name).type, within) for name, below in pairs}
    if types.is_map(kind):
        pairs = _pairs(value, kind)
        if any(key is None for key, _ in pairs):
            raise ValueError(f"expected keys in {kind}, found None")
        return [(_plain(key, kind.key_type, within), _plain(below, kind.item_type, within)) for key, below in pairs]
    if types.is_list(kind):
        if not isinstance(value, list | tuple | np.ndarray):
            raise TypeError(f"expected a list for {kind}, found {type(value).__name__}")
        return [_plain(below, kind.value_type, within) for below in value]

    stored = _leaf(value, kind, within)
    is_count = types.is_timestamp(kind) or types.is_date32(kind)
    return stored.value if is_count else stored.as_py()  # years that Python's times lack are counts, too


def _pairs(value: Any, kind: pa.DataType) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if not isinstance(value, list | tuple) or not all(isinstance(one, tuple) and len(one) == 2 for one in value):
        raise TypeError(f"expected a dict for {kind}, found {type(value).__name__}")
    return list(value)


def _leaf(value: Any, kind: pa.DataType, within: Assignment) -> pa.Scalar:
    """A value without parts in a type. PyArrow makes no decimal of a float and no time of a date; casts do."""
    is_kin = next((one for one in (types.is_timestamp, types.is_date, types.is_time) if one(kind)), None)
    if is_kin is None and not isinstance(value, np.datetime64 | np.timedelta64):
        try:
            return pa.scalar(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            refusal: Exception = error
    else:
        refusal = TypeError(f"expected a value of {kind}, found {type(value).__name__}")

    found = _inferred(value)
    if is_kin is not None and is_kin(found.type):
        return found.cast(kind)[0]
    if types.is_date(kind) and isinstance(value, datetime):
        return pa.scalar(value, kind)
    if types.is_nested(found.type) or not _may_be_stored(found.type, kind):
        raise refusal
    return replace(within, field=within.field.with_type(kind))._stored(found)[0]


def _inferred(value: Any) -> pa.Array:
    """An array of this value, in a type that holds all of it."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return pa.array(np.array([value]))
    found = pa.array([value])
    if not types.is_timestamp(found.type):
        return found
    try:
        return pa.array([value], pa.timestamp("ns", found.type.tz))
    except (pa.ArrowInvalid, OverflowError):  # too far from 1970 to have nanoseconds
        return found


def _parsed(text: str, schema: pa.Schema, what: str) -> Node:
    from pyhudi.predicate.resolve import parse_value  # imports sqlglot, which tasks do not need

    try:
        return parse_value(text, schema)
    except Invalid as error:
        raise Invalid(f"{what}: {str(error).removeprefix('where ')}") from error
    except Unsupported as error:
        raise Unsupported(f"{what}: {str(error).removeprefix('where ')}") from error


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _projected(expression: pc.Expression, rows: pa.RecordBatch, what: str) -> pa.Array:
    import pyarrow.dataset as ds  # imports pandas if it is installed, so not at the top

    try:
        scanner = ds.InMemoryDataset(pa.Table.from_batches([rows])).scanner(columns={"value": expression})
        return one_array(scanner.to_table().column("value"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise Invalid(f"{what}: {expression}: {error}; the columns are {', '.join(rows.schema.names)}") from error


def _columns_read(expression: pc.Expression, schema: pa.Schema) -> frozenset[str]:
    """All columns that the expression may read: Arrow has no call to list them, so those without which it fails."""
    needed = []
    for at, field in enumerate(schema):
        others = pa.schema([*schema][:at] + [*schema][at + 1 :])
        try:
            _projected(expression, _no_rows(others), "")
        except Invalid:
            needed.append(field.name)
    return frozenset(needed)


def _may_be_stored(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark stores values of a type in a column of another: numbers as numbers, dates as times, all as text."""
    if found == wanted or found == pa.null():
        return True
    source, target = canonical_type(found), canonical_type(wanted)
    if types.is_nested(source) or types.is_nested(target):
        return _casts(source, target)
    if source == target:
        return True
    if target == pa.string():
        return source != pa.binary() and can_cast(source, target)
    if is_numeric(source) and is_numeric(target):
        return can_cast(source, target)
    return is_datetime(source) and is_datetime(target)


def _casts(source: pa.DataType, target: pa.DataType) -> bool:
    try:
        pa.array([], source).cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return False
    return True


def _refusal(what: str, found: pa.DataType, field: pa.Field) -> str:
    return (
        f"{what}: expected a value that column '{field.name}' of type {field.type} can store, found {found}; "
        "write a CAST"
    )


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
