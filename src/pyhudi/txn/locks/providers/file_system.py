"""`FileSystemBasedLockProvider`: a file named `lock`, which its holder creates and deletes.

Spec: format/actions.md section 11.5. Only local files: no store and no driver of fsspec creates a file atomically
and tells when it was written by a clock of its own.

A holder that dies leaves its file. With `filesystem.expire` others delete the file once it is that old. pyhudi renews
the file's time while it holds the lock, so a long hold does not expire. Without it the file of a writer of Apache Hudi
stays until somebody deletes it. A file that pyhudi left on this machine is taken over at once: whoever asks here holds
the table's own guard, so no other pyhudi writer of this table lives.

Seen: Apache Hudi (1.2) creates the file in two steps, a look and a create, so that it may empty a file that was created
in between. It also deletes the file when a client is closed that does not hold the lock. `confirm` notices both.
"""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from pyhudi.errors import Conflict, HudiError, LockLost, NotFound, Unsupported
from pyhudi.format.names import HOODIE
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.lock_files import put_lock, take_away, touch
from pyhudi.storage.protocol import StorageLocation
from pyhudi.storage.uris import LocalUri, parse_uri
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.hold import Hold, Holder, tell_holder
from pyhudi.txn.locks.providers.protocol import Deadline, log, renewed
from pyhudi.txn.locks.providers.settings import FILE_PATH, PROVIDER, LockSettings

NAME = "lock"
EXPIRE = "hoodie.write.lock.filesystem.expire"
_OWNER, _TABLE, _HOST, _ID = "lockThreadName", "table", "host", "id"
_SHOWN_MAX = 200


class FileLock:
    """The lock in `folder`. `expires_ms`: how old a file counts as left behind; None: none does."""

    def __init__(
        self,
        folder: str,
        *,
        table: str,
        expires_ms: int | None,
        settings: LockSettings,
        clock: Clock,
        new_uuid: Callable[[], str],
    ) -> None:
        self._storage, self._path, self._table = LocalStorage(folder), os.path.join(folder, NAME), table
        self._expires_ms, self._settings, self._clock, self._new_uuid = expires_ms, settings, clock, new_uuid

    @classmethod
    def open(
        cls, location: StorageLocation, settings: LockSettings, clock: Clock, new_uuid: Callable[[], str]
    ) -> "FileLock":
        stated = settings.text(FILE_PATH)
        place = parse_uri(stated or location.uri)
        if not isinstance(place, LocalUri):
            raise Unsupported(
                f"option '{PROVIDER}'='{settings.provider.value}': expected a local folder for the lock's file, found "
                f"{place.uri}; set {FILE_PATH} to a folder that all writers share, or take another provider"
            )
        minutes = settings.values.count(EXPIRE, 0, least=0, most=525_600)
        return cls(
            place.root if stated else os.path.join(place.root, HOODIE),
            table=location.uri,
            expires_ms=minutes * 60_000 or None,
            settings=settings,
            clock=clock,
            new_uuid=new_uuid,
        )

    @contextmanager
    def hold(self, purpose: str, now: str, *, wait_ms: int) -> Iterator[Hold]:
        content = self._content(Holder.this_process(purpose, now))
        deadline = Deadline(self._clock, wait_ms, self._settings.pauses)
        while not put_lock(self._path, content):
            if self._clear_dead():
                continue
            if not deadline.left_ms:
                raise self._conflict()
            deadline.pause()

        hold, pid = FileHold(self._storage, self._path, content, self._expires_ms, self._clock), os.getpid()
        every_ms = max(1, (self._expires_ms or 0) // 10)
        try:
            with renewed(hold.confirm, every_ms=every_ms, what=self._path) if self._expires_ms else nullcontext():
                yield hold
        finally:
            if os.getpid() == pid:
                self._release(content)

    def _content(self, holder: Holder) -> bytes:
        """Who holds the lock, under Apache Hudi's names for it, and what tells this file from any other."""
        fields = {
            "lockCreateTime": holder.since, _OWNER: str(holder), _TABLE: self._table, _HOST: holder.host,
            _ID: self._new_uuid(),
        }  # fmt: skip
        return json.dumps(fields).encode()

    def _clear_dead(self) -> bool:
        """Delete the file of a holder that is surely dead, or that has expired. Returns whether the way is free."""
        try:
            content, info = self._storage.get(NAME), self._storage.head(NAME)
        except NotFound:
            return True
        if info is None:
            return True

        is_expired = self._expires_ms is not None and self._clock.now_ms() - info.modified_ms > self._expires_ms
        if not is_expired and not self._is_left_by_us(content):
            return False

        log.warning("%s: taken over from %s, which left it behind", self._path, _holder(content))
        return take_away(self._path, f"{self._path}.{self._new_uuid()}", lambda found: found == content)

    def _is_left_by_us(self, content: bytes) -> bool:
        """Whether a pyhudi writer of this table made the file on this machine. We hold the guard, so it is dead."""
        fields = _fields(content)
        return fields.get(_TABLE) == self._table and fields.get(_HOST) == socket.gethostname() and _ID in fields

    def _release(self, content: bytes) -> None:
        """Give the lock back. A failure here does not fail the write."""
        try:
            take_away(self._path, f"{self._path}.{self._new_uuid()}", lambda found: found == content)
        except HudiError as error:
            log.warning("%s: the lock could not be released; delete the file: %s", self._path, error)

    def _conflict(self) -> Conflict:
        try:
            holder = _holder(self._storage.get(NAME))
        except NotFound:
            holder = "a writer that has just ended"
        ends = f"after {EXPIRE} minutes" if self._expires_ms else f"never by itself, for {EXPIRE} is not set"
        return Conflict(
            f"{self._table}: expected no other writer, found {self._path} held by {holder}; it expires {ends}; wait "
            "for its holder to end, or delete the file once you know that the holder is dead"
        )


@dataclass(frozen=True)
class FileHold:
    """The lock's file, as it was made. `expires_ms`: others may delete the file once it is so old."""

    storage: LocalStorage
    path: str
    content: bytes
    expires_ms: int | None
    clock: Clock

    def confirm(self) -> None:
        """Make sure that the file is ours, and renew its time if it may expire. Raises: LockLost."""
        try:
            found, info = self.storage.get(NAME), self.storage.head(NAME)
        except NotFound:
            info = None
        if info is None:
            raise LockLost(f"{self.path}: expected our lock, found that somebody deleted it; {_NOTHING}")
        if found != self.content:
            raise LockLost(f"{self.path}: expected our lock, found it held by {_holder(found)}; {_NOTHING}")
        if self.expires_ms is None:
            return
        if self.clock.now_ms() - info.modified_ms > self.expires_ms:
            raise LockLost(f"{self.path}: our lock was not renewed in time, and others may take it; {_NOTHING}")
        touch(self.path)


_NOTHING = "nothing was committed: retry from the new snapshot"


def _fields(content: bytes) -> dict[str, object]:
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _holder(content: bytes) -> str:
    """Who made a lock's file. Apache Hudi 1.x leaves its own empty."""
    owner = _fields(content).get(_OWNER)
    if isinstance(owner, str):
        return tell_holder(owner[:_SHOWN_MAX])
    return "a writer that does not say who it is, as Apache Hudi does not" if not content else repr(content[:80])
