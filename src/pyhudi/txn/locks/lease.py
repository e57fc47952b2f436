"""The guard of a table in an object store: a lease in `.hoodie/.locks/table_lock.json`.

Apache Hudi's StorageBasedLockProvider keeps its lease in the same file and form, so each finds the other's lease.

An object store has no locks that end with their process. The lease says until when the table belongs to its holder,
and a living holder renews it. Every change of the file is a conditional put: of two writers that both see the lease
free or expired, only one gets it. A lease is free, too, once its holder was a process of this machine that has ended.
A holder that stood still for too long notices by the same condition: its put fails, because another writer has
replaced the file since the holder's last put.

Spec: format/actions.md section 11.5.
"""

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyhudi.errors import Conflict, CorruptFile, HudiError, LockLost, Unavailable, Unsupported
from pyhudi.storage.processes import has_ended, process_mark
from pyhudi.storage.protocol import FileVersion, VersionedStorage
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.hold import Held, Holder, tell_holder
from pyhudi.txn.locks.repeated import repeated

log = logging.getLogger("pyhudi")

LEASE_FILE = ".hoodie/.locks/table_lock.json"

_TRIES = 3

DRIFT_MS = 500
"""How long after its end a lease is still heeded, because the clocks of two machines differ."""


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How long a lease holds after each renewal, and how often it is renewed. The defaults are Apache Hudi's."""

    validity_ms: int = 300_000
    renewal_ms: int = 30_000

    def __post_init__(self) -> None:
        assert self.validity_ms >= 10 * self.renewal_ms > 0


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The content of the lease's file. `owner` is a text that is unique to one lease."""

    expired: bool
    valid_until_ms: int
    owner: str

    def encode(self) -> bytes:
        fields = {"expired": self.expired, "validUntil": self.valid_until_ms, "owner": self.owner}
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, content: bytes, *, path: str) -> "LeaseRecord":
        """Parse the content of the lease's file.

        Raises: CorruptFile for anything but a lease. Such a file may belong to a writer, so it is not taken over.
        """
        try:
            fields = json.loads(content)
            expired, until, owner = fields["expired"], fields["validUntil"], fields["owner"]
            if isinstance(expired, bool) and isinstance(until, int) and isinstance(owner, str):
                return cls(expired, until, owner)
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        raise CorruptFile(
            path, 0, expected="a lease: expired, validUntil and owner, as JSON", found=repr(content[:100]),
            hint="Delete it once you know that no writer runs.",
        )  # fmt: skip

    @property
    def holder(self) -> str:
        """The owner without the mark of its process, for messages. Says so if it is this very process."""
        text, _, last = self.owner.rpartition(" ")
        return tell_holder(text if text and has_ended(last) is not None else self.owner)

    def is_heeded(self, now_ms: int) -> bool:
        """Whether the lease still keeps others out: until it has run out, or its holder's process has ended."""
        if self.expired or now_ms > self.valid_until_ms + DRIFT_MS:
            return False
        return not has_ended(self.owner.rpartition(" ")[2])


def put_surely(storage: VersionedStorage, content: bytes, expected: FileVersion | None) -> FileVersion | None:
    """Put the lease's file if it still has the expected version, and try again when the store does not answer.

    An unanswered put may have landed. The next try then finds another version. Nobody else puts this content, so the
    put has landed if the file has our content. Returns the new version; None when another writer changed the file.

    Raises: Unavailable when no try was answered; the put may have landed.
    """
    for left in reversed(range(_TRIES)):
        try:
            version = storage.put_if(LEASE_FILE, content, expected)
        except Unavailable:
            if not left:
                raise
            continue

        if version is None:
            found = storage.get_versioned(LEASE_FILE)
            version = found[1] if found is not None and found[0] == content else None
        return version
    raise AssertionError("the last try returns or raises")


