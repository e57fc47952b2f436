"""Values that were made from bytes, kept by these bytes.

A table's small files are read again and again: its properties, its timeline, the newest commits, the list of files. The
reading stays, because another process may have changed them; what is spared is to decode the same bytes again.
"""

import threading
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_SHARE_MAX: Final = 8


class ByContent(Generic[K, V]):
    """Values by the content that each was made from. The one that was not asked for longest goes first.

    `bytes_max`: what all of them may take. A value that takes more than an eighth of it is not kept.
    `size_of`: what a content and its value take, about.
    `hits`, `misses`: how often a value was there, and was not. Threads may share it; two may make the same value.

    Nobody may change a value that is kept.
    """

    def __init__(self, bytes_max: int, size_of: Callable[[K, V], int]) -> None:
        assert bytes_max > 0
        self.bytes_max, self.size_bytes = bytes_max, 0
        self.hits = self.misses = 0
        self._size_of = size_of
        self._kept: dict[K, tuple[V, int]] = {}
        self._lock = threading.Lock()

    def get(self, content: K, make: Callable[[], V]) -> V:
        """The value of a content; made if it is not there. What `make` raises is not kept."""
        with self._lock:
            found = self._kept.pop(content, None)
            if found is not None:
                self.hits += 1
                self._kept[content] = found
                return found[0]
            self.misses += 1

        value = make()
        size_bytes = self._size_of(content, value)
        if size_bytes <= self.bytes_max // _SHARE_MAX:
            with self._lock:
                self._keep(content, value, size_bytes)
        return value

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._kept.clear()
            self.size_bytes = 0

    def _keep(self, content: K, value: V, size_bytes: int) -> None:
        before = self._kept.pop(content, None)
        self._kept[content] = value, size_bytes
        self.size_bytes += size_bytes - (before[1] if before is not None else 0)
        while self.size_bytes > self.bytes_max:
            _, gone_bytes = self._kept.pop(next(iter(self._kept)))
            self.size_bytes -= gone_bytes
