"""Finds the cells of data blocks, copies them out, and writes them; compiled.

The spans of cells are an array (n, 4) of int64: row start, row end, value start, value end, as offsets in the block.
"""

import numpy as np
import numpy.typing as npt

from pyhudi.loops import inlined, loop

Bytes = npt.NDArray[np.uint8]
Spans = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int32] | npt.NDArray[np.int64]

Index = int | np.int64

CELL_OVERHEAD = 21
"""Bytes of a cell besides row and value: two sizes, the row's size, the key's suffix, the version."""

_KEY_OVERHEAD = 12
_PUT = 4


@inlined
def _big_endian_4(data: Bytes, at: Index) -> np.int64:
    return (
        np.int64(data[at]) << 24 | np.int64(data[at + 1]) << 16 | np.int64(data[at + 2]) << 8 | np.int64(data[at + 3])
    )


@inlined
def _compare(a: Bytes, a_start: Index, a_end: Index, b: Bytes, b_start: Index, b_end: Index) -> Index:
    """A number below, at or above 0 if `a` is smaller than, equal to or greater than `b`, by unsigned bytes."""
    shared = min(a_end - a_start, b_end - b_start)
    for at in range(shared):
        if a[a_start + at] != b[b_start + at]:
            return np.int64(a[a_start + at]) - np.int64(b[b_start + at])
    return (a_end - a_start) - (b_end - b_start)


@inlined
def _read_cell(data: Bytes, at: Index, has_version: bool, spans: Spans, index: Index) -> Index:
    """Read the cell at `at` into `spans[index]`. Answers where the next cell starts.

    Answers -1, and leaves `spans` as they are, if the bytes are no cell.

    Layout of a cell (big endian): i32 key size; i32 value size; i16 row size; row; u8 family size; family
    and qualifier; i64 timestamp; u8 type; value; version as hvint.
    """
    none = np.int64(-1)
    if at + 10 > data.size:
        return none

    key_size = _big_endian_4(data, at)
    value_size = _big_endian_4(data, at + 4)
    row_size = np.int64(data[at + 8]) << 8 | np.int64(data[at + 9])
    end = at + 8 + key_size + value_size

    if row_size > 32767 or key_size < row_size + _KEY_OVERHEAD or key_size >= 1 << 31 or value_size >= 1 << 31:
        return none
    if end > data.size or data[at + 8 + key_size - 1] != _PUT:
        return none

    beyond = end
    if has_version:
        if end >= data.size:
            return none
        first = np.int64(data[end])
        beyond = end + 1
        # The version is an hvint of several bytes; its first byte says how many.
        if 128 <= first < 144:
            beyond += 136 - first if first < 136 else 144 - first
        if beyond > data.size:
            return none

    spans[index, 0] = at + 10
    spans[index, 1] = at + 10 + row_size
    spans[index, 2] = at + 8 + key_size
    spans[index, 3] = end
    return beyond


