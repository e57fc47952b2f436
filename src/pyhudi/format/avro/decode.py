"""Rows of Avro binary to Arrow record batches.

Cost: one walk over the bytes, about 10 ns a value; if the columns to build have lists, one more walk to count their
items. Memory: the columns; until the call ends also 8 bytes for each text or binary value, and a byte for each value
that may be null.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import Bug, CorruptFile, Invalid
from pyhudi.format.avro import decoding
from pyhudi.format.avro.columns import Cells, Rows
from pyhudi.format.avro.framing import Content
from pyhudi.format.avro.program import Numbers, Program, SlotKind, compile_reading
from pyhudi.format.avro.resolution import resolve_record
from pyhudi.format.avro.types import Record, arrow_field, parse_schema

CONTENT_SIZE_MAX: Final = 2**31 - 1
_NO_LIMIT: Final = 2**62

_EXPECTED: Final = {
    decoding.CUT: "more bytes of the row",
    decoding.LONG_NUMBER: "a number of at most 10 bytes and 64 bits",
    decoding.BAD_BRANCH: "the number of a branch of the union",
    decoding.BAD_SIZE: "a size within the row",
    decoding.BAD_COUNT: "a count of items that fit into the row",
    decoding.BAD_SYMBOL: "the number of a symbol of the enum",
    decoding.BAD_BOOLEAN: "00 or 01",
    decoding.WIDE_INT: "a number of 32 bits",
    decoding.BYTES_LEFT: "the end of the row",
    decoding.NO_MEMBER: "a type that the schema to read by has in its union",
}
_DTYPES: Final = {
    SlotKind.BYTES: np.uint8,
    SlotKind.INTS: np.int32,
    SlotKind.LONGS: np.int64,
    SlotKind.SPANS: np.int64,
}


class RowDecoder:
    """Decodes rows of one Avro schema to columns. Made once a schema; safe to share between threads.

    `written`: the schema of the rows. `wanted`: the schema to read them by, if another. `columns`: the fields of that
    schema to build, in this order; stored fields behind the last one that is needed are not looked at.
    Raises: Invalid or Unsupported for schemas that do not go together, naming the field.
    """

    def __init__(self, written: str, wanted: str | None = None, *, columns: Sequence[str] | None = None) -> None:
        stored = parse_schema(written)
        reading = stored if wanted is None else parse_schema(wanted)
        if columns is not None:
            reading = _only(reading, columns)
        self.schema: Final[pa.Schema] = pa.schema(
            [arrow_field(one.name, one.type, one.name).with_nullable(True) for one in reading.fields]
        )
        plan = resolve_record(stored, reading)
        self._program = compile_reading(plan)
        self._counting = compile_reading(plan, is_counting=True) if self._program.has_lists else None

    def decode_values(self, values: pa.BinaryArray, *, path: str = "Avro rows") -> pa.RecordBatch:
        """The rows in a binary column, one a value. Example: the values of an HFile's cells.

        Raises: as `decode`, with offsets that count from the start of the column's data; Invalid for a null.
        """
        if not pa.types.is_binary(values.type) or values.null_count:
            raise Invalid(f"{path}: expected rows as bytes without null, found {values.null_count:,} of {values.type}")
        if len(values) == 0:
            return self.decode(b"", np.zeros(0, np.int64), np.zeros(0, np.int64), path=path)

        _, offsets, content = values.buffers()
        bounds = np.frombuffer(offsets, np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
        return self.decode(content or b"", bounds[:-1], bounds[1:], path=path)

    def decode(
        self,
        content: Content,
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        *,
        path: str = "Avro rows",
        offset: int = 0,
    ) -> pa.RecordBatch:
        """The rows of `content`, in the order of `starts`: each from its start to its end.

        `path` and `offset` name the content in errors. At most 2 GiB of content, and of each column, a call.
        Raises: CorruptFile for a row that breaks the format or the schema, with its number and offset.
        """
        rows = _checked_rows(content, starts, ends, path, offset)
        limits = [len(starts)] + [0] * (self._program.level_count - 1)
        if self._counting is not None:
            counted, _ = _run(
                self._counting, self._counting.operations, rows, [_NO_LIMIT] * len(limits), _cells([0] * 4)
            )
            limits[1 : len(counted)] = counted[1:]

        operations, bases, counts = self._program.assign_slots(limits)
        cells = _cells(counts)
        seen = limits.copy()
        if self._counting is not None:  # skipped lists behind the last one that is built were not counted
            seen[self._counting.level_count :] = [_NO_LIMIT] * (len(limits) - self._counting.level_count)
        _run(self._program, operations, rows, seen, cells)

        made = Cells(self._program, rows, bases, limits, cells).column(self._program.shape, None)
        batch = pa.RecordBatch.from_struct_array(made)
        return batch.cast(self.schema) if batch.num_columns else batch  # without columns a cast forgets the rows


@lru_cache(maxsize=64)
def row_decoder(written: str, wanted: str | None = None, columns: tuple[str, ...] | None = None) -> RowDecoder:
    """A decoder for these schemas and columns. The 64 decoders that were used last are kept."""
    return RowDecoder(written, wanted, columns=columns)


def _only(record: Record, columns: Sequence[str]) -> Record:
    fields = {one.name: one for one in record.fields}
    for name in columns:
        if name not in fields:
            raise Invalid(f"column '{name}': the rows have no such field; there are {', '.join(fields)}")
    if len(set(columns)) < len(columns):
        raise Invalid(f"columns {', '.join(columns)}: expected each once")
    return Record(record.name, tuple(fields[name] for name in columns))


def _checked_rows(
    content: Content,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    path: str,
    offset: int,
) -> Rows:
    data = np.frombuffer(content, np.uint8)
    data.setflags(write=False)
    if data.size > CONTENT_SIZE_MAX:
        raise Invalid(f"{path}: expected at most {CONTENT_SIZE_MAX:,} bytes of rows in a call, found {data.size:,}")

    starts, ends = (np.ascontiguousarray(bound, np.int64).view() for bound in (starts, ends))
    for bound in (starts, ends):
        bound.setflags(write=False)  # read-only in every call: the loop is compiled anew for another kind of array
    if starts.shape != ends.shape or starts.ndim != 1:
        raise Invalid(f"{path}: expected as many ends as starts of rows, found {ends.shape} and {starts.shape}")

    outside = np.flatnonzero((starts < 0) | (starts > ends) | (ends > data.size))
    if outside.size:
        row = int(outside[0])
        found = f"row {row:,} from {int(starts[row]):,} to {int(ends[row]):,}"
        raise CorruptFile(path, offset, expected=f"rows within {data.size:,} bytes", found=found)

    return Rows(data, starts, ends, path, offset)


def _cells(counts: list[int]) -> dict[SlotKind, npt.NDArray[Any]]:
    return {kind: np.zeros(count, _DTYPES[kind]) for kind, count in zip(SlotKind, counts, strict=True)}


def _run(
    program: Program,
    operations: Numbers,
    rows: Rows,
    limits: list[int],
    cells: dict[SlotKind, npt.NDArray[Any]],
) -> tuple[list[int], Numbers]:
    """Carry out a program. Answers the number of values of each level."""
    sizes, stopped_at = np.zeros(program.level_count, np.int64), np.zeros(3, np.int64)
    wrong = decoding.run(
        operations,
        program.jumps,
        rows.content,
        rows.starts,
        rows.ends,
        np.array(limits, np.int64),
        sizes,
        program.depth,
        (cells[SlotKind.BYTES], cells[SlotKind.INTS], cells[SlotKind.LONGS], cells[SlotKind.SPANS]),
        stopped_at,
    )

    if wrong == decoding.CHANGED:
        raise Bug(f"{rows.path}: the bytes changed while they were decoded, or were counted otherwise than read")
    if wrong != decoding.FINE:
        row, at, step = (int(number) for number in stopped_at)
        found = rows.content[at : min(at + 10, int(rows.ends[row]))].tobytes().hex(" ")
        found = f"{found} with {int(rows.ends[row]) - at:,} bytes left" if found else "its end"
        raise rows.corrupt(row, at, program.paths[step], expected=_EXPECTED[wrong], found=found)
    return [int(size) for size in sizes], stopped_at
