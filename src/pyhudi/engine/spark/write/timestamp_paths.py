"""The time-based key generator as native expressions. Their values are those of `format/keys/timestamp_paths.py`.

No setting of the session changes a value, because times are computed as numbers and dates from the number of the day.
"""

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f

from pyhudi.format.keys.date_patterns import (
    DAY_MS,
    DAYS,
    HALFDAYS,
    MONTHS,
    OFFSET_GROUP,
    TEXT_MONTH,
    DatePattern,
    Letters,
    Text,
    parsed_groups,
    parsing_regex,
)
from pyhudi.format.keys.timestamp_paths import MAX_MS, MIN_MS, UNIT_NS, TimestampSpec, fixed_offset_ms, refuse_type
from pyhudi.format.time_units import stored_unit_ns

_LONG_MAX = 9_000_000_000_000_000_000


def partition_text(column: Column, stored: Column | None, kind: pa.DataType, name: str, spec: TimestampSpec) -> Column:
    """The partition text of a column's values; null for a value that is no time.

    `stored`: the number that the table stores, for a column of timestamps. Raises: Invalid for a type that the
    generator cannot read.
    """
    refuse_type(spec, kind, name)
    if pa.types.is_string(kind):
        text = f.coalesce(column, f.lit(spec.null_text))
        wall = _bound(text, lambda text: f.coalesce(*(_wall_of_text(text, pattern, spec) for pattern in spec.inputs)))
        return print_wall(wall, spec.output)
    assert spec.output_zone is not None  # `refuse_type` refuses numbers without it
    return print_wall(local_ms(_millis(column, stored, kind, spec), spec.output_zone), spec.output)


def _bound(value: Column, use: Callable[[Column], Column]) -> Column:
    """`use(value)`, with `value` computed once.

    Without this, the expression of `value` is repeated wherever `use` names it, and expressions grow with
    every step.
    """
    return f.element_at(f.transform(f.array(value), use), 1)


