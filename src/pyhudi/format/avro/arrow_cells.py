"""Turns Arrow columns into the cells that the encoding loop reads, and the operations that read these cells."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.arrow_arrays import flat_offsets, null_mask
from pyhudi.format.avro.encoding import (
    BRANCH_0,
    CHOOSE,
    END,
    GO,
    GUARD,
    LIST,
    LIST_NEXT,
    NEXT,
    NUMBER_SIZE_MAX,
    TAKE_4,
    TAKE_8,
    TAKE_BOOLEAN,
    TAKE_BYTES,
    TAKE_DECIMAL,
    TAKE_FIXED,
    TAKE_INT,
    TAKE_LONG,
)
from pyhudi.format.avro.types import NULL, STRING, Array, AvroType, Field, Map, Record, Scalar, Union, arrow_type
from pyhudi.format.schema.arrow_types import can_promote, canonical_arrow
from pyhudi.format.time_units import are_same_times

Cells = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]

ALL_VALID = -1
_TIMES = {"time-millis": pa.time32("ms"), "time-micros": pa.time64("us")}
_DECIMAL_SIZE_MAX = 17
_INT_SIZE_MAX = 5


class CellWriter:
    """Takes the columns of a batch, keeps a copy of their cells by width, and builds the operations that write them.

    `size_max`: the most bytes that the rows can take, frames left out.
    """

    def __init__(self) -> None:
        self.operations: list[list[int]] = []
        self.paths: list[str] = []
        self.jumps: list[int] = []
        self.size_max = 0
        self.depth_max = 0
        self._depth = 0
        self._cells: dict[type, list[Cells]] = {np.uint8: [], np.int32: [], np.int64: []}
        self._counts = dict.fromkeys(self._cells, 0)

    def rows(self, record: Record, batch: pa.RecordBatch) -> None:
        """Take the columns of a batch as the fields of a record, by name."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if len(columns) < batch.num_columns:
            raise Invalid(f"columns {', '.join(batch.schema.names)}: expected each name once")
        self._fields(record.fields, columns, "")
        self._emit(END, "")

    def cells(self) -> tuple[Cells, Cells, Cells]:
        """All cells of 1, 4 and 8 bytes."""
        one, four, eight = (np.concatenate([np.zeros(0, kind), *parts]) for kind, parts in self._cells.items())
        return one, four, eight

    def _fields(self, fields: tuple[Field, ...], columns: dict[str, pa.Array], path: str) -> None:
        names = [one.name for one in fields]
        if set(names) != set(columns):
            where = f"column '{path}'" if path else "the rows"
            raise Invalid(f"{where}: expected the fields {', '.join(names)}, found {', '.join(columns)}")
        for one in fields:
            self._value(one.type, _plain(columns[one.name]), f"{path}.{one.name}" if path else one.name)

    def _value(self, kind: AvroType, array: pa.Array, path: str) -> None:
        match kind:
            case Union():
                self._union(kind, array, path)
            case Scalar():
                self._scalar(kind, array, path, -1)
            case _:
                self._nested(kind, array, path, -1)

    def _union(self, kind: Union, array: pa.Array, path: str) -> None:
        if len(kind.values) != 1:
            self._choice(kind, array, path)
            return
        if kind.null_branch < 0:
            self._emit(BRANCH_0, path)
        value = kind.values[0]
        self.size_max += len(array)
        if isinstance(value, Scalar):
            self._scalar(value, array, path, kind.null_branch)
        else:
            self._nested(value, array, path, kind.null_branch)

    def _nested(self, kind: AvroType, array: pa.Array, path: str, null: int) -> None:
        if isinstance(kind, Record):
            if not pa.types.is_struct(array.type):
                raise _misfit(path, array.type, "a struct")

            valid = self._valid(array)
            guard = self._emit(GUARD, path, null, valid) if null >= 0 or valid != ALL_VALID else -1

            names = [array.type.field(index).name for index in range(array.type.num_fields)]
            columns = dict(zip(names, array.flatten(), strict=True))  # members are null where their struct is
            self._fields(kind.fields, columns, path)
            if guard >= 0:
                self._close(guard)
            return

        assert isinstance(kind, Array | Map)
        is_map = isinstance(kind, Map)
        array = _as_list(array, path, is_map=is_map)
        offsets, first, last = _offsets(array)

        self._depth += 1
        self.depth_max = max(self.depth_max, self._depth)
        self.size_max += 2 * NUMBER_SIZE_MAX * len(array)

        head = self._emit(LIST, path, null, self._valid(array), self._add(offsets))
        if isinstance(kind, Map):
            self._scalar(STRING, _plain(array.keys).slice(first, last - first), f"{path}.key", -1)
            self._value(kind.values, _plain(array.items).slice(first, last - first), f"{path}.value")
        else:
            self._value(kind.items, _plain(array.values).slice(first, last - first), f"{path}.element")

        again = self._emit(LIST_NEXT, path)
        self.operations[again][NEXT] = head + 1
        self._close(head)
        self._depth -= 1

    def _choice(self, kind: Union, array: pa.Array, path: str) -> None:
        """A union of several types: the member that is not null says which branch is written."""
        if not pa.types.is_struct(array.type) or array.type.num_fields != len(kind.values):
            raise _misfit(path, array.type, f"a struct of {len(kind.values)} members")

        outer = np.ones(len(array), np.uint8) if array.null_count == 0 else _flags(array.is_valid())
        members = [_plain(member) for member in array.flatten()]

        chosen = np.full(len(array), -1, np.int32)
        branches = [index for index, branch in enumerate(kind.branches) if branch != NULL]
        filled = np.zeros(len(array), np.int64)
        for branch, member in zip(branches, members, strict=True):
            flags = _flags(member.is_valid())
            chosen[flags != 0] = branch
            filled += flags

        bad = np.flatnonzero((filled > 1) | ((filled == 0) & (kind.null_branch < 0) & (outer != 0)))
        if bad.size:
            row = int(bad[0])
            raise Invalid(f"column '{path}', value {row:,}: expected one member that is not null, found {filled[row]}")

        table = len(self.jumps)
        self.jumps += [0] * len(kind.branches)
        self.size_max += NUMBER_SIZE_MAX * len(array)
        valid = self._add(np.minimum(chosen + 1, 1).astype(np.uint8)) if (chosen < 0).any() else ALL_VALID
        head = self._emit(CHOOSE, path, kind.null_branch, valid, self._add(chosen), table)

        leaps = [head]
        for branch, member in zip(branches, members, strict=True):
            self.jumps[table + branch] = len(self.operations)
            if member.null_count == len(member):  # no row chooses it
                continue
            self._value(kind.branches[branch], member, path)
            leaps.append(self._emit(GO, path))

        for leap in leaps:
            self._close(leap)

    # Values without values inside.

    def _scalar(self, kind: Scalar, array: pa.Array, path: str, null: int) -> None:
        array = _stored(kind, array, path)
        valid, count = self._valid(array), len(array)

        match kind.kind:
            case "boolean":
                self._take(TAKE_BOOLEAN, path, null, valid, _unpacked(array, 1), count)
            case "int" | "enum":
                self._take(TAKE_INT, path, null, valid, _view(array, 1, np.int32), _INT_SIZE_MAX * count)
            case "long":
                self._take(TAKE_LONG, path, null, valid, _view(array, 1, np.int64), NUMBER_SIZE_MAX * count)
            case "float":
                self._take(TAKE_4, path, null, valid, _view(array, 1, np.int32), 4 * count)
            case "double":
                self._take(TAKE_8, path, null, valid, _view(array, 1, np.int64), 8 * count)
            case _ if kind.logical == "decimal":
                size = kind.size if kind.kind == "fixed" else 0
                words = _view(array, 1, np.int64, width=2)
                self._take(TAKE_DECIMAL, path, null, valid, words, max(size, _DECIMAL_SIZE_MAX) * count, size=size)
            case _:
                offsets, first, last = _offsets(array)
                data = array.buffers()[2]
                held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8, last - first, first)

                code = TAKE_FIXED if kind.kind == "fixed" else TAKE_BYTES
                size_max = _INT_SIZE_MAX * count + held.size
                base = self._add(held)
                self._take(code, path, null, valid, offsets, size_max, argument=base, size=kind.size)

    def _take(
        self,
        code: int,
        path: str,
        null: int,
        valid: int,
        cells: Cells,
        size_max: int,
        *,
        argument: int = 0,
        size: int = 0,
    ) -> None:
        self.size_max += size_max
        self._emit(code, path, null, valid, self._add(cells), argument, size)

    def _valid(self, array: pa.Array) -> int:
        """Add a flag for each value, 1 unless the value is null. Answers the base of the flags, or ALL_VALID."""
        return ALL_VALID if array.null_count == 0 else self._add(_unpacked(array, 0))

    def _add(self, cells: Cells) -> int:
        kind = cells.dtype.type
        self._cells[kind].append(cells)
        self._counts[kind] += cells.size
        return self._counts[kind] - cells.size

    def _emit(
        self,
        code: int,
        path: str,
        null: int = -1,
        valid: int = ALL_VALID,
        cells: int = 0,
        argument: int = 0,
        size: int = 0,
    ) -> int:
        self.paths.append(path)
        self.operations.append([code, null, valid, cells, argument, len(self.operations) + 1, size])
        return len(self.operations) - 1

    def _close(self, operation: int) -> None:
        self.operations[operation][NEXT] = len(self.operations)


