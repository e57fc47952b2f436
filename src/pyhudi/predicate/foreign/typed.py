"""Nodes over columns of a schema, made from names and values: None wherever types do not meet without a loss."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types

from pyhudi.predicate.nodes import (
    And,
    Column,
    Compare,
    ComparisonOperator,
    InList,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    type_of,
)
from pyhudi.predicate.types import canonical_type, is_comparable, is_float, is_integer

TRUE = Literal(pa.scalar(True), pa.bool_())
FALSE = Literal(pa.scalar(False), pa.bool_())
NULL = Literal(pa.scalar(None, pa.bool_()), pa.bool_())


def column_of(schema: pa.Schema, path: Sequence[str]) -> Column | None:
    """The column, or the field inside a struct column. None if there is none, or two of that name."""
    fields, kind = list(schema), None
    for name in path:
        found = [field for field in fields if field.name == name]
        if len(found) != 1:
            return None
        kind = found[0].type
        fields = list(kind) if types.is_struct(kind) else []
    if kind is None or (types.is_timestamp(kind) and kind.unit == "ns") or types.is_date64(kind):
        return None  # nodes count in microseconds and days: parts of them would be lost
    return Column(tuple(path), canonical_type(kind))


def literal_of(value: pa.Scalar, kind: pa.DataType) -> Literal | None:
    """The value in this type, for a comparison with a column of it. None if it is no value of the type."""
    if not value.is_valid:
        return Literal(pa.scalar(None, kind), kind)
    given = canonical_type(value.type)
    if kind != given and not (_is_exact_number(kind) and _is_exact_number(given)):
        return None
    try:
        cast = value.cast(kind)
        is_same = is_float(kind) or cast.cast(value.type).equals(value)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return Literal(cast, kind) if is_same else None


def _is_exact_number(kind: pa.DataType) -> bool:
    return is_integer(kind) or bool(types.is_decimal(kind))


def compared(operator: ComparisonOperator, left: Node, right: Node) -> Node | None:
    """A comparison of nodes of the same type. None for types that are not compared."""
    kind = type_of(left)
    return Compare(operator, left, right) if kind == type_of(right) and is_comparable(kind) else None


def listed(operand: Node, values: pa.Array) -> InList | None:
    """Whether the node is among the values: NULL if it is NULL, or else if it is not found and a value is NULL."""
    kind = type_of(operand)
    if not is_comparable(kind):
        return None
    literals = [literal_of(value, kind) for value in values]
    known = tuple(one for one in literals if one is not None)
    return InList(operand, known) if len(known) == len(literals) and known else None


def and_not_null(operand: Node, condition: Node) -> Node:
    """The condition, but false where the operand is NULL."""
    return And(Not(IsNull(operand)), condition)


def implied_by_both(left: Node | None, right: Node | None) -> Node | None:
    """What follows from two conditions that are both true. None: nothing is known."""
    if left is None or right is None:
        return right if left is None else left
    return And(left, right)


def implied_by_either(left: Node | None, right: Node | None) -> Node | None:
    """What follows from two conditions of which one is true. None: nothing is known."""
    return None if left is None or right is None else Or(left, right)
