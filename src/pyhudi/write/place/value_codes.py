"""The values of a column as numbers that keep their order, so that columns of all types are sorted alike.

Order, as Spark's: nulls first, then ascending. Text and bytes go by their bytes without sign, false before true, NaN
after every other float. -0.0 and 0.0 are equal, and so are all NaNs.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import Bytes, Offsets, one_array
from pyhudi.loops import loop

Keys: TypeAlias = npt.NDArray[np.uint64]
Rows: TypeAlias = npt.NDArray[np.int64]

_SIGN = np.uint64(1 << 63)
_DECIMAL_DIGITS_MAX = 18
"""The most digits of a decimal that is always a signed number of 64 bits."""

_TEXT_TYPES = (
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view()),
)

_WORD_BYTES = 8


def value_codes(column: pa.Array | pa.ChunkedArray, *, name: str) -> tuple[Rows, int]:
    """The place of each row's value among the distinct values in ascending order, from 0; and how many there are.

    A null counts as a value, the least. Example: b, null, a, b gives 2, 0, 1, 2 and 3.
    Shape: (rows,). Memory: some 40 bytes a row beside the column.
    Raises: Invalid for a column of nested values, which have no order; `name` names the column.
    """
    if _is_text(column.type):
        column = column.cast(pa.large_binary())  # so that one array has room for more than 2 GiB
    array = _plain(one_array(column), name)
    if not array.null_count:
        return _codes(array)

    is_valid = np.asarray(pc.is_valid(array).cast(pa.uint8())).astype(bool)
    codes = np.zeros(len(array), np.int64)
    codes[is_valid], distinct = _codes(array.drop_null()) if is_valid.any() else (0, 0)
    codes[is_valid] += 1
    return codes, distinct + 1


def sorted_rows(keys: Keys) -> tuple[Rows, Keys]:
    """The numbers of the rows in ascending order of their keys, and the keys in this order. Stable.

    As many bits of a key as have room beside a row's number are sorted with it as one value, the low bits first. NumPy
    sorts values about five times as fast as it finds their order.
    """
    count = keys.size
    if count == 0:
        return np.zeros(0, np.int64), keys
    rows, row_bits = np.arange(count, dtype=np.uint64), max(1, (count - 1).bit_length())
    least, room = keys.min(), 64 - row_bits
    in_order, key_bits = keys - least, int(keys.max() - least).bit_length()

    order = rows
    for shift in range(0, key_bits, room):
        part = (in_order >> np.uint64(shift)) & np.uint64((1 << room) - 1)
        part <<= np.uint64(row_bits)
        part |= rows
        part.sort()
        part &= np.uint64((1 << row_bits) - 1)
        moved = part.view(np.int64)
        order, in_order = order[moved], in_order[moved]
    return order.view(np.int64), in_order + least


def _plain(array: pa.Array, name: str) -> pa.Array:
    """The array as one of a type that the others here know."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
        return _plain(array.cast(pa.large_binary()) if _is_text(array.type) else array, name)
    if pa.types.is_null(array.type):
        return array.cast(pa.int8())
    if pa.types.is_boolean(array.type):
        return array.cast(pa.uint8())
    if pa.types.is_decimal32(array.type) or pa.types.is_decimal64(array.type):
        return array.cast(pa.decimal128(array.type.precision, array.type.scale))
    if pa.types.is_nested(array.type):
        raise Invalid(
            f"column {name!r}: rows cannot be ordered by values of type {array.type}; "
            "expected numbers, text, bytes, booleans, dates or times. Name one of its fields, or another column"
        )
    return array


def _codes(array: pa.Array) -> tuple[Rows, int]:
    """As `value_codes`, of an array without nulls."""
    keys = _ordered_keys(array)
    if keys is not None:
        order, in_order = sorted_rows(keys)
        return _by_row(order, in_order[1:] != in_order[:-1])
    if pa.types.is_large_binary(array.type):
        return _text_codes(array)
    return _distinct_codes(array)


def _ordered_keys(array: pa.Array) -> Keys | None:
    """A number for each value, in the order of the values; None for types whose values are larger than 64 bits."""
    kind = array.type
    if pa.types.is_floating(kind):
        return _float_keys(np.asarray(array.cast(pa.float64())))
    if pa.types.is_unsigned_integer(kind):
        return np.asarray(array.cast(pa.uint64()))
    if pa.types.is_decimal128(kind) and kind.precision <= _DECIMAL_DIGITS_MAX:
        low_and_high = np.frombuffer(array.buffers()[1], np.int64, 2 * len(array), 16 * array.offset)
        return low_and_high[::2].view(np.uint64) ^ _SIGN
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        array = array.view(pa.int32())
    elif pa.types.is_temporal(kind) and kind.bit_width == 64:
        array = array.view(pa.int64())
    elif not pa.types.is_signed_integer(kind):
        return None
    return np.asarray(array.cast(pa.int64())).view(np.uint64) ^ _SIGN


