"""A guard of two locks: the table's own guard, and a lock that other implementations' writers hold, too.

The own guard comes first. It keeps pyhudi's writers apart, with and without a lock provider, and it ends with its
process on local disk. Only its holder asks the other lock, so a machine's waiting writers are one there.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC

from pyhudi.errors import Conflict
from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.guard import Guard, Lives
from pyhudi.txn.locks.hold import Hold
from pyhudi.txn.locks.providers.protocol import Provider
from pyhudi.txn.locks.providers.settings import LockSettings
from pyhudi.txn.locks.waiting import awaited_hold


@dataclass(frozen=True, slots=True)
class BothHolds:
    own: Hold
    other: Hold

    def confirm(self) -> None:
        """The own guard first: a lock that its loser confirmed is of no use."""
        self.own.confirm()
        self.other.confirm()


class TogetherGuard:
    """Both locks, or none."""

    def __init__(self, own: Guard, other: Provider, settings: LockSettings) -> None:
        self._own, self._other, self._settings = own, other, settings

    @contextmanager
    def acquire(self, purpose: str, now: str) -> Iterator[Hold]:
        with self._own.acquire(purpose, now) as own, self._other.hold(purpose, now, wait_ms=0) as other:
            yield BothHolds(own, other)

    @contextmanager
    def awaited(self, purpose: str, *, clock: Clock, wait_ms: int) -> Iterator[Hold]:
        """Hold both as soon as both are free. `wait_ms`: the longest wait, for both together."""
        with ExitStack() as held:
            for left in reversed(range(self._settings.client_retries + 1)):
                try:
                    both = held.enter_context(self._awaited_once(purpose, clock, wait_ms))
                    break
                except Conflict:
                    if not left or not wait_ms:
                        raise
                clock.sleep_ms(self._settings.client_pause_ms)
            yield both

    @contextmanager
    def _awaited_once(self, purpose: str, clock: Clock, wait_ms: int) -> Iterator[Hold]:
        until_ms = clock.now_ms() + wait_ms
        with awaited_hold(self._own, purpose, clock=clock, wait_ms=wait_ms) as own:
            left_ms = max(0, until_ms - clock.now_ms())
            now = format_instant(clock.now_ms(), UTC)
            with self._other.hold(purpose, now, wait_ms=left_ms) as other:
                yield BothHolds(own, other)


class LivelyTogetherGuard(TogetherGuard):
    """Both locks, of a table whose own guard knows which actions are running."""

    def __init__(self, own: Guard, other: Provider, settings: LockSettings) -> None:
        assert isinstance(own, Lives)
        super().__init__(own, other, settings)
        self._lives: Lives = own

    def running(self, requested: str) -> AbstractContextManager[None]:
        return self._lives.running(requested)

    def is_running(self, requested: str) -> bool | None:
        return self._lives.is_running(requested)

    def has_died(self, requested: str) -> bool:
        return self._lives.has_died(requested)

    def known(self) -> list[str]:
        return self._lives.known()
