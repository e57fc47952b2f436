"""The truth values that a predicate can take, given bounds on the columns: true, false, NULL or several.

A set of outcomes is always a superset of what the rows really give, so that a predicate without TRUE
among its outcomes keeps no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Flag
from itertools import product

import pyarrow as pa

from pyhudi.table.predicate.evaluate import compare, fold
from pyhudi.table.predicate.nodes import (
    And,
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
    type_of,
)
from pyhudi.table.predicate.types import TIMESTAMP, TIMESTAMP_NTZ, is_float, is_integer


class Outcome(Flag):
    NONE = 0
    TRUE = 1
    FALSE = 2
    NULL = 4
    ANY = 7


@dataclass(frozen=True, slots=True)
class Bounds:
    """Every value that is not NULL lies in `low` to `high` (None: no bound), both of the node's type."""

    low: pa.Scalar | None = None
    high: pa.Scalar | None = None
    may_be_null: bool = True
    may_have_value: bool = True


_UNKNOWN = Bounds()
_SINGLES = (Outcome.TRUE, Outcome.FALSE, Outcome.NULL)


def outcomes_of(node: Node, known: Mapping[tuple[str, ...], Bounds]) -> Outcome:
    """Every outcome that a row within the known bounds can give. Keys are column paths."""
    match node:
        case And():
            return _pairs(outcomes_of(node.left, known), outcomes_of(node.right, known), is_and=True)
        case Or():
            return _pairs(outcomes_of(node.left, known), outcomes_of(node.right, known), is_and=False)
        case Not():
            return _negated(outcomes_of(node.operand, known))
        case IsNull():
            return _is_null_outcomes(node, known)
        case Compare():
            left, right = bounds_of(node.left, known), bounds_of(node.right, known)
            return compare_outcomes(node.operator, left, right)
        case InList():
            return _in_list_outcomes(node, known)
        case Match():
            return _match_outcomes(node, known)
        case _:
            bounds = bounds_of(node, known)
            return compare_outcomes("=", bounds, _point(pa.scalar(True)))


_STATES = {Outcome.TRUE: True, Outcome.FALSE: False, Outcome.NULL: None}
_OUTCOMES = {state: outcome for outcome, state in _STATES.items()}


def _pairs(left: Outcome, right: Outcome, *, is_and: bool) -> Outcome:
    """The outcomes of AND or OR over every pair of outcomes of its sides."""
    result = Outcome.NONE
    for one, other in product(_SINGLES, _SINGLES):
        if one in left and other in right:
            result |= _joined(_STATES[one], _STATES[other], is_and=is_and)
    return result


def _joined(left: bool | None, right: bool | None, *, is_and: bool) -> Outcome:
    deciding = not is_and
    if left is deciding or right is deciding:
        return _OUTCOMES[deciding]
    if left is None or right is None:
        return Outcome.NULL
    return _OUTCOMES[not deciding]


def _negated(outcome: Outcome) -> Outcome:
    result = outcome & Outcome.NULL
    result |= Outcome.FALSE if Outcome.TRUE in outcome else Outcome.NONE
    return result | (Outcome.TRUE if Outcome.FALSE in outcome else Outcome.NONE)


def _is_null_outcomes(node: IsNull, known: Mapping[tuple[str, ...], Bounds]) -> Outcome:
    if type_of(node.operand) == pa.bool_() and not isinstance(node.operand, Column | Literal):
        operand = outcomes_of(node.operand, known)
        is_true = Outcome.TRUE if Outcome.NULL in operand else Outcome.NONE
        return is_true | (Outcome.FALSE if operand & (Outcome.TRUE | Outcome.FALSE) else Outcome.NONE)
    bounds = bounds_of(node.operand, known)
    is_true = Outcome.TRUE if bounds.may_be_null else Outcome.NONE
    return is_true | (Outcome.FALSE if bounds.may_have_value else Outcome.NONE)


def bounds_of(node: Node, known: Mapping[tuple[str, ...], Bounds]) -> Bounds:
    """The bounds of a node's values."""
    match node:
        case Column():
            return known.get(node.path, _UNKNOWN)
        case Literal():
            return _point(node.value)
        case Cast() if _keeps_order(type_of(node.operand), node.type):
            inner = bounds_of(node.operand, known)
            low, high = (_cast_bound(bound, node.type) for bound in (inner.low, inner.high))
            return Bounds(low, high, inner.may_be_null, inner.may_have_value)
        case _:
            return _UNKNOWN


