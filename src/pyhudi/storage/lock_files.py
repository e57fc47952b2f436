"""A local file whose being there is a lock: making it, and taking it away only if it is still the one looked at.

Hadoop keeps a checksum beside each file, here `.lock.crc`. It is never deleted here, though it may be of a file of
before: a writer of Apache Hudi may be making it. That writer would fail, and leave its lock's file behind for ever.

Seen: Apache Hudi 1.2 ends in "chmod: cannot access '.lock.crc'" then, and takes its own file for another's lock. A lock
that does not fit its checksum it takes for held, as it is.
"""

import os
from collections.abc import Callable
from contextlib import suppress

from pyhudi.storage.local_files import link_new, sync_folder, temporary_file, write_errors


def put_lock(path: str, content: bytes) -> bool:
    """Make a file, whole and in one step. Returns False if there is one. The folder must be there."""
    with write_errors(path, "create"):
        if os.path.lexists(path):
            return False
        with temporary_file(path, content) as temporary:
            is_new = link_new(temporary, path, content)
        sync_folder(os.path.dirname(path))
        return is_new


def take_away(path: str, aside: str, is_expected: Callable[[bytes], bool]) -> bool:
    """Delete a file if its content is as expected. Returns whether it was.

    The file is looked at, and then moved to `aside`, a name of nobody else, in one step: another process may have put a
    new file there in between. That one is moved back, unless a third file has taken its place by then. A file that is
    not as expected at the first look is not moved: its maker may be looking whether it is there.
    """
    with write_errors(path, "delete"):
        try:
            if not is_expected(_content(path)):
                return False
            os.rename(path, aside)
        except FileNotFoundError:
            return False

        is_as_expected = is_expected(_content(aside))
        if not is_as_expected:
            with suppress(FileExistsError):
                os.link(aside, path)
        os.unlink(aside)
        return is_as_expected


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def touch(path: str) -> None:
    """Set a file's time of modification to now. A file that is gone stays gone."""
    with write_errors(path, "touch"), suppress(FileNotFoundError):
        os.utime(path)
