"""Polars predicates as trees of nodes, from their JSON form. Both order NaN last, and know NULL as a third truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa

from pyhudi.predicate.casts import can_cast
from pyhudi.predicate.foreign.typed import (
    FALSE,
    NULL,
    TRUE,
    and_not_null,
    column_of,
    compared,
    implied_by_both,
    implied_by_either,
    listed,
    literal_of,
)
from pyhudi.predicate.nodes import (
    MIRRORED,
    And,
    Cast,
    Column,
    Compare,
    ComparisonOperator,
    IsNull,
    Literal,
    Match,
    Node,
    Not,
    Or,
    type_of,
)  # fmt: skip
from pyhudi.predicate.patterns import parse_like
from pyhudi.predicate.types import TIMESTAMP_NTZ, is_float, is_integer

Json: TypeAlias = Any
"""An expression as Polars writes it: a mapping of one key, the kind of node, to its parts."""

_OPERATORS: Final[dict[str, ComparisonOperator]] = {
    "Eq": "=", "EqValidity": "<=>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">=",
}  # fmt: skip
_NEGATED: Final[dict[str, ComparisonOperator]] = {"NotEq": "=", "NotEqValidity": "<=>"}
_CLOSED: Final[dict[str, tuple[ComparisonOperator, ComparisonOperator]]] = {
    "Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<"),
}  # fmt: skip
_ANDS: Final = ("And", "LogicalAnd")
_ORS: Final = ("Or", "LogicalOr")
_CAST_TYPES: Final = {
    "Int16": pa.int16(), "Int32": pa.int32(), "Int64": pa.int64(), "Float32": pa.float32(), "Float64": pa.float64(),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PolarsPredicates:
    """Translates predicates over rows of a schema.

    `value_of`: the value of a literal's JSON, as an Arrow scalar; Polars itself computes it. None: not known.
    Seen: Polars 2.1.0. A form that is not known here is left to Polars.
    """

    schema: pa.Schema
    value_of: Callable[[Json], pa.Scalar | None]

    def implied_by(self, tree: Json) -> Node | None:
        """A node that is true for every row that the predicate keeps. None: nothing is known of such rows."""
        match _part(tree):
            case "BinaryExpr", {"left": one, "op": operator, "right": other} if operator in _ANDS:
                left, right = self.implied_by(one), self.implied_by(other)
                return implied_by_both(left, right)
            case "BinaryExpr", {"left": one, "op": operator, "right": other} if operator in _ORS:
                left, right = self.implied_by(one), self.implied_by(other)
                return implied_by_either(left, right)
            case _:
                return self.condition(tree)

    def condition(self, tree: Json) -> Node | None:
        """A node with the same truth value in every row: true, false or NULL. None where there is no such node."""
        match _part(tree):
            case "BinaryExpr", {"left": left, "op": str(operator), "right": right}:
                return self._binary(operator, left, right)
            case "Function", {"input": list(given), "function": function}:
                return self._function(given, function)
            case "Ternary", {"predicate": one, "truthy": then, "falsy": otherwise}:
                return self._never(one, then, otherwise)
            case _:
                node = self.value(tree)
                return node if node is not None and type_of(node) == pa.bool_() else None

    def value(self, tree: Json) -> Node | None:
        """A column, a field of a struct, a value, or one of them widened."""
        match _part(tree):
            case "Column", str(name):
                return column_of(self.schema, [name])
            case "Alias", [inner, _]:
                return self.value(inner)
            case "Function", {"input": [inner], "function": {"StructExpr": {"FieldByName": str(name)}}}:
                outer = self.value(inner)
                return column_of(self.schema, [*outer.path, name]) if isinstance(outer, Column) else None
            case "Cast", {"expr": inner, "dtype": {"Literal": kind}, "options": "NonStrict"}:
                return _widened(self.value(inner), kind)
            case "Literal", _:
                scalar = self.value_of(tree)
                if scalar is None or scalar.type != pa.bool_():
                    return None
                return {True: TRUE, False: FALSE, None: NULL}[scalar.as_py()]
            case _:
                return None

    def _binary(self, operator: str, left: Json, right: Json) -> Node | None:
        if operator in _ANDS or operator in _ORS:
            one, other = self.condition(left), self.condition(right)
            if one is None or other is None:
                return None
            return And(one, other) if operator in _ANDS else Or(one, other)
        if operator in _NEGATED:
            node = self._comparison(_NEGATED[operator], left, right)
            return None if node is None else Not(node)
        return self._comparison(_OPERATORS[operator], left, right) if operator in _OPERATORS else None

    def _comparison(self, operator: ComparisonOperator, left: Json, right: Json) -> Node | None:
        if _is_literal(left):
            left, right, operator = right, left, MIRRORED[operator]
        node = self.value(left)
        if node is None or isinstance(node, Literal):
            return None
        other = self._literal(right, type_of(node)) if _is_literal(right) else self.value(right)
        return None if other is None else compared(operator, node, other)

    def _literal(self, tree: Json, kind: pa.DataType) -> Literal | None:
        value = self.value_of(tree)
        return None if value is None else literal_of(value, kind)

    def _function(self, given: list[Json], function: Json) -> Node | None:
        match function:
            case {"Boolean": "IsNull"}:
                node = self.value(given[0])
                return None if node is None else IsNull(node)
            case {"Boolean": "IsNotNull"}:
                node = self.value(given[0])
                return None if node is None else Not(IsNull(node))
            case {"Boolean": "Not"}:
                node = self.condition(given[0])
                return None if node is None else Not(node)
            case {"Boolean": "IsNan" | "IsNotNan" as name}:
                return _nan_test(name, self.value(given[0]))
            case {"Boolean": {"IsBetween": {"closed": str(closed)}}} if closed in _CLOSED:
                bounds = [self._comparison(op, given[0], at) for op, at in zip(_CLOSED[closed], given[1:], strict=True)]
                return None if bounds[0] is None or bounds[1] is None else And(bounds[0], bounds[1])
            case {"Boolean": {"IsIn": {"nulls_equal": bool(nulls_equal)}}}:
                return self._membership(given[0], given[1], nulls_equal=nulls_equal)
            case {"StringExpr": "StartsWith"}:
                return self._prefix(given[0], given[1])
            case _:
                return None

    def _membership(self, operand: Json, values: Json, *, nulls_equal: bool) -> Node | None:
        """Whether a value is in a list. NULL is in no list, unless `nulls_equal`; a list's NULL makes nothing NULL."""
        node = self.value(operand)
        while isinstance(values, Mapping) and "Alias" in values:
            values = values["Alias"][0]
        given = self.value_of(values) if _is_literal(values) else None
        if node is None or not isinstance(given, pa.ListScalar | pa.LargeListScalar) or given.values is None:
            return None
        known = given.values.drop_null()
        found = listed(node, known) if len(known) else FALSE
        if found is None:
            return None
        if nulls_equal:
            return Or(IsNull(node), and_not_null(node, found)) if given.values.null_count else and_not_null(node, found)
        return found if len(known) else Or(found, And(IsNull(node), NULL))

    def _prefix(self, operand: Json, prefix: Json) -> Node | None:
        node = self.value(operand)
        given = self._literal(prefix, pa.string()) if _is_literal(prefix) else None
        text = None if given is None else given.value.as_py()
        if node is None or type_of(node) != pa.string() or text is None:
            return None
        for special in ("\\", "%", "_"):
            text = text.replace(special, f"\\{special}")
        like = parse_like(f"{text}%")
        return Match(node, like.pattern, like.prefix)

    def _never(self, test: Json, then: Json, otherwise: Json) -> Node | None:
        """What Polars makes of a comparison with a value that the column's type cannot hold: false or NULL."""
        node = self.condition(test)
        values = [self._literal(one, pa.bool_()) if _is_literal(one) else None for one in (then, otherwise)]
        texts = [str(one.value) if one is not None else "" for one in values]
        is_known = isinstance(node, Not) and isinstance(node.operand, IsNull) and texts == ["false", "None"]
        return And(Not(node), NULL) if node is not None and is_known else None


