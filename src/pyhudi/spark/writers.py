"""`saveAsTable`, `insertInto`, `writeTo` and `mergeInto`, carried out for Hudi tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyhudi.api.datasource import save_dataframe
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.format_name import is_hudi
from pyhudi.engine.spark.sql.catalog import CatalogEntry
from pyhudi.engine.spark.sql.columns import table_columns
from pyhudi.errors import Invalid, NotFound
from pyhudi.options.metastore_sync import refuse_another_name, without_sync
from pyhudi.options.resolve import OPERATION, without_operation, without_others
from pyhudi.options.table_facts import Fact
from pyhudi.options.verdicts import fact_names
from pyhudi.spark.definitions import columns_text, make_table
from pyhudi.spark.entries.kept import is_kept, keep_entry, refuse_base_files
from pyhudi.spark.inserts import partition_columns, typed_rows, write_rows
from pyhudi.spark.merge_calls import MergeWriter
from pyhudi.spark.overwrites import overwrite_where
from pyhudi.spark.session import SqlSession
from pyhudi.spark.shows import refresh_entry
from pyhudi.spark.table_facts import PARTITION_PATH_OPTION, staying_facts
from pyhudi.sql.definitions import CreateTable
from pyhudi.sql.words import Cursor, Name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyhudi.engine.spark.sql.writer_hooks import StatedTable

_APPENDS, _MAKES = ("append",), ("create", "createOrReplace")


class TableCalls:
    """Writes to Hudi tables by their names (`TableWrites`)."""

    def __init__(self, session_of: Callable[[SparkSession], SqlSession]) -> None:
        self._session_of = session_of

    def save(self, rows: DataFrame, table: StatedTable) -> bool:
        """`saveAsTable`: columns are found by their names."""
        session, name, entry, table = self._found(rows, table)
        if entry is None:
            if not is_hudi(table.source):
                return False
            if session.catalog.exists(name):
                raise Invalid(f"saveAsTable('{table.name}'): a table or view of this name is there, of another format")
            self._make(session, rows, table, name)
            return True
        _refuse_other_format(entry, table)
        match (table.mode or "error").lower():
            case "append":
                _append(session, entry, rows, table)
            case "overwrite":
                _overwrite(session, entry, rows, table)
            case "ignore":
                pass
            case _:
                raise Invalid(
                    f"saveAsTable('{table.name}'): a table of this name is there already; write with mode('append'), "
                    "or 'overwrite' to make it anew"
                )
        return True

    def insert(self, rows: DataFrame, table: StatedTable, overwrites: bool) -> bool:
        """`insertInto`: columns are found as by INSERT: by their names if they have those of the table, else by places.

        A query may show them in another order than the one that places count.
        """
        session, _, entry, table = self._found(rows, table)
        if entry is None:
            return False
        _refuse_other_format(entry, table)
        _write(session, entry, rows, table, by_name=False, overwrites=overwrites)
        keep_entry(session, entry)
        return True

    def write_to(self, rows: DataFrame, table: StatedTable, action: str, condition: Any) -> bool:
        """`writeTo(…)`: columns are found by their names."""
        session, name, entry, table = self._found(rows, table)
        if entry is None:
            if is_hudi(table.source) and action == "replace":  # Spark would look for a data source of this name
                raise NotFound(f"writeTo('{table.name}').replace(): no table of this name; use createOrReplace()")
            if not is_hudi(table.source) or action not in _MAKES:
                return False
            self._make(session, rows, table, name)
            return True
        match action:
            case "append":
                _append(session, entry, rows, table)
            case "overwritePartitions":
                opened = session.open(entry)
                typed = _typed(opened, rows, by_name=True)
                (opened.insert_overwrite if opened.partition_by else opened.insert_overwrite_table)(
                    typed, options=without_operation(_options(table))
                )
                keep_entry(session, entry)
            case "replace" | "createOrReplace":
                _refuse_other_format(entry, table)
                _overwrite(session, entry, rows, table)
            case "create":
                raise Invalid(f"writeTo('{table.name}').create(): a table of this name is there already; use append()")
            case _:  # overwrite
                opened = session.open(entry)
                overwrite_where(
                    session, opened, _typed(opened, rows, by_name=True), condition, without_operation(_options(table))
                )
                keep_entry(session, entry)
        return True

    def create(self, spark: SparkSession, table: StatedTable, columns: StructType | None, comment: str | None) -> bool:
        """`catalog.createTable`."""
        if not is_hudi(table.source):
            return False
        session, name = self._session_of(spark), Cursor(table.name).name()
        if session.catalog.exists(name):
            raise Invalid(f"createTable('{table.name}'): a table or view of this name is there already")
        options = {key: str(value) for key, value in table.options.items()}
        location = options.pop("path", None)
        text = None if columns is None else columns_text(columns)
        statement = CreateTable(
            name=name, is_lenient=False, replaces=False, columns=text, location=location, comment=comment,
            properties=options,
        )  # fmt: skip
        make_table(session, statement, None)
        return True

    def merge(self, rows: DataFrame, name: str, condition: Column) -> MergeWriter | None:
        """`mergeInto`."""
        try:
            parts = Cursor(name).name()
        except Invalid:
            return None  # Spark says what is wrong with it
        session = self._session_of(rows.sparkSession)
        if session.catalog.find(parts) is None:
            return None
        return MergeWriter(session, rows, parts, condition)

    def _found(self, rows: DataFrame, table: StatedTable) -> tuple[SqlSession, Name, CatalogEntry | None, StatedTable]:
        """The session, the name, its entry, and the table without options that writing by name fulfils."""
        session = self._session_of(rows.sparkSession)
        try:
            name = Cursor(table.name).name()
        except Invalid:
            return session, (), None, table  # Spark says what is wrong with it
        entry = session.catalog.find(name)
        if entry is not None:
            refuse_base_files(entry, what="a write")
        if is_kept(session) and (entry is not None or is_hudi(table.source)):
            refuse_another_name(table.options, name)
            table = replace(table, options=without_sync(table.options))
        return session, name, entry, table

    def _make(self, session: SqlSession, rows: DataFrame, table: StatedTable, name: Name) -> None:
        options = {key: str(value) for key, value in table.options.items()}
        location = options.pop("path", None)
        options.pop(OPERATION, None)  # a first write has nothing to change
        statement = CreateTable(
            name=name,
            is_lenient=False,
            replaces=False,
            partition_by=tuple(table.partition_by),
            location=location,
            properties={**_without_name(options), **table.properties},
            query="",
        )
        make_table(session, statement, rows)


def _append(session: SqlSession, entry: CatalogEntry, rows: DataFrame, table: StatedTable) -> None:
    if table.options.get(OPERATION):
        save_dataframe(rows, entry.path, "append", {**session.session_options, **_options(table)})
    else:
        _write(session, entry, rows, table, by_name=True, overwrites=False)
    refresh_entry(session, entry)
    keep_entry(session, entry)


def _overwrite(session: SqlSession, entry: CatalogEntry, rows: DataFrame, table: StatedTable) -> None:
    """Make the table anew, all or nothing, as `mode("overwrite")`. What is not said of it stays."""
    stored = HudiTable.open(entry.path)
    facts: dict[str, object] = {
        "hoodie.table.name": stored.name,
        "hoodie.datasource.write.recordkey.field": ",".join(stored.record_key),
        PARTITION_PATH_OPTION: ",".join(table.partition_by or stored.partition_by),
        "hoodie.datasource.write.precombine.field": ",".join(stored.ordering),
        "hoodie.datasource.write.table.type": stored.table_type,
    }
    said = {**session.session_options, **_options(table)}
    stated = {name: text for name, text in {**facts, **staying_facts(stored, said, table.partition_by)}.items() if text}
    save_dataframe(rows, entry.path, "overwrite", {**stated, **said})
    refresh_entry(session, entry)
    keep_entry(session, entry)


def _write(
    session: SqlSession, entry: CatalogEntry, rows: DataFrame, table: StatedTable, *, by_name: bool, overwrites: bool
) -> None:
    opened = session.open(entry)
    typed = _typed(opened, rows, by_name=by_name)
    write_rows(session, entry, opened, typed, overwrites=overwrites, options=_options(table))


def _typed(table: HudiTable, rows: DataFrame, *, by_name: bool) -> DataFrame:
    columns = table_columns(table.schema(), partition_columns(table))
    return typed_rows(rows, columns, table, by_name=by_name)


def _options(table: StatedTable) -> dict[str, str]:
    said = {name: str(value) for name, value in without_others(table.options).items() if name != "path"}
    return _without_name(said)


def _without_name(options: dict[str, str]) -> dict[str, str]:
    """The options without the table's name, which the catalog says. A first write may be by another name's options."""
    names = fact_names(Fact.NAME)
    return {name: text for name, text in options.items() if name not in names}


def _refuse_other_format(entry: CatalogEntry, table: StatedTable) -> None:
    if table.source is not None and not is_hudi(table.source):
        raise Invalid(
            f"table '{'.'.join(entry.full_name)}': is a Hudi table, and is not written as '{table.source}'; leave the "
            "format out, or drop the table first"
        )
