"""The time-based key generator over Arrow columns: from stored values to partition texts.

A whole column is turned into wall-clock times, cut to the finest unit that the output pattern shows. Only the distinct
times are then spelled one by one. Example: for the pattern `yyyy/MM/dd` a million times of one day are spelled once.
Spec: format/layout.md section 5.3.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from enum import StrEnum
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.date_patterns import (
    MONTHS,
    OFFSET_GROUP,
    TEXT_MONTH,
    DatePattern,
    parsed_groups,
    parsing_regex,
    print_date,
)
from pyhudi.format.time_units import stored_numbers, stored_unit_ns

TimeUnit: TypeAlias = Literal["NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"]

UNIT_NS: dict[TimeUnit, int] = {
    "NANOSECONDS": 1,
    "MICROSECONDS": 1_000,
    "MILLISECONDS": 1_000_000,
    "SECONDS": 1_000_000_000,
    "MINUTES": 60_000_000_000,
    "HOURS": 3_600_000_000_000,
    "DAYS": 86_400_000_000_000,
}

MIN_MS, MAX_MS = -62_135_596_800_000, 253_402_300_799_999
"""The first and the last millisecond of the years 1 to 9999."""

_EPOCH = datetime(1970, 1, 1)
_FIXED_ZONE = re.compile(r"GMT(?:([+-])(\d{1,2})(?::?(\d{2}))?)?")
_DAY_MS = 86_400_000


class TimestampType(StrEnum):
    """What the values of the column are."""

    UNIX_TIMESTAMP = "UNIX_TIMESTAMP"
    DATE_STRING = "DATE_STRING"
    MIXED = "MIXED"
    EPOCHMILLISECONDS = "EPOCHMILLISECONDS"
    EPOCHMICROSECONDS = "EPOCHMICROSECONDS"
    SCALAR = "SCALAR"

    @property
    def is_text(self) -> bool:
        """Whether the values are texts. Seen: MIXED takes only texts; a number has no unit, an error in Apache Hudi."""
        return self in (TimestampType.DATE_STRING, TimestampType.MIXED)


@dataclass(frozen=True, slots=True)
class TimestampSpec:
    """How times become partition texts. Picklable.

    `unit`: what numbers count. `inputs`: patterns of texts; the first one that fits is taken. `input_zone` None: the
    text states its offset. `output_zone` None: times are printed in the zone that the text states. `is_consistent`:
    columns of timestamps are read as times, whatever the unit says.
    """

    kind: TimestampType
    unit: TimeUnit
    inputs: tuple[DatePattern, ...]
    output: DatePattern
    input_zone: str | None
    output_zone: str | None
    is_consistent: bool = False

    @property
    def null_text(self) -> str:
        """The text that stands for null in columns of texts: the first millisecond of 1970, by the first pattern."""
        zone = zone_of(self.input_zone or self.output_zone or "UTC")
        wall = datetime(1970, 1, 1, microsecond=1_000, tzinfo=UTC).astimezone(zone)
        return print_date(wall.replace(tzinfo=None), self.inputs[0], offset=wall.utcoffset() or timedelta())


def zone_of(name: str) -> tzinfo:
    """The time zone of a name such as `Europe/Oslo`, `GMT+8` or `GMT+08:00`. Raises: Unsupported for an unknown name.

    Java takes an unknown name for GMT. Here it is refused, as the name is more likely a mistake.
    """
    fixed = _FIXED_ZONE.fullmatch(name)
    try:
        if fixed is not None:
            clock = time(int(fixed[2] or 0), int(fixed[3] or 0))  # at most 23:59, as in Java
            offset = timedelta(hours=clock.hour, minutes=clock.minute)
            return timezone(-offset if fixed[1] == "-" else offset)
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Unsupported(f"time zone '{name}': expected a name such as 'UTC', 'Europe/Oslo' or 'GMT+8:00'") from None


def fixed_offset_ms(name: str) -> int | None:
    """The offset of a zone whose offset never changes; None for other zones."""
    zone = zone_of(name)
    return None if isinstance(zone, ZoneInfo) else int((zone.utcoffset(None) or timedelta()).total_seconds()) * 1_000


def refuse_type(spec: TimestampSpec, kind: pa.DataType, name: str) -> None:
    """Refuse a column whose values the generator cannot read. Raises: Invalid, naming the option to change."""
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_number = (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_date32(kind)
    )
    is_time = pa.types.is_timestamp(kind)
    fits = is_text if spec.kind.is_text else is_number or is_time

    if not fits:
        wanted = "a column of texts" if spec.kind.is_text else "a column of numbers, dates or timestamps"
        raise Invalid(
            f"column '{name}' of type {kind}: hoodie.keygen.timebased.timestamp.type={spec.kind.value} expects {wanted}"
        )

    if spec.output_zone is None and not is_text:
        raise Invalid(
            f"column '{name}' of type {kind}: expected hoodie.keygen.timebased.output.timezone, found none; the "
            "partition would depend on the machine that writes"
        )


def partition_texts(column: pa.ChunkedArray, name: str, spec: TimestampSpec) -> pa.ChunkedArray:
    """The partition text of each value, nulls included. Raises: Invalid for a value that is no time, with the value."""
    refuse_type(spec, column.type, name)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        # Each distinct text is parsed once.
        distinct = one_array(column.cast(pa.string())).dictionary_encode()
        walls = _walls_of_texts(distinct.dictionary, name, spec)
        null_wall = _walls_of_texts(pa.array([spec.null_text]), name, spec)[0]
        walls = pc.fill_null(walls.take(distinct.indices), null_wall)
    else:
        values = one_array(column)
        walls = _local(_millis(values, name, spec), _zone_name(spec))
        _refuse_bad(pc.is_null(walls), values, name, spec)
    return pa.chunked_array([_print(walls, spec.output)], pa.string())


def _zone_name(spec: TimestampSpec) -> str:
    assert spec.output_zone is not None  # `refuse_type` refuses numbers without it
    return spec.output_zone


def _millis(values: pa.Array, name: str, spec: TimestampSpec) -> pa.Array:
    """Numbers, dates, timestamps as milliseconds since 1970, cut towards zero as in Java. A null counts as one unit."""
    kind, unit = values.type, UNIT_NS[spec.unit]
    if pa.types.is_timestamp(kind):
        values = stored_numbers(values)
        if spec.is_consistent and kind.tz is not None:
            # The values are moments, in the column's unit; a null still counts as one unit of the option.
            unit = stored_unit_ns(kind)
            values = pc.fill_null(values, UNIT_NS[spec.unit] // unit)
    elif pa.types.is_date32(kind):
        values = values.cast(pa.int32()).cast(pa.int64())
    elif pa.types.is_floating(kind):
        values = pc.if_else(pc.is_nan(values), 0.0, pc.trunc(values.cast(pa.float64())))
        too_far = pc.greater(pc.abs(values), 9.2e18)
        values = pc.if_else(too_far, 9e18, values).cast(pa.int64())
    elif pa.types.is_decimal(kind):
        values = _from_decimal(values, name)
    else:
        values = values.cast(pa.int64())

    values = pc.fill_null(values, 1)

    if unit < 1_000_000:
        millis, low, high = pc.divide(values, 1_000_000 // unit), MIN_MS, MAX_MS
    else:
        factor = unit // 1_000_000
        low, high = -(-MIN_MS // factor), MAX_MS // factor
        millis = values

    _refuse_bad(pc.or_(pc.less(millis, low), pc.greater(millis, high)), values, name, spec)
    return millis if unit < 1_000_000 else pc.multiply(millis, unit // 1_000_000)


def _from_decimal(values: pa.Array, name: str) -> pa.Array:
    try:
        return pc.cast(pc.trunc(values), options=pc.CastOptions(pa.int64(), allow_decimal_truncate=True))
    except pa.ArrowInvalid as error:
        raise Invalid(f"column '{name}': expected times as whole numbers of at most 64 bits: {error}") from None


def _local(millis: pa.Array, zone: str) -> pa.Array:
    """Wall-clock milliseconds in a zone. Null stays null; a time outside of the years 1 to 9999 becomes null."""
    known = np.asarray(pc.fill_null(millis, 0))
    walls = known + offsets_ms(known, zone)
    return pa.array(walls, mask=np.asarray(pc.is_null(millis)) | (walls < MIN_MS) | (walls > MAX_MS))


def offsets_ms(millis: np.ndarray, zone: str) -> np.ndarray:
    """The zone's offset in milliseconds at each moment. Shape: as `millis`. Loops over distinct days.

    Arrow's own zones have no summer time after 2037; the zones of Java and Python have it.
    """
    fixed = fixed_offset_ms(zone)
    if fixed is not None:
        return np.full(len(millis), fixed, dtype=np.int64)

    zone_rules = zone_of(zone)
    days, at = np.unique(millis // _DAY_MS, return_inverse=True)
    first, after = np.zeros(len(days), np.int64), np.zeros(len(days), np.int64)
    changes = np.zeros(len(days), np.int64)

    for number, day in enumerate(days.tolist()):
        first[number] = _offset_ms_at(day * _DAY_MS, zone_rules)
        after[number] = _offset_ms_at((day + 1) * _DAY_MS, zone_rules)
        changes[number] = (day + 1) * _DAY_MS
        if first[number] != after[number]:
            changes[number] = _change_between(day * _DAY_MS, (day + 1) * _DAY_MS, zone_rules)

    return np.where(millis < changes[at], first[at], after[at])


def _change_between(start_ms: int, end_ms: int, zone: tzinfo) -> int:
    """The first second, between two times with different offsets, at which the zone leaves the first offset."""
    before = _offset_ms_at(start_ms, zone)
    low, high = start_ms // 1_000, end_ms // 1_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset_ms_at(middle * 1_000, zone) == before else (low, middle)
    return high * 1_000


def _offset_ms_at(millis: int, zone: tzinfo) -> int:
    inside = min(max(millis, MIN_MS + _DAY_MS), MAX_MS - _DAY_MS)  # beyond, local times leave the calendar
    local = (_EPOCH.replace(tzinfo=UTC) + timedelta(milliseconds=inside)).astimezone(zone)
    return int((local.utcoffset() or timedelta()).total_seconds()) * 1_000


def _walls_of_texts(texts: pa.Array, name: str, spec: TimestampSpec) -> pa.Array:
    """Texts without nulls as wall-clock milliseconds in the output zone."""
    walls = pa.nulls(len(texts), pa.int64())
    for pattern in spec.inputs:
        walls = pc.coalesce(walls, _walls_by(texts, pattern, spec))
    _refuse_bad(pc.is_null(walls), texts, name, spec)
    return walls


def _walls_by(texts: pa.Array, pattern: DatePattern, spec: TimestampSpec) -> pa.Array:
    """The texts that one pattern fits, as wall-clock milliseconds in the output zone; null for the other texts."""
    found = pc.extract_regex(texts, parsing_regex(pattern, names_groups=True))
    parts = dict(zip(parsed_groups(pattern), found.flatten(), strict=True))
    wall = _wall_of_parts(parts, pattern)
    offset = _offset_ms(parts[OFFSET_GROUP]) if OFFSET_GROUP in parts else None

    # Without zones the text's own clock is printed, so no offset has to be added.
    if spec.input_zone is None and spec.output_zone is None:
        return wall if offset is None else pc.if_else(pc.is_valid(offset), wall, pa.scalar(None, pa.int64()))

    if offset is not None:
        millis = pc.subtract(wall, offset)
    else:
        assert spec.input_zone is not None  # a spec without it is refused when it is made
        millis = _utc(wall, spec.input_zone)

    zone = spec.output_zone or spec.input_zone
    assert zone is not None
    return _local(millis, zone)


def _wall_of_parts(parts: dict[str, pa.Array], pattern: DatePattern) -> pa.Array:
    """Wall-clock milliseconds from the parts of texts; null if the parts make no time. Example: hour 25 gives null."""

    def number(name: str, default: int) -> pa.Array:
        return parts[name].cast(pa.int64()) if name in parts else pa.array([default] * len(next(iter(parts.values()))))

    year, day = number("y", 1970), number("d", 1)
    month = _month_numbers(parts[TEXT_MONTH]) if TEXT_MONTH in parts else number("M", 1)

    hour = number("H", 0)
    if "k" in parts:
        hour = pc.if_else(pc.equal(number("k", 0), 24), 0, number("k", 0))

    bad = [_outside(year, 1, 9999), _outside(month, 1, 12), _outside(day, 1, 31), _outside(hour, 0, 23)]
    if "k" in parts:
        bad.append(_outside(number("k", 0), 1, 24))

    for name, low, high in (("K", 0, 11), ("h", 1, 12)):
        if name in parts:
            bad.append(_outside(number(name, 0), low, high))
            twelve = pc.if_else(pc.equal(number(name, 0), 12), 0, number(name, 0))
            is_late = pc.equal(pc.utf8_upper(parts["a"]), "PM") if "a" in parts else False
            hour = pc.if_else(is_late, pc.add(twelve, 12), twelve)

    minute, second = number("m", 0), number("s", 0)
    bad += [_outside(minute, 0, 59), _outside(second, 0, 59)]

    fraction = pa.array([0] * len(year))
    if "S" in parts:
        fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(parts["S"], 3, "0"), 0, 3).cast(pa.int64())

    days = _days(year, month, day)
    bad.append(pc.is_null(days))
    time_ms = pc.add(
        pc.multiply(pc.add(pc.multiply(pc.add(pc.multiply(hour, 60), minute), 60), second), 1_000), fraction
    )
    wall = pc.add(pc.multiply(days, _DAY_MS), time_ms)

    is_bad = bad[0]
    for one in bad[1:]:
        is_bad = pc.or_(is_bad, one)
    return pc.if_else(pc.fill_null(is_bad, True), pa.scalar(None, pa.int64()), wall)


def _days(year: pa.Array, month: pa.Array, day: pa.Array) -> pa.Array:
    """Days since 1970 for dates of the proleptic Gregorian calendar; null for a day that its month does not have."""
    known = [np.asarray(pc.fill_null(part, 1)) for part in (year, month, day)]
    # The caller's bounds turn wrong months and years to null; here they only must not overflow.
    months = (np.clip(known[0], 1, 9999) - 1970) * 12 + np.clip(known[1], 1, 12) - 1
    first, after = (
        month_count.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        for month_count in (months, months + 1)
    )
    is_known = np.asarray(pc.is_valid(year)) & np.asarray(pc.is_valid(month)) & np.asarray(pc.is_valid(day))
    is_day = is_known & (known[2] <= after - first)
    return pa.array(first + np.clip(known[2], 1, 31) - 1, mask=~is_day)


def _month_numbers(names: pa.Array) -> pa.Array:
    short = pa.array([month[:3].upper() for month in MONTHS])
    found = pc.index_in(pc.utf8_upper(pc.utf8_slice_codeunits(names, 0, 3)), value_set=short)
    return pc.add(found.cast(pa.int64()), 1)


def _offset_ms(offsets: pa.Array) -> pa.Array:
    """Offsets such as `Z`, `+02`, `+0200` or `+02:00` as milliseconds."""
    digits = pc.replace_substring(pc.utf8_slice_codeunits(offsets, 1), ":", "")
    padded = pc.utf8_rpad(digits, 4, "0")
    hours = pc.utf8_slice_codeunits(padded, 0, 2).cast(pa.int64())
    minutes = pc.utf8_slice_codeunits(padded, 2, 4).cast(pa.int64())
    size = pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60_000)
    is_late = pc.equal(pc.utf8_slice_codeunits(offsets, 0, 1), "-")
    is_valid = pc.and_(pc.less(hours, 24), pc.less(minutes, 60))
    return pc.if_else(is_valid, pc.if_else(is_late, pc.negate(size), size), pa.scalar(None, pa.int64()))


def _utc(wall: pa.Array, zone: str) -> pa.Array:
    """Wall-clock times in a zone as milliseconds since 1970.

    A time that the clock shows twice is the earlier one; a time that the clock skips becomes null.
    """
    known = np.asarray(pc.fill_null(wall, 0))
    around = offsets_ms(known - _DAY_MS, zone), offsets_ms(known + _DAY_MS, zone)
    earlier, later = known - np.maximum(*around), known - np.minimum(*around)
    is_earlier = earlier + offsets_ms(earlier, zone) == known
    is_later = later + offsets_ms(later, zone) == known
    missing = np.asarray(pc.is_null(wall)) | ~(is_earlier | is_later)
    return pa.array(np.where(is_earlier, earlier, later), mask=missing)


def _print(walls: pa.Array, pattern: DatePattern) -> pa.Array:
    """The texts of wall-clock times. Loops over the times that the pattern prints differently."""
    unit = pattern.unit_ms
    cut = pc.subtract(walls, _modulo(walls, unit)) if unit > 1 else walls
    distinct = cut.dictionary_encode()
    texts = [print_date(_EPOCH + timedelta(milliseconds=ms), pattern) for ms in distinct.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(distinct.indices)


def _modulo(values: pa.Array, unit: int) -> pa.Array:
    """The remainder of a division that rounds down."""
    rest = pc.subtract(values, pc.multiply(pc.divide(values, unit), unit))
    return pc.if_else(pc.less(rest, 0), pc.add(rest, unit), rest)


def _outside(numbers: pa.Array, low: int, high: int) -> pa.Array:
    return pc.or_(pc.less(numbers, low), pc.greater(numbers, high))


def _refuse_bad(bad: pa.Array, values: pa.Array, name: str, spec: TimestampSpec) -> None:
    count = pc.sum(bad).as_py() or 0
    if count:
        first = values[pc.index(bad, True).as_py()].as_py()
        raise Invalid(bad_time_message(name, first, spec))


def bad_time_message(name: str, value: object, spec: TimestampSpec) -> str:
    """The text of the error for a value that is no time."""
    patterns = " or ".join(f"'{one.pattern}'" for one in spec.inputs)
    wanted = f"a time as {patterns}" if spec.kind.is_text else f"a time of the years 1 to 9999 in {spec.unit.lower()}"
    return f"column '{name}', value {value!r}: expected {wanted} (hoodie.keygen.timebased.timestamp.type={spec.kind})"
