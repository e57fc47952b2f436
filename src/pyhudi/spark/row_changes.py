"""UPDATE and DELETE, carried out: Spark finds the rows and their new values, in one commit of one snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyhudi.api.rows.frame_changes import STORED_PATH_COLUMN, FrameChange, ReadRows, change_by_frame
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.catalog import CatalogEntry
from pyhudi.engine.spark.sql.columns import table_columns
from pyhudi.engine.spark.sql.stored_as import REFUSED, changed_rows
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.format.struct_fields import column_around, is_path
from pyhudi.merge.rules import MergeMode
from pyhudi.options.told_names import listed
from pyhudi.spark.plain_columns import plain_types
from pyhudi.spark.queries import run_query
from pyhudi.spark.session import SqlSession
from pyhudi.sql.changes import Assigned, Delete, Update, read_delete, read_update
from pyhudi.sql.heads import Head
from pyhudi.sql.relations import with_short_columns, with_table_as
from pyhudi.sql.scopes import given_names
from pyhudi.sql.words import Cursor, quoted_name
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.input.source import Operation
from pyhudi.write.rows.changes import identity_columns, refuse_fields_of_structs, refuse_moving
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REFUSAL: Final = re.compile(re.escape(REFUSED) + r"(.*?)(?:\s+SQLSTATE|\n|$)")
_OLD: Final = "__pyhudi_old_"


def delete_rows(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`DELETE FROM t [WHERE …]`."""
    whole = session.new_view("whole")
    statement = read_delete(of_one_snapshot(session, head, entry, whole))
    table = session.open(entry)

    def rows(snapshot: Snapshot, _: WriteSettings, read: ReadRows) -> DataFrame:
        alias = quoted_name(statement.alias)
        named = [f"{alias}.{quoted_name(n)}" for n in identity_columns(snapshot)]
        names = ", ".join([*named, *_stored_path(alias, snapshot, ())])
        with _views(session, statement, snapshot, read, whole) as view:
            return run_query(session, _select(names, statement, view))

    with told_refusals():
        change_by_frame(table, FrameChange(Operation.DELETE, rows, "DELETE"), session.spark)
    return session.nothing()


