"""A table's bytes in any store that fsspec has a driver for, such as HDFS. For reading only.

Nothing is changed through fsspec. Its drivers do not promise that only one of two writers creates a file, nor that a
file is seen whole or not at all. Without these promises two writers could destroy a table (`read_only.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, BinaryIO, NoReturn, cast

import fsspec

from pyhudi.errors import Invalid, NotFound, Unavailable, Unsupported, hide_secrets, shown_cause
from pyhudi.storage.object_files import TAIL_BYTES, ObjectInput
from pyhudi.storage.paths import check_file_path, check_folder_path, check_range
from pyhudi.storage.protocol import FileInfo, StorageLocation
from pyhudi.storage.read_only import why_read_only
from pyhudi.storage.uris import OtherUri

_TIMES = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")
"""The names that drivers give to a listed file's modification time."""


def open_fsspec(parsed: OtherUri, location: StorageLocation) -> "FsspecStorage":
    """The storage of a location. The options go to fsspec's driver. Listings are not cached.

    Raises: Unsupported for a scheme that fsspec does not know, or whose driver is not installed.
    """

    options: dict[str, Any] = dict(location.options)
    try:
        system, root = fsspec.core.url_to_fs(
            location.uri, skip_instance_cache=True, use_listings_cache=False, **options
        )  # fmt: skip
    except (ValueError, ImportError) as error:
        raise Unsupported(
            f"path '{location.uri}': storage '{parsed.scheme}' is not supported: {error}; expected a local path, "
            "'file:///...', 'memory://NAME', s3://, gs://, abfss://, az://, or what fsspec has a driver for"
        ) from shown_cause(error)
    except TypeError as error:
        raise Invalid(f"storage_options of '{location.uri}': {error}") from shown_cause(error)
    except OSError as error:
        raise Unavailable(f"{location.uri}: cannot connect: {error}; mend that and call again") from shown_cause(error)

    return FsspecStorage(system, root, location, parsed.scheme)


class FsspecStorage:
    """Files below `root`, a path of fsspec's file system `system`. Read only: every change is Unsupported."""

    def __init__(self, system: Any, root: str, location: StorageLocation, scheme: str) -> None:
        self._system, self._location, self._scheme = system, location, scheme
        self._base = root.rstrip("/") + "/"

    def __repr__(self) -> str:
        return f"FsspecStorage({hide_secrets(self._location.uri)!r})"

    @property
    def location(self) -> StorageLocation:
        return self._location

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        check_range(start, end)
        size_bytes = self._size(path)
        stop = size_bytes if end is None else min(end, size_bytes)
        return self._fetch(path, start, stop) if start < stop else b""

    def open_input(self, path: str) -> BinaryIO:
        size_bytes = self._size(path)
        tail = self._fetch(path, max(0, size_bytes - TAIL_BYTES), size_bytes) if size_bytes else b""
        return cast(BinaryIO, ObjectInput(lambda start, end: self._fetch(path, start, end), size_bytes, tail))

    def head(self, path: str) -> FileInfo | None:
        full = self._base + check_file_path(path)
        with suppress(NotFound), _errors(self._shown(path)):
            info = self._system.info(full)
            return self._info(path, info) if info["type"] == "file" else None
        return None

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        full = self._base + check_folder_path(prefix)
        with suppress(NotFound), _errors(self._shown(prefix)):
            self._system.invalidate_cache()
            found = self._system.find(full, detail=True).values() if recursive else self._entries(prefix)
            files = [self._info(self._path(entry), entry) for entry in found if entry["type"] == "file"]
            above = f"{prefix}/" if prefix else ""
            return iter(sorted((file for file in files if file.path.startswith(above)), key=lambda file: file.path))
        return iter(())

    def list_folders(self, prefix: str) -> Iterator[str]:
        check_folder_path(prefix)
        with suppress(NotFound), _errors(self._shown(prefix)):
            self._system.invalidate_cache()
            folders = [self._path(entry) for entry in self._entries(prefix) if entry["type"] == "directory"]
            return iter(sorted(folders))
        return iter(())

    def make_folder(self, path: str) -> None:
        self._refuse(check_folder_path(path))

    def put_new(self, path: str, content: bytes) -> bool:
        self._refuse(check_file_path(path))

    def put(self, path: str, content: bytes) -> None:
        self._refuse(check_file_path(path))

    def put_stream(self, path: str) -> AbstractContextManager[BinaryIO]:
        self._refuse(check_file_path(path))

    def delete(self, path: str) -> bool:
        self._refuse(check_file_path(path))

    def delete_prefix(self, prefix: str) -> None:
        self._refuse(check_folder_path(prefix))

    def delete_many(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._refuse(check_file_path(path))

    def _refuse(self, path: str) -> NoReturn:
        raise Unsupported(f"{self._shown(path)}: cannot change it: {why_read_only(self._scheme)}")

    def _size(self, path: str) -> int:
        full = self._base + check_file_path(path)
        with _errors(self._shown(path)):
            info = self._system.info(full)
        if info["type"] != "file":
            raise NotFound(f"{self._shown(path)}: expected a file, found a folder")
        return int(info["size"])

    def _fetch(self, path: str, start: int, end: int) -> bytes:
        with _errors(self._shown(path)):
            return bytes(self._system.cat_file(self._base + path, start=start, end=end))

    def _entries(self, prefix: str) -> Sequence[Mapping[str, Any]]:
        """The entries of a folder. fsspec lists a file as an entry of itself; that entry is left out."""
        full = (self._base + prefix).rstrip("/")
        found = self._system.ls(full or "/", detail=True)
        return [entry for entry in found if entry["name"].rstrip("/") != full]

    def _path(self, entry: Mapping[str, Any]) -> str:
        name: str = self._system._strip_protocol(entry["name"]).rstrip("/")
        if not name.startswith(self._base):
            raise Unavailable(f"{self._location.uri}: expected listings below '{self._base}', found '{name}'")
        return name[len(self._base) :]

    def _info(self, path: str, entry: Mapping[str, Any]) -> FileInfo:
        modified = next((entry[name] for name in _TIMES if entry.get(name) is not None), None)
        if modified is None:
            modified = self._system.modified(self._base + path)
        return FileInfo(path, int(entry["size"]), _milliseconds(modified))

    def _shown(self, path: str) -> str:
        return f"{self._location.uri}/{path}" if path else self._location.uri


def _milliseconds(modified: float | str | datetime) -> int:
    """Milliseconds since the epoch. Drivers give seconds, ISO text, or a time; without a zone, the time is in UTC."""
    if isinstance(modified, str):
        modified = datetime.fromisoformat(modified)
    if isinstance(modified, datetime):
        modified = (modified if modified.tzinfo is not None else modified.replace(tzinfo=UTC)).timestamp()
    return int(modified * 1000)


@contextmanager
def _errors(shown: str) -> Iterator[None]:
    """Turn the errors of drivers into what they mean for a reader."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise NotFound(f"{shown}: expected a file, found none") from shown_cause(error)
    except NotImplementedError as error:
        raise Unsupported(f"{shown}: fsspec's driver cannot do this: {error!r}") from shown_cause(error)
    except OSError as error:
        raise Unavailable(f"{shown}: cannot read it: {error}; mend that and call again") from shown_cause(error)