def without_hints(tree: Json) -> Json | None:
    """The predicate without the hints that Polars' optimiser joins to it by AND; None if nothing else is left.

    A hint says which rows a `top_k` above the scan can still use. It is a node that no expression can be made of.
    Seen: Polars 2.1.0 and DuckDB's reader of it name such a node `Display`, with a text that begins `dynamic_pred`.
    """
    match _part(tree):
        case "Display", {"fmt_str": str(text)} if text.startswith("dynamic_pred"):
            return None
        case "BinaryExpr", {"left": one, "op": operator, "right": other} if operator in _ANDS:
            left, right = without_hints(one), without_hints(other)
            if left is None or right is None:
                return right if left is None else left
            return {"BinaryExpr": {"left": left, "op": operator, "right": right}}
        case _:
            return tree


def _part(tree: Json) -> tuple[str, Json]:
    return next(iter(tree.items())) if isinstance(tree, Mapping) and len(tree) == 1 else ("", tree)


def _is_literal(tree: Json) -> bool:
    return _part(tree)[0] == "Literal"


def _widened(node: Node | None, kind: Json) -> Node | None:
    """The node in a type that holds each of its values; a whole number as floating point, as both round it."""
    source = None if node is None else type_of(node)
    target = TIMESTAMP_NTZ if kind == {"Datetime": ["Microseconds", None]} else _CAST_TYPES.get(str(kind))
    if node is None or source is None or target is None or isinstance(node, Literal):
        return None
    grows = is_integer(source) and is_integer(target) and source.bit_width < target.bit_width
    floats = target == pa.float64() and (is_integer(source) or source == pa.float32())
    days = target == TIMESTAMP_NTZ and source == pa.date32()
    return Cast(node, target) if (grows or floats or days) and can_cast(source, target) else None


def _nan_test(name: str, node: Node | None) -> Node | None:
    kind = None if node is None else type_of(node)
    if node is None or kind is None or not is_float(kind):
        return None
    is_nan = Compare("=", node, Literal(pa.scalar(float("nan"), kind), kind))
    return is_nan if name == "IsNan" else Not(is_nan)
