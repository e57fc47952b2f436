"""The table's guard: the lock that makes its holder the only pyhudi writer of the table.

This module has the guards of local folders and of memory. The guard of object stores is in `lease.py`.

A lock of the operating system ends with its process. A guard that is held therefore has a living holder. Each write
and service that runs without the guard holds a lock of its own (`RUNNING`), which says that it lives. On some systems
the lock cannot tell two handles of one process apart; a second lock, within the process, does.

Fork: a forked child holds nothing. The child closes its copy of the locked file at once
(`os.register_at_fork`), because an open copy would keep the file locked after the parent's end. A guard's `with`
block that ends in the child leaves the parent's lock alone. Programs that a writer starts get no copy (`O_CLOEXEC`).
"""

import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Protocol, assert_never, runtime_checkable

from pyhudi.errors import Unavailable, Unsupported
from pyhudi.storage.below import refuse_links
from pyhudi.storage.file_locks import try_lock, unlock
from pyhudi.storage.open import open_versioned
from pyhudi.storage.protocol import StorageLocation
from pyhudi.storage.read_only import why_read_only
from pyhudi.storage.uris import LocalUri, MemoryUri, ObjectUri, OtherUri, parse_uri
from pyhudi.timeline.clock import Clock
from pyhudi.txn.locks.hold import TEXT_BYTES_MAX, CertainHold, Held, Hold, Holder
from pyhudi.txn.locks.lease import LeaseGuard

GUARD_FILE = ".hoodie/.pyhudi_guard"
LINE_FILE = ".hoodie/.pyhudi_line"
"""Locked by the first of the writers that wait for the guard. Made when a writer waits for the first time."""
RUNNING = ".hoodie/.pyhudi_running"
"""The folder with a locked file for each action that runs without the guard. The file's name is the instant."""

_OPEN_GUARD = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OPEN_GUARD |= getattr(os, "O_NOFOLLOW", 0)  # or a link's target would be truncated
_TRIES = 10


class Guard(Protocol):
    """The right to write a table, held by one writer at a time."""

    def acquire(self, purpose: str, now: str) -> AbstractContextManager[Hold]:
        """Hold the guard while the context lasts. `purpose` and `now` are shown to writers that find the guard held.

        Not reentrant: a second `acquire` conflicts, also in the same thread.
        Raises: Conflict at once when the guard is held, naming the holder; Unavailable when locks do not work there.
        """


@runtime_checkable
class Line(Protocol):
    """A guard at which waiting writers stand in line."""

    def first_in_line(self) -> AbstractContextManager[None]:
        """Be first in the line while the context lasts. Raises: Conflict while another writer is first."""

    def is_awaited(self) -> bool:
        """Whether a writer stands in the line."""

    def held_by(self) -> str:
        """Who holds the guard now, in which turn. Empty if nobody holds it, or nobody can say."""


@runtime_checkable
class Lives(Protocol):
    """A guard that knows which actions are running. A dead one is noticed at once, before its heartbeat ends."""

    def running(self, requested: str) -> AbstractContextManager[None]:
        """Run the action of this instant, while the context lasts. Raises: Conflict while another process runs it."""

    def is_running(self, requested: str) -> bool | None:
        """Whether a process runs the action of this instant.

        None when nobody can say, because the action has no locked file here: the action was begun where this
        machine's locks do not reach, or its file has been removed.
        """

    def has_died(self, requested: str) -> bool:
        """Whether the action of this instant was begun here, and its process has certainly ended before its end."""

    def known(self) -> list[str]:
        """The instants of the actions that run, or whose process has ended before their end."""


