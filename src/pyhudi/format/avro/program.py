"""A plan of reading rows (`resolution.Fields`), compiled to operations for the decoding loop.

Layout: `operations` is (n, 6) of int64, a row an operation: code; the branch of null, or -1; the slot of
validity, or -1; the slot of values, or -1; an argument; the operation behind this one's value.

A slot is a run of cells of one kind, with a cell for each value of its level. Level 0 is the rows; each list opens a
level of its own for its items. Example: for a row of an int `a` and a list `b`, `a` has a cell a row and the items of
`b` have a cell each. `assign_slots` replaces slots by bases, the indices of their first cells, as the loop takes them.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from pyhudi.errors import Unsupported
from pyhudi.format.avro.resolution import Choice, Fields, Leaf, Member, Nullable, Reading, Repeated, Skip
from pyhudi.format.avro.types import NULL, STRING, Array, AvroType, Map, Record, Scalar, Union, size_min

Numbers: TypeAlias = npt.NDArray[np.int64]

CODE, NULL_BRANCH, VALID, OUT, ARGUMENT, NEXT = range(6)

# Codes of operations. The loop tells four groups apart by their order: numbers, bytes of any size, bytes of a fixed
# size, control.
SKIP_NUMBER, PUT_LONG, PUT_INT, PUT_SYMBOL = 0, 1, 2, 3
SKIP_BYTES, PUT_BYTES = 4, 5
SKIP_FIXED, PUT_FIXED, PUT_4, PUT_8, PUT_BOOLEAN = 6, 7, 8, 9, 10
GUARD, LIST, LIST_NEXT, CHOOSE, MARK, GO, END, END_EARLY = 11, 12, 13, 14, 15, 16, 17, 18

NO_SLOT: Final = -1
_ALIGNED_CELLS: Final = 64


class SlotKind(IntEnum):
    """What a slot's cells hold: bytes; 4-byte values; 8-byte values; or `position << 32 | size` of stored bytes."""

    BYTES = 0
    INTS = 1
    LONGS = 2
    SPANS = 3


@dataclass(frozen=True, slots=True)
class LeafShape:
    leaf: Leaf
    level: int
    valid: int
    values: int
    path: str


@dataclass(frozen=True, slots=True)
class ListShape:
    wanted: Array | Map
    level: int
    item_level: int
    valid: int
    counts: int
    keys: LeafShape | None
    items: "Shape"
    path: str


@dataclass(frozen=True, slots=True)
class StructShape:
    """A record's columns. `members`: each field with its shape, or with None if its default fills the column."""

    level: int
    valid: int
    members: tuple[tuple[Member, "Shape | None"], ...]
    path: str


@dataclass(frozen=True, slots=True)
class ChoiceShape:
    wanted: Union
    level: int
    valid: int
    members: tuple["Shape | None", ...]
    path: str


