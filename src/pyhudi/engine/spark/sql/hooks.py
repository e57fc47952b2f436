"""Wrapping `SparkSession.sql` and `table`, so that names of Hudi tables are understood."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.classes import SparkClasses, session_behind

_MARK = "_pyhudi_sql"

RunSql = Callable[..., DataFrame]
"""`(session, PySpark's own sql bound to the session, text, args, **frames)`."""

Find = Callable[[SparkSession, Callable[..., DataFrame], str], DataFrame | None]
"""The rows of a name; None where Spark is to look it up itself, to which the name was made known."""


ReadTable = Callable[[SparkSession, Callable[..., DataFrame], str, Mapping[str, object]], DataFrame | None]
"""Reads a Hudi table by its name as a reader's options say; None where Spark is to find the name itself."""


Refresh = Callable[[SparkSession, Callable[..., DataFrame], str], bool]
"""Refreshes a Hudi table; False for any other."""


_CATALOG = "spark.sql.catalog.spark_catalog"
_OF_HUDI = "org.apache.spark.sql.hudi.catalog.HoodieCatalog"


def leave_catalog_of_hudi(spark: SparkSession) -> None:
    """Let a session use Spark's own catalog, where its settings name a class of Apache Hudi's jar.

    Scripts for Apache Hudi name it. Without the jar each name would fail.
    """
    if spark.conf.get(_CATALOG, None) == _OF_HUDI:
        spark.conf.unset(_CATALOG)


def wrap_sql(
    classes: SparkClasses,
    *,
    run: RunSql,
    find: Find,
    read: ReadTable,
    refresh: Refresh,
    options_of: Callable[[Any], Mapping[str, object]],
) -> Callable[[SparkSession], Callable[..., DataFrame]]:
    """Wrap PySpark's classes of a kind, once per process. Gives PySpark's own `sql` of a session.

    `options_of`: what a `DataFrameReader` was given so far.
    """
    kind = classes.session
    if _MARK in kind.__dict__:
        return functools.partial(_own_sql, getattr(kind, _MARK))
    original = kind.__dict__["sql"]
    own = functools.partial(_own_sql, original)

    @functools.wraps(original)
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803
        return run(self, own(self), sqlQuery, args, **kwargs)

    setattr(kind, _MARK, staticmethod(original))
    kind.sql = sql
    _find_first(kind, find, own)
    _read_by_name(classes.reader, read, options_of, own)
    _refresh_by_name(classes.catalog, refresh, own)
    return own


def _refresh_by_name(kind: Any, refresh: Refresh, own: Callable[[SparkSession], Callable[..., DataFrame]]) -> None:
    """Spark's own refresh fails for a table whose plan is not analysed."""
    original = kind.__dict__["refreshTable"]

    @functools.wraps(original)
    def call(self: Any, tableName: str) -> None:  # noqa: N803
        session = self._sparkSession
        if not refresh(session, own(session), tableName):
            original(self, tableName)

    kind.refreshTable = call


def _own_sql(original: Callable[..., DataFrame], session: SparkSession) -> Callable[..., DataFrame]:
    return functools.partial(original, session)


def _find_first(kind: Any, find: Find, own: Callable[[SparkSession], Callable[..., DataFrame]]) -> None:
    original = kind.__dict__["table"]

    @functools.wraps(original)
    def call(self: Any, tableName: str) -> DataFrame:  # noqa: N803
        found = find(self, own(self), tableName)
        if found is not None:
            return found
        rows: DataFrame = original(self, tableName)
        return rows

    kind.table = call


def _read_by_name(
    kind: Any,
    read: ReadTable,
    options_of: Callable[[Any], Mapping[str, object]],
    own: Callable[[SparkSession], Callable[..., DataFrame]],
) -> None:
    original = kind.__dict__["table"]

    @functools.wraps(original)
    def call(self: Any, tableName: str) -> DataFrame:  # noqa: N803
        session = session_behind(self)
        found = read(session, own(session), tableName, options_of(self))
        return original(self, tableName) if found is None else found

    kind.table = call
