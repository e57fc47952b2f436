"""Where the bytes of a log come from: ranges of a file, or a file held in memory."""

from typing import Final, Protocol

from pyhudi.errors import CorruptFile

WINDOW_SIZE_BYTES: Final = 64 * 1024


class LogSource(Protocol):
    """A log file that is read by ranges. The caller supplies the reading: from a store, or from an open file."""

    def read_at(self, offset: int, size: int) -> bytes | memoryview:
        """`size` bytes from `offset` on, or fewer at the end of the file."""


class MemoryLog:
    """A log held in memory, or the part of a log that begins at `start`. Ranges are views, not copies."""

    def __init__(self, data: bytes | memoryview, start: int = 0) -> None:
        self._view = memoryview(data).cast("B").toreadonly()
        self._start = start

    def read_at(self, offset: int, size: int) -> memoryview:
        at = offset - self._start
        assert at >= 0
        return self._view[at : at + size]


def read_exactly(source: LogSource, offset: int, size: int, *, path: str) -> memoryview:
    """`size` bytes from `offset` on. Raises: CorruptFile where the file ends before."""
    assert offset >= 0 <= size
    view = memoryview(source.read_at(offset, size)).cast("B")
    if len(view) != size:
        hint = "The file has changed since it was listed, or was cut."
        raise CorruptFile(path, offset, expected=f"{size:,} bytes", found=f"{len(view):,}", hint=hint)
    return view


class LogWindow:
    """A log of known size, read through a window, so that small neighbouring reads are one request.

    Memory: the window: 64 KiB, or the largest single read.
    """

    def __init__(self, source: LogSource, size_bytes: int, *, path: str) -> None:
        assert size_bytes >= 0
        self.source, self.size_bytes, self.path = source, size_bytes, path
        self._held = memoryview(b"")
        self._start = 0

    def view(self, offset: int, size: int) -> memoryview:
        """`size` bytes from `offset` on. They must lie within the file."""
        assert 0 <= offset <= offset + size <= self.size_bytes
        if offset < self._start or offset + size > self._start + len(self._held):
            wanted = min(max(size, WINDOW_SIZE_BYTES), self.size_bytes - offset)
            self._held, self._start = read_exactly(self.source, offset, wanted, path=self.path), offset
        at = offset - self._start
        return self._held[at : at + size]
