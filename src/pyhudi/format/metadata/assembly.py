"""Arrow columns as records of one type of the metadata table, field by field: the inverse of `metadata_columns`.

Cost: 5 to 15 ns a field. Memory: the records, and 16 bytes a record.
Spec: format/metadata-table.md section 6.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import Bytes, one_array
from pyhudi.format.avro.schema_files import metadata_record_schema
from pyhudi.format.avro.types import AvroType, Field, Map, Record, Scalar, Union
from pyhudi.format.metadata import writing
from pyhudi.format.metadata.columns import Bounds, Column, Entries, is_wrapped, record_shape, wrapper_tables
from pyhudi.format.schema.conversion import FILE_NAME

Numbers: TypeAlias = npt.NDArray[np.int64]
_Part: TypeAlias = tuple[Callable[..., None], Callable[..., None], tuple[Any, ...]]

_SLICE_ROWS: Final = 1 << 13
_BINARY_SIZE_MAX: Final = (1 << 31) - 1


@dataclass(slots=True, eq=False)
class RecordWriter:
    """Collects the fields of `count` records, then writes the records row by row."""

    count: int
    every: Bytes = field(init=False)
    _parts: list[_Part] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.every = np.ones(self.count, np.uint8)

    def fixed(self, text: bytes) -> None:
        """Add the same bytes to every record."""
        self._add(writing.measure_fixed, writing.put_fixed, self.every, np.frombuffer(text, np.uint8))

    def fields(self, record: Record, columns: Mapping[str, Column], active: Bytes) -> None:
        """Add the fields of a record, by name. A field without a column is null, or its type's zero."""
        for one in record.fields:
            if is_wrapped(one.type):
                bounds = columns[one.name]
                assert isinstance(one.type, Union)
                assert isinstance(bounds, Bounds)
                self._wrapped(one.type, bounds, active)
            elif isinstance(one.type, Union):
                self._optional(one.name, one.type, columns, active)
            else:
                self._value(one.name, one.type, columns.get(one.name), active)

    def entries(self, entries: Entries) -> None:
        firsts = np.zeros(self.count + 1, np.int64)
        np.cumsum(entries.counts, out=firsts[1:])
        offsets, data = _text_buffers(entries.names)
        arrays = (firsts, offsets, data, entries.sizes, entries.is_deleted)
        self._add(writing.measure_entries, writing.put_entries, self.every, *arrays)

    def values(self) -> pa.Array:
        """The records, as a binary array; as a large binary array if they take 2 GiB or more."""
        sizes = np.zeros(self.count, np.int64)
        for measure, _, arrays in self._parts:
            measure(sizes, *arrays)

        # All sizes are known before the first byte is written, so nothing has to grow or move.
        offsets = np.zeros(self.count + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        out = np.empty(int(offsets[-1]), np.uint8)
        at = offsets[:-1].copy()

        for start in range(0, self.count, _SLICE_ROWS):
            end = min(start + _SLICE_ROWS, self.count)
            for _, put, arrays in self._parts:
                put(out, at, start, end, *arrays)
        assert (at == offsets[1:]).all()

        if out.size > _BINARY_SIZE_MAX:
            return pa.LargeBinaryArray.from_buffers(
                pa.large_binary(), self.count, [None, pa.py_buffer(offsets), pa.py_buffer(out)]
            )
        bounds = pa.py_buffer(offsets.astype(np.int32))
        return pa.BinaryArray.from_buffers(pa.binary(), self.count, [None, bounds, pa.py_buffer(out)])

    def _optional(self, name: str, kind: Union, columns: Mapping[str, Column], active: Bytes) -> None:
        held = kind.values[0]
        if isinstance(held, Record):
            present = _valid(columns.get(held.fields[0].name), self.count)
        else:
            present = _valid(columns.get(name), self.count)
        present &= active
        branches = np.where(present != 0, np.uint8(2 - 2 * kind.null_branch), np.uint8(2 * kind.null_branch))
        self._add(writing.measure_bytes, writing.put_bytes, active, branches.astype(np.uint8))
        if isinstance(held, Record):
            self.fields(held, columns, present)
        else:
            self._value(name, held, columns.get(name), present)

    def _value(self, name: str, kind: AvroType, given: Column | None, active: Bytes) -> None:
        assert isinstance(kind, Scalar)
        assert given is None or isinstance(given, pa.Array)
        column: pa.Array = given
        if column is None:
            column = pa.array(np.zeros(self.count, np.int64) if kind.kind != "boolean" else np.zeros(self.count, bool))
            if kind.kind in ("string", "bytes"):
                column = pa.array([""] * self.count)

        if column.null_count and (_valid(column, self.count) < active).any():
            raise Invalid(f"metadata table: expected a value of '{name}' in every record, found a null")

        if kind.kind in ("int", "long"):
            numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            self._add(writing.measure_numbers, writing.put_numbers, active, np.ascontiguousarray(numbers, np.int64))
        elif kind.kind == "boolean":
            flags = column.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint8)
            self._add(writing.measure_bytes, writing.put_bytes, active, flags)
        else:
            self._add(writing.measure_texts, writing.put_texts, active, *_text_buffers(column))

    def _wrapped(self, kind: Union, bounds: Bounds, active: Bytes) -> None:
        kinds, layouts, _ = wrapper_tables(kind)
        branch_of = np.full(128, -1, np.int64)
        branch_of[kinds] = np.arange(len(kinds))
        branches = branch_of[bounds.kinds]
        if (branches < 0).any():
            found = int(bounds.kinds[int(np.flatnonzero(branches < 0)[0])])
            raise Invalid(f"metadata table: its schema has no wrapper of kind {found}; write the value in another")
        offsets, data = _text_buffers(bounds.data)
        self._add(writing.measure_wrapped, writing.put_wrapped, active, branches, layouts, bounds.bits, offsets, data)

    def _add(self, measure: Callable[..., None], put: Callable[..., None], *arrays: npt.NDArray[Any]) -> None:
        for array in arrays:
            array.setflags(write=False)  # read-only in every call: the steps are compiled for each kind of array
        self._parts.append((measure, put, arrays))


