"""The functions that format dates, read them, or count days: which arguments they accept, and what they compute.

In UTC, with ANSI mode off. Seen: PySpark 4.3.0 (`tests/spark/test_predicate_like_spark.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.predicate.functions.date_formats import FormatError, parse_date_format, print_micros
from pyhudi.predicate.nodes import Call, Literal, Node, type_of
from pyhudi.predicate.refusals import NotBuilt, SignatureError
from pyhudi.predicate.types import TIMESTAMP, TIMESTAMP_NTZ, is_integer, is_numeric

CastTo = Callable[[Node, pa.DataType], Node]

ARGUMENT_COUNTS: Final = {
    "from_unixtime": (1, 2), "date_format": (2, 2), "to_date": (1, 2), "unix_timestamp": (1, 2), "date_add": (2, 2),
    "date_sub": (2, 2),
}  # fmt: skip
DEFAULT_FORMAT: Final = "yyyy-MM-dd HH:mm:ss"
_SECOND_US: Final = 1_000_000
_DATES: Final = (pa.date32(), TIMESTAMP, TIMESTAMP_NTZ, pa.string(), pa.null())


def date_call(name: str, arguments: tuple[Node, ...], cast_to: CastTo) -> Node:
    """The node of a call, its arguments cast as Spark casts them. Raises: SignatureError, NotBuilt."""
    first, kind = arguments[0], type_of(arguments[0])
    match name:
        case "from_unixtime":
            if not (is_numeric(kind) or kind in (pa.string(), pa.null())):
                raise SignatureError(f"{name} takes seconds, found {kind}")
            pattern = arguments[1] if len(arguments) > 1 else Literal(pa.scalar(DEFAULT_FORMAT), pa.string())
            return Call(name, (cast_to(first, pa.int64()), _pattern(name, pattern)), pa.string())
        case "date_format":
            _require_date(name, kind)
            return Call(name, (cast_to(first, TIMESTAMP), _pattern(name, arguments[1])), pa.string())
        case "to_date":
            _require_date(name, kind)
            if len(arguments) > 1:
                raise NotBuilt("to_date by a pattern")
            return cast_to(first, pa.date32())
        case "unix_timestamp":
            _require_date(name, kind)
            if len(arguments) > 1 or kind not in (pa.date32(), TIMESTAMP, TIMESTAMP_NTZ):
                raise NotBuilt("unix_timestamp of text, or by a pattern")
            return Call(name, (cast_to(first, TIMESTAMP),), pa.int64())

    assert name in ("date_add", "date_sub")
    _require_date(name, kind)

    days = type_of(arguments[1])
    if not is_integer(days):
        raise NotBuilt(f"{name} of {days}")
    if days == pa.int64():
        raise SignatureError(f"{name} takes an int, a smallint or a tinyint of days, found {days}")
    return Call(name, (cast_to(first, pa.date32()), cast_to(arguments[1], pa.int32())), pa.date32())


def run_date_call(call: Call, arguments: list[pa.Array]) -> pa.Array:
    """The call's values. Shape: arrays of n rows -> one array of n rows."""
    first = arguments[0]
    match call.name:
        case "from_unixtime" | "date_format":
            pattern = call.arguments[1]
            assert isinstance(pattern, Literal)
            micros = first.cast(pa.int64())
            if call.name == "from_unixtime":  # like Java's multiplication, which wraps around beyond 64 bits
                micros = pc.multiply(micros, _SECOND_US)
            return print_micros(micros, parse_date_format(pattern.value.as_py()))
        case "unix_timestamp":  # rounds towards zero: half a second before 1970 is second 0
            return pc.divide(first.cast(pa.int64()), _SECOND_US)

    assert call.name in ("date_add", "date_sub")
    count = pc.add if call.name == "date_add" else pc.subtract
    return count(first.cast(pa.int32()), arguments[1]).cast(pa.date32())


def _require_date(name: str, kind: pa.DataType) -> None:
    if kind not in _DATES:
        raise SignatureError(f"{name} takes a date or a timestamp, found {kind}")


def _pattern(name: str, node: Node) -> Literal:
    if not isinstance(node, Literal) or node.type != pa.string() or not node.value.is_valid:
        raise NotBuilt(f"{name} by a pattern that is not a literal")
    try:
        parse_date_format(node.value.as_py())
    except FormatError as error:
        raise NotBuilt(str(error)) from error
    return node
