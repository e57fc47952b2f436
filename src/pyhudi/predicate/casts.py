"""CAST over Arrow arrays, as Spark computes it with ANSI mode off: a value that does not fit becomes NULL.

Seen: PySpark 4.3.0 (`tests/spark/test_predicate_like_spark.py`).
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.keys.java_numbers import numeric_texts
from pyhudi.predicate.functions.date_formats import parse_date_format, print_days, print_micros
from pyhudi.predicate.text_casts import (
    SECONDS_MAX,
    text_to_boolean,
    text_to_date,
    text_to_float,
    text_to_integer,
    text_to_timestamp,
    text_to_wide_decimal,
    trimmed,
)
from pyhudi.predicate.types import (
    TIMESTAMP,
    TIMESTAMP_NTZ,
    canonical_type,
    is_datetime,
    is_float,
    is_integer,
    is_numeric,
)

_MICROSECONDS = 1_000_000
_NEAR_DAYS = 2_932_897
"""From 1970 to the year 10000."""


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether `cast_array` can compute this cast. Float to text is left out: Java's spelling is not known here."""
    if source in (target, pa.null()):
        return True
    if target == pa.string():
        return source in (pa.bool_(), pa.binary()) or is_datetime(source) or _is_exact(source)
    if source == pa.string():
        return target in (pa.bool_(), pa.binary()) or is_datetime(target) or is_numeric(target)
    if is_datetime(source) and is_datetime(target):
        return True
    if (source == TIMESTAMP and is_integer(target)) or (target == TIMESTAMP and is_integer(source)):
        return True
    numbers = (source == pa.bool_() or is_numeric(source)) and (target == pa.bool_() or is_numeric(target))
    return numbers and source != target


def _is_exact(kind: pa.DataType) -> bool:
    return is_integer(kind) or types.is_decimal(kind)


def canonical_array(values: pa.Array) -> pa.Array:
    """The same values in the canonical type (`canonical_type`). Raises: Invalid for a timestamp too far away for it."""
    target = canonical_type(values.type)
    if values.type == target:
        return values
    if types.is_dictionary(values.type):
        return canonical_array(values.dictionary_decode())

    if types.is_timestamp(values.type) and values.type.unit == "ns":
        nanoseconds = values.cast(pa.int64())
        remainder = pc.subtract(nanoseconds, pc.multiply(pc.divide(nanoseconds, 1000), 1000))
        down = pc.if_else(pc.less(remainder, 0), pc.subtract(remainder, -1000), remainder)
        return pc.divide(pc.subtract(nanoseconds, down), 1000).cast(target)
    if types.is_timestamp(values.type):
        try:
            return values.cast(target)
        except pa.ArrowInvalid as error:
            raise Invalid(f"expected timestamps whose microseconds fit 64 bits, found others: {error}") from error
    return values.cast(target, safe=False)


def cast_array(values: pa.Array, target: pa.DataType) -> pa.Array:
    """The values as type `target`. NULL where Spark gives NULL. The caller must have asked `can_cast`."""
    source = values.type
    assert can_cast(source, target), f"{source} to {target}"
    if source == target:
        return values
    if source == pa.null():
        return pa.nulls(len(values), target)

    if source == pa.string():
        return _from_text(values, target)
    if target == pa.string():
        return _to_text(values)

    if types.is_decimal(target):
        return _to_decimal(values, target)
    if is_datetime(source) or is_datetime(target):
        return _between_datetimes(values, target)
    if target == pa.bool_():
        return pc.not_equal(values, pa.scalar(0, source))
    if types.is_decimal(source):
        return _from_decimal(values, target)
    if is_float(source) and is_integer(target):
        return _float_to_integer(values, target)
    return values.cast(target, safe=False)


def _from_text(values: pa.Array, target: pa.DataType) -> pa.Array:
    if target == pa.bool_():
        return text_to_boolean(values)
    if target == pa.binary():
        return values.cast(target)
    if target == pa.date32():
        return text_to_date(values)
    if target in (TIMESTAMP, TIMESTAMP_NTZ):
        return text_to_timestamp(values, target)
    if is_integer(target):
        return text_to_integer(values, target)
    if is_float(target):
        return text_to_float(values, target)
    return round_decimal(text_to_wide_decimal(trimmed(values)), target)


def _to_text(values: pa.Array) -> pa.Array:
    if values.type == pa.binary():
        return values.cast(options=pc.CastOptions(pa.string(), allow_invalid_utf8=True))
    if types.is_timestamp(values.type):
        text = _time_texts(values.cast(TIMESTAMP_NTZ))
        return pc.replace_substring_regex(text, r"\.?0*$|(\.\d*[1-9])0*$", r"\1")
    return _time_texts(values) if values.type == pa.date32() else values.cast(pa.string())


def _time_texts(values: pa.Array) -> pa.Array:
    """Dates, or times to the microsecond. Arrow prints years beyond 9999 without a sign, and far ones not at all."""
    is_date = values.type == pa.date32()
    numbers = values.cast(pa.int32() if is_date else pa.int64())
    limit = _NEAR_DAYS if is_date else _NEAR_DAYS * 86_400 * _MICROSECONDS
    is_near = pc.and_(pc.greater(numbers, -limit), pc.less(numbers, limit))
    if pc.all(is_near).as_py() is not False:
        return values.cast(pa.string())
    return print_days(numbers) if is_date else print_micros(numbers, parse_date_format("yyyy-MM-dd HH:mm:ss.SSSSSS"))


