"""SQL texts of a session: those about Hudi tables are carried out here, all others go to Spark as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from pyhudi.engine.spark.connect.texts import with_frames
from pyhudi.engine.spark.sql.catalog import CATALOG, CatalogEntry
from pyhudi.engine.spark.sql.texts import formatted, literals, with_variables
from pyhudi.errors import Unsupported
from pyhudi.spark import definitions, indexes, inserts, merges, row_changes, shows
from pyhudi.spark.connect.shows import describe_table, show_create, show_properties
from pyhudi.spark.entries.kept import keep_entry, refuse_base_files
from pyhudi.spark.foreign_files import refuse_folder
from pyhudi.spark.procedures.registry import call_procedure
from pyhudi.spark.queries import run_query
from pyhudi.spark.session import SqlSession
from pyhudi.sql.definitions import is_of_hudi, like_of
from pyhudi.sql.heads import Head, Statement, find_head
from pyhudi.sql.parameters import with_identifiers, with_literals
from pyhudi.sql.reads import names_with_options, states_options
from pyhudi.sql.relations import is_path
from pyhudi.sql.words import Name
from pyhudi.sql.written_folders import written_folders

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OnTable: TypeAlias = "Callable[[SqlSession, Head, CatalogEntry], DataFrame]"


def _explain(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    raise Unsupported(
        f"EXPLAIN of a change of the Hudi table '{'.'.join(entry.full_name)}': pyhudi carries it out in several "
        "queries; EXPLAIN its query or a SELECT with its condition"
    )


_ON_TABLES: dict[Statement, _OnTable] = {
    Statement.INSERT: inserts.insert,
    Statement.UPDATE: row_changes.update_rows,
    Statement.DELETE: row_changes.delete_rows,
    Statement.MERGE: merges.merge_rows,
    Statement.DROP_TABLE: definitions.drop_table,
    Statement.TRUNCATE: definitions.truncate_table,
    Statement.ALTER_TABLE: definitions.alter_table,
    Statement.SHOW_PARTITIONS: shows.show_partitions,
    Statement.REFRESH_TABLE: shows.refresh_table,
    Statement.REPAIR: shows.refresh_table,
    Statement.ANALYZE: shows.analyze,
    Statement.LOAD: shows.load_data,
    Statement.CREATE_INDEX: indexes.create_index,
    Statement.DROP_INDEX: indexes.drop_index,
    Statement.SHOW_INDEXES: indexes.show_indexes,
    Statement.REFRESH_INDEX: indexes.refresh_index,
    Statement.EXPLAIN: _explain,
}
"""Statements about a Hudi table that the catalog knows."""

_CHANGES = frozenset(
    {
        Statement.INSERT, Statement.UPDATE, Statement.DELETE, Statement.MERGE, Statement.TRUNCATE,
        Statement.ALTER_TABLE,
    }
)  # fmt: skip
"""Those that change the table."""

_ON_TABLES_OF_CONNECT: dict[Statement, _OnTable] = {
    **_ON_TABLES,
    Statement.DESCRIBE: describe_table,
    Statement.SHOW_PROPERTIES: show_properties,
    Statement.SHOW_CREATE: show_create,
}


def run_sql(
    session: SqlSession, text: str, args: Mapping[str, Any] | Sequence[Any] | None = None, **frames: Any
) -> DataFrame:
    """`spark.sql(text, args, **frames)`. A statement that changes a Hudi table is done when this returns."""
    text = with_variables(session.spark, text)
    head = find_head(text)
    if head is None and not states_options(text):
        return run_query(session, text, args, **frames)

    with _formatted(session, text, frames) as plain:
        values = literals(session.spark, args, session.spark_sql) if args else []
        whole = with_identifiers(with_literals(plain, values), session.value)
        _refuse_options(session, whole)
        found = head if head is None or whole == text else find_head(whole)
        answer = None if found is None else _carried_out(session, found)
    return run_query(session, text, args, **frames) if answer is None else answer


def _refuse_options(session: SqlSession, text: str) -> None:
    """Raises: Unsupported for `t WITH (…)`, whose options Spark hands to nobody."""
    for name in names_with_options(text):
        if is_path(name) or session.catalog.find(name) is not None:
            raise Unsupported(
                f"{'.'.join(name)} WITH (…): options of one statement are not taken in SQL: use TIMESTAMP AS OF, "
                "hudi_query, hudi_table_changes, SET, or spark.read.option(…).table(…)"
            )


@contextmanager
def _formatted(session: SqlSession, text: str, frames: Mapping[str, Any]) -> Iterator[str]:
    """The text with names in place of `{frame}`, for the length of a block."""
    if session.is_classic or not frames:
        with formatted(session.spark, text, frames) as plain:
            yield plain
        return
    plain, named = with_frames(session.spark, text, frames)
    with ExitStack() as views:
        for name, rows in named:
            plain = plain.replace(name, views.enter_context(session.view(rows, session.new_view("frame"))))
        yield plain


def _carried_out(session: SqlSession, head: Head) -> DataFrame | None:
    """The answer of a statement about a Hudi table, or None for any other."""
    if head.statement in (Statement.CREATE_TABLE, Statement.REPLACE_TABLE) and _makes_hudi_table(session, head):
        return definitions.create_table(session, head)
    if head.statement is Statement.CALL:
        return call_procedure(session, head) if _is_of_hudi(head) else None
    if head.statement is Statement.EXECUTE:
        return _executed(session, head)
    if head.statement is Statement.SCRIPT:
        _refuse_truncation(session, head)
    run = (_ON_TABLES if session.is_classic else _ON_TABLES_OF_CONNECT).get(head.statement)
    entry = None if run is None else session.catalog.find(head.target)
    if run is None or entry is None:
        if run is not None:
            _refuse_path(head)
        _refuse_folders(session, head)
        return None
    if head.statement in _CHANGES:
        refuse_base_files(entry, what=head.statement.name)
    answer = run(session, head, entry)
    if head.statement in (*_CHANGES, Statement.REPAIR):
        keep_entry(session, entry, looks_at_all=head.statement is Statement.REPAIR)
    return answer


def _refuse_path(head: Head) -> None:
    """Raises: Unsupported for a statement about a table that has no name."""
    if is_path(head.target):
        raise Unsupported(
            f"{head.statement.name} of hudi.`{head.target[-1]}`: statements but for queries take the name of a table; "
            f"give it one: CREATE TABLE name USING hudi LOCATION '{head.target[-1]}'"
        )


def _executed(session: SqlSession, head: Head) -> DataFrame | None:
    """The answer of `EXECUTE IMMEDIATE text`, where it is a statement about a Hudi table."""
    cursor = head.cursor
    text = str(session.value(cursor.until(("INTO",), ("USING",))))
    if states_options(text):
        _refuse_options(session, with_identifiers(text, session.value) if cursor.is_done else text)
    found = find_head(text)
    if found is None or cursor.is_done:
        return None if found is None else _carried_out(session, found)
    if found.statement in _ON_TABLES and session.catalog.find(found.target) is not None:
        raise Unsupported(
            f"EXECUTE IMMEDIATE … USING: a statement about the Hudi table '{'.'.join(found.target)}' takes no "
            "parameters there; use spark.sql(text, args=…)"
        )
    _refuse_folders(session, found)
    return None


def _refuse_truncation(session: SqlSession, head: Head) -> None:
    """Raises: Unsupported for a script that would let Spark delete the files of a Hudi table.

    Spark runs a script in the JVM. Each other statement that changes a Hudi table fails there.
    """
    cursor = head.cursor
    while not cursor.is_done:
        if not cursor.take("TRUNCATE", "TABLE"):
            cursor.at += 1
            continue
        name = cursor.name()
        if cursor.sees("(") or session.catalog.find(name) is not None:
            raise Unsupported(
                f"TRUNCATE TABLE {'.'.join(name)} in a script: Spark runs scripts by itself, and would delete the "
                "files of a Hudi table with its history; run the statement alone"
            )


def _refuse_folders(session: SqlSession, head: Head) -> None:
    """Raises: Unsupported for a statement by which Spark would write its own files into a Hudi table's folder."""
    for one in written_folders(head):
        path = str(session.value(one.path)) if one.is_expression else one.path
        what = f"{one.clause} '{path}'"
        refuse_folder(session.spark, path, what)
        if one.is_of_table and not path.startswith("/") and ":" not in path and _is_of_session(session, head.target):
            database = head.target[-2] if len(head.target) > 1 else session.catalog.current_database
            beside, _, _ = session.catalog.default_path(database, "t").rpartition("/")
            refuse_folder(session.spark, f"{beside}/{path}", what)


def _is_of_session(session: SqlSession, name: Name) -> bool:
    return (len(name) < 3 or name[-3].lower() == CATALOG) and not session.catalog.is_elsewhere(name)


def _makes_hudi_table(session: SqlSession, head: Head) -> bool:
    if is_of_hudi(head):
        return True
    like = like_of(head)
    return like is not None and not _says_format(head) and session.catalog.find(like) is not None


def _is_of_hudi(head: Head) -> bool:
    """Whether a CALL may be of Hudi: procedures of other catalogs have the catalog's name in front."""
    return len(head.target) == 1 or head.target[0].lower() in ("system", "spark_catalog", "hudi")


def _says_format(head: Head) -> bool:
    return any(word.upper in ("USING", "STORED") for word in head.cursor.words)
