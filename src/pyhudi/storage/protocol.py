"""The small protocol through which every byte of a table passes.

Paths are relative to the storage's root (the table's base path), with `/` between parts and
no leading `/`; the root itself is `""`. Every storage obeys one contract, which
`src/pyhudi/testing/storage_contract.py` states as tests:

* A path that is absolute, or has a part that is empty, `.` or `..`, is Invalid in every call: `check_file_path` and
  `check_folder_path` of `pyhudi/storage/paths.py` see to it.
* A change that needs a folder where a file is, or a file where a folder is, is Invalid. To a reader such a file is
  absent.
* An object store has no folders: there, `a` and `a/b` may both be files, and no call looks for such a pair.
* Folders are made as files need them. A folder that has lost its last file may stay or go.
* If a change raises Unavailable, it may have landed all the same.
* Threads may share a storage.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple, Protocol, runtime_checkable

from pyhudi.errors import hide_secrets


class FileInfo(NamedTuple):  # of all values the one that is made most often, and a tuple is made fastest
    """A file as a listing shows it.

    Units: `size_bytes` bytes; `modified_ms` milliseconds since the Unix epoch.
    """

    path: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class StorageLocation:
    """Where a table is. It is picklable, so that it can be sent to tasks; `open_storage` turns it into a `Storage`.

    `uri`: a plain local path, `memory://NAME`, or the URI of another store, such as `s3://bucket/table`.
    `options`: pairs, sorted by name; they may be secrets and are not shown.
    """

    uri: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"StorageLocation({hide_secrets(self.uri)!r})"

    @property
    def is_near(self) -> bool:
        """Whether the table is on this machine. Requests are fast then, and doing several at once gains nothing."""
        return "://" not in self.uri or self.uri.startswith("memory://")


class Storage(Protocol):
    """Bytes under one root. A change happens as a whole or not at all; no file is ever seen half written."""

    @property
    def location(self) -> StorageLocation:
        """The location from which `open_storage` opens the same storage again."""

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes `[start, end)` of a file, as far as the file has them; the whole file by default.

        Raises: NotFound if there is no such file; Unavailable if the store fails. A range that begins below zero, or
        ends before it begins, is an AssertionError (`check_range` of `pyhudi/storage/paths.py`).
        """

    def open_input(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A seekable binary file to read from, for readers that want ranges (Parquet footers, HFiles).

        A caller that enters the context, but cannot leave it, closes the file instead. Seek only within the file.
        Raises: NotFound if there is no such file, at the call or on entering the context.
        """

    def head(self, path: str) -> FileInfo | None:
        """Size and modification time of a file, or None if there is no such file. A folder is not a file."""

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        """Files in the folder `prefix`, with `recursive` also below it, sorted by path. No files for a missing folder.

        A file that comes or goes meanwhile may be listed or not. A file that is not yet visible is never listed.
        """

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Folders directly in the folder `prefix`, as paths relative to the root, sorted."""

    def make_folder(self, path: str) -> None:
        """Make a folder and the folders above it. On a storage without folders there is nothing to do."""

    def put_new(self, path: str, content: bytes) -> bool:
        """Create a file with all of `content`, only if it is absent. If it exists: False, and no change.

        If several callers create the same file at once, exactly one of them gets True.
        """

    def put(self, path: str, content: bytes) -> None:
        """Create or replace a file with all of `content`."""

    def put_stream(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A binary file to write. It becomes visible, as a whole, when the context ends without an exception.

        An existing file of this name is replaced. On an exception nothing becomes visible. Closing the file
        earlier is allowed, and changes nothing.
        """

    def delete(self, path: str) -> bool:
        """Delete a file. False if there was none."""

    def delete_prefix(self, prefix: str) -> None:
        """Delete the folder `prefix` and everything in it. If it is absent, there is nothing to do.

        This is not one step: a crash may leave some of the files.
        """

    def delete_many(self, paths: Iterable[str]) -> None:
        """Delete files. Files that are absent already are passed over."""


@runtime_checkable
class SweepableStorage(Protocol):
    """A storage on which a change that dies may leave something behind, such as a temporary file."""

    def sweep(self, folder: str, *, written_before_ms: int) -> int:
        """Delete what dead changes left directly in a folder, if it was last written before a time.

        Such leftovers are in no listing, and no other call touches them. Returns how many files were deleted.
        """


def sweep(storage: Storage, folder: str, *, written_before_ms: int) -> int:
    """As `SweepableStorage.sweep`. For a storage whose changes leave nothing behind: 0, without a request."""
    if not isinstance(storage, SweepableStorage):
        return 0
    return storage.sweep(folder, written_before_ms=written_before_ms)


@runtime_checkable
class DatedStorage(Protocol):
    """A storage that lets a caller choose when a file was modified. Object stores do not."""

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Say that a file was modified at a time. Raises: Unavailable if there is no such file."""


def set_modified(storage: Storage, path: str, modified_ms: int) -> None:
    """As `DatedStorage.set_modified`. Does nothing for a storage that keeps its own times."""
    if isinstance(storage, DatedStorage):
        storage.set_modified(path, modified_ms)


@dataclass(frozen=True, slots=True)
class FileVersion:
    """The version of a file's content, unlike any other version's: S3 and Azure have a tag, Google a generation."""

    tag: str | None
    generation: str | None


class VersionedStorage(Protocol):
    """The calls that a lease needs beside `Storage`: they replace a file only if nobody else has replaced it.

    Local disks have locks instead.
    """

    def get_versioned(self, path: str) -> tuple[bytes, FileVersion] | None:
        """A file's content and version, or None if there is no such file."""

    def put_if(self, path: str, content: bytes, expected: FileVersion | None) -> FileVersion | None:
        """Put a file if its version is still `expected`; for None, if it is absent. Answers the new version, or None.

        The request is sent once, and not tried again. Raises: Unavailable; the put may have landed then.
        """
