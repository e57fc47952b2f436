"""Locks of the operating system on open files: they end with the process that holds them, however it ends."""

import os
import sys

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_LOCKED_BYTE = 1 << 30  # Windows locks bytes, and keeps others from reading them: not those of the text

if sys.platform == "win32":

    def try_lock(descriptor: int) -> bool:
        """Lock an open file, unless somebody else has. Raises: OSError where files cannot be locked."""
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Let others lock it."""
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:

    def try_lock(descriptor: int) -> bool:
        """Lock an open file, unless somebody else has. Raises: OSError where files cannot be locked."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Let others lock it."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)
