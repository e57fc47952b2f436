"""SQL texts with parameters and DataFrames in them, as PySpark takes them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.connect.texts import literal_texts, variables_in
from pyhudi.engine.spark.java import java_class
from pyhudi.engine.spark.session import is_classic
from pyhudi.engine.spark.sql.gateway import sql_class, value_of

_VARIABLE = "${"


def literals(
    spark: SparkSession, args: Mapping[str, Any] | Sequence[Any], spark_sql: Callable[..., DataFrame]
) -> dict[str, str] | list[str]:
    """The values of parameters as SQL text, as Spark itself understands them: by name, or in order.

    Spark would put a variable in place of `${name}` in the text of a value. Its text has none.
    Raises: Spark's own error for a value of an unknown type.
    """
    if not is_classic(spark):
        return literal_texts(args)
    names = [name for name in args if re.fullmatch(r"\w+", name)] if isinstance(args, Mapping) else []
    marks = [f":{name}" for name in names] if isinstance(args, Mapping) else ["?"] * len(args)
    if not marks:
        return {} if isinstance(args, Mapping) else []
    plan = spark_sql(f"SELECT {', '.join(marks)}", args=args)._jdf.queryExecution().analyzed()
    selected = plan.projectList()
    texts = [str(selected.apply(at).child().sql()).replace(_VARIABLE, "\\u0024{") for at in range(selected.size())]
    return dict(zip(names, texts, strict=True)) if isinstance(args, Mapping) else texts


@contextmanager
def formatted(spark: SparkSession, text: str, frames: Mapping[str, Any]) -> Iterator[str]:
    """The text with the names of temporary views in place of `{frame}`, for the length of a block."""
    if not frames:
        yield text
        return
    from pyspark.sql.sql_formatter import SQLStringFormatter

    formatter = SQLStringFormatter(spark)
    try:
        yield formatter.format(text, **frames)
    finally:
        formatter.clear()


def with_variables(spark: SparkSession, text: str) -> str:
    """The text with the values of Spark's variables, `${name}`, in place of them, as Spark reads it."""
    if _VARIABLE not in text:
        return text
    if not is_classic(spark):
        return variables_in(spark, text)
    sessions = sql_class(spark, "SparkSession")
    before = value_of(sessions.getActiveSession())
    sessions.setActiveSession(spark._jsparkSession)  # variables are those of the active session's settings
    try:
        return str(java_class(spark, "org.apache.spark.sql.internal.VariableSubstitution")().substitute(text))
    finally:
        if before is None:
            sessions.clearActiveSession()
        else:
            sessions.setActiveSession(before)