class MemoryGuard:
    """The guard of `memory://NAME`."""

    def __init__(self, name: str) -> None:
        self._key = f"memory://{name}"

    def first_in_line(self) -> AbstractContextManager[None]:
        return held_in_process(f"{self._key}#line", Holder.this_process("waiting", ""), table=self._key)

    def is_awaited(self) -> bool:
        return f"{self._key}#line" in _holders

    def held_by(self) -> str:
        return _named(_holders.get(self._key))

    @contextmanager
    def acquire(self, purpose: str, now: str) -> Iterator[Hold]:
        with held_in_process(self._key, Holder.this_process(purpose, now), table=self._key):
            yield CertainHold()

    @contextmanager
    def running(self, requested: str) -> Iterator[None]:
        key = f"{self._key}#{requested}"
        with held_in_process(key, Holder.this_process(requested, ""), table=self._key):
            _died.add(key)  # until it ends well
            yield
            _died.discard(key)

    def is_running(self, requested: str) -> bool | None:
        return f"{self._key}#{requested}" in _holders  # no other process reaches this memory

    def has_died(self, requested: str) -> bool:
        key = f"{self._key}#{requested}"
        return key in _died and key not in _holders

    def known(self) -> list[str]:
        return [key.removeprefix(f"{self._key}#") for key in list(_died) if key.startswith(f"{self._key}#")]


