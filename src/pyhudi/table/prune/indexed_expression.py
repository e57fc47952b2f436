"""Expressions over one column that an index can be built on, in Apache Hudi's terms and as a predicate has them.

Spec: format/indexes.md section 11. Seen: 1.0.2 and 1.2.0 know one function of one column. The function's other
arguments are options of the index.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.told_names import listed
from pyhudi.predicate.casts import can_cast
from pyhudi.predicate.evaluate import fold
from pyhudi.predicate.functions.calls import call_of
from pyhudi.predicate.nodes import Call, Cast, Column, Literal, Node, columns_in, type_of
from pyhudi.predicate.parse import told_as
from pyhudi.predicate.refusals import NotBuilt, SignatureError
from pyhudi.predicate.types import canonical_type, is_integer

IDENTITY: Final = "identity"
EXPRESSION_OPTION: Final = "expr"

_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys((IDENTITY, "lower", "upper", "length"), ()),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), ("trimString",)),
    **dict.fromkeys(("year", "month", "day", "hour", "to_date", "unix_timestamp"), ()),
    **dict.fromkeys(("from_unixtime", "date_format"), ("format",)),
    **dict.fromkeys(("date_add", "date_sub"), ("days",)),
    "substring": ("pos", "len"),
    "regexp_extract": ("pattern", "idx"),
    "regexp_replace": ("pattern", "replacement"),
}
"""Function -> the options that give its further arguments, in their order."""
_NOT_COMPUTED: Final[Mapping[str, str]] = {
    "split": "its values are lists, of which an index keeps neither bounds nor filters",
    "to_timestamp": "its values are times, of which an index keeps no bounds here; to_date or date_format can be",
}
"""Functions that Apache Hudi can index too, and why there is no such index here."""
_NUMBERS: Final = frozenset({"days", "pos", "len", "idx"})
_MAY_LACK: Final = frozenset(
    {("from_unixtime", "format"), *((trim, "trimString") for trim in ("trim", "ltrim", "rtrim"))}
)
_SIDES: Final[Mapping[str, str]] = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}


@dataclass(frozen=True, slots=True)
class IndexedExpression:
    """`function` of `column`, both as Apache Hudi calls them. `options`: the function's other arguments, by name."""

    function: str
    column: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The expression in Spark SQL."""
        if self.function == IDENTITY:
            return self.column
        given, names = self.options, argument_options(self.function)
        in_order = [*(name for name in names if name in given), *(name for name in given if name not in names)]
        rest = [given[name] if name in _NUMBERS else _quoted(given[name]) for name in in_order]
        if rest and self.function in _SIDES:
            return f"trim({_SIDES[self.function]} {rest[0]} FROM {self.column})"
        return f"{self.function}({', '.join([self.column, *rest])})"


def argument_options(function: str) -> tuple[str, ...]:
    """The options that give a function's arguments after the column, in the order of the arguments."""
    return _OPTIONS.get(function, ())


def expression_node(expression: IndexedExpression, schema: pa.Schema) -> Node:
    """The expression as a node over a table's columns, in the form that a predicate with this expression has.

    Raises: Invalid for an unknown column, function or option, or arguments that do not fit; Unsupported for functions
    that Apache Hudi computes and this package does not.
    """
    if expression.function not in _OPTIONS and expression.function not in _NOT_COMPUTED:
        have = ", ".join(sorted([*_OPTIONS, *_NOT_COMPUTED]))
        raise Invalid(f"index on {expression.text}: expected a function that an index can be of: {have}")

    if expression.column not in schema.names:
        have = listed(schema.names) or "none yet"
        raise Invalid(
            f"index on {expression.text}: no column '{expression.column}' in the table, whose columns are: {have}"
        )

    names = argument_options(expression.function)
    unknown = sorted(set(expression.options) - set(names))
    if expression.function in _NOT_COMPUTED:
        raise Unsupported(
            f"index on {expression.text}: {expression.function} cannot be indexed: {_NOT_COMPUTED[expression.function]}"
        )
    if unknown:
        raise Unsupported(
            f"index on {expression.text}: {expression.function} with {', '.join(unknown)} is not computed for an "
            "index here"
        )

    missing = [
        name for name in names if name not in expression.options and (expression.function, name) not in _MAY_LACK
    ]
    if missing:
        raise Invalid(f"index on {expression.text}: expected the option {', '.join(missing)} of {expression.function}")

    column = Column((expression.column,), canonical_type(schema.field(expression.column).type))
    if expression.function == IDENTITY:
        return column

    literals = [_literal(expression, name) for name in names if name in expression.options]
    try:
        return fold(call_of(expression.function, (column, *literals), _cast_to))
    except SignatureError as error:
        raise Invalid(f"index on {expression.text}: {error}") from error
    except NotBuilt as error:
        raise Unsupported(f"index on {expression.text}: {error} is not computed for an index here") from error


def parse_indexed_expression(text: str, schema: pa.Schema) -> IndexedExpression:
    """The indexable expression that a text in Spark SQL stands for.

    Raises: as `expression_node`; Unsupported for an expression that is not one function of one column.
    """
    from pyhudi.predicate.resolve import parse_value  # imports sqlglot, which only a new index needs

    with told_as("index on"):
        node = parse_value(text, schema)

    found = _described(node)
    if found is None or expression_node(found, schema) != node:
        raise Unsupported(
            f"index on {text!r}: Apache Hudi knows no index on such an expression; expected a function of one column, "
            f"one of {', '.join(sorted(_OPTIONS))}"
        )
    return found


def _described(node: Node) -> IndexedExpression | None:
    columns = {column.path for column in columns_in(node)}
    if len(columns) != 1 or len(*columns) != 1:
        return None

    ((column,),) = columns
    match node:
        case Column():
            return IndexedExpression(IDENTITY, column)
        case Cast() if node.type == pa.date32():
            return IndexedExpression("to_date", column)
        case Call() if all(isinstance(one, Literal) and one.value.is_valid for one in node.arguments[1:]):
            names = _OPTIONS.get(node.name)
            texts = [str(one.value.as_py()) for one in node.arguments[1:] if isinstance(one, Literal)]
            if names is None or len(names) < len(texts):
                return None
            if any((node.name, name) not in _MAY_LACK for name in names[len(texts) :]):
                return None
            return IndexedExpression(node.name, column, dict(zip(names, texts, strict=False)))
    return None


def _quoted(text: str) -> str:
    """A text as a literal in Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _cast_to(node: Node, target: pa.DataType) -> Node:
    source = type_of(node)
    if source == target:
        return node
    if not can_cast(source, target):
        raise NotBuilt(f"a cast of {source} to {target}")
    return fold(Cast(node, target))


def _literal(expression: IndexedExpression, name: str) -> Literal:
    text = expression.options[name]
    if name not in _NUMBERS:
        return Literal(pa.scalar(text, pa.string()), pa.string())
    try:
        return Literal(pa.scalar(int(text), pa.int32()), pa.int32())
    except (ValueError, OverflowError, pa.ArrowInvalid) as error:
        raise Invalid(f"index on {expression.text}: expected a whole number as {name}, found '{text}'") from error


def has_text(kind: pa.DataType) -> bool:
    """Whether Apache Hudi spells a value of this type alike when it fills a Bloom filter and when it looks one up."""
    return kind == pa.string() or is_integer(kind)


def has_order(kind: pa.DataType) -> bool:
    """Whether an index keeps bounds for values of this type. Not for floats, which have NaN; others get rounded."""
    return kind in (pa.string(), pa.date32()) or is_integer(kind)
