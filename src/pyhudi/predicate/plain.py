"""The conditions that each engine answers alike, whatever its session's settings are: columns compared with values."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid, Unsupported
from pyhudi.predicate.nodes import And, Call, Column, Compare, InList, IsNull, Literal, Node, Not, Or
from pyhudi.predicate.parse import Predicate, parse_predicate


def plain_predicate(conditions: Iterable[str], schema: pa.Schema, *, has_times: bool) -> Predicate | None:
    """Those of the conditions that are plain, as a predicate that all of them imply; None: none is.

    `conditions`: Spark SQL texts, all of which must hold. `schema`: of the columns that may be compared. `has_times`:
    whether times in the texts are of UTC; otherwise conditions on times are left out.
    Example: of `(id = 'a')` and `(CAST(n AS INT) > 3)` the first is plain.
    """
    texts = [text for text in conditions if _is_plain_text(text, schema, has_times=has_times)]
    return parse_predicate(" AND ".join(f"({text})" for text in texts), schema) if texts else None


def _is_plain_text(text: str, schema: pa.Schema, *, has_times: bool) -> bool:
    if "\\" in text:  # escapes are the engine's to read
        return False
    try:
        condition = parse_predicate(text, schema).condition
    except (Invalid, Unsupported):  # more than predicates of pyhudi can say, or another column
        return False
    return condition is not None and not isinstance(condition, pc.Expression) and _is_plain(condition, has_times)


def _is_plain(node: Node, has_times: bool) -> bool:
    match node:
        case And() | Or():
            return _is_plain(node.left, has_times) and _is_plain(node.right, has_times)
        case Not():
            return _is_plain(node.operand, has_times)
        case Compare():
            return _are_plain((node.left, node.right), has_times)
        case InList():
            return _are_plain((node.operand, *node.values), has_times)
        case IsNull(Column()):
            return True
        case Call("startswith"):
            return _are_plain(node.arguments, has_times)
        case _:
            return False


def _are_plain(operands: Iterable[Node], has_times: bool) -> bool:
    """Whether each operand is a column or a value. Values of floating point are ordered as Spark orders them."""
    return all(
        isinstance(one, Literal | Column)
        and (has_times or not pa.types.is_timestamp(one.type))
        and not pa.types.is_nested(one.type)
        for one in operands
    )
