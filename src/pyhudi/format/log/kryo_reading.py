"""Numbers and texts as Kryo writes them, and what the compiled loop that reads them keeps.

Every read is checked against the end of the data. Layout: `kryo.py`.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from pyhudi.loops import loop

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
Ends = npt.NDArray[np.int32]
Index = int | np.int64

# What the loop answers: FINE, or what is wrong.
FINE: Final = 0
CUT, BAD_CLASS, BAD_REFERENCE, BAD_TEXT, BAD_COUNT, BAD_VALUE, TOO_WIDE = 1, 2, 3, 4, 5, 6, 7

# The state of the loop: its offset; how many texts, bytes of text, objects and names were read so far.
AT, TEXTS, TEXT_SIZE, OBJECTS, NAME_COUNT, STATE_SIZE = 0, 1, 2, 3, 4, 5


@loop
def read_number(data: Bytes, state: Numbers) -> np.int64:
    """An unsigned number, 7 bits a byte, low bits first; -1 where the bytes end, or after more than 10 of them."""
    value, shift, at = np.uint64(0), np.uint64(0), state[AT]
    while at < data.size and shift < np.uint64(70):
        byte = np.uint64(data[at])
        at += 1
        if shift == np.uint64(56):  # the ninth byte of a long is whole
            value |= byte << shift
            state[AT] = at
            return np.int64(value)
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            state[AT] = at
            return np.int64(value)
        shift += np.uint64(7)
    return np.int64(-1)


@loop
def _unit(data: Bytes, state: Numbers) -> np.int64:
    """A UTF-16 unit, stored in 1 to 3 bytes; -1 for bytes that are none."""
    at = state[AT]
    if at >= data.size:
        return np.int64(-1)
    first = np.int64(data[at])
    size = 1 if first < 0x80 else 2 if first >> 5 == 6 else 3 if first >> 4 == 14 else 0
    if size == 0 or size > data.size - at:
        return np.int64(-1)
    unit = first if size == 1 else first & (0x1F if size == 2 else 0x0F)
    for step in range(1, size):
        unit = unit << 6 | np.int64(data[at + step]) & 0x3F
    state[AT] = at + size
    return unit


@loop
def _put(texts: Bytes, at: Index, code: Index) -> Index:
    """Write a character as UTF-8; answer where the next goes. The caller's check finds a lone half of a pair."""
    size = 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    if size == 1:
        texts[at] = code
        return at + 1

    for step in range(size - 1, 0, -1):
        texts[at + step] = 0x80 | code & 0x3F
        code >>= 6
    texts[at] = (0xF00 >> size) & 0xFF | code
    return at + size


@loop
def read_text(data: Bytes, state: Numbers, texts: Bytes, ends: Ends) -> tuple[int, Index]:
    """Read the text that stands next. Answers what is wrong, and the text's index, -1 for null.

    Layout: ASCII with the high bit set in the last byte; or, with the high bit set in the first byte, the number of
    UTF-16 units + 1 (0 for null) and the units. A text takes no more bytes in UTF-8 than it has here.
    """
    at, out = state[AT], state[TEXT_SIZE]
    if at >= data.size:
        return CUT, -1
    if data[at] & 0x80:
        length = np.int64(data[at] & 0x3F)
        has_more = data[at] & 0x40 != 0
        shift = 6
        at += 1
        while has_more:
            if at >= data.size or shift > 27:
                return CUT, -1
            length |= np.int64(data[at] & 0x7F) << shift
            has_more = data[at] & 0x80 != 0
            shift += 7
            at += 1
        state[AT] = at
        if length == 0:
            return FINE, -1
        if length - 1 > data.size - at:
            return CUT, -1

        left = length - 1
        while left > 0:
            unit = _unit(data, state)
            left -= 1
            if 0xD800 <= unit < 0xDC00 and left > 0:
                second = _unit(data, state)
                left -= 1
                if not 0xDC00 <= second < 0xE000:
                    return BAD_TEXT, -1
                unit = 0x10000 + ((unit - 0xD800) << 10) + second - 0xDC00
            if unit < 0:
                return BAD_TEXT, -1
            out = _put(texts, out, unit)
    else:
        while at < data.size and data[at] < 0x80:
            texts[out] = data[at]
            at, out = at + 1, out + 1
        if at >= data.size:
            return CUT, -1
        texts[out] = data[at] & 0x7F
        out += 1
        state[AT] = at + 1

    state[TEXT_SIZE] = out
    state[TEXTS] += 1
    ends[state[TEXTS]] = out
    return FINE, state[TEXTS] - 1


@loop
def read_utf8(data: Bytes, state: Numbers, texts: Bytes, ends: Ends) -> tuple[int, Index]:
    """Read an Avro `Utf8`, and answer as `read_text` does. Layout: the size in bytes + 1, then the bytes."""
    size = read_number(data, state) - 1
    if not 0 <= size <= data.size - state[AT]:
        return CUT, -1
    for step in range(size):
        texts[state[TEXT_SIZE] + step] = data[state[AT] + step]
    state[AT] += size
    state[TEXT_SIZE] += size
    state[TEXTS] += 1
    ends[state[TEXTS]] = state[TEXT_SIZE]
    return FINE, state[TEXTS] - 1


@loop
def read_fixed(data: Bytes, state: Numbers, size: int) -> np.int64:
    """A signed big-endian number of `size` bytes."""
    value = np.int64(0)
    for step in range(size):
        value = value << 8 | np.int64(data[state[AT] + step])
    state[AT] += size
    if size < 8 and value >> (8 * size - 1):
        value -= np.int64(1) << (8 * size)
    return value


@loop
def zigzag(number: np.int64) -> np.int64:
    whole = np.uint64(number)
    return np.int64(whole >> np.uint64(1)) ^ -np.int64(whole & np.uint64(1))
