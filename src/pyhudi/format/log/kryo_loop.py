"""The loop that reads Kryo's delete records, compiled: classes, references, strings and numbers.

Every read is checked against the end of the data. Layout: `kryo.py`.
"""

from typing import Final

import numpy as np

from pyhudi.format.log.kryo_reading import (
    AT,
    BAD_CLASS,
    BAD_COUNT,
    BAD_REFERENCE,
    BAD_VALUE,
    CUT,
    FINE,
    NAME_COUNT,
    OBJECTS,
    Bytes,
    Ends,
    Index,
    Numbers,
    read_fixed,
    read_number,
    read_text,
    read_utf8,
    zigzag,
)
from pyhudi.format.log.kryo_values import read_date, read_decimal
from pyhudi.loops import loop

# Classes: first those that Kryo names, by their index in NAMES; then those that Kryo numbers, from _NUMBERED on.
NAMES: Final = (
    b"[Lorg.apache.hudi.common.model.DeleteRecord;",
    b"[Lorg.apache.hudi.common.model.HoodieKey;",
    b"org.apache.hudi.common.model.DeleteRecord",
    b"org.apache.hudi.common.model.HoodieKey",
    b"java.sql.Timestamp",
    b"java.time.LocalDate",
    b"java.math.BigDecimal",
)
_RECORDS, _KEYS, _RECORD, _KEY, _TIMESTAMP, _DATE, _DECIMAL = 0, 1, 2, 3, 4, 5, 6
_NUMBERED = 100
_INT, _STRING, _FLOAT, _BOOLEAN, _LONG, _DOUBLE = 100, 101, 102, 103, 107, 108
_UTF8_OLD, _UTF8, _UTF8_NEW = 127, 128, 144  # 0.13, 0.15, 1.2
_NULL_CLASS = -1
NAMES_MAX: Final = 16

# Columns of `found`, a row a delete: two texts by index, the kind of the ordering value, and its number, of which a
# decimal has a second half.
PARTITION, RECORD_KEY, ORDERING, VALUE, HIGH, WIDTH = 0, 1, 2, 3, 4, 5


@loop
def _class(data: Bytes, known: Bytes, known_ends: Numbers, state: Numbers, names: Numbers) -> tuple[int, Index]:
    """Read the class that stands next. Answers what is wrong, and the class, -2 for one that is not known.

    Layout: 0 for null; n + 2 for Kryo's class n; or 1, the name's index and, at its first use, the name in ASCII.
    """
    number = read_number(data, state)
    if number < 0:
        return CUT, 0
    if number == 0:
        return FINE, _NULL_CLASS
    if number != 1:
        return FINE, _NUMBERED + number - 2

    name = read_number(data, state)
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
    mark = read_number(data, state)
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
def _text_object(
    data: Bytes, state: Numbers, texts: Bytes, ends: Ends, objects: Numbers, is_utf8: bool
) -> tuple[int, Index]:
    wrong, number, is_here = _object(data, state, objects)
    if wrong != FINE or number < 0:
        return wrong, -1
    if is_here:
        if is_utf8:
            wrong, objects[number, 1] = read_utf8(data, state, texts, ends)
        else:
            wrong, objects[number, 1] = read_text(data, state, texts, ends)
        objects[number, 0] = _STRING
    return (wrong if objects[number, 0] == _STRING else BAD_REFERENCE), objects[number, 1]


@loop
def _value(data: Bytes, state: Numbers, kind: Index, value: Numbers) -> int:
    """Read the value of an object that is new. Answers what is wrong."""
    if kind == _DATE:
        return read_date(data, state, value)
    if kind == _DECIMAL:
        return read_decimal(data, state, value)

    start = state[AT]
    milliseconds = read_number(data, state)
    if state[AT] == start:
        return CUT
    if not -(1 << 53) < milliseconds < 1 << 53:
        return BAD_VALUE
    value[1] = 1000 * milliseconds  # ordering values count microseconds
    return FINE


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
        number = read_number(data, state)
        if state[AT] == start:
            return CUT
        found[ORDERING], found[VALUE] = (2 if kind == _INT else 3), zigzag(number)
        if kind == _INT and not -(1 << 31) <= found[VALUE] < 1 << 31:
            return BAD_COUNT
    elif kind in (_FLOAT, _DOUBLE):
        size = 4 if kind == _FLOAT else 8
        if left < size:
            return CUT
        found[ORDERING], found[VALUE] = (4 if kind == _FLOAT else 5), read_fixed(data, state, size)
    elif kind == _BOOLEAN:
        if left < 1:
            return CUT
        found[ORDERING], found[VALUE] = 1, read_fixed(data, state, 1)
    elif kind in (_STRING, _UTF8_OLD, _UTF8, _UTF8_NEW):
        wrong, found[VALUE] = _text_object(data, state, texts, ends, objects, kind != _STRING)
        found[ORDERING] = 7 if found[VALUE] >= 0 else 0
        return wrong
    elif kind in (_TIMESTAMP, _DATE, _DECIMAL):
        wrong, slot, is_here = _object(data, state, objects)
        if wrong != FINE or slot < 0:
            return BAD_REFERENCE if wrong == FINE else wrong
        if is_here:
            objects[slot, 0] = kind
            wrong = _value(data, state, kind, objects[slot])
        if objects[slot, 0] != kind:
            return BAD_REFERENCE
        found[ORDERING] = 11 if kind == _TIMESTAMP else 8 if kind == _DATE else 9
        found[VALUE], found[HIGH] = objects[slot, 1], objects[slot, 2]
        return wrong
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
    count = read_number(data, state) - 1
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
