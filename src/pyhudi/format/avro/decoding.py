"""The loop that carries out a program over rows of Avro binary, compiled.

One function does all, over arrays of fixed types, so that it is compiled once for all schemas. Every read is checked
against the end of its row. Every list item is checked against the counts that the first pass found.
"""

import numpy as np
import numpy.typing as npt

from pyhudi.format.avro.program import (
    ARGUMENT,
    CHOOSE,
    CODE,
    END,
    GO,
    GUARD,
    LIST,
    LIST_NEXT,
    NEXT,
    NULL_BRANCH,
    OUT,
    PUT_4,
    PUT_8,
    PUT_BOOLEAN,
    PUT_BYTES,
    PUT_FIXED,
    PUT_LONG,
    PUT_SYMBOL,
    SKIP_NUMBER,
    VALID,
    Numbers,
)
from pyhudi.loops import inlined, loop

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Cells = tuple[Bytes, Ints, Numbers, Numbers]
Index = int | np.int64

# What `run` answers: FINE, or what is wrong.
FINE, CUT, LONG_NUMBER, BAD_BRANCH, BAD_SIZE, BAD_COUNT, BAD_SYMBOL, BAD_BOOLEAN = 0, 1, 2, 3, 4, 5, 6, 7
WIDE_INT, BYTES_LEFT, NO_MEMBER, CHANGED = 8, 9, 10, 11

_INT_MAX = 2**31 - 1


# A row of `lists` for each list that is open around a value: the index of the value that the list is, the index of its
# first item, and the items left in its current block.
ITEM, FIRST, LEFT = 0, 1, 2


@inlined
def read_number(content: Bytes, at: Index, end: Index) -> tuple[Index, Index]:
    """A zigzag number of at most 10 bytes, and the offset behind it; instead of the offset a negative code if wrong."""
    if at >= end:
        return np.int64(0), np.int64(-CUT)

    byte = np.uint64(content[at])
    at += 1

    value = byte & np.uint64(0x7F)
    shift = np.uint64(7)
    while byte >= np.uint64(0x80):
        if at >= end:
            return np.int64(0), np.int64(-CUT)
        byte = np.uint64(content[at])
        at += 1
        if shift == np.uint64(63) and byte > np.uint64(1):
            return np.int64(0), np.int64(-LONG_NUMBER)
        value |= (byte & np.uint64(0x7F)) << shift
        shift += np.uint64(7)
    return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), at


@inlined
def word_4(content: Bytes, at: Index) -> np.int32:
    word = np.uint32(content[at]) | np.uint32(content[at + 1]) << np.uint32(8)
    word |= np.uint32(content[at + 2]) << np.uint32(16) | np.uint32(content[at + 3]) << np.uint32(24)
    return np.int32(word)


@inlined
def word_8(content: Bytes, at: Index) -> np.int64:
    low, high = np.uint64(np.uint32(word_4(content, at))), np.uint64(np.uint32(word_4(content, at + 4)))
    return np.int64(low | high << np.uint64(32))


@inlined
def _value(
    code: Index,
    argument: Index,
    content: Bytes,
    at: Index,
    end: Index,
    out: Index,
    cells: Cells,
) -> Index:
    """Read or skip one value. Answers the offset behind it, or the negative code of what is wrong."""
    bytes_out, ints_out, longs_out, spans_out = cells

    if code <= PUT_SYMBOL:
        number, at = read_number(content, at, end)
        if at < 0:
            return at
        if code == PUT_LONG:
            longs_out[out] = number
        elif code != SKIP_NUMBER:
            if number != np.int64(np.int32(number)):
                return np.int64(-WIDE_INT)
            if code == PUT_SYMBOL and (number < 0 or number >= argument):
                return np.int64(-BAD_SYMBOL)
            ints_out[out] = np.int32(number)
        return at

    if code <= PUT_BYTES:
        size, at = read_number(content, at, end)
        if at < 0:
            return at
        if size < 0 or size > end - at:
            return np.int64(-BAD_SIZE)
        if code == PUT_BYTES:
            spans_out[out] = at << 32 | size

        return at + size

    if end - at < argument:
        return np.int64(-CUT)

    if code == PUT_8:
        longs_out[out] = word_8(content, at)
    elif code == PUT_4:
        ints_out[out] = word_4(content, at)
    elif code == PUT_BOOLEAN:
        if content[at] > 1:
            return np.int64(-BAD_BOOLEAN)
        bytes_out[out] = content[at]
    elif code == PUT_FIXED:
        spans_out[out] = at << 32 | argument
    return at + argument


@inlined
def _read_block_count(content: Bytes, at: Index, end: Index) -> tuple[Index, Index]:
    """The count of items in a list's next block, 0 at the list's end; and the items' offset, or a negative code.

    Every item takes a byte or more, so a count above the bytes that are left is wrong.
    """
    count, at = read_number(content, at, end)
    if at >= 0 and count < 0:  # a negative count: the block's size in bytes follows
        size, at = read_number(content, at, end)
        if at >= 0 and (size < 0 or size > end - at):
            return np.int64(0), np.int64(-BAD_SIZE)
        count = -count  # the least 64-bit number stays negative, and is refused below
    if at >= 0 and (count < 0 or count > end - at):
        return np.int64(0), np.int64(-BAD_COUNT)
    return count, at


