"""Cells of data blocks as Arrow columns, the cells of many blocks at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from pyhudi.format.hfile.cells import Bytes, Spans, copy_spans

CELLS: Final = pa.schema([pa.field("key", pa.binary(), False), pa.field("value", pa.binary(), False)])
"""Cells as columns: rows and values."""

_BATCH_SIZE: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class BlockCells:
    """One data block and the spans of its cells."""

    payload: bytes
    data: Bytes
    spans: Spans

    def row(self, index: int) -> bytes:
        return self.payload[self.spans[index, 0] : self.spans[index, 1]]

    def some(self, spans: Spans) -> "BlockCells":
        """The same block with only the cells of these spans."""
        return BlockCells(self.payload, self.data, spans)


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch from several, or from none, as `CELLS`."""
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return listed_batch([])
    columns = [pa.concat_arrays([batch.column(index) for batch in batches]) for index in range(len(CELLS))]
    return pa.RecordBatch.from_arrays(columns, schema=CELLS)


def listed_batch(cells: Sequence[tuple[bytes, bytes]]) -> pa.RecordBatch:
    """Rows and values as `CELLS`."""
    columns = [pa.array([cell[index] for cell in cells], pa.binary()) for index in range(len(CELLS))]
    return pa.RecordBatch.from_arrays(columns, schema=CELLS)


def batches_of(parts: Iterable[BlockCells]) -> Iterator[pa.RecordBatch]:
    """Cells in their order as `CELLS`. A batch holds about 4 MiB of blocks, or one block if that is larger."""
    held: list[BlockCells] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part.payload)
        if size >= _BATCH_SIZE:
            yield batch_of(held)
            held, size = [], 0
    if held:
        yield batch_of(held)


def batch_of(parts: Sequence[BlockCells]) -> pa.RecordBatch:
    """Cells in their order as `CELLS`."""
    return pa.RecordBatch.from_arrays([_column(parts, 0), _column(parts, 2)], schema=CELLS)


def _column(parts: Sequence[BlockCells], column: int) -> pa.Array:
    """Rows (0) or values (2) of cells as an Arrow array."""
    sizes = [int((cells.spans[:, column + 1] - cells.spans[:, column]).sum()) for cells in parts]
    offsets = np.zeros(sum(len(cells.spans) for cells in parts) + 1, np.int32)
    content = np.empty(sum(sizes), np.uint8)
    at, to = 0, 0
    for cells in parts:
        to = int(copy_spans(cells.data, cells.spans, column, offsets[at:], content, to))
        at += len(cells.spans)
    return pa.Array.from_buffers(pa.binary(), at, [None, pa.py_buffer(offsets), pa.py_buffer(content)])
