"""Predicate text, resolved against a schema, as a typed tree with Spark's implicit casts written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa
from pyarrow import types
from sqlglot import exp

from pyhudi.errors import Invalid, Unsupported
from pyhudi.predicate.casts import can_cast
from pyhudi.predicate.evaluate import division_scale, fold
from pyhudi.predicate.functions.calls import call_of
from pyhudi.predicate.literals import LiteralError, decided_comparison, decimal_of_operand, parse_number
from pyhudi.predicate.names import known_names
from pyhudi.predicate.nodes import (
    And,
    Arithmetic,
    ArithmeticOperator,
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
from pyhudi.predicate.patterns import PatternError, parse_java_regex, parse_like
from pyhudi.predicate.refusals import NotBuilt, SignatureError
from pyhudi.predicate.syntax import as_ifs, called, nested_too_deeply, parse_syntax, place_of
from pyhudi.predicate.types import (
    DECIMAL_DIGITS_MAX,
    canonical_type,
    compared_type,
    decimal_result,
    is_float,
    is_integer,
    is_numeric,
    listed_type,
    wider_number,
)
from pyhudi.predicate.vocabulary import (
    ARITHMETIC,
    COMPARISONS,
    FUNCTIONS,
    INEQUALITIES,
    PREDICATES,
    TYPES,
    arguments_of,
    has_unread,
)


def parse_text(text: str, schema: pa.Schema) -> Node:
    """The tree of a predicate text.

    Raises: Invalid for what Spark refuses too (syntax, an unknown column, types that do not meet);
    Unsupported for what it would accept. Both name the position in the text.
    """
    root, tree = _resolved(text, schema)
    if type_of(root) != pa.bool_():
        raise Invalid(f"{place_of(tree, text)}: expected a predicate, found {type_of(root)}")
    return root


def parse_value(text: str, schema: pa.Schema) -> Node:
    """The tree of any expression, boolean or not. Raises: as `parse_text`."""
    return _resolved(text, schema)[0]


def _resolved(text: str, schema: pa.Schema) -> tuple[Node, exp.Expr]:
    tree = parse_syntax(text)
    try:
        return _Resolver(text, schema).resolve(tree), tree
    except RecursionError as error:
        raise nested_too_deeply(text) from error


@dataclass(frozen=True, slots=True)
class _Resolver:
    text: str
    schema: pa.Schema

    def invalid(self, tree: exp.Expr, why: str) -> NoReturn:
        raise Invalid(f"{place_of(tree, self.text)}: {why}")

    def unsupported(self, tree: exp.Expr, what: str) -> NoReturn:
        raise Unsupported(f"{place_of(tree, self.text)}: {what} is not supported here")

    def resolve(self, tree: exp.Expr) -> Node:
        """The typed node of any expression. An expression without columns is computed: it becomes a literal."""
        kind = type(tree)
        handler = _HANDLERS.get(kind)
        if handler is None and not any(kind in known for known in (COMPARISONS, INEQUALITIES, ARITHMETIC, FUNCTIONS)):
            self.unsupported(tree, called(tree, self.text))
        if has_unread(tree):
            self.unsupported(tree, f"this form of {called(tree, self.text)}")
        if kind in COMPARISONS or kind in INEQUALITIES:
            return self.comparison(tree)
        if kind in ARITHMETIC:
            return self.arithmetic(tree)
        if kind in FUNCTIONS:
            return self.function(tree)
        assert handler is not None
        return fold(handler(self, tree))

    def cast_to(self, tree: exp.Expr, node: Node, target: pa.DataType) -> Node:
        source = type_of(node)
        if source == target:
            return node
        if not can_cast(source, target):
            self.unsupported(tree, f"a cast of {source} to {target}")
        return fold(Cast(node, target))

    def boolean(self, tree: exp.Expr) -> Node:
        node = self.resolve(tree)
        if type_of(node) not in (pa.bool_(), pa.null()):
            self.invalid(tree, f"expected a boolean, found {type_of(node)}")
        return self.cast_to(tree, node, pa.bool_())

    def operand(self, tree: exp.Expr) -> Node:
        """An operand of a comparison. Refuses `a < b < c`: Spark and sqlglot group such chains differently."""
        if isinstance(tree, PREDICATES) and not isinstance(tree, exp.Func):
            self.unsupported(tree, "a comparison of comparisons without parentheses")
        return self.resolve(tree)

    def comparison(self, tree: exp.Expr) -> Node:
        left, right = self.operand(tree.this), self.operand(tree.expression)
        if type(tree) in INEQUALITIES:
            return fold(Not(self.compared(tree, INEQUALITIES[type(tree)], left, right)))
        return fold(self.compared(tree, COMPARISONS[type(tree)], left, right))

    def compared(self, tree: exp.Expr, operator: ComparisonOperator, left: Node, right: Node) -> Node:
        target = compared_type(type_of(left), type_of(right), equality=operator in ("=", "<=>"))
        if target is None:
            both = (type_of(left), type_of(right))
            if any(types.is_nested(kind) for kind in both):
                self.unsupported(tree, f"a comparison of {both[0]} and {both[1]}")
            self.invalid(tree, f"{both[0]} and {both[1]} cannot be compared; write a CAST")
        decided = decided_comparison(operator, left, right)
        if decided is not None:
            return Literal(pa.scalar(decided), pa.bool_())
        return Compare(operator, self.cast_to(tree, left, target), self.cast_to(tree, right, target))

    def column(self, tree: exp.Expr) -> Node:
        parts = [part.name for part in tree.parts] if isinstance(tree, exp.Column | exp.Dot) else []
        if isinstance(tree, exp.Dot) and not all(isinstance(p, exp.Identifier) for p in tree.parts):
            self.unsupported(tree, "a field of an expression")

        fields: list[pa.Field] = list(self.schema)
        path: list[str] = []
        for part in parts:
            if path and not types.is_struct(fields_type := _type_at(self.schema, path)):
                self.invalid(tree, f"{'.'.join(path)!r} is {fields_type}, it has no field {part!r}")
            found = [field for field in fields if field.name.lower() == part.lower()]
            if not found:
                within = f" in {'.'.join(path)!r}" if path else ""
                self.invalid(tree, f"no column {part!r}{within}; {known_names(part, fields)}")
            if len(found) > 1:
                self.invalid(tree, f"{part!r} is ambiguous: {', '.join(repr(f.name) for f in found)}")
            path.append(found[0].name)
            fields = list(found[0].type) if types.is_struct(found[0].type) else []

        return Column(tuple(path), canonical_type(_type_at(self.schema, path)))

    def arithmetic(self, tree: exp.Expr) -> Node:
        for side in (tree.this, tree.expression):
            if isinstance(side, exp.DPipe):
                self.unsupported(tree, "arithmetic next to '||' without parentheses")

        # A text counts as a double, a null as the other side's type.
        operator = ARITHMETIC[type(tree)]
        left, right = self.resolve(tree.this), self.resolve(tree.expression)
        kinds = [pa.float64() if type_of(n) == pa.string() else type_of(n) for n in (left, right)]
        kinds = [kinds[1 - i] if kinds[i] == pa.null() else kinds[i] for i in (0, 1)]
        kinds = [pa.float64() if kind == pa.null() else kind for kind in kinds]

        if not (is_numeric(kinds[0]) and is_numeric(kinds[1])):
            if any(types.is_temporal(kind) for kind in kinds):
                self.unsupported(tree, "arithmetic with dates and times")
            self.invalid(tree, f"{type_of(left)} {operator} {type_of(right)} has no meaning")
        if any(map(types.is_decimal, kinds)) and not any(map(is_float, kinds)):
            return self.decimal_arithmetic(tree, operator, left, right)

        common = wider_number(kinds[0], kinds[1])
        if operator == "/":
            common = pa.float64()
        if operator == "div":
            if not is_integer(common):
                self.unsupported(tree, f"div of {common}")
            common = pa.int64()
        return fold(Arithmetic(operator, self.cast_to(tree, left, common), self.cast_to(tree, right, common), common))

    def decimal_arithmetic(self, tree: exp.Expr, operator: ArithmeticOperator, left: Node, right: Node) -> Node:
        if operator in ("%", "div"):
            self.unsupported(tree, f"{operator} of decimals")
        kinds = [decimal_of_operand(node, other) for node, other in ((left, right), (right, left))]
        result = decimal_result(operator, kinds[0], kinds[1])
        if not _fits_wide_decimal(operator, kinds[0], kinds[1], result):
            self.unsupported(tree, f"{kinds[0]} {operator} {kinds[1]}; cast to fewer digits")
        return fold(
            Arithmetic(operator, self.cast_to(tree, left, kinds[0]), self.cast_to(tree, right, kinds[1]), result)
        )

    def function(self, tree: exp.Expr) -> Node:
        name = FUNCTIONS[type(tree)]
        arguments = arguments_of(tree)
        if name == "trim":
            name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(tree.args.get("position") or "", "trim")
        if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return self.number(tree, f"-{tree.this.name}")
        if isinstance(tree, exp.DPipe) and any(isinstance(a, tuple(ARITHMETIC)) for a in arguments):
            self.unsupported(tree, "arithmetic next to '||' without parentheses")
        return self.call(tree, name, arguments)

    def call(self, tree: exp.Expr, name: str, arguments: Sequence[exp.Expr]) -> Node:
        resolved = tuple(self.resolve(argument) for argument in arguments)
        try:
            return fold(call_of(name, resolved, lambda node, kind: self.cast_to(tree, node, kind)))
        except SignatureError as error:
            self.invalid(tree, str(error))
        except NotBuilt as error:
            self.unsupported(tree, str(error))

    def anonymous(self, tree: exp.Expr) -> Node:
        name = str(tree.this).lower()
        arguments = tree.expressions
        if name in ("isnull", "isnotnull") and len(arguments) == 1:
            is_null = IsNull(self.resolve(arguments[0]))
            return is_null if name == "isnull" else Not(is_null)
        if name in ("bigint", "tinyint", "smallint", "binary") and len(arguments) == 1:
            return self.cast_to(tree, self.resolve(arguments[0]), TYPES[exp.DType[name.upper()]])
        return self.call(tree, name, arguments)

    def literal(self, tree: exp.Expr) -> Node:
        assert isinstance(tree, exp.Literal)
        if tree.is_string:
            return Literal(pa.scalar(tree.this, pa.string()), pa.string())
        return self.number(tree, str(tree.this))

    def hex_literal(self, tree: exp.Expr) -> Node:
        """Bytes. Of an odd number of digits the first byte has one, as in Spark."""
        digits = "0" * (len(tree.name) % 2) + tree.name
        try:
            return Literal(pa.scalar(bytes.fromhex(digits), pa.binary()), pa.binary())
        except ValueError as error:
            self.invalid(tree, str(error))

    def number(self, tree: exp.Expr, text: str) -> Node:
        try:
            return parse_number(text)
        except LiteralError as error:
            self.invalid(tree, str(error))

    def explicit_cast(self, tree: exp.Expr) -> Node:
        if tree.args.get("safe") or tree.args.get("format"):
            self.unsupported(tree, "TRY_CAST")
        node = self.resolve(tree.this)
        target = self.cast_type(tree)
        result = self.cast_to(tree, node, target)
        is_typed_literal = type(tree) is exp.Cast and isinstance(tree.this, exp.Literal) and tree.this.is_string
        if is_typed_literal and isinstance(result, Literal) and not result.value.is_valid:
            self.invalid(tree, f"{tree.this.name!r} is no {target}")
        return result

    def cast_type(self, tree: exp.Expr) -> pa.DataType:
        wanted = tree.args["to"]
        said = [parameter.name for parameter in wanted.expressions]
        if not all(text.isascii() and text.isdigit() for text in said):
            self.invalid(tree, f"expected whole numbers as the type's parameters, found ({', '.join(said)})")
        parameters = [int(text) for text in said]
        if wanted.this == exp.DType.DECIMAL:
            precision, scale = (*parameters, *(10, 0)[len(parameters) :])
            if not 0 <= scale <= precision <= DECIMAL_DIGITS_MAX or precision == 0:
                self.invalid(tree, f"decimal({precision},{scale}) is out of range")
            return pa.decimal128(precision, scale)
        if wanted.this not in TYPES or parameters:
            self.unsupported(tree, f"the type {wanted.sql(dialect='spark')}")
        return TYPES[wanted.this]

    def is_test(self, tree: exp.Expr) -> Node:
        operand = self.operand(tree.this)
        if isinstance(tree.expression, exp.Null):
            return IsNull(operand)
        if isinstance(tree.expression, exp.Boolean) and type_of(operand) == pa.bool_():
            return Compare("<=>", operand, self.resolve(tree.expression))
        self.unsupported(tree, "IS with anything but NULL, or TRUE and FALSE of a boolean,")

    def in_list(self, tree: exp.Expr) -> Node:
        if not tree.expressions or any(tree.args.get(k) for k in ("query", "unnest", "field")):
            self.unsupported(tree, "IN with a query")
        members = [tree.this, *tree.expressions]
        nodes = [self.operand(member) for member in members]
        target = listed_type(map(type_of, nodes))
        if target is None:
            self.invalid(tree, f"{', '.join(str(type_of(node)) for node in nodes)} have no common type")
        operand, *values = (self.cast_to(tree, node, target) for node in nodes)
        return InList(operand, tuple(values))

    def between(self, tree: exp.Expr) -> Node:
        """Each bound is compared on its own, with its own implicit cast."""
        if tree.args.get("symmetric"):
            self.unsupported(tree, "BETWEEN SYMMETRIC")
        operand = self.operand(tree.this)
        low, high = self.operand(tree.args["low"]), self.operand(tree.args["high"])
        return And(fold(self.compared(tree, ">=", operand, low)), fold(self.compared(tree, "<=", operand, high)))

    def like(self, tree: exp.Expr) -> Node:
        escape = "\\"
        if isinstance(tree, exp.Escape):
            escape, tree = tree.expression.name, tree.this
            if type(tree) is not exp.Like or len(escape) != 1:
                self.unsupported(tree, "such an ESCAPE")

        is_regex = type(tree) is exp.RegexpLike
        operand = self.cast_to(tree, self.operand(tree.this), pa.string())
        pattern = self.cast_to(tree, self.operand(tree.expression), pa.string())
        if not isinstance(pattern, Literal):
            self.unsupported(tree, "a pattern that is not a literal")
        if not pattern.value.is_valid:
            return Compare("=", operand, pattern)
        try:
            if is_regex:
                node: Node = _probed(Match(operand, parse_java_regex(pattern.value.as_py())))
            else:
                like = parse_like(pattern.value.as_py(), escape)
                node = _probed(Match(operand, like.pattern, like.prefix))
        except (PatternError, pa.ArrowInvalid) as error:
            if is_regex:
                self.unsupported(tree, f"in the pattern, {error},")
            self.invalid(tree, str(error))
        return Not(node) if tree.args.get("negate") else node


def _probed(node: Match) -> Match:
    """The node, after its pattern was compiled once: a pattern that RE2 cannot compile fails here, not in a task."""
    fold(Match(Literal(pa.scalar("", pa.string()), pa.string()), node.pattern))
    return node


def _type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind


def _fits_wide_decimal(operator: str, left: pa.DataType, right: pa.DataType, result: pa.DataType) -> bool:
    """Whether the exact result fits into the 76 digits that Arrow's widest decimal has."""
    if operator == "*":
        return bool(left.precision + right.precision + 1 <= 76)
    if operator in ("+", "-"):
        whole = max(left.precision - left.scale, right.precision - right.scale)
        return bool(whole + max(left.scale, right.scale) + 1 <= 76)
    scale = division_scale(left, right, result)
    precision = left.precision + scale - left.scale
    quotient_scale = max(4, scale + right.precision - right.scale + 1)
    return bool(precision - scale + right.scale + quotient_scale <= 76)


