"""Two instants could get one time, or a time before an instant that exists: commits would then change places."""

import threading
from datetime import UTC

import pytest

from pyhudi.errors import Unavailable
from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.timeline.clock import SKEW_MAX_MS, issue_instant

NOW_MS = 1_795_258_757_123
NOW = "20261121105917123"


class FakeClock:
    """A clock that moves only when it is slept on."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.time_ms = now_ms
        self.slept_ms: list[int] = []

    def now_ms(self) -> int:
        return self.time_ms

    def sleep_ms(self, wait_ms: int) -> None:
        assert wait_ms > 0
        self.slept_ms.append(wait_ms)
        self.time_ms += wait_ms


class LazyClock(FakeClock):
    """One whose sleep ends too early, as sleeps may."""

    def sleep_ms(self, wait_ms: int) -> None:
        self.slept_ms.append(wait_ms)
        self.time_ms += max(1, wait_ms // 2)


def test_an_instant_is_the_time_of_the_clock() -> None:
    clock = FakeClock()

    assert issue_instant(clock, UTC, after=None) == NOW
    assert clock.slept_ms == []


def test_instants_of_one_clock_increase_strictly() -> None:
    clock = FakeClock()

    issued = [issue_instant(clock, UTC, after=None) for _ in range(5)]

    assert issued == [format_instant(NOW_MS + n, UTC) for n in range(5)]


def test_instants_increase_when_the_clock_is_set_back() -> None:
    clock = FakeClock()
    first = issue_instant(clock, UTC, after=None)
    clock.time_ms -= 500

    assert issue_instant(clock, UTC, after=None) > first


def test_an_instant_comes_after_the_newest_of_the_table() -> None:
    clock = FakeClock()

    issued = issue_instant(clock, UTC, after=format_instant(NOW_MS + 250, UTC))

    assert issued == format_instant(NOW_MS + 251, UTC)
    assert clock.slept_ms == [251]


@pytest.mark.parametrize("clock", [FakeClock(), LazyClock()], ids=["exact", "lazy"])
def test_the_clock_is_waited_for_up_to_the_skew(clock: FakeClock) -> None:
    after = format_instant(NOW_MS + SKEW_MAX_MS, UTC)

    assert issue_instant(clock, UTC, after=after) > after


def test_a_clock_further_behind_is_an_error_and_is_not_waited_for() -> None:
    clock = FakeClock()
    after = format_instant(NOW_MS + SKEW_MAX_MS + 1, UTC)

    with pytest.raises(Unavailable, match=rf"60,001 ms behind the newest instant '{after}'"):
        issue_instant(clock, UTC, after=after)
    assert clock.slept_ms == []
    assert issue_instant(clock, UTC, after=None) == NOW  # and it left nothing behind


def test_an_instant_of_seconds_stands_for_its_last_millisecond() -> None:
    assert issue_instant(FakeClock(), UTC, after=NOW[:14]) == "20261121105918000"


def test_clocks_do_not_know_of_each_other() -> None:
    issue_instant(FakeClock(NOW_MS + 10**9), UTC, after=None)

    assert issue_instant(FakeClock(), UTC, after=None) == NOW


def test_threads_never_get_the_same_instant() -> None:
    clock = FakeClock()
    issued: list[str] = []

    def issue() -> None:
        for _ in range(50):
            issued.append(issue_instant(clock, UTC, after=None))

    threads = [threading.Thread(target=issue) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(issued)) == 200
