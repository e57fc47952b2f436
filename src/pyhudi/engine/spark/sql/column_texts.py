"""Columns of PySpark as SQL text, for statements that are carried out by their texts.

A classic Column of PySpark 4 is a tree of nodes in the JVM. A column of a DataFrame (`rows.name`) is one of its
attributes there, and in text a name behind the alias of the DataFrame.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyspark
from pyspark.sql import Column, DataFrame, SparkSession

from pyhudi.engine.spark.sql.gateway import list_of, scala_object, value_of
from pyhudi.errors import Invalid, Unsupported
from pyhudi.sql.words import quoted_name, quoted_text

_CONVERTER: Final = "org.apache.spark.sql.classic.ColumnNodeToExpressionConverter"
_BETWEEN: Final[Mapping[str, str]] = {
    **{sign: sign for sign in ("=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&", "|", "^")},
    "==": "=", "and": "AND", "or": "OR", "like": "LIKE", "ilike": "ILIKE", "rlike": "RLIKE",
}  # fmt: skip
"""Functions that stand between their two arguments."""

_BEHIND: Final[Mapping[str, str]] = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_BEFORE: Final[Mapping[str, str]] = {"!": "NOT", "not": "NOT", "negative": "-", "~": "~"}
_PLAIN_NAME: Final = re.compile(r"\w+", re.ASCII)
_PLAIN_TEXT: Final = re.compile(r"[^\\'$]*")
_TEXTS_AS_WRITTEN: Final = "spark.sql.parser.escapedStringLiterals"
"""Where `\\` in a text in quotes is no escape."""


@dataclass(frozen=True, slots=True)
class FrameNames:
    """How columns of a DataFrame are named in a text. `attributes`: their names by the number of their attribute."""

    alias: str
    attributes: Mapping[int, str]


def frame_names(rows: DataFrame, alias: str, *, taken: str) -> FrameNames:
    """The names of a classic DataFrame. `alias`: for one that has none of its own (`rows.alias("source")`), or the one
    that is taken.
    """
    output = list_of(rows._jdf.queryExecution().analyzed().output())
    own = {tuple(map(str, list_of(one.qualifier())))[-1:] for one in output}
    (named,) = own if len(own) == 1 else [()]
    is_free = bool(named) and named[0].lower() != taken.lower()
    return FrameNames(named[0] if is_free else alias, {int(one.exprId().id()): str(one.name()) for one in output})


def column_text(spark: SparkSession, column: Column, names: FrameNames, *, what: str) -> str:
    """A column as SQL text. Raises: Unsupported for what has none, such as a Python function; Invalid for no Column."""
    if not isinstance(column, Column):
        raise Invalid(f"{what}: expected a Column, such as expr('…') or lit(…), found {column!r}")
    made: Any = column._jc
    if pyspark.__version__.startswith("3."):  # its Columns are expressions of Catalyst
        return f"({made.expr().sql()})"
    reader = _Reader(spark, names, what)
    return reader.text(made.node())


@dataclass(frozen=True, slots=True)
class _Reader:
    spark: SparkSession
    names: FrameNames
    what: str

    def text(self, node: Any) -> str:
        kind = _kind(node)
        if kind not in _READERS:
            raise self._refused(node)
        return _READERS[kind](self, node)

    def _expression(self, node: Any) -> str:
        said = str(node.expression())
        parser = self.spark._jsparkSession.sessionState().sqlParser()
        parsed = parser.parseExpression(said)  # Spark's own error for what is none
        if _kind(parsed) in ("Alias", "UnresolvedAlias", "MultiAlias"):
            raise Unsupported(f"{self.what}: {said}: expected an expression without a name (AS …)")
        return f"({said}\n)"  # a comment may end it

    def _literal(self, node: Any) -> str:
        value = node.value()
        if isinstance(value, str):
            return self._quoted(value)
        literal = scala_object(self.spark, _CONVERTER).apply(node)
        if literal.dataType().typeName() == "timestamp" and literal.value() is not None:
            return f"timestamp_micros({literal.value()})"  # a day may have an hour twice; TIMESTAMP may mean no zone
        return str(literal.sql())

    def _quoted(self, text: str) -> str:
        if self.spark.conf.get(_TEXTS_AS_WRITTEN, "false") == "true" and not _PLAIN_TEXT.fullmatch(text):
            return f"CAST(X'{text.encode().hex()}' AS STRING)"
        return quoted_text(text).replace("$", "\\u0024")  # `${name}` would be a variable

    def _name(self, node: Any) -> str:
        return ".".join(quoted_name(str(part)) for part in list_of(node.nameParts()))

    def _attribute(self, node: Any) -> str:
        expression = node.expression()
        is_attribute = _kind(expression) == "AttributeReference"
        name = self.names.attributes.get(int(expression.exprId().id())) if is_attribute else None
        if name is None:
            raise self._refused(node)
        return f"{quoted_name(self.names.alias)}.{quoted_name(name)}"

    def _function(self, node: Any) -> str:
        name, called = str(node.functionName()), str(node.functionName()).lower()
        given = list_of(node.arguments())
        arguments = [self._field(one) if called == "struct" else self.text(one) for one in given]
        if called in _BETWEEN and len(arguments) == 2:
            return f"({arguments[0]} {_BETWEEN[called]} {arguments[1]})"
        if called in _BEHIND and len(arguments) == 1:
            return f"({arguments[0]} {_BEHIND[called]})"
        if called in _BEFORE and len(arguments) == 1:
            return f"({_BEFORE[called]} {arguments[0]})"
        if called == "in" and len(arguments) > 1:
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
        if node.isDistinct() or node.isInternal() or not _PLAIN_NAME.fullmatch(name):
            raise self._refused(node)
        return f"{name}({', '.join(arguments)})"

    def _alias(self, node: Any) -> str:
        """Of a part of an expression a name says nothing."""
        return self.text(node.child())

    def _field(self, node: Any) -> str:
        """An argument of `struct`: its name is that of a field."""
        names = list_of(node.name()) if _kind(node) == "Alias" else []
        return self.text(node) + (f" AS {quoted_name(str(names[0]))}" if len(names) == 1 else "")

    def _cast(self, node: Any) -> str:
        mode = value_of(node.evalMode())
        cast = "TRY_CAST" if mode is not None and "Try" in _kind(mode) else "CAST"
        return f"{cast}({self.text(node.child())} AS {node.dataType().sql()})"

    def _case(self, node: Any) -> str:
        whens = [f"WHEN {self.text(one._1())} THEN {self.text(one._2())}" for one in list_of(node.branches())]
        otherwise = value_of(node.otherwise())
        end = "" if otherwise is None else f" ELSE {self.text(otherwise)}"
        return f"CASE {' '.join(whens)}{end} END"

    def _extracted(self, node: Any) -> str:
        return f"{self.text(node.child())}[{self.text(node.extraction())}]"

    def _refused(self, node: Any) -> Unsupported:
        return Unsupported(
            f"{self.what}: a column that has no SQL text: {node.sql()}; write it as expr('…'), or use "
            "spark.sql('MERGE INTO …')"
        )


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName()).removesuffix("$")


_READERS: Final[Mapping[str, Callable[[_Reader, Any], str]]] = {
    "SqlExpression": _Reader._expression,
    "Literal": _Reader._literal,
    "UnresolvedAttribute": _Reader._name,
    "ExpressionColumnNode": _Reader._attribute,
    "UnresolvedFunction": _Reader._function,
    "Alias": _Reader._alias,
    "Cast": _Reader._cast,
    "CaseWhenOtherwise": _Reader._case,
    "UnresolvedExtractValue": _Reader._extracted,
}