@loop
def find_cells(data: Bytes, has_version: bool) -> tuple[Spans, Index]:
    """The spans of each cell, and -1; or the cells before the first bytes that are no cell, and their offset."""
    spans = np.empty((data.size // 20 + 1, 4), np.int64)
    count = 0
    at: Index = np.int64(0)
    while at < data.size:
        beyond = _read_cell(data, at, has_version, spans, count)
        if beyond < 0:
            return spans[:count], at
        count += 1
        at = beyond
    return spans[:count], -1


@loop
def match_cells(
    data: Bytes, has_version: bool, keys: Bytes, key_offsets: Offsets, start: int, end: int
) -> tuple[Spans, npt.NDArray[np.bool_], Index]:
    """Find the cells of the keys from `start` to `end`. Cells and keys are sorted by row; all cells are looked at.

    Answers the spans of the first cell of each key that is found; a flag for each key, whether it is found; and -1,
    or the offset of the first bytes that are no cell.
    """
    spans = np.empty((end - start + 1, 4), np.int64)  # one more than keys: room for the cell that is looked at
    is_found = np.zeros(end - start, np.bool_)
    count = 0
    key = start
    at: Index = np.int64(0)
    while at < data.size:
        beyond = _read_cell(data, at, has_version, spans, count)
        if beyond < 0:
            return spans[:count], is_found, at

        # Pass over the keys below this cell, and the key that it has.
        order: Index = np.int64(1)
        while key < end and order > 0:
            order = _compare(data, spans[count, 0], spans[count, 1], keys, key_offsets[key], key_offsets[key + 1])
            if order >= 0:
                key += 1
        if order == 0:
            is_found[key - 1 - start] = True
            count += 1

        at = beyond
    return spans[:count], is_found, -1


@loop
def copy_spans(data: Bytes, spans: Spans, column: int, offsets: npt.NDArray[np.int32], out: Bytes, to: Index) -> Index:
    """Copy rows (column 0) or values (column 2) to `out[to:]`, for an Arrow binary array. Answers where they end."""
    for index in range(spans.shape[0]):
        offsets[index] = to
        for at in range(spans[index, column], spans[index, column + 1]):
            out[to] = data[at]
            to += 1
    offsets[spans.shape[0]] = to
    return to


@loop
def lower_bound(data: Bytes, spans: Spans, key: Bytes) -> int:
    """The index of the first cell whose row is not below the key, in cells sorted by row."""
    low, high = 0, spans.shape[0]
    while low < high:
        middle = (low + high) // 2
        if _compare(data, spans[middle, 0], spans[middle, 1], key, 0, key.size) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@loop
def floor_rows(rows: Bytes, row_offsets: Offsets, keys: Bytes, key_offsets: Offsets, out: Spans) -> None:
    """Find the last of the sorted rows that is not above each key. Writes its index, or -1, to `out`.

    Example: of the rows a, c, e the key d finds c, and `out` gets 1.
    """
    for key in range(out.size):
        low, high = 0, row_offsets.size - 1
        while low < high:
            middle = (low + high) // 2
            start, end = row_offsets[middle], row_offsets[middle + 1]
            if _compare(rows, start, end, keys, key_offsets[key], key_offsets[key + 1]) <= 0:
                low = middle + 1
            else:
                high = middle
        out[key] = low - 1


@loop
def prefix_end(data: Bytes, spans: Spans, start: int, prefix: Bytes) -> int:
    """The index behind the last cell, from `start` on, whose row begins with the prefix."""
    for index in range(start, spans.shape[0]):
        first, size = spans[index, 0], spans[index, 1] - spans[index, 0]
        if size < prefix.size or _compare(data, first, first + prefix.size, prefix, 0, prefix.size) != 0:
            return index
    return spans.shape[0]


@loop
def are_ordered(data: Bytes, spans: Spans) -> bool:
    """Whether no row is smaller than the one before it."""
    for index in range(1, spans.shape[0]):
        before, here = spans[index - 1], spans[index]
        if _compare(data, before[0], before[1], data, here[0], here[1]) > 0:
            return False
    return True


@loop
def first_not_ascending(keys: Bytes, offsets: Spans) -> int:
    """The index of the first key that is not greater than the one before it, or -1."""
    for index in range(1, offsets.size - 1):
        if _compare(keys, offsets[index - 1], offsets[index], keys, offsets[index], offsets[index + 1]) >= 0:
            return index
    return -1


@loop
def cut_blocks(key_offsets: Spans, value_offsets: Spans, block_size: int) -> Spans:
    """Cut cells into blocks. Answers the index of the first cell of each block, then the number of cells.

    A block ends before the cell that would take it beyond the block size; a single cell may be larger.
    """
    cell_count = key_offsets.size - 1
    starts = np.empty(cell_count + 1, np.int64)
    count, size = 0, np.int64(0)
    for index in range(cell_count):
        cell = CELL_OVERHEAD + key_offsets[index + 1] - key_offsets[index]
        cell += value_offsets[index + 1] - value_offsets[index]
        if index == 0 or size + cell > block_size:
            starts[count] = index
            count += 1
            size = np.int64(0)
        size += cell

    starts[count] = cell_count
    return starts[: count + 1]


@inlined
def _put_4(out: Bytes, at: int, value: int) -> None:
    out[at] = np.uint8(value >> 24 & 0xFF)
    out[at + 1] = np.uint8(value >> 16 & 0xFF)
    out[at + 2] = np.uint8(value >> 8 & 0xFF)
    out[at + 3] = np.uint8(value & 0xFF)


@loop
def lay_cells(
    keys: Bytes, key_offsets: Spans, values: Bytes, value_offsets: Spans, start: int, end: int, out: Bytes
) -> None:
    """Write the cells from `start` to `end`, which fill `out` exactly. Layout: as in `_read_cell`."""
    at = 0
    for index in range(start, end):
        row_size = key_offsets[index + 1] - key_offsets[index]
        value_size = value_offsets[index + 1] - value_offsets[index]

        _put_4(out, at, row_size + _KEY_OVERHEAD)
        _put_4(out, at + 4, value_size)
        out[at + 8] = np.uint8(row_size >> 8)
        out[at + 9] = np.uint8(row_size & 0xFF)
        at += 10

        # The row, then the key's suffix: no column family, the latest timestamp, type Put.
        for source in range(key_offsets[index], key_offsets[index + 1]):
            out[at] = keys[source]
            at += 1
        out[at] = 0
        out[at + 1] = 0x7F
        for step in range(2, 9):
            out[at + step] = 0xFF
        out[at + 9] = _PUT
        at += 10

        # The value, then version 0.
        for source in range(value_offsets[index], value_offsets[index + 1]):
            out[at] = values[source]
            at += 1
        out[at] = 0
        at += 1
