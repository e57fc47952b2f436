"""Unpacking what is stored compressed, up to a size: a few stored bytes may stand for a thousand times as many."""

import zlib
from typing import Final

UNPACKED_FREE_BYTES: Final = 16 << 20
UNPACKED_RATIO_MAX: Final = 64
"""What Apache Hudi stores compressed takes a tenth of its bytes, as a rule."""


def unpacked_max(stored_bytes: int) -> int:
    """So many bytes may come of so many stored ones."""
    return max(UNPACKED_FREE_BYTES, UNPACKED_RATIO_MAX * stored_bytes)


def unpack(stored: bytes | memoryview, window_bits: int) -> bytes:
    """The bytes of one whole stream of zlib's. `window_bits`: as zlib has them, which say how it is framed.

    Memory: `unpacked_max`. Raises: zlib.error; ValueError for a stream that comes to more, ends early or goes on.
    """
    size_max = unpacked_max(len(stored))
    stream = zlib.decompressobj(window_bits)
    content = stream.decompress(stored, size_max + 1)
    if len(content) > size_max:
        raise ValueError(f"{len(stored):,} stored bytes that come to more than {size_max:,}")
    if not stream.eof or stream.unused_data:
        raise ValueError("a stream that is cut short or followed by bytes")
    return content