_HANDLERS: dict[type[exp.Expr], Callable[[_Resolver, exp.Expr], Node]] = {
    exp.Alias: lambda r, tree: r.invalid(tree, f"expected an operator, found {tree.alias!r}"),
    exp.Paren: lambda r, tree: r.resolve(tree.this),
    exp.Case: lambda r, tree: r.resolve(as_ifs(tree)),
    exp.Nullif: lambda r, tree: r.resolve(as_ifs(tree)),
    exp.And: lambda r, tree: And(r.boolean(tree.this), r.boolean(tree.expression)),
    exp.Or: lambda r, tree: Or(r.boolean(tree.this), r.boolean(tree.expression)),
    exp.Not: lambda r, tree: Not(r.boolean(tree.this)),
    exp.Null: lambda r, tree: Literal(pa.scalar(None, pa.null()), pa.null()),
    exp.Boolean: lambda r, tree: Literal(pa.scalar(bool(tree.this)), pa.bool_()),
    exp.RawString: lambda r, tree: Literal(pa.scalar(tree.name, pa.string()), pa.string()),
    exp.HexString: _Resolver.hex_literal,
    exp.Literal: _Resolver.literal,
    exp.Column: _Resolver.column,
    exp.Dot: _Resolver.column,
    exp.Is: _Resolver.is_test,
    exp.In: _Resolver.in_list,
    exp.Between: _Resolver.between,
    exp.Like: _Resolver.like,
    exp.Escape: _Resolver.like,
    exp.RegexpLike: _Resolver.like,
    exp.Cast: _Resolver.explicit_cast,
    exp.TryCast: _Resolver.explicit_cast,
    exp.Anonymous: _Resolver.anonymous,
}
