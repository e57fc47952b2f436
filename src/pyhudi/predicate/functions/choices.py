"""The functions that choose between values: which arguments they accept, and what they compute.

Seen: PySpark 4.3.0 (`tests/spark/test_predicate_like_spark.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.predicate.nodes import Call, Node, type_of
from pyhudi.predicate.refusals import NotBuilt, SignatureError
from pyhudi.predicate.types import is_float, listed_type

CastTo = Callable[[Node, pa.DataType], Node]

ARGUMENT_COUNTS: Final = {"if": (3, 3), "greatest": (2, 1000), "least": (2, 1000)}


def choice_call(name: str, arguments: tuple[Node, ...], cast_to: CastTo) -> Node:
    """The node of a call, its arguments cast as Spark casts them. Raises: SignatureError, NotBuilt."""
    values = arguments[1:] if name == "if" else arguments
    kinds = [type_of(value) for value in values]
    kind = kinds[0] if all(one == kinds[0] for one in kinds) else listed_type(kinds)
    if kind is None:
        raise SignatureError(f"{name} of {', '.join(map(str, kinds))} has no common type")
    same = tuple(cast_to(value, kind) for value in values)
    if name == "if":
        if type_of(arguments[0]) not in (pa.bool_(), pa.null()):
            raise SignatureError(f"if takes a boolean first, found {type_of(arguments[0])}")
        return Call(name, (cast_to(arguments[0], pa.bool_()), *same), kind)
    if is_float(kind):
        raise NotBuilt(f"{name} of {kind}, in which NaN is the greatest,")
    if pa.types.is_nested(kind) or kind in (pa.bool_(), pa.binary(), pa.null()):
        raise NotBuilt(f"{name} of {kind}")
    return Call(name, same, kind)


def run_choice(call: Call, arguments: list[pa.Array]) -> pa.Array:
    """The call's values. Shape: arrays of n rows -> one array of n rows."""
    if call.name == "if":
        return pc.if_else(pc.fill_null(arguments[0], False), arguments[1], arguments[2])
    return _extreme(arguments, pc.less if call.name == "least" else pc.greater)


def _extreme(arguments: list[pa.Array], is_better: Callable[[pa.Array, pa.Array], pa.Array]) -> pa.Array:
    """The best of several values in each row. Nulls are passed over. Arrow's own calls do not compare text."""
    best = arguments[0]
    for other in arguments[1:]:
        takes = pc.or_(pc.fill_null(is_better(other, best), False), pc.is_null(best))
        best = pc.if_else(takes, other, best)
    return best
