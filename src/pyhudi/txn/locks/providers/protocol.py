"""What a lock provider does, and what the providers share."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from pyhudi.errors import HudiError, Unsupported
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.hold import Hold
from pyhudi.txn.locks.providers.settings import PROVIDER, Pauses, ProviderName
from pyhudi.txn.locks.repeated import repeated

log = logging.getLogger("pyhudi")


class Provider(Protocol):
    """A lock that other writers of the table hold, too. The caller holds the table's own guard meanwhile."""

    def hold(self, purpose: str, now: str, *, wait_ms: int) -> AbstractContextManager[Hold]:
        """Hold the lock while the context lasts. A forked child that leaves the context leaves the lock alone.

        `purpose`, `now`: shown to others, where the lock can say who holds it. `wait_ms`: the longest wait for another
        holder; with 0 there is one try.
        Raises: Conflict when another writer holds the lock until the wait is over, naming the holder where the lock
        can say; Unavailable when the lock service does not answer.
        """


@dataclass
class Deadline:
    """A wait of limited length. The sum of the pauses ends the wait even if the clock stops."""

    clock: Clock
    wait_ms: int
    pauses: Pauses
    tries: int = 0
    spent_ms: int = 0

    def __post_init__(self) -> None:
        self._until_ms = self.clock.now_ms() + self.wait_ms

    @property
    def left_ms(self) -> int:
        return max(0, min(self._until_ms - self.clock.now_ms(), self.wait_ms - self.spent_ms))

    def extend(self, more_ms: int) -> None:
        self.wait_ms += more_ms
        self._until_ms += more_ms

    def pause(self) -> None:
        pause_ms = min(self.pauses.after(self.tries), max(1, self.left_ms))
        self.tries += 1
        self.spent_ms += pause_ms
        self.clock.sleep_ms(pause_ms)


@contextmanager
def renewed(renew: Callable[[], None], *, every_ms: int, what: str) -> Iterator[None]:
    """Call `renew` in a thread while the block runs. A failure is only logged: `confirm` raises for a lost lock."""

    def try_to() -> None:
        try:
            renew()
        except HudiError as error:
            log.warning("%s could not be renewed: %s", what, error)

    with repeated(try_to, every_ms=every_ms, name="pyhudi-lock"):
        yield


def not_installed(provider: ProviderName, extra: str, error: ModuleNotFoundError) -> Unsupported:
    package = (error.name or "").partition(".")[0]
    return Unsupported(
        f"option '{PROVIDER}'='{provider.value}': this lock needs the package {package}: pip install 'pyhudi[{extra}]'"
    )
