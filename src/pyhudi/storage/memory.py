"""A table's bytes in the memory of this process, under a name: for tests, trials and small embedded tables.

`memory://NAME` is the same storage wherever it is opened in this process. Other processes have storages of their own.
"""

import io
import itertools
import threading
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO
from weakref import WeakValueDictionary

from pyhudi.errors import Invalid, NotFound
from pyhudi.storage.paths import check_file_path, check_folder_path, check_range, not_a_folder
from pyhudi.storage.protocol import FileInfo, StorageLocation

MEMORY_SCHEME = "memory://"

_AFTER_SLASH = chr(ord("/") + 1)  # `folder + _AFTER_SLASH` sorts right behind everything in the folder


def system_clock_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


@dataclass(slots=True, weakref_slot=True, eq=False)
class _Content:
    """The files under one name. `paths` holds the keys of `files`, sorted. Both are changed only under the lock."""

    files: dict[str, tuple[bytes, FileInfo]] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def info(self, path: str) -> FileInfo:
        return self.files[path][1]

    def write(self, path: str, content: bytes, modified_ms: int) -> None:
        if path not in self.files:
            self._refuse_file_as_folder(path)
            insort(self.paths, path)
        self.files[path] = content, FileInfo(path, len(content), modified_ms)

    def delete(self, path: str) -> bool:
        if self.files.pop(path, None) is None:
            return False
        del self.paths[bisect_left(self.paths, path)]
        return True

    def below(self, prefix: str) -> tuple[int, int]:
        """The range of `paths` that are in the folder `prefix` or below it."""
        if not prefix:
            return 0, len(self.paths)
        return bisect_left(self.paths, prefix + "/"), bisect_left(self.paths, prefix + _AFTER_SLASH)

    def entries(self, prefix: str) -> tuple[list[FileInfo], list[str]]:
        """Files and folders directly in a folder, sorted. Cost: log(all files) for each entry."""
        at, end = self.below(prefix)
        start = len(prefix) + 1 if prefix else 0
        files: list[FileInfo] = []
        folders: list[str] = []
        while at < end:
            path = self.paths[at]
            slash = path.find("/", start)
            if slash < 0:
                files.append(self.files[path][1])
                at += 1
            else:
                folders.append(path[:slash])
                at = bisect_left(self.paths, path[:slash] + _AFTER_SLASH, at, end)
        return files, sorted(folders)  # "a-b/" sorts before "a/", but "a" before "a-b"

    def files_below(self, prefix: str) -> list[FileInfo]:
        start, end = self.below(prefix)
        return [self.info(path) for path in self.paths[start:end]]

    def _refuse_file_as_folder(self, path: str) -> None:
        start, end = self.below(path)
        parents = itertools.accumulate(path.split("/")[:-1], lambda above, name: f"{above}/{name}")
        if start < end or any(parent in self.files for parent in parents):
            raise not_a_folder(path)


_registry_lock = threading.Lock()
_named: dict[str, _Content] = {}
_unnamed: WeakValueDictionary[str, _Content] = WeakValueDictionary()
_numbers = itertools.count(1)


def _register(name: str | None) -> tuple[str, _Content]:
    """The content of a name, made if need be. A given name lives until `forget_memory_storage`. Without a name, one is
    made up, which lives as long as a storage of it does."""
    with _registry_lock:
        if name is not None:
            content = _unnamed.get(name)
            return name, _named.setdefault(name, _Content()) if content is None else content
        content = _Content()
        name = next(n for n in map("unnamed-{}".format, _numbers) if n not in _named)
        _unnamed[name] = content
        return name, content


def forget_memory_storage(name: str) -> None:
    """Give back the memory of `memory://NAME` once no storage of it is in use. The next storage of it starts empty."""
    with _registry_lock:
        _named.pop(name, None)


class KeptBytes(io.BytesIO):
    """A file whose bytes can still be taken after a caller has closed it."""

    def close(self) -> None:
        pass


class MemoryStorage:
    """The storage `memory://NAME`; without a name, a new storage. Threads may share it.

    Memory: all content. A folder exists as long as a file is below it.
    """

    def __init__(self, name: str | None = None, *, clock_ms: Callable[[], int] = system_clock_ms) -> None:
        if name is not None and (not name or "\x00" in name):
            raise Invalid(f"{MEMORY_SCHEME}{name}: expected a name after '{MEMORY_SCHEME}', found {name!r}")
        self._name, self._content = _register(name)
        self._clock_ms = clock_ms

    def __repr__(self) -> str:
        return f"MemoryStorage({self._name!r})"

    @property
    def location(self) -> StorageLocation:
        return StorageLocation(f"{MEMORY_SCHEME}{self._name}")

    def copy(self) -> "MemoryStorage":
        """A new storage, without a name, that starts with the same content and times."""
        twin = MemoryStorage(clock_ms=self._clock_ms)
        with self._content.lock:
            twin._content.files.update(self._content.files)
            twin._content.paths.extend(self._content.paths)
        return twin

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        check_range(start, end)
        with self._content.lock:
            found = self._content.files.get(check_file_path(path))
        if found is None:
            raise NotFound(f"{MEMORY_SCHEME}{self._name}/{path}: expected a file, found none")
        return found[0][start:end]

    def open_input(self, path: str) -> BinaryIO:
        return io.BytesIO(self.get(path))

    def head(self, path: str) -> FileInfo | None:
        with self._content.lock:
            return self._content.info(path) if check_file_path(path) in self._content.files else None

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        check_folder_path(prefix)
        with self._content.lock:
            if recursive:
                return iter(self._content.files_below(prefix))
            return iter(self._content.entries(prefix)[0])

    def list_folders(self, prefix: str) -> Iterator[str]:
        with self._content.lock:
            return iter(self._content.entries(check_folder_path(prefix))[1])

    def make_folder(self, path: str) -> None:
        check_folder_path(path)

    def put_new(self, path: str, content: bytes) -> bool:
        with self._content.lock:
            if check_file_path(path) in self._content.files:
                return False
            self._content.write(path, bytes(content), self._clock_ms())
            return True

    def put(self, path: str, content: bytes) -> None:
        with self._content.lock:
            self._content.write(check_file_path(path), bytes(content), self._clock_ms())

    @contextmanager
    def put_stream(self, path: str) -> Iterator[BinaryIO]:
        check_file_path(path)
        stream = KeptBytes()
        yield stream
        self.put(path, stream.getvalue())

    def delete(self, path: str) -> bool:
        with self._content.lock:
            return self._content.delete(check_file_path(path))

    def delete_prefix(self, prefix: str) -> None:
        check_folder_path(prefix)
        with self._content.lock:
            start, end = self._content.below(prefix)
            for path in self._content.paths[start:end]:
                del self._content.files[path]
            del self._content.paths[start:end]

    def delete_many(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)
