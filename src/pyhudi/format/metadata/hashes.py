"""The hashes in the keys of the metadata table: 64-bit xxHash and MD5 of texts, in Base64, compiled.

All arithmetic wraps: at 64 bits for xxHash, at 32 bits for MD5.
Cost: about 40 ns a short text for xxHash, 200 ns for MD5. Memory: the Base64 texts, 12 or 24 bytes each.

Spec: format/metadata-table.md section 5; xxHash64 as its authors describe it; RFC 1321 and RFC 4648.
"""

import math
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.format.arrow_arrays import Bytes, Offsets, key_buffers
from pyhudi.loops import inlined, loop

SHORT_SIZE: Final = 12
"""Characters of a short hash. A long hash has twice as many."""
LONG_SIZE: Final = 24

_SEED: Final = np.uint64(0xFFFFFFFFDABADABA)
"""Java's int 0xdabadaba, widened with its sign."""

_ALPHABET: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_PAD: Final = np.uint8(ord("="))

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)

_LOW: Final = np.uint64(0xFFFFFFFF)
_SINES: Final = np.array([int(abs(math.sin(step + 1)) * 2**32) for step in range(64)], np.uint64)
_SHIFTS: Final = np.array(
    [(7, 12, 17, 22)[i % 4] for i in range(16)]
    + [(5, 9, 14, 20)[i % 4] for i in range(16)]
    + [(4, 11, 16, 23)[i % 4] for i in range(16)]
    + [(6, 10, 15, 21)[i % 4] for i in range(16)],
    np.uint64,
)


def short_hashes(texts: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint8]:
    """The Base64 of each text's seeded 64-bit xxHash, big endian. Shape: (n,) text -> (n, 12) characters.

    Raises: Invalid for values that are no text, and for nulls.
    """
    return _hashes(texts, is_long=False)


def long_hashes(texts: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint8]:
    """The Base64 of each text's MD5. Shape: (n,) text -> (n, 24) characters. Raises: as `short_hashes`."""
    return _hashes(texts, is_long=True)


def _hashes(texts: pa.Array | pa.ChunkedArray, *, is_long: bool) -> npt.NDArray[np.uint8]:
    found = np.empty((len(texts), LONG_SIZE if is_long else SHORT_SIZE), np.uint8)
    start = 0
    for data, offsets, count in key_buffers(texts, what="metadata table"):
        part = found[start : start + count]
        if is_long:
            _md5_each(data, offsets, part)
        else:
            _xxhash_each(data, offsets, part)
        start += count
    assert start == len(texts)
    return found


@loop
def _xxhash_each(data: Bytes, offsets: Offsets, out: npt.NDArray[np.uint8]) -> None:
    digest = np.empty(8, np.uint8)
    for index in range(out.shape[0]):
        h = _xxhash64(data, offsets[index], offsets[index + 1])
        for at in range(8):
            digest[at] = np.uint8(h >> np.uint64(56 - 8 * at) & np.uint64(0xFF))
        _to_base64(digest, out[index])


@loop
def _md5_each(data: Bytes, offsets: Offsets, out: npt.NDArray[np.uint8]) -> None:
    digest = np.empty(16, np.uint8)
    block = np.empty(64, np.uint8)
    for index in range(out.shape[0]):
        _md5(data, offsets[index], offsets[index + 1], block, digest)
        _to_base64(digest, out[index])


@inlined
def _to_base64(digest: Bytes, out: Bytes) -> None:
    """Write a digest as Base64, with the standard alphabet and padding."""
    at = 0
    for start in range(0, digest.size, 3):
        left = digest.size - start
        word = np.int64(digest[start]) << 16
        if left > 1:
            word |= np.int64(digest[start + 1]) << 8
        if left > 2:
            word |= np.int64(digest[start + 2])
        for nth in range(4):
            out[at] = _ALPHABET[word >> (18 - 6 * nth) & 63] if nth <= left else _PAD
            at += 1


