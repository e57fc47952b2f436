"""Waiting for a table that another writer holds.

A wait ends when one holder has kept the table for too long. While others come and go, the waiting writer stays: it will
have its turn. Ten writers in loops therefore all go on, however long their line is.

A waiting writer tries again and again, after short pauses of unequal length. A writer that writes in a loop would
nearly always take the table again before a waiting writer tries. Some guards therefore have a line. The first in the
line keeps newcomers back: a writer that finds somebody waiting joins the line. The longer a writer has stood in the
line, the more often it tries to become the first.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC
from typing import Protocol, TypeVar, runtime_checkable

from pyhudi.errors import Conflict
from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.guard import Guard, Line
from pyhudi.txn.locks.hold import Held, Hold

T = TypeVar("T")

WAIT_OPTION = "hoodie.write.lock.wait_time_ms"

_LINE_PAUSE_MS = 2
_PAUSE_MS = 50
"""The shortest pauses between two tries: at a guard with a line, where a try is a local call; and at other guards."""
_NEWCOMER_PAUSE_MS = 16
"""The shortest pause of a writer that has just joined the line. It is half as long after each `_HALVED_AFTER_MS`."""
_HALVED_AFTER_MS = 500


@runtime_checkable
class WaitsItself(Protocol):
    """A guard that knows better than to be asked again and again, such as one with a queue at a lock service."""

    def awaited(self, purpose: str, *, clock: Clock, wait_ms: int) -> AbstractContextManager[Hold]:
        """As `awaited_hold` for this guard."""


@contextmanager
def awaited_hold(guard: Guard, purpose: str, *, clock: Clock, wait_ms: int) -> Iterator[Hold]:
    """Hold the guard as soon as it is free. `wait_ms`: the longest wait for one holder; with 0 there is one try only.

    Raises: as `Guard.acquire`; Conflict, naming the holder, once the wait is over.
    """
    with ExitStack() as held:
        if isinstance(guard, WaitsItself):
            yield held.enter_context(guard.awaited(purpose, clock=clock, wait_ms=wait_ms))
            return

        def acquire() -> Hold:
            return held.enter_context(guard.acquire(purpose, format_instant(clock.now_ms(), UTC)))

        yield _acquire(guard, acquire, clock, wait_ms)


def _acquire(guard: Guard, acquire: Callable[[], Hold], clock: Clock, wait_ms: int) -> Hold:
    if not wait_ms:
        return acquire()
    if not isinstance(guard, Line):
        patience = _Patience(clock, wait_ms, _PAUSE_MS, _PAUSE_MS)
        return patience.ask(lambda: patience.noting(acquire))

    # Only a writer that finds nobody waiting may take the guard past the line.
    if not guard.is_awaited():
        with suppress(Conflict):
            return acquire()

    patience = _Patience(clock, wait_ms, _NEWCOMER_PAUSE_MS, _LINE_PAUSE_MS)

    def become_first() -> None:
        patience.note(guard.held_by())
        line.enter_context(guard.first_in_line())

    with ExitStack() as line:
        with suppress(Conflict):  # the wait is over: the last try below names the holder
            patience.ask(become_first)
        patience.pause_ms = _LINE_PAUSE_MS
        return patience.ask(lambda: patience.noting(acquire))


@dataclass
class _Patience:
    """A wait for a table whose holders change. `wait_ms`: the longest wait for one holder.

    `pause_ms`: the shortest pause at the beginning; it shrinks to `pause_min_ms`. `spent_ms`: the sum of the pauses
    under this holder, which ends the wait even if the clock stops. `waited_ms`: the sum of all pauses. `holder`: who
    holds the table.
    """

    clock: Clock
    wait_ms: int
    pause_ms: int
    pause_min_ms: int
    spent_ms: int = 0
    waited_ms: int = 0
    tries: int = 0
    holder: str = ""

    def __post_init__(self) -> None:
        self._until_ms = self.clock.now_ms() + self.wait_ms

    def note(self, holder: str) -> None:
        """Begin the wait anew when the table has got another holder."""
        if holder and holder != self.holder:
            self.holder, self.spent_ms = holder, 0
            self._until_ms = self.clock.now_ms() + self.wait_ms

    def noting(self, acquire: Callable[[], T]) -> T:
        """The result of `acquire`. If the table is held, its holder is noted."""
        try:
            return acquire()
        except Held as error:
            self.note(error.holder)
            raise

    def ask(self, take: Callable[[], T]) -> T:
        """The result of `take`, once it no longer conflicts. Even when the wait is over, `take` is tried once."""
        while True:
            try:
                return take()
            except Conflict as error:
                if self.spent_ms >= self.wait_ms or self.clock.now_ms() >= self._until_ms:
                    raise Conflict(f"{error} (waited {self.wait_ms:,} ms: {WAIT_OPTION})") from error
            self._pause()

    def _pause(self) -> None:
        """Pause for one to three times the shortest pause.

        The length varies by process, thread and try, so that two writers that began to wait together do not stay in
        step.
        """
        self.tries += 1
        number = (os.getpid() * 31 + threading.get_ident() // 64 + self.tries) * 2_654_435_761 % 4_294_967_296
        shortest = max(self.pause_min_ms, self.pause_ms * _HALVED_AFTER_MS // (_HALVED_AFTER_MS + self.waited_ms))
        pause_ms = shortest + number * 2 * shortest // 4_294_967_296
        self.spent_ms += pause_ms
        self.waited_ms += pause_ms
        self.clock.sleep_ms(pause_ms)
