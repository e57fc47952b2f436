"""Wrapping `SparkSession.sql` and `table`, so that names of Hudi tables are understood. Classic sessions only."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.catalog import Catalog

_MARK = "_pyhudi_sql"

RunSql = Callable[..., DataFrame]
"""`(session, PySpark's own sql bound to the session, text, args, **frames)`."""

Prime = Callable[[SparkSession, Callable[..., DataFrame], str], None]
"""Makes a name known to Spark before Spark looks it up."""


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
    *,
    run: RunSql,
    prime: Prime,
    read: ReadTable,
    refresh: Refresh,
    options_of: Callable[[Any], Mapping[str, object]],
) -> Callable[[SparkSession], Callable[..., DataFrame]]:
    """Wrap PySpark's classes, once per process. Gives PySpark's own `sql` of a session.

    `options_of`: what a `DataFrameReader` was given so far.
    """
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
    _prime_first(prime, own)
    _read_by_name(read, options_of, own)
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


def _prime_first(prime: Prime, own: Callable[[SparkSession], Callable[..., DataFrame]]) -> None:
    original = SparkSession.__dict__["table"]

    @functools.wraps(original)
    def call(self: Any, tableName: str) -> DataFrame:  # noqa: N803
        prime(self, own(self), tableName)
        return original(self, tableName)

    SparkSession.table = call  # type: ignore[method-assign]


def _read_by_name(
    read: ReadTable,
    options_of: Callable[[Any], Mapping[str, object]],
    own: Callable[[SparkSession], Callable[..., DataFrame]],
) -> None:
    original = DataFrameReader.__dict__["table"]

    @functools.wraps(original)
    def call(self: Any, tableName: str) -> DataFrame:  # noqa: N803
        session = self._spark
        found = read(session, own(session), tableName, options_of(self))
        return original(self, tableName) if found is None else found

    DataFrameReader.table = call  # type: ignore[method-assign]
