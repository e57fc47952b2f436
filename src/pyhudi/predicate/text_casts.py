"""Casts of text to other types, by Spark's rules with ANSI mode off: text that does not parse becomes NULL.

Seen: PySpark 4.3.0 (`tests/spark/test_predicate_like_spark.py`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Unsupported
from pyhudi.predicate.types import TIMESTAMP

_BLANKS = "".join(map(chr, range(0x21))) + "\x7f"
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_INTEGER = r"^(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.[0-9]*)?|\.[0-9]*)$"
_FLOAT = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?$"
_HEXADECIMAL = r"^[+-]?0[xX][0-9a-fA-F.]+[pP][+-]?[0-9]+[dDfF]?$"
_SPECIAL_FLOATS = {"nan": "nan"} | {
    f"{sign}{name}": f"{sign}inf" for sign in ("", "+", "-") for name in ("inf", "infinity")
}
_DECIMAL = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_SHORT_DECIMAL = r"^[+-]?(?:[0-9]{0,38}\.?[0-9]{0,38}|[0-9]{0,17}\.?[0-9]{0,17}[eE][+-]?(?:20|1?[0-9]))$"
_YEAR, _LONG_YEAR = r"(?P<year>[+-]?[0-9]{4,6})", r"(?P<year>[+-]?[0-9]{4,7})"
_DAY = r"(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
_DATE = rf"(?s)^{_LONG_YEAR}{_DAY}(?:[ T].*)?)?)?$"
_OFFSET = r"(?P<sign>[+-])(?P<oh>[0-9]{1,2})(?::?(?P<om>[0-9]{1,2})(?::?(?P<os>[0-9]{2}))?)?"
_ZONE = rf"(?P<zone> ?(?:Z|(?:UTC|GMT|UT)?{_OFFSET}|UTC|GMT|UT))"
_TIME = rf"(?P<h>[0-9]{{1,2}})(?::(?P<m>[0-9]{{1,2}})(?::(?P<s>[0-9]{{1,2}})(?:\.(?P<f>[0-9]*))?{_ZONE}?)?)?"
_TIMESTAMP = rf"^{_YEAR}{_DAY}(?:[ T]{_TIME})?)?)?$"
_REGION = r"^[+-]?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9:]+(?:\.[0-9]*)? ?[A-Z][A-Za-z]+[A-Za-z_/+:0-9-]*$"
_TIME_ONLY = r"^T?[0-9]{1,2}:[0-9]{1,2}(?:[:.+Z ].*)?$"
_DAYS_BEFORE_1970 = 719_468

SECONDS_MAX = (2**63 - 1) // 1_000_000
"""So many seconds fit into 64 bits as microseconds."""

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


def trimmed(values: pa.Array) -> pa.Array:
    """The texts without blanks and control characters at both ends."""
    return pc.utf8_trim(values, characters=_BLANKS)


def text_to_boolean(values: pa.Array) -> pa.Array:
    text = pc.utf8_lower(trimmed(values))
    is_false = pc.if_else(pc.is_in(text, value_set=pa.array(_FALSE)), False, pa.scalar(None, pa.bool_()))
    return pc.if_else(pc.is_in(text, value_set=pa.array(_TRUE)), True, is_false)


def text_to_integer(values: pa.Array, target: pa.DataType) -> pa.Array:
    """A fraction is cut off. A text with an exponent, or out of range, becomes NULL."""
    parts = pc.extract_regex(trimmed(values), _INTEGER)
    whole = pc.struct_field(parts, "whole")
    short = pc.utf8_ltrim(whole, characters="0")
    digits = pc.if_else(pc.equal(pc.utf8_length(short), 0), "0", short)
    digits = pc.if_else(pc.less_equal(pc.utf8_length(digits), 19), digits, None)
    sign = pc.if_else(pc.equal(pc.struct_field(parts, "sign"), "-"), "-", "")

    numbers = pc.binary_join_element_wise(sign, digits, "").cast(pa.decimal128(38, 0))
    limits = np.iinfo(str(target))
    low, high = (pa.scalar(int(limit), pa.int64()).cast(pa.decimal128(38, 0)) for limit in (limits.min, limits.max))
    fits = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return pc.if_else(fits, numbers, None).cast(target)


def text_to_float(values: pa.Array, target: pa.DataType) -> pa.Array:
    text = trimmed(values)
    _refuse(text, _HEXADECIMAL, "a hexadecimal number")
    plain = pc.if_else(pc.match_substring_regex(text, _FLOAT), text, None)
    numbers = pc.utf8_rtrim(plain, characters="dDfF").cast(target)

    lowered = pc.utf8_lower(text)
    for name, value in _SPECIAL_FLOATS.items():
        is_special = pc.fill_null(pc.equal(lowered, name), False)
        numbers = pc.if_else(is_special, pa.scalar(float(value), target), numbers)
    is_signed_nan = pc.fill_null(pc.match_substring_regex(text, "^[+-]NaN$"), False)
    return pc.if_else(is_signed_nan, pa.scalar(float("nan"), target), numbers)


def text_to_wide_decimal(values: pa.Array) -> pa.Array:
    """Texts as decimals with 38 digits before and 38 after the point. Further digits after the point are cut off."""
    numbers = pc.if_else(pc.match_substring_regex(values, _DECIMAL), values, None)
    numbers = pc.replace_substring_regex(numbers, r"^([+-]?)0+([0-9])", r"\1\2")
    cut = pc.replace_substring_regex(numbers, r"^([+-]?[0-9]*\.[0-9]{38})[0-9]+$", r"\1")
    is_huge = pc.match_substring_regex(cut, r"^[+-]?[0-9]{39,}(?:\.[0-9]*)?$")
    cut = pc.if_else(is_huge, None, cut)
    fits = pc.fill_null(pc.match_substring_regex(cut, _SHORT_DECIMAL), True)
    if not pc.all(fits, min_count=0).as_py():
        found = cut.filter(pc.invert(fits))[0].as_py()
        raise Unsupported(f"CAST to a decimal of {found!r}: its exponent is beyond what is exact here")
    return cut.cast(pa.decimal256(76, 38))


def text_to_date(values: pa.Array) -> pa.Array:
    parts = pc.extract_regex(trimmed(values), _DATE)
    days, is_valid = _days_of(parts)
    is_valid &= (days >= -(2**31)) & (days < 2**31)
    return pa.array(days, pa.int64(), mask=~is_valid).cast(pa.int32()).cast(pa.date32())


def text_to_timestamp(values: pa.Array, target: pa.DataType) -> pa.Array:
    """A zone offset shifts a TIMESTAMP and is ignored for a TIMESTAMP_NTZ. Text without a zone is in UTC.

    Raises: Unsupported for a region name such as Europe/Oslo, and for a time without a day, which Spark takes as
    a time of today.
    """
    text = trimmed(values)
    _refuse(text, _REGION, "a zone given by name")
    if target == TIMESTAMP:
        _refuse(text, _TIME_ONLY, "a time without a day")

    parts = pc.extract_regex(text, _TIMESTAMP)
    days, is_valid = _days_of(parts)
    hour, minute, second = (_integers(parts, name, 0) for name in ("h", "m", "s"))
    is_valid &= (hour < 24) & (minute < 60) & (second < 60)

    fraction = pc.utf8_slice_codeunits(pc.struct_field(parts, "f"), 0, 6)
    micros = _as_integers(pc.utf8_rpad(pc.fill_null(fraction, ""), 6, "0"), 0)

    total = ((days * 24 + hour) * 60 + minute) * 60 + second
    offset_hours, offset_minutes, offset_seconds = (_integers(parts, name, 0) for name in ("oh", "om", "os"))
    offset = (offset_hours * 60 + offset_minutes) * 60 + offset_seconds
    is_valid &= (offset <= 18 * 3600) & (offset_minutes < 60) & (offset_seconds < 60)

    if target == TIMESTAMP:
        is_west = pc.fill_null(pc.equal(pc.struct_field(parts, "sign"), "-"), False)
        total = total - np.where(is_west.to_numpy(zero_copy_only=False), -offset, offset)

    is_valid &= np.abs(total) < SECONDS_MAX
    micros = np.where(is_valid, total, 0) * 1_000_000 + micros
    return pa.array(micros, pa.int64(), mask=~is_valid).cast(target)


def _refuse(text: pa.Array, pattern: str, what: str) -> None:
    found = pc.fill_null(pc.match_substring_regex(text, pattern), False)
    named = pc.fill_null(pc.match_substring_regex(text, _TIMESTAMP), False)
    strays = pc.and_not(found, named)
    if pc.any(strays).as_py():
        raise Unsupported(f"a cast of the text {text.filter(strays)[0].as_py()!r}: it has {what}")


def _days_of(parts: pa.Array) -> tuple[Integers, Booleans]:
    """Days since 1970 for the parsed year, month and day, and whether that day exists."""
    year, month, day = (_integers(parts, name, 1) for name in ("year", "month", "day"))
    is_valid = pc.is_valid(parts).to_numpy(zero_copy_only=False).astype(np.bool_)
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
    is_month = (month >= 1) & (month <= 12)
    length = lengths[np.where(is_month, month, 0)] + ((month == 2) & is_leap)
    is_valid = is_valid & is_month & (day >= 1) & (day <= length)

    # Days are counted in years that begin in March, so that a leap day is the last day of its year.
    march_year = year - (month <= 2)
    era = march_year // 400
    year_of_era = march_year - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return np.where(is_valid, era * 146_097 + day_of_era - _DAYS_BEFORE_1970, 0), is_valid


def _integers(parts: pa.Array, name: str, default: int) -> Integers:
    return _as_integers(pc.struct_field(parts, name), default)


def _as_integers(text: pa.Array, default: int) -> Integers:
    present = pc.if_else(pc.equal(text, ""), None, text)
    filled = pc.fill_null(pc.utf8_ltrim(present, characters="+"), str(default))
    return np.asarray(filled.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)
