"""Values of Python's as values of a column: stored whole, part by part, or refused.

SQL may cut 2.99 to 2 where it stores it among integers, as Spark does. Who gives the number 2.99 is told.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from pyhudi.errors import Invalid
from pyhudi.predicate.storing import may_be_stored, part_of, stored_array
from pyhudi.predicate.types import canonical_type, is_numeric


def python_value(value: Any, field: pa.Field, *, what: str) -> pa.Scalar:
    """A value of Python's, or a `pyarrow.Scalar`, in the type of a column. `what`: names the assignment in messages.

    Raises: Invalid for a value that the type cannot hold whole. A moment gives its day to a column of dates, and
    floating point holds the nearest number.
    """
    kind = field.type
    try:
        if not isinstance(value, pa.Scalar):
            return pa.scalar(_plain(value, field, what), kind)
        if not may_be_stored(value.type, kind):
            raise TypeError(f"expected a value of {kind}, found {value.type}")
        if types.is_nested(kind) and value.type != kind:
            return pa.scalar(_plain(value.as_py(), field, what), kind)
        return _whole(value, stored_array(pa.repeat(value, 1), field, what=what)[0], field)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise Invalid(
            f"{what}: expected SQL text, an expression, or a value that fits column '{field.name}' of type "
            f"{kind}, found {value!r}: {error}"
        ) from error


def _plain(value: Any, field: pa.Field, what: str) -> Any:
    """A value of Python's as one that PyArrow stores in the field's type as it is.

    Told a type, PyArrow takes numbers for times, cuts what is finer than a unit, passes over names that a struct lacks,
    and ends the process where a map has a null for an entry. So each part of a value is looked at by itself.
    `field`: the column, or the part of it, named by its path.
    Raises: TypeError, ValueError, OverflowError or pa.ArrowException for a value that the type cannot hold; Invalid.
    """
    kind = field.type
    if value is None or (isinstance(value, datetime) and value != value):  # a NaT of pandas
        return None
    if types.is_struct(kind):
        pairs = _pairs(value, kind)
        if (name := next((one for one, _ in pairs if kind.get_field_index(one) < 0), None)) is not None:
            raise ValueError(f"no field {name!r} in {kind}")
        _refuse_doubled((name for name, _ in pairs), kind)
        return {name: _plain(below, part_of(field, kind.field(name)), what) for name, below in pairs}
    if types.is_map(kind):
        pairs = _pairs(value, kind)
        if any(key is None for key, _ in pairs):
            raise ValueError(f"expected keys in {kind}, found None")
        of_key, of_value = part_of(field, kind.key_field, "key"), part_of(field, kind.item_field, "value")
        found = [(_plain(key, of_key, what), _plain(below, of_value, what)) for key, below in pairs]
        _refuse_doubled((key for key, _ in found), kind)
        return found
    if types.is_list(kind):
        if not isinstance(value, list | tuple | np.ndarray):
            raise TypeError(f"expected a list for {kind}, found {type(value).__name__}")
        return [_plain(below, part_of(field, kind.value_field, "element"), what) for below in value]

    stored = _whole(value, _leaf(value, field, what), field)
    is_count = types.is_timestamp(kind) or types.is_date32(kind)
    return stored.value if is_count else stored.as_py()  # years that Python's times lack are counts, too


def _pairs(value: Any, kind: pa.DataType) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if not isinstance(value, list | tuple) or not all(isinstance(one, tuple) and len(one) == 2 for one in value):
        raise TypeError(f"expected a dict for {kind}, found {type(value).__name__}")
    return list(value)


def _refuse_doubled(names: Iterable[Any], kind: pa.DataType) -> None:
    doubled = next((name for name, count in Counter(names).items() if count > 1), None)
    if doubled is not None:
        raise ValueError(f"{doubled!r} twice, for {kind}")


def _leaf(value: Any, field: pa.Field, what: str) -> pa.Scalar:
    """A value without parts in a type. PyArrow makes no decimal of a float and no time of a date; casts do."""
    kind = field.type
    is_kin = next((one for one in (types.is_timestamp, types.is_date, types.is_time) if one(kind)), None)
    is_odd = isinstance(value, np.datetime64 | np.timedelta64) or (
        isinstance(value, bool | np.bool_) and not types.is_boolean(kind)
    )
    refusal: Exception = TypeError(f"expected a value of {kind}, found {type(value).__name__}")
    if is_kin is None and not is_odd:
        try:
            return pa.scalar(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            refusal = error

    found = _inferred(value)
    if is_kin is not None and is_kin(found.type):
        return found.cast(kind)[0]
    if types.is_date(kind) and isinstance(value, datetime):
        return pa.scalar(value, kind)
    if types.is_nested(found.type) or not may_be_stored(found.type, kind):
        raise refusal
    return stored_array(found.cast(canonical_type(found.type)), field, what=what)[0]


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


def _whole(value: Any, stored: pa.Scalar, field: pa.Field) -> pa.Scalar:
    """What is stored of a value, if it is the number that was given. Raises: ValueError."""
    kind = field.type
    found = stored.as_py() if is_numeric(canonical_type(kind)) else None
    if found is None:
        return stored

    given = value.as_py() if isinstance(value, pa.Scalar) else value
    if isinstance(given, float | np.number):
        given = Decimal(str(given))  # its shortest digits: those that a decimal of 0.1 has
    is_whole = not math.isinf(found) or given == found if types.is_floating(kind) else given == found
    if not is_whole:
        raise ValueError(f"it would become {found} in '{field.name}' of {kind}")
    return stored
