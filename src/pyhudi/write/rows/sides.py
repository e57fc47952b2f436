"""The two sides of a merge: names of their columns in conditions and expressions, and what pairs their rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.predicate import Predicate, parse_predicate
from pyhudi.predicate.names import known_names
from pyhudi.predicate.nodes import And, Column, Compare, InList, Literal, Node, columns_in, conjuncts_of, type_of
from pyhudi.predicate.parse import told_as
from pyhudi.predicate.types import is_float

_LISTED_MAX = 10_000
"""A merge whose source has at most so many values of a column asks for these values; otherwise for their range."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns of table and source. `target.n` and `source.n` name them; a name of one side needs no prefix."""

    target: pa.Schema
    source: pa.Schema
    target_alias: str = "target"
    source_alias: str = "source"

    def __post_init__(self) -> None:
        names = [self.target_alias, self.source_alias]
        if not all(isinstance(name, str) and name for name in names) or names[0].lower() == names[1].lower():
            raise Invalid(f"merge: expected two different aliases, found {names[0]!r} and {names[1]!r}")

    @property
    def schema(self) -> pa.Schema:
        """The columns that conditions and expressions may name: each side as a struct, and what only one side has."""
        return pa.schema([*self.of_target, *self.of_source])

    @property
    def of_target(self) -> pa.Schema:
        return self._shown(self.target_alias, self.target, self.source)

    @property
    def of_source(self) -> pa.Schema:
        return self._shown(self.source_alias, self.source, self.target)

    @property
    def target_alone(self) -> "Sides":
        """The sides for rows of the table that have no row of the source: every name is one of the table."""
        return replace(self, source=pa.schema([]))

    @property
    def source_alone(self) -> "Sides":
        """The sides for rows of the source that have no row of the table."""
        return replace(self, target=pa.schema([]))

    def _shown(self, alias: str, own: pa.Schema, other: pa.Schema) -> pa.Schema:
        taken = {self.target_alias.lower(), self.source_alias.lower(), *(name.lower() for name in other.names)}
        return pa.schema([pa.field(alias, pa.struct(list(own))), *(f for f in own if f.name.lower() not in taken)])

    def target_rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the table under the names of `of_target`. Copies nothing."""
        return _named(self.of_target, self.target, rows)

    def source_rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the source under the names of `of_source`. Copies nothing."""
        return _named(self.of_source, self.source, rows)

    def pairs(self, target: pa.RecordBatch, source: pa.RecordBatch) -> pa.RecordBatch:
        """Pairs of rows, which stand side by side, under the names of `schema`."""
        left, right = self.target_rows(target), self.source_rows(source)
        return pa.RecordBatch.from_arrays([*left.columns, *right.columns], schema=self.schema)

    def is_of_target(self, node: Node) -> bool:
        """Whether a node reads columns of the table alone, and at least one."""
        names = {column.path[0] for column in columns_in(node)}
        return bool(names) and names <= set(self.of_target.names)

    def is_of_source(self, node: Node) -> bool:
        names = {column.path[0] for column in columns_in(node)}
        return bool(names) and names <= set(self.of_source.names)

    def path(self, column: Column) -> tuple[str, ...]:
        """The path of a column on its own side, without the side's name."""
        is_named = column.path[0] in (self.target_alias, self.source_alias)
        return column.path[1:] if is_named else column.path


def _named(shown: pa.Schema, own: pa.Schema, rows: pa.RecordBatch) -> pa.RecordBatch:
    columns = [rows.column(name) for name in own.names]
    struct = pa.StructArray.from_arrays(columns, fields=list(own)) if columns else pa.array([{}] * len(rows))
    return pa.RecordBatch.from_arrays([struct, *(rows.column(name) for name in shown.names[1:])], schema=shown)


