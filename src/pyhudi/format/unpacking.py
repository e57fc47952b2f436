"""Unpacks compressed bytes up to a limit, since a few stored bytes may unpack to a thousand times as many."""

import zlib
from typing import Final

UNPACKED_FREE_BYTES: Final = 16 << 20
UNPACKED_RATIO_MAX: Final = 64
"""The most bytes that a stored byte may unpack to, beyond the free bytes. Apache Hudi's data unpack to ten, as a rule.
"""


def unpacked_max(stored_bytes: int) -> int:
    """The most bytes that some stored bytes may unpack to."""
    return max(UNPACKED_FREE_BYTES, UNPACKED_RATIO_MAX * stored_bytes)


def unpack(stored: bytes | memoryview, window_bits: int) -> bytes:
    """The unpacked bytes of one whole zlib stream. `window_bits`: zlib's number, which also tells the stream's frame.

    Memory: `unpacked_max`. Raises: zlib.error; ValueError for a stream that unpacks to more, ends early or goes on.
    """
    size_max = unpacked_max(len(stored))
    stream = zlib.decompressobj(window_bits)
    content = stream.decompress(stored, size_max + 1)
    if len(content) > size_max:
        raise ValueError(f"{len(stored):,} stored bytes that come to more than {size_max:,}")
    if not stream.eof or stream.unused_data:
        raise ValueError("a stream that is cut short or followed by bytes")
    return content