def update_rows(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`UPDATE t SET … [WHERE …]`."""
    whole = session.new_view("whole")
    statement = read_update(of_one_snapshot(session, head, entry, whole))
    table = session.open(entry)
    assigned = assigned_columns(statement.assigned, table, what="UPDATE")

    def rows(snapshot: Snapshot, settings: WriteSettings, read: ReadRows) -> DataFrame:
        refuse_moving(assigned, snapshot.config, moves=settings.moves_rows, what="UPDATE")
        with _views(session, statement, snapshot, read, whole) as view:
            return _updated(session, statement, assigned, snapshot, view)

    with told_refusals():
        change_by_frame(table, FrameChange(Operation.UPSERT, rows, "UPDATE"), session.spark)
    return session.nothing()


def _updated(
    session: SqlSession, statement: Update, assigned: dict[str, str], snapshot: Snapshot, view: str
) -> DataFrame:
    """The changed rows. `view`: the rows of the snapshot."""
    alias, config = quoted_name(statement.alias), snapshot.config
    keys = [] if config.record_key else [RECORD_KEY]
    ordering = list(config.ordering) if config.merge_mode is MergeMode.EVENT_TIME else []
    ordering = ordering if any(column_around(name) in assigned for name in ordering) else []
    if any(map(is_path, ordering)):
        refuse_fields_of_structs(config, f"UPDATE of '{column_around(ordering[0])}'")
    columns = table_columns(snapshot.schema, [])
    path = _stored_path(alias, snapshot, assigned)
    values = [
        *(f"{assigned.get(c.name, f'{alias}.{quoted_name(c.name)}')} AS {quoted_name(c.name)}" for c in columns),
        *(f"{alias}.{quoted_name(name)}" for name in keys),
        *(f"{alias}.{quoted_name(name)} AS {quoted_name(_OLD + name)}" for name in ordering),
        *path,
    ]
    found = run_query(session, _select(", ".join(values), statement, view))
    others = [*keys, *(_OLD + name for name in ordering), *([STORED_PATH_COLUMN] if path else [])]
    return changed_rows(found, columns, others, ordering, assigned, table_name=config.name)


def _stored_path(alias: str, snapshot: Snapshot, assigned: Collection[str]) -> list[str]:
    """The partition path that a row stays in, as SQL text; none where rows do not store it, or a column of it gets a
    value.
    """
    if not stores_paths(snapshot) or not set(assigned).isdisjoint(map(column_around, snapshot.config.partition_by)):
        return []
    return [f"{alias}.{quoted_name(PARTITION_PATH)} AS {quoted_name(STORED_PATH_COLUMN)}"]


def stores_paths(snapshot: Snapshot) -> bool:
    """Whether rows have the path of their partition beside the columns that it is made of: in a meta field."""
    return bool(snapshot.key_spec.partition_by) and PARTITION_PATH in snapshot.schema_with_meta.names


@contextmanager
def _views(
    session: SqlSession, statement: Update | Delete, snapshot: Snapshot, read: ReadRows, whole: str
) -> Iterator[str]:
    """A view of the rows that may change, and, where a subquery reads the table, one of all rows, named `whole`."""
    view = session.new_view("target")
    where = None
    if statement.where is not None:
        where = session.plain_conditions(statement.where, statement.alias, plain_types(snapshot.schema))
    texts = [statement.where or "", statement.ctes]
    texts += [one.value for one in statement.assigned] if isinstance(statement, Update) else []
    with session.view(read(where), view):
        if not any(whole in text for text in texts):
            yield view
            return
        with session.view(read(None), whole):
            yield view


def _select(values: str, statement: Update | Delete, view: str) -> str:
    where = "" if statement.where is None else f" WHERE {statement.where}"
    target = f"{quoted_name(view)} AS {quoted_name(statement.alias)}"
    return f"{statement.ctes} SELECT {values} FROM {target}{where}"


def of_one_snapshot(session: SqlSession, head: Head, entry: CatalogEntry, view: str) -> Head:
    """The statement with a view in place of its table wherever it reads the table, as in a subquery.

    So a commit that another writer makes meanwhile is seen everywhere or nowhere. The view has the table's name
    without its database, and so have columns with both in front.
    """
    names = {f"{entry.database}.{entry.name}", f"spark_catalog.{entry.database}.{entry.name}"}
    plain = session.catalog.find((entry.name,))  # not where a temporary view has this name, or another database counts
    if plain is not None and plain.full_name == entry.full_name:
        names.add(entry.name)
    cursor = head.cursor
    at = cursor.words[cursor.at].start if not cursor.is_done else len(cursor.text)
    text = with_table_as(cursor.text[at:], names, view, hidden=given_names(head.ctes))
    anew = Cursor(cursor.text[:at] + with_short_columns(text, names))
    anew.at = cursor.at
    return replace(head, cursor=anew, ctes=with_short_columns(with_table_as(head.ctes, names, view), names))


def assigned_columns(assigned: Sequence[Assigned], table: HudiTable, *, what: str) -> dict[str, str]:
    """Column -> SQL text of its value. Raises: Invalid for a column that is not there or comes twice."""
    spelled = {name.lower(): name for name in table.schema().names}
    found: dict[str, str] = {}
    for one in assigned:
        if len(one.column) > 1 and one.column[0].lower() in spelled:
            raise Unsupported(
                f"{what}: SET {'.'.join(one.column)}: fields of a struct are not set one by one; assign the whole "
                f"column '{one.column[0]}', with named_struct(…)"
            )
        name = spelled.get(one.column[-1].lower())
        if name is None or len(one.column) > 1:
            raise Invalid(
                f"{what}: no column '{'.'.join(one.column)}' in table '{table.name}', which has "
                f"{listed(table.schema().names)}"
            )
        if name in found:
            raise Invalid(f"{what}: expected each column once, found '{name}' twice")
        found[name] = one.value
    return found


@contextmanager
def told_refusals() -> Iterator[None]:
    """What Spark raises for pyhudi in the midst of a query becomes the error that it is. Raises: Invalid."""
    try:
        yield
    except Exception as error:
        found = _REFUSAL.search(str(error))
        if found is None or isinstance(error, Invalid):
            raise
        raise Invalid(found[1]) from error


Change = Callable[[SqlSession, Head, CatalogEntry], "DataFrame"]
