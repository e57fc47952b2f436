"""The functions that a predicate may call: which arguments they accept, and what they compute.

Seen: PySpark 4.3.0 (`tests/spark/test_predicate_like_spark.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.options.told_names import nearest_name
from pyhudi.predicate.functions import choices, dates, regexes
from pyhudi.predicate.functions.date_formats import part_of_days
from pyhudi.predicate.functions.dates import date_call, run_date_call
from pyhudi.predicate.functions.spark_names import SPARK_FUNCTIONS
from pyhudi.predicate.nodes import Call, Literal, Node, type_of
from pyhudi.predicate.refusals import NotBuilt, SignatureError
from pyhudi.predicate.types import TIMESTAMP, TIMESTAMP_NTZ, is_float, is_numeric, listed_type

CastTo = Callable[[Node, pa.DataType], Node]

_TRIMS = ("trim", "ltrim", "rtrim")
_DAY_PARTS = ("year", "month", "day", "quarter")
_TIME_PARTS = ("hour", "minute", "second")
_TEXT_TESTS = ("startswith", "endswith", "contains")
_ARGUMENT_COUNTS = (
    dict.fromkeys(("lower", "upper", *_DAY_PARTS, *_TIME_PARTS, "length", "abs", "negate", "isnan"), (1, 1))
    | dict.fromkeys(_TRIMS, (1, 2))
    | dict.fromkeys(_TEXT_TESTS, (2, 2))
    | {"substring": (2, 3), "concat": (1, 1000), "coalesce": (1, 1000)}
    | choices.ARGUMENT_COUNTS
    | dates.ARGUMENT_COUNTS
    | regexes.ARGUMENT_COUNTS
)


def call_of(name: str, arguments: tuple[Node, ...], cast_to: CastTo) -> Node:
    """A call with its arguments cast as Spark casts them. Some calls are other nodes: to_date is a cast.

    Raises: SignatureError for what Spark refuses too; NotBuilt for what only we refuse.
    """
    if name not in _ARGUMENT_COUNTS:
        if name in SPARK_FUNCTIONS:
            raise NotBuilt(f"the function {name}")
        near = nearest_name(name, _ARGUMENT_COUNTS)
        raise SignatureError(f"no function {name!r} here" + (f"; the nearest is {near!r}" if near else ""))
    low, high = _ARGUMENT_COUNTS[name]
    if not low <= len(arguments) <= high:
        raise SignatureError(f"{name} takes {low} to {high} arguments, found {len(arguments)}")

    if name in dates.ARGUMENT_COUNTS:
        return date_call(name, arguments, cast_to)
    if name in regexes.ARGUMENT_COUNTS:
        return regexes.regex_call(name, arguments, cast_to)
    if name in choices.ARGUMENT_COUNTS:
        return choices.choice_call(name, arguments, cast_to)
    if name == "coalesce":
        return _coalesce(arguments, cast_to)
    if name in ("abs", "negate"):
        kind = type_of(arguments[0])
        kind = pa.float64() if kind in (pa.string(), pa.null()) else kind
        if not is_numeric(kind):
            raise SignatureError(f"{name} takes a number, found {kind}")
        return Call(name, (cast_to(arguments[0], kind),), kind)
    if name == "isnan":
        kind = type_of(arguments[0])
        return Call(name, (cast_to(arguments[0], kind if is_float(kind) else pa.float64()),), pa.bool_())

    if name in _DAY_PARTS:
        return Call(name, (_day(arguments[0], cast_to, name),), pa.int32())
    if name in _TIME_PARTS:
        kind = type_of(arguments[0])
        target = kind if kind in (TIMESTAMP, TIMESTAMP_NTZ) else TIMESTAMP
        if kind not in (TIMESTAMP, TIMESTAMP_NTZ, pa.date32(), pa.string(), pa.null()):
            raise SignatureError(f"{name} takes a timestamp, found {kind}")
        return Call(name, (cast_to(arguments[0], target),), pa.int32())
    return _text_call(name, arguments, cast_to)


def _coalesce(arguments: tuple[Node, ...], cast_to: CastTo) -> Call:
    kind = listed_type(map(type_of, arguments))
    if kind is None:
        raise SignatureError(f"coalesce of {', '.join(str(type_of(a)) for a in arguments)} has no common type")
    return Call("coalesce", tuple(cast_to(argument, kind) for argument in arguments), kind)


def _day(argument: Node, cast_to: CastTo, name: str) -> Node:
    kind = type_of(argument)
    if kind not in (pa.date32(), TIMESTAMP, TIMESTAMP_NTZ, pa.string(), pa.null()):
        raise SignatureError(f"{name} takes a date, found {kind}")
    return cast_to(argument, pa.date32())


def _text_call(name: str, arguments: tuple[Node, ...], cast_to: CastTo) -> Call:
    kinds = [type_of(argument) for argument in arguments]
    if name == "length":
        target = pa.binary() if kinds[0] == pa.binary() else pa.string()
        return Call(name, (cast_to(arguments[0], target),), pa.int32())

    if pa.binary() in kinds:
        raise NotBuilt(f"{name} of binary")
    if name == "substring":
        bounds = tuple(cast_to(bound, pa.int32()) for bound in arguments[1:])
        if not all(isinstance(bound, Literal) and bound.value.is_valid for bound in bounds):
            raise NotBuilt("substring at positions that are not literals")
        return Call(name, (cast_to(arguments[0], pa.string()), *bounds), pa.string())

    texts = tuple(cast_to(argument, pa.string()) for argument in arguments)
    if name in _TEXT_TESTS:
        if not isinstance(texts[1], Literal):
            raise NotBuilt(f"{name} with a text that is not a literal")
        return Call(name, texts, pa.bool_())

    if name in _TRIMS and not all(isinstance(text, Literal) and text.value.is_valid for text in texts[1:]):
        raise NotBuilt(f"{name} of characters that are not a literal")
    return Call(name, texts, pa.string())


def run_call(call: Call, arguments: list[pa.Array]) -> pa.Array:
    """The call's values. Shape: arrays of n rows -> one array of n rows."""
    first = arguments[0]
    if call.name in dates.ARGUMENT_COUNTS:
        return run_date_call(call, arguments)
    if call.name in regexes.ARGUMENT_COUNTS:
        return regexes.run_regex_call(call, first)

    if call.name in choices.ARGUMENT_COUNTS:
        return choices.run_choice(call, arguments)

    match call.name:
        case "coalesce":
            return pc.coalesce(*arguments)
        case "concat":
            return pc.binary_join_element_wise(*arguments, "", null_handling="emit_null")
        case "substring":
            return _substring(first, *(_literal(bound) for bound in call.arguments[1:]))
        case "startswith" | "endswith" | "contains":
            return _text_test(call.name, first, call.arguments[1])
        case "lower" | "upper":
            return _change_case(first, call.name)
        case "isnan":
            return pc.fill_null(pc.is_nan(first), False)
        case "length":
            return pc.binary_length(first) if first.type == pa.binary() else pc.utf8_length(first)
        case "trim" | "ltrim" | "rtrim":
            characters = _text(call.arguments[1]) if len(call.arguments) > 1 else " "
            return pc.call_function(f"utf8_{call.name}", [first], pc.TrimOptions(characters))
        case "year" | "month" | "quarter" | "day":
            return part_of_days(call.name, first.cast(pa.int32()))
        case _:
            return pc.call_function(call.name, [first]).cast(call.type)


