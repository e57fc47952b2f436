"""Hudi's hash of record keys: 32-bit Murmur2 with the tail order of Hadoop, compiled.

All arithmetic is on 64-bit unsigned integers cut to 32 bits, so no step can overflow.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pyhudi.format.arrow_arrays import Bytes, Offsets
from pyhudi.loops import inlined, loop

Words: TypeAlias = npt.NDArray[np.uint32]

LANES = 8
"""How many keys are hashed side by side. Their hash chains are independent, so the processor overlaps them."""

_M = np.uint64(0x5BD1E995)
_LOW = np.uint64(0xFFFFFFFF)
_R8, _R13, _R15, _R16, _R24 = (np.uint64(bits) for bits in (8, 13, 15, 16, 24))
_SIGN = np.uint64(0xFFFFFF00)


@inlined
def mixed_word(data: Bytes, at: int) -> np.uint64:
    """A little-endian word, mixed: the part of a hash step that does not depend on the seed."""
    word = np.uint64(data[at])
    word |= np.uint64(data[at + 1]) << _R8
    word |= np.uint64(data[at + 2]) << _R16
    word |= np.uint64(data[at + 3]) << _R24
    word = (word * _M) & _LOW
    word ^= word >> _R24
    return (word * _M) & _LOW


@inlined
def mixed_tail(data: Bytes, start: int, end: int) -> np.uint64:
    """The last 1 to 3 bytes as they enter the hash: sign-extended, the last byte least significant.

    This is the order of Hadoop's Murmur2; the usual Murmur2 has the first byte least significant.
    """
    tail = np.uint64(0)
    for at in range(start, end):
        byte = np.uint64(data[at])
        if byte >= np.uint64(0x80):
            byte |= _SIGN
        tail ^= (byte << np.uint64(8 * (end - 1 - at))) & _LOW
    return tail


@inlined
def finished(h: np.uint64) -> np.uint64:
    """The closing mix of one hash."""
    h ^= h >> _R13
    h = (h * _M) & _LOW
    return h ^ (h >> _R15)


@loop
def murmur2(data: Bytes, seed: int) -> int:
    """The hash of some bytes, as a signed 32-bit number.

    Spec: format/layout.md section 7.1.
    """
    size = data.size
    h = (np.uint64(np.int64(seed)) & _LOW) ^ np.uint64(size)
    words_end = size - size % 4
    for at in range(0, words_end, 4):
        h = ((h * _M) & _LOW) ^ mixed_word(data, at)
    if words_end < size:
        h = ((h ^ mixed_tail(data, words_end, size)) * _M) & _LOW
    return int(np.int32(np.uint32(finished(h))))


@loop
def murmur2_each(data: Bytes, offsets: Offsets, seed: int) -> Words:
    """The hash of each text, as an unsigned number. A text lies between two neighbouring offsets."""
    hashes = np.zeros(offsets.size - 1, np.uint32)
    for index in range(offsets.size - 1):
        hashes[index] = np.uint32(murmur2(data[offsets[index] : offsets[index + 1]], seed) & 0xFFFFFFFF)
    return hashes


@inlined
def is_lane_run(offsets: Offsets, start: int) -> bool:
    """Whether the next `LANES` keys all have the same length."""
    if start + LANES > offsets.size - 1:
        return False
    size = offsets[start + 1] - offsets[start]
    for lane in range(1, LANES):  # noqa: SIM110 - no generators in compiled code
        if offsets[start + lane + 1] - offsets[start + lane] != size:
            return False
    return True


@inlined
def prepare_lanes(
    data: Bytes,
    offsets: Offsets,
    start: int,
    lanes: int,
    words: Words,
    tails: Words,
) -> None:
    """Mix the words and the tail of keys of equal length, once for all hashes of a key."""
    size = offsets[start + 1] - offsets[start]
    word_count = size // 4
    for lane in range(lanes):
        at = offsets[start + lane]
        for word in range(word_count):
            words[word, lane] = np.uint32(mixed_word(data, at + 4 * word))
        tails[lane] = np.uint32(mixed_tail(data, at + 4 * word_count, at + size))


@inlined
def next_hashes(
    h: Words,
    size: int,
    words: Words,
    tails: Words,
) -> None:
    """Replace each lane's hash by the next one of its chain: the hash of the same key, seeded with the hash before."""
    m = np.uint32(0x5BD1E995)
    for lane in range(LANES):
        h[lane] = h[lane] ^ np.uint32(size)
    for word in range(size // 4):
        for lane in range(LANES):
            h[lane] = np.uint32(h[lane] * m) ^ words[word, lane]
    if size % 4:
        for lane in range(LANES):
            h[lane] = np.uint32((h[lane] ^ tails[lane]) * m)
    for lane in range(LANES):
        x = np.uint32(h[lane] ^ (h[lane] >> np.uint32(13)))
        x = np.uint32(x * m)
        h[lane] = np.uint32(x ^ (x >> np.uint32(15)))


@loop
def word_count_max(offsets: Offsets) -> int:
    """The number of words to hold for the longest key, its tail included."""
    longest = np.int64(0)
    for index in range(offsets.size - 1):
        longest = max(longest, np.int64(offsets[index + 1] - offsets[index]))
    return int(longest // 4 + 1)
