"""A local file whose being there is a lock: taking it away only if it is still the one that was looked at."""

import os
from collections.abc import Callable
from contextlib import suppress

from pyhudi.storage.local_files import delete_checksum, write_errors


def take_away(path: str, aside: str, is_expected: Callable[[bytes], bool]) -> bool:
    """Delete a file if its content is as expected. Returns whether it was.

    The file is first moved to `aside`, a name of nobody else, in one step: another process may have put a new file
    there since the caller looked. That one is moved back, unless a third file has taken its place by then.
    """
    with write_errors(path, "delete"):
        try:
            os.rename(path, aside)
        except FileNotFoundError:
            return False

        with open(aside, "rb") as file:
            is_as_expected = is_expected(file.read())
        if is_as_expected:
            delete_checksum(path)
        else:
            with suppress(FileExistsError):
                os.link(aside, path)
        os.unlink(aside)
        return is_as_expected


def touch(path: str) -> None:
    """Set a file's time of modification to now. A file that is gone stays gone."""
    with write_errors(path, "touch"), suppress(FileNotFoundError):
        os.utime(path)
