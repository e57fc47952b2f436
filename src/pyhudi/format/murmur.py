"""Hudi's hash of record keys: 32-bit Murmur2 with the tail order of Hadoop, compiled.

Importing this module imports numba; only modules about Bloom filters and key hashing do so.
All arithmetic is on 64-bit unsigned integers cut to 32 bits, so no step can overflow.
"""

import numba
import numpy as np
import numpy.typing as npt

_M = np.uint64(0x5BD1E995)
_LOW = np.uint64(0xFFFFFFFF)
_R8, _R13, _R15, _R16, _R24 = (np.uint64(bits) for bits in (8, 13, 15, 16, 24))
_SIGN = np.uint64(0xFFFFFF00)


@numba.njit(cache=True, nogil=True, inline="always")
def mixed_word(data: npt.NDArray[np.uint8], at: int) -> np.uint64:
    """The part of a hash step that does not depend on the seed: one little-endian word, mixed."""
    word = np.uint64(data[at])
    word |= np.uint64(data[at + 1]) << _R8
    word |= np.uint64(data[at + 2]) << _R16
    word |= np.uint64(data[at + 3]) << _R24
    word = (word * _M) & _LOW
    word ^= word >> _R24
    return (word * _M) & _LOW


@numba.njit(cache=True, nogil=True, inline="always")
def mixed_tail(data: npt.NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """The last 1 to 3 bytes as they enter the hash: sign-extended, the last one least significant.

    Hadoop's Murmur2 takes them in this order; the usual one reverses it.
    """
    tail = np.uint64(0)
    for at in range(start, end):
        byte = np.uint64(data[at])
        if byte >= np.uint64(0x80):
            byte |= _SIGN
        tail ^= (byte << np.uint64(8 * (end - 1 - at))) & _LOW
    return tail


@numba.njit(cache=True, nogil=True, inline="always")
def finished(h: np.uint64) -> np.uint64:
    """The closing mix of one hash."""
    h ^= h >> _R13
    h = (h * _M) & _LOW
    return h ^ (h >> _R15)


@numba.njit(cache=True, nogil=True)
def murmur2(data: npt.NDArray[np.uint8], seed: int) -> int:
    """The hash of some bytes, as a signed 32-bit number.

    Spec: format/layout.md section 7.1.
    """
    size = data.size
    h = (np.uint64(seed) & _LOW) ^ np.uint64(size)
    words_end = size - size % 4
    for at in range(0, words_end, 4):
        h = ((h * _M) & _LOW) ^ mixed_word(data, at)
    if words_end < size:
        h = ((h ^ mixed_tail(data, words_end, size)) * _M) & _LOW
    return int(np.int32(np.uint32(finished(h))))