def _stored(kind: Scalar, array: pa.Array, path: str) -> pa.Array:
    """The column with the values that Avro stores, laid out as int32, int64, float, double, bool or bytes.

    Example: for an enum, the index of each symbol. Raises: Invalid for a column of a type that does not fit, or for a
    value that the Avro type cannot hold.
    """
    wanted = arrow_type(kind, path)
    try:
        if kind.logical in _TIMES and pa.types.is_time(array.type):
            return array.cast(_TIMES[kind.logical]).view(wanted)

        if array.type != wanted:
            found = canonical_arrow(pa.schema([pa.field(path, array.type)])).field(0).type
            if not (can_promote(found, wanted) or are_same_times(found, wanted)):
                raise _misfit(path, array.type, str(wanted))
            array = array.cast(wanted)

        if kind.kind == "enum":
            indices = pc.index_in(array, pa.array(kind.symbols, pa.string()))
            if indices.null_count > array.null_count:
                strange = pc.unique(array.filter(pc.and_(indices.is_null(), array.is_valid())))[0]
                raise Invalid(f"column '{path}': expected one of {', '.join(kind.symbols)}, found '{strange}'")
            return indices
    except pa.ArrowInvalid as error:
        raise Invalid(f"column '{path}' of type {array.type}: {error}; round or cast it first") from error
    return array


