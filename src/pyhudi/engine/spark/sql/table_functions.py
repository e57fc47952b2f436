"""Table functions of Spark SQL that Python answers: each gives the plan of a DataFrame when a query is analysed."""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.java import java_class
from pyhudi.engine.spark.sql.gateway import (
    CATALYST,
    Function,
    active_session,
    scala_object,
    start_callbacks,
)

Answer: TypeAlias = Callable[[SparkSession, Sequence[object], Mapping[str, object]], DataFrame]
"""The rows of a call, by the session, the arguments by position, and those by name."""

_REGISTRY = f"{CATALYST}.analysis.TableFunctionRegistry"

_FAILURES_MAX = 32

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
            positional, named = _literals(arguments)
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


def _literals(arguments: Any) -> tuple[list[object], dict[str, object]]:
    positional: list[object] = []
    named: dict[str, object] = {}
    iterator = arguments.iterator()
    while iterator.hasNext():
        expression = iterator.next()
        if expression.getClass().getSimpleName() == "NamedArgumentExpression":
            named[expression.key().lower()] = _literal(expression.value())
        else:
            positional.append(_literal(expression))
    return positional, named


def _literal(expression: Any) -> object:
    """The value of an argument: a number or boolean as it is, anything else as text."""
    value = expression.eval(None)
    return value if value is None or isinstance(value, bool | int | float | str) else value.toString()
