"""Splits the records of a slice by a hash of their key, if they are too many to hold at once."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.errors import Bug
from pyhudi.format.keys.murmur import murmur2_each

_SEED = 0x9747B28C


@dataclass(frozen=True, slots=True)
class KeyPart:
    """The keys of one pass: those whose hash, divided by `count`, leaves the remainder `number`."""

    number: int
    count: int

    def mask(self, keys: pa.Array) -> np.ndarray | None:
        """For each key, whether it belongs to this part. None: all do. A null belongs to no part. Shape: (n,) bool."""
        if self.count == 1:
            return None
        if not pa.types.is_string(keys.type):
            raise Bug(f"record keys: expected texts to split by, found {keys.type}")
        _, offsets, data = keys.buffers()
        positions = np.frombuffer(offsets, "<i4", len(keys) + 1, keys.offset * 4) if len(keys) else np.zeros(1, "<i4")
        content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        return (murmur2_each(content, positions, _SEED) % self.count == self.number) & np.asarray(keys.is_valid())


ALL_KEYS = KeyPart(number=0, count=1)
