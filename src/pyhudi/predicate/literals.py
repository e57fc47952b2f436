"""Number literals: their types, and how Spark compares numbers beyond 64 bits."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
from pyarrow import types

from pyhudi.predicate.nodes import ComparisonOperator, Literal, Node, type_of
from pyhudi.predicate.types import DECIMAL_DIGITS_MAX, decimal_for, is_integer

_LONG_MIN, _LONG_MAX = Decimal(-(2**63)), Decimal(2**63 - 1)


_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONG_DIGITS_MAX = 4_000
"""Python refuses to parse longer whole numbers."""


class LiteralError(ValueError):
    """The number is out of range, or none; the text says how."""


def parse_number(text: str) -> Literal:
    """A number as Spark types it: an int, or a bigint if it needs one. A point makes a decimal, an exponent a double.

    Raises: LiteralError for a number out of range, and for what is none, such as `1e`.
    """
    if not _NUMBER.fullmatch(text):
        raise LiteralError(f"{text!r} is no number")
    if "e" in text.lower():
        if float(text) in (float("inf"), float("-inf")):
            raise LiteralError("the number is out of range for a double")
        return Literal(pa.scalar(float(text), pa.float64()), pa.float64())
    if "." not in text and len(text) <= _LONG_DIGITS_MAX:
        for kind, bits in ((pa.int32(), 31), (pa.int64(), 63)):
            if -(2**bits) <= int(text) < 2**bits:
                return Literal(pa.scalar(int(text), kind), kind)

    value = Decimal(text)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    precision = max(len(value.as_tuple().digits), -exponent)
    if precision > DECIMAL_DIGITS_MAX:
        raise LiteralError(f"the number has {precision} digits, at most {DECIMAL_DIGITS_MAX} are allowed")
    kind = pa.decimal128(precision, -exponent)
    return Literal(pa.scalar(value, kind), kind)


def decided_comparison(operator: ComparisonOperator, left: Node, right: Node) -> bool | None:
    """The result of `<`, `<=`, `>` or `>=` between an integer and a decimal literal beyond 64 bits, else None.

    Seen: PySpark 4.3.0 decides such a comparison while planning, so it is true or false even for NULL.
    """
    if operator in ("=", "<=>"):
        return None
    if isinstance(left, Literal) and types.is_decimal(left.type) and is_integer(type_of(right)):
        is_less, side = operator in ("<", "<="), left
    elif isinstance(right, Literal) and types.is_decimal(right.type) and is_integer(type_of(left)):
        is_less, side = operator in (">", ">="), right
    else:
        return None

    value = side.value.as_py()
    if value is None or _LONG_MIN <= value <= _LONG_MAX:
        return None
    return (value < _LONG_MIN) is is_less


def decimal_of_operand(node: Node, other: Node) -> pa.DataType:
    """The decimal type of an operand. An integer literal gets as many digits as it is written with."""
    kind = type_of(node)
    if kind in (pa.string(), pa.null()):
        kind = type_of(other)
    if isinstance(node, Literal) and is_integer(kind) and node.value.is_valid:
        return pa.decimal128(len(str(abs(node.value.as_py()))), 0)
    return decimal_for(kind)
