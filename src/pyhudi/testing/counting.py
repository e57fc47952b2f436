"""A storage that counts requests and bytes: for benchmarks, and for tests that check a budget of requests."""

import io
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias, cast

from pyhudi.storage.protocol import FileInfo, Storage, StorageLocation, sweep

if TYPE_CHECKING:
    from typing_extensions import Buffer  # collections.abc has it from Python 3.12

RequestKind: TypeAlias = Literal[
    "get",
    "open_input",
    "head",
    "list",
    "list_folders",
    "put_new",
    "put",
    "put_stream",
    "delete",
    "delete_prefix",
    "sweep",
]


class CountingStorage:
    """Passes all calls to `inner`, and counts them. Threads may share it.

    `counts`: calls by kind, failed calls included. `delete_many` counts as one `delete` for each path.
    Units: `bytes_read` and `bytes_written` are bytes of content. Of an opened input, only the bytes read from it count.
    """

    def __init__(self, inner: Storage) -> None:
        self.inner = inner
        self.counts: Counter[RequestKind] = Counter()
        self.bytes_read = 0
        self.bytes_written = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"CountingStorage({self.inner!r})"

    @property
    def location(self) -> StorageLocation:
        """The location of `inner`. Storages that a task opens from it are not counted."""
        return self.inner.location

    def reset(self) -> None:
        """Set all counts to zero."""
        with self._lock:
            self.counts.clear()
            self.bytes_read = self.bytes_written = 0

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        self._count("get")
        content = self.inner.get(path, start, end)
        self.count_read(len(content))
        return content

    def open_input(self, path: str) -> AbstractContextManager[BinaryIO]:
        self._count("open_input")
        return cast(BinaryIO, _CountedInput(self.inner.open_input(path), self.count_read))

    def head(self, path: str) -> FileInfo | None:
        self._count("head")
        return self.inner.head(path)

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        self._count("list")
        return self.inner.list(prefix, recursive=recursive)

    def list_folders(self, prefix: str) -> Iterator[str]:
        self._count("list_folders")
        return self.inner.list_folders(prefix)

    def make_folder(self, path: str) -> None:
        self.inner.make_folder(path)

    def put_new(self, path: str, content: bytes) -> bool:
        self._count("put_new")
        is_new = self.inner.put_new(path, content)
        if is_new:
            self.count_written(len(content))
        return is_new

    def put(self, path: str, content: bytes) -> None:
        self._count("put")
        self.inner.put(path, content)
        self.count_written(len(content))

    @contextmanager
    def put_stream(self, path: str) -> Iterator[BinaryIO]:
        self._count("put_stream")
        with self.inner.put_stream(path) as stream:
            yield cast(BinaryIO, _CountedOutput(stream, self.count_written))

    def delete(self, path: str) -> bool:
        self._count("delete")
        return self.inner.delete(path)

    def delete_prefix(self, prefix: str) -> None:
        self._count("delete_prefix")
        self.inner.delete_prefix(prefix)

    def delete_many(self, paths: Iterable[str]) -> None:
        listed = tuple(paths)
        self._count("delete", len(listed))
        self.inner.delete_many(listed)

    def sweep(self, folder: str, *, written_before_ms: int) -> int:
        self._count("sweep")
        return sweep(self.inner, folder, written_before_ms=written_before_ms)

    def count_read(self, size_bytes: int) -> None:
        with self._lock:
            self.bytes_read += size_bytes

    def count_written(self, size_bytes: int) -> None:
        with self._lock:
            self.bytes_written += size_bytes

    def _count(self, kind: RequestKind, times: int = 1) -> None:
        with self._lock:
            self.counts[kind] += times


class _CountedInput(io.RawIOBase):
    """A file to read, with every read counted. Closing the file ends the context that opened it."""

    def __init__(self, context: AbstractContextManager[BinaryIO], count: Callable[[int], None]) -> None:
        self._context, self._count = context, count
        self._file = context.__enter__()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        content = self._file.read(-1 if size is None else size)
        self._count(len(content))
        return content

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: "Buffer") -> int:
        target = memoryview(buffer).cast("B")
        content = self.read(len(target))
        target[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        if not self.closed:
            self._context.__exit__(None, None, None)
        super().close()


class _CountedOutput(io.RawIOBase):
    """A file to write, with every write counted. Closing it does not close the inner file: the inner context does."""

    def __init__(self, file: BinaryIO, count: Callable[[int], None]) -> None:
        self._file, self._count = file, count

    def writable(self) -> bool:
        return True

    def write(self, content: "Buffer") -> int:
        size_bytes = self._file.write(content)
        self._count(size_bytes)
        return size_bytes

    def tell(self) -> int:
        return self._file.tell()