def _millis(column: Column, stored: Column | None, kind: pa.DataType, spec: TimestampSpec) -> Column:
    """Milliseconds since 1970 of a column's values, cut towards zero; null for values that are out of bounds.

    A null value counts as one unit after 1970: with a unit of seconds it gives 1,000 milliseconds.
    """
    unit, null_value = UNIT_NS[spec.unit], 1

    if pa.types.is_timestamp(kind):
        assert stored is not None
        values = stored
        if spec.is_consistent and kind.tz is not None:
            own = stored_unit_ns(kind)
            null_value, unit = unit // own, own
    elif pa.types.is_date32(kind):
        values = f.unix_date(column).cast("long")
    elif pa.types.is_floating(kind):
        number = f.nanvl(column.cast("double"), f.lit(0.0))
        inside = f.least(f.greatest(number, f.lit(-float(_LONG_MAX))), f.lit(float(_LONG_MAX)))
        values = f.when(column.isNotNull(), _cut(inside))  # `greatest` passes over nulls
    elif pa.types.is_decimal(kind):
        limit = f.lit(Decimal(_LONG_MAX))
        values = f.when(f.abs(column) <= limit, _cut(column)).when(column.isNotNull(), _LONG_MAX)
    else:
        values = column.cast("long")
    values = f.coalesce(values, f.lit(null_value).cast("long"))

    if unit >= 1_000_000:
        factor = unit // 1_000_000
        return _bound(values, lambda v: f.when(v.between(-(-MIN_MS // factor), MAX_MS // factor), v * factor))

    parts = 1_000_000 // unit
    millis = _bound(values, lambda v: f.round((v - v % parts) / parts).cast("long"))
    return _bound(millis, lambda ms: f.when(ms.between(MIN_MS, MAX_MS), ms))


def _cut(number: Column) -> Column:
    return f.when(number >= 0, f.floor(number)).otherwise(f.ceil(number)).cast("long")


def local_ms(millis: Column, zone: str) -> Column:
    """Wall-clock milliseconds in a zone, from milliseconds since 1970; null outside of the years 1 to 9999."""
    offset = fixed_offset_ms(zone)
    if offset is not None:
        wall = millis + f.lit(offset).cast("long")
    else:
        wall = f.unix_millis(f.from_utc_timestamp(f.timestamp_millis(millis), zone))
    return _bound(wall, lambda ms: f.when(ms.between(MIN_MS, MAX_MS), ms))


def _utc_ms(wall: Column, zone: str) -> Column:
    """Milliseconds since 1970 of wall-clock times; null for times that the zone's clock has skipped, as in spring."""
    offset = fixed_offset_ms(zone)
    if offset is not None:
        return wall - f.lit(offset).cast("long")

    def without_leaps(ms: Column) -> Column:
        local = f.timestamp_millis(ms)
        back = f.unix_millis(f.to_utc_timestamp(local, zone))
        return _bound(back, lambda utc: f.when(f.from_utc_timestamp(f.timestamp_millis(utc), zone) == local, utc))

    return _bound(wall, without_leaps)


def _wall_of_text(text: Column, pattern: DatePattern, spec: TimestampSpec) -> Column:
    """Wall-clock milliseconds in the output's zone, read from a text by a pattern; null if the pattern does not fit."""
    regex = parsing_regex(pattern, names_groups=False)
    fits = text.rlike(regex)
    parts = {name: f.regexp_extract(text, regex, at + 1) for at, name in enumerate(parsed_groups(pattern))}
    wall = _wall_of_parts(fits, parts)

    # Without zones the text's own wall-clock time is printed.
    if spec.input_zone is None and spec.output_zone is None:
        return f.when(_offset_ms(fits, parts[OFFSET_GROUP]).isNotNull(), wall) if OFFSET_GROUP in parts else wall

    if OFFSET_GROUP in parts:
        millis = wall - _offset_ms(fits, parts[OFFSET_GROUP])
    else:
        assert spec.input_zone is not None  # refused where the spec is made
        millis = _utc_ms(wall, spec.input_zone)

    zone = spec.output_zone or spec.input_zone
    assert zone is not None
    return local_ms(millis, zone)


def _wall_of_parts(fits: Column, parts: dict[str, Column]) -> Column:
    def number(name: str, default: int) -> Column:
        return f.when(fits, parts[name].cast("int")) if name in parts else f.lit(default)

    year, day = number("y", 1970), number("d", 1)
    month = _month_number(fits, parts[TEXT_MONTH]) if TEXT_MONTH in parts else number("M", 1)
    hour, minute, second = number("H", 0), number("m", 0), number("s", 0)
    is_right = fits & year.between(1, 9999) & month.between(1, 12) & hour.between(0, 23)
    is_right &= minute.between(0, 59) & second.between(0, 59)

    # Letters for other clocks than 0 to 23: k is 1 to 24; K is 0 to 11 and h is 1 to 12, both maybe with AM or PM.
    if "k" in parts:
        hour = number("k", 0) % 24
        is_right &= number("k", 0).between(1, 24)
    for name, low, high in (("K", 0, 11), ("h", 1, 12)):
        if name in parts:
            hour = number(name, 0) % 12
            if "a" in parts:
                hour = f.when(f.upper(parts["a"]) == "PM", hour + 12).otherwise(hour)
            is_right &= number(name, 0).between(low, high)

    fraction = f.lit(0)
    if "S" in parts:
        fraction = f.when(fits, f.rpad(parts["S"], 3, "0").cast("int"))
    first = f.when(is_right, f.make_date(year, month, f.lit(1)))

    def wall(first: Column) -> Column:
        days = (f.unix_date(first) + day - 1).cast("long")
        time = ((hour * 60 + minute) * 60 + second) * 1_000 + fraction
        return f.when(day.between(1, f.dayofmonth(f.last_day(first))), days * DAY_MS + time)

    return _bound(first, wall)


def _month_number(fits: Column, name: Column) -> Column:
    # A map is used because before PySpark 4.0 `array_position` cannot look for the value of a column.
    numbers = f.create_map(*(f.lit(entry) for at, month in enumerate(MONTHS, 1) for entry in (month[:3].upper(), at)))
    return f.when(fits, f.element_at(numbers, f.upper(f.substring(name, 1, 3))))


def _offset_ms(fits: Column, offset: Column) -> Column:
    digits = f.rpad(f.regexp_replace(offset.substr(f.lit(2), f.lit(5)), ":", ""), 4, "0")
    hours, minutes = f.substring(digits, 1, 2).cast("int"), f.substring(digits, 3, 2).cast("int")
    size = (hours * 60 + minutes).cast("long") * 60_000
    is_right = fits & (hours < 24) & (minutes < 60)
    return f.when(is_right, f.when(offset.startswith("-"), -size).otherwise(size))


def print_wall(wall: Column, pattern: DatePattern) -> Column:
    """A wall-clock time in milliseconds as text, spelled by the pattern."""

    def spelled(wall: Column) -> Column:
        # Whole days, and the milliseconds within the day; `pmod` makes these positive for times before 1970, too.
        rest = f.pmod(wall, f.lit(DAY_MS))
        days = ((wall - rest) / DAY_MS).cast("int")
        return _bound(days, lambda day: f.concat(*(letters(one, day, rest) for one in pattern.tokens), f.lit("")))

    def letters(one: Text | Letters, days: Column, rest: Column) -> Column:
        return f.lit(one.text) if isinstance(one, Text) else _letters(one, f.date_from_unix_date(days), rest)

    return _bound(wall, spelled)


def _letters(letters: Letters, date: Column, rest_ms: Column) -> Column:
    hour = f.floor(rest_ms / 3_600_000)
    if letters.letter == "S":
        return f.rpad(_padded(rest_ms % 1_000, 3), letters.width, "0")
    if letters.letter == "a":
        return f.when(hour < 12, HALFDAYS[0]).otherwise(HALFDAYS[1])
    if letters.letter == "E":
        return _named(DAYS, f.weekday(date), is_short=letters.width < 4)
    if letters.letter == "M" and letters.width >= 3:
        return _named(MONTHS, f.month(date) - 1, is_short=letters.width < 4)

    # Only the expression for the wanted letter is made.
    numbers: dict[str, Callable[[], Column]] = {
        "y": lambda: f.year(date),
        "Y": lambda: f.year(date),
        "x": lambda: f.date_part(f.lit("YEAROFWEEK"), date),
        "w": lambda: f.weekofyear(date),
        "e": lambda: f.weekday(date) + 1,
        "M": lambda: f.month(date),
        "d": lambda: f.dayofmonth(date),
        "D": lambda: f.dayofyear(date),
        "H": lambda: hour,
        "k": lambda: f.when(hour == 0, 24).otherwise(hour),
        "K": lambda: hour % 12,
        "h": lambda: f.when(hour % 12 == 0, 12).otherwise(hour % 12),
        "m": lambda: f.floor(rest_ms / 60_000) % 60,
        "s": lambda: f.floor(rest_ms / 1_000) % 60,
    }

    number = numbers[letters.letter]()
    if letters.letter in "yYx" and letters.width == 2:
        return _padded(number % 100, 2)
    return _padded(number, letters.width)


def _padded(number: Column, width: int) -> Column:
    text = number.cast("string")
    return f.when(f.length(text) < width, f.lpad(text, width, "0")).otherwise(text)


def _named(names: tuple[str, ...], index: Column, *, is_short: bool) -> Column:
    return f.element_at(f.array(*(f.lit(name[:3] if is_short else name) for name in names)), index + 1)
