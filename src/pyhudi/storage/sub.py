"""A folder of a storage as a storage of its own. Example: the metadata table inside its data table."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO

from pyhudi.storage.protocol import FileInfo, Storage, StorageLocation, sweep


class SubStorage:
    """The folder `prefix` of `inner`, as a storage. Every call goes to `inner`, with the prefix before its paths."""

    def __init__(self, inner: Storage, prefix: str) -> None:
        assert prefix.strip("/") == prefix != ""
        self._inner, self._prefix = inner, prefix

    @property
    def location(self) -> StorageLocation:
        location = self._inner.location
        return StorageLocation(f"{location.uri.rstrip('/')}/{self._prefix}", location.options)

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        return self._inner.get(self._full(path), start, end)

    def open_input(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self._inner.open_input(self._full(path))

    def head(self, path: str) -> FileInfo | None:
        info = self._inner.head(self._full(path))
        return self._own(info) if info is not None else None

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        return (self._own(info) for info in self._inner.list(self._full(prefix), recursive=recursive))

    def list_folders(self, prefix: str) -> Iterator[str]:
        return (folder[len(self._prefix) + 1 :] for folder in self._inner.list_folders(self._full(prefix)))

    def make_folder(self, path: str) -> None:
        self._inner.make_folder(self._full(path))

    def put_new(self, path: str, content: bytes) -> bool:
        return self._inner.put_new(self._full(path), content)

    def put(self, path: str, content: bytes) -> None:
        self._inner.put(self._full(path), content)

    def put_stream(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self._inner.put_stream(self._full(path))

    def delete(self, path: str) -> bool:
        return self._inner.delete(self._full(path))

    def delete_prefix(self, prefix: str) -> None:
        self._inner.delete_prefix(self._full(prefix))

    def delete_many(self, paths: Iterable[str]) -> None:
        self._inner.delete_many(self._full(path) for path in paths)

    def sweep(self, folder: str, *, written_before_ms: int) -> int:
        return sweep(self._inner, self._full(folder), written_before_ms=written_before_ms)

    def _full(self, path: str) -> str:
        return f"{self._prefix}/{path}" if path else self._prefix

    def _own(self, info: FileInfo) -> FileInfo:
        return FileInfo(info.path[len(self._prefix) + 1 :], info.size_bytes, info.modified_ms)