@inlined
def _choose(jumps: Numbers, table: Index, content: Bytes, at: Index, end: Index) -> tuple[Index, Index]:
    """The operation for the branch that is stored, -1 for null; and the offset of its value, or a negative code."""
    branch, at = read_number(content, at, end)
    if at < 0:
        return np.int64(-1), at
    if branch < 0 or branch >= jumps[table]:
        return np.int64(-1), np.int64(-BAD_BRANCH)
    target = jumps[table + 1 + branch]
    return target, np.int64(-NO_MEMBER) if target < -1 else at


@inlined
def _next_item(
    level: Index,
    out: Index,
    content: Bytes,
    at: Index,
    end: Index,
    lists: Numbers,
    level_sizes: Numbers,
    level_limits: Numbers,
    spans_out: Numbers,
) -> tuple[Index, Index]:
    """The index of a list's next item among all items of its level, or -1 behind the last; and the item's offset.

    `lists`: the row of this list. Behind the last item, the number of the list's items goes to its cell at `out`.
    """
    if lists[LEFT] == 0:
        lists[LEFT], at = _read_block_count(content, at, end)
        if at < 0:
            return np.int64(-1), at
        if lists[LEFT] == 0:
            if out >= 0:
                spans_out[out + lists[ITEM]] = level_sizes[level] - lists[FIRST]
            return np.int64(-1), at

    lists[LEFT] -= 1
    item = level_sizes[level]
    if item >= level_limits[level]:
        return item, np.int64(-CHANGED)
    level_sizes[level] = item + 1
    return item, at


@loop
def _walk(
    operations: Numbers,
    jumps: Numbers,
    content: Bytes,
    at: Index,
    end: Index,
    item: Index,
    level_limits: Numbers,
    level_sizes: Numbers,
    lists: Numbers,
    cells: Cells,
) -> tuple[Index, Index, Index]:
    """Walk one row. Answers its end, or a negative code; then the offset and the operation of the last value."""
    before, nesting = at, 0
    step: Index = np.int64(0)
    while True:
        code, branch_of_null = operations[step, CODE], operations[step, NULL_BRANCH]
        valid, argument, out = operations[step, VALID], operations[step, ARGUMENT], operations[step, OUT]
        before, following = at, step + 1
        if branch_of_null >= 0:
            if at < end and content[at] == 2 - 2 * branch_of_null:
                at += 1
            else:
                branch, at = read_number(content, at, end)
                if at >= 0 and branch == branch_of_null:
                    step = operations[step, NEXT]
                    continue
                if at >= 0 and branch != 1 - branch_of_null:
                    at = np.int64(-BAD_BRANCH)
                if at < 0:
                    break
            if valid >= 0:
                cells[0][valid + item] = 1
        if code < GUARD:
            at = _value(code, argument, content, at, end, out + item, cells)
        elif code == LIST:
            nesting += 1
            lists[nesting, ITEM], lists[nesting, FIRST], lists[nesting, LEFT] = item, level_sizes[argument], 0
            following = operations[step, NEXT] - 1
        elif code == LIST_NEXT:
            item, at = _next_item(argument, out, content, at, end, lists[nesting], level_sizes, level_limits, cells[3])
            if item >= 0:
                following = operations[step, NEXT]
            elif at >= 0:
                item = lists[nesting, ITEM]
                nesting -= 1
        elif CHOOSE <= code <= GO:
            if code == CHOOSE:
                following, at = _choose(jumps, argument, content, at, end)
            if valid >= 0 and following >= 0:
                cells[0][valid + item] = 1
            if code == GO or following < 0:
                following = operations[step, NEXT]
        elif code != GUARD:
            at = np.int64(-BYTES_LEFT) if code == END and at != end else at
            break
        if at < 0:
            break
        step = following
    return at, before, step


@loop
def run(
    operations: Numbers,
    jumps: Numbers,
    content: Bytes,
    starts: Numbers,
    ends: Numbers,
    level_limits: Numbers,
    level_sizes: Numbers,
    depth: int,
    cells: Cells,
    stopped_at: Numbers,
) -> int:
    """Walk all rows. Answers FINE, or what is wrong; `stopped_at` then holds the row, the offset and the operation.

    `level_sizes` is filled in: the number of values of each level. A cell without a value stays zero, which stands
    for a null or absent value.
    """
    lists = np.zeros((depth + 1, 3), np.int64)
    for row in range(starts.size):
        at, before, step = _walk(
            operations, jumps, content, starts[row], ends[row], row, level_limits, level_sizes, lists, cells
        )
        if at < 0:
            stopped_at[0], stopped_at[1], stopped_at[2] = row, before, step
            return int(-at)
    return FINE