def _plain(array: pa.Array) -> pa.Array:
    """The column's plain values: extension types, dictionaries and run-end encodings are taken off."""
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    if isinstance(array, pa.DictionaryArray):
        return _plain(array.dictionary_decode())
    if isinstance(array, pa.RunEndEncodedArray):
        return _plain(pc.run_end_decode(array))
    return array


def _as_list(array: pa.Array, path: str, *, is_map: bool) -> pa.Array:
    """A column of lists, in any of Arrow's layouts, as plain lists. A column of maps stays as it is."""
    kind = array.type
    if is_map:
        if not pa.types.is_map(kind):
            raise _misfit(path, kind, "a map")
        return array

    if pa.types.is_list(kind):
        return array

    others = (pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view, pa.types.is_large_list_view)
    if not any(is_other(kind) for is_other in others):
        raise _misfit(path, kind, "a list")

    # No cast: pyarrow 26 casts list views to invalid lists.
    return pa.ListArray.from_arrays(flat_offsets(array), array.flatten(), mask=null_mask(array))


def _view(array: pa.Array, index: int, dtype: type, more: int = 0, *, width: int = 1) -> Cells:
    """A buffer of a column as numbers, without a copy: `width` numbers a value, and `more` behind the last value."""
    data = array.buffers()[index]
    count = len(array) * width + more
    if data is None or (count == more == 1 and data.size == 0):  # Arrow leaves out an empty column's offsets
        return np.zeros(count, dtype)
    start = array.offset * width * np.dtype(dtype).itemsize
    return np.frombuffer(data, dtype, count, start)


def _offsets(array: pa.Array) -> tuple[npt.NDArray[np.int32], int, int]:
    """Each value's offset from the first one's start; then where the first starts and the last ends in the buffer."""
    offsets = _view(array, 1, np.int32, more=1)
    first, last = int(offsets[0]), int(offsets[-1])
    assert first >= 0  # both asserts keep the loop within its cells, even for a malformed column
    assert (offsets[1:] >= offsets[:-1]).all()
    return (offsets - offsets[0]).astype(np.int32, copy=False), first, last


def _unpacked(array: pa.Array, index: int) -> npt.NDArray[np.uint8]:
    """A buffer of bits, one a value, as bytes of 0 or 1."""
    data = array.buffers()[index]
    if data is None or len(array) == 0:
        return np.zeros(len(array), np.uint8)
    first = array.offset // 8
    count = (array.offset + len(array) + 7) // 8 - first
    bits = np.unpackbits(np.frombuffer(data, np.uint8, count, first), bitorder="little")
    return bits[array.offset % 8 : array.offset % 8 + len(array)]


def _flags(booleans: pa.BooleanArray) -> npt.NDArray[np.uint8]:
    return _unpacked(booleans, 1)


def _misfit(path: str, found: pa.DataType, expected: str) -> Invalid:
    return Invalid(f"column '{path}' of type {found}: expected {expected}; cast it")
