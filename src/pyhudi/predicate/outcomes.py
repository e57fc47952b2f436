"""The truth values that a predicate can take if its columns lie within known bounds: true, false, NULL or several.

Example: `price > 10` can be true or false if `price` lies in 5 to 20. In 5 to 8 it can only be false. If some prices
are missing, it can be NULL, too.
Works for one file or row group (scalars) or for many at once (arrays), by broadcasting.

The computed set of outcomes may be too large, never too small. So a predicate that cannot be TRUE keeps no row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.predicate.casts import cast_array
from pyhudi.predicate.evaluate import compare
from pyhudi.predicate.nodes import (
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
from pyhudi.predicate.types import TIMESTAMP, TIMESTAMP_NTZ, is_float, is_integer

TRUE: Final = 1
FALSE: Final = 2
NULL: Final = 4

Outcomes: TypeAlias = npt.NDArray[np.uint8]
"""Sets of outcomes as bits: TRUE, FALSE and NULL, or-ed together."""

Flags: TypeAlias = npt.NDArray[np.bool_] | np.bool_

_NO: Final = np.False_
_YES: Final = np.True_


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a node's values: each is NULL or lies in `low` to `high`. None or null: no bound. Both have its type.

    A scalar is one bound for all files, an array has a bound for each file.
    """

    low: pa.Array | pa.Scalar | None = None
    high: pa.Array | pa.Scalar | None = None
    may_be_null: Flags = _YES
    may_have_value: Flags = _YES


_UNKNOWN = Bounds()
_STATES: Final = {TRUE: True, FALSE: False, NULL: None}
_OUTCOMES: Final = {state: outcome for outcome, state in _STATES.items()}


def outcomes_of(node: Node, known: Mapping[tuple[str, ...], Bounds]) -> Outcomes:
    """Every outcome that a row within the known bounds can give. `known`: bounds by column path."""
    match node:
        case And():
            return _AND[outcomes_of(node.left, known), outcomes_of(node.right, known)]
        case Or():
            return _OR[outcomes_of(node.left, known), outcomes_of(node.right, known)]
        case Not():
            return _NOT[outcomes_of(node.operand, known)]
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


def _joined(left: bool | None, right: bool | None, *, is_and: bool) -> int:
    deciding = not is_and
    if left is deciding or right is deciding:
        return _OUTCOMES[deciding]
    if left is None or right is None:
        return NULL
    return _OUTCOMES[not deciding]


def _pairs(*, is_and: bool) -> Outcomes:
    """A table of AND or OR over sets of outcomes: row and column are the sets of the two sides."""
    table = np.zeros((8, 8), np.uint8)
    for left, right, one, other in product(range(8), range(8), _STATES, _STATES):
        if left & one and right & other:
            table[left, right] |= _joined(_STATES[one], _STATES[other], is_and=is_and)
    return table


_AND: Final = _pairs(is_and=True)
_OR: Final = _pairs(is_and=False)
_NOT: Final = np.array(
    [outcomes & NULL | (outcomes & TRUE) << 1 | (outcomes & FALSE) >> 1 for outcomes in range(8)], np.uint8
)


def _bits(flags: Flags, outcome: int) -> Outcomes:
    return np.where(flags, np.uint8(outcome), np.uint8(0))


def _is_null_outcomes(node: IsNull, known: Mapping[tuple[str, ...], Bounds]) -> Outcomes:
    if type_of(node.operand) == pa.bool_() and not isinstance(node.operand, Column | Literal):
        operand = outcomes_of(node.operand, known)
        return _bits((operand & NULL) != 0, TRUE) | _bits((operand & (TRUE | FALSE)) != 0, FALSE)
    bounds = bounds_of(node.operand, known)
    return _bits(bounds.may_be_null, TRUE) | _bits(bounds.may_have_value, FALSE)


def bounds_of(node: Node, known: Mapping[tuple[str, ...], Bounds]) -> Bounds:
    """Bounds of a node's values, derived from the bounds of its column."""
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
        return Bounds(low=None, high=None, may_be_null=_YES, may_have_value=_NO)
    return Bounds(value, value, may_be_null=_NO)


