"""A predicate as a tree of typed nodes. Every node knows its type; nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never
from typing import Literal as OneOf

import pyarrow as pa

ComparisonOperator: TypeAlias = OneOf["=", "<=>", "<", "<=", ">", ">="]

MIRRORED: Final[Mapping[ComparisonOperator, ComparisonOperator]] = {
    "=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<=",
}  # fmt: skip
"""What an operator becomes when its sides change places."""
ArithmeticOperator: TypeAlias = OneOf["+", "-", "*", "/", "%", "div"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field inside a struct column; `path` holds the names as the schema spells them."""

    path: tuple[str, ...]
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Literal:
    value: pa.Scalar
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Compare:
    """Both sides have the same type: where Spark would cast, there is a `Cast` node."""

    operator: ComparisonOperator
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class And:
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Or:
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Node


@dataclass(frozen=True, slots=True)
class InList:
    """`operand` and all `values` have the same type. With a NULL among the values, the result is never false."""

    operand: Node
    values: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """Whether the text contains a match of the RE2 `pattern`. Every text that does starts with `prefix`."""

    operand: Node
    pattern: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Cast:
    operand: Node
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: ArithmeticOperator
    left: Node
    right: Node
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: tuple[Node, ...]
    type: pa.DataType


Node: TypeAlias = Column | Literal | Compare | And | Or | Not | IsNull | InList | Match | Cast | Arithmetic | Call


def type_of(node: Node) -> pa.DataType:
    """The Arrow type of the node's values."""
    match node:
        case Column() | Literal() | Cast() | Arithmetic() | Call():
            return node.type
        case Compare() | And() | Or() | Not() | IsNull() | InList() | Match():
            return pa.bool_()
        case _:
            assert_never(node)


def children_of(node: Node) -> tuple[Node, ...]:
    """The child nodes, in the order of the text."""
    match node:
        case Column() | Literal():
            return ()
        case Compare() | And() | Or() | Arithmetic():
            return node.left, node.right
        case Not() | IsNull() | Match() | Cast():
            return (node.operand,)
        case InList():
            return node.operand, *node.values
        case Call():
            return node.arguments
        case _:
            assert_never(node)


def columns_in(node: Node) -> Iterator[Column]:
    """Every column reference in the tree, with repeats."""
    if isinstance(node, Column):
        yield node
    for child in children_of(node):
        yield from columns_in(child)


def conjuncts_of(node: Node) -> Iterator[Node]:
    """The parts that AND joins, left to right: all must be true."""
    if isinstance(node, And):
        yield from conjuncts_of(node.left)
        yield from conjuncts_of(node.right)
    else:
        yield node
