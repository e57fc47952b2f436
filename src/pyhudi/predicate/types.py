"""The types of Spark SQL, as Arrow types, and the common type of two types (ANSI mode off).

Seen: PySpark 4.3.0, in analyzed plans and by `tests/spark/test_predicate_like_spark.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyarrow import types

DECIMAL_DIGITS_MAX = 38
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def canonical_type(declared: pa.DataType) -> pa.DataType:
    """The one Arrow type that stands for all its variants: large, dictionary and view types, other time units."""
    if types.is_dictionary(declared):
        return canonical_type(declared.value_type)
    if types.is_string(declared) or types.is_large_string(declared) or types.is_string_view(declared):
        return pa.string()
    if types.is_binary(declared) or types.is_large_binary(declared) or types.is_binary_view(declared):
        return pa.binary()
    if types.is_fixed_size_binary(declared):
        return pa.binary()

    if types.is_timestamp(declared):
        return TIMESTAMP_NTZ if declared.tz is None else TIMESTAMP
    if types.is_date(declared):
        return pa.date32()
    if types.is_decimal(declared) and declared.precision <= DECIMAL_DIGITS_MAX:
        return pa.decimal128(declared.precision, declared.scale)
    if types.is_float16(declared):
        return pa.float32()
    return _UNSIGNED.get(declared, declared)


def is_integer(kind: pa.DataType) -> bool:
    return kind in _INTEGERS


def is_float(kind: pa.DataType) -> bool:
    return kind in (pa.float32(), pa.float64())


def is_numeric(kind: pa.DataType) -> bool:
    return is_integer(kind) or is_float(kind) or types.is_decimal(kind)


def is_datetime(kind: pa.DataType) -> bool:
    return kind in (pa.date32(), TIMESTAMP, TIMESTAMP_NTZ)


def is_comparable(kind: pa.DataType) -> bool:
    return is_numeric(kind) or is_datetime(kind) or kind in (pa.bool_(), pa.string(), pa.binary(), pa.null())


def decimal_for(kind: pa.DataType) -> pa.DataType:
    """The decimal that holds every value of an integer or decimal type."""
    return pa.decimal128(_INTEGER_DIGITS[kind], 0) if is_integer(kind) else kind


def wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal that holds both types. Beyond 38 digits, digits of the fraction are dropped."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale <= DECIMAL_DIGITS_MAX:
        return pa.decimal128(whole + scale, scale)
    return pa.decimal128(DECIMAL_DIGITS_MAX, max(DECIMAL_DIGITS_MAX - whole, 0))


def decimal_result(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal type of `left operator right`."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if operator in ("+", "-"):
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif operator == "*":
        precision, scale = p1 + p2 + 1, s1 + s2
    else:
        assert operator == "/"
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale

    if precision > DECIMAL_DIGITS_MAX:
        kept_scale_min = min(scale, 6)
        scale = max(DECIMAL_DIGITS_MAX - (precision - scale), kept_scale_min)
        precision = DECIMAL_DIGITS_MAX
    return pa.decimal128(precision, scale)


def wider_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The common type of two numeric types.

    Seen: bigint and float give float; a decimal and a float give double.
    """
    assert is_numeric(left)
    assert is_numeric(right)
    if left == right:
        return left
    if is_integer(left) and is_integer(right):
        return max(left, right, key=_INTEGERS.index)
    if types.is_decimal(left) or types.is_decimal(right):
        if is_float(left) or is_float(right):
            return pa.float64()
        return wider_decimal(decimal_for(left), decimal_for(right))
    return pa.float64() if pa.float64() in (left, right) else pa.float32()


def _wider_datetime(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if left == right:
        return left
    return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ


def compared_type(left: pa.DataType, right: pa.DataType, *, equality: bool) -> pa.DataType | None:
    """The type in which Spark compares the two types. None if Spark refuses to compare them.

    Text gives way to the other type: the text is cast, and is NULL if it does not parse.
    Seen: text and a decimal are compared as double; a boolean and a number can only be tested for equality.
    """
    if not (is_comparable(left) and is_comparable(right)):
        return None
    if left == right or pa.null() in (left, right):
        return right if left == pa.null() else left

    if pa.string() in (left, right):
        other = right if left == pa.string() else left
        return pa.float64() if types.is_decimal(other) else other

    if is_numeric(left) and is_numeric(right):
        return wider_number(left, right)
    if is_datetime(left) and is_datetime(right):
        return _wider_datetime(left, right)

    if equality and left == pa.bool_() and is_numeric(right):
        return right
    if equality and right == pa.bool_() and is_numeric(left):
        return left
    return None


def listed_type(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    """The common type of an IN list or of coalesce's arguments. None if Spark refuses them.

    Seen: unlike in a comparison, text wins here: `day IN ('2026-01-01')` compares as text.
    """
    known = [kind for kind in kinds if kind != pa.null()]
    common = known[0] if known else pa.null()

    if pa.string() in known:
        texts = all(k == pa.string() or is_numeric(k) or is_datetime(k) for k in known)
        return pa.string() if texts else None

    for kind in known[1:]:
        if kind == common:
            continue
        if is_numeric(kind) and is_numeric(common):
            common = wider_number(common, kind)
        elif is_datetime(kind) and is_datetime(common):
            common = _wider_datetime(common, kind)
        else:
            return None
    return common if is_comparable(common) else None