Shape: TypeAlias = LeafShape | ListShape | StructShape | ChoiceShape


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Operations, the jumps of unions, and the path of each operation in the schema, for errors.

    `required`: the slots of validity whose values must not be null, as the reading schema states.
    """

    operations: Numbers
    jumps: Numbers
    paths: tuple[str, ...]
    slots: tuple[tuple[SlotKind, int], ...]
    level_count: int
    depth: int
    shape: StructShape
    required: frozenset[int]

    @property
    def has_lists(self) -> bool:
        """Whether rows hold lists, whose items must be counted before cells can be made for them."""
        return self.level_count > 1

    def assign_slots(self, level_sizes: list[int]) -> tuple[Numbers, list[int], list[int]]:
        """The operations with bases instead of slots, the base of each slot, and the number of cells of each kind.

        `level_sizes`: how many values each level has.
        """
        cells = [0] * len(SlotKind)
        bases = []
        for kind, level in self.slots:
            bases.append(cells[kind])
            cells[kind] += -(-level_sizes[level] // _ALIGNED_CELLS) * _ALIGNED_CELLS

        assigned = self.operations.copy()
        table = np.array([*bases, NO_SLOT], np.int64)  # slot -1 stays -1
        assigned[:, VALID] = table[assigned[:, VALID]]
        assigned[:, OUT] = table[assigned[:, OUT]]
        return assigned, bases, cells


def compile_reading(reading: Fields, *, is_counting: bool = False) -> Program:
    """The operations that build the columns. With `is_counting`: the operations that only count the lists' items.

    Fields behind the last needed field are not walked. If there are any, the end of a row is not checked.
    """
    assembler = _Assembler(is_counting)
    shape = assembler.record(reading, path="", level=0, valid=NO_SLOT, is_top=True)
    return Program(
        np.array(assembler.operations, np.int64),
        np.array(assembler.jumps or [0], np.int64),
        tuple(assembler.paths),
        tuple(assembler.slots),
        assembler.level_count,
        assembler.depth_max,
        shape,
        frozenset(assembler.required),
    )


class _Assembler:
    def __init__(self, is_counting: bool) -> None:
        self._is_counting = is_counting
        self.operations: list[list[int]] = []
        self.jumps: list[int] = []
        self.paths: list[str] = []
        self.slots: list[tuple[SlotKind, int]] = []
        self.required: list[int] = []
        self.level_count = 1
        self._depth = 0
        self.depth_max = 0

    def record(self, reading: Fields, path: str, level: int, valid: int, *, is_top: bool = False) -> StructShape:
        shapes: dict[int, Shape | None] = {}
        count = len(reading.steps)
        # Nothing behind the last needed field has to be walked.
        if is_top:
            while count and not self._is_needed(reading.steps[count - 1]):
                count -= 1

        for index in range(count):
            inner = f"{path}.{reading.names[index]}" if path else reading.names[index]
            shapes[index] = self._value(reading.steps[index], inner, level)

        if is_top:
            self._emit(END if count == len(reading.steps) else END_EARLY, path)
        members = tuple((one, None if one.step is None else shapes.get(one.step)) for one in reading.members)
        return StructShape(level, valid, members, path)

    def _is_needed(self, reading: Reading) -> bool:
        if not self._is_counting:
            return not isinstance(reading, Skip)

        match reading:
            case Skip() | Leaf():
                return False
            case Repeated():
                return True
            case Fields():
                return any(self._is_needed(step) for step in reading.steps)
            case Nullable():
                return self._is_needed(reading.value)
            case Choice():
                return any(self._is_needed(one) for one in reading.readings)
            case _:
                assert_never(reading)

    def _value(self, reading: Reading, path: str, level: int, null: int = -1, valid: int = NO_SLOT) -> Shape | None:
        """Emit the operations of a value. `null`: the branch of null in the union around the value, or -1."""
        match reading:
            case Skip():
                self._skip(reading.type, path)
                return None
            case Leaf():
                return self._leaf(reading, path, level, null, valid)
            case Repeated():
                return self._list(reading, path, level, null, valid)
            case Choice():
                return self._choice(reading, path, level)
            case Nullable():
                # A union of one type alone: its branch number stands in the bytes, and is checked.
                if reading.null_branch < 0:
                    self._emit(CHOOSE, path, argument=self._table([len(self.operations) + 1]))
                    return self._value(reading.value, path, level)

                valid = self._slot(SlotKind.BYTES, level)
                if reading.is_required and valid != NO_SLOT:
                    self.required.append(valid)
                return self._value(reading.value, path, level, reading.null_branch, valid)
            case Fields():
                guard = self._emit(GUARD, path, null, valid) if null >= 0 else -1
                shape = self.record(reading, path, level, valid)
                if guard >= 0:
                    self._close(guard)
                return shape
            case _:
                assert_never(reading)

    def _leaf(self, leaf: Leaf, path: str, level: int, null: int, valid: int) -> LeafShape:
        if self._is_counting:
            self._skip_scalar(leaf.written, path, null)
            return LeafShape(leaf, level, valid, NO_SLOT, path)
        code, kind, argument = _put_of(leaf.written, path)
        values = self._slot(kind, level)
        self._emit(code, path, null, valid, values, argument)
        return LeafShape(leaf, level, valid, values, path)

    def _list(self, reading: Repeated, path: str, level: int, null: int, valid: int) -> ListShape:
        item_level = self.level_count
        self.level_count += 1
        counts = self._slot(SlotKind.SPANS, level)
        keys: LeafShape | None = None
        head = self._open_list(path, null, valid, counts, item_level)

        if reading.is_map:
            keys = self._leaf(Leaf(STRING, STRING), f"{path}.key", item_level, -1, NO_SLOT)
        inner = f"{path}.{'value' if reading.is_map else 'element'}"
        items = self._value(reading.items, inner, item_level)
        assert items is not None

        self._close_list(head, path, counts, item_level)
        return ListShape(reading.wanted, level, item_level, valid, counts, keys, items, path)

    def _choice(self, reading: Choice, path: str, level: int) -> ChoiceShape:
        valid = self._slot(SlotKind.BYTES, level) if NULL in reading.wanted.branches else NO_SLOT
        members: list[Shape | None] = [None] * len(reading.wanted.values)

        table = self._table([min(arm, 0) for arm in reading.arms])
        head = self._emit(CHOOSE, path, -1, valid, argument=table)

        leaps = []
        for branch, arm in enumerate(reading.arms):
            if arm < 0:
                continue
            self.jumps[table + 1 + branch] = len(self.operations)

            inner = f"{path}.member{arm}"
            member_valid = self._slot(SlotKind.BYTES, level)
            self._emit(MARK, inner, -1, member_valid)
            shape = self._value(reading.readings[branch], inner, level, -1, member_valid)
            assert shape is not None
            members[arm] = shape
            leaps.append(self._emit(GO, path))

        for leap in (head, *leaps):
            self._close(leap)
        return ChoiceShape(reading.wanted, level, valid, tuple(members), path)

    # What is skipped.

    def _skip(self, kind: AvroType, path: str, null: int = -1) -> None:
        match kind:
            case Scalar():
                self._skip_scalar(kind, path, null)
            case Record():
                guard = self._emit(GUARD, path, null) if null >= 0 else -1
                for one in kind.fields:
                    self._skip(one.type, f"{path}.{one.name}")
                if guard >= 0:
                    self._close(guard)
            case Array() | Map():
                is_map = isinstance(kind, Map)
                items = kind.values if isinstance(kind, Map) else kind.items
                level = self.level_count
                self.level_count += 1

                head = self._open_list(path, null, NO_SLOT, NO_SLOT, level)
                if is_map:
                    self._skip_scalar(STRING, f"{path}.key", -1)
                self._skip(items, f"{path}.{'value' if is_map else 'element'}")
                self._close_list(head, path, NO_SLOT, level)
            case Union():
                self._skip_union(kind, path)

    def _skip_union(self, kind: Union, path: str) -> None:
        if len(kind.values) == 1 and len(kind.branches) == 2:
            self._skip(kind.values[0], path, kind.null_branch)
            return

        table = self._table([-1] * len(kind.branches))
        head = self._emit(CHOOSE, path, argument=table)
        leaps = [head]
        for branch, one in enumerate(kind.branches):
            if one != NULL:
                self.jumps[table + 1 + branch] = len(self.operations)
                self._skip(one, f"{path}.member{branch}")
                leaps.append(self._emit(GO, path))

        for leap in leaps:
            self._close(leap)

    def _skip_scalar(self, kind: Scalar, path: str, null: int) -> None:
        match kind.kind:
            case "null":
                pass
            case "int" | "long" | "enum":
                self._emit(SKIP_NUMBER, path, null)
            case "bytes" | "string":
                self._emit(SKIP_BYTES, path, null)
            case _:
                self._emit(SKIP_FIXED, path, null, argument=size_min(kind))

    # The table of operations.

    def _emit(
        self, code: int, path: str, null: int = -1, valid: int = NO_SLOT, out: int = NO_SLOT, argument: int = 0
    ) -> int:
        self.paths.append(path)
        self.operations.append([code, null, valid, out, argument, len(self.operations) + 1])
        return len(self.operations) - 1

    def _close(self, operation: int) -> None:
        """Let an operation go on behind everything that was emitted since."""
        self.operations[operation][NEXT] = len(self.operations)

    def _table(self, targets: list[int]) -> int:
        """Add a union's jumps: the number of branches, then the operation of each. Answers where they start."""
        self.jumps += [len(targets), *targets]
        return len(self.jumps) - 1 - len(targets)

    def _open_list(self, path: str, null: int, valid: int, counts: int, level: int) -> int:
        self._depth += 1
        self.depth_max = max(self.depth_max, self._depth)
        return self._emit(LIST, path, null, valid, counts, level)

    def _close_list(self, head: int, path: str, counts: int, level: int) -> None:
        last = self._emit(LIST_NEXT, path, -1, NO_SLOT, counts, level)
        self.operations[last][NEXT] = head + 1
        self._close(head)
        self._depth -= 1

    def _slot(self, kind: SlotKind, level: int) -> int:
        if self._is_counting:
            return NO_SLOT
        self.slots.append((kind, level))
        return len(self.slots) - 1


def _put_of(kind: Scalar, path: str) -> tuple[int, SlotKind, int]:
    """The code, the kind of slot and the argument that build a scalar's values."""
    match kind.kind:
        case "boolean":
            return PUT_BOOLEAN, SlotKind.BYTES, 1
        case "int":
            return PUT_INT, SlotKind.INTS, 0
        case "long":
            return PUT_LONG, SlotKind.LONGS, 0
        case "float":
            return PUT_4, SlotKind.INTS, 4
        case "double":
            return PUT_8, SlotKind.LONGS, 8
        case "bytes" | "string":
            return PUT_BYTES, SlotKind.SPANS, 0
        case "fixed":
            return PUT_FIXED, SlotKind.SPANS, kind.size
        case "enum":
            return PUT_SYMBOL, SlotKind.INTS, len(kind.symbols)
        case _:
            raise Unsupported(f"field '{path}': type {kind.kind}; expected a type that holds values")
