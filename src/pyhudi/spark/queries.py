"""Queries: names of Hudi tables are made known to Spark, moments and paths are put as calls of a table function."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from pyhudi.engine.spark.sql.catalog import CatalogEntry, scan_text
from pyhudi.engine.spark.sql.gateway import relation_names
from pyhudi.engine.spark.sql.table_functions import failure_in
from pyhudi.errors import Invalid, Unsupported
from pyhudi.spark.connect.queries import run_named_query
from pyhudi.spark.key_queries import KeyText, key_scans
from pyhudi.spark.session import SqlSession
from pyhudi.sql.relations import Relation, find_relations
from pyhudi.sql.words import Name, quoted_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MAY_NAME_OTHERS = re.compile(r"\b(as\s+of)\b|\bhudi\b", re.IGNORECASE)
_UNKNOWN = re.compile(r"DATA_SOURCE_NOT_FOUND\].*?\bhudi\b|Failed to find data source: hudi", re.IGNORECASE | re.DOTALL)

_NO_FORMAT = (
    "SQL names the format hudi where only Spark could read it: use CREATE TABLE … USING hudi, hudi.`path`, or a view "
    "of spark.read.format('hudi').load(path).createOrReplaceTempView(name)"
)


def run_query(
    session: SqlSession, text: str, args: Mapping[str, Any] | Sequence[Any] | None = None, **frames: Any
) -> DataFrame:
    """The answer of Spark to a text that changes no Hudi table. `args`, `frames`: as of `SparkSession.sql`."""
    if not session.is_classic:
        return run_named_query(session, text, args, frames)
    if _MAY_NAME_OTHERS.search(text):
        text = with_scans(session, text)
    given = {} if args is None else {"args": args}
    with nullcontext() if frames else key_scans(session, text, args) as of_keys:  # Spark puts the values of `frames`
        if not isinstance(of_keys, KeyText | None):
            return of_keys
        if of_keys is not None:
            if of_keys.has_other_tables:
                prime_names(session, of_keys.text)
            with suppress(Exception):  # of any kind: Spark says of the text itself what is wrong with it
                return session.spark_sql(of_keys.text, **given, **frames)
    prime_names(session, text)
    try:
        return session.spark_sql(text, **given, **frames)
    except Exception as error:
        failure = failure_in(str(error))
        if failure is not None:
            raise failure from error
        if not _UNKNOWN.search(str(error)):
            raise
        _prime_all(session)  # a view names a table that the text does not name
    try:
        return session.spark_sql(text, **given, **frames)
    except Exception as error:
        if _UNKNOWN.search(str(error)):
            raise Unsupported(_NO_FORMAT) from error
        raise


def with_scans(session: SqlSession, text: str) -> str:
    """The text with a call of `hudi_scan` in place of each table of a moment or of a path."""
    try:
        relations = find_relations(text)
    except Invalid:
        return text
    pieces, start = [], 0
    for relation in relations:
        entry = None if relation.path is not None else session.catalog.find(relation.name)
        path = relation.path if entry is None else entry.path
        if path is None:
            continue
        pieces += [text[start : relation.start], _scan(path, relation, entry)]
        start = relation.end
    return "".join(pieces) + text[start:]


def prime_names(session: SqlSession, text: str) -> None:
    """Let Spark find the Hudi tables that a text names."""
    for name in relation_names(session.spark, text):
        prime(session, name)


def prime(session: SqlSession, name: Name) -> None:
    """Let Spark find a table by its name, if it is one of Hudi."""
    entry = session.catalog.find(name)
    if entry is None:
        session.catalog.unprime(name)
    else:
        session.catalog.prime(entry)


def _prime_all(session: SqlSession) -> None:
    """Let Spark find every Hudi table of the catalog."""
    for database in session.spark.catalog.listDatabases():
        for entry in session.catalog.hudi_tables(database.name):
            session.catalog.prime(entry)


def _scan(path: str, relation: Relation, entry: CatalogEntry | None) -> str:
    moment = "NULL" if relation.as_of is None else relation.as_of
    alias = "" if relation.has_alias or relation.path is not None else f" AS {quoted_name(relation.name[-1])}"
    return f"{scan_text(path, moment, reads_optimized=entry is not None and entry.reads_optimized)}{alias}"
