"""A storage whose machine loses power at a chosen change: for tests that try every such change."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar

from pyhudi.storage.memory import KeptBytes
from pyhudi.storage.paths import check_file_path
from pyhudi.storage.protocol import FileInfo, Storage, StorageLocation, sweep

T = TypeVar("T")


class Crash(BaseException):
    """The machine lost power here. Not an Exception: no handler may swallow it."""


@dataclass
class CrashingStorage:
    """Passes all calls to `inner` until `survives` changes are done. The next change is the fatal one.

    A call that changes nothing, such as `put_new` of a file that exists, counts as a change, too. A stream changes
    the store at the moment when it becomes visible. `delete_prefix` and `delete_many` are one change for each file,
    as no store deletes several at once.

    `location` is the location of `inner`: a storage that a task opens from it does not crash.
    """

    inner: Storage
    survives: int
    """Changes that succeed before the lights go out."""
    lands: bool
    """Whether the fatal change reaches the disk."""
    done: int = 0
    dead: bool = False
    fatal: str = ""
    """The fatal change, in words; empty before it."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def location(self) -> StorageLocation:
        return self.inner.location

    def change(self, what: str, apply: Callable[[], T]) -> T:
        """Apply a change, or crash. Every call that changes the store goes through here, one at a time."""
        with self._lock:
            if self.dead:
                raise Crash(f"already down: {what}")  # a `finally` block must not reach the disk either
            if self.done == self.survives:
                self.dead = True
                self.fatal = what
                if self.lands:
                    apply()
                raise Crash(f"lights out: {what}")
            self.done += 1
            return apply()

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        return self.inner.get(path, start, end)

    def open_input(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self.inner.open_input(path)

    def head(self, path: str) -> FileInfo | None:
        return self.inner.head(path)

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        return self.inner.list(prefix, recursive=recursive)

    def list_folders(self, prefix: str) -> Iterator[str]:
        return self.inner.list_folders(prefix)

    def make_folder(self, path: str) -> None:
        self.change(f"make_folder {path}", lambda: self.inner.make_folder(path))

    def put_new(self, path: str, content: bytes) -> bool:
        return self.change(f"put_new '{path}'", lambda: self.inner.put_new(path, content))

    def put(self, path: str, content: bytes) -> None:
        self.change(f"put '{path}'", lambda: self.inner.put(path, content))

    @contextmanager
    def put_stream(self, path: str) -> Iterator[BinaryIO]:
        check_file_path(path)
        stream = KeptBytes()
        yield stream
        self.change(f"put_stream '{path}'", lambda: self._write_stream(path, stream.getvalue()))

    def delete(self, path: str) -> bool:
        return self.change(f"delete '{path}'", lambda: self.inner.delete(path))

    def delete_prefix(self, prefix: str) -> None:
        """Delete file after file, in order. The last change deletes the rest, folders included."""
        files = [file.path for file in self.inner.list(prefix, recursive=True)]
        self.delete_many(files[:-1])
        self.change(f"delete_prefix '{prefix}'", lambda: self.inner.delete_prefix(prefix))

    def delete_many(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    def sweep(self, folder: str, *, written_before_ms: int) -> int:
        """Sweep `inner`. This is no change to crash at, as nobody sees the files that a sweep deletes."""
        if self.dead:
            raise Crash(f"already down: sweep '{folder}'")
        return sweep(self.inner, folder, written_before_ms=written_before_ms)

    def _write_stream(self, path: str, content: bytes) -> None:
        with self.inner.put_stream(path) as stream:
            stream.write(content)
