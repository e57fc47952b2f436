"""The values of a predicate's nodes over Arrow columns, with Spark's three-valued logic."""

from __future__ import annotations

from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pyhudi.predicate.casts import canonical_array, cast_array, round_decimal
from pyhudi.predicate.functions.calls import run_call
from pyhudi.predicate.nodes import (
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
    Compare,
    ComparisonOperator,
    InList,
    IsNull,
    Literal,
    Match,
    Node,
    Not,
    Or,
    columns_in,
)
from pyhudi.predicate.types import is_float

# One value for each row, or one value for all rows.
Values: TypeAlias = pa.Array | pa.Scalar

_ONE_ROW = pa.record_batch({"": pa.nulls(1)})


def evaluate(node: Node, batch: pa.RecordBatch) -> pa.Array:
    """The node's value in every row. Memory: one column for each node on the path from a leaf to the root."""
    return _as_array(_values(node, batch), batch.num_rows)


def fold(node: Node) -> Node:
    """A node without columns is computed and becomes a literal. Any other node stays as it is."""
    if isinstance(node, Literal) or next(columns_in(node), None) is not None:
        return node
    result = evaluate(node, _ONE_ROW)
    return Literal(result[0], result.type)


def _as_array(values: Values, row_count: int) -> pa.Array:
    return pa.repeat(values, row_count) if isinstance(values, pa.Scalar) else values


def _values(node: Node, batch: pa.RecordBatch) -> Values:
    match node:
        case Literal():
            return node.value
        case Column():
            return _column(node, batch)
        case Compare():
            return compare(node.operator, _values(node.left, batch), _values(node.right, batch))
        case And():
            return pc.and_kleene(_values(node.left, batch), _values(node.right, batch))
        case Or():
            return pc.or_kleene(_values(node.left, batch), _values(node.right, batch))
        case Not():
            return pc.invert(_values(node.operand, batch))
        case IsNull():
            return pc.is_null(_values(node.operand, batch))
        case InList():
            return _in_list(node, batch)
        case Match():
            return pc.match_substring_regex(_values(node.operand, batch), node.pattern)
        case Cast():
            return cast_array(evaluate(node.operand, batch), node.type)
        case Arithmetic():
            return _arithmetic(node, evaluate(node.left, batch), evaluate(node.right, batch))
        case Call():
            return run_call(node, [evaluate(argument, batch) for argument in node.arguments])
        case _:
            assert_never(node)


def _column(node: Column, batch: pa.RecordBatch) -> pa.Array:
    values = batch.column(node.path[0])
    for name in node.path[1:]:
        values = pc.struct_field(values, name)
    return canonical_array(values)


def compare(operator: ComparisonOperator, left: Values, right: Values) -> Values:
    """Spark's order: NaN equals NaN and is greater than every number; 0.0 equals -0.0."""
    if operator == "<=>":
        equal = pc.fill_null(compare("=", left, right), False)
        return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
    if operator in (">", ">="):
        return compare("<" if operator == ">" else "<=", right, left)
    if left.type == pa.null():  # Arrow compares no such values
        return pc.if_else(pc.is_valid(left), pc.is_valid(right), pa.scalar(None, pa.bool_()))

    if not is_float(left.type):
        function = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal}[operator]
        return function(left, right)

    if operator == "=":
        return pc.or_kleene(pc.equal(left, right), pc.and_kleene(pc.is_nan(left), pc.is_nan(right)))
    if operator == "<=":
        return pc.or_kleene(pc.less_equal(left, right), pc.and_kleene(pc.is_nan(right), pc.is_valid(left)))
    return pc.invert(compare("<=", right, left))


def _in_list(node: InList, batch: pa.RecordBatch) -> Values:
    """IN over a list. If all values are literals of a type whose equality is plain, one hash look-up does it."""
    operand = evaluate(node.operand, batch)
    literals = [value.value for value in node.values if isinstance(value, Literal)]
    if len(literals) < len(node.values) or is_float(operand.type) or operand.type == pa.null():
        result: Values = pa.scalar(False)
        for value in node.values:
            result = pc.or_kleene(result, compare("=", operand, _values(value, batch)))
        return result

    known = pa.array([literal for literal in literals if literal.is_valid], operand.type)
    found = pc.is_in(operand, value_set=known)
    missing = pa.scalar(None, pa.bool_()) if len(known) < len(literals) else pa.scalar(False)
    return pc.if_else(pc.is_valid(operand), pc.if_else(found, True, missing), pa.scalar(None, pa.bool_()))


def _arithmetic(node: Arithmetic, left: pa.Array, right: pa.Array) -> pa.Array:
    """Integers wrap around. A division or remainder by zero is NULL."""
    if node.operator in ("/", "%", "div"):
        is_zero = pc.equal(right, pa.scalar(0, right.type))
        right = pc.if_else(is_zero, pa.scalar(None, right.type), right)

    if types.is_decimal(node.type):
        return _decimal_arithmetic(node, left, right)
    match node.operator:
        case "+":
            return pc.add(left, right)
        case "-":
            return pc.subtract(left, right)
        case "*":
            return pc.multiply(left, right)
        case "/" | "div":
            if not types.is_integer(right.type):
                return pc.divide(left, right)
            is_negation = pc.equal(right, pa.scalar(-1, right.type))  # Arrow makes 0 of the least integer, Java itself
            return pc.if_else(is_negation, pc.negate(left), pc.divide(left, right))
        case "%":
            return _remainder(left, right)
        case _:
            assert_never(node.operator)


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """The remainder with the sign of the dividend."""
    is_null = pc.or_(pc.is_null(left), pc.is_null(right)).to_numpy(zero_copy_only=False)
    dividend = pc.fill_null(left, 0).to_numpy(zero_copy_only=False)
    divisor = pc.fill_null(right, 1).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        return pa.array(np.fmod(dividend, divisor), left.type, mask=is_null)


def division_scale(left: pa.DataType, right: pa.DataType, result: pa.DataType) -> int:
    """The scale that the dividend needs, so that Arrow's quotient has one digit more than the result."""
    return max(int(left.scale), int(result.scale) - int(right.precision) + int(right.scale))


def _decimal_arithmetic(node: Arithmetic, left: pa.Array, right: pa.Array) -> pa.Array:
    """Computed exactly in 76 digits, then rounded to the type that Spark gives."""
    kind = left.type
    wide_right = right.cast(pa.decimal256(right.type.precision, right.type.scale))
    if node.operator == "/":
        scale = division_scale(kind, right.type, node.type)
        wide_left = left.cast(pa.decimal256(kind.precision + scale - kind.scale, scale))
        return round_decimal(pc.divide(wide_left, wide_right), node.type)
    wide_left = left.cast(pa.decimal256(kind.precision, kind.scale))
    function = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[node.operator]
    return round_decimal(function(wide_left, wide_right), node.type)
