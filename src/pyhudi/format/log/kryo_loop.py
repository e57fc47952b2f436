"""The loop that reads Kryo's delete records, compiled: classes, references, strings and numbers.

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

# Classes: first those that Kryo names, by their index in NAMES; then those that Kryo numbers, from _NUMBERED on.
NAMES: Final = (
    b"[Lorg.apache.hudi.common.model.DeleteRecord;",
    b"[Lorg.apache.hudi.common.model.HoodieKey;",
    b"org.apache.hudi.common.model.DeleteRecord",
    b"org.apache.hudi.common.model.HoodieKey",
    b"java.sql.Timestamp",
)
_RECORDS, _KEYS, _RECORD, _KEY, _TIMESTAMP = 0, 1, 2, 3, 4
_NUMBERED = 100
_INT, _STRING, _FLOAT, _BOOLEAN, _LONG, _DOUBLE = 100, 101, 102, 103, 107, 108
_UTF8_OLD, _UTF8, _UTF8_NEW = 127, 128, 144  # 0.13, 0.15, 1.2
_NULL_CLASS = -1
NAMES_MAX: Final = 16

# What the loop answers: FINE, or what is wrong.
FINE, CUT, BAD_CLASS, BAD_REFERENCE, BAD_TEXT, BAD_COUNT = 0, 1, 2, 3, 4, 5

# Columns of `found`, a row a delete: two texts by index, the kind of the ordering value, and its number.
PARTITION, RECORD_KEY, ORDERING, VALUE, WIDTH = 0, 1, 2, 3, 4
# The state of the loop: its offset; how many texts, bytes of text, objects and names were read so far.
AT, TEXTS, TEXT_SIZE, OBJECTS, NAME_COUNT, STATE_SIZE = 0, 1, 2, 3, 4, 5


@loop
def _number(data: Bytes, state: Numbers) -> np.int64:
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
def _class(data: Bytes, known: Bytes, known_ends: Numbers, state: Numbers, names: Numbers) -> tuple[int, Index]:
    """Read the class that stands next. Answers what is wrong, and the class, -2 for one that is not known.

    Layout: 0 for null; n + 2 for Kryo's class n; or 1, the name's index and, at its first use, the name in ASCII.
    """
    number = _number(data, state)
    if number < 0:
        return CUT, 0
    if number == 0:
        return FINE, _NULL_CLASS
    if number != 1:
        return FINE, _NUMBERED + number - 2

    name = _number(data, state)
    if name < 0:
        return CUT, 0
    if name < state[NAME_COUNT]:
        return FINE, names[name, 2]
    if name != state[NAME_COUNT] or name >= NAMES_MAX:
        return BAD_REFERENCE, 0

    # A name that is used for the first time.
    start = state[AT]
    at = start
    while at < data.size and data[at] < 0x80:
        at += 1
    if at >= data.size:
        return CUT, 0

    size = at + 1 - start
    found = np.int64(-2)
    for index in range(known_ends.size):
        first = known_ends[index - 1] if index else np.int64(0)
        if known_ends[index] - first == size:
            is_same = True
            for step in range(size):
                if data[start + step] & 0x7F != known[first + step]:
                    is_same = False
            if is_same:
                found = np.int64(index)

    names[name, 0], names[name, 1], names[name, 2] = start, size, found
    state[NAME_COUNT] += 1
    state[AT] = at + 1
    return FINE, found


@loop
def _object(data: Bytes, state: Numbers, objects: Numbers) -> tuple[int, Index, bool]:
    """Read the mark before an object: 0 for null, 1 for a new object, n + 2 for the object n that was read before.

    Answers what is wrong; the object's number, or -1 for null; whether the object is new, so that its bytes follow.
    """
    mark = _number(data, state)
    if mark < 0:
        return CUT, -1, False
    if mark == 0:
        return FINE, -1, False
    if mark == 1:
        if state[OBJECTS] >= objects.shape[0]:
            return BAD_REFERENCE, -1, False
        state[OBJECTS] += 1
        return FINE, state[OBJECTS] - 1, True
    if mark - 2 >= state[OBJECTS]:
        return BAD_REFERENCE, -1, False
    return FINE, mark - 2, False


@loop
def _unit(data: Bytes, state: Numbers) -> np.int64:
    """A UTF-16 unit, stored in 1 to 3 bytes; -1 for bytes that are none."""
    at = state[AT]
    if at >= data.size:
        return np.int64(-1)
    first = np.int64(data[at])
    size = 1 if first < 0x80 else 2 if first >> 5 == 6 else 3 if first >> 4 == 14 else 9
    if size > data.size - at:
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
def _text(data: Bytes, state: Numbers, texts: Bytes, ends: Ends) -> tuple[int, Index]:
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
def _utf8(data: Bytes, state: Numbers, texts: Bytes, ends: Ends) -> tuple[int, Index]:
    """Read an Avro `Utf8`, and answer as `_text` does. Layout: the size in bytes + 1, then the bytes."""
    size = _number(data, state) - 1
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
def _text_object(
    data: Bytes, state: Numbers, texts: Bytes, ends: Ends, objects: Numbers, is_utf8: bool
) -> tuple[int, Index]:
    wrong, number, is_here = _object(data, state, objects)
    if wrong != FINE or number < 0:
        return wrong, -1
    if is_here:
        if is_utf8:
            wrong, objects[number, 1] = _utf8(data, state, texts, ends)
        else:
            wrong, objects[number, 1] = _text(data, state, texts, ends)
        objects[number, 0] = _STRING
    return (wrong if objects[number, 0] == _STRING else BAD_REFERENCE), objects[number, 1]


@loop
def _fixed(data: Bytes, state: Numbers, size: int) -> np.int64:
    """A signed big-endian number of `size` bytes."""
    value = np.int64(0)
    for step in range(size):
        value = value << 8 | np.int64(data[state[AT] + step])
    state[AT] += size
    if size < 8 and value >> (8 * size - 1):
        value -= np.int64(1) << (8 * size)
    return value


@loop
def _zigzag(number: np.int64) -> np.int64:
    whole = np.uint64(number)
    return np.int64(whole >> np.uint64(1)) ^ -np.int64(whole & np.uint64(1))


@loop
def _ordering(
    data: Bytes,
    known: Bytes,
    known_ends: Numbers,
    state: Numbers,
    texts: Bytes,
    ends: Ends,
    found: Numbers,
    objects: Numbers,
    names: Numbers,
) -> int:
    """Read an ordering value into `found`, a delete's row; its kind as in `OrderingKind`. Answers what is wrong."""
    wrong, kind = _class(data, known, known_ends, state, names)
    if wrong != FINE:
        return wrong

    left = data.size - state[AT]
    if kind == _NULL_CLASS:
        found[ORDERING] = 0
    elif kind in (_INT, _LONG):
        start = state[AT]
        number = _number(data, state)
        if state[AT] == start:
            return CUT
        found[ORDERING], found[VALUE] = (2 if kind == _INT else 3), _zigzag(number)
        if kind == _INT and not -(1 << 31) <= found[VALUE] < 1 << 31:
            return BAD_COUNT
    elif kind in (_FLOAT, _DOUBLE):
        size = 4 if kind == _FLOAT else 8
        if left < size:
            return CUT
        found[ORDERING], found[VALUE] = (4 if kind == _FLOAT else 5), _fixed(data, state, size)
    elif kind == _BOOLEAN:
        if left < 1:
            return CUT
        found[ORDERING], found[VALUE] = 1, _fixed(data, state, 1)
    elif kind in (_STRING, _UTF8_OLD, _UTF8, _UTF8_NEW):
        wrong, found[VALUE] = _text_object(data, state, texts, ends, objects, kind != _STRING)
        found[ORDERING] = 7 if found[VALUE] >= 0 else 0
        return wrong
    elif kind == _TIMESTAMP:
        wrong, slot, is_here = _object(data, state, objects)
        if wrong != FINE or slot < 0:
            return BAD_REFERENCE if wrong == FINE else wrong
        if is_here:
            start = state[AT]
            objects[slot, 0], objects[slot, 1] = _TIMESTAMP, _number(data, state)
            if state[AT] == start:
                return CUT
        if objects[slot, 0] != _TIMESTAMP or not -(1 << 53) < objects[slot, 1] < 1 << 53:
            return BAD_REFERENCE
        # `java.sql.Timestamp` counts milliseconds; ordering values count microseconds.
        found[ORDERING], found[VALUE] = 11, 1000 * objects[slot, 1]
    else:
        return BAD_CLASS
    return FINE


