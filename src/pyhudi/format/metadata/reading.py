"""Steps that each read one field of many records of Avro binary, compiled: they decode metadata records to columns.

A step reads at `at[row]`, for every row that is `active`, and moves `at[row]` behind the value. It answers -1, or the
first row whose bytes break the format. A span is `position << 32 | size`.

Spec: Apache Avro 1.11, "Binary Encoding".
"""

import numpy as np
import numpy.typing as npt

from pyhudi.format.avro.decoding import Index, read_number, word_4, word_8
from pyhudi.loops import inlined, loop

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]

# The layout of the value in a wrapper.
NOTHING, AS_BOOLEAN, AS_NUMBER, AS_4_BYTES, AS_8_BYTES, AS_BYTES, AS_ARRAY, AS_INT = 0, 1, 2, 3, 4, 5, 6, 7


@loop
def take_optional(
    content: Bytes, at: Numbers, ends: Numbers, active: Bytes, null_branch: int, is_present: Bytes
) -> int:
    """Read the branch of a union of null and one type. `is_present`: set for the rows that have a value."""
    for row in range(at.size):
        if active[row]:
            if at[row] < ends[row] and content[at[row]] & 0xFD == 0:  # the usual spelling of branches 0 and 1, one byte
                is_present[row] = content[at[row]] != 2 * null_branch
                at[row] += 1
                continue
            branch, after = read_number(content, at[row], ends[row])
            if after < 0 or branch < 0 or branch > 1:
                return row
            is_present[row] = branch != null_branch
            at[row] = after
    return -1


@loop
def take_numbers(content: Bytes, at: Numbers, ends: Numbers, active: Bytes, is_int: bool, out: Numbers) -> int:
    """Read numbers. `is_int`: of 32 bits; else of 64."""
    for row in range(at.size):
        if active[row]:
            out[row], after = read_number(content, at[row], ends[row])
            if after < 0 or (is_int and not _is_int(out[row])):
                return row
            at[row] = after
    return -1


@loop
def take_flags(content: Bytes, at: Numbers, ends: Numbers, active: Bytes, out: Bytes) -> int:
    for row in range(at.size):
        if active[row]:
            if at[row] >= ends[row] or content[at[row]] > 1:
                return row
            out[row] = content[at[row]]
            at[row] += 1
    return -1


@loop
def take_spans(content: Bytes, at: Numbers, ends: Numbers, active: Bytes, out: Numbers) -> int:
    """Read texts or bytes, as the spans where they stand."""
    for row in range(at.size):
        if active[row]:
            size, after = read_number(content, at[row], ends[row])
            if after < 0 or size < 0 or size > ends[row] - after:
                return row
            out[row] = after << 32 | size
            at[row] = after + size
    return -1


@loop
def take_wrapped(
    content: Bytes,
    at: Numbers,
    ends: Numbers,
    active: Bytes,
    layouts: Bytes,
    item_layouts: Bytes,
    branches: Numbers,
    bits: Numbers,
    spans: Numbers,
) -> int:
    """Read a union of wrappers: the branch, and the value as 64 bits or as a span. A list stays in its encoding.

    `layouts`: the layout of each branch. `item_layouts`: the layout of each branch of a list's items.
    """
    for row in range(at.size):
        if active[row]:
            branch, after = read_number(content, at[row], ends[row])
            if after < 0 or branch < 0 or branch >= layouts.size:
                return row

            branches[row] = branch
            if layouts[branch] == AS_ARRAY:
                start = after
                after = _skip_list(content, start, ends[row], item_layouts)
                spans[row] = start << 32 | (after - start)
            else:
                bits[row], spans[row], after = _take_value(content, after, ends[row], layouts[branch])

            if after < 0:
                return row
            at[row] = after
    return -1


@inlined
def _is_int(number: Index) -> bool:
    return bool(-(1 << 31) <= number < 1 << 31)


@inlined
def _take_value(content: Bytes, at: Index, end: Index, layout: int) -> tuple[Index, Index, Index]:
    """A value's 64 bits, its span, and the offset behind it; a negative offset if the bytes break the format."""
    bits: Index = np.int64(0)
    span: Index = np.int64(0)
    after: Index = np.int64(-1)

    if layout == NOTHING:
        after = at
    elif layout in (AS_NUMBER, AS_INT):
        bits, after = read_number(content, at, end)
        if layout == AS_INT and not _is_int(bits):
            after = np.int64(-1)
    elif layout == AS_BYTES:
        size, start = read_number(content, at, end)
        if start >= 0 and 0 <= size <= end - start:
            span, after = start << 32 | size, start + size
    elif layout == AS_BOOLEAN:
        if at < end and content[at] <= 1:
            bits, after = np.int64(content[at]), at + 1
    elif layout == AS_4_BYTES:
        if end - at >= 4:
            bits, after = np.int64(word_4(content, at)), at + 4
    elif end - at >= 8:
        bits, after = word_8(content, at), at + 8

    return bits, span, after


@loop
def _skip_list(content: Bytes, at: Index, end: Index, layouts: Bytes) -> Index:
    """The offset behind an optional list of wrappers, or a negative number if the bytes break the format."""
    branch, at = read_number(content, at, end)
    if at < 0 or branch < 0 or branch > 1:
        return np.int64(-1)

    while branch == 1:
        count, at = read_block_count(content, at, end)
        if at < 0 or count == 0:
            break
        for _ in range(count):
            item, at = read_number(content, at, end)
            if at < 0 or item < 0 or item >= layouts.size:
                return np.int64(-1)
            _, _, at = _take_value(content, at, end, layouts[item])
            if at < 0:
                return at
    return at


@inlined
def read_block_count(content: Bytes, at: Index, end: Index) -> tuple[Index, Index]:
    """The count of items in a list's or map's next block, 0 at its end; and the items' offset, or a negative number."""
    count, at = read_number(content, at, end)
    if at >= 0 and count < 0:  # a negative count: the block's size in bytes follows
        _, at = read_number(content, at, end)
        count = -count
    if at >= 0 and (count < 0 or count > end - at):
        at = np.int64(-1)
    return count, at


@loop
def count_entries(content: Bytes, at: Numbers, ends: Numbers, active: Bytes, counts: Numbers) -> int:
    """Count the entries of each record's map of files, and check them. `at` is not moved."""
    for row in range(at.size):
        offset = at[row]
        while active[row]:
            count, offset = read_block_count(content, offset, ends[row])
            if offset < 0:
                return row
            if count == 0:
                break

            counts[row] += count
            for _ in range(count):
                size, offset = read_number(content, offset, ends[row])
                if offset < 0 or size < 0 or size > ends[row] - offset:
                    return row
                _, offset = read_number(content, offset + size, ends[row])
                if offset < 0 or offset >= ends[row] or content[offset] > 1:
                    return row
                offset += 1

    return -1


@loop
def take_entries(
    content: Bytes,
    at: Numbers,
    ends: Numbers,
    active: Bytes,
    names: Numbers,
    sizes: Numbers,
    flags: Bytes,
) -> None:
    """Read the entries of each record's map of files, one behind the other. `count_entries` has checked them."""
    entry = 0
    for row in range(at.size):
        offset = at[row]
        while active[row]:
            count, offset = read_block_count(content, offset, ends[row])
            if count == 0:
                break
            for _ in range(count):
                size, offset = read_number(content, offset, ends[row])
                names[entry] = offset << 32 | size
                sizes[entry], offset = read_number(content, offset + size, ends[row])
                flags[entry] = content[offset]
                offset += 1
                entry += 1

        at[row] = offset
