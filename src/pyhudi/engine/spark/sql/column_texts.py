"""Columns of PySpark as SQL text, for statements that are carried out by their texts.

A classic Column of PySpark 4 is a tree of nodes in the JVM. A column of a DataFrame (`rows.name`) is one of its
attributes there, and in text a name behind the alias of the DataFrame.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyspark
import pyspark.sql.functions as f
from pyspark.sql import Column, DataFrame, SparkSession

from pyhudi.engine.spark.java import elements
from pyhudi.engine.spark.sql.gateway import scala_object, value_of
from pyhudi.errors import Invalid, Unsupported
from pyhudi.sql.expression_texts import call_text, case_text, cast_text, field_text, no_text
from pyhudi.sql.words import quoted_name, quoted_text

_PLAIN_TEXT: Final = re.compile(r"[^\\'$]*")
_TEXTS_AS_WRITTEN: Final = "spark.sql.parser.escapedStringLiterals"
"""Where `\\` in a text in quotes is no escape."""

_CONVERTER: Final = "org.apache.spark.sql.classic.ColumnNodeToExpressionConverter"


@dataclass(frozen=True, slots=True)
class ColumnTexts:
    """Columns as texts of one statement. `alias`: of the DataFrame whose columns may be among them.

    `text` raises: Unsupported for a column that has no text, such as one of a Python function.
    """

    alias: str
    text: Callable[[Column], str]


def classic_texts(spark: SparkSession, rows: DataFrame | None, *, alias: str, taken: str, what: str) -> ColumnTexts:
    """Texts of classic columns, and of those of `rows`. `what`: the call that takes them, for errors.

    `alias`: for rows that have none of their own (`rows.alias("source")`), or the one that is `taken`.
    """
    output = [] if rows is None else elements(rows._jdf.queryExecution().analyzed().output())
    own = {tuple(map(str, elements(one.qualifier())))[-1:] for one in output}
    (named,) = own if len(own) == 1 else [()]
    if named and named[0].lower() != taken.lower():
        alias = named[0]
    reader = _Reader(spark, alias, {int(one.exprId().id()): str(one.name()) for one in output}, what)
    return ColumnTexts(alias, reader.column)


def literal(value: Any) -> Column:
    """A value as a column. Raises: Invalid for one that Spark has no literal for."""
    try:
        return f.lit(value)
    except Exception as error:  # PySpark and Py4J have several
        raise Invalid(f"value {value!r:.80}: expected one that Spark has a literal for ({error})") from error


def text_literal(spark: SparkSession, text: str) -> str:
    """A text as the session's parser reads it. It is no variable where it has a `${name}`."""
    if spark.conf.get(_TEXTS_AS_WRITTEN, "false") == "true" and not _PLAIN_TEXT.fullmatch(text):
        return f"CAST(X'{text.encode().hex()}' AS STRING)"
    return quoted_text(text).replace("$", "\\u0024")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads nodes. `attributes`: the names of the DataFrame's columns by the numbers of their attributes."""

    spark: SparkSession
    alias: str
    attributes: Mapping[int, str]
    what: str

    def column(self, column: Column) -> str:
        if not isinstance(column, Column):
            raise Invalid(f"{self.what}: expected a Column, such as expr('…') or lit(…), found {column!r}")
        made: Any = column._jc
        if pyspark.__version__.startswith("3."):  # its Columns are expressions of Catalyst
            return f"({made.expr().sql()})"
        return self.text(made.node())

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
            return text_literal(self.spark, value)
        try:
            literal = scala_object(self.spark, _CONVERTER).apply(node)
        except Exception as error:  # PySpark and Py4J have several
            raise Invalid(f"{self.what}: value {value}: expected one that Spark has a literal for") from error
        if literal.dataType().typeName() == "timestamp" and literal.value() is not None:
            return f"timestamp_micros({literal.value()})"  # a day may have an hour twice; TIMESTAMP may mean no zone
        return str(literal.sql())

    def _name(self, node: Any) -> str:
        return ".".join(quoted_name(str(part)) for part in elements(node.nameParts()))

    def _attribute(self, node: Any) -> str:
        expression = node.expression()
        is_attribute = _kind(expression) == "AttributeReference"
        name = self.attributes.get(int(expression.exprId().id())) if is_attribute else None
        if name is None:
            raise self._refused(node)
        return f"{quoted_name(self.alias)}.{quoted_name(name)}"

    def _function(self, node: Any) -> str:
        name, given = str(node.functionName()), elements(node.arguments())
        arguments = [self._field(one) if name.lower() == "struct" else self.text(one) for one in given]
        is_plain = not node.isDistinct() and not node.isInternal()
        text = call_text(name, arguments) if is_plain else None
        if text is None:
            raise self._refused(node)
        return text

    def _alias(self, node: Any) -> str:
        """Of a part of an expression a name says nothing."""
        return self.text(node.child())

    def _field(self, node: Any) -> str:
        return field_text(self.text(node), list(map(str, elements(node.name()))) if _kind(node) == "Alias" else [])

    def _cast(self, node: Any) -> str:
        mode = value_of(node.evalMode())
        is_try = mode is not None and "Try" in _kind(mode)
        return cast_text(self.text(node.child()), str(node.dataType().sql()), is_try=is_try)

    def _case(self, node: Any) -> str:
        branches = [(self.text(one._1()), self.text(one._2())) for one in elements(node.branches())]
        otherwise = value_of(node.otherwise())
        return case_text(branches, None if otherwise is None else self.text(otherwise))

    def _extracted(self, node: Any) -> str:
        return f"{self.text(node.child())}[{self.text(node.extraction())}]"

    def _refused(self, node: Any) -> Unsupported:
        return no_text(node.sql(), what=self.what)


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
