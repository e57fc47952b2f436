"""Time-based key generators in many shapes, and columns that they read: what every engine must spell alike."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pyhudi.format.keys.timestamp_paths import TimestampSpec
from pyhudi.table.facts.key_properties import PREFIX
from pyhudi.write.input.key_settings import LOGICAL_TIMESTAMP, KeySettings

FIRST, LAST = dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)
EPOCH = dt.datetime(1970, 1, 1)
EDGES = (
    EPOCH,
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_000),
    dt.datetime(2024, 2, 29, 12),
    dt.datetime(2024, 3, 10, 6, 59, 59, 999_000),  # New York's clock leaps one millisecond later
    dt.datetime(2024, 3, 10, 7),
    dt.datetime(2024, 11, 3, 5, 30),  # 01:30 in New York, for the first time
    dt.datetime(2024, 11, 3, 6, 30),  # and for the second
    dt.datetime(2026, 1, 1),
    dt.datetime(2027, 1, 3, 23, 59),  # still week 53 of 2026
    dt.datetime(1883, 11, 18, 16, 59, 59),
)


def spec(**options: str) -> TimestampSpec:
    """The generator of `hoodie.keygen.timebased.` options, dots in names written as `_`; `consistent="true"`."""
    given = {PREFIX + name.replace("_", "."): text for name, text in options.items() if name != "consistent"}
    settings = KeySettings.from_options({**given, LOGICAL_TIMESTAMP: options.get("consistent", "false")})
    assert settings.times is not None
    return settings.times


def times(count: int, seed: int = 7, *, step_us: int = 1_000) -> list[dt.datetime | None]:
    draw = random.Random(seed)
    span = int((LAST - FIRST).total_seconds())
    near = [EPOCH + dt.timedelta(microseconds=draw.randrange(-(10**15), 4 * 10**15) // step_us * step_us)
            for _ in range(count)]  # fmt: skip
    far = [FIRST + dt.timedelta(seconds=draw.randrange(span)) for _ in range(count // 4)]
    return [*EDGES, *near, *far, None]


def numbers(unit_us: int, kind: pa.DataType) -> pa.Array:
    """Times counted in a unit since 1970."""
    counts = [None if t is None else (t - EPOCH) // dt.timedelta(microseconds=unit_us) for t in times(60)]
    low, high = (-(2**31), 2**31 - 1) if pa.types.is_int32(kind) else (-(2**63), 2**63 - 1)
    fitting = [n for n in counts if n is None or low <= n <= high]
    if pa.types.is_floating(kind):
        return pa.array([None if n is None else n + 0.75 for n in fitting] + [float("nan"), -0.5], kind)
    if pa.types.is_decimal(kind):
        return pa.array([None if n is None else Decimal(n) + Decimal("0.9") for n in fitting] + [Decimal("-0.5")], kind)
    return pa.array(fitting, kind)


def texts(spell: Callable[[dt.datetime], str]) -> pa.Array:
    return pa.array([None if t is None else spell(t) for t in times(60) if t is None or t.year >= 1000])


MS, SECOND, DAY = 1_000, 1_000_000, 86_400_000_000

CASES: tuple[tuple[str, TimestampSpec, pa.Array], ...] = (
    ("ms", spec(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy/MM/dd", timezone="UTC"),
     numbers(MS, pa.int64())),
    ("ms_new_york", spec(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy-MM-dd HH:mm:ss.SSS",
     output_timezone="America/New_York"), numbers(MS, pa.int64())),
    ("seconds_of_every_letter", spec(timestamp_type="UNIX_TIMESTAMP", timezone="GMT+5:30",
     output_dateformat="y yy yyyyy x xx w ww e M MM MMM MMMM d dd D DDD E EEEE H k K h HH a m s S SSSSS 'it''s' ''"),
     numbers(SECOND, pa.int64())),
    ("seconds_of_32_bits", spec(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyyMMddHH", timezone="Asia/Tokyo"),
     numbers(SECOND, pa.int32())),
    ("micros", spec(timestamp_type="EPOCHMICROSECONDS", output_dateformat="yyyyMMddHHmmssSSS", timezone="GMT-3"),
     pa.array([None if t is None else (t - EPOCH) // dt.timedelta(microseconds=1) for t in times(60, step_us=1)])),
    ("nanos", spec(timestamp_type="SCALAR", timestamp_scalar_time_unit="nanoseconds", output_dateformat="DDD-SSS",
     timezone="UTC"), pa.array([0, 1, -1, -999_999, -1_000_000, 1_700_000_000_123_456_789, None])),
    ("doubles", spec(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyyMMddHHmmss", output_timezone="UTC"),
     numbers(SECOND, pa.float64())),
    ("decimals", spec(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyyMMddHHmmss", output_timezone="UTC"),
     numbers(SECOND, pa.decimal128(20, 2))),
    ("dates", spec(timestamp_type="SCALAR", timestamp_scalar_time_unit="DAYS", output_dateformat="yyyyMM",
     timezone="UTC"), numbers(DAY, pa.int32()).cast(pa.date32())),
    ("instants", spec(timestamp_type="EPOCHMICROSECONDS", output_dateformat="yyyyMMddHH", timezone="Europe/Berlin"),
     numbers(1, pa.int64()).cast(pa.timestamp("us", "UTC"))),
    ("instants_that_are_times", spec(timestamp_type="EPOCHMILLISECONDS", consistent="true", timezone="GMT+8:00",
     output_dateformat="yyyyMMddHHmmssSSS"), numbers(1, pa.int64()).cast(pa.timestamp("us", "UTC"))),
    ("local_times", spec(timestamp_type="EPOCHMICROSECONDS", output_dateformat="yyyyMMddHH", timezone="UTC"),
     numbers(1, pa.int64()).cast(pa.timestamp("us"))),
    ("days_as_text", spec(timestamp_type="DATE_STRING", input_dateformat="yyyy-MM-dd", output_dateformat="yyyy/MM",
     timezone="UTC"), texts(lambda t: f"{t:%Y-%m-%d}")),
    ("short_days_as_text", spec(timestamp_type="MIXED", input_dateformat="yyyyMMdd, d.M.yyyy", timezone="UTC",
     output_dateformat="yyyyMMdd"), texts(lambda t: f"{t.day}.{t.month}.{t.year}" if t.day % 2 else f"{t:%Y%m%d}")),
    ("with_offsets", spec(timestamp_type="DATE_STRING", output_dateformat="yyyyMMddHHmm",
     input_dateformat="yyyy-MM-dd'T'HH:mm:ss.SSSZ,yyyy-MM-dd'T'HH:mm:ssZ"),
     texts(lambda t: f"{t:%Y-%m-%dT%H:%M:%S}{('Z', '+0200', '-05:30', '.5+01')[t.second % 4]}")),
    ("with_offsets_in_tokyo", spec(timestamp_type="DATE_STRING", output_dateformat="yyyyMMddHHmm",
     output_timezone="Asia/Tokyo", input_dateformat="yyyy-MM-dd't'HH:mm:ssZZ"),
     texts(lambda t: f"{t:%Y-%m-%dT%H:%M:%S}{('z', '+02', '-05:30')[t.second % 3]}")),
    ("from_new_york_to_berlin", spec(timestamp_type="DATE_STRING", output_dateformat="yyyyMMddHHmm",
     input_timezone="America/New_York", output_timezone="Europe/Berlin", input_dateformat="yyyy-MM-dd HH:mm"),
     texts(lambda t: f"{t.replace(hour=t.hour if t.hour != 2 else 4):%Y-%m-%d %H:%M}")),
    ("names_and_half_days", spec(timestamp_type="DATE_STRING", output_dateformat="yyyyMMddHHmm", timezone="UTC",
     input_dateformat="d MMM yyyy h:mm a"), texts(lambda t: f"{t.day} {t:%b} {t.year} {t:%I:%M %p}")),
)  # fmt: skip
"""Name, generator, column. Each column has a null. Zones of which all time-zone databases tell the same before 1970."""

NO_TIMES: tuple[tuple[str, TimestampSpec, Sequence[Any]], ...] = (
    ("texts", spec(timestamp_type="DATE_STRING", input_dateformat="yyyy-MM-dd", output_dateformat="yyyy",
     timezone="UTC"), ("", "2024-02-30", "2023-02-29", "2024-13-01", "24-01-01 ", "2024-01-01x", "x", "0000-01-01")),
    ("texts_in_a_gap", spec(timestamp_type="DATE_STRING", input_dateformat="yyyy-MM-dd HH:mm", output_dateformat="yyyy",
     timezone="America/New_York"), ("2024-03-10 02:30", "2024-03-10 25:00", "2024-03-10 01:60")),
    ("offsets", spec(timestamp_type="DATE_STRING", input_dateformat="yyyyZ", output_dateformat="yyyy",
     timezone="UTC"), ("2024+25:00", "2024+01:60", "2024", "2024+1")),
    ("ms", spec(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy", timezone="UTC"),
     (253_402_300_800_000, -62_135_596_800_001, 2**63 - 1, -(2**63))),
    ("days", spec(timestamp_type="SCALAR", timestamp_scalar_time_unit="DAYS", output_dateformat="yyyy", timezone="UTC"),
     (2_932_897, -719_163, 2**62)),
    ("doubles", spec(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyy", timezone="UTC"),
     (1e300, float("inf"), float("-inf"))),
)  # fmt: skip
"""Values that no writer can place."""
