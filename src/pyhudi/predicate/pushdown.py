"""The part of a predicate that Arrow's own scan may apply. It keeps at least every row that the predicate keeps."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.predicate.casts import cast_array
from pyhudi.predicate.nodes import (
    MIRRORED,
    And,
    Cast,
    Column,
    Compare,
    InList,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    conjuncts_of,
)
from pyhudi.predicate.parse import Predicate
from pyhudi.predicate.types import canonical_type, is_float, is_integer

_FUNCTIONS: dict[str, Callable[[pc.Expression, pa.Scalar], pc.Expression]] = {
    "=": operator.eq,
    "<=>": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def as_expression(predicate: Predicate, schema: pa.Schema) -> pc.Expression | None:
    """A filter that lets a scan of data with this schema skip row groups. None if the predicate has no usable part.

    Usable are AND-ed parts that compare one column with literals, in the column's type in `schema`: a file's schema may
    differ from the table's. The rows must still be filtered by the predicate.
    """
    if predicate.condition is None:
        return None
    if isinstance(predicate.condition, pc.Expression):
        return predicate.condition if predicate.columns <= set(schema.names) else None
    parts = [_expression_of(part, schema) for part in conjuncts_of(predicate.condition)]
    pushed = [part for part in parts if part is not None]
    return functools.reduce(operator.and_, pushed) if pushed else None


def _expression_of(node: Node, schema: pa.Schema) -> pc.Expression | None:
    match node:
        case And():
            left, right = _expression_of(node.left, schema), _expression_of(node.right, schema)
            return left & right if left is not None and right is not None else left if right is None else right
        case Or():
            left, right = _expression_of(node.left, schema), _expression_of(node.right, schema)
            return left | right if left is not None and right is not None else None
        case Compare(comparison, left, Literal() as literal):
            return _comparison(comparison, left, literal, schema)
        case Compare(comparison, Literal() as literal, right):
            return _comparison(MIRRORED[comparison], right, literal, schema)
        case InList():
            return _in_list(node, schema)
        case IsNull(Column() as column):
            return None if _physical_type(column, schema) is None else pc.field(column.path[0]).is_null()
        case Not(IsNull(Column() as column)):
            return None if _physical_type(column, schema) is None else pc.field(column.path[0]).is_valid()
        case _:
            return None


def _physical_type(column: Column, schema: pa.Schema) -> pa.DataType | None:
    """The column's type in the data. None if it is no top-level column there, or has another type than the table's."""
    if len(column.path) > 1 or schema.get_all_field_indices(column.path[0]) == []:
        return None
    physical = schema.field(column.path[0]).type
    if pa.types.is_nested(physical) or pa.types.is_dictionary(physical):
        return None
    return physical if canonical_type(physical) == column.type else None


def _comparison(comparison: str, side: Node, literal: Literal, schema: pa.Schema) -> pc.Expression | None:
    unwrapped = column_and_value(side, literal)
    if unwrapped is None:
        return None
    column, value = unwrapped
    physical = _physical_type(column, schema)
    if physical is None or not value.is_valid:
        return None
    if is_float(column.type) and (pc.is_nan(value).as_py() or comparison in (">", ">=")):
        return None  # Spark orders NaN after every number, but Arrow's comparisons drop NaN
    typed = _in_physical_type(value, physical)
    return None if typed is None else _FUNCTIONS[comparison](pc.field(column.path[0]), typed)


def column_and_value(side: Node, literal: Literal) -> tuple[Column, pa.Scalar] | None:
    """The column, and the literal in the column's type. Undoes a widening cast if the comparison stays the same."""
    match side:
        case Column():
            return side, literal.value
        case Cast(Column() as column, kind) if is_integer(column.type) and is_integer(kind):
            if kind.bit_width < column.type.bit_width or not literal.value.is_valid:
                return None
            narrowed = _in_physical_type(literal.value, column.type)
            return None if narrowed is None else (column, narrowed)
        case Cast(Column() as column, kind) if column.type == pa.float32() and kind == pa.float64():
            if not literal.value.is_valid:
                return None
            narrow = cast_array(pa.array([literal.value.as_py()], kind), column.type)
            is_same = narrow.cast(kind)[0].as_py() == literal.value.as_py()
            return (column, narrow[0]) if is_same else None
        case _:
            return None


def _in_physical_type(value: pa.Scalar, physical: pa.DataType) -> pa.Scalar | None:
    try:
        return value.cast(physical)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _in_list(node: InList, schema: pa.Schema) -> pc.Expression | None:
    if not isinstance(node.operand, Column) or is_float(node.operand.type):
        return None
    physical = _physical_type(node.operand, schema)
    if physical is None:
        return None
    literals = [value.value for value in node.values if isinstance(value, Literal)]
    if len(literals) < len(node.values):
        return None
    typed = [_in_physical_type(value, physical) for value in literals if value.is_valid]
    if any(value is None for value in typed):
        return None
    values = pa.array([value.as_py() for value in typed if value is not None], physical)
    return pc.field(node.operand.path[0]).isin(values)
