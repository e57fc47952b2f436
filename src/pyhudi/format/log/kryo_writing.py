"""Delete records as Java's Kryo serializer writes them, for the delete blocks of table version 5.

Layout: `kryo.py`. A partition's text stands there once; later records refer to it. Every other object is new.
Spec: format/log-format.md section 2.4, "Version 2". Seen: 0.13.1.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from pyhudi.errors import Unsupported
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.log import kryo_loop
from pyhudi.format.log.kryo_reading import Bytes, Index, Numbers
from pyhudi.format.log.kryo_values import SCALE, date_parts, put_unscaled
from pyhudi.format.log.ordering import ORDERING, OrderingKind, ordering_kind
from pyhudi.loops import loop

_ARRAY_NAME, _RECORD_NAME, _KEY_NAME = kryo_loop.NAMES[0], kryo_loop.NAMES[2], kryo_loop.NAMES[3]
_ROW_BYTES_MAX: Final = 64
"""What a record takes beside its texts: classes, marks, and a number of at most ten bytes."""

_DATE_NAME, _DECIMAL_NAME = kryo_loop.NAMES[5], kryo_loop.NAMES[6]
_NULL, _BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _TEXT, _DATE, _DECIMAL = 0, 1, 2, 3, 4, 5, 7, 8, 9
_WRITTEN: Final = frozenset(map(OrderingKind, (_NULL, _BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _TEXT, _DATE, _DECIMAL)))
_INT_CLASS, _FLOAT_CLASS, _BOOLEAN_CLASS, _LONG_CLASS, _DOUBLE_CLASS, _UTF8_CLASS = 2, 4, 5, 9, 10, 0x1D
"""The numbers that Kryo gives to classes; that of Avro's `Utf8`, which holds texts of columns, as 0.13 numbers it."""


@loop
def _put_number(out: Bytes, at: Index, number: np.uint64) -> Index:
    """An unsigned number, 7 bits a byte, low bits first. The ninth byte of a long is whole."""
    step = 0
    while number >= np.uint64(0x80) and step < 8:
        out[at] = np.uint8(number & np.uint64(0x7F)) | np.uint8(0x80)
        number >>= np.uint64(7)
        at += 1
        step += 1
    out[at] = np.uint8(number & np.uint64(0xFF))
    return at + 1


@loop
def _put_bytes(out: Bytes, at: Index, data: Bytes, start: Index, end: Index) -> Index:
    for step in range(start, end):
        out[at] = data[step]
        at += 1
    return at


@loop
def _put_unit(out: Bytes, at: Index, unit: Index) -> Index:
    """A UTF-16 unit in 1 to 3 bytes."""
    if unit < 0x80:
        out[at] = unit
        return at + 1
    if unit < 0x800:
        out[at], out[at + 1] = 0xC0 | unit >> 6, 0x80 | unit & 0x3F
        return at + 2
    out[at], out[at + 1], out[at + 2] = 0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F
    return at + 3


@loop
def _put_text(out: Bytes, at: Index, data: Bytes, start: Index, end: Index) -> Index:
    """A text of UTF-8: as ASCII with a mark on its last byte, or as the count of UTF-16 units + 1 and the units."""
    units, is_ascii = 0, True
    for step in range(start, end):
        byte = data[step]
        if byte >= 0x80:
            is_ascii = False
        if byte & 0xC0 != 0x80:
            units += 2 if byte >= 0xF0 else 1

    if is_ascii and 1 < units < 64:
        at = _put_bytes(out, at, data, start, end)
        out[at - 1] |= np.uint8(0x80)
        return at

    left = units + 1
    out[at] = 0x80 | left & 0x3F
    left >>= 6
    if left > 0:
        out[at] |= np.uint8(0x40)
        at = _put_number(out, at + 1, np.uint64(left))
    else:
        at += 1

    read: Index = start
    while read < end:
        first = np.int64(data[read])
        size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        code = first if size == 1 else first & (0x7F >> size)
        for more in range(1, size):
            code = code << 6 | np.int64(data[read + more]) & 0x3F
        if size == 4:
            code -= 0x10000
            at = _put_unit(out, at, 0xD800 | code >> 10)
            at = _put_unit(out, at, 0xDC00 | code & 0x3FF)
        else:
            at = _put_unit(out, at, code)
        read += size
    return at


