"""Queries under Spark Connect: each Hudi table that a text names becomes a DataFrame, which goes with the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.connect.catalog import ConnectCatalog, View
from pyhudi.engine.spark.connect.named_rows import NAME_PREFIX
from pyhudi.engine.spark.connect.texts import literal_texts
from pyhudi.engine.spark.sql.catalog import CATALOG, CatalogEntry
from pyhudi.engine.spark.sql.table_functions import moment_of
from pyhudi.errors import Invalid, Unsupported
from pyhudi.spark.functions import call_function, is_function, moment
from pyhudi.spark.plain_columns import plain_types
from pyhudi.spark.session import SqlSession
from pyhudi.sql.parameters import has_identifiers, with_identifiers, with_literals
from pyhudi.sql.reads import Read, find_reads
from pyhudi.sql.relations import with_short_columns
from pyhudi.sql.words import Cursor, Name, quoted_name, split_list

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_READING = ("SELECT", "WITH", "FROM", "(", "VALUES", "INSERT", "CREATE", "REPLACE", "EXPLAIN", "MERGE", "UPDATE",
            "DELETE", "CACHE", "SET", "DECLARE")  # fmt: skip
"""How texts begin whose FROM stands before a table. Others, such as SHOW COLUMNS FROM t, are for the catalog."""

_VIEWS_MAX = 100
"""Of views within views."""


def run_named_query(
    session: SqlSession, text: str, args: Mapping[str, Any] | Sequence[Any] | None, frames: Mapping[str, Any]
) -> DataFrame:
    """The answer of Spark to a text that changes no Hudi table."""
    if _begins_with(text, _READING):
        if _makes_view(text):
            _refuse_unnamed(text)
        else:
            names_by_value = not frames and has_identifiers(text)
            if args and (names_by_value or any(read.as_of or read.arguments is not None for read in find_reads(text))):
                text, args = with_literals(text, literal_texts(args)), None  # for they are asked before the query
            if names_by_value:
                text = with_identifiers(text, session.value)
            text = with_named_rows(session, text, has_places=bool(frames))
    return session.spark_sql(text, args, **frames)


def named_rows(session: SqlSession, name: Name) -> DataFrame | None:
    """The rows of a Hudi table, or of a view that reads one; None for anything else."""
    assert not session.is_classic
    return _rows(session, Read(name, 0, 0), None, depth=0)


def with_named_rows(
    session: SqlSession, text: str, *, namespace: str | None = None, depth: int = 0, has_places: bool = False
) -> str:
    """The text with names of DataFrames (`SqlSession.named`) in place of Hudi tables, and `t.column` for `db.t.column`.

    `namespace`: the database that counts, where that is not the current one. `depth`: of views. `has_places`: whether
    Spark puts values into the text, so that what its conditions say is not known yet.
    """
    known: dict[tuple[object, ...], DataFrame | None] = {}
    renamed: set[str] = set()
    pieces, start = [], 0
    for read in find_reads(text):
        if read.name[-1].startswith(NAME_PREFIX):
            continue
        if has_places:
            read = replace(read, alone_where=None)
        key = (read.name, read.arguments, read.as_of, read.alone_where)
        if key not in known:
            known[key] = _rows(session, read, namespace, depth=depth)
        rows = known[key]
        if rows is None:
            continue
        name = session.new_view("read")
        session.named[name] = rows
        alias = ""
        if not read.has_alias and read.path is None:
            alias = f" AS {quoted_name(read.name[-1])}"
            of_database = ".".join(read.name[-2:]).lower()
            renamed |= {of_database, f"{CATALOG}.{of_database}"}
        pieces += [text[start : read.start], quoted_name(name), alias]
        start = read.end
    return with_short_columns("".join(pieces) + text[start:], renamed)


def _rows(session: SqlSession, read: Read, namespace: str | None, *, depth: int) -> DataFrame | None:
    """What a query reads there, where that is of Hudi."""
    if read.arguments is not None:
        return _called(session, read)
    if read.path is not None:
        return _scanned(session, read.path, read)
    found = _looked_up(session, read.name, namespace)
    if isinstance(found, CatalogEntry):
        return _scanned(session, found.path, read, query=found.query)
    if found is None or read.as_of is not None or depth > _VIEWS_MAX:
        return None
    text = with_named_rows(session, found.text, namespace=found.namespace or None, depth=depth + 1)
    return session.spark_sql(text) if text != found.text else None


def _looked_up(session: SqlSession, name: Name, namespace: str | None) -> CatalogEntry | View | None:
    catalog = session.catalog
    assert isinstance(catalog, ConnectCatalog)
    return catalog.look(name, namespace=namespace)


def _scanned(session: SqlSession, path: str, read: Read, *, query: str = "snapshot") -> DataFrame:
    table = HudiTable.open(path, options=session.read_options())
    as_of = None if read.as_of is None else moment(_argument(session, read.as_of))
    where = None
    if read.alone_where is not None and as_of is None:
        where = session.plain_conditions(read.alone_where, read.called, plain_types(table.schema()))
    return table.scan(as_of=as_of, where=where, query=query).to_spark(session.spark)


def _called(session: SqlSession, read: Read) -> DataFrame | None:
    if len(read.name) != 1 or not is_function(read.name[0]):
        return None
    given: list[object] = []
    named: dict[str, object] = {}
    assert read.arguments is not None
    for text in split_list(read.arguments):
        cursor = Cursor(text)
        word = cursor.word()
        if word is not None and word.is_name and (following := cursor.word(1)) and following.upper == "=>":
            cursor.at += 2
            named[word.text.lower()] = _argument(session, cursor.rest())
        else:
            given.append(_argument(session, text))
    return call_function(session, read.name[0], given, named)


def _argument(session: SqlSession, text: str) -> object:
    """The value of an argument: a moment, date, number or boolean as it is, anything else as text. A moment has UTC as
    its zone, or none where Spark's has none.
    """
    moment = "IF(typeof(given) = 'timestamp', unix_micros(try_cast(given AS TIMESTAMP)), NULL)"
    row = session.spark_sql(f"SELECT given, CAST(given AS STRING), {moment} FROM (SELECT {text} AS given)").first()
    assert row is not None
    value, shown, micros = row
    if micros is not None:
        return moment_of(micros)
    return value if value is None or isinstance(value, bool | int | float | date) else shown


def _begins_with(text: str, words: Sequence[str]) -> bool:
    try:
        cursor = Cursor(text)
    except Invalid:
        return False  # Spark says what is wrong with it
    word = cursor.word()
    return word is not None and word.upper in words


def _makes_view(text: str) -> bool:
    """Whether the text makes a view. Its own text is kept, so that its names are those of the newest commit."""
    cursor = Cursor(text)
    if not cursor.take("CREATE"):
        return False
    cursor.take("OR", "REPLACE")
    cursor.take("GLOBAL")
    cursor.take("TEMP")
    cursor.take("TEMPORARY")
    return cursor.sees("VIEW")


def _refuse_unnamed(text: str) -> None:
    """Raises: Unsupported for a view of what only the client knows, for the server checks the view's text."""
    for read in find_reads(text):
        is_call = read.arguments is not None and len(read.name) == 1 and is_function(read.name[0])
        if is_call or read.path is not None or read.as_of is not None:
            raise Unsupported(
                f"CREATE VIEW of {text[read.start : read.end]}: under Spark Connect a view may name Hudi tables only; "
                "use spark.sql(query).createOrReplaceTempView(name), which keeps the rows as they are now"
            )
