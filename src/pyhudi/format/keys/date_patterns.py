"""Joda-Time's date patterns, as key generators take them: parsed, printed, and turned into regular expressions.

Months and days have English names, as on a server without a locale. Spec: format/layout.md section 5.3.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from pyhudi.errors import Invalid, Unsupported

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HALFDAYS = ("AM", "PM")

PRINTED = "yYxMdDHkKhmsSEewa"
"""Letters that can be printed. `Z`, an offset, is printed by its own function."""
PARSED = "yYMdHkKhmsSaZ"
"""Letters that can be parsed."""

UNIT_MS = {"S": 1, "s": 1_000, "m": 60_000, "H": 3_600_000, "k": 3_600_000, "K": 3_600_000, "h": 3_600_000,
           "a": 43_200_000}  # fmt: skip
DAY_MS = 86_400_000

WIDTH_MAX, YEAR_DIGITS_MAX = 100, 9
"""The most repeats of a letter that is parsed, and of that of a year. Regular expressions count to 1,000 only, and no
time has so many digits.
"""

OFFSET = "Z|[+-][0-9]{2}(?::?[0-9]{2})?"
OFFSET_GROUP, TEXT_MONTH = "Z", "MMM"


@dataclass(frozen=True, slots=True)
class Text:
    """Characters that stand for themselves."""

    text: str


@dataclass(frozen=True, slots=True)
class Letters:
    """A pattern letter, repeated `width` times. Example: `yyyy`."""

    letter: str
    width: int

    @property
    def is_text(self) -> bool:
        return self.letter in "EaZ" or (self.letter == "M" and self.width >= 3)


Token: TypeAlias = Text | Letters


@dataclass(frozen=True, slots=True)
class DatePattern:
    """A pattern as its tokens. Picklable."""

    pattern: str
    tokens: tuple[Token, ...]

    @property
    def letters(self) -> tuple[Letters, ...]:
        return tuple(token for token in self.tokens if isinstance(token, Letters))

    @property
    def unit_ms(self) -> int:
        """The finest unit that the pattern shows. Two times within one such unit are printed alike."""
        return min((UNIT_MS.get(one.letter, DAY_MS) for one in self.letters), default=DAY_MS)

    @property
    def has_offset(self) -> bool:
        return any(one.letter == "Z" for one in self.letters)


def parse_date_pattern(pattern: str, *, option: str) -> DatePattern:
    """The tokens of a pattern. Raises: Invalid for a letter that Joda-Time does not know or an open quote."""
    tokens: list[Token] = []
    at = 0
    while at < len(pattern):
        letters = re.compile(r"([A-Za-z])\1*").match(pattern, at)
        if letters is not None:
            if letters[1] not in "GCYxweEyDMdaKhHkmsSzZ":
                raise Invalid(
                    f"option '{option}'='{pattern}': '{letters[1]}' is no letter of a date pattern; quote text"
                )
            tokens.append(Letters(letters[1], len(letters[0])))
            at = letters.end()
            continue

        text, end = _text_from(pattern, at)
        if end is None:
            raise Invalid(f"option '{option}'='{pattern}': expected a closing quote")
        tokens.append(Text(text))
        at = end

    return DatePattern(pattern, tuple(tokens))


def _text_from(pattern: str, at: int) -> tuple[str, int | None]:
    """The text that starts at `at`, and where it ends; None for the end if a quote stays open. `''` is a quote."""
    text, is_quoted = "", False
    while at < len(pattern):
        char = pattern[at]
        if char == "'" and pattern[at + 1 : at + 2] == "'":
            text, at = text + char, at + 1
        elif char == "'":
            is_quoted = not is_quoted
        elif not is_quoted and char.isascii() and char.isalpha():
            break
        else:
            text += char
        at += 1
    return text, None if is_quoted else at


def output_pattern(pattern: str, *, option: str) -> DatePattern:
    """A pattern for printing. Raises: Invalid for a broken pattern; Unsupported for a letter that cannot be printed."""
    parsed = parse_date_pattern(pattern, option=option)
    if not parsed.letters:
        raise Invalid(f"option '{option}'='{pattern}': expected a date pattern such as 'yyyy/MM/dd'")
    _refuse_letters(parsed, PRINTED, option=option)
    return parsed


def input_pattern(pattern: str, *, option: str) -> DatePattern:
    """A pattern for parsing. Raises: as `output_pattern`; Unsupported for a pattern without a year.

    Two-digit years are refused, as they stand for other years as time goes by.
    """
    parsed = parse_date_pattern(pattern, option=option)
    _refuse_letters(parsed, PARSED, option=option)

    years = [one for one in parsed.letters if one.letter in "yY"]
    if not years:
        raise Unsupported(f"option '{option}'='{pattern}': expected a year, such as 'yyyy', among what is parsed")
    if any(one.width == 2 for one in years):
        raise Unsupported(
            f"option '{option}'='{pattern}': two-digit years mean another year by the day on which they are read; "
            "expected 'yyyy'"
        )

    for one in parsed.letters:
        most = YEAR_DIGITS_MAX if one.letter in "yY" else WIDTH_MAX
        if one.width > most:
            raise Unsupported(
                f"option '{option}'='{pattern[:60]}': '{one.letter}' stands in it {one.width:,} times in a row; "
                f"expected at most {most} times"
            )

    names = parsed_groups(parsed)
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise Unsupported(
            f"option '{option}'='{pattern}': '{min(doubled)}' stands in it twice; expected each part once"
        )

    return parsed


def _refuse_letters(pattern: DatePattern, known: str, *, option: str) -> None:
    for one in pattern.letters:
        if one.letter not in known or (one.letter == "Z" and one.width > 2):
            raise Unsupported(
                f"option '{option}'='{pattern.pattern}': letter '{one.letter * one.width}' is not supported; "
                f"expected letters among {', '.join(known)}"
            )


def print_date(wall: datetime, pattern: DatePattern, *, offset: timedelta = timedelta()) -> str:
    """A wall-clock time as the pattern spells it. `offset`: what `Z` prints."""
    return "".join(
        token.text if isinstance(token, Text) else _print_letters(wall, token, offset) for token in pattern.tokens
    )


def _print_letters(wall: datetime, letters: Letters, offset: timedelta) -> str:
    if letters.letter == "Z":
        return _print_offset(offset, ":" if letters.width == 2 else "")
    if letters.letter == "S":  # a fraction: more letters are more digits
        return f"{wall.microsecond // 1_000:03}".ljust(letters.width, "0")[: letters.width]

    if letters.letter == "a":
        return HALFDAYS[wall.hour // 12]
    if letters.letter == "E":
        name = DAYS[wall.weekday()]
        return name if letters.width >= 4 else name[:3]
    if letters.letter == "M" and letters.width >= 3:
        name = MONTHS[wall.month - 1]
        return name if letters.width >= 4 else name[:3]

    number = number_of(wall, letters.letter)
    if letters.letter in "yYx" and letters.width == 2:
        return f"{number % 100:02}"
    return str(number).rjust(letters.width, "0")


def number_of(wall: datetime, letter: str) -> int:
    """The number that a pattern letter stands for, at a wall-clock time."""
    match letter:
        case "y" | "Y":
            return wall.year
        case "x":
            return wall.isocalendar().year
        case "w":
            return wall.isocalendar().week
        case "e":
            return wall.isoweekday()
        case "M":
            return wall.month
        case "d":
            return wall.day
        case "D":
            return wall.timetuple().tm_yday
        case "H":
            return wall.hour
        case "k":
            return wall.hour or 24
        case "K":
            return wall.hour % 12
        case "h":
            return wall.hour % 12 or 12
        case "m":
            return wall.minute
        case "s":
            return wall.second
    raise AssertionError(letter)


def _print_offset(offset: timedelta, separator: str) -> str:
    seconds = int(offset.total_seconds())
    sign = "-" if seconds < 0 else "+"
    hours, rest = divmod(abs(seconds), 3_600)
    return f"{sign}{hours:02}{separator}{rest // 60:02}"


def parsed_groups(pattern: DatePattern) -> tuple[str, ...]:
    """The group names of `parsing_regex`, in order: the letters, with `y` for `Y`, and `MMM` for names of months."""
    return tuple(name for name, _ in _parts(pattern))


def parsing_regex(pattern: DatePattern, *, names_groups: bool) -> str:
    """The regular expression for the texts that the pattern parses. It matches whole texts, in RE2 and in Java.

    A number that stands right before another number must have all its digits, as in Joda-Time. Other numbers may have
    fewer. Example: in `yyyyMMdd` the month has two digits; in `yyyy-MM-dd` it may have one.
    """
    groups = dict(enumerate(_parts(pattern)))
    expression, at = "", 0
    for token in pattern.tokens:
        if isinstance(token, Text):
            expression += f"(?i:{_escaped(token.text)})"
        else:
            name, group = groups[at]
            expression += f"(?P<{name}>{group})" if names_groups else f"({group})"
            at += 1
    return rf"\A{expression}\z"


def _parts(pattern: DatePattern) -> list[tuple[str, str]]:
    """For each token of letters, the name and the expression of its group."""
    parts: list[tuple[str, str]] = []
    following: Sequence[Token | None] = (*pattern.tokens[1:], None)
    for token, after in zip(pattern.tokens, following, strict=True):
        if isinstance(token, Text):
            continue
        is_followed = isinstance(after, Letters) and not after.is_text
        parts.append(_part(token, is_followed=is_followed))
    return parts


def _part(letters: Letters, *, is_followed: bool) -> tuple[str, str]:
    if letters.letter == "Z":
        return OFFSET_GROUP, f"(?i:{OFFSET})"
    if letters.letter == "a":
        return "a", "(?i:AM|PM)"
    if letters.letter == "M" and letters.width >= 3:
        return TEXT_MONTH, f"(?i:{'|'.join((*MONTHS, *(name[:3] for name in MONTHS)))})"
    name = letters.letter.replace("Y", "y")
    most = {"y": letters.width if is_followed else YEAR_DIGITS_MAX, "S": letters.width}.get(name, 2)
    return name, f"[0-9]{{{most}}}" if is_followed else f"[0-9]{{1,{most}}}"


def _escaped(text: str) -> str:
    """Text, escaped for a regular expression. Characters beyond ASCII need no escape."""
    return "".join(f"\\{char}" if not char.isalnum() and char.isascii() else char for char in text)
