"""The loop that writes rows of Avro binary out of cells, compiled.

One function does all, over arrays of fixed types, so that it is compiled once for all schemas. `out` has room for the
most bytes that the rows can take.

Layout: `operations` is (n, 7) of int64, a row an operation: code; the branch of null, or -1 where there
is no union; the base of validity, or -1 where all values are valid; the base of the cells; an argument;
the operation behind this one's value; a size.
"""

import numpy as np
import numpy.typing as npt

from pyhudi.loops import inlined, loop

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]
Cells = tuple[Bytes, Ints, Numbers]
Index = int | np.int64

CODE, NULL_BRANCH, VALID, CELLS, ARGUMENT, NEXT, SIZE = range(7)

TAKE_INT, TAKE_LONG, TAKE_4, TAKE_8, TAKE_BOOLEAN, TAKE_BYTES, TAKE_FIXED, TAKE_DECIMAL = 0, 1, 2, 3, 4, 5, 6, 7
GUARD, BRANCH_0, LIST, LIST_NEXT, CHOOSE, GO, END = 8, 9, 10, 11, 12, 13, 14

# What `run` answers: FINE, or what is wrong.
FINE, NO_VALUE, WRONG_SIZE = 0, 1, 2

NUMBER_SIZE_MAX = 10
FRAME_SIZE = 4

# A row of `lists` for each list that is open around a value: the index of the value that the list is, and the index
# behind its last item.
ITEM, LAST = 0, 1


@inlined
def put_number(out: Bytes, at: Index, number: Index) -> Index:
    rest = np.uint64(number << 1) ^ np.uint64(number >> 63)
    while rest > np.uint64(0x7F):
        out[at] = np.uint8(rest & np.uint64(0x7F)) | np.uint8(0x80)
        rest >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(rest)
    return at + 1


@inlined
def put_word(out: Bytes, at: Index, word: np.uint64, size: Index) -> Index:
    for index in range(size):
        out[at + index] = np.uint8((word >> np.uint64(8 * index)) & np.uint64(0xFF))
    return at + size


@inlined
def _byte_of(low: np.uint64, high: np.uint64, index: Index) -> np.uint64:
    """Byte `index` of a 128-bit number, counted from the least significant; from byte 16 on, the sign's byte."""
    if index >= 16:
        return np.uint64(0xFF) if high >> np.uint64(63) else np.uint64(0)
    word = low if index < 8 else high
    return (word >> np.uint64(8 * (index % 8))) & np.uint64(0xFF)


@loop
def put_decimal(out: Bytes, at: Index, low: np.uint64, high: np.uint64, fixed_size: Index) -> Index:
    """Write a number in two's complement, big endian. Answers where the next value goes.

    `fixed_size`: the bytes to fill; 0: as few bytes as the number needs, behind their count. Answers -1 for a
    number that needs more bytes than the fixed size.
    """
    sign = _byte_of(low, high, 16)

    size: Index = np.int64(16)
    while size > 1:
        if _byte_of(low, high, size - 1) != sign or (_byte_of(low, high, size - 2) ^ sign) >= np.uint64(0x80):
            break
        size -= 1

    if fixed_size == 0:
        at = put_number(out, at, size)
    elif size > fixed_size:
        return np.int64(-1)
    else:
        size = fixed_size

    for index in range(size):
        out[at + index] = np.uint8(_byte_of(low, high, size - 1 - index))
    return at + size