@loop
def _xxhash64(data: Bytes, start: int, end: int) -> np.uint64:
    """The 64-bit xxHash, with the seed of the metadata table, of the bytes from `start` to `end`."""
    at, h = start, _SEED + _P5
    if end - start >= 32:
        a, b, c, d = _SEED + _P1 + _P2, _SEED + _P2, _SEED, _SEED - _P1
        while at <= end - 32:
            a, b = _round(a, _word_8(data, at)), _round(b, _word_8(data, at + 8))
            c, d = _round(c, _word_8(data, at + 16)), _round(d, _word_8(data, at + 24))
            at += 32
        h = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
        h = (h ^ _round(np.uint64(0), a)) * _P1 + _P4
        h = (h ^ _round(np.uint64(0), b)) * _P1 + _P4
        h = (h ^ _round(np.uint64(0), c)) * _P1 + _P4
        h = (h ^ _round(np.uint64(0), d)) * _P1 + _P4

    h += np.uint64(end - start)
    while at <= end - 8:
        h = _rotated(h ^ _round(np.uint64(0), _word_8(data, at)), 27) * _P1 + _P4
        at += 8
    if at <= end - 4:
        h = _rotated(h ^ _word_4(data, at) * _P1, 23) * _P2 + _P3
        at += 4
    while at < end:
        h = _rotated(h ^ np.uint64(data[at]) * _P5, 11) * _P1
        at += 1

    h = (h ^ h >> np.uint64(33)) * _P2
    h = (h ^ h >> np.uint64(29)) * _P3
    return h ^ h >> np.uint64(32)


@inlined
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotated(lane + word * _P2, 31) * _P1


@inlined
def _rotated(value: np.uint64, bits: int) -> np.uint64:
    return value << np.uint64(bits) | value >> np.uint64(64 - bits)


@inlined
def _word_4(data: Bytes, at: int) -> np.uint64:
    """Four bytes as a little-endian number."""
    low = np.uint64(data[at]) | np.uint64(data[at + 1]) << np.uint64(8)
    return low | np.uint64(data[at + 2]) << np.uint64(16) | np.uint64(data[at + 3]) << np.uint64(24)


@inlined
def _word_8(data: Bytes, at: int) -> np.uint64:
    return _word_4(data, at) | _word_4(data, at + 4) << np.uint64(32)


@loop
def _md5(data: Bytes, start: int, end: int, block: Bytes, digest: Bytes) -> None:
    """Write the MD5 of the bytes from `start` to `end` to `digest`. `block`: 64 bytes to work in."""
    a, b = np.uint64(0x67452301), np.uint64(0xEFCDAB89)
    c, d = np.uint64(0x98BADCFE), np.uint64(0x10325476)
    size, at = end - start, start
    while at <= end - 64:
        a, b, c, d = _md5_block(data, at, a, b, c, d)
        at += 64

    # The last block: the bytes that are left, 0x80, zeros, and the size in bits. If these do not fit, two blocks.
    left = end - at
    block[:] = 0
    block[:left] = data[at:end]
    block[left] = 0x80
    if left >= 56:
        a, b, c, d = _md5_block(block, 0, a, b, c, d)
        block[:] = 0
    for nth in range(8):
        block[56 + nth] = np.uint8(np.uint64(size) << np.uint64(3) >> np.uint64(8 * nth) & np.uint64(0xFF))
    a, b, c, d = _md5_block(block, 0, a, b, c, d)

    for nth in range(4):
        shift = np.uint64(8 * nth)
        digest[nth] = np.uint8(a >> shift & np.uint64(0xFF))
        digest[4 + nth] = np.uint8(b >> shift & np.uint64(0xFF))
        digest[8 + nth] = np.uint8(c >> shift & np.uint64(0xFF))
        digest[12 + nth] = np.uint8(d >> shift & np.uint64(0xFF))


@loop
def _md5_block(
    data: Bytes, start: int, a0: np.uint64, b0: np.uint64, c0: np.uint64, d0: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a, b, c, d = a0, b0, c0, d0
    for step in range(64):
        if step < 16:
            f, word = (b & c) | (~b & d), step
        elif step < 32:
            f, word = (d & b) | (~d & c), (5 * step + 1) & 15
        elif step < 48:
            f, word = b ^ c ^ d, (3 * step + 5) & 15
        else:
            f, word = c ^ (b | (~d & _LOW)), (7 * step) & 15
        turned = (f + a + _SINES[step] + _word_4(data, start + 4 * word)) & _LOW
        a, d, c = d, c, b
        b = (b + (turned << _SHIFTS[step] | turned >> (np.uint64(32) - _SHIFTS[step]))) & _LOW
    return (a0 + a) & _LOW, (b0 + b) & _LOW, (c0 + c) & _LOW, (d0 + d) & _LOW
