"""Prints times by Spark SQL's date patterns (`from_unixtime`, `date_format`), in UTC, over Arrow columns.

Supported are letters that print digits only: four `y`, one or two of `M d H m s`, up to six `S`; quoted text; signs.
Seen: PySpark 4.3.0 (`tests/spark/test_predicate_like_spark.py`): a year beyond 9999 is printed with a sign, and the
year before year 1 is year 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.keys.date_patterns import Letters, Text, parse_date_pattern

Numbers = npt.NDArray[np.int64]

_WIDTHS: Final = {"y": (4,), "M": (1, 2), "d": (1, 2), "H": (1, 2), "m": (1, 2), "s": (1, 2), "S": (1, 2, 3, 4, 5, 6)}
_RESERVED: Final = frozenset("[]{}#")
_DAY_US: Final = 86_400_000_000
_MICROS_DIGITS: Final = 6


class FormatError(ValueError):
    """A pattern that cannot be printed here. The text says why."""


@dataclass(frozen=True, slots=True)
class DateFormat:
    """A date pattern, parsed to tokens."""

    tokens: tuple[Text | Letters, ...]


def parse_date_format(pattern: str) -> DateFormat:
    """The pattern, parsed. Raises: FormatError for what Spark refuses, and for letters that cannot be printed here."""
    try:
        tokens = parse_date_pattern(pattern, option="pattern").tokens
    except Invalid as error:
        raise FormatError(f"the date pattern '{pattern}'") from error
    for token in tokens:
        match token:
            case Letters() if token.width not in _WIDTHS.get(token.letter, ()):
                raise FormatError(f"'{token.letter * token.width}' in the date pattern '{pattern}'")
            case Text() if _RESERVED & set(token.text):
                raise FormatError(f"'{token.text}' in the date pattern '{pattern}'")
    if not tokens:
        raise FormatError("an empty date pattern")
    return DateFormat(tokens)


def print_micros(micros: pa.Array, by: DateFormat) -> pa.Array:
    """Microseconds since 1970 as text. Null stays null. Shape: (n,) int64 -> (n,) text."""
    values = pc.fill_null(micros, 0).to_numpy(zero_copy_only=False)
    days = np.floor_divide(values, _DAY_US)
    return _joined(days, values - days * _DAY_US, micros, by)


def print_days(days: pa.Array) -> pa.Array:
    """Days since 1970 as `yyyy-MM-dd`. Null stays null. Shape: (n,) int32 -> (n,) text."""
    values = pc.fill_null(days, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return _joined(values, np.zeros_like(values), days, parse_date_format("yyyy-MM-dd"))


def part_of_days(name: str, days: pa.Array) -> pa.Array:
    """The year, month, quarter or day of days since 1970. Arrow's are right up to the year 32767.

    Shape: (n,) int32 -> (n,) int32.
    """
    year, month, day = _civil(pc.fill_null(days, 0).to_numpy(zero_copy_only=False).astype(np.int64))
    parts = {"year": year, "month": month, "quarter": (month + 2) // 3, "day": day}
    return pa.array(parts[name], pa.int32(), mask=days.is_null().to_numpy(zero_copy_only=False))


def _joined(days: Numbers, of_day: Numbers, given: pa.Array, by: DateFormat) -> pa.Array:
    pieces = [token.text if isinstance(token, Text) else _printed(token, days, of_day) for token in by.tokens]
    joined = pc.binary_join_element_wise(*pieces, "")
    if isinstance(joined, pa.Scalar):
        joined = pa.repeat(joined, len(given))
    return pc.if_else(given.is_valid(), joined, pa.scalar(None, pa.string())) if given.null_count else joined


def _printed(letters: Letters, days: Numbers, of_day: Numbers) -> pa.Array:
    match letters.letter:
        case "y":
            return _years(_civil(days)[0])
        case "M":
            return _digits(_civil(days)[1], letters.width)
        case "d":
            return _digits(_civil(days)[2], letters.width)
        case "H":
            return _digits(of_day // 3_600_000_000, letters.width)
        case "m":
            return _digits(of_day // 60_000_000 % 60, letters.width)
        case "s":
            return _digits(of_day // 1_000_000 % 60, letters.width)

    assert letters.letter == "S"
    return _digits(of_day % 1_000_000 // 10 ** (_MICROS_DIGITS - letters.width), letters.width)


def _civil(days: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Year, month and day of days since 1970, by today's calendar rules for all times (proleptic Gregorian)."""
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    since = months.astype(np.int64)
    years = np.floor_divide(since, 12)
    return years + 1970, since - years * 12 + 1, (dates - months.astype("datetime64[D]")).astype(np.int64) + 1


def _years(years: Numbers) -> pa.Array:
    """Years with at least four digits. Years below 0 and years with more digits have a sign."""
    counted = pa.array(years)
    texts = pc.utf8_lpad(pc.abs(counted).cast(pa.string()), 4, "0")
    signs = pc.if_else(pc.greater(counted, 9_999), "+", pc.if_else(pc.less(counted, 0), "-", ""))
    return pc.binary_join_element_wise(signs, texts, "")


def _digits(values: Numbers, width: int) -> pa.Array:
    distinct, positions = np.unique(values, return_inverse=True)
    texts = [f"{value:0{width}}" for value in distinct.tolist()]
    return pa.array(texts, pa.string()).take(pa.array(positions.reshape(-1)))
