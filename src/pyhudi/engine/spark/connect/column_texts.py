"""Columns of Spark Connect as SQL text: trees of Python objects, as classic ones are trees in the JVM."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as t

from pyhudi.engine.spark.connect.texts import literal_text
from pyhudi.engine.spark.sql.column_texts import ColumnTexts, text_literal
from pyhudi.errors import Invalid, Unsupported
from pyhudi.sql.expression_texts import call_text, case_text, cast_text, field_text, no_text
from pyhudi.sql.words import Cursor, quoted_name, quoted_text

_AS_WRITTEN: Final = (t.ByteType, t.ShortType, t.LongType, t.FloatType)
"""Types of numbers whose literals would be of another."""


def connect_texts(spark: SparkSession, rows: DataFrame | None, *, alias: str, taken: str, what: str) -> ColumnTexts:
    """As `classic_texts`."""
    plan: Any = None if rows is None else rows._plan
    own = plan._alias if _kind(plan) == "SubqueryAlias" else ""
    if own and own.lower() != taken.lower():
        alias = own
    plans = set()
    while plan is not None:
        plans.add(plan._plan_id)
        plan = plan._child
    return ColumnTexts(alias, _Reader(spark, alias, frozenset(plans), what).column)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads expressions. `plans`: those of the DataFrame, by whose numbers columns name it."""

    spark: SparkSession
    alias: str
    plans: frozenset[int]
    what: str

    def column(self, column: Column) -> str:
        made: Any = column
        if not hasattr(made, "_expr"):
            raise Invalid(f"{self.what}: expected a Column, such as expr('…') or lit(…), found {column!r}")
        return self.text(made._expr)

    def text(self, expression: Any) -> str:
        kind = _kind(expression)
        if kind not in _READERS:
            raise self._refused(expression)
        return _READERS[kind](self, expression)

    def _sql(self, expression: Any) -> str:
        return f"({expression._expr}\n)"  # a comment may end it

    def _literal(self, expression: Any) -> str:
        kind = expression._dataType
        if isinstance(kind, t.ArrayType):
            raise self._refused(expression)
        if expression._value is not None and isinstance(kind, t.TimestampType):  # a moment, whatever the zones are
            return f"timestamp_micros({expression._value}L)"
        value = None if expression._value is None else kind.fromInternal(expression._value)
        if isinstance(value, str):
            return text_literal(self.spark, value)
        if value is not None and isinstance(kind, t.TimestampNTZType):
            return f"TIMESTAMP_NTZ {quoted_text(value.isoformat(sep=' '))}"
        text = literal_text(value)
        return cast_text(text, kind.simpleString(), is_try=False) if isinstance(kind, _AS_WRITTEN) else text

    def _column(self, expression: Any) -> str:
        try:
            name = quoted_name(*Cursor(expression._unparsed_identifier).name())
        except Invalid:
            raise self._refused(expression) from None
        if expression._plan_id is None:
            return name
        if expression._plan_id not in self.plans:
            raise self._refused(expression)
        return f"{quoted_name(self.alias)}.{name}"

    def _function(self, expression: Any) -> str:
        name, given = str(expression._name), expression._args
        arguments = [self._field(one) if name.lower() == "struct" else self.text(one) for one in given]
        text = None if getattr(expression, "_is_distinct", False) else call_text(name, arguments)
        if text is None:
            raise self._refused(expression)
        return text

    def _alias(self, expression: Any) -> str:
        """Of a part of an expression a name says nothing."""
        return self.text(expression._child)

    def _field(self, expression: Any) -> str:
        return field_text(self.text(expression), expression._alias if _kind(expression) == "ColumnAlias" else [])

    def _cast(self, expression: Any) -> str:
        kind = expression._data_type
        is_try = "try" in str(expression._eval_mode or "").lower()
        said = kind if isinstance(kind, str) else kind.simpleString()
        return cast_text(self.text(expression._expr), said, is_try=is_try)

    def _case(self, expression: Any) -> str:
        branches = [(self.text(when), self.text(then)) for when, then in expression._branches]
        otherwise = expression._else_value
        return case_text(branches, None if otherwise is None else self.text(otherwise))

    def _extracted(self, expression: Any) -> str:
        return f"{self.text(expression._child)}[{self.text(expression._extraction)}]"

    def _refused(self, expression: Any) -> Unsupported:
        return no_text(expression, what=self.what)


def _kind(expression: Any) -> str:
    return type(expression).__name__


_READERS: Final[Mapping[str, Callable[[_Reader, Any], str]]] = {
    "SQLExpression": _Reader._sql,
    "LiteralExpression": _Reader._literal,
    "ColumnReference": _Reader._column,
    "UnresolvedFunction": _Reader._function,
    "CallFunction": _Reader._function,
    "ColumnAlias": _Reader._alias,
    "CastExpression": _Reader._cast,
    "CaseWhen": _Reader._case,
    "UnresolvedExtractValue": _Reader._extracted,
}
