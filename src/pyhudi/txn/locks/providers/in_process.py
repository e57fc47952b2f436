"""`InProcessLockProvider`: a lock within the process, one a table's path.

It keeps out the threads of this process that name the same provider. Apache Hudi's lock of this name lives in its own
process, the Java one, so no writer of Apache Hudi is kept out by this one.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyhudi.errors import Conflict
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.hold import CertainHold, Hold, Holder
from pyhudi.txn.locks.providers.protocol import Deadline
from pyhudi.txn.locks.providers.settings import LockSettings

_lock = threading.Lock()
_holders: dict[str, Holder] = {}


def _forget_parent() -> None:
    """Make a forked child hold nothing."""
    global _lock
    _lock = threading.Lock()
    _holders.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)


class InProcessLock:
    def __init__(self, table: str, settings: LockSettings, clock: Clock) -> None:
        self._table, self._settings, self._clock = table, settings, clock

    @contextmanager
    def hold(self, purpose: str, now: str, *, wait_ms: int) -> Iterator[Hold]:
        holder = Holder.this_process(purpose, now)
        deadline = Deadline(self._clock, wait_ms, self._settings.pauses)
        while (other := self._take(holder)) is not holder:
            if not deadline.left_ms:
                raise Conflict(
                    f"{self._table}: expected no other writer, found the lock of this process held by {other}; wait "
                    "for it to end, then retry from the new snapshot"
                )
            deadline.pause()
        try:
            yield CertainHold()
        finally:
            with _lock, suppress(KeyError):
                if _holders[self._table] is holder:
                    del _holders[self._table]

    def _take(self, holder: Holder) -> Holder:
        with _lock:
            return _holders.setdefault(self._table, holder)
