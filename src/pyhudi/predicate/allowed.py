"""The values that a column may have in matching rows: what an index of values is asked for."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.predicate.nodes import And, Column, Compare, InList, Literal, Node, Not, Or
from pyhudi.predicate.parse import Predicate
from pyhudi.predicate.pushdown import column_and_value
from pyhudi.predicate.types import canonical_type, is_integer


def allowed_values(predicate: Predicate, column: str) -> pa.Array | None:
    """Distinct values that include every value the column has in a matching row. None: it may have any value, or null.

    Example: for `city = 'oslo' OR city IN ('bergen', 'oslo')`, the answer for `city` is bergen and oslo.
    Equalities and IN lists bound a column; AND intersects, OR unites. Columns of text, whole numbers and dates only:
    None for other types, for a struct's field, and for an Arrow expression, which does not show what it compares.
    """
    if predicate.condition is None or isinstance(predicate.condition, pc.Expression):
        return None
    if column not in predicate.schema.names:
        return None
    kind = canonical_type(predicate.schema.field(column).type)
    if not (is_integer(kind) or kind in (pa.string(), pa.date32())):
        return None
    values = _allowed(predicate.condition, Column((column,), kind))
    if values is None:
        return None
    return pa.array(sorted(values), kind)  # type: ignore[type-var]  # values of one type, which has an order


def _allowed(node: Node, column: Column) -> frozenset[object] | None:
    """The values with which the node may be true. None: any. A null never makes it true, unless the answer is None."""
    match node:
        case And():
            left, right = _allowed(node.left, column), _allowed(node.right, column)
            return left & right if left is not None and right is not None else right if left is None else left
        case Or():
            left, right = _allowed(node.left, column), _allowed(node.right, column)
            return None if left is None or right is None else left | right
        case Not(Not() as inner):
            return _allowed(inner.operand, column)
        case Compare("=" | "<=>" as operator, left, Literal() as literal):
            return _equal(operator, left, literal, column)
        case Compare("=" | "<=>" as operator, Literal() as literal, right):
            return _equal(operator, right, literal, column)
        case InList():
            each = [_equal("=", node.operand, value, column) for value in node.values]
            return None if None in each else frozenset().union(*(one for one in each if one is not None))
        case Literal():
            return None if node.value.as_py() is True else frozenset()
        case _:
            return None


def _equal(operator: str, side: Node, value: Node, column: Column) -> frozenset[object] | None:
    if not isinstance(value, Literal):
        return None
    if not value.value.is_valid:
        return frozenset() if operator == "=" else None
    found = column_and_value(side, value)
    if found is None or found[0] != column:
        return None
    return frozenset([found[1].as_py()])
