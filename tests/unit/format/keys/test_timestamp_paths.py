"""A time could become another partition path than Apache Hudi makes of it: the row is then lost to it.

Expected paths under `SEEN` were written by Apache Hudi 1.0.2.
"""

import datetime as dt
import pickle
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.keys.timestamp_paths import TimestampSpec, partition_texts, zone_of
from tests.support.time_specs import CASES, NO_TIMES, spec

MS = pa.array([1700000019000, -1500, 1735689599999, None], pa.int64())
SECONDS = pa.array([1700000019, -2, 1735689599, None], pa.int32())
DOUBLES = pa.array([1700000019.9, -2.7, 1735689599.5, None])
AT = pa.array([1700000019000000, -1500, 1735689599999999, None], pa.timestamp("us", "UTC"))
DATES = pa.array([dt.date(2026, 1, 10), dt.date(1969, 12, 31), dt.date(2024, 2, 29), None])
DAYS = pa.array(["2026-01-10", "2025-12-31", "1969-07-01", None])
ISO = pa.array(["2026-01-10T23:30:00.123Z", "2025-12-31T23:30:00+0200", "2025-12-31T23:30:00-05:00", None])
ISO_FORMATS = "yyyy-MM-dd'T'HH:mm:ss.SSSZ,yyyy-MM-dd'T'HH:mm:ssZ"

SEEN = [
    (MS, spec(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy/MM/dd", timezone="UTC"),
     ["2023/11/14", "1969/12/31", "2024/12/31", "1970/01/01"]),
    (DAYS, spec(timestamp_type="DATE_STRING", input_dateformat="yyyy-MM-dd", output_dateformat="yyyy/MM",
     timezone="UTC"), ["2026/01", "2025/12", "1969/07", "1970/01"]),
    (AT, spec(timestamp_type="EPOCHMICROSECONDS", output_dateformat="yyyyMMdd", timezone="UTC"),
     ["20231114", "19691231", "20241231", "19700101"]),
    (AT, spec(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyyMMddHHmmssSSS", timezone="GMT+8:00",
     consistent="true"), ["20231115061339000", "19700101075959999", "20250101075959999", "19700101080000001"]),
    (DATES, spec(timestamp_type="SCALAR", timestamp_scalar_time_unit="days", output_dateformat="yyyyMM",
     timezone="UTC"), ["202601", "196912", "202402", "197001"]),
    (DOUBLES, spec(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyyMMddHHmmss",
     output_timezone="America/New_York"), ["20231114171339", "19691231185958", "20241231185959", "19691231190001"]),
    (SECONDS, spec(timestamp_type="UNIX_TIMESTAMP", timezone="UTC",
     output_dateformat="xxxx-'W'ww-e EEE MMM yy D kk KK hh a SSS"),
     ["2023-W46-2 Tue Nov 23 318 22 10 10 PM 000", "1970-W01-3 Wed Dec 69 365 23 11 11 PM 000",
      "2025-W01-2 Tue Dec 24 366 23 11 11 PM 000", "1970-W01-4 Thu Jan 70 1 24 00 12 AM 000"]),
    (ISO, spec(timestamp_type="DATE_STRING", input_dateformat=ISO_FORMATS, output_dateformat="yyyyMMddHH"),
     ["2026011023", "2025123123", "2025123123", "1970010100"]),
    (ISO, spec(timestamp_type="MIXED", input_dateformat=ISO_FORMATS, output_dateformat="yyyyMMddHH",
     output_timezone="Asia/Tokyo"), ["2026011108", "2026010106", "2026010113", "1970010109"]),
]  # fmt: skip


def texts(column: pa.Array, of: TimestampSpec) -> list[str]:
    return partition_texts(pa.chunked_array([column]), "x", of).to_pylist()


@pytest.mark.parametrize("column, of, expected", SEEN)
def test_paths_are_those_of_apache_hudi(column: pa.Array, of: TimestampSpec, expected: list[str]) -> None:
    assert texts(column, of) == expected


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
@given(st.lists(st.datetimes(dt.datetime(1900, 1, 2), dt.datetime(2099, 12, 30)), min_size=1))
def test_a_number_is_its_time_in_the_zone(zone: str, times: list[dt.datetime]) -> None:
    of = spec(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy-MM-dd'T'HH:mm:ss.SSS", timezone=zone)
    millis = [(t - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1) for t in times]
    local = [t.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)) for t in times]
    expected = [t.replace(tzinfo=None).isoformat(timespec="milliseconds") for t in local]
    assert texts(pa.array(millis), of) == expected


