"""A storage that keeps some of its files to itself until they are all shown.

Example: a table is there once its properties are. A table whose properties are withheld can be written with all that
belongs to it, and is there from one step to the next.
"""

import io
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO

from pyhudi.errors import NotFound
from pyhudi.storage.protocol import FileInfo, Storage, StorageLocation, sweep


class WithheldStorage:
    """`inner`, with the files `paths` in memory instead. Who opens `location` anew does not see them.

    The withheld files are small. They are in no listing.
    """

    def __init__(self, inner: Storage, paths: Collection[str]) -> None:
        self._inner, self._paths = inner, frozenset(paths)
        self._files: dict[str, tuple[bytes, int]] = {}
        self._lock = threading.Lock()

    @property
    def location(self) -> StorageLocation:
        return self._inner.location

    def show_new(self, path: str) -> bool:
        """Put a withheld file into the inner storage. False if one of its name is there, which stays as it is."""
        return self._inner.put_new(path, self._files[path][0])

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        return self._inner.get(path, start, end) if path not in self._paths else self._content(path)[start:end]

    def open_input(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self._inner.open_input(path) if path not in self._paths else io.BytesIO(self._content(path))

    def head(self, path: str) -> FileInfo | None:
        if path not in self._paths:
            return self._inner.head(path)
        held = self._files.get(path)
        return None if held is None else FileInfo(path, len(held[0]), held[1])

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        return self._inner.list(prefix, recursive=recursive)

    def list_folders(self, prefix: str) -> Iterator[str]:
        return self._inner.list_folders(prefix)

    def make_folder(self, path: str) -> None:
        self._inner.make_folder(path)

    def put_new(self, path: str, content: bytes) -> bool:
        if path not in self._paths:
            return self._inner.put_new(path, content)
        with self._lock:
            if path in self._files:
                return False
            self._files[path] = content, 0
            return True

    def put(self, path: str, content: bytes) -> None:
        if path not in self._paths:
            self._inner.put(path, content)
            return
        self._files[path] = content, 0

    def put_stream(self, path: str) -> AbstractContextManager[BinaryIO]:
        assert path not in self._paths, "a withheld file is put whole"
        return self._inner.put_stream(path)

    def delete(self, path: str) -> bool:
        return self._inner.delete(path) if path not in self._paths else self._files.pop(path, None) is not None

    def delete_prefix(self, prefix: str) -> None:
        self._inner.delete_prefix(prefix)

    def delete_many(self, paths: Iterable[str]) -> None:
        self._inner.delete_many(paths)

    def sweep(self, folder: str, *, written_before_ms: int) -> int:
        return sweep(self._inner, folder, written_before_ms=written_before_ms)

    def _content(self, path: str) -> bytes:
        held = self._files.get(path)
        if held is None:
            raise NotFound(f"{self._inner.location.uri}/{path}: expected a file, found none")
        return held[0]