class LocalGuard:
    """The guard of a table in a local folder: a locked file in `.hoodie`, which is never deleted.

    Acquiring it makes the file and, for a table that is only being created, its folder.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.abspath(root)

    @contextmanager
    def acquire(self, purpose: str, now: str) -> Iterator[Hold]:
        holder = Holder.this_process(purpose, now)
        with self._locked("", GUARD_FILE, holder):
            yield CertainHold()

    def first_in_line(self) -> AbstractContextManager[None]:
        return self._locked("#line", LINE_FILE, Holder.this_process("waiting", ""))

    def is_awaited(self) -> bool:
        return f"{self._key}#line" in _holders or bool(_is_locked(self._path(LINE_FILE)))

    def held_by(self) -> str:
        holder = _holders.get(self._key)
        if holder is None:
            with suppress(OSError), open(self._path(GUARD_FILE), "rb") as file:
                holder = Holder.decode(file.read(TEXT_BYTES_MAX))
        return _named(holder)

    @contextmanager
    def running(self, requested: str) -> Iterator[None]:
        file = f"{RUNNING}/{requested}"
        with self._locked(f"#{requested}", file, Holder.this_process(requested, "")):
            yield
            with suppress(OSError):  # at worst a file stays that nobody has locked
                os.unlink(self._path(file))

    def is_running(self, requested: str) -> bool | None:
        return True if f"{self._key}#{requested}" in _holders else _is_locked(self._path(f"{RUNNING}/{requested}"))

    def has_died(self, requested: str) -> bool:
        return self.is_running(requested) is False

    def known(self) -> list[str]:
        try:
            return os.listdir(self._path(RUNNING))
        except OSError:
            return []

    @property
    def _key(self) -> str:
        return os.path.realpath(self._root)

    def _path(self, file: str) -> str:
        return os.path.join(self._root, *file.split("/"))

    @contextmanager
    def _locked(self, what: str, file: str, holder: Holder) -> Iterator[None]:
        in_process = held_in_process(f"{self._key}{what}", holder, table=self._root)
        with in_process, _locked_file(self._path(file), self._root, holder):
            yield


class NoGuard:
    """Stands for the guard of a table in a storage that pyhudi only reads. Nobody can hold this guard."""

    def __init__(self, parsed: OtherUri) -> None:
        self._parsed = parsed

    def acquire(self, purpose: str, now: str) -> AbstractContextManager[Hold]:
        raise Unsupported(f"{self._parsed.uri}: {why_read_only(self._parsed.scheme)}")


def open_guard(location: StorageLocation, *, clock: Clock, new_uuid: Callable[[], str]) -> Guard:
    """The guard of the table at a location. No request is made before the guard is acquired.

    `clock`, `new_uuid`: used by the lease of an object store only.
    """
    parsed = parse_uri(location.uri)
    match parsed:
        case LocalUri(root):
            return LocalGuard(root)
        case MemoryUri(name):
            return MemoryGuard(name)
        case ObjectUri():
            return LeaseGuard(open_versioned(location), table=location.uri, clock=clock, new_uuid=new_uuid)
        case OtherUri():
            return NoGuard(parsed)
        case _:
            assert_never(parsed)


# The guards that this process holds. `_lock` is held only to look at them and to change them, never while a table is
# being written.
_lock = threading.Lock()
_holders: dict[str, Holder] = {}
_died: set[str] = set()
"""Actions on tables in memory that run, or ended by an error."""
_descriptors: set[int] = set()


def _forget_parent() -> None:
    """Make a forked child hold nothing. Its copies of the locked files are closed: they would keep the files locked."""
    global _lock
    _lock = threading.Lock()

    _holders.clear()
    for descriptor in _descriptors:
        with suppress(OSError):
            os.close(descriptor)
    _descriptors.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)


def _named(holder: Holder | None) -> str:
    return str(holder) if holder else ""


def _conflict(table: str, holder: Holder | None) -> Held:
    return Held(
        f"{table}: expected no other writer, found the table held by {holder.told if holder else 'another process'}; "
        "wait for it to end, then retry from the new snapshot",
        holder=_named(holder),
    )


@contextmanager
def held_in_process(key: str, holder: Holder, *, table: str) -> Iterator[None]:
    """Hold a lock of this process while the context lasts. Raises: Held, naming the holder, while another holds it."""
    with _lock:
        other = _holders.setdefault(key, holder)
    if other is not holder:
        raise _conflict(table, other)

    try:
        yield
    finally:
        with _lock:
            if _holders.get(key) is holder:  # a forked child has forgotten its parent's holders
                del _holders[key]


@contextmanager
def _locked_file(path: str, root: str, holder: Holder) -> Iterator[None]:
    try:
        descriptor = _lock_file(path, root)
    except OSError as error:
        raise Unavailable(
            f"{path}: cannot lock it: {error.strerror or error}; pyhudi writes only where files can be locked"
        ) from error

    try:
        _descriptors.add(descriptor)
        _write_text(descriptor, holder.encode())
        yield
    finally:
        # A forked child must not unlock the file of its parent.
        if os.getpid() == holder.pid:
            _descriptors.discard(descriptor)
            _write_text(descriptor, b"")
            unlock(descriptor)
            os.close(descriptor)


def _lock_file(path: str, root: str) -> int:
    """Open and lock the guard's file. Returns its descriptor.

    A file that was deleted after it was opened and before it was locked guards nothing. Then the next try begins.
    """
    refuse_links(root, os.path.relpath(path, root))
    os.makedirs(os.path.dirname(path), exist_ok=True)

    for _ in range(_TRIES):
        descriptor = os.open(path, _OPEN_GUARD, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unavailable(f"{path}: expected a regular file to lock, found none; remove what is there")

            _keep_readers_out(descriptor, os.path.dirname(path))
            if not try_lock(descriptor):
                raise _conflict(root, Holder.decode(_read_text(descriptor)))

            # The lock counts only if `path` still names the file that is locked.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)

    raise Unavailable(f"{path}: expected to stay, found it deleted {_TRIES} times; nothing may delete it")


def _is_locked(path: str) -> bool | None:
    """Whether somebody has locked a file; None where there is no file. To find out, the file is locked for a moment."""
    try:
        descriptor = os.open(path, _OPEN_GUARD & ~os.O_CREAT)
    except OSError:
        return None

    try:
        is_free = try_lock(descriptor)
        if is_free:
            unlock(descriptor)
        return not is_free
    finally:
        os.close(descriptor)


def _keep_readers_out(descriptor: int, folder: str) -> None:
    """Let only users open the locked file who may write in its folder, because whoever can read a file can lock it.

    A file of another user stays as it is: its owner sees to its mode.
    """
    if sys.platform == "win32":
        return

    file, parent = os.fstat(descriptor), os.stat(folder)
    if file.st_uid != os.geteuid():
        return

    if file.st_gid != parent.st_gid:
        with suppress(OSError):
            os.fchown(descriptor, -1, parent.st_gid)
            file = os.fstat(descriptor)

    is_of_group = file.st_gid == parent.st_gid and bool(parent.st_mode & 0o020)
    mode = 0o600 | (0o060 if is_of_group else 0) | (0o006 if parent.st_mode & 0o002 else 0)
    if file.st_mode & 0o777 != mode:
        with suppress(OSError):
            os.fchmod(descriptor, mode)


def _read_text(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, TEXT_BYTES_MAX)


def _write_text(descriptor: int, text: bytes) -> None:
    """Replace the text in the locked file. The text is only informative, so a full disk does not stop the writer."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, text)
