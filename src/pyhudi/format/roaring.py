"""Arrays of 64-bit numbers <-> Roaring bitmaps, in the portable serialization.

Layout (little endian): u64 n; n of (u32 upper half, a 32-bit bitmap), ascending. A bitmap holds, in this order:

* u32 cookie. Without runs: 12346, and u32 k follows, the number of containers. With runs: the low half is 12347, the
  high half is k - 1, and k bits follow; a bit says whether its container holds runs.
* k of (u16 key, u16 count - 1).
* u32 offset of each container, counted from the cookie. A bitmap with runs and fewer than 4 containers has no offsets.
* The containers: with runs, u16 n and n of (u16 first, u16 count - 1); with more than 4,096 numbers, 8,192 bytes of
  bits; else the numbers as u16.

Spec: the Roaring format specification, "64-bit" and "32-bit"; format/log-format.md section 3.
"""

import struct
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.uint64]

_COUNT_64 = struct.Struct("<Q")
_COUNT = struct.Struct("<I")
_SHORT = struct.Struct("<H")

_FEW = struct.Struct("<QIIIHHI")
"""Everything before the numbers, where a set has one bitmap with one container."""
_FEW_OFFSET: Final = 16

_PLAIN: Final = 12_346
_WITH_RUNS: Final = 12_347
_OFFSETS_MIN: Final = 4
_ARRAY_MAX: Final = 4_096
_BITS_SIZE: Final = 8_192
_CONTAINERS_MAX: Final = 1 << 16


def decode_roaring(content: bytes | memoryview, *, count_max: int) -> Positions:
    """The numbers of a set, ascending.

    Memory: 8 bytes a number, at most `count_max` numbers. The limit is needed: a few bytes may stand for many numbers.
    Raises: ValueError for bytes that break the format, or that stand for more numbers.
    """
    few = _decode_few(content, count_max)
    if few is not None:
        return few

    # All other sets.
    reader = _Reader(memoryview(content).cast("B"))
    parts: list[Positions] = []
    left, before = count_max, -1
    for _ in range(reader.number(_COUNT_64)):
        upper = reader.number(_COUNT)
        if upper <= before:
            raise ValueError(f"expected ascending upper halves, found {upper} behind {before}")
        before = upper
        for part in _decode_bitmap(reader, left):
            left -= part.size
            parts.append(part.astype(np.uint64) | np.uint64(upper << 32))

    if reader.at != len(reader.content):
        raise ValueError(f"expected the end at byte {reader.at:,}, found {len(reader.content):,} bytes")
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _decode_few(content: bytes | memoryview, count_max: int) -> Positions | None:
    """The numbers of a set of one container without runs or bits, the form of small sets; None for other bytes.

    This is the fast way: logs of few rows have thousands of such sets.
    """
    if len(content) < _FEW.size:
        return None
    uppers, upper, cookie, containers, key, last, offset = _FEW.unpack_from(content)
    size = last + 1
    is_whole = len(content) == _FEW.size + _SHORT.size * size
    if (uppers, cookie, containers, offset) != (1, _PLAIN, 1, _FEW_OFFSET) or not is_whole:
        return None
    if size > min(_ARRAY_MAX, count_max):
        return None
    numbers = np.frombuffer(content, "<u2", size, _FEW.size).astype(np.uint64)
    if not (numbers[1:] > numbers[:-1]).all():
        return None
    return numbers | np.uint64(upper << 32 | key << 16)


class _Reader:
    """Takes bytes from the front of the content, one piece after the other."""

    def __init__(self, content: memoryview) -> None:
        self.content, self.at = content, 0

    def take(self, size: int) -> memoryview:
        if size > len(self.content) - self.at:
            raise ValueError(f"expected {size:,} bytes at byte {self.at:,}, found {len(self.content) - self.at:,}")
        self.at += size
        return self.content[self.at - size : self.at]

    def number(self, kind: struct.Struct) -> int:
        return int(kind.unpack(self.take(kind.size))[0])

    def shorts(self, count: int) -> npt.NDArray[np.int64]:
        return np.frombuffer(self.take(2 * count), "<u2").astype(np.int64)


