"""Columns of PySpark as SQL text, for statements that are carried out by their texts.

A classic Column of PySpark 4 is a tree of nodes in the JVM. A column of a DataFrame (`rows.name`) is one of its
attributes there, and in text a name behind the alias of the DataFrame.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyspark
from pyspark.sql import Column, DataFrame, SparkSession

from pyhudi.engine.spark.sql.gateway import list_of, scala_object, value_of
from pyhudi.errors import Unsupported
from pyhudi.sql.call_texts import call_text
from pyhudi.sql.words import quoted_name, quoted_text

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
    output = [] if rows is None else list_of(rows._jdf.queryExecution().analyzed().output())
    own = {tuple(map(str, list_of(one.qualifier())))[-1:] for one in output}
    (named,) = own if len(own) == 1 else [()]
    if named and named[0].lower() != taken.lower():
        alias = named[0]
    reader = _Reader(spark, alias, {int(one.exprId().id()): str(one.name()) for one in output}, what)
    return ColumnTexts(alias, reader.column)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads nodes. `attributes`: the names of the DataFrame's columns by the numbers of their attributes."""

    spark: SparkSession
    alias: str
    attributes: Mapping[int, str]
    what: str

    def column(self, column: Column) -> str:
        made: Any = column._jc
        if pyspark.__version__.startswith("3."):  # its Columns are expressions of Catalyst
            return f"({made.expr().sql()})"
        node = made.node()
        return self.text(node.child() if _kind(node) == "Alias" else node)

    def text(self, node: Any) -> str:
        kind = _kind(node)
        if kind not in _READERS:
            raise self._refused(node)
        return _READERS[kind](self, node)

    def _expression(self, node: Any) -> str:
        return f"({node.expression()})"

    def _literal(self, node: Any) -> str:
        value = node.value()
        if isinstance(value, str):
            return quoted_text(value).replace("$", "\\u0024")  # `${name}` would be a variable
        return str(scala_object(self.spark, _CONVERTER).apply(node).sql())

    def _name(self, node: Any) -> str:
        return ".".join(quoted_name(str(part)) for part in list_of(node.nameParts()))

    def _attribute(self, node: Any) -> str:
        expression = node.expression()
        is_attribute = _kind(expression) == "AttributeReference"
        name = self.attributes.get(int(expression.exprId().id())) if is_attribute else None
        if name is None:
            raise self._refused(node)
        return f"{quoted_name(self.alias)}.{quoted_name(name)}"

    def _function(self, node: Any) -> str:
        arguments = [self.text(one) for one in list_of(node.arguments())]
        is_plain = not node.isDistinct() and not node.isInternal()
        text = call_text(str(node.functionName()), arguments) if is_plain else None
        if text is None:
            raise self._refused(node)
        return text

    def _alias(self, node: Any) -> str:
        (name,) = list_of(node.name())
        return f"{self.text(node.child())} AS {quoted_name(str(name))}"

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
