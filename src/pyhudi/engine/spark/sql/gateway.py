"""Objects of Scala that SQL needs, by names that hold in each release of Spark, and Python functions as Scala's."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyspark
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.connect.texts import settings_of
from pyhudi.engine.spark.java import java_class
from pyhudi.engine.spark.session import is_classic
from pyhudi.errors import Unsupported

CATALYST: Final = "org.apache.spark.sql.catalyst"


def scala_object(spark: SparkSession, name: str) -> Any:
    """An `object` of Scala."""
    return getattr(java_class(spark, f"{name}$"), "MODULE$")


def find_class(spark: SparkSession, name: str) -> Any:
    """A class as `java.lang.Class`, to look at what it takes."""
    threads = java_class(spark, "java.lang.Thread")
    return threads.currentThread().getContextClassLoader().loadClass(name)


def constructor_types(spark: SparkSession, name: str) -> list[str]:
    """The names of the types that the constructor of a class takes."""
    return [str(kind.getName()) for kind in find_class(spark, name).getConstructors()[0].getParameterTypes()]


def scala_seq(spark: SparkSession, values: list[Any]) -> Any:
    return java_class(spark, "org.apache.spark.api.python.PythonUtils").toSeq(values)


def scala_map(spark: SparkSession, values: dict[str, str]) -> Any:
    return java_class(spark, "org.apache.spark.api.python.PythonUtils").toScalaMap(values)


def copied(spark: SparkSession, value: Any, changes: Mapping[int, Any]) -> Any:
    """A value of a case class of Scala with some of its fields anew, by their places."""
    fields = [changes[at] if at in changes else value.productElement(at) for at in range(value.productArity())]
    return java_class(spark, str(value.getClass().getName()))(*fields)


def dict_of(mapping: Any) -> dict[str, str]:
    found = {}
    iterator = mapping.iterator()
    while iterator.hasNext():
        pair = iterator.next()
        found[str(pair._1())] = str(pair._2())
    return found


def some(spark: SparkSession, value: Any) -> Any:
    """`Some(value)`; `None` of Scala for None."""
    options = java_class(spark, "scala.Option")
    return options.empty() if value is None else options.apply(value)


def value_of(option: Any) -> Any:
    """What an `Option` of Scala holds, or None."""
    return option.get() if option.isDefined() else None


def sql_class(spark: SparkSession, name: str) -> Any:
    """A class of `org.apache.spark.sql`, which Spark 4 has moved to a package of its own."""
    package = "org.apache.spark.sql" if pyspark.__version__.startswith("3.") else "org.apache.spark.sql.classic"
    return java_class(spark, f"{package}.{name}")


def active_session(spark: SparkSession) -> SparkSession:
    """The session that Spark analyses a query for on this thread."""
    found = sql_class(spark, "SparkSession").active()
    return spark if found.equals(spark._jsparkSession) else SparkSession(spark.sparkContext, found)


def dataframe_of(spark: SparkSession, plan: Any) -> DataFrame:
    """A logical plan as a DataFrame."""
    return DataFrame(sql_class(spark, "Dataset").ofRows(spark._jsparkSession, plan), spark)


class Function:
    """A Python function as `scala.Function1`. Spark asks it for `hashCode`, `equals` and `toString`, too."""

    class Java:
        implements: Final = ["scala.Function1"]

    def __init__(self, function: Callable[[Any], Any], name: str) -> None:
        self._function, self._name = function, name

    def apply(self, argument: Any) -> Any:
        return self._function(argument)

    def toString(self) -> str:  # noqa: N802
        return f"pyhudi({self._name})"

    def hashCode(self) -> int:  # noqa: N802
        return id(self) & 0x7FFF_FFFF

    def equals(self, other: object) -> bool:
        return other is self


def start_callbacks(spark: SparkSession) -> None:
    """Let the JVM call this process. Raises: Unsupported where there is no JVM to be seen."""
    if getattr(spark, "_jsparkSession", None) is None:
        raise Unsupported("SQL on Hudi tables: expected a session with a driver in this process, found Spark Connect")
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]


def session_options(spark: SparkSession, prefix: str) -> dict[str, str]:
    """The session's settings whose names begin with a prefix."""
    if not is_classic(spark):
        return settings_of(spark, prefix)
    names = str(spark._jsparkSession.sessionState().conf().settings().keySet().toString())
    found = {}
    for name in names.strip("[]").split(", "):
        if name.startswith(prefix):
            found[name] = str(spark.conf.get(name))
    return found


_RELATION = re.compile(r"'UnresolvedRelation \[([^\]]*)\]")


def relation_names(spark: SparkSession, text: str) -> list[tuple[str, ...]]:
    """The names of tables and views that a text reads, each once, as Spark's parser finds them.

    None where Spark cannot parse the text: it says so itself when it is asked to run it.
    """
    try:
        printed = str(spark._jsparkSession.sessionState().sqlParser().parsePlan(text).toString())
    except Exception:  # of any kind: PySpark 3.5 lets Java's own through
        return []
    names = (tuple(part.strip() for part in found.split(",")) for found in _RELATION.findall(printed))
    return list(dict.fromkeys(names))
