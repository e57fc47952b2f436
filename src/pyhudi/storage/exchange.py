"""Exchanges two folders of this machine in one step, so that at every moment both names lead to a folder."""

import ctypes
import errno
import os
import sys

from pyhudi.errors import Unavailable, Unsupported

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # Linux: renameat2
_RENAME_SWAP = 2  # macOS: renamex_np
_MISSING = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV)


def exchange_folders(one: str, other: str) -> None:
    """Let two folders of one file system change names. A reader, or a crash, finds one folder or the other.

    Raises: Unsupported if the system or the file system cannot do it in one step (Windows, some network file systems);
    Unavailable if it fails.
    """
    failure = _exchange(os.fsencode(one), os.fsencode(other))
    if failure in _MISSING:
        raise Unsupported(
            f"{one}: expected a file system on which two folders can change names in one step, found none; "
            "write to another path, or delete the table first"
        )
    if failure:
        raise Unavailable(f"{one}: cannot replace {other}: {os.strerror(failure)}")
    for folder in {os.path.dirname(one), os.path.dirname(other)}:
        _sync(folder)


def _exchange(one: bytes, other: bytes) -> int:
    """Exchange two names. Answers 0, or the system's error number."""
    if os.name != "posix":
        return errno.ENOSYS
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux" and hasattr(libc, "renameat2"):
        answer = libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE)
    elif sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        answer = libc.renamex_np(one, other, _RENAME_SWAP)
    else:
        return errno.ENOSYS
    return ctypes.get_errno() if answer else 0


def _sync(folder: str) -> None:
    descriptor = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
