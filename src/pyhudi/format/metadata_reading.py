"""Steps that read one field of many records of Avro binary, compiled: the decoding of metadata records, by columns.

Each step reads at `at[row]` of every row that is `active`, and moves on. It
answers -1, or the first row whose bytes break the format. A span is `position << 32 | size`.

Spec: Apache Avro 1.11, "Binary Encoding".
"""

import numpy as np
import numpy.typing as npt

from pyhudi.format.avro.decoding import Index, read_number, word_4, word_8
from pyhudi.loops import inlined, loop

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]

# How the value in a wrapper is laid out.
NOTHING, AS_BOOLEAN, AS_NUMBER, AS_4_BYTES, AS_8_BYTES, AS_BYTES, AS_ARRAY = 0, 1, 2, 3, 4, 5, 6


@loop
def take_optional(
    content: Bytes, at: Numbers, ends: Numbers, active: Bytes, null_branch: int, is_present: Bytes
) -> int:
    """The branch of a union of null and one type: which rows have a value."""
    for row in range(at.size):
        if active[row]:
            if at[row] < ends[row] and content[at[row]] & 0xFD == 0:  # as any writer spells the branches 0 and 1
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
def take_numbers(content: Bytes, at: Numbers, ends: Numbers, active: Bytes, out: Numbers) -> int:
    for row in range(at.size):
        if active[row]:
            out[row], after = read_number(content, at[row], ends[row])
            if after < 0:
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
    """Texts and bytes, where they stand."""
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
    """A union of wrappers: its branch, and the value as 64 bits or as bytes. A list stays in its own encoding.

    `layouts`, `item_layouts`: of the branches of the union, and of a list's items.
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
def _take_value(content: Bytes, at: Index, end: Index, layout: int) -> tuple[Index, Index, Index]:
    """A value's 64 bits, its span, and where it ends; that negative where the bytes break the format."""
    bits: Index = np.int64(0)
    span: Index = np.int64(0)
    after: Index = np.int64(-1)
    if layout == NOTHING:
        after = at
    elif layout == AS_NUMBER:
        bits, after = read_number(content, at, end)
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
    """Where an optional list of wrappers ends, or a negative number."""
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
    """The count of items in the next block of a list or map, 0 for its end; and where they start, or a negative."""
    count, at = read_number(content, at, end)
    if at >= 0 and count < 0:  # a block that states its size, too
        _, at = read_number(content, at, end)
        count = -count
    if at >= 0 and (count < 0 or count > end - at):
        at = np.int64(-1)
    return count, at


@loop
def count_entries(content: Bytes, at: Numbers, ends: Numbers, active: Bytes, counts: Numbers) -> int:
    """How many entries each record's map of files has. Moves nothing."""
    for row in range(at.size):
        place = at[row]
        while active[row]:
            count, place = read_block_count(content, place, ends[row])
            if place < 0:
                return row
            if count == 0:
                break
            counts[row] += count
            for _ in range(count):
                size, place = read_number(content, place, ends[row])
                if place < 0 or size < 0 or size > ends[row] - place:
                    return row
                _, place = read_number(content, place + size, ends[row])
                if place < 0 or place >= ends[row] or content[place] > 1:
                    return row
                place += 1
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
    """The entries of each record's map of files, one behind the other. They have been counted, and so checked."""
    entry = 0
    for row in range(at.size):
        place = at[row]
        while active[row]:
            count, place = read_block_count(content, place, ends[row])
            if count == 0:
                break
            for _ in range(count):
                size, place = read_number(content, place, ends[row])
                names[entry] = place << 32 | size
                sizes[entry], place = read_number(content, place + size, ends[row])
                flags[entry] = content[place]
                place += 1
                entry += 1
        at[row] = place