def _keeps_order(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast gives no NULL and keeps the order of any two values, so that it may be applied to bounds."""
    if is_integer(source):
        return is_float(target) or (is_integer(target) and target.bit_width >= source.bit_width)
    if source == pa.float32():
        return bool(target == pa.float64())
    return source in (pa.date32(), TIMESTAMP, TIMESTAMP_NTZ) and target in (TIMESTAMP, TIMESTAMP_NTZ)


def _cast_bound(bound: pa.Array | pa.Scalar | None, target: pa.DataType) -> pa.Array | pa.Scalar | None:
    if bound is None:
        return None
    if isinstance(bound, pa.Scalar):
        return cast_array(pa.array([bound.as_py()], bound.type), target)[0]
    return cast_array(bound, target)


def compare_outcomes(operator: ComparisonOperator, left: Bounds, right: Bounds) -> Outcomes:
    """The outcomes of comparing any value within `left` with any value within `right`."""
    if operator == "<=>":
        return _null_safe_outcomes(left, right)
    if operator in (">", ">="):
        return compare_outcomes("<" if operator == ">" else "<=", right, left)
    if operator == "=":
        never = _surely("<", left.high, right.low) | _surely("<", right.high, left.low)
        always = _surely("<=", left.high, right.low) & _surely("<=", right.high, left.low)
    elif operator == "<":
        always, never = _surely("<", left.high, right.low), _surely("<=", right.high, left.low)
    else:
        always, never = _surely("<=", left.high, right.low), _surely("<", right.high, left.low)

    both = left.may_have_value & right.may_have_value
    null = _bits(left.may_be_null | right.may_be_null, NULL)
    return null | _bits(both & ~never, TRUE) | _bits(both & ~always, FALSE)


def _null_safe_outcomes(left: Bounds, right: Bounds) -> Outcomes:
    values = compare_outcomes("=", left, right) & np.uint8(TRUE | FALSE)
    one_is_null = (left.may_be_null & right.may_have_value) | (right.may_be_null & left.may_have_value)
    return values | _bits(left.may_be_null & right.may_be_null, TRUE) | _bits(one_is_null, FALSE)


def _surely(
    operator: ComparisonOperator, left: pa.Array | pa.Scalar | None, right: pa.Array | pa.Scalar | None
) -> Flags:
    """Where the comparison certainly holds: both sides must have a bound."""
    if left is None or right is None:
        return _NO
    return _flags(pc.and_(pc.and_(pc.is_valid(left), pc.is_valid(right)), compare(operator, left, right)))


def _flags(values: pa.Array | pa.Scalar) -> Flags:
    """Where the value is true, not false or null."""
    if isinstance(values, pa.Scalar):
        return np.bool_(values.as_py() is True)
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), np.bool_)


def _in_list_outcomes(node: InList, known: Mapping[tuple[str, ...], Bounds]) -> Outcomes:
    """As for an OR of equalities. If the operand is NULL, every equality is NULL."""
    operand = bounds_of(node.operand, known)
    literals = [value.value for value in node.values if isinstance(value, Literal)]
    kind = type_of(node.operand)
    if len(literals) == len(node.values) and not is_float(kind) and kind != pa.null():
        return _in_literals_outcomes(operand, literals)
    result: Outcomes = np.array(FALSE, np.uint8)
    for value in node.values:
        result = _OR[result, compare_outcomes("=", operand, bounds_of(value, known))]
    return np.where(operand.may_have_value, result, np.uint8(NULL))


def _in_literals_outcomes(operand: Bounds, literals: Sequence[pa.Scalar]) -> Outcomes:
    """The outcomes of IN with literals: looks up where the bounds stand in the sorted list of literals."""
    values = sorted(_orderable(value) for value in literals if value.is_valid)
    first = _ranks(operand.low, lambda bound: bisect_left(values, bound), unknown=0)
    end = _ranks(operand.high, lambda bound: bisect_right(values, bound), unknown=len(values))

    may_hold = end > first
    is_one = _surely("<=", operand.high, operand.low)
    missing = FALSE if len(values) == len(literals) else NULL
    of_values = _bits(may_hold, TRUE) | _bits(~(may_hold & is_one), missing)
    return _bits(operand.may_be_null, NULL) | np.where(operand.may_have_value, of_values, np.uint8(NULL))


def _ranks(bound: pa.Array | pa.Scalar | None, rank: Callable[[Any], int], *, unknown: int) -> npt.NDArray[np.int64]:
    """The rank of a bound in the list, or of each of many bounds."""
    if bound is None:
        return np.array(unknown)
    if isinstance(bound, pa.Scalar):
        return np.array(rank(_orderable(bound)) if bound.is_valid else unknown)
    return np.array([rank(_orderable(one)) if one.is_valid else unknown for one in bound], np.int64)


def _orderable(value: pa.Scalar) -> Any:
    """A value that Python can order. Times are taken as numbers, since Python's own times have a smaller range."""
    is_time = pa.types.is_timestamp(value.type) or pa.types.is_date32(value.type)
    return value.value if is_time else value.as_py()


def _match_outcomes(node: Match, known: Mapping[tuple[str, ...], Bounds]) -> Outcomes:
    """The outcomes of a pattern with a known prefix, such as LIKE 'ab%'.

    It never matches if the upper bound ends before the prefix, or the lower bound begins with something greater.
    """
    bounds = bounds_of(node.operand, known)
    never: Flags = _NO
    prefix = node.prefix.encode()
    if prefix and bounds.high is not None:
        never = never | _flags(pc.less(pc.cast(bounds.high, pa.binary()), prefix))
    if prefix and bounds.low is not None:
        start = pc.binary_slice(pc.cast(bounds.low, pa.binary()), 0, len(prefix))
        never = never | _flags(pc.greater(start, prefix))

    null = _bits(bounds.may_be_null, NULL)
    return null | _bits(bounds.may_have_value, FALSE) | _bits(bounds.may_have_value & ~never, TRUE)
