"""Copies stored values into Arrow's buffers, compiled: texts and bytes one behind the other, decimals as 128 bits.

A span, `position << 32 | size`, says where a value is stored.
"""

import numpy as np
import numpy.typing as npt

from pyhudi.loops import loop

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]

_SIZE = np.int64(0xFFFFFFFF)


@loop
def sum_sizes(spans: Numbers, offsets: Ints) -> int:
    """Fill in where each value starts and the last ends. Answers the sum of sizes; beyond 2 GiB offsets are wrong."""
    total = np.int64(0)
    for index in range(spans.size):
        offsets[index] = np.int32(total)
        total += spans[index] & _SIZE
    offsets[spans.size] = np.int32(total)
    return int(total)


@loop
def copy_spans(content: Bytes, spans: Numbers, out: Bytes) -> int:
    """Copy values one behind the other. Answers the bitwise OR of all bytes: below 0x80, all of them are ASCII."""
    to = 0
    bits = np.uint8(0)
    for index in range(spans.size):
        at = spans[index] >> np.int64(32)
        for step in range(spans[index] & _SIZE):
            byte = content[at + step]
            bits |= byte
            out[to + step] = byte
        to += spans[index] & _SIZE
    return int(bits)


@loop
def widen_decimals(content: Bytes, spans: Numbers, out: npt.NDArray[np.uint64]) -> int:
    """Write numbers in two's complement, big endian, of any size, as (n, 2) words of 64 bits, the low word first.

    A value of no bytes is 0, which `out` holds beforehand. Answers the index of the first value beyond 128 bits, or -1.
    """
    for index in range(spans.size):
        at, size = spans[index] >> np.int64(32), spans[index] & _SIZE
        if size == 0:
            continue

        sign = np.uint64(0xFF) if content[at] >= 0x80 else np.uint64(0)
        low = high = np.uint64(0) - (sign & np.uint64(1))

        for step in range(size):
            byte = np.uint64(content[at + step])
            # Bytes beyond the last 16 may only repeat the sign.
            if step < size - 16:
                if byte != sign:
                    return index
                continue
            if step == size - 16 and (byte >> np.uint64(7)) != (sign & np.uint64(1)):
                return index

            high = high << np.uint64(8) | low >> np.uint64(56)
            low = low << np.uint64(8) | byte

        out[index, 0], out[index, 1] = low, high
    return -1
