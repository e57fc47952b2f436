"""What sqlglot's node classes mean in a predicate: operators, functions, types."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from pyhudi.predicate.nodes import ArithmeticOperator, ComparisonOperator
from pyhudi.predicate.types import TIMESTAMP, TIMESTAMP_NTZ

COMPARISONS: dict[type[exp.Expr], ComparisonOperator] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
INEQUALITIES: dict[type[exp.Expr], ComparisonOperator] = {exp.NEQ: "=", exp.NullSafeNEQ: "<=>"}
ARITHMETIC: dict[type[exp.Expr], ArithmeticOperator] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
PREDICATES = (exp.Predicate, exp.Not, exp.Escape)
FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Length: "length",
    exp.Trim: "trim",
    exp.RegexpExtract: "regexp_extract",
    exp.RegexpReplace: "regexp_replace",
    exp.Substring: "substring",
    exp.Concat: "concat",
    exp.DPipe: "concat",
    exp.Coalesce: "coalesce",
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Quarter: "quarter",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.Abs: "abs",
    exp.Neg: "negate",
    exp.StartsWith: "startswith",
    exp.EndsWith: "endswith",
    exp.Contains: "contains",
    exp.IsNan: "isnan",
    exp.If: "if",
    exp.Greatest: "greatest",
    exp.Least: "least",
}
_ARGUMENTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.RegexpExtract: ("this", "expression", "group"),
    exp.If: ("this", "true", "false"),
    exp.RegexpReplace: ("this", "expression", "replacement"),
    exp.Substring: ("this", "start", "length"),
}
"""Functions whose arguments sqlglot keeps under other names than usual."""
_USUAL_ARGUMENTS = ("this", "expression", "expressions")
_READ_BESIDES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Trim: ("position",),
    exp.Literal: ("is_string",),
    exp.Column: ("table", "db", "catalog"),
    exp.Case: ("ifs", "default"),
    exp.Cast: ("to", "safe", "format"),
    exp.TryCast: ("to", "safe", "format"),
    exp.In: ("query", "unnest", "field"),
    exp.Between: ("low", "high", "symmetric"),
    exp.Like: ("negate",),
    exp.Alias: ("alias",),
}
"""What the resolver reads of an expression beside its arguments."""
_OF_THE_DIALECT = ("safe", "typed", "ignore_nulls", "null_if_pos_overflow")
"""What sqlglot notes of Spark, whatever the text says."""
TYPES: dict[exp.DType, pa.DataType] = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}


def arguments_of(tree: exp.Expr) -> list[exp.Expr]:
    """The arguments in order, as in the text. sqlglot wraps those of the date functions in a node of its own."""
    values: list[exp.Expr] = []
    for key in _ARGUMENTS.get(type(tree), _USUAL_ARGUMENTS):
        value = tree.args.get(key)
        values.extend(value if isinstance(value, list) else [value] if value is not None else [])
    return [value.this if isinstance(value, exp.TsOrDsToDate) else value for value in values]


def has_unread(tree: exp.Expr) -> bool:
    """Whether the text says something of the expression that the resolver does not read, such as a regex's flag."""
    kind = type(tree)
    read = (*_ARGUMENTS.get(kind, _USUAL_ARGUMENTS), *_READ_BESIDES.get(kind, ()), *_OF_THE_DIALECT)
    return any(value and key not in read for key, value in tree.args.items())
