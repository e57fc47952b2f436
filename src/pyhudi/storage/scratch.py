"""Folders of this machine for what a process puts aside for a while, such as rows that memory has no room for.

A folder is alive while a process holds the lock of a file in it, which the system takes from a process that dies. What
the dead left is deleted by the next process that makes such a folder or writes to a table (`sweep_scratch`).
"""

import mmap
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pyhudi.errors import Invalid, Unavailable
from pyhudi.storage.file_locks import try_lock

PREFIXES: Final = ("pyhudi-staged-", "pyhudi-rows-")
"""How the names of these folders begin: of rows on their way into a table, and of rows that a plan of Spark scans."""

LOCK_FILE: Final = ".lock"

_UNLOCKED_S: Final = 86_400.0
"""A folder without a lock is being made, or an earlier release made it: it is left alone for a day."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_TRIES = 10

_swept: set[str] = set()
_descriptors: set[int] = set()
_lock = threading.Lock()


class ScratchFolder:
    """A folder of this process alone (mode 0700), until it is discarded or the process ends, however it ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """As `make` gives it. `descriptor`: of the locked file."""
        self.path, self._descriptor, self._pid = path, descriptor, os.getpid()
        self._is_there = True

    @classmethod
    def make(cls, prefix: str, parent: str | None = None, *, setting: str) -> "ScratchFolder":
        """A new folder. `parent`: where; None: in the system's folder for temporary files. Sweeps there first.

        `setting`: the name of what tells another folder, for messages.

        Raises: Invalid where no folder can be made; Unavailable where files cannot be locked.
        """
        assert prefix in PREFIXES
        folder = scratch_parent(parent, setting)
        sweep_scratch(folder)
        for _ in range(_TRIES):
            try:
                path = tempfile.mkdtemp(prefix=prefix, dir=folder)
            except OSError as error:
                raise Invalid(
                    f"{folder}: expected a folder for rows that are put aside, found that none can be made there: "
                    f"{error.strerror or error}; name another folder ('{setting}')"
                ) from error
            descriptor = _lock_new(path)
            if descriptor is not None:
                return cls(Path(path), descriptor)
        raise Unavailable(f"{folder}: new folders were deleted {_TRIES} times; nothing else may delete them")

    def discard(self) -> None:
        """Delete the folder; harmless in a forked child, whose folder it is not, and when done twice."""
        if not self._is_there or os.getpid() != self._pid:
            return
        self._is_there = False
        _descriptors.discard(self._descriptor)
        if os.name == "nt":  # an open file cannot be deleted there
            os.close(self._descriptor)
            shutil.rmtree(self.path, ignore_errors=True)
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._descriptor)


def scratch_parent(parent: str | None, setting: str) -> str:
    """The folder in which to make others. Raises: Invalid for one that is named and is none, and where no folder is
    named and the system has none for temporary files."""
    if parent is not None and not os.path.isdir(parent):
        raise Invalid(
            f"'{setting}'={parent!r}: expected a folder for rows that are put aside, found none; make it, or name "
            "another"
        )
    try:
        return os.path.abspath(parent if parent is not None else tempfile.gettempdir())
    except FileNotFoundError as error:
        raise Invalid(
            "expected a folder for rows that are put aside, found that this system has none for temporary files "
            f"({error.strerror or error}); name one ('{setting}', or the environment variable TMPDIR)"
        ) from error


def sweep_once(parent: str | None = None, *, setting: str) -> None:
    """`sweep_scratch`, when this process has not done so yet. A system without temporary files has nothing to sweep.

    Raises: Invalid for a folder that is named and is none.
    """
    try:
        folder = scratch_parent(parent, setting)
    except Invalid:
        if parent is not None:
            raise
        return
    with _lock:
        is_new = folder not in _swept
        _swept.add(folder)
    if is_new:
        sweep_scratch(folder)


def sweep_scratch(folder: str) -> None:
    """Delete this user's folders below `folder` whose processes have died. What cannot be deleted stays.

    Links are not followed, and what belongs to another user is left alone. Cost: one listing.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIXES):
                with suppress(OSError):
                    _sweep_one(entry)


def map_file(path: str) -> mmap.mmap:
    """A file's bytes, read when they are looked at. Raises: Unavailable."""
    with read_errors(path), open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@contextmanager
def read_errors(path: str) -> Iterator[None]:
    """Raises: Unavailable for what keeps a file of rows that were put aside from being read."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise Unavailable(
            f"{path}: cannot read rows that were put aside: {error}; nothing else may delete or change them"
        ) from error


def let_go(mapped: mmap.mmap) -> None:
    """Give the memory of a mapped file back to the system; what is looked at again is read again."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _lock_new(folder: str) -> int | None:
    """The descriptor of the lock of a folder just made; None where a sweeper came first."""
    path = os.path.join(folder, LOCK_FILE)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o600)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"{path}: cannot make it: {error.strerror or error}") from error
    try:
        if try_lock(descriptor) and os.path.samestat(os.fstat(descriptor), os.lstat(path)):
            _descriptors.add(descriptor)
            return descriptor
    except FileNotFoundError:
        pass
    except OSError as error:
        os.close(descriptor)
        shutil.rmtree(folder, ignore_errors=True)
        raise Unavailable(
            f"{path}: cannot lock it: {error.strerror or error}; name a folder on a file system with locks"
        ) from error
    os.close(descriptor)
    return None


def _sweep_one(entry: "os.DirEntry[str]") -> None:
    if not entry.is_dir(follow_symlinks=False):
        return
    found = entry.stat(follow_symlinks=False)
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return
    try:
        descriptor = os.open(os.path.join(entry.path, LOCK_FILE), os.O_RDWR | _NO_LINK)
    except FileNotFoundError:
        if time.time() - found.st_mtime > _UNLOCKED_S:
            shutil.rmtree(entry.path, ignore_errors=True)
        return
    try:
        is_dead = stat.S_ISREG(os.fstat(descriptor).st_mode) and try_lock(descriptor)
        if is_dead and os.name != "nt":
            shutil.rmtree(entry.path, ignore_errors=True)
    finally:
        os.close(descriptor)
    if is_dead and os.name == "nt":  # an open file cannot be deleted there
        shutil.rmtree(entry.path, ignore_errors=True)


def _forget_parent() -> None:
    """In a forked child: its copies of the locked files must not keep the parent's folders alive."""
    global _lock
    _lock = threading.Lock()
    for descriptor in _descriptors:
        with suppress(OSError):
            os.close(descriptor)
    _descriptors.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