def write_records(
    name: str,
    record_type: int | npt.NDArray[np.int64],
    columns: Mapping[str, Column],
    count: int,
    *,
    table_version: int,
    base_file_name: str | None,
) -> pa.Array:
    """The records that fill the field `name` with these columns. The records' keys are left empty.

    `base_file_name`: the HFile that the records go into, if they name it; None in log blocks. Seen: in 0.x and 1.0
    the records of every base file name it, in 1.2 only the records of compacted files.
    """
    shape = record_shape(metadata_record_schema(table_version), name)
    writer = RecordWriter(count)

    for field_name, kind in shape.before:
        if field_name == "key":
            writer.fixed(b"\0")
        elif isinstance(kind, Scalar):
            types = np.full(count, record_type, np.int64) if isinstance(record_type, int) else record_type
            writer.fields(Record("", (Field(field_name, kind),)), {field_name: pa.array(types)}, writer.every)
        elif field_name == FILE_NAME and base_file_name is not None:
            text = base_file_name.encode()
            assert len(text) < 1 << 13
            size = len(text) << 1
            writer.fixed(b"\x02" + (bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])) + text)
        else:
            writer.fixed(b"\0")

    # The field of this type is present; the fields behind it are null.
    writer.fixed(b"\x02")
    if isinstance(shape.section, Map):
        entries = columns["entries"]
        assert isinstance(entries, Entries)
        writer.entries(entries)
    else:
        assert isinstance(shape.section, Record)
        writer.fields(shape.section, columns, writer.every)

    writer.fixed(b"\0" * len(shape.after))
    return writer.values()


def _valid(column: Column | None, count: int) -> Bytes:
    if column is None:
        return np.zeros(count, np.uint8)
    assert isinstance(column, pa.Array)
    if column.null_count == 0:
        return np.ones(count, np.uint8)
    return column.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8)


def _text_buffers(column: pa.Array | pa.ChunkedArray) -> tuple[Numbers, Bytes]:
    """The offsets of a column of texts or bytes, and the bytes that they count in."""
    array = one_array(column)
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    if not is_large and not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        raise Invalid(f"metadata table: expected text or bytes, found {array.type}")
    if len(array) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    _, offsets, data = array.buffers()
    width = 8 if is_large else 4
    bounds = np.frombuffer(offsets, f"<i{width}", len(array) + 1, array.offset * width).astype(np.int64)
    return bounds, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