def _literal(node: Node) -> int:
    assert isinstance(node, Literal)
    return int(node.value.as_py())


def _text(node: Node) -> str:
    assert isinstance(node, Literal)
    return str(node.value.as_py())


def _text_test(name: str, text: pa.Array, pattern: Node) -> pa.Array:
    assert isinstance(pattern, Literal)
    wanted = pattern.value.as_py()
    if wanted is None:
        return pa.nulls(len(text), pa.bool_())
    function = {"startswith": pc.starts_with, "endswith": pc.ends_with, "contains": pc.match_substring}[name]
    return function(text, wanted)


def _substring(text: pa.Array, position: int, length: int = 2**31 - 1) -> pa.Array:
    """Positions count from 1; 0 means 1 as well; negative positions count from the end."""
    if length <= 0:
        return pc.utf8_slice_codeunits(text, 0, 0)
    start = position - 1 if position > 0 else position
    stop = start + length
    if start < 0 and stop >= 0:
        return pc.utf8_slice_codeunits(text, start)
    return pc.utf8_slice_codeunits(text, start, stop)


def _change_case(text: pa.Array, name: str) -> pa.Array:
    """Upper or lower case by the full Unicode mapping: ß becomes SS.

    Arrow maps one character to one, so only ASCII texts go through Arrow. Each distinct other text is mapped by Python.
    """
    is_ascii = pc.fill_null(pc.string_is_ascii(text), True)
    ascii_result = pc.call_function(f"ascii_{name}", [text])
    if pc.all(is_ascii).as_py():
        return ascii_result
    encoded = pc.if_else(is_ascii, None, text).dictionary_encode()
    mapped = [value.lower() if name == "lower" else value.upper() for value in encoded.dictionary.to_pylist()]
    others = pc.take(pa.array(mapped, pa.string()), encoded.indices)
    return pc.if_else(is_ascii, ascii_result, others)