def _point(value: pa.Scalar) -> Bounds:
    if not value.is_valid:
        return Bounds(None, None, may_be_null=True, may_have_value=False)
    return Bounds(value, value, may_be_null=False)


def _keeps_order(source: pa.DataType, target: pa.DataType) -> bool:
    """Casts that never give NULL or turn two values around."""
    if is_integer(source):
        return is_float(target) or (is_integer(target) and target.bit_width >= source.bit_width)
    if source == pa.float32():
        return bool(target == pa.float64())
    return source in (pa.date32(), TIMESTAMP, TIMESTAMP_NTZ) and target in (TIMESTAMP, TIMESTAMP_NTZ)


def _cast_bound(bound: pa.Scalar | None, target: pa.DataType) -> pa.Scalar | None:
    if bound is None:
        return None
    result = fold(Cast(Literal(bound, bound.type), target))
    return result.value if isinstance(result, Literal) and result.value.is_valid else None


def compare_outcomes(operator: ComparisonOperator, left: Bounds, right: Bounds) -> Outcome:
    """The outcomes of a comparison of any two values within the bounds."""
    if operator == "<=>":
        return _null_safe_outcomes(left, right)
    result = Outcome.NULL if left.may_be_null or right.may_be_null else Outcome.NONE
    if not (left.may_have_value and right.may_have_value):
        return result
    if operator in (">", ">="):
        return compare_outcomes("<" if operator == ">" else "<=", right, left)
    if operator == "=":
        apart = _surely("<", left.high, right.low) or _surely("<", right.high, left.low)
        same = _surely("<=", left.high, right.low) and _surely("<=", right.high, left.low)
        always, never = same, apart
    elif operator == "<":
        always, never = _surely("<", left.high, right.low), _surely("<=", right.high, left.low)
    else:
        always, never = _surely("<=", left.high, right.low), _surely("<", right.high, left.low)
    result |= Outcome.NONE if never else Outcome.TRUE
    return result | (Outcome.NONE if always else Outcome.FALSE)


def _null_safe_outcomes(left: Bounds, right: Bounds) -> Outcome:
    values = compare_outcomes("=", left, right) & ~Outcome.NULL
    if left.may_be_null and right.may_be_null:
        values |= Outcome.TRUE
    one_is_null = (left.may_be_null and right.may_have_value) or (right.may_be_null and left.may_have_value)
    return values | (Outcome.FALSE if one_is_null else Outcome.NONE)


def _surely(operator: ComparisonOperator, left: pa.Scalar | None, right: pa.Scalar | None) -> bool:
    if left is None or right is None or not (left.is_valid and right.is_valid):
        return False
    return bool(compare(operator, left, right).as_py())


def _in_list_outcomes(node: InList, known: Mapping[tuple[str, ...], Bounds]) -> Outcome:
    """As the OR of the equalities; with a NULL operand every one of them is NULL."""
    operand = bounds_of(node.operand, known)
    if not operand.may_have_value:
        return Outcome.NULL
    result = Outcome.FALSE
    for value in node.values:
        result = _pairs(result, compare_outcomes("=", operand, bounds_of(value, known)), is_and=False)
    return result


def _match_outcomes(node: Match, known: Mapping[tuple[str, ...], Bounds]) -> Outcome:
    """No text within the bounds begins with the prefix: they end before it, or start after its last text."""
    bounds = bounds_of(node.operand, known)
    result = Outcome.NULL if bounds.may_be_null else Outcome.NONE
    if not bounds.may_have_value:
        return result
    prefix = node.prefix.encode()
    low, high = (_text_bytes(bound) for bound in (bounds.low, bounds.high))
    ends_before = high is not None and high < prefix
    starts_after = low is not None and low[: len(prefix)] > prefix
    return result | (Outcome.FALSE if ends_before or starts_after else Outcome.TRUE | Outcome.FALSE)


def _text_bytes(bound: pa.Scalar | None) -> bytes | None:
    return None if bound is None or not bound.is_valid else bytes(bound.as_buffer())
