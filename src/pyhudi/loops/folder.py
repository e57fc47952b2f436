"""The folder for compiled loops, into which no other user could have put a file.

numba's cache files are pickles: reading one runs code that is in it. So a folder is used only if this user or root owns
it and every folder above it, and if nobody else may write there. It must hold no links, and no files of other users.
"""

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "PYHUDI_CACHE_DIR"

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def find_folder(version: str) -> tuple[Path | None, list[str]]:
    """The folder for the compiled loops of a version of numba and Python, and why other folders were refused.

    Tried in this order: the folder that the user names, or else the user's cache folder; then a temporary folder. The
    folder is made if need be. None if no folder is safe and usable.
    """
    refused: list[str] = []
    for named in _candidates():
        folder = Path(os.path.realpath(named.parent)) / named.name  # a link above it could be changed later
        reason = _prepare(folder, folder / version)
        if reason is None:
            return folder / version, refused
        refused.append(reason)
    return None, refused


def _candidates() -> Iterator[Path]:
    named = os.environ.get(VARIABLE)
    if named:
        yield Path(os.path.abspath(os.path.expanduser(named)))
    else:
        shared = os.environ.get("XDG_CACHE_HOME", "")
        home = os.path.expanduser("~")
        if os.path.isabs(shared):
            yield Path(shared) / "pyhudi"
        elif os.path.isabs(home):
            yield Path(home) / ".cache" / "pyhudi"
    owner = os.geteuid() if hasattr(os, "geteuid") else "user"
    yield Path(tempfile.gettempdir()) / f"pyhudi-{owner}"


def _prepare(folder: Path, versioned: Path) -> str | None:
    """Make the missing folders, and check all of them. Answers why the folder cannot be used, or None."""
    try:
        _make(folder)
        for above in folder.parents:
            _refuse_others(above, os.lstat(above), may_be_sticky=True)
        for each in (folder, versioned):
            _make(each)  # nothing is made in a folder that was not checked
            _refuse_strangers(each)
        if not os.access(versioned, os.W_OK) and not any(versioned.iterdir()):
            return f"{versioned} cannot be written"
    except OSError as e:
        return f"{e.filename or folder}: {e.strerror or e}"
    except _Unsafe as e:
        return str(e)
    return None


class _Unsafe(Exception):
    """Another user could have put a file into the folder."""


def _make(folder: Path) -> None:
    """Make a folder, and the missing folders above it, for this user alone."""
    if os.path.lexists(folder):
        return
    _make(folder.parent)
    with contextlib.suppress(FileExistsError):  # another process made it meanwhile; it is checked next
        folder.mkdir(mode=0o700)


def _refuse_strangers(folder: Path) -> None:
    """Refuse a folder that belongs to another user, that others may write to, or that holds a link or others' files."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise _Unsafe(f"{folder} is no folder, or a link")
    _refuse_others(folder, found, may_be_sticky=False)
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # another process renamed or deleted it meanwhile
            if stat.S_ISLNK(status.st_mode):
                raise _Unsafe(f"{entry.path} is a link")
            _refuse_others(Path(entry.path), status, may_be_sticky=False)


def _refuse_others(path: Path, status: os.stat_result, *, may_be_sticky: bool) -> None:
    if sys.platform == "win32":
        return  # the user's profile is closed to others by its access list, which mode bits do not show
    if status.st_uid not in (0, os.geteuid()):
        raise _Unsafe(f"{path} belongs to user {status.st_uid}")
    is_sticky = bool(status.st_mode & stat.S_ISVTX) and may_be_sticky
    if status.st_mode & _OTHERS_WRITE and not is_sticky:
        raise _Unsafe(f"{path} can be written by others (mode {stat.S_IMODE(status.st_mode):o})")
