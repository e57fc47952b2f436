"""Single values of rows: which of them give way to another row's value, and how values are replaced."""

from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.merge.rules import Fill, MergeRules


def gives_way(column: pa.Array | pa.ChunkedArray, name: str, rules: MergeRules) -> np.ndarray | None:
    """For each value of a winning row, whether it gives way to the other row's. None: no value does.

    Spec: format/log-format.md section 6.2, "Table partial-update modes".
    """
    match rules.fill:
        case None:
            return None
        case Fill.NULLS:
            found = _nulls(column)
        case Fill.DEFAULTS:
            defaults = dict(rules.defaults)
            found = _equal(column, defaults[name]) if name in defaults else _nulls(column)
        case Fill.UNAVAILABLE:
            found = _marked(column, rules.unavailable)
        case _:
            assert_never(rules.fill)
    return found if found is not None and found.any() else None


def replace_values(old: pa.Array, at: np.ndarray, new: pa.Array) -> pa.Array:
    """`old`, with the values of `new` at the positions `at`, which ascend.

    Memory: a copy of the column; two for texts and nested types, for which Arrow's `take` is faster than its replacing.
    """
    assert len(at) == len(new)
    if not len(at):
        return old
    if len(at) == len(old):
        return new

    if not (old.null_count or new.null_count) and (words := _words(old.type)) is not None:
        return _replaced_words(old, at, new, words)
    # Arrow before 26 replaces the wrong booleans if the array is a slice of a longer one.
    is_flag = pa.types.is_boolean(old.type)
    if (pa.types.is_primitive(old.type) and not is_flag) or pa.types.is_decimal(old.type) or pa.types.is_null(old.type):
        mask = np.zeros(len(old), np.bool_)
        mask[at] = True
        return pc.replace_with_mask(old, pa.array(mask), new)

    picks = np.arange(len(old))
    picks[at] = len(old) + np.arange(len(new))
    return pa.concat_arrays([old, new]).take(pa.array(picks))


def _words(kind: pa.DataType) -> tuple[str, int] | None:
    """The machine words that store a value of this type: their kind, and how many. None for types of other sizes."""
    if pa.types.is_decimal128(kind):
        return "u8", 2
    if pa.types.is_primitive(kind) and kind.bit_width >= 8:
        return f"u{kind.bit_width // 8}", 1
    return None


def _replaced_words(old: pa.Array, at: np.ndarray, new: pa.Array, words: tuple[str, int]) -> pa.Array:
    """As `replace_values`, for values of a fixed size without nulls. Several times as fast as Arrow's way."""
    word, count = words
    size_bytes = np.dtype(word).itemsize * count
    buffer = pa.allocate_buffer(len(old) * size_bytes)
    values = np.frombuffer(buffer, word).reshape(-1, count)
    values[:] = _stored(old, word, count)
    values[at] = _stored(new, word, count)
    return pa.Array.from_buffers(old.type, len(old), [None, buffer])


def _stored(column: pa.Array, word: str, count: int) -> np.ndarray:
    held = np.frombuffer(column.buffers()[1], word).reshape(-1, count)
    return held[column.offset : column.offset + len(column)]


def take_one(column: pa.Array | pa.ChunkedArray, rows: np.ndarray) -> pa.Array:
    """The values at these rows, as one array. A negative row gives null."""
    mask = rows < 0
    return one_array(column.take(pa.array(rows, mask=mask if mask.any() else None)))


def _nulls(column: pa.Array | pa.ChunkedArray) -> np.ndarray | None:
    return np.asarray(column.is_null()) if column.null_count else None


def _equal(column: pa.Array | pa.ChunkedArray, value: pa.Scalar) -> np.ndarray | None:
    """Seen: Apache Hudi finds lists, maps and structs never equal to a default."""
    if pa.types.is_nested(column.type):
        return None
    return np.asarray(pc.fill_null(pc.equal(column, value.cast(column.type)), False))


def _marked(column: pa.Array | pa.ChunkedArray, marker: str) -> np.ndarray | None:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.asarray(pc.fill_null(pc.equal(column, pa.scalar(marker, kind)), False))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return np.asarray(pc.fill_null(pc.equal(column, pa.scalar(marker.encode(), kind)), False))
    return None
