"""Wrapping `SparkSession.sql` and `table`, so that names of Hudi tables are understood. Classic sessions only."""

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.catalog import Catalog

_MARK = "_pyhudi_sql"

RunSql = Callable[..., DataFrame]
"""`(session, PySpark's own sql bound to the session, text, args, **frames)`."""

Prime = Callable[[SparkSession, Callable[..., DataFrame], str], None]
"""Makes a name known to Spark before Spark looks it up."""


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


def wrap_sql(*, run: RunSql, prime: Prime, refresh: Refresh) -> Callable[[SparkSession], Callable[..., DataFrame]]:
    """Wrap PySpark's classes, once per process. Gives PySpark's own `sql` of a session."""
    kind = SparkSession
    if _MARK in kind.__dict__:
        return functools.partial(_own_sql, getattr(kind, _MARK))
    original = kind.__dict__["sql"]
    own = functools.partial(_own_sql, original)

    @functools.wraps(original)
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803
        return run(self, own(self), sqlQuery, args, **kwargs)

    setattr(kind, _MARK, staticmethod(original))
    kind.sql = sql  # type: ignore[method-assign]
    for owner, name, session_of in (
        (SparkSession, "table", lambda session: session),
        (DataFrameReader, "table", lambda reader: reader._spark),
    ):
        _prime_first(owner, name, session_of, prime, own)
    _refresh_by_name(refresh, own)
    return own


def _refresh_by_name(refresh: Refresh, own: Callable[[SparkSession], Callable[..., DataFrame]]) -> None:
    """Spark's own refresh fails for a table whose plan is not analysed."""
    original = Catalog.__dict__["refreshTable"]

    @functools.wraps(original)
    def call(self: Any, tableName: str) -> None:  # noqa: N803
        session = self._sparkSession
        if not refresh(session, own(session), tableName):
            original(self, tableName)

    Catalog.refreshTable = call  # type: ignore[method-assign]


def _own_sql(original: Callable[..., DataFrame], session: SparkSession) -> Callable[..., DataFrame]:
    return functools.partial(original, session)


def _prime_first(
    kind: type,
    name: str,
    session_of: Callable[[Any], SparkSession],
    prime: Prime,
    own: Callable[[SparkSession], Callable[..., DataFrame]],
) -> None:
    original = kind.__dict__[name]

    @functools.wraps(original)
    def call(self: Any, tableName: str, *args: Any, **kwargs: Any) -> DataFrame:  # noqa: N803
        session = session_of(self)
        prime(session, own(session), tableName)
        return original(self, tableName, *args, **kwargs)

    setattr(kind, name, call)