def _between_datetimes(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Casts between dates and timestamps, and between a timestamp and its whole seconds, which are rounded down."""
    if is_integer(target):
        return _floor_divide(values.cast(pa.int64()), _MICROSECONDS).cast(target, safe=False)
    if is_integer(values.type):
        return _saturated_micros(values.cast(pa.int64())).cast(target)
    if target == pa.date32():
        microseconds = values.cast(pa.int64())
        return _floor_divide(microseconds, 86_400 * _MICROSECONDS).cast(pa.int32()).cast(target)
    if values.type == pa.date32():
        try:
            return values.cast(TIMESTAMP_NTZ).cast(pa.int64()).cast(target)
        except pa.ArrowInvalid as error:  # Spark ends with "long overflow"
            raise Invalid(f"CAST of a date to a timestamp: {error}; expected a date before the year 294247") from error
    return values.cast(pa.int64()).cast(target)


def _saturated_micros(seconds: pa.Array) -> pa.Array:
    """Seconds as microseconds; the nearest limit of 64 bits for what is beyond it. As Java's `TimeUnit` does."""
    micros = pc.multiply(seconds, _MICROSECONDS)
    micros = pc.if_else(pc.greater(seconds, SECONDS_MAX), pa.scalar(2**63 - 1), micros)
    return pc.if_else(pc.less(seconds, -SECONDS_MAX), pa.scalar(-(2**63)), micros)


def _floor_divide(values: pa.Array, divisor: int) -> pa.Array:
    quotient = pc.divide(values, divisor)
    is_over = pc.greater(pc.multiply(quotient, divisor), values)
    return pc.subtract(quotient, is_over.cast(pa.int64()))


def _to_decimal(values: pa.Array, target: pa.DataType) -> pa.Array:
    if is_float(values.type):
        doubles = values.cast(pa.float64())  # Spark goes by the text of a double
        finite = pc.if_else(pc.is_finite(doubles), doubles, None)
        return round_decimal(text_to_wide_decimal(numeric_texts(finite)), target)
    if values.type == pa.bool_():
        values = values.cast(pa.int32())
    if is_integer(values.type):
        values = values.cast(pa.int64()).cast(pa.decimal128(19, 0))
    return round_decimal(values, target)


def round_decimal(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Decimals rounded half away from zero to the target's scale. NULL where the result has too many digits.

    By hand: PyArrow's `round` is wrong where a number of many digits gains one.
    """
    scale, whole = max(values.type.scale, target.scale), target.precision - target.scale
    wide = _within(values.cast(pa.decimal256(76, scale)), whole, scale)
    if scale > target.scale:
        near = _cut(wide, pa.decimal256(75, target.scale + 1))
        half = pa.scalar(Decimal((0, (5,), -target.scale - 1)), pa.decimal256(75, target.scale + 1))
        away = pc.if_else(pc.less(near, pa.scalar(Decimal(0), near.type)), pc.negate(half), half)
        wide = _within(_cut(pc.add(near, away), pa.decimal256(76, target.scale)), whole, target.scale)
    return wide.cast(target)


def _within(values: pa.Array, whole: int, scale: int) -> pa.Array:
    """The values with at most so many digits before the point; NULL for others. `scale`: of their type."""
    largest = pa.scalar(Decimal((0, (9,) * (whole + scale) or (0,), -scale)), values.type)
    return pc.if_else(pc.less_equal(pc.abs(values), largest), values, pa.scalar(None, values.type))


def _cut(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values without the digits that the type has no place for."""
    return values.cast(options=pc.CastOptions(kind, allow_decimal_truncate=True))


def _from_decimal(values: pa.Array, target: pa.DataType) -> pa.Array:
    """A decimal as the nearest float, by way of text; or as an integer, cut towards zero, where overflow wraps."""
    if is_float(target):
        return values.cast(pa.string()).cast(target)
    whole = pc.trunc(values).cast(pa.decimal128(38, values.type.scale)).cast(pa.decimal256(76, 0))
    limit = pa.scalar(Decimal(2**63 - 1), pa.decimal256(76, 0))
    if pc.any(pc.greater(pc.abs(whole), limit)).as_py():
        raise Unsupported(f"CAST of a decimal beyond 64 bits to {target}: filter by a decimal instead")
    return whole.cast(pa.int64()).cast(target, safe=False)


def _float_to_integer(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Java's rules: NaN becomes 0, a number out of range the nearest limit; small types keep an int's low bits."""
    wide = pa.int64() if target == pa.int64() else pa.int32()
    limits = np.iinfo(str(wide))
    numbers = np.nan_to_num(
        np.trunc(pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.float64)),
        nan=0.0,
        posinf=np.inf,
        neginf=-np.inf,
    )

    high, low = numbers >= float(limits.max), numbers <= float(limits.min)
    inner = np.where(high | low, 0.0, numbers).astype(np.int64)
    result = np.where(high, limits.max, np.where(low, limits.min, inner))

    mask = pc.is_null(values).to_numpy(zero_copy_only=False)
    return pa.array(result, pa.int64(), mask=mask).cast(target, safe=False)