def _float_keys(values: npt.NDArray[np.float64]) -> Keys:
    values = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
    bits = values.view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _by_row(order: Rows, is_next: npt.NDArray[np.bool_]) -> tuple[Rows, int]:
    """Codes by row, from the rows in order. `is_next`: of each row but the first, if its value is a new one."""
    if order.size == 0:
        return np.zeros(0, np.int64), 0
    in_order = np.zeros(order.size, np.int64)
    np.cumsum(is_next, out=in_order[1:])
    codes = np.empty(order.size, np.int64)
    codes[order] = in_order
    return codes, int(in_order[-1]) + 1


def _distinct_codes(array: pa.Array) -> tuple[Rows, int]:
    """Codes of values that Arrow orders itself: each distinct value is looked at once."""
    encoded = array.dictionary_encode()
    distinct = len(encoded.dictionary)
    places = np.empty(distinct, np.int64)
    places[np.asarray(pc.sort_indices(encoded.dictionary))] = np.arange(distinct)
    return places[np.asarray(encoded.indices)], distinct


def _is_text(kind: pa.DataType) -> bool:
    """Whether values are text or bytes of any length."""
    return kind in _TEXT_TYPES


def _text_codes(array: pa.Array) -> tuple[Rows, int]:
    """Codes of bytes of any length. Most are told apart by the eight bytes that follow what all begin with.

    Only the rows that these bytes leave equal are compared as a whole, by Arrow, which is far slower.
    """
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64, len(array) + 1, 8 * array.offset)
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    start = shared_bytes(data, offsets)

    order, words = sorted_rows(words_at(data, offsets, start))
    is_next = words[1:] != words[:-1]
    sizes = (offsets[1:] - offsets[:-1])[order]
    is_open = _open_rows(is_next, sizes, start + _WORD_BYTES)
    at = np.flatnonzero(is_open)
    if at.size == 0:
        return _by_row(order, is_next)

    # values in order are in the order of their words, too: so the open rows, sorted as a whole, fill the open places
    rows = order[at]
    codes, _ = _distinct_codes(array.take(pa.array(rows)))
    sorted_open, codes_in_order = sorted_rows(codes.view(np.uint64))
    order[at] = rows[sorted_open]
    follows = np.flatnonzero(at[1:] == at[:-1] + 1)  # places where the row before is open as well
    is_next[at[follows]] |= codes_in_order[follows + 1] != codes_in_order[follows]
    return _by_row(order, is_next)


def _open_rows(is_next: npt.NDArray[np.bool_], sizes: Rows, whole: int) -> npt.NDArray[np.bool_]:
    """Which rows share their word with a value that may be another: one that is longer, or of another length.

    `whole`: the most bytes of a value of which the word says all.
    """
    differs = ~is_next & ((sizes[1:] != sizes[:-1]) | (sizes[1:] > whole))
    run = np.zeros(sizes.size, np.int64)
    np.cumsum(is_next, out=run[1:])
    is_open_run = np.zeros(run[-1] + 1 if run.size else 0, bool)
    is_open_run[run[1:][differs]] = True
    return is_open_run[run]


@loop
def shared_bytes(data: Bytes, offsets: Offsets) -> int:
    """How many bytes at the start of the values are the same in all of them."""
    count = offsets.size - 1
    if count == 0:
        return 0
    first, shared = offsets[0], offsets[1] - offsets[0]
    for row in range(1, count):
        start, size = offsets[row], offsets[row + 1] - offsets[row]
        if size < shared:
            shared = size
        for at in range(shared):
            if data[start + at] != data[first + at]:
                shared = at
                break
    return int(shared)


@loop
def words_at(data: Bytes, offsets: Offsets, skipped: int) -> Keys:
    """Eight bytes of each value from a place on, the first most significant. Zeros stand where a value has ended."""
    count = offsets.size - 1
    words = np.zeros(count, np.uint64)
    for row in range(count):
        start, end = offsets[row] + skipped, offsets[row + 1]
        word = np.uint64(0)
        for at in range(8):
            word <<= np.uint64(8)
            if start + at < end:
                word |= np.uint64(data[start + at])
        words[row] = word
    return words
