"""Issues instant times: strictly increasing, unique in a process, always after the newest time on the timeline."""

import threading
from datetime import tzinfo
from typing import Protocol
from weakref import WeakKeyDictionary

from pyhudi.errors import Invalid, Unavailable
from pyhudi.format.timeline.instant_text import INSTANT_DIGITS, format_instant, parse_instant_ms

SKEW_MAX_MS = 60_000
"""A clock that is behind the newest instant by more than this is an error. By less, a writer waits."""


class Clock(Protocol):
    """The wall clock, passed in."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""

    def sleep_ms(self, wait_ms: int) -> None:
        """Wait."""


_last_issued_ms: WeakKeyDictionary[Clock, int] = WeakKeyDictionary()
_issuing = threading.Lock()


def issue_instant(clock: Clock, zone: tzinfo, *, after: str | None) -> str:
    """A new instant, later than `after` and later than every instant that this clock gave before.

    Waits until the clock is past `after`, which may be ahead as another writer's clock is.
    Raises: Unavailable if the clock is behind `after` by more than `SKEW_MAX_MS`.
    """
    with _issuing:
        now_ms = clock.now_ms()
        floor_ms = _moment_ms(after, zone) if after is not None else 0
        behind_ms = floor_ms - now_ms
        if behind_ms > SKEW_MAX_MS:
            raise Unavailable(
                f"the clock stands {behind_ms:,} ms behind the newest instant '{after}' of the table: expected at "
                f"most {SKEW_MAX_MS:,} ms; set the clock, or the time zone of a table whose "
                "hoodie.table.timeline.timezone is LOCAL; where the clock of another writer was wrong, `rollback` "
                "takes back the commit that it made, or the compaction that it planned"
            )

        floor_ms = max(floor_ms, _last_issued_ms.get(clock, 0))
        while now_ms <= floor_ms:
            clock.sleep_ms(floor_ms - now_ms + 1)
            now_ms = clock.now_ms()

        _last_issued_ms[clock] = now_ms
        return format_instant(now_ms, zone)


def _moment_ms(instant: str, zone: tzinfo) -> int:
    """As `parse_instant_ms`. Digits that are no date, such as `9999…`, count as the last day of their year."""
    try:
        return parse_instant_ms(instant, zone)
    except Invalid:
        if not instant[:INSTANT_DIGITS].isdigit():
            raise
        return parse_instant_ms(f"{instant[:4]}1231000000000", zone)