@loop
def _key(data: Bytes, state: Numbers, texts: Bytes, ends: Ends, found: Numbers, objects: Numbers) -> int:
    """Read a HoodieKey, whose class was read, into `found`, the row of a delete. Answers what is wrong."""
    wrong, number, is_here = _object(data, state, objects)
    if wrong != FINE or number < 0:
        return BAD_REFERENCE if wrong == FINE else wrong
    if is_here:
        objects[number, 0] = _KEY
        wrong, objects[number, 1] = _text_object(data, state, texts, ends, objects, False)
        if wrong != FINE:
            return wrong
        wrong, objects[number, 2] = _text_object(data, state, texts, ends, objects, False)
    if objects[number, 0] != _KEY:
        return BAD_REFERENCE
    found[PARTITION], found[RECORD_KEY] = objects[number, 1], objects[number, 2]
    return wrong


@loop
def run(
    data: Bytes,
    known: Bytes,
    known_ends: Numbers,
    state: Numbers,
    texts: Bytes,
    ends: Ends,
    found: Numbers,
    objects: Numbers,
    names: Numbers,
) -> tuple[int, Index]:
    """Read an array of delete records, or of keys. Answers what is wrong, and how many elements were read."""
    wrong, kind = _class(data, known, known_ends, state, names)
    if wrong != FINE:
        return wrong, 0
    if kind != _RECORDS and kind != _KEYS:
        return BAD_CLASS, 0

    wrong, number, is_here = _object(data, state, objects)

    if wrong != FINE or not is_here:
        return BAD_REFERENCE, 0
    count = _number(data, state) - 1
    if not 0 <= count <= data.size - state[AT]:
        return BAD_COUNT, 0

    for row in range(count):
        wrong, class_number = _class(data, known, known_ends, state, names)
        if wrong != FINE:
            return wrong, row

        # An INT of 0 is a delete without an ordering value.
        found[row, ORDERING] = 2
        if kind == _RECORDS and class_number == _RECORD:
            wrong, number, is_here = _object(data, state, objects)
            if wrong != FINE or number < 0:
                return BAD_REFERENCE, row
            if is_here:
                objects[number, 0], objects[number, 1] = _RECORD, row
                wrong, class_number = _class(data, known, known_ends, state, names)
                if wrong == FINE:
                    wrong = _key(data, state, texts, ends, found[row], objects) if class_number == _KEY else BAD_CLASS
                if wrong == FINE:
                    wrong = _ordering(data, known, known_ends, state, texts, ends, found[row], objects, names)
            elif objects[number, 0] == _RECORD:
                found[row] = found[objects[number, 1]]
            else:
                wrong = BAD_REFERENCE
        elif kind == _KEYS and class_number == _KEY:
            wrong = _key(data, state, texts, ends, found[row], objects)
        else:
            wrong = BAD_CLASS
        if wrong != FINE:
            return wrong, row
    return FINE, count
