"""A date pattern could mean something else than to Joda-Time: rows then land in another partition than Apache Hudi's.

Also: a pattern that means nothing here, taken in silence.
"""

import re
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.keys.date_patterns import input_pattern, output_pattern, parsed_groups, parsing_regex, print_date

TIME = datetime(2026, 3, 5, 13, 7, 9, 42_000)  # a Thursday


@pytest.mark.parametrize(
    "pattern, text",
    [
        ("yyyy/MM/dd", "2026/03/05"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2026-03-05T13:07:09.042"),
        ("y yy yyy yyyyyy", "2026 26 2026 002026"),
        ("M MM MMM MMMM MMMMM", "3 03 Mar March March"),
        ("E EEE EEEE", "Thu Thu Thursday"),
        ("D DDD", "64 064"),
        ("xxxx-'W'ww-e", "2026-W10-4"),
        ("H k K h a", "13 13 1 1 PM"),
        ("S SS SSS SSSS", "0 04 042 0420"),
        ("yyyy'''' ''", "2026'' '"),
        ("yyyy'it''s 'MM", "2026it's 03"),
        ("dd.MM.yyyy, 'kl.' HH", "05.03.2026, kl. 13"),
        ("yyyy年MM月", "2026年03月"),
    ],
)
def test_times_are_printed_as_joda_prints_them(pattern: str, text: str) -> None:
    assert print_date(TIME, output_pattern(pattern, option="o")) == text


def test_midnight_and_noon_of_twelve_and_of_twenty_four_hours() -> None:
    pattern = output_pattern("H k K h a", option="o")
    assert print_date(TIME.replace(hour=0), pattern) == "0 24 0 12 AM"
    assert print_date(TIME.replace(hour=12), pattern) == "12 12 0 12 PM"


def test_years_of_weeks_are_not_years() -> None:
    pattern = output_pattern("xxxx-ww yyyy", option="o")
    assert print_date(datetime(2027, 1, 3), pattern) == "2026-53 2027"
    assert print_date(datetime(2024, 12, 30), pattern) == "2025-01 2024"


@pytest.mark.parametrize("pattern, text", [("Z", "+0530"), ("ZZ", "+05:30")])
def test_offsets_are_printed_for_what_is_parsed_again(pattern: str, text: str) -> None:
    of = input_pattern(f"yyyy{pattern}", option="i")
    assert print_date(TIME, of, offset=timedelta(hours=5, minutes=30)) == f"2026{text}"
    assert print_date(TIME, of, offset=-timedelta(hours=5, minutes=30)) == f"2026-{text[1:]}"


@pytest.mark.parametrize("pattern", ["yyyy-bb", "yyyy'T", "n", "yyyyW"])
def test_what_joda_does_not_know_is_invalid(pattern: str) -> None:
    with pytest.raises(Invalid, match=r"hoodie\.x"):
        output_pattern(pattern, option="hoodie.x")


@pytest.mark.parametrize("pattern", ["yyyy G", "yyyyz", "CC", "yyyy Z"])
def test_letters_that_are_not_printed_are_refused_by_name(pattern: str) -> None:
    with pytest.raises(Unsupported, match=r"letter '[GzCZ]"):
        output_pattern(pattern, option="hoodie.x")


@pytest.mark.parametrize("pattern", ["", "'only text'", "--"])
def test_a_pattern_without_letters_prints_no_time(pattern: str) -> None:
    with pytest.raises(Invalid):
        output_pattern(pattern, option="hoodie.x")


@pytest.mark.parametrize("pattern, said", [
    ("yy-MM", "two-digit"), ("MM-dd", "a year"), ("yyyy-ww", "letter 'ww'"), ("yyyyZZZ", "letter 'ZZZ'"),
    ("yyyy yyyy", "twice"), ("yyyy E", "letter 'E'"), ("yyyy." + "S" * 2_000, "'S' stands in it 2,000 times"),
    ("y" * 20 + "MM", "'y' stands in it 20 times in a row; expected at most 9 times"),
])  # fmt: skip
def test_what_is_not_parsed_is_refused_by_name(pattern: str, said: str) -> None:
    with pytest.raises(Unsupported, match=said):
        input_pattern(pattern, option="hoodie.x")


def groups(pattern: str, text: str) -> dict[str, str] | None:
    of = input_pattern(pattern, option="i")
    regex = parsing_regex(of, names_groups=False)
    assert regex == re.sub(r"\(\?P<\w+>", "(", parsing_regex(of, names_groups=True))
    found = re.match(regex.replace(r"\z", r"\Z"), text)
    return None if found is None else dict(zip(parsed_groups(of), found.groups(), strict=True))


@pytest.mark.parametrize(
    "pattern, text, found",
    [
        ("yyyy-MM-dd", "2026-3-5", {"y": "2026", "M": "3", "d": "5"}),
        ("yyyyMMdd", "20260305", {"y": "2026", "M": "03", "d": "05"}),
        ("yyyyMMdd", "2026035", {"y": "2026", "M": "03", "d": "5"}),
        ("yyyyMMdd", "202635", None),
        ("yyyy-MM-dd", "2026-03-05 ", None),
        ("yyyy-MM-dd", "2026-003-05", None),
        ("d MMM yyyy", "5 mar 2026", {"d": "5", "MMM": "mar", "y": "2026"}),
        ("d MMMM yyyy", "5 March 2026", {"d": "5", "MMM": "March", "y": "2026"}),
        ("yyyy'T'HH", "2026t13", {"y": "2026", "H": "13"}),
        ("yyyy.MM", "2026x03", None),
        ("yyyy HH:mm:ss.SSSZ", "2026 13:07:09.04+0100",
         {"y": "2026", "H": "13", "m": "07", "s": "09", "S": "04", "Z": "+0100"}),
        ("yyyyZ", "2026Z", {"y": "2026", "Z": "Z"}),
        ("yyyyZ", "2026+01:30", {"y": "2026", "Z": "+01:30"}),
        ("yyyyZ", "2026+1", None),
    ],
)  # fmt: skip
def test_texts_are_parsed_as_joda_parses_them(pattern: str, text: str, found: dict[str, str] | None) -> None:
    assert groups(pattern, text) == found


@given(
    st.datetimes(datetime(1, 1, 1)), st.sampled_from(["yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMddHHmmssSSS", "d/M/yyyy k:m:s"])
)
def test_what_is_printed_is_parsed(time: datetime, pattern: str) -> None:
    text = print_date(time, output_pattern(pattern, option="o"))
    found = groups(pattern, text)
    assert found is not None
    assert int(found["y"]) == time.year
    assert int(found["M"]) == time.month
    assert int(found["d"]) == time.day
