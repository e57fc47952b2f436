"""ALTER TABLE of columns, carried out by `HudiTable.alter`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.api.service_calls.alteration import TableAlteration
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.schema import arrow_schema
from pyhudi.engine.spark.sql.catalog import CatalogEntry
from pyhudi.engine.spark.sql.columns import parsed_columns
from pyhudi.spark.session import SqlSession
from pyhudi.spark.shows import refresh_entry
from pyhudi.sql.column_changes import ColumnChange, Verb
from pyhudi.sql.words import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def change_columns(session: SqlSession, entry: CatalogEntry, changes: Sequence[ColumnChange]) -> DataFrame:
    """The changes of one statement: one commit, or none of them. Names are taken as Spark does: capitals do not count.

    Raises: as `TableAlteration.commit`.
    """
    table = session.open(entry)
    alteration = table.alter()
    for change in changes:
        _add(session, table, alteration, change)
    alteration.commit()
    comments = {_of_catalog(table, one): one.comment for one in changes if one.comment is not None}
    refresh_entry(session, entry, comments=comments)
    return session.nothing()


def _of_catalog(table: HudiTable, change: ColumnChange) -> str:
    return change.name or _stored_path(table.schema(), change.path)


def _add(session: SqlSession, table: HudiTable, alteration: TableAlteration, change: ColumnChange) -> None:
    schema = table.schema()
    if change.verb is Verb.ADD:
        around, _, name = change.path.rpartition(".")
        path = f"{_stored_path(schema, around)}.{name}" if around else name
        kind, after = _type(session, change.type), _sibling(schema, path, change.after)
        alteration.add(path, kind, after=after, first=change.is_first, comment=change.comment)
        return

    path = _stored_path(schema, change.path)
    match change.verb:
        case Verb.RENAME:
            alteration.rename(path, change.name)
        case Verb.DROP:
            alteration.drop(path)
        case Verb.ALTER:
            if change.type:
                alteration.change_type(path, _type(session, change.type))
            if change.comment is not None:
                alteration.comment(path, change.comment or None)
            if change.drops_not_null:
                alteration.make_nullable(path)
            if change.has_place:
                alteration.move(path, after=_sibling(schema, path, change.after), first=change.is_first)
            if change.name:
                alteration.rename(path, change.name)


def _type(session: SqlSession, text: str) -> pa.DataType:
    (field,) = arrow_schema(parsed_columns(session.spark, f"{quoted_name('c')} {text}"))
    return field.type


def _sibling(schema: pa.Schema, path: str, name: str | None) -> str | None:
    """The column beside which another one of the same struct is to stand, as the table spells it."""
    if name is None or "." in name:
        return name if name is None else _stored_path(schema, name)
    around = path.rpartition(".")[0]
    return _stored_path(schema, f"{around}.{name}" if around else name)


def _stored_path(schema: pa.Schema, path: str) -> str:
    """A path with the names as the table spells them. Names that it has not stay as they are, to be refused by name."""
    found, fields = [], list(schema)
    for name in path.split("."):
        field = next((one for one in fields if one.name.lower() == name.lower()), None)
        found.append(name if field is None else field.name)
        fields = [] if field is None else _parts(field.type)
    return ".".join(found)


def _parts(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_list(kind):
        return [kind.value_field.with_name("element")]
    if pa.types.is_map(kind):
        return [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    return []
