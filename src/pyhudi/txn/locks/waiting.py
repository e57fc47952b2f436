"""Waiting for a table that another writer holds.

A waiting writer tries again and again, after short pauses of unequal length. A writer that writes in a loop would
nearly always take the table again before a waiting writer tries. Some guards therefore have a line. The first in the
line keeps newcomers back: a writer that finds somebody waiting joins the line. Of two writers in loops each gets its
share.
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
from pyhudi.txn.locks.hold import Hold

T = TypeVar("T")

WAIT_OPTION = "hoodie.write.lock.wait_time_ms"

_LINE_PAUSE_MS = 2
_PAUSE_MS = 50
"""The shortest pauses between two tries: at a guard with a line, where a try is a local call; and at other guards."""


@runtime_checkable
class WaitsItself(Protocol):
    """A guard that knows better than to be asked again and again, such as one with a queue at a lock service."""

    def awaited(self, purpose: str, *, clock: Clock, wait_ms: int) -> AbstractContextManager[Hold]:
        """As `awaited_hold` for this guard."""


@contextmanager
def awaited_hold(guard: Guard, purpose: str, *, clock: Clock, wait_ms: int) -> Iterator[Hold]:
    """Hold the guard as soon as it is free. `wait_ms`: the longest wait; with 0 there is one try only.

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
        return _Patience(clock, wait_ms, _PAUSE_MS).ask(acquire)

    # Only a writer that finds nobody waiting may take the guard past the line.
    if not guard.is_awaited():
        with suppress(Conflict):
            return acquire()

    patience = _Patience(clock, wait_ms, _LINE_PAUSE_MS)
    with ExitStack() as line:
        with suppress(Conflict):  # the wait is over: the last try below names the holder
            patience.ask(lambda: line.enter_context(guard.first_in_line()))
        return patience.ask(acquire)


@dataclass
class _Patience:
    """A wait of limited length. `spent_ms`: the sum of the pauses, which ends the wait even if the clock stops."""

    clock: Clock
    wait_ms: int
    pause_ms: int
    spent_ms: int = 0
    tries: int = 0

    def __post_init__(self) -> None:
        self._until_ms = self.clock.now_ms() + self.wait_ms

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
        pause_ms = self.pause_ms + number * 2 * self.pause_ms // 4_294_967_296
        self.spent_ms += pause_ms
        self.clock.sleep_ms(pause_ms)
