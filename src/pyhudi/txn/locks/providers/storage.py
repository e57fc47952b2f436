"""`StorageBasedLockProvider` beside a guard that the caller passed: the lease of the table, waited for."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.hold import Hold
from pyhudi.txn.locks.lease import LeaseGuard
from pyhudi.txn.locks.waiting import awaited_hold


class StorageLock:
    def __init__(self, lease: LeaseGuard, clock: Clock) -> None:
        self._lease, self._clock = lease, clock

    @contextmanager
    def hold(self, purpose: str, now: str, *, wait_ms: int) -> Iterator[Hold]:
        with awaited_hold(self._lease, purpose, clock=self._clock, wait_ms=wait_ms) as hold:
            yield hold
