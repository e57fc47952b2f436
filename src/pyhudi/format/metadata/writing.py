"""Steps that each write one field of many records of Avro binary, compiled: they encode metadata records from columns.

Each field has two steps. `measure_...` adds the field's bytes to the sizes of all rows. `put_...` writes the field at
`at[row]`, for the rows from `start` to `end`, and moves `at[row]` behind it. Rows that are not `active` lack the field.

Spec: Apache Avro 1.11, "Binary Encoding".
"""

import numpy as np
import numpy.typing as npt

from pyhudi.format.avro.encoding import Index, put_number, put_word
from pyhudi.format.metadata.reading import AS_4_BYTES, AS_8_BYTES, AS_ARRAY, AS_BOOLEAN, AS_INT, AS_NUMBER, NOTHING
from pyhudi.loops import inlined, loop

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]


@inlined
def _number_size(number: Index) -> int:
    rest = np.uint64(number << 1) ^ np.uint64(number >> 63)
    size = 1
    while rest > np.uint64(0x7F):
        rest >>= np.uint64(7)
        size += 1
    return size


@loop
def measure_fixed(sizes: Numbers, active: Bytes, text: Bytes) -> None:
    """Measure the same bytes for each row."""
    for row in range(sizes.size):
        sizes[row] += text.size if active[row] else 0


@loop
def put_fixed(out: Bytes, at: Numbers, start: int, end: int, active: Bytes, text: Bytes) -> None:
    for row in range(start, end):
        if active[row]:
            for index in range(text.size):
                out[at[row] + index] = text[index]
            at[row] += text.size


@loop
def measure_bytes(sizes: Numbers, active: Bytes, flags: Bytes) -> None:
    """Measure a byte a row: a boolean, or the branch of a union, times two."""
    for row in range(sizes.size):
        sizes[row] += 1 if active[row] else 0


@loop
def put_bytes(out: Bytes, at: Numbers, start: int, end: int, active: Bytes, flags: Bytes) -> None:
    for row in range(start, end):
        if active[row]:
            out[at[row]] = flags[row]
            at[row] += 1


@loop
def measure_numbers(sizes: Numbers, active: Bytes, numbers: Numbers) -> None:
    for row in range(sizes.size):
        sizes[row] += _number_size(numbers[row]) if active[row] else 0


@loop
def put_numbers(out: Bytes, at: Numbers, start: int, end: int, active: Bytes, numbers: Numbers) -> None:
    for row in range(start, end):
        if active[row]:
            at[row] = put_number(out, at[row], numbers[row])


@loop
def measure_texts(sizes: Numbers, active: Bytes, offsets: Numbers, data: Bytes) -> None:
    for row in range(sizes.size):
        if active[row]:
            size = offsets[row + 1] - offsets[row]
            sizes[row] += _number_size(size) + size


@loop
def put_texts(out: Bytes, at: Numbers, start: int, end: int, active: Bytes, offsets: Numbers, data: Bytes) -> None:
    for row in range(start, end):
        if active[row]:
            at[row] = _put_text(out, at[row], offsets[row], offsets[row + 1], data)


@inlined
def _put_text(out: Bytes, at: Index, first: Index, last: Index, data: Bytes) -> Index:
    at = put_number(out, at, last - first)
    for index in range(last - first):
        out[at + index] = data[first + index]
    return at + last - first


@loop
def measure_wrapped(
    sizes: Numbers, active: Bytes, branches: Numbers, layouts: Bytes, bits: Numbers, offsets: Numbers, data: Bytes
) -> None:
    for row in range(sizes.size):
        if active[row]:
            layout = layouts[branches[row]]
            held = offsets[row + 1] - offsets[row]
            size = 1

            if layout in (AS_NUMBER, AS_INT):
                size += _number_size(bits[row])
            elif layout == AS_BOOLEAN:
                size += 1
            elif layout == AS_4_BYTES:
                size += 4
            elif layout == AS_8_BYTES:
                size += 8
            elif layout == AS_ARRAY:
                size += held
            elif layout != NOTHING:
                size += _number_size(held) + held

            sizes[row] += size


@loop
def put_wrapped(
    out: Bytes,
    at: Numbers,
    start: int,
    end: int,
    active: Bytes,
    branches: Numbers,
    layouts: Bytes,
    bits: Numbers,
    offsets: Numbers,
    data: Bytes,
) -> None:
    """Write a union of wrappers: the branch, and the value in the branch's layout."""
    for row in range(start, end):
        if active[row]:
            layout = layouts[branches[row]]
            to = put_number(out, at[row], branches[row])

            if layout in (AS_NUMBER, AS_INT):
                to = put_number(out, to, bits[row])
            elif layout == AS_BOOLEAN:
                to = put_word(out, to, np.uint64(bits[row]), 1)
            elif layout == AS_4_BYTES:
                to = put_word(out, to, np.uint64(bits[row]), 4)
            elif layout == AS_8_BYTES:
                to = put_word(out, to, np.uint64(bits[row]), 8)
            elif layout == AS_ARRAY:
                for index in range(offsets[row], offsets[row + 1]):
                    out[to] = data[index]
                    to += 1
            elif layout != NOTHING:
                to = _put_text(out, to, offsets[row], offsets[row + 1], data)

            at[row] = to


@loop
def measure_entries(
    sizes: Numbers, active: Bytes, firsts: Numbers, offsets: Numbers, data: Bytes, file_sizes: Numbers, flags: Bytes
) -> None:
    """Measure a map of files: one block and its end. `firsts`: each row's first entry, and the count of all entries."""
    for row in range(sizes.size):
        if active[row]:
            first, last = firsts[row], firsts[row + 1]
            size = 1 + (_number_size(last - first) if last > first else 0)
            for entry in range(first, last):
                held = offsets[entry + 1] - offsets[entry]
                size += _number_size(held) + held + _number_size(file_sizes[entry]) + 1
            sizes[row] += size


@loop
def put_entries(
    out: Bytes,
    at: Numbers,
    start: int,
    end: int,
    active: Bytes,
    firsts: Numbers,
    offsets: Numbers,
    data: Bytes,
    file_sizes: Numbers,
    flags: Bytes,
) -> None:
    for row in range(start, end):
        if active[row]:
            to = at[row]
            if firsts[row + 1] > firsts[row]:
                to = put_number(out, to, firsts[row + 1] - firsts[row])
            for entry in range(firsts[row], firsts[row + 1]):
                to = _put_text(out, to, offsets[entry], offsets[entry + 1], data)
                to = put_number(out, to, file_sizes[entry])
                out[to] = flags[entry]
                to += 1
            out[to] = 0
            at[row] = to + 1
