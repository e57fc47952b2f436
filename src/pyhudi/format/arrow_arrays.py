"""Columns as one array, for Arrow's functions of single arrays, and as buffers, for compiled loops."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid

Bytes: TypeAlias = npt.NDArray[np.uint8]
Offsets: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.int32]


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in one piece; no copy is made if it is one already. Raises: Arrow's error for text beyond 2 GiB."""
    if isinstance(column, pa.Array):
        return column
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def map_entries(array: pa.MapArray) -> pa.ListArray:
    """Maps as lists of structs of key and value. No copy is made. Arrow's functions of lists do not take maps."""
    kind = pa.list_(array.values.type)
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[array.values])


def null_mask(array: pa.Array) -> pa.Array | None:
    """The mask that `from_arrays` of nested arrays takes. None without a null."""
    return array.is_null() if array.null_count else None


def list_offsets(array: pa.Array) -> pa.Array:
    """The offsets of a list or map array. With a mask, Arrow takes only offsets that are no slice of a larger array."""
    return array.offsets if array.offset == 0 else pa.concat_arrays([array.offsets])


def flat_offsets(array: pa.Array) -> pa.Array:
    """Where each list begins among the items that `flatten` gives: a null list has none.

    Seen: a cast of PyArrow 26 from list views gives a null too few offsets, and then reads what lies beyond.
    """
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    ends = np.cumsum(np.asarray(lengths), dtype=np.int64)
    return pa.array(np.concatenate([np.zeros(1, np.int64), ends])).cast(pa.int32())


def key_buffers(keys: pa.Array | pa.ChunkedArray, *, what: str) -> Iterator[tuple[Bytes, Offsets, int]]:
    """The bytes, the offsets and the number of values of each chunk that is not empty, without a copy.

    The offsets count from the start of the bytes. `what`: names the bytes in errors.
    Raises: Invalid for values that are neither text nor bytes, and for nulls.
    """
    for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
        if pa.types.is_string(chunk.type) or pa.types.is_binary(chunk.type):
            width = "<i4"
        elif pa.types.is_large_string(chunk.type) or pa.types.is_large_binary(chunk.type):
            width = "<i8"
        else:
            raise Invalid(f"{what}: expected record keys as strings or bytes, found {chunk.type}")

        if chunk.null_count:
            raise Invalid(f"{what}: expected no null record key, found {chunk.null_count:,}")
        if len(chunk) == 0:
            continue

        _, offsets, data = chunk.buffers()
        positions: Offsets = np.frombuffer(offsets, width, len(chunk) + 1, chunk.offset * int(width[-1]))
        content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        yield content, positions, len(chunk)
