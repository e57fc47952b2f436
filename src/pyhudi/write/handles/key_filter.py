"""The Bloom filter of a base file that is being written. The number of keys gives its size, unless a size is asked for.

Apache Hudi makes room for 60,000 keys in each file: 435 kB for two rows. It reads filters of any size, because each
filter states its size.
"""

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pyhudi.format.keys.bloom import BloomFilter, BloomKind

ENTRIES_MIN: Final = 64
ENTRIES_MAX: Final = 60_000
"""The least and the most room of a filter whose size follows the number of keys. Apache Hudi makes the most in each
file. The filter of a larger file grows beyond it as Apache Hudi's does.
"""


@dataclass(frozen=True, slots=True)
class FilterSettings:
    """`entries`: the keys to make room for; None: as many as the file has. `entries_max`: how far the filter grows."""

    kind: BloomKind
    entries: int | None
    false_positive_rate: float
    entries_max: int

    def empty(self, keys: int) -> BloomFilter:
        """The empty filter of a file that will have so many keys.

        Its room is a power of two, so that a file that grows by some rows keeps its filter and adds to it. Example: for
        100 keys there is room for 128.
        """
        fitting = min(ENTRIES_MAX, max(ENTRIES_MIN, 1 << max(0, keys - 1).bit_length()))
        return BloomFilter.create(
            self.kind, entries=fitting if self.entries is None else self.entries,
            false_positive_rate=self.false_positive_rate, entries_max=self.entries_max,
        )  # fmt: skip


@dataclass(slots=True)
class KeyFilter:
    """Takes the keys of a file, in order.

    Memory: up to `ENTRIES_MAX` keys. Once there are more, only the filter.
    """

    settings: FilterSettings
    _known: BloomFilter | None = None
    _waiting: list[pa.Array] = field(default_factory=list)
    _count: int = 0

    @classmethod
    def of(cls, settings: FilterSettings, known: BloomFilter) -> "KeyFilter":
        """A filter that goes on where another file's filter stopped."""
        return cls(settings, known)

    def add(self, keys: pa.Array) -> None:
        """Raises: Invalid for a null or empty key, now or when the filter is finished."""
        if self._known is None:
            self._waiting.append(keys)
            self._count += len(keys)
            if self.settings.entries is not None or self._count > ENTRIES_MAX:
                self.finish()
        else:
            self._known.add(keys)

    def finish(self) -> BloomFilter:
        """The filter of all keys so far. More keys may follow, but the filter's room stays."""
        if self._known is None:
            self._known = self.settings.empty(self._count)
            for keys in self._waiting:
                self._known.add(keys)
            self._waiting = []
        return self._known
