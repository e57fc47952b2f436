"""A storage that fails now and then: the store does not answer, and may have done what it was asked for or not."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from pyhudi.errors import Unavailable
from pyhudi.storage.memory import KeptBytes
from pyhudi.storage.protocol import FileInfo, Storage, StorageLocation, sweep

T = TypeVar("T")


@dataclass
class FailingStorage:
    """`inner`, whose requests `fails_at`, ..., `fails_at + times - 1` (counted from 0) raise Unavailable.

    `lands`: whether a change that fails is made all the same.
    """

    inner: Storage
    fails_at: int
    lands: bool
    times: int = 1
    done: int = 0
    failed: str = ""
    """The first request that failed, in words; empty before it."""

    @property
    def location(self) -> StorageLocation:
        return self.inner.location

    def request(self, what: str, apply: Callable[[], T], *, is_change: bool = False) -> T:
        number = self.done
        self.done += 1
        if not self.fails_at <= number < self.fails_at + self.times:
            return apply()
        self.failed = self.failed or what
        if is_change and self.lands:
            apply()
        raise Unavailable(f"{what}: the store did not answer; try again")

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        return self.request(f"get '{path}'", lambda: self.inner.get(path, start, end))

    def open_input(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self.request(f"open_input '{path}'", lambda: self.inner.open_input(path))

    def head(self, path: str) -> FileInfo | None:
        return self.request(f"head '{path}'", lambda: self.inner.head(path))

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        return self.request(f"list '{prefix}'", lambda: self.inner.list(prefix, recursive=recursive))

    def list_folders(self, prefix: str) -> Iterator[str]:
        return self.request(f"list_folders '{prefix}'", lambda: self.inner.list_folders(prefix))

    def make_folder(self, path: str) -> None:
        self.request(f"make_folder '{path}'", lambda: self.inner.make_folder(path), is_change=True)

    def put_new(self, path: str, content: bytes) -> bool:
        return self.request(f"put_new '{path}'", lambda: self.inner.put_new(path, content), is_change=True)

    def put(self, path: str, content: bytes) -> None:
        self.request(f"put '{path}'", lambda: self.inner.put(path, content), is_change=True)

    @contextmanager
    def put_stream(self, path: str) -> Iterator[BinaryIO]:
        stream = KeptBytes()
        yield stream
        self.request(f"put_stream '{path}'", lambda: self._write(path, stream.getvalue()), is_change=True)

    def delete(self, path: str) -> bool:
        return self.request(f"delete '{path}'", lambda: self.inner.delete(path), is_change=True)

    def delete_prefix(self, prefix: str) -> None:
        self.request(f"delete_prefix '{prefix}'", lambda: self.inner.delete_prefix(prefix), is_change=True)

    def delete_many(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    def sweep(self, folder: str, *, written_before_ms: int) -> int:
        return self.request(
            f"sweep '{folder}'", lambda: sweep(self.inner, folder, written_before_ms=written_before_ms), is_change=True
        )

    def _write(self, path: str, content: bytes) -> None:
        with self.inner.put_stream(path) as stream:
            stream.write(content)
