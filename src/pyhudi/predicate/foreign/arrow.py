"""Arrow expressions as trees of nodes. Arrow's comparisons are false for NaN, where nodes order NaN last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.predicate.foreign.arrow_tree import Called, Field, Tree, Value, tree_of
from pyhudi.predicate.foreign.typed import (
    FALSE,
    NULL,
    TRUE,
    and_not_null,
    column_of,
    compared,
    implied_by_both,
    implied_by_either,
    listed,
    literal_of,
)
from pyhudi.predicate.nodes import (
    MIRRORED,
    And,
    Column,
    Compare,
    ComparisonOperator,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    type_of,
)
from pyhudi.predicate.types import is_float

_OPERATORS: Final[dict[str, ComparisonOperator]] = {
    "equal": "=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}


def node_implied_by(expression: pc.Expression, schema: pa.Schema) -> Node | None:
    """A node that is true for every row that the expression keeps. None: nothing is known of such rows.

    `schema`: of the rows. It is true for further rows where a part of the expression has no equal among nodes.
    """
    tree = tree_of(expression)
    return None if tree is None else _implied(tree, schema)


def _implied(tree: Tree, schema: pa.Schema) -> Node | None:
    if isinstance(tree, Called) and tree.function in ("and_kleene", "and"):
        left, right = (_implied(argument, schema) for argument in tree.arguments)
        return implied_by_both(left, right)
    if isinstance(tree, Called) and tree.function in ("or_kleene", "or"):
        left, right = (_implied(argument, schema) for argument in tree.arguments)
        return implied_by_either(left, right)
    return _equal_node(tree, schema)


def _equal_node(tree: Tree, schema: pa.Schema) -> Node | None:
    """A node with the same truth value in every row: true, false or NULL."""
    match tree:
        case Value(scalar) if scalar.type in (pa.bool_(), pa.null()):
            return {True: TRUE, False: FALSE, None: NULL}[scalar.as_py()]
        case Field(path):
            column = column_of(schema, path)
            return column if column is not None and column.type == pa.bool_() else None
        case Called("and_kleene" | "or_kleene" as name, (one, other)):
            left, right = _equal_node(one, schema), _equal_node(other, schema)
            if left is None or right is None:
                return None
            return And(left, right) if name == "and_kleene" else Or(left, right)
        case Called("invert", (operand,)):
            node = _equal_node(operand, schema)
            return None if node is None else Not(node)
        case Called("not_equal", (left, right)):
            node = _comparison("=", left, right, schema)
            return None if node is None else Not(node)
        case Called(name, (left, right)) if name in _OPERATORS:
            return _comparison(_OPERATORS[name], left, right, schema)
        case Called("is_null" | "is_valid" as name, (Field(path),), options):
            return _null_test(name, column_of(schema, path), options)
        case Called("is_in", (Field(path),), options):
            return _membership(column_of(schema, path), options, and_not_null)
        # DuckDB writes IN so: NULL for a row without a value, where `is_in` says false.
        case Called(
            "if_else", (Called("is_valid", (Field(path),)), Called("is_in", (Field(same),), options), Value(null))
        ):
            return (
                _membership(column_of(schema, path), options, lambda _, found: found)
                if _is_null(path, same, null)
                else None
            )
        case _:
            return None


def _is_null(path: tuple[str, ...], same: tuple[str, ...], null: pa.Scalar) -> bool:
    return path == same and not null.is_valid


def _comparison(operator: ComparisonOperator, left: Tree, right: Tree, schema: pa.Schema) -> Node | None:
    """Of a column with a value, or with a column of its type."""
    if isinstance(left, Value):
        left, right, operator = right, left, MIRRORED[operator]
    column = column_of(schema, left.path) if isinstance(left, Field) else None
    if column is None:
        return None
    if isinstance(right, Value):
        return _compared_value(operator, column, right.scalar)
    other = column_of(schema, right.path) if isinstance(right, Field) else None
    # Two NaN are equal among nodes only.
    return None if other is None or is_float(column.type) else compared(operator, column, other)


def _compared_value(operator: ComparisonOperator, column: Column, scalar: pa.Scalar) -> Node | None:
    literal = literal_of(scalar, column.type)
    if literal is None or (is_float(column.type) and _is_nan(literal)):
        return None
    node = compared(operator, column, literal)
    if node is None or not is_float(column.type) or operator not in (">", ">="):
        return node
    nan = Literal(pa.scalar(float("nan"), column.type), column.type)
    return And(node, Not(Compare("=", column, nan)))


def _is_nan(literal: Literal) -> bool:
    value = literal.value.as_py()
    return value is not None and value != value


def _null_test(name: str, column: Column | None, options: dict[str, pa.Scalar]) -> Node | None:
    if column is None or (name == "is_null" and options["nan_is_null"].as_py()):
        return None
    return IsNull(column) if name == "is_null" else Not(IsNull(column))


def _membership(
    column: Column | None, options: dict[str, pa.Scalar], where_null: Callable[[Node, Node], Node]
) -> Node | None:
    """`value_set` without nulls or NaN: a null of the set may match, or not, as further options say."""
    values = options["value_set"].values
    if column is None or is_float(type_of(column)) or values is None or values.null_count:
        return None
    found = listed(column, values)
    return None if found is None else where_null(column, found)