@given(st.lists(st.datetimes(dt.datetime(1000, 1, 2), dt.datetime(9999, 12, 30)), min_size=1))
def test_a_text_between_two_zones_is_the_same_moment(times: list[dt.datetime]) -> None:
    of = spec(timestamp_type="DATE_STRING", input_dateformat="yyyy-MM-dd HH:mm", input_timezone="GMT+5:30",
              output_timezone="GMT-3", output_dateformat="yyyy-MM-dd HH:mm")  # fmt: skip
    shifted = [t - dt.timedelta(hours=8, minutes=30) for t in times]
    assert texts(pa.array([f"{t:%Y-%m-%d %H:%M}" for t in times]), of) == [f"{t:%Y-%m-%d %H:%M}" for t in shifted]


def test_of_two_equal_wall_clock_times_the_earlier_counts() -> None:
    of = spec(timestamp_type="DATE_STRING", input_dateformat="yyyy-MM-dd HH:mm", output_dateformat="HH:mm",
              input_timezone="America/New_York", output_timezone="UTC")  # fmt: skip
    assert texts(pa.array(["2024-11-03 01:30"]), of) == ["05:30"]


@pytest.mark.parametrize("name, of, values", NO_TIMES, ids=[name for name, _, _ in NO_TIMES])
def test_what_is_no_time_is_refused_and_named(name: str, of: TimestampSpec, values: list[object]) -> None:
    for value in values:
        with pytest.raises(Invalid, match=r"column 'x', value .*expected a time"):
            texts(pa.array([value]), of)


@pytest.mark.parametrize("name, of, column", CASES, ids=[name for name, _, _ in CASES])
def test_columns_of_every_shape_are_spelled(name: str, of: TimestampSpec, column: pa.Array) -> None:
    whole = texts(column, of)
    assert len(whole) == len(column)
    assert None not in whole
    chunked = pa.chunked_array([column.slice(0, 3), column.slice(3, 0), column.slice(3)])
    assert partition_texts(chunked, "x", pickle.loads(pickle.dumps(of))).to_pylist() == whole
    assert texts(column.slice(0, 0), of) == []


@pytest.mark.parametrize("kind, column", [
    ("DATE_STRING", pa.array([1])), ("MIXED", pa.array([1.0])), ("EPOCHMILLISECONDS", pa.array(["1"])),
    ("UNIX_TIMESTAMP", pa.array([True])), ("SCALAR", pa.array([b"x"])),
])  # fmt: skip
def test_columns_that_the_type_does_not_read_are_refused(kind: str, column: pa.Array) -> None:
    of = spec(timestamp_type=kind, input_dateformat="yyyy", output_dateformat="yyyy", timezone="UTC")
    with pytest.raises(Invalid, match=f"timestamp.type={kind}"):
        texts(column, of)


def test_numbers_without_a_zone_would_depend_on_the_machine() -> None:
    with pytest.raises(Invalid, match=r"output\.timezone"):
        texts(pa.array([1]), spec(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyy"))


@pytest.mark.parametrize(
    "name, hours", [("GMT", 0), ("UTC", 0), ("GMT+8", 8), ("GMT-03:30", -3.5), ("GMT+0530", 5.5), ("GMT+23:30", 23.5)]
)
def test_zones_of_a_fixed_offset(name: str, hours: float) -> None:
    assert zone_of(name).utcoffset(None) == dt.timedelta(hours=hours)


@pytest.mark.parametrize(
    "name", ["UTC+8", "PDT", "nowhere", "../etc", "GMT+8:0", "GMT+24", "GMT-30:00", "GMT+05:60", "GMT+23:99"]
)
def test_a_zone_that_java_would_take_for_gmt_in_silence_is_refused(name: str) -> None:
    with pytest.raises(Unsupported, match="time zone"):
        zone_of(name)


@pytest.mark.parametrize(
    "of,expected",
    [
        (spec(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyyMMddHHmmssSSS", timezone="UTC"),
         ["20231114221339000", "19691231235959998"]),
        (spec(timestamp_type="EPOCHMICROSECONDS", output_dateformat="yyyyMMddHHmmssSSS", timezone="UTC",
         consistent="true"), ["20231114221339000", "19691231235959998"]),
    ],
)  # fmt: skip
def test_a_column_of_milliseconds_gives_its_own_number(of: TimestampSpec, expected: list[str]) -> None:
    """As the generator takes the number that Avro stores; with consistent logical timestamps it takes the moment."""
    column = pa.chunked_array([pa.array([1700000019000, -2], pa.timestamp("ms", "UTC"))])
    assert partition_texts(column, "c", of).to_pylist() == expected
