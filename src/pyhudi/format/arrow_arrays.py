"""Columns in one piece, as Arrow's functions of single arrays want them."""

import pyarrow as pa


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in one piece, without a copy where it is. Raises what Arrow does for text of more than 2 GiB."""
    if isinstance(column, pa.Array):
        return column
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
