"""`HiveMetastoreBasedLockProvider`: the exclusive lock of a table in a Hive metastore.

The metastore queues the locks of a table. A holder renews its lock; one that does not loses it after the metastore's
`hive.txn.timeout`, five minutes unless the metastore says otherwise.

Seen: Apache Hudi (1.2) asks for the lock once, and asks again later if it had to wait. pyhudi keeps its place in the
queue until the wait is over.
"""

import getpass
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from pyhudi.errors import Conflict, HudiError, Invalid, LockLost, Unavailable
from pyhudi.storage.protocol import StorageLocation
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.hold import Hold, Holder
from pyhudi.txn.locks.providers.hive_calls import GoneError, LockState, Metastore, closing
from pyhudi.txn.locks.providers.protocol import Deadline, log, renewed
from pyhudi.txn.locks.providers.settings import LockSettings


class HiveLock:
    """The lock of `database`.`name` in a metastore."""

    def __init__(
        self,
        uris: str,
        database: str,
        name: str,
        *,
        table: str,
        heartbeat_ms: int,
        settings: LockSettings,
        clock: Clock,
        new_uuid: Callable[[], str],
    ) -> None:
        self._uris, self._database, self._name, self._table = uris, database, name, table
        self._heartbeat_ms, self._settings, self._clock, self._new_uuid = heartbeat_ms, settings, clock, new_uuid
        Metastore(uris, tries=0)  # refuses addresses that are none

    @classmethod
    def open(
        cls, location: StorageLocation, settings: LockSettings, clock: Clock, new_uuid: Callable[[], str]
    ) -> "HiveLock":
        return cls(
            settings.needed("hoodie.write.lock.hivemetastore.uris"),
            _name(settings, "hoodie.write.lock.hivemetastore.database"),
            _name(settings, "hoodie.write.lock.hivemetastore.table"),
            table=location.uri,
            heartbeat_ms=settings.values.count("hoodie.write.lock.heartbeat_interval_ms", 60_000),
            settings=settings,
            clock=clock,
            new_uuid=new_uuid,
        )

    @contextmanager
    def hold(self, purpose: str, now: str, *, wait_ms: int) -> Iterator[Hold]:
        agent, pid = _agent(Holder.this_process(purpose, now), self._new_uuid()), os.getpid()
        with closing(Metastore(self._uris, tries=self._settings.request_tries)) as metastore:
            lock_id = self._take(metastore, agent, Deadline(self._clock, wait_ms, self._settings.pauses))
            hold = HiveHold(metastore, lock_id, self._table)
            try:
                with renewed(hold.renew, every_ms=self._heartbeat_ms, what=f"{self._table}: the lock"):
                    yield hold
            finally:
                if os.getpid() == pid:
                    self._release(metastore, lock_id)

    def _take(self, metastore: Metastore, agent: str, deadline: Deadline) -> int:
        lock_id, state = self._ask(metastore, agent)
        try:
            while state == LockState.WAITING and deadline.left_ms:
                deadline.pause()
                state = metastore.check_lock(lock_id)
            if state == LockState.ACQUIRED:
                return lock_id
            raise self._conflict(metastore, lock_id)
        except GoneError as error:
            raise Unavailable(f"{self._table}: the Hive metastore gave up our place in its queue: {error}") from error
        except BaseException:
            self._release(metastore, lock_id)
            raise

    def _ask(self, metastore: Metastore, agent: str) -> tuple[int, int]:
        """Stand in the metastore's queue. Where the answer is lost, our place is found by its unique name."""
        ask = partial(metastore.lock, self._database, self._name, user=_user(), agent=agent)
        try:
            return ask()
        except Unavailable:
            for shown in metastore.show_locks(self._database, self._name):
                if shown.agent == agent:
                    return shown.lock_id, shown.state
            return ask()
        except GoneError as error:
            raise Unavailable(f"{self._table}: the Hive metastore refuses the lock: {error}") from error

    def _conflict(self, metastore: Metastore, lock_id: int) -> Conflict:
        holders = [
            shown for shown in metastore.show_locks(self._database, self._name)
            if shown.state == LockState.ACQUIRED and shown.lock_id != lock_id
        ]  # fmt: skip
        holder = "another writer"
        if holders:
            first = holders[0]
            holder = f"user {first.user} on {first.host}, lock {first.lock_id}"
            if first.agent not in ("", "Unknown"):
                holder = f"{first.agent}, lock {first.lock_id}"
        return Conflict(
            f"{self._table}: expected no other writer, found the lock of {self._database}.{self._name} in the Hive "
            f"metastore held by {holder}; wait for it to end, then retry from the new snapshot"
        )

    def _release(self, metastore: Metastore, lock_id: int) -> None:
        """Give the lock back. A failure here does not fail the write: the metastore ends the lock by itself."""
        try:
            with suppress(GoneError):
                metastore.unlock(lock_id)
        except HudiError as error:
            log.warning("%s: lock %d could not be released, and ends by itself: %s", self._table, lock_id, error)


class HiveHold:
    """A lock that was taken. A thread renews it, and so does `confirm`."""

    def __init__(self, metastore: Metastore, lock_id: int, table: str) -> None:
        self._metastore, self._lock_id, self._table = metastore, lock_id, table
        self._pid, self._asking = os.getpid(), threading.Lock()

    def confirm(self) -> None:
        """Ask the metastore for our lock. Raises: LockLost when it is gone, or nobody answers."""
        if os.getpid() != self._pid:
            raise LockLost(f"{self._table}: the lock is held by the process that was forked, not by this one")
        try:
            with self._asking:
                state = self._metastore.check_lock(self._lock_id)
        except GoneError as error:
            raise self._lost(str(error)) from error
        except Unavailable as error:
            raise LockLost(f"{self._table}: nobody says that the lock is still ours: {error}; {_NOTHING}") from error
        if state != LockState.ACQUIRED:
            raise self._lost(f"its state is {state}")

    def renew(self) -> None:
        """Raises: LockLost when the lock is gone; Unavailable when the metastore does not answer."""
        try:
            with self._asking:
                self._metastore.heartbeat(self._lock_id)
        except GoneError as error:
            raise self._lost(str(error)) from error

    def _lost(self, why: str) -> LockLost:
        return LockLost(
            f"{self._table}: the Hive metastore has ended our lock {self._lock_id}: {why}; {_NOTHING}; find out what "
            "kept this writer from renewing it"
        )


_TEXT_MAX = 128
"""Characters of a text that a metastore keeps with a lock."""
_NOTHING = "nothing was committed: retry from the new snapshot"


def _name(settings: LockSettings, option: str) -> str:
    """A name in the metastore, which tells no upper from lower case. Raises: Invalid for one that it cannot take."""
    name = settings.needed(option).lower()
    if name != _plain(name):
        raise Invalid(f"option '{option}'='{name}': expected letters of ASCII, digits and '_'")
    return name


def _agent(holder: Holder, unique: str) -> str:
    """Who asks for a lock, and for which one; no longer than the metastore's column."""
    return f"{_plain(str(holder))[: _TEXT_MAX - 1 - len(unique)]} {unique}"


def _plain(text: str) -> str:
    """A text without quotes and the like. Seen: the metastore (2.3) puts these texts into its SQL as they are."""
    return re.sub(r"[^\w .:,()@/=-]", "_", text, flags=re.ASCII)


def _user() -> str:
    try:
        return _plain(getpass.getuser())[:_TEXT_MAX]
    except (KeyError, OSError):  # a user without a name
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"