def _decode_bitmap(reader: _Reader, count_max: int) -> list[npt.NDArray[np.int64]]:
    """The numbers of a 32-bit bitmap, container by container."""
    cookie = reader.number(_COUNT)
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.unpackbits(np.frombuffer(reader.take((count + 7) // 8), np.uint8), bitorder="little")
    elif cookie == _PLAIN:
        count = reader.number(_COUNT)
        flags = np.zeros(min(count, _CONTAINERS_MAX), np.uint8)
    else:
        raise ValueError(f"expected the cookie {_PLAIN} or {_WITH_RUNS}, found {cookie}")

    if count > _CONTAINERS_MAX:
        raise ValueError(f"expected at most {_CONTAINERS_MAX:,} containers, found {count:,}")

    heads = reader.shorts(2 * count).reshape(count, 2)
    keys, sizes = heads[:, 0], heads[:, 1] + 1
    if (np.diff(keys) <= 0).any():
        raise ValueError("expected ascending keys of containers")
    if int(sizes.sum()) > count_max:
        raise ValueError(f"expected at most {count_max:,} further numbers, found {int(sizes.sum()):,}")

    if cookie == _PLAIN or count >= _OFFSETS_MIN:
        reader.take(_COUNT.size * count)  # containers follow each other in this order

    parts = []
    for key, size, has_runs in zip(keys.tolist(), sizes.tolist(), flags[:count].tolist(), strict=True):
        values = _decode_runs(reader) if has_runs else _decode_numbers(reader, size)
        if values.size != size or (np.diff(values) <= 0).any() or values[-1] >= 1 << 16:
            raise ValueError(f"expected {size:,} ascending numbers in container {key}, found {values.size:,}")
        parts.append(values | key << 16)
    return parts


def _decode_runs(reader: _Reader) -> npt.NDArray[np.int64]:
    runs = reader.shorts(2 * reader.number(_SHORT)).reshape(-1, 2)
    starts, sizes = runs[:, 0], runs[:, 1] + 1
    if int(sizes.sum()) > 1 << 16:
        raise ValueError(f"expected runs of at most 65,536 numbers, found {int(sizes.sum()):,}")
    firsts = np.cumsum(sizes) - sizes
    return np.repeat(starts - firsts, sizes) + np.arange(int(sizes.sum()))


def _decode_numbers(reader: _Reader, size: int) -> npt.NDArray[np.int64]:
    if size <= _ARRAY_MAX:
        return reader.shorts(size)
    bits = np.unpackbits(np.frombuffer(reader.take(_BITS_SIZE), np.uint8), bitorder="little")
    return np.flatnonzero(bits.view(np.bool_))


def encode_roaring(positions: Positions) -> bytes:
    """The bitmap of strictly ascending numbers, with each container in its smallest form.

    Seen: Java's `Roaring64NavigableMap`, run-optimized, gives the same bytes; it takes runs only if they are smaller.
    Raises: ValueError for numbers that do not ascend.
    """
    if positions.dtype != np.uint64 or (positions[1:] <= positions[:-1]).any():
        raise ValueError("expected strictly ascending numbers of 64 bits without sign")
    uppers = (positions >> np.uint64(32)).astype(np.int64)
    bounds = _bounds(uppers)
    parts = [_COUNT_64.pack(len(bounds) - 1)]
    for start, end in pairwise(bounds):
        lower = (positions[start:end] & np.uint64(0xFFFF_FFFF)).astype(np.int64)
        parts += [_COUNT.pack(int(uppers[start])), _encode_bitmap(lower)]
    return b"".join(parts)


def _bounds(keys: npt.NDArray[np.int64]) -> list[int]:
    """Where each stretch of equal keys starts, and where the last stretch ends."""
    if keys.size == 0:
        return [0]
    return [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), int(keys.size)]


def _encode_bitmap(numbers: npt.NDArray[np.int64]) -> bytes:
    keys = numbers >> 16
    bounds = _bounds(keys)
    count = len(bounds) - 1
    heads, containers, flags = np.zeros((count, 2), "<u2"), [], np.zeros(count, np.uint8)
    for index, (start, end) in enumerate(pairwise(bounds)):
        heads[index] = keys[start], end - start - 1
        container, flags[index] = _encode_container(numbers[start:end] & 0xFFFF)
        containers.append(container)

    if flags.any():
        start_bytes = _COUNT.pack(_WITH_RUNS | (count - 1) << 16) + np.packbits(flags, bitorder="little").tobytes()
    else:
        start_bytes = _COUNT.pack(_PLAIN) + _COUNT.pack(count)

    head = start_bytes + heads.tobytes()
    if not flags.any() or count >= _OFFSETS_MIN:
        sizes = np.array([len(container) for container in containers], np.int64)
        offsets = len(head) + _COUNT.size * count + np.cumsum(sizes) - sizes
        head += offsets.astype("<u4").tobytes()

    return b"".join((head, *containers))


def _encode_container(numbers: npt.NDArray[np.int64]) -> tuple[bytes, bool]:
    """A container, and whether it holds runs."""
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    starts = numbers[np.concatenate([[0], breaks])]
    sizes = np.diff(np.concatenate([[0], breaks, [numbers.size]]))
    run_size = _SHORT.size + 4 * starts.size
    if run_size < min(2 * numbers.size, _BITS_SIZE):
        runs = np.column_stack([starts, sizes - 1]).astype("<u2")
        return _SHORT.pack(starts.size) + runs.tobytes(), True
    if numbers.size <= _ARRAY_MAX:
        return numbers.astype("<u2").tobytes(), False
    bits = np.zeros(1 << 16, np.uint8)
    bits[numbers] = 1
    return np.packbits(bits, bitorder="little").tobytes(), False
