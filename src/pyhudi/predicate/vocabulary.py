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
ARGUMENTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.RegexpExtract: ("this", "expression", "group"),
    exp.If: ("this", "true", "false"),
    exp.RegexpReplace: ("this", "expression", "replacement"),
}
"""Functions whose arguments sqlglot keeps under other names than usual."""
NOT_BUILT_ARGUMENTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.RegexpReplace: ("position", "occurrence", "modifiers"),
    exp.RegexpExtract: ("position", "occurrence", "parameters"),
    exp.Trim: ("collation",),
}
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