class LeaseGuard:
    """The guard of the table at the root of `storage`. Not reentrant, and not for forked children."""

    def __init__(
        self,
        storage: VersionedStorage,
        *,
        table: str,
        clock: Clock,
        new_uuid: Callable[[], str],
        terms: LeaseTerms | None = None,
    ) -> None:
        """`table`: its name in errors. `clock` decides when a lease has run out, also a lease of another machine."""
        self._storage, self._table, self._clock, self._new_uuid = storage, table, clock, new_uuid
        self._terms = terms or LeaseTerms()
        self._is_store_tried = False

    def with_terms(self, terms: LeaseTerms) -> "LeaseGuard":
        """The guard of the same table with other terms."""
        if terms == self._terms:
            return self
        other = LeaseGuard(
            self._storage, table=self._table, clock=self._clock, new_uuid=self._new_uuid, terms=terms
        )  # fmt: skip
        other._is_store_tried = self._is_store_tried
        return other

    @contextmanager
    def acquire(self, purpose: str, now: str) -> Iterator["Lease"]:
        """Hold the lease while the context lasts, renewed by a thread; see `Guard.acquire`.

        Requests: two; one more the first time, one to confirm, one to release.
        """
        owner = f"{Holder.this_process(purpose, now)} {self._new_uuid()} {process_mark()}".rstrip()
        lease = self._take(owner)
        try:
            self._refuse_careless_store()
        except BaseException:
            lease.release()
            raise

        try:
            with repeated(lease.renew_quietly, every_ms=self._terms.renewal_ms, name="pyhudi-lease"):
                yield lease
        finally:
            if lease.is_of_this_process:
                lease.release()

    def _take(self, owner: str) -> "Lease":
        found = self._storage.get_versioned(LEASE_FILE)
        if found is not None:
            self._refuse_held(found[0])

        until_ms = self._clock.now_ms() + self._terms.validity_ms
        content = LeaseRecord(False, until_ms, owner).encode()
        version = put_surely(self._storage, content, found[1] if found is not None else None)

        # Another writer put its lease between our get and our put. Name it, if it is still there.
        if version is None:
            winner = self._storage.get_versioned(LEASE_FILE)
            if winner is not None:
                self._refuse_held(winner[0])
            raise Conflict(f"{self._table}: another writer took the table at the same moment and left it; retry")
        return Lease(self._storage, self._table, self._clock, self._terms, owner, version, until_ms)

    def _refuse_held(self, content: bytes) -> None:
        record = LeaseRecord.decode(content, path=f"{self._table}/{LEASE_FILE}")
        now_ms = self._clock.now_ms()
        if record.is_heeded(now_ms):
            raise Held(
                f"{self._table}: expected no other writer, found the table held by {record.holder}; its lease ends in "
                f"{record.valid_until_ms - now_ms:,} ms unless it is renewed; wait for it to end, then retry from the "
                "new snapshot",
                holder=record.owner,
            )

    def _refuse_careless_store(self) -> None:
        """Refuse a store that ignores the conditions of puts. Tried once per guard.

        The lease's file exists at this point, so a put that must create the file has to fail.
        """
        if self._is_store_tried:
            return
        found = self._storage.get_versioned(LEASE_FILE)
        if found is not None and self._storage.put_if(LEASE_FILE, found[0], None) is not None:
            raise Unsupported(
                f"{self._table}: the store replaced a file that was to be created only if absent: it ignores "
                "conditional puts, without which two writers may both believe that they commit; use a store that "
                "heeds If-None-Match and If-Match"
            )
        self._is_store_tried = True


class Lease:
    """A lease that was taken. The thread of `LeaseGuard.acquire` renews the lease, and so does `confirm`."""

    def __init__(
        self,
        storage: VersionedStorage,
        table: str,
        clock: Clock,
        terms: LeaseTerms,
        owner: str,
        version: FileVersion,
        until_ms: int,
    ) -> None:
        self._storage, self._table, self._clock, self._terms = storage, table, clock, terms
        self._owner, self._version, self._until_ms = owner, version, until_ms
        self._pid = os.getpid()
        self._lost = ""
        self._changing = threading.Lock()

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process took the lease. False in a forked child, which holds nothing."""
        return os.getpid() == self._pid

    def confirm(self) -> None:
        """Renew the lease. If the store does not answer, at least half of the lease's validity must be left.

        Raises: LockLost when another writer has taken the table, or may take it before a commit is through.
        """
        if not self.is_of_this_process:
            raise LockLost(f"{self._table}: the lease is held by the process that was forked, not by this one")
        try:
            self.renew()
        except Unavailable as error:
            left_ms = self._until_ms - self._clock.now_ms()
            if left_ms < self._terms.validity_ms // 2:
                raise LockLost(
                    f"{self._table}: the lease could not be renewed and ends in {left_ms:,} ms: expected at least "
                    f"{self._terms.validity_ms // 2:,} ms to commit ({error}); nothing was committed: retry"
                ) from error

    def renew(self) -> None:
        """Hold the lease for another period.

        Raises: LockLost when another writer has the lease; Unavailable when the store does not say.
        """
        with self._changing:
            until_ms = self._clock.now_ms() + self._terms.validity_ms
            self._put(LeaseRecord(False, until_ms, self._owner))
            self._until_ms = until_ms

    def renew_quietly(self) -> None:
        """Renew the lease. A failure is only logged: `confirm` raises if the lease is lost."""
        try:
            self.renew()
        except HudiError as error:
            log.warning("%s: the lease could not be renewed: %s", self._table, error)

    def release(self) -> None:
        """Give the table back. A failure here does not fail the write, because the lease runs out by itself."""
        try:
            with self._changing:
                self._put(LeaseRecord(True, self._until_ms, self._owner))
        except HudiError as error:
            log.warning("%s: the lease could not be released, and runs out by itself: %s", self._table, error)

    def _put(self, record: LeaseRecord) -> None:
        """Replace the lease that we last put. An earlier put of ours may have landed unanswered; then replace that one.

        Raises: LockLost when another writer has replaced our lease, and at every later call.
        """
        if self._lost:
            raise LockLost(self._lost)

        content = record.encode()
        version = put_surely(self._storage, content, self._version)
        if version is None:
            found = self._storage.get_versioned(LEASE_FILE)
            if found is None and record.expired:
                return  # the table was deleted, and the lease with it

            # The owner's text is unique: a file that bears it is an earlier put of ours that was not answered.
            holder = LeaseRecord.decode(found[0], path=LEASE_FILE).owner if found is not None else "nobody"
            if found is not None and holder == self._owner:
                version = put_surely(self._storage, content, found[1])

        if version is None:
            self._lost = (
                f"{self._table}: our lease ended before the commit, and {holder} took the table; nothing was "
                "committed: retry from the new snapshot, and find out what kept this writer from renewing it"
            )
            raise LockLost(self._lost)

        self._version = version
