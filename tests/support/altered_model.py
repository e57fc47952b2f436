"""A table whose columns are altered, as dicts: a row holds its values by the numbers of columns."""

import random
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Row: TypeAlias = dict[str, Any]
Values: TypeAlias = dict[int, Any]

WIDER: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64(), pa.string()),
    pa.int64(): (pa.float32(), pa.float64(), pa.string()),
    pa.float32(): (pa.float64(), pa.string()),
    pa.float64(): (pa.string(),),
}
SIMPLE = (pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string())


@dataclass
class Column:
    """`type`: None for a struct, which has `parts`. `had_integers`: before its type became a floating one."""

    number: int
    name: str
    type: pa.DataType | None
    parts: list["Column"] = field(default_factory=list)
    had_integers: bool = False

    @property
    def wider(self) -> tuple[pa.DataType, ...]:
        """The types that it may get next. Of an integer that became a float, the text is `7` in a file of integers, as
        Apache Hudi reads it, and `7.0` in one that was written since.
        """
        return tuple(one for one in WIDER[self.type] if not (self.had_integers and pa.types.is_string(one)))

    @property
    def arrow(self) -> pa.DataType:
        return self.type if self.type is not None else pa.struct([(part.name, part.arrow) for part in self.parts])


@dataclass
class State:
    """`columns`: besides key, partition and ordering columns, which `rows` hold by name and `order` has among them."""

    columns: list[Column]
    order: list[str | int]
    rows: dict[str, tuple[Row, Values]] = field(default_factory=dict)

    def column(self, number: int) -> Column:
        return next(one for one in self.columns if one.number == number)

    @property
    def schema(self) -> pa.Schema:
        fixed = {"id": pa.string(), "city": pa.string(), "ts": pa.int64()}
        of = {one.number: (one.name, one.arrow) for one in self.columns}
        return pa.schema([(one, fixed[one]) if isinstance(one, str) else of[one] for one in self.order])

    def shown(self) -> list[dict[str, Any]]:
        """The rows as a scan shows them, by key."""
        names = self.schema.names
        found = []
        for _, (fixed, values) in sorted(self.rows.items()):
            row = {**fixed, **_shown(self.columns, values)}
            found.append({name: row[name] for name in names})
        return found


def _shown(columns: list[Column], values: Values) -> dict[str, Any]:
    return {
        one.name: values.get(one.number)
        if one.type is not None or values.get(one.number) is None
        else _shown(one.parts, values[one.number])
        for one in columns
    }


def drawn(draw: random.Random, column: Column) -> Any:
    """A value of a column: of few, so that filters find several rows."""
    if draw.random() < 0.2:
        return None
    if column.type is None:
        return {part.number: drawn(draw, part) for part in column.parts}
    if pa.types.is_string(column.type):
        return draw.choice(["", "é", "text", "7"])
    if pa.types.is_integer(column.type):
        return draw.choice([-3, 0, 7, 11])
    value = draw.choice([-0.5, 0.1, 7.0, 2.5])
    return float(np.float32(value)) if pa.types.is_float32(column.type) else value


def converted(value: Any, before: pa.DataType, after: pa.DataType) -> Any:
    """A stored value as a column of a wider type shows it."""
    if value is None or before == after:
        return value
    text = str(np.float32(value)) if pa.types.is_float32(before) else str(value)
    if pa.types.is_string(after):
        return text
    return float(text) if pa.types.is_floating(after) else value


def as_numbers(columns: list[Column], row: Row) -> Values:
    """A row's values by number."""
    return {
        one.number: as_numbers(one.parts, row[one.name])
        if one.type is None and row[one.name] is not None
        else row[one.name]
        for one in columns
    }


class AlteredModel:
    """The state of now, and of each past instant. `draw` decides everything."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self._numbers = draw, 0
        start = [self.new("name", pa.string()), self.new("n", pa.int32()), self.new("f", pa.float32()), self.new("s")]
        self.now = State(start, ["id", "city", "ts", *(one.number for one in start)])
        self.past: list[tuple[str, State]] = []

    def new(self, name: str, kind: pa.DataType | None = None) -> Column:
        self._numbers += 1
        parts = [] if kind is not None else [self.new("a", pa.int32()), self.new("b", pa.string())]
        return Column(self._numbers, name, kind, parts)

    def note(self, instant: str) -> None:
        self.past.append((instant, deepcopy(self.now)))

    def free_name(self, siblings: list[Column]) -> str:
        """A name that no column has: one that another had before, if there is one."""
        taken = {one.name for one in siblings}
        free = [one for one in ("name", "n", "f", "a", "b", "x", "y") if one not in taken]
        return self.draw.choice(free or [f"c{self._numbers}"])

    def alter(self, alteration: Any) -> Any:
        """A random change of columns, here and in `alteration`."""
        draw, now = self.draw, self.now
        inside = [one for one in now.columns if one.type is None]
        within = draw.choice(inside) if inside and draw.random() < 0.3 else None
        siblings, prefix = (within.parts, f"{within.name}.") if within else (now.columns, "")
        what = draw.choice(["add", "rename", "drop", "move", "type"])
        one = draw.choice(siblings)
        path = prefix + one.name
        match what:
            case "add":
                made = self.new(self.free_name(siblings), draw.choice(SIMPLE))
                siblings.append(made)
                if within is None:
                    now.order.insert(now.order.index(one.number) + 1, made.number)
                else:
                    siblings.insert(siblings.index(one) + 1, siblings.pop())
                for _, values in now.rows.values():
                    values.pop(made.number, None)
                return alteration.add(prefix + made.name, made.type, after=path)
            case "rename":
                name = self.free_name(siblings)
                one.name = name
                return alteration.rename(path, name)
            case "drop" if len(siblings) > 1:
                siblings.remove(one)
                if within is None:
                    now.order.remove(one.number)
                return alteration.drop(path)
            case "move":
                if within is None:
                    now.order.insert(0, now.order.pop(now.order.index(one.number)))
                else:
                    siblings.insert(0, siblings.pop(siblings.index(one)))
                return alteration.move(path, first=True)
            case "type" if one.type in WIDER and one.wider:
                before, one.type = one.type, draw.choice(one.wider)
                one.had_integers |= pa.types.is_integer(before) and pa.types.is_floating(one.type)
                for _, values in now.rows.values():
                    of = values if within is None else values.get(within.number)
                    if of:
                        of[one.number] = converted(of.get(one.number), before, one.type)
                return alteration.change_type(path, one.type)
        return alteration.comment(path, draw.choice(["one", "two"]))

    def batch(self, ts: int, keys: list[str]) -> pa.Table:
        """New rows of some keys, which the model has from now on."""
        for key in keys:
            city = "oslo" if key < "d" else "rome"
            values = {one.number: drawn(self.draw, one) for one in self.now.columns}
            self.now.rows[key] = ({"id": key, "city": city, "ts": ts}, values)
        wanted = {row["id"]: row for row in self.now.shown()}
        return pa.Table.from_pylist([wanted[key] for key in keys], self.now.schema)
