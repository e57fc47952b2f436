"""`InProcessLockProvider`: a lock within the process, one a table's path.

It keeps out the threads of this process that name the same provider. Apache Hudi's lock of this name lives in its own
process, the Java one, so no writer of Apache Hudi is kept out by this one.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pyhudi.errors import Conflict
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.guard import held_in_process
from pyhudi.txn.locks.hold import CertainHold, Held, Hold, Holder, tell_holder
from pyhudi.txn.locks.providers.protocol import Deadline
from pyhudi.txn.locks.providers.settings import LockSettings


class InProcessLock:
    def __init__(self, table: str, settings: LockSettings, clock: Clock) -> None:
        self._table, self._settings, self._clock = table, settings, clock

    @contextmanager
    def hold(self, purpose: str, now: str, *, wait_ms: int) -> Iterator[Hold]:
        holder = Holder.this_process(purpose, now)
        deadline = Deadline(self._clock, wait_ms, self._settings.pauses)
        with ExitStack() as held:
            while True:
                try:
                    held.enter_context(held_in_process(f"{self._table}#provider", holder, table=self._table))
                    break
                except Held as error:
                    if not deadline.left_ms:
                        raise Conflict(
                            f"{self._table}: expected no other writer, found the lock of this process held by "
                            f"{tell_holder(error.holder)}; wait for it to end, then retry from the new snapshot"
                        ) from None
                deadline.pause()
            yield CertainHold()
