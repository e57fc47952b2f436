"""Files of an object store: read by ranges, written in parts."""

import io
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyhudi.storage.object_client import Store, store_errors

if TYPE_CHECKING:
    from typing_extensions import Buffer  # collections.abc has it from Python 3.12

TAIL_BYTES = 64 * 1024
"""Opening a file fetches this much of its end, which mostly holds a whole footer. A request costs about as much as
100 KB."""

READ_AHEAD_BYTES = 64 * 1024
"""The least bytes that a read fetches."""

_KEPT_BYTES_MAX = 1024 * 1024


class ObjectInput(io.RawIOBase):
    """A file that is read by ranges. `fetch(start, end)` asks the store.

    Memory: the end of the file, and the last range if that was no more than 1 MiB. A reader of larger ranges, such as a
    Parquet reader, gets each range with one request.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size_bytes: int, tail: bytes) -> None:
        self._fetch, self._size_bytes = fetch, size_bytes
        self._tail, self._tail_start = tail, size_bytes - len(tail)
        self._kept, self._kept_start = b"", 0
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size_bytes}[whence]
        if start + offset < 0:
            raise ValueError(f"seek to {start + offset:,}: expected 0 or more")
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        end = self._size_bytes if size is None or size < 0 else min(self._at + size, self._size_bytes)
        if end <= self._at:
            return b""
        content = self._range(self._at, end)
        self._at = end
        return content

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: "Buffer") -> int:
        target = memoryview(buffer).cast("B")
        content = self.read(len(target))
        target[: len(content)] = content
        return len(content)

    def _range(self, start: int, end: int) -> bytes:
        if start >= self._tail_start:
            return self._tail[start - self._tail_start : end - self._tail_start]
        kept_end = self._kept_start + len(self._kept)
        if self._kept_start <= start and end <= kept_end:
            return self._kept[start - self._kept_start : end - self._kept_start]
        if end > self._tail_start:
            return self._fetch(start, self._tail_start) + self._tail[: end - self._tail_start]
        fetched = self._fetch(start, max(end, min(start + READ_AHEAD_BYTES, self._tail_start)))
        if len(fetched) <= _KEPT_BYTES_MAX:
            self._kept, self._kept_start = fetched, start
        return fetched[: end - start]


class ObjectOutput(io.RawIOBase):
    """A file that is sent in parts. Closing it does not end the upload: the context does."""

    def __init__(self, writer: Store, shown: str) -> None:
        self._writer, self._shown = writer, shown
        self._size_bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, content: "Buffer") -> int:
        view = memoryview(content).cast("B")
        with store_errors(self._shown, "write"):
            self._writer.write(view)
        self._size_bytes += len(view)
        return len(view)

    def tell(self) -> int:
        return self._size_bytes