@loop
def _put_fixed(out: Bytes, at: Index, number: np.int64, size: int) -> Index:
    """A big-endian number of `size` bytes."""
    for step in range(size):
        out[at + step] = number >> (8 * (size - 1 - step)) & 0xFF
    return at + size


@loop
def _put_class(out: Bytes, at: Index, number: int, name: Bytes, is_first: bool) -> Index:
    """A class that Kryo has no number for: its name where it comes for the first time, else which name it is."""
    out[at], out[at + 1] = 1, number
    at += 2
    if is_first:
        at = _put_bytes(out, at, name, 0, name.size)
        out[at - 1] |= np.uint8(0x80)
    return at


@loop
def _put_ordering(
    out: Bytes, at: Index, kind: Index, number: Numbers, texts: Bytes, start: Index, end: Index
) -> tuple[Index, int]:
    """An ordering value: its class, unless Kryo has no number for it; then the value. `number`: the two halves of a
    decimal; else the first counts. Answers where the next byte goes, and how many objects the value took.
    """
    value = number[0]
    if kind == _NULL:
        out[at] = 0
        return at + 1, 0
    if kind in (_INT, _LONG):
        out[at] = _INT_CLASS if kind == _INT else _LONG_CLASS
        zigzag = np.uint64(value << 1) ^ np.uint64(value >> 63)
        return _put_number(out, at + 1, zigzag), 0
    if kind in (_FLOAT, _DOUBLE):
        out[at] = _FLOAT_CLASS if kind == _FLOAT else _DOUBLE_CLASS
        return _put_fixed(out, at + 1, value, 4 if kind == _FLOAT else 8), 0
    if kind == _BOOLEAN:
        out[at], out[at + 1] = _BOOLEAN_CLASS, value
        return at + 2, 0
    if kind == _DATE:
        year, month, day = date_parts(value)
        out[at] = 1
        at = _put_number(out, at + 1, np.uint64(year & 0xFFFF_FFFF))
        out[at], out[at + 1] = month, day
        return at + 2, 1
    if kind == _DECIMAL:
        out[at] = 1
        at = put_unscaled(out, at + 1, value, number[1])
        return _put_number(out, at, np.uint64(2 * SCALE)), 1
    out[at], out[at + 1] = _UTF8_CLASS, 1
    at = _put_number(out, at + 2, np.uint64(end - start + 1))
    return _put_bytes(out, at, texts, start, end), 1


@loop
def _put_deletes(
    names: tuple[Bytes, Bytes, Bytes, Bytes],
    keys: Bytes,
    key_ends: Numbers,
    partitions: Bytes,
    partition_ends: Numbers,
    partition_of: Numbers,
    kinds: Numbers,
    numbers: Numbers,
    texts: Bytes,
    text_ends: Numbers,
    objects: Numbers,
    out: Bytes,
) -> Index:
    """Write all. `names`: the classes of the array, a record, a key and an ordering value. `…_ends`: where each text
    ends; a first 0 stands before them. `objects`: a place for each partition, -1. Answers how many bytes were written.
    """
    count = partition_of.size
    at = _put_class(out, 0, 0, names[0], True)
    out[at] = 1
    at = _put_number(out, at + 1, np.uint64(count + 1))
    made, is_named = 1, False
    for row in range(count):
        at = _put_class(out, at, 1, names[1], row == 0)
        out[at] = 1
        at = _put_class(out, at + 1, 2, names[2], row == 0)
        out[at] = 1
        at += 1
        made += 2

        partition = partition_of[row]
        if objects[partition] >= 0:
            at = _put_number(out, at, np.uint64(objects[partition] + 2))
        else:
            objects[partition] = made
            made += 1
            out[at] = 1
            at = _put_text(out, at + 1, partitions, partition_ends[partition], partition_ends[partition + 1])

        out[at] = 1
        at = _put_text(out, at + 1, keys, key_ends[row], key_ends[row + 1])
        made += 1

        if kinds[row] == _DATE or kinds[row] == _DECIMAL:
            at = _put_class(out, at, 3, names[3], not is_named)
            is_named = True
        at, taken = _put_ordering(out, at, kinds[row], numbers[row], texts, text_ends[row], text_ends[row + 1])
        made += taken
    return at