@dataclass(frozen=True, slots=True)
class Condition:
    """What makes a row of the table and a row of the source a pair.

    `equal`: pairs of values, one of each side, that must be equal; null equals nothing. `rest`: what must be true
    besides; None: nothing.
    """

    sides: Sides
    equal: tuple[tuple[Node, Node], ...]
    rest: Node | None

    @property
    def equal_columns(self) -> Mapping[tuple[str, ...], Column]:
        """Paths of the table's columns that must equal a column of the source as they are -> that column."""
        return {
            self.sides.path(target): source
            for target, source in self.equal
            if isinstance(target, Column) and isinstance(source, Column)
        }

    def target_columns(self) -> frozenset[str]:
        """The top-level columns of the table that the condition reads."""
        nodes = [target for target, _ in self.equal] + ([self.rest] if self.rest is not None else [])
        shown = set(self.sides.of_target.names)
        return frozenset(self.sides.path(c)[0] for node in nodes for c in columns_in(node) if c.path[0] in shown)

    def of_target(self, source: Sequence[pa.Array], schema: pa.Schema) -> Predicate | None:
        """What is true of each row of the table that has a pair, over its own columns: files are pruned by it.

        `source`: the source's values of `equal`. `schema`: the table's columns, as predicates name them. None: nothing.
        """
        own = [_bare(part, self.sides) for part in _parts(self.rest) if self.sides.is_of_target(part)]
        for (target, _), values in zip(self.equal, source, strict=True):
            if isinstance(target, Column) and not is_float(target.type):
                own.extend(_among(Column(self.sides.path(target), target.type), values))
        if not own:
            return None
        node = reduce(And, own)
        columns = frozenset(column.path[0] for column in columns_in(node))
        return Predicate(node, columns, "what the source's rows may match", schema)


def parse_condition(on: Any, sides: Sides) -> Condition:
    """The condition of a merge. `on`: Spark SQL text, or names of columns (or one name) that both sides have.

    Raises: Invalid, Unsupported as `parse_predicate`.
    """
    if isinstance(on, str) and on in sides.target.names and on in sides.source.names:
        on = [on]
    if not isinstance(on, str):
        names = list(on) if isinstance(on, Sequence) else []
        if not names or not all(isinstance(name, str) for name in names):
            raise Invalid(f"merge: on={on!r}: expected SQL text, such as 'target.id = source.id', or names of columns")
        for side, schema in (("table", sides.target), ("source", sides.source)):
            known = {name.lower() for name in schema.names}
            if (lacking := next((name for name in names if name.lower() not in known), None)) is not None:
                raise Invalid(f"merge: on={names}: no column {lacking!r} in the {side}; {known_names(lacking, schema)}")
        on = " AND ".join(f"{_quoted(sides.target_alias, n)} = {_quoted(sides.source_alias, n)}" for n in names)
    with told_as("on"):
        condition = parse_predicate(on, sides.schema).condition
    assert condition is None or not isinstance(condition, pc.Expression)
    bare = [] if condition is None else [column for column in columns_in(condition) if not sides.path(column)]
    if bare:
        name = bare[0].path[0]
        raise Invalid(f"merge: on={on!r}: expected columns of '{name}', such as '{name}.id', found all of it")

    equal: list[tuple[Node, Node]] = []
    rest: list[Node] = []
    for part in _parts(condition):
        match part:
            case Compare("=", left, right) if sides.is_of_target(left) and sides.is_of_source(right):
                equal.append((left, right))
            case Compare("=", left, right) if sides.is_of_source(left) and sides.is_of_target(right):
                equal.append((right, left))
            case _:
                rest.append(part)
    return Condition(sides, tuple(equal), reduce(And, rest) if rest else None)


def column_text(alias: str, name: str) -> str:
    """A column of one side as SQL text."""
    return _quoted(alias, name)


def _quoted(*names: str) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def _parts(node: Node | None) -> Iterator[Node]:
    return iter(()) if node is None else conjuncts_of(node)


def _bare(node: Any, sides: Sides) -> Any:
    """The node over the table's own columns."""
    if isinstance(node, Column):
        return Column(sides.path(node), node.type)
    if isinstance(node, tuple):
        return tuple(_bare(one, sides) for one in node)
    if isinstance(node, Literal) or not hasattr(node, "__dataclass_fields__"):
        return node
    return replace(node, **{field.name: _bare(getattr(node, field.name), sides) for field in fields(node)})


def _among(column: Column, values: pa.Array) -> list[Node]:
    """That a column has one of these values, or lies in their range."""
    known = values.unique().drop_null()
    if len(known) <= _LISTED_MAX:
        listed = tuple(Literal(value, values.type) for value in known)
        return [InList(column, listed)] if listed else [Literal(pa.scalar(False), pa.bool_())]
    if type_of(column) in (pa.bool_(), pa.binary()):
        return []
    bounds = pc.min_max(known)
    low, high = (Literal(bounds[name], values.type) for name in ("min", "max"))
    return [Compare(">=", column, low), Compare("<=", column, high)]
