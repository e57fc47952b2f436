"""The small protocol through which every byte of a table passes.

Paths are relative to the storage's root (the table's base path), with `/` between parts and
no leading `/`; the root itself is `""`. Every storage obeys one contract, which
`tests/conformance/storage_contract.py` states as tests:

* A path that is absolute, or has a part that is empty, `.` or `..`, is Invalid in every call. So is a change
  that needs a folder where a file is, or a file where a folder is; to a reader such a file is just absent.
* A store of objects has no folders: there, `a` and `a/b` may both be files, and no call looks for such a pair.
* Folders are made as files need them. One that has lost its last file may stay or go.
* Unavailable from a change does not say that nothing changed: it may have landed.
* Threads may share a storage.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, runtime_checkable

from pyhudi.errors import hide_secrets


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file as a listing shows it.

    Units: `size_bytes` bytes; `modified_ms` milliseconds since the Unix epoch.
    """

    path: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class StorageLocation:
    """Where a table lies: what travels to tasks. Picklable; `open_storage` turns it into a `Storage`.

    `uri`: a plain local path, `memory://NAME`, or the URI of another store, such as `s3://bucket/table`.
    `options`: pairs, sorted by name; they may be secrets and are not shown.
    """

    uri: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"StorageLocation({hide_secrets(self.uri)!r})"

    @property
    def is_near(self) -> bool:
        """Whether it is on this machine, where a request takes no time that others could use."""
        return "://" not in self.uri or self.uri.startswith("memory://")


class Storage(Protocol):
    """Bytes under one root. Every change is whole or absent; nothing is ever seen half written."""

    @property
    def location(self) -> StorageLocation:
        """The location from which `open_storage` makes an equal storage."""

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes `[start, end)` of a file, as far as it has them; all of it by default.

        Raises: NotFound when there is no such file; Unavailable when the store fails.
        """

    def open_input(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A seekable binary file to read from, for readers that want ranges (Parquet footers, HFiles).

        Whoever enters the context without leaving it closes the file instead. Seek within the file only.
        Raises: NotFound when there is no such file, at the call or on entering.
        """

    def head(self, path: str) -> FileInfo | None:
        """Size and modification time of a file, or None when there is none. A folder is not a file."""

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        """Files in the folder `prefix` (below it too, when recursive), sorted by path; none if absent.

        A file that comes or goes meanwhile may be in it or not; one that is not yet visible never is.
        """

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Folders directly in the folder `prefix`, as paths relative to the root, sorted."""

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, on storages that have folders; nothing to do on others."""

    def put_new(self, path: str, content: bytes) -> bool:
        """Create a file with all of `content`, only if absent. False, and no change, when it exists.

        Of several callers at once, exactly one gets True.
        """

    def put(self, path: str, content: bytes) -> None:
        """Create or replace a file with all of `content`."""

    def put_stream(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A binary file to write; it becomes visible, whole, when the context ends without an exception.

        An existing file of that name is replaced. On an exception nothing becomes visible. Closing the file
        earlier is allowed and changes nothing.
        """

    def delete(self, path: str) -> bool:
        """Delete a file. False when there was none."""

    def delete_prefix(self, prefix: str) -> None:
        """Delete the folder `prefix` and everything in it; nothing to do when it is absent.

        Not one step: a crash may leave some of the files.
        """

    def delete_many(self, paths: Iterable[str]) -> None:
        """Delete files; those that are absent already are passed over."""


@runtime_checkable
class SweepableStorage(Protocol):
    """A storage whose changes may leave something when they die."""

    def sweep(self, folder: str, *, written_before_ms: int) -> int:
        """Delete what changes that died left in a folder, not below it, if it was last written before that time.

        It is in no listing, and no call of another kind touches it. Returns how many files went.
        """


def sweep(storage: Storage, folder: str, *, written_before_ms: int) -> int:
    """As `SweepableStorage.sweep`; nothing, and no request, for a storage that shows a file only once it is whole."""
    if not isinstance(storage, SweepableStorage):
        return 0
    return storage.sweep(folder, written_before_ms=written_before_ms)


@dataclass(frozen=True, slots=True)
class FileVersion:
    """One content of one file, as the store tells it from every other: S3 and Azure by tag, Google by generation."""

    tag: str | None
    generation: str | None


class VersionedStorage(Protocol):
    """What a lease needs beside `Storage`: replacing a file only if nobody else has. Local disks have locks instead."""

    def get_versioned(self, path: str) -> tuple[bytes, FileVersion] | None:
        """A file's content and version, or None when there is none."""

    def put_if(self, path: str, content: bytes, expected: FileVersion | None) -> FileVersion | None:
        """Put a file if its version is still `expected` (None: if it is absent); gives its new version, else None.

        Asked once, never again by itself. Raises: Unavailable, after which it may have landed.
        """
