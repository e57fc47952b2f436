"""The file of `pyhudi service --status`: one JSON document, which a monitor reads."""

import json
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyhudi.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyhudi.api.service_calls.process import ServiceReport

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


class StatusFile:
    """Keeps the newest report of a run. Behind a symbolic link it is the file that the link names."""

    def __init__(self, path: Path) -> None:
        self.what = f"--status {path}"
        self._path = Path(os.path.realpath(path))

    def check(self) -> None:
        """Raises: Invalid where no file can be written."""
        folder = self._path.parent
        if not os.path.isdir(folder):
            raise Invalid(f"{self.what}: expected its folder to exist, found none at {folder}")
        if os.path.isdir(self._path):
            raise Invalid(f"{self.what}: expected the name of a file, found a folder")
        if os.path.exists(self._path) and not os.path.isfile(self._path):
            raise Invalid(f"{self.what}: expected a file, or none yet, found something else there")
        try:
            with self._beside(""):
                pass
        except OSError as error:
            raise Invalid(f"{self.what}: expected a file that can be written, found {error}") from error

    def keep(self, report: "ServiceReport") -> None:
        """Put the report into the file, as a whole: who reads it sees the one before or this one.

        Raises: OSError.
        """
        with self._beside(json.dumps({**report.document(), "process": os.getpid()}, indent=2)) as written:
            os.replace(written, self._path)

    @contextmanager
    def _beside(self, text: str) -> "Iterator[str]":
        """A new file beside this one, with the rights that any new file has. It is deleted, unless it was renamed."""
        path = f"{self._path.parent}/.{self._path.name}.{os.getpid()}-{os.urandom(4).hex()}"
        descriptor = os.open(path, _NEW_FILE, 0o666)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            yield path
        finally:
            with suppress(FileNotFoundError):
                os.unlink(path)
