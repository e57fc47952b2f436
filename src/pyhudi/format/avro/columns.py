"""Arrow columns from the cells that the decoding loop filled in."""

from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import CorruptFile, Invalid
from pyhudi.format.avro.copying import copy_spans, sum_sizes, widen_decimals
from pyhudi.format.avro.defaults import default_column
from pyhudi.format.avro.program import (
    ChoiceShape,
    LeafShape,
    ListShape,
    Numbers,
    Program,
    Shape,
    SlotKind,
    StructShape,
)
from pyhudi.format.avro.resolution import Member
from pyhudi.format.avro.types import NULL, Map, Scalar, arrow_type
from pyhudi.format.time_units import in_unit, refuse_far_times

Flags = npt.NDArray[np.uint8]

_SIZE_MAX = 2**31 - 1
_PHYSICAL = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
}


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of Avro binary: where each starts and ends in `content`. `path` and `offset` name it in errors."""

    content: npt.NDArray[np.uint8]
    starts: Numbers
    ends: Numbers
    path: str
    offset: int

    def corrupt(self, row: int, at: int, column: str, *, expected: str, found: str) -> CorruptFile:
        """The error about a byte of a row."""
        where = f"column '{column}' of row {row:,}" if column else f"row {row:,}"
        return CorruptFile(self.path, self.offset + at, expected=f"{expected} ({where})", found=found)

    def corrupt_at(self, at: int, column: str, *, expected: str, found: str) -> CorruptFile:
        """The error about a byte of which only the offset is known, not the row."""
        holding = np.flatnonzero((self.starts <= at) & (at < self.ends))
        return self.corrupt(int(holding[0]) if holding.size else 0, at, column, expected=expected, found=found)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells that the loop filled in, by slot. A column of numbers is a view of its array and keeps it alive."""

    program: Program
    rows: Rows
    bases: list[int]
    level_sizes: list[int]
    arrays: dict[SlotKind, npt.NDArray[Any]]

    def of(self, slot: int) -> npt.NDArray[Any]:
        """The cells of a slot, one a value of its level."""
        kind, level = self.program.slots[slot]
        return self.arrays[kind][self.bases[slot] : self.bases[slot] + self.level_sizes[level]]

    def column(self, shape: Shape, within: Flags | None) -> pa.Array:
        """The column of a shape.

        `within`: a flag for each value of the shape's level, 0 if a record around the value is null; None if no
        record around it can be null.
        """
        match shape:
            case LeafShape():
                return self._leaf(shape, within)
            case ListShape():
                return self._list(shape, within)
            case StructShape():
                valid = self._valid(shape, within)
                inner = _both(valid, within)
                count = self.level_sizes[shape.level]
                columns = [self._member(member, one, shape.path, count, inner) for member, one in shape.members]

                fields = [
                    pa.field(member.field.name, column.type, _may_be_null(member))
                    for (member, _), column in zip(shape.members, columns, strict=True)
                ]
                return pa.Array.from_buffers(pa.struct(fields), count, [_bitmap(valid)], children=columns)
            case ChoiceShape():
                return self._choice(shape, within)
            case _:
                assert_never(shape)

    def _member(self, member: Member, shape: Shape | None, path: str, count: int, within: Flags | None) -> pa.Array:
        if shape is not None:
            return self.column(shape, within)
        inner = f"{path}.{member.field.name}" if path else member.field.name
        return default_column(member.field, arrow_type(member.field.type, inner), inner, count)

    def _choice(self, shape: ChoiceShape, within: Flags | None) -> pa.Array:
        valid = self._valid(shape, within)
        count = self.level_sizes[shape.level]
        columns = []
        for index, (kind, member) in enumerate(zip(shape.wanted.values, shape.members, strict=True)):
            if member is None:
                columns.append(pa.nulls(count, arrow_type(kind, f"{shape.path}.member{index}")))
            else:
                columns.append(self.column(member, None))
        return pa.Array.from_buffers(arrow_type(shape.wanted, shape.path), count, [_bitmap(valid)], children=columns)

    def _list(self, shape: ListShape, within: Flags | None) -> pa.Array:
        valid = self._valid(shape, within)
        count = self.level_sizes[shape.level]
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(self.of(shape.counts), out=offsets[1:])

        items = self.column(shape.items, None)
        kind = arrow_type(shape.wanted, shape.path)
        if isinstance(shape.wanted, Map):
            assert shape.keys is not None
            entry = pa.struct([kind.key_field, kind.item_field])
            keys = self.column(shape.keys, None)
            items = pa.Array.from_buffers(entry, len(items), [None], children=[keys, items])

        return pa.Array.from_buffers(kind, count, [_bitmap(valid), pa.py_buffer(offsets)], children=[items])

    def _valid(self, shape: Shape, within: Flags | None) -> Flags | None:
        """Flags of the values that are not null, None if all are. Raises: CorruptFile for a null that is forbidden."""
        if shape.valid < 0:
            return None
        valid: Flags = self.of(shape.valid)
        if shape.valid not in self.program.required:
            return valid

        # A value inside of a null record is absent: that is no null of its own.
        missing = np.flatnonzero((valid == 0) if within is None else (valid == 0) & (within != 0))
        if missing.size:
            missing_at = f"row {int(missing[0]):,}" if shape.level == 0 else f"value {int(missing[0]):,}"
            raise CorruptFile(
                self.rows.path,
                self.rows.offset,
                expected=f"no null in column '{shape.path}', as the schema to read by states",
                found=f"one at {missing_at}",
            )
        return None

    # Values without values inside.

    def _leaf(self, shape: LeafShape, within: Flags | None) -> pa.Array:
        written, wanted = shape.leaf.written, shape.leaf.wanted
        valid = self._valid(shape, within)
        bitmap = _bitmap(valid)
        cells = self.of(shape.values)

        match written.kind:
            case "boolean":
                return pa.Array.from_buffers(pa.bool_(), len(cells), [bitmap, _bitmap(cells, is_data=True)])
            case "enum":
                return self._symbols(shape, cells, bitmap, valid)
            case "bytes" | "string" | "fixed":
                if wanted.logical == "decimal" and wanted.kind in ("bytes", "fixed"):
                    return self._decimals(shape, cells, bitmap)
                return self._bytes(shape, cells, bitmap)
            case _:
                array = pa.Array.from_buffers(_PHYSICAL[written.kind], len(cells), [bitmap, pa.py_buffer(cells)])
                return self._number(shape, array)

    def _number(self, shape: LeafShape, array: pa.Array) -> pa.Array:
        written, wanted = shape.leaf.written, shape.leaf.wanted
        kind = arrow_type(wanted, shape.path)
        if wanted.kind != written.kind:
            array = array.cast(_PHYSICAL[wanted.kind], safe=False)

        if kind == array.type:
            return array

        if not pa.types.is_timestamp(kind):
            return array.view(kind)

        # Rows written before the column got its unit count in the unit that they were written in.
        unit = "ms" if _unit_of(written, wanted).endswith("millis") else "us"
        times = array.view(pa.timestamp(unit, kind.tz))
        try:
            refuse_far_times(times)
            return in_unit(times, kind)
        except pa.ArrowInvalid as error:
            raise CorruptFile(
                self.rows.path,
                self.rows.offset,
                expected=f"milliseconds of which the microseconds fit into 64 bits (column '{shape.path}')",
                found=str(error)[:200],
            ) from error

    def _symbols(
        self, shape: LeafShape, cells: npt.NDArray[Any], bitmap: pa.Buffer | None, valid: Flags | None
    ) -> pa.Array:
        written, wanted = shape.leaf.written, shape.leaf.wanted
        known = set(wanted.symbols)
        names = [symbol if symbol in known else wanted.default_symbol for symbol in written.symbols]
        indices = pa.Array.from_buffers(pa.int32(), len(cells), [bitmap, pa.py_buffer(cells)])

        unknown = np.array([name is None for name in names])
        strange = np.flatnonzero(unknown[cells] if valid is None else unknown[cells] & (valid != 0))
        if strange.size:
            found = written.symbols[int(cells[strange[0]])]
            raise CorruptFile(
                self.rows.path,
                self.rows.offset,
                expected=f"in column '{shape.path}' a symbol that the schema to read by has",
                found=f"'{found}' as value {int(strange[0]):,}",
            )

        return pa.array(names, pa.string()).take(indices)

    def _bytes(self, shape: LeafShape, spans: npt.NDArray[Any], bitmap: pa.Buffer | None) -> pa.Array:
        offsets = np.empty(len(spans) + 1, np.int32)
        size = sum_sizes(spans, offsets)
        if size > _SIZE_MAX:
            raise Invalid(
                f"{self.rows.path}: expected at most {_SIZE_MAX:,} bytes of column '{shape.path}' in a call, "
                f"found {size:,}; decode fewer rows at once"
            )

        data = np.empty(size, np.uint8)
        bits = copy_spans(self.rows.content, spans, data)
        kind = pa.string() if shape.leaf.wanted.kind == "string" else pa.binary()
        array = pa.Array.from_buffers(kind, len(spans), [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)])

        # Bytes below 0x80 are ASCII; only others can break UTF-8.
        if bits >= 0x80 and pa.types.is_string(kind):
            self._check(shape, array, spans, "UTF-8 text")
        return array

    def _decimals(self, shape: LeafShape, spans: npt.NDArray[Any], bitmap: pa.Buffer | None) -> pa.Array:
        kind = arrow_type(shape.leaf.wanted, shape.path)
        words = np.zeros((len(spans), 2), np.uint64)
        wide = widen_decimals(self.rows.content, spans, words)
        expected = f"a number of at most {kind.precision} digits"
        if wide >= 0:
            at = int(spans[wide]) >> 32
            raise self.rows.corrupt_at(at, shape.path, expected=expected, found="one of more than 128 bits")

        array = pa.Array.from_buffers(kind, len(spans), [bitmap, pa.py_buffer(words)])
        self._check(shape, array, spans, expected)
        return array

    def _check(self, shape: LeafShape, array: pa.Array, spans: npt.NDArray[Any], expected: str) -> None:
        if _is_sound(array):
            return

        low, high = 0, len(array)  # the first bad value is in array[low:high]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _is_sound(array[low:middle]) else (low, middle)

        at, size = int(spans[low]) >> 32, int(spans[low]) & 0xFFFFFFFF
        found = self.rows.content[at : at + min(size, 20)].tobytes().hex(" ")
        raise self.rows.corrupt_at(at, shape.path, expected=expected, found=found)


def _unit_of(written: Scalar, wanted: Scalar) -> str:
    """The logical type that tells the unit of a stored number: the written type's, or else the wanted type's."""
    return written.logical if "timestamp" in written.logical else wanted.logical


def _both(valid: Flags | None, within: Flags | None) -> Flags | None:
    if valid is None or within is None:
        return within if valid is None else valid
    return valid & within


def _bitmap(flags: npt.NDArray[Any] | None, *, is_data: bool = False) -> pa.Buffer | None:
    """Flags of a byte each as Arrow's bits. Validity flags that are all set give None: Arrow needs no bits for them."""
    if flags is None or (not is_data and flags.all()):
        return None
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _is_sound(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _may_be_null(member: Member) -> bool:
    kind = member.field.type
    return NULL in getattr(kind, "branches", ())
