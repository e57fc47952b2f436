"""Table functions of Spark SQL that Python answers: each gives the plan of a DataFrame when a query is analysed."""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.java import java_class
from pyhudi.engine.spark.sql.gateway import (
    CATALYST,
    Function,
    active_session,
    scala_object,
    start_callbacks,
)
from pyhudi.errors import Invalid

Answer: TypeAlias = Callable[[SparkSession, Sequence[object], Mapping[str, object]], DataFrame]
"""The rows of a call, by the session, the arguments by position, and those by name."""

_REGISTRY = f"{CATALYST}.analysis.TableFunctionRegistry"

_FAILURES_MAX = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_answered = threading.local()
_failures: deque[Exception] = deque(maxlen=_FAILURES_MAX)
"""What calls failed with. Spark tells of it by a text, on another thread than that of the call."""

_registered: dict[str, Function] = {}


def register_table_function(spark: SparkSession, name: str, answer: Answer) -> None:
    """Make `name(…)` a table function of this session, of later ones, and of permanent views.

    Only in the session's registry, views that name it would fail.
    """
    start_callbacks(spark)

    def plan(arguments: Any) -> Any:
        session = active_session(spark)
        try:
            positional, named = _literals(session, arguments)
            found = answer(session, positional, named)._jdf.queryExecution().analyzed()
        except Exception as error:
            _failures.append(error)
            raise
        _answered.last = found  # py4j would let the JVM drop it before the JVM has taken it
        return found

    function = _registered[name] = Function(plan, name)
    builtin = scala_object(spark, _REGISTRY).builtin()
    identifier = _identifier(spark, builtin, name)
    info = java_class(spark, f"{CATALYST}.expressions.ExpressionInfo")(
        "pyhudi", None, name, "pyhudi", "", "", "", "table_funcs", "1.0.0", "", "built-in"
    )
    for registry in (builtin, spark._jsparkSession.sessionState().tableFunctionRegistry()):
        registry.registerFunction(identifier, info, function)


def failure_in(told: str) -> Exception | None:
    """The error of a table function that a text of Spark tells of, or None."""
    if "Python Proxy" not in told:
        return None
    return next((error for error in reversed(_failures) if str(error) and str(error).splitlines()[0] in told), None)


def _identifier(spark: SparkSession, builtin: Any, name: str) -> Any:
    """The name as the registry's own functions have theirs: in some releases with three parts."""
    kind = java_class(spark, f"{CATALYST}.FunctionIdentifier")
    first = builtin.listFunction().head()
    if first.database().isDefined():
        return kind(name, first.database(), first.catalog())
    return kind(name)


def _literals(spark: SparkSession, arguments: Any) -> tuple[list[object], dict[str, object]]:
    positional: list[object] = []
    named: dict[str, object] = {}
    iterator = arguments.iterator()
    while iterator.hasNext():
        expression = iterator.next()
        if expression.getClass().getSimpleName() == "NamedArgumentExpression":
            named[expression.key().lower()] = _literal(spark, expression.value())
        else:
            positional.append(_literal(spark, expression))
    return positional, named


def moment_of(micros: int) -> datetime:
    """A moment by its microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=micros)


def _literal(spark: SparkSession, expression: Any) -> object:
    """The value of an argument: a moment, date, number or boolean as it is, anything else as text. A moment has UTC as
    its zone, or none where Spark's has none.

    Raises: Invalid for one that only a query tells.
    """
    try:
        value = _evaluable(spark, expression).eval(None)
    except (PySparkException, Py4JJavaError) as error:
        told = f": {str(error).splitlines()[0]}" if isinstance(error, PySparkException) else ""
        raise Invalid(
            f"{expression.sql()}: expected a value that is known before the query runs, such as a literal or "
            f"current_timestamp(), and no subquery{told}"
        ) from error
    if value is None:
        return None
    match expression.dataType().typeName():
        case "timestamp":
            return moment_of(value)
        case "timestamp_ntz":
            return moment_of(value).replace(tzinfo=None)
        case "date":
            return _EPOCH.date() + timedelta(days=value)
    return value if isinstance(value, bool | int | float | str) else value.toString()


def _evaluable(spark: SparkSession, expression: Any) -> Any:
    """An expression with what stands for others replaced, as Spark's optimizer does it.

    Seen: Spark 3.5 does not evaluate `now() - INTERVAL 1 HOUR` otherwise.
    """
    one_row = java_class(spark, f"{CATALYST}.plans.logical.OneRowRelation")()
    plan = java_class(spark, f"{CATALYST}.plans.logical.Filter")(expression, one_row)
    return scala_object(spark, f"{CATALYST}.optimizer.ReplaceExpressions").apply(plan).condition()