def encode_kryo_deletes(deletes: pa.RecordBatch) -> bytes:
    """The bytes of deletes, which are columns as in `delete.DELETES`. Memory: the bytes, twice.

    Raises: Unsupported for an ordering value of a kind that is not written in this form.
    """
    kinds = deletes.column(2).to_numpy(zero_copy_only=False).astype(np.int64)
    for kind in np.unique(kinds).tolist():
        if OrderingKind(kind) not in _WRITTEN:
            raise Unsupported(_refusal(OrderingKind(kind)))

    keys, key_ends = _texts(deletes.column(0))
    named = one_array(deletes.column(1)).dictionary_encode()
    partitions, partition_ends = _texts(named.dictionary)
    texts, text_ends = _texts(deletes.column(3).field("string"))
    value_name = _DATE_NAME if OrderingKind.DATE in kinds else _DECIMAL_NAME  # a column has values of one type
    size_max = 256 + _ROW_BYTES_MAX * len(kinds) + 2 * (keys.size + partitions.size + texts.size)
    out = np.zeros(size_max, np.uint8)
    size = _put_deletes(
        (_as_bytes(_ARRAY_NAME), _as_bytes(_RECORD_NAME), _as_bytes(_KEY_NAME), _as_bytes(value_name)),
        keys, key_ends, partitions, partition_ends, np.asarray(named.indices).astype(np.int64),
        kinds, _numbers(deletes.column(3), kinds), texts, text_ends,
        np.full(max(len(named.dictionary), 1), -1, np.int64), out,
    )  # fmt: skip
    return out[: int(size)].tobytes()


def refuse_java_ordering(types: Sequence[pa.DataType], *, what: str) -> None:
    """Refuse ordering columns of types whose values this form does not hold here. Raises: Unsupported."""
    for kind in map(ordering_kind, types):
        if kind not in _WRITTEN:
            raise Unsupported(f"{what}: {_refusal(kind)}")


def _refusal(kind: OrderingKind) -> str:
    return (
        f"deletes ordered by a column of {kind.name.lower()}: table version 5 stores ordering values as Java objects, "
        "and the form of these depends on the Java that reads them; upgrade the table, or order it by another column"
    )


def _as_bytes(name: bytes) -> Bytes:
    return np.frombuffer(name, np.uint8)


def _texts(column: pa.Array) -> tuple[Bytes, Numbers]:
    """The bytes of a column of texts, and where each text ends, after a first 0. A null is an empty text."""
    filled = one_array(column).fill_null("").cast(pa.large_string())
    _, offsets, data = filled.buffers()
    ends = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1] if len(filled) else None
    if ends is None:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    held = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return held[ends[0] : ends[-1]], ends - ends[0]


def _numbers(ordering: pa.StructArray, kinds: Numbers) -> Numbers:
    """For each delete two numbers that its ordering value is written as: the value or the bits of a float, and 0; for a
    decimal its halves.
    """
    numbers = np.zeros((len(kinds), 2), np.int64)
    for field, member in zip(ORDERING, ordering.flatten(), strict=True):
        kind = OrderingKind[field.name.upper()]
        chosen = kinds == kind
        if kind is OrderingKind.STRING or not chosen.any():
            continue
        values = member.filter(pa.array(chosen))
        if kind is OrderingKind.DECIMAL:
            numbers[chosen] = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset :][
                : len(values)
            ]
            continue
        values = values.to_numpy(zero_copy_only=False)
        if kind is OrderingKind.FLOAT:
            values = values.astype(np.float32).view(np.int32)
        elif kind is OrderingKind.DOUBLE:
            values = values.astype(np.float64).view(np.int64)
        numbers[chosen, 0] = values.astype(np.int64)
    return numbers
