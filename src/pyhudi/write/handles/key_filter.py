"""The Bloom filter of a base file that is being written: sized by the keys that come, unless a size is asked for.

Apache Hudi makes room for 60,000 keys in each file: 435 kB for two rows. It reads filters of any size, as each says how
large it is.
"""

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pyhudi.format.keys.bloom import BloomFilter, BloomKind

ENTRIES_MIN: Final = 64
ENTRIES_MAX: Final = 60_000
"""Of filters that go by the rows, and what Apache Hudi makes room for in each file. A larger file's filter grows beyond
as Apache Hudi's does.
"""


@dataclass(frozen=True, slots=True)
class FilterSettings:
    """`entries`: the keys to make room for; None: as many as the file has. `entries_max`: up to which it grows."""

    kind: BloomKind
    entries: int | None
    false_positive_rate: float
    entries_max: int

    def empty(self, keys: int) -> BloomFilter:
        """The filter of a file that will have so many keys.

        Room goes by powers of two: a file that grows by some rows keeps its filter and adds to it.
        """
        fitting = min(ENTRIES_MAX, max(ENTRIES_MIN, 1 << max(0, keys - 1).bit_length()))
        return BloomFilter.create(
            self.kind, entries=fitting if self.entries is None else self.entries,
            false_positive_rate=self.false_positive_rate, entries_max=self.entries_max,
        )  # fmt: skip


@dataclass(slots=True)
class KeyFilter:
    """Takes the keys of a file, in order.

    Memory: up to `ENTRIES_MAX` keys, until it is known that there are more; then the filter.
    """

    settings: FilterSettings
    _known: BloomFilter | None = None
    _waiting: list[pa.Array] = field(default_factory=list)
    _count: int = 0

    @classmethod
    def of(cls, settings: FilterSettings, known: BloomFilter) -> "KeyFilter":
        """One that goes on where another file's filter stopped."""
        return cls(settings, known)

    def add(self, keys: pa.Array) -> None:
        """Raises: Invalid for a null or empty key, now or when it is finished."""
        if self._known is None:
            self._waiting.append(keys)
            self._count += len(keys)
            if self.settings.entries is not None or self._count > ENTRIES_MAX:
                self.finish()
        else:
            self._known.add(keys)

    def finish(self) -> BloomFilter:
        """The filter of all keys so far. It may go on afterwards, but keeps its room."""
        if self._known is None:
            self._known = self.settings.empty(self._count)
            for keys in self._waiting:
                self._known.add(keys)
            self._waiting = []
        return self._known
