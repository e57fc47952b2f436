"""Arrow record batches to rows of Avro binary.

Cost: one copy of the columns, one walk over their values and one copy of the rows. Memory: the rows, and the working
space for a slice of about 16 MiB of the batch.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.avro import encoding
from pyhudi.format.avro.arrow_cells import CellWriter
from pyhudi.format.avro.types import parse_schema

SLICE_SIZE_BYTES: Final = 16 << 20
SLICE_ROWS_MAX: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """Rows one behind the other, and where each starts and ends. A row's frame, if any, stands before its start."""

    content: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


class RowEncoder:
    """Encodes record batches to rows of one Avro schema. Made once a schema; safe to share between threads.

    Columns are matched by name. A column of another type is cast if that type may become the schema's; example: an
    int32 column for a field of type long. Branches of unions are numbered in the schema's order.
    """

    def __init__(self, schema: str) -> None:
        self._record = parse_schema(schema)

    def encode(self, batch: pa.RecordBatch, *, is_framed: bool = False) -> EncodedRows:
        """The rows of a batch, in order. With `is_framed`, each stands behind its size as i32, big endian.

        Raises: Invalid for columns that do not fit the schema, for a null that the schema does not allow, for a
        timestamp that is no whole number of the schema's milliseconds, or for a number too large for its fixed type.
        """
        parts: list[EncodedRows] = []
        start = base = 0
        rows_a_slice = max(1, min(SLICE_ROWS_MAX, SLICE_SIZE_BYTES * batch.num_rows // max(batch.nbytes, 1)))

        while start < batch.num_rows or not parts:
            part = self._encode(batch.slice(start, rows_a_slice), start, base, is_framed)
            base += part.content.size
            start += rows_a_slice
            parts.append(part)

        if len(parts) == 1:
            return parts[0]
        return EncodedRows(
            np.concatenate([part.content for part in parts]),
            np.concatenate([part.starts for part in parts]),
            np.concatenate([part.ends for part in parts]),
        )

    def _encode(self, batch: pa.RecordBatch, first_row: int, base: int, is_framed: bool) -> EncodedRows:
        writer = CellWriter()
        writer.rows(self._record, batch)

        count = batch.num_rows
        out = np.empty(writer.size_max + (encoding.FRAME_SIZE * count if is_framed else 0), np.uint8)
        starts, ends, stopped_at = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(2, np.int64)

        wrong = encoding.run(
            np.array(writer.operations, np.int64),
            np.array(writer.jumps or [0], np.int64),
            writer.depth_max,
            is_framed,
            writer.cells(),
            out,
            starts,
            ends,
            stopped_at,
        )
        if wrong != encoding.FINE:
            expected = {
                encoding.NO_VALUE: "no null, as the schema states",
                encoding.WRONG_SIZE: "a value of the size of its fixed type",
            }
            path = writer.paths[int(stopped_at[1])]
            raise Invalid(f"column '{path}', row {first_row + int(stopped_at[0]):,}: expected {expected[wrong]}")

        size = int(ends[-1]) if count else 0
        assert size <= out.size
        return EncodedRows(out[:size].copy(), starts + base, ends + base)


@lru_cache(maxsize=64)
def row_encoder(schema: str) -> RowEncoder:
    """An encoder for a schema. The 64 encoders that were used last are kept."""
    return RowEncoder(schema)