@inlined
def _put_value(
    code: Index,
    cell: Index,
    argument: Index,
    fixed_size: Index,
    bytes_in: Bytes,
    ints_in: Ints,
    longs_in: Numbers,
    out: Bytes,
    at: Index,
) -> Index:
    """Write one value. Answers where the next goes, or -1 for a value of another size than the type's."""
    if code == TAKE_INT:
        return put_number(out, at, np.int64(ints_in[cell]))
    if code == TAKE_LONG:
        return put_number(out, at, longs_in[cell])

    if TAKE_BYTES <= code <= TAKE_FIXED:
        start, size = np.int64(ints_in[cell]), np.int64(ints_in[cell + 1] - ints_in[cell])
        if code == TAKE_BYTES:
            at = put_number(out, at, size)
        elif size != fixed_size:
            return np.int64(-1)
        for index in range(size):
            out[at + index] = bytes_in[argument + start + index]
        return at + size

    if code == TAKE_4:
        return put_word(out, at, np.uint64(np.uint32(ints_in[cell])), 4)
    if code == TAKE_8:
        return put_word(out, at, np.uint64(longs_in[cell]), 8)
    if code == TAKE_BOOLEAN:
        out[at] = bytes_in[cell]
        return at + 1
    return put_decimal(out, at, np.uint64(longs_in[cell]), np.uint64(longs_in[cell + 1]), fixed_size)


@loop
def _walk(
    operations: Numbers,
    jumps: Numbers,
    item: Index,
    lists: Numbers,
    cells: Cells,
    out: Bytes,
    at: Index,
) -> tuple[Index, Index]:
    """Write one row. Answers where it ends, or what is wrong, negative; and the last operation."""
    bytes_in, ints_in, longs_in = cells
    nesting = 0
    step: Index = np.int64(0)
    while True:
        code, branch_of_null = operations[step, CODE], operations[step, NULL_BRANCH]
        valid, base = operations[step, VALID], operations[step, CELLS]
        if valid >= 0 and bytes_in[valid + item] == 0:
            if branch_of_null < 0:
                return np.int64(-NO_VALUE), step
            at = put_number(out, at, branch_of_null)
            step = operations[step, NEXT]
            continue

        if branch_of_null >= 0 and code != CHOOSE:
            out[at] = np.uint8(2 - 2 * branch_of_null)
            at += 1
        following = step + 1
        if code < GUARD:
            cell = base + (item << 1 if code == TAKE_DECIMAL else item)
            argument, size = operations[step, ARGUMENT], operations[step, SIZE]
            at = _put_value(code, cell, argument, size, bytes_in, ints_in, longs_in, out, at)
            if at < 0:
                return np.int64(-WRONG_SIZE), step
        elif code == LIST:
            first, last = np.int64(ints_in[base + item]), np.int64(ints_in[base + item + 1])
            at = put_number(out, at, last - first)
            following = operations[step, NEXT]
            if first < last:
                nesting += 1
                lists[nesting, ITEM], lists[nesting, LAST] = item, last
                item, following = first, step + 1
        elif code == LIST_NEXT:
            item += 1
            following = operations[step, NEXT]
            if item == lists[nesting, LAST]:
                at = put_number(out, at, 0)
                item, following = lists[nesting, ITEM], step + 1
                nesting -= 1
        elif code == CHOOSE:
            branch = np.int64(ints_in[base + item])
            at = put_number(out, at, branch)
            following = jumps[operations[step, ARGUMENT] + branch]
        elif code == GO:
            following = operations[step, NEXT]
        elif code == BRANCH_0:
            at = put_number(out, at, 0)
        elif code == END:
            return at, step

        step = following


@loop
def run(
    operations: Numbers,
    jumps: Numbers,
    depth: int,
    is_framed: bool,
    cells: Cells,
    out: Bytes,
    starts: Numbers,
    ends: Numbers,
    stopped_at: Numbers,
) -> int:
    """Write all rows. Answers what is wrong, or FINE; `stopped_at` then holds row and operation."""
    lists = np.zeros((depth + 1, 2), np.int64)
    at: Index = np.int64(0)
    for row in range(starts.size):
        if is_framed:
            at += FRAME_SIZE

        starts[row] = at
        at, step = _walk(operations, jumps, np.int64(row), lists, cells, out, at)
        if at < 0:
            stopped_at[0], stopped_at[1] = row, step
            return int(-at)

        ends[row] = at
        if is_framed:
            for index in range(FRAME_SIZE):
                out[starts[row] - 1 - index] = np.uint8(((at - starts[row]) >> (8 * index)) & 0xFF)
    return FINE
