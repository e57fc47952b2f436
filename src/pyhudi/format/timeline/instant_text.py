"""The text of instants: `yyyyMMddHHmmssSSS` in the table's time zone, and what users write instead.

Order: instants compare as plain strings. Spec: 1.0, "Timeline"; format/timeline.md section 1.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import TypeVar

from pyhudi.errors import Invalid

T = TypeVar("T")

INSTANT_DIGITS = 17
INIT_INSTANT = "0" * INSTANT_DIGITS
"""The first instant of a metadata table of table version 8 and later."""

EARLIEST_WORDS = frozenset({"earliest", "000"})

_NO_YEAR = "0000"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = re.compile(r"[0-9]{14}|[0-9]{17}")
_BEGINNING = re.compile(r"[0-9]{1,13}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:?\d{2})?", re.ASCII)


def format_instant(epoch_ms: int, zone: tzinfo) -> str:
    """The 17-digit text of a moment, in the given zone."""
    moment = datetime.fromtimestamp(epoch_ms // 1000, tz=UTC).astimezone(zone)
    return f"{moment.year:04d}{moment:%m%d%H%M%S}{epoch_ms % 1000:03d}"  # %Y has no leading zeros everywhere


def parse_instant_ms(instant: str, zone: tzinfo) -> int:
    """An instant's text as milliseconds since the epoch.

    A text of 14 digits, without milliseconds, is the last millisecond of its second. Of a longer text the first 17
    digits count. A text of the year 0 gives 0, as it stands before every moment: Apache Hudi's metadata tables and
    bootstraps begin with `00000000000000…`. Raises: Invalid for a text that is no instant.
    """
    digits = instant[:INSTANT_DIGITS]
    if _DIGITS.fullmatch(digits) and digits.startswith(_NO_YEAR):
        return 0

    if len(digits) == 14:
        digits += "999"
    if len(digits) != INSTANT_DIGITS or not _DIGITS.fullmatch(digits):
        raise Invalid(f"instant '{instant}': expected yyyyMMddHHmmssSSS (17 digits), found {len(instant)} characters")

    try:
        moment = datetime.strptime(digits[:14], "%Y%m%d%H%M%S").replace(tzinfo=zone)
    except ValueError as error:
        raise Invalid(f"instant '{instant}': expected a moment as yyyyMMddHHmmssSSS, found {error}") from error
    return int(moment.timestamp()) * 1000 + int(digits[14:])


def instant_from_user(value: str | date | datetime, zone: tzinfo, *, what: str) -> str:
    """The instant text that a user's value stands for in comparisons.

    An instant of 14 or 17 digits stays as it is. A date becomes its midnight. A text with seconds, but no
    milliseconds, becomes the last millisecond of its second, as in Apache Hudi. `what` names the argument in errors.

    Spec: format/queries.md section 1, "Time travel".
    """
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=zone)
        try:
            return format_instant((moment - _EPOCH) // timedelta(milliseconds=1), zone)
        except (ValueError, OverflowError) as error:
            raise Invalid(f"{what}={value!r}: expected a moment of the years 1 to 9999: {error}") from error
    if isinstance(value, date):
        return f"{value.year:04d}{value:%m%d}000000000"

    if isinstance(value, str):
        text = value.strip()
        if _DIGITS.fullmatch(text):
            return text
        if _DATE.fullmatch(text):
            return instant_from_user(_parse(date.fromisoformat, text, what), zone, what=what)
        if matched := _DATE_TIME.fullmatch(text):
            moment = _parse(datetime.fromisoformat, text, what)
            if matched[1] is None:
                moment += timedelta(milliseconds=999)
            return instant_from_user(moment, zone, what=what)

    raise Invalid(
        f"{what}={value!r}: expected an instant (14 or 17 digits), a date (yyyy-MM-dd) or a timestamp "
        "(yyyy-MM-dd HH:mm:ss[.SSS])"
    )


def bound_from_user(value: str | date | datetime, zone: tzinfo, *, what: str) -> str:
    """The instant text of a range's bound: as `instant_from_user`, or the beginning of an instant.

    Instants compare as plain texts, so `20230516` stands before every instant of that day, and `0` before all. Seen:
    Apache Hudi takes any text; its quick start begins with `0`.
    """
    if isinstance(value, str) and _BEGINNING.fullmatch(value.strip()):
        return value.strip().ljust(INSTANT_DIGITS, "0")
    return instant_from_user(value, zone, what=what)


def _parse(parse: Callable[[str], T], text: str, what: str) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise Invalid(f"{what}='{text}': {error}") from error
