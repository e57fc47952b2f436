"""Names of Hudi tables in SQL and in PySpark's calls, after `register`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyhudi.api.datasource import load_table
from pyhudi.engine.spark.classes import SparkClasses
from pyhudi.engine.spark.register import writer_state
from pyhudi.engine.spark.session import is_classic
from pyhudi.engine.spark.sql.hooks import leave_catalog_of_hudi, wrap_sql
from pyhudi.engine.spark.sql.writer_hooks import wrap_table_writers
from pyhudi.engine.spark.stream.hooks import wrap_streams
from pyhudi.errors import Invalid
from pyhudi.options.read_options import QUERY_TYPE
from pyhudi.spark.connect.queries import named_rows
from pyhudi.spark.connect.streams import ConnectStreams
from pyhudi.spark.foreign_files import refuse_folder
from pyhudi.spark.functions import register_functions
from pyhudi.spark.queries import prime
from pyhudi.spark.session import SqlSession
from pyhudi.spark.shows import refresh_entry
from pyhudi.spark.statements import run_sql
from pyhudi.spark.streams.tables import TableStreams
from pyhudi.spark.writers import TableCalls
from pyhudi.sql.words import Cursor, Name

if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import DataFrame, SparkSession


def register_sql(spark: SparkSession, classes: SparkClasses) -> Callable[[SparkSession], SqlSession]:
    """Let SQL and streams of this session know Hudi tables. Calling it twice is harmless.

    Gives what finds the SQL of a session.
    """
    leave_catalog_of_hudi(spark)
    own_sql = wrap_sql(
        classes,
        run=_run,
        find=_find,
        read=_read,
        refresh=_refresh,
        options_of=lambda reader: writer_state(reader)["options"],
    )

    def session_of(found: SparkSession) -> SqlSession:
        return SqlSession(found, own_sql(found))

    wrap_table_writers(classes, TableCalls(session_of), writer_state, refuse_folder)
    streams = TableStreams(session_of) if is_classic(spark) else ConnectStreams(session_of)
    wrap_streams(classes, streams, refuse_folder)
    if is_classic(spark):
        register_functions(spark, session_of)
    return session_of


def _run(
    spark: SparkSession, spark_sql: Callable[..., DataFrame], text: str, args: Any = None, **frames: Any
) -> DataFrame:
    return run_sql(SqlSession(spark, spark_sql), text, args, **frames)


def _find(spark: SparkSession, spark_sql: Callable[..., DataFrame], name: str) -> DataFrame | None:
    session, parts = SqlSession(spark, spark_sql), _parts(name)
    if not session.is_classic:
        return None if not parts else named_rows(session, parts)
    prime(session, parts)
    return None


def _read(
    spark: SparkSession, spark_sql: Callable[..., DataFrame], name: str, options: Mapping[str, object]
) -> DataFrame | None:
    """The table as the options say, such as `as.of.instant`. Spark itself would pass over them."""
    session, parts = SqlSession(spark, spark_sql), _parts(name)
    entry = session.catalog.find(parts) if parts else None
    if entry is None or not options:
        return _find(spark, spark_sql, name)
    of_name = {QUERY_TYPE: "read_optimized"} if entry.reads_optimized else {}
    return load_table(spark, entry.path, {**session.read_options(), **of_name, **options})


def _refresh(spark: SparkSession, spark_sql: Callable[..., DataFrame], name: str) -> bool:
    session = SqlSession(spark, spark_sql)
    entry = session.catalog.find(_parts(name))
    if entry is None:
        return False
    refresh_entry(session, entry)
    return True


def _parts(name: str) -> Name:
    """The parts of a name; none where it is no name, which Spark says itself."""
    try:
        return Cursor(name).name()
    except Invalid:
        return ()
