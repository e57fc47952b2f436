"""A moment could become another one on its way to an instant's text or back, or a bad text pass for one."""

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import Invalid
from pyhudi.format.timeline.instant_text import bound_from_user, format_instant, instant_from_user, parse_instant_ms

KOLKATA = timezone(timedelta(hours=5, minutes=30))
EPOCH_MS = 1_795_258_757_123  # 2026-11-21 10:59:17.123 UTC


def test_an_instant_is_a_moment_in_the_tables_zone() -> None:
    assert format_instant(EPOCH_MS, UTC) == "20261121105917123"
    assert format_instant(EPOCH_MS, KOLKATA) == "20261121162917123"
    assert format_instant(EPOCH_MS, ZoneInfo("America/New_York")) == "20261121055917123"


def test_a_text_is_a_moment() -> None:
    assert parse_instant_ms("20261121105917123", UTC) == EPOCH_MS
    assert parse_instant_ms("20261121162917123", KOLKATA) == EPOCH_MS


def test_seconds_stand_for_their_last_millisecond_and_suffixes_do_not_count() -> None:
    assert parse_instant_ms("20261121105917", UTC) == EPOCH_MS - 123 + 999
    assert parse_instant_ms("20261121105917123001", UTC) == EPOCH_MS


@given(st.integers(0, 4_102_444_800_000), st.sampled_from([UTC, KOLKATA]))
def test_parse_is_the_inverse_of_format(epoch_ms: int, zone: tzinfo) -> None:
    assert parse_instant_ms(format_instant(epoch_ms, zone), zone) == epoch_ms


@given(st.integers(0, 4_102_444_800_000), st.integers(1, 10**9))
def test_texts_compare_as_their_moments_do(epoch_ms: int, later_ms: int) -> None:
    assert format_instant(epoch_ms, UTC) < format_instant(epoch_ms + later_ms, UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026",
        "2026112110591712",
        "20261321105917123",
        "20261121105917x23",
        "202611211059171²3",
        "0000",
        "0" * 13 + "x",
    ],
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match=f"instant '{text}'"):
        parse_instant_ms(text, UTC)


@pytest.mark.parametrize("text", ["0" * 17, "0" * 15 + "10", "00000000000001"])
def test_texts_of_the_year_0_stand_before_every_moment(text: str) -> None:
    """Metadata tables and bootstraps of Apache Hudi begin with such instants."""
    assert parse_instant_ms(text, UTC) == 0


@pytest.mark.parametrize(
    "value, instant",
    [
        ("20261121105917", "20261121105917"),
        ("20261121105917123", "20261121105917123"),
        (" 20261121105917123 ", "20261121105917123"),
        ("2026-11-21", "20261121000000000"),
        ("2026-11-21 10:59:17", "20261121105917999"),
        ("2026-11-21T10:59:17", "20261121105917999"),
        ("2026-11-21 10:59:17.5", "20261121105917500"),
        ("2026-11-21 10:59:17.123", "20261121105917123"),
        ("2026-11-21 10:59:17.123999", "20261121105917123"),
        ("2026-11-21T10:59:17.123Z", "20261121105917123"),
        ("2026-11-21T16:29:17.123+05:30", "20261121105917123"),
        ("2026-11-21T16:29:17.123+0530", "20261121105917123"),
        (date(2026, 11, 21), "20261121000000000"),
        (date(999, 1, 2), "09990102000000000"),
        ("0999-01-02 03:04:05.678", "09990102030405678"),
        (datetime(2026, 11, 21, 10, 59, 17, 123_999), "20261121105917123"),
        (datetime(2026, 11, 21, 16, 29, 17, 123_000, KOLKATA), "20261121105917123"),
    ],
)
def test_what_users_write_becomes_an_instant_in_utc(value: str | date | datetime, instant: str) -> None:
    assert instant_from_user(value, UTC, what="as_of") == instant


@pytest.mark.parametrize(
    "value, instant",
    [
        ("0", "0" * 17),
        ("2026", "20260000000000000"),
        ("20261121", "20261121000000000"),
        ("202611211059", "20261121105900000"),
        ("20261121105917", "20261121105917"),
        ("2026-11-21 10:59:17", "20261121105917999"),
    ],
)
def test_fewer_digits_bound_a_range_as_the_plain_text_does(value: str, instant: str) -> None:
    assert bound_from_user(value, UTC, what="start") == instant
    for other in ("20251231235959999", "20261121105917123", "20270101000000000"):
        assert not value.isdigit() or (other > value) == (other > instant)


@pytest.mark.parametrize(
    "value, instant",
    [
        ("2026-11-21", "20261121000000000"),
        ("2026-11-21 10:59:17", "20261121105917999"),
        (datetime(2026, 11, 21, 10, 59, 17), "20261121105917000"),
        (datetime(2026, 11, 21, 10, 59, 17, tzinfo=UTC), "20261121162917000"),
        ("2026-11-21T10:59:17.000Z", "20261121162917000"),
    ],
)
def test_values_without_a_zone_are_in_the_tables_zone(value: str | datetime, instant: str) -> None:
    assert instant_from_user(value, KOLKATA, what="as_of") == instant


@pytest.mark.parametrize(
    "value",
    [
        "",
        "now",
        "2026",
        "2026-11",
        "2026-13-01",
        "2026-11-21 25:00:00",
        "2026-11-21 10:59",
        "1" * 16,
        "1" * 18,
        7,
        None,
        1.5,
    ],
)
def test_anything_else_is_refused_with_the_arguments_name(value: object) -> None:
    with pytest.raises(Invalid, match=r"^as_of="):
        instant_from_user(value, UTC, what="as_of")  # type: ignore[arg-type]
    if value != "2026":
        with pytest.raises(Invalid, match=r"^start="):
            bound_from_user(value, UTC, what="start")  # type: ignore[arg-type]
