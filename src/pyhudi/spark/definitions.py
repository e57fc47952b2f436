"""CREATE, REPLACE, DROP, TRUNCATE and ALTER TABLE, carried out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.api.dropping import delete_table
from pyhudi.api.first_write import taken_back_on_failure
from pyhudi.api.partitions import living_partitions
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.schema import arrow_schema, spark_schema
from pyhudi.engine.spark.session import refuse_unshared
from pyhudi.engine.spark.sql.catalog import CATALOG, CatalogEntry, SessionCatalog, as_kept, path_of
from pyhudi.engine.spark.sql.columns import nullable, parsed_columns, refuse_collations, reordered
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.options.resolve import without_operation
from pyhudi.options.told_names import listed
from pyhudi.spark.alterations import change_columns
from pyhudi.spark.entries.kept import is_kept, keep_entry, names_beside, stands_beside
from pyhudi.spark.entries.new import put_entry
from pyhudi.spark.partitions import matching_partitions
from pyhudi.spark.queries import prime, run_query
from pyhudi.spark.renaming import rename
from pyhudi.spark.session import SqlSession
from pyhudi.spark.shows import refresh_entry
from pyhudi.spark.table_facts import (
    facts_like,
    facts_of_session,
    new_table,
    options_stored,
    refuse_other_facts,
    stated_facts,
    with_kinds,
)
from pyhudi.sql.changes import partition_values
from pyhudi.sql.column_changes import read_added_columns
from pyhudi.sql.definitions import AlterTable, CreateTable, read_alter, read_create
from pyhudi.sql.heads import Head
from pyhudi.sql.words import Name, quoted_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def create_table(session: SqlSession, head: Head) -> DataFrame:
    """`CREATE TABLE … USING hudi`, with columns, by a query, or of a table that is there.

    The table and its name: both, or neither.
    """
    statement = read_create(head)
    _refuse_elsewhere(session, statement.name)
    if session.catalog.exists(statement.name):
        if statement.is_lenient:
            return session.nothing()
        if statement.replaces:
            return _replace_table(session, statement)
        raise Invalid(
            f"CREATE TABLE {'.'.join(statement.name)}: a table or view of this name is there already; write "
            "CREATE TABLE IF NOT EXISTS, or drop it first"
        )
    if statement.like is not None:
        statement = _like(session, statement)
    if statement.query is not None:
        rows = run_query(session, statement.query)
        make_table(session, statement, rows)
        return session.nothing()
    make_table(session, statement, None)
    return session.nothing()


def make_table(session: SqlSession, statement: CreateTable, rows: DataFrame | None) -> None:
    """Make a table of a statement, and store the rows of its query, if it has one."""
    database, name = _database(session, statement.name), as_kept(session.spark, statement.name[-1])
    is_managed = statement.location is None
    path = session.catalog.default_path(database, name) if is_managed else _location(statement)
    columns = _columns(session, statement, rows)
    is_there = HudiTable.exists(path)
    of_session = {} if is_there else facts_of_session(session.session_options, statement.properties)
    stated = stated_facts({**of_session, **statement.properties})
    if is_there and rows is not None:
        raise Invalid(
            f"{path}: expected no table for CREATE TABLE … AS or saveAsTable, found one that the name "
            f"'{'.'.join(statement.name)}' does not stand for yet; CREATE TABLE {'.'.join(statement.name)} USING hudi"
            f"{'' if is_managed else ' LOCATION …'} gives it the name, then write into it"
        )
    if not is_there and columns is None:
        raise Invalid(
            f"CREATE TABLE {'.'.join(statement.name)}: expected columns, a query, or the LOCATION of a Hudi table that "
            f"is there, found none at '{path}'"
        )

    partition_by = _partition_columns(columns, with_kinds(statement.partition_by, stated.partition_by or ()))
    stated = replace(
        stated, record_key=_spelled(columns, stated.record_key), ordering=_spelled(columns, stated.ordering)
    )
    with ExitStack() as made:
        if is_there:
            table = HudiTable.open(path)
            refuse_other_facts(table, stated, partition_by)
            _refuse_other_columns(table, columns)
        else:
            assert columns is not None
            schema = arrow_schema(reordered(columns, [one.partition(":")[0] for one in partition_by]))
            table = new_table(
                path, name=name, database=database, stated=stated, partition_by=partition_by, schema=schema
            )
            made.enter_context(taken_back_on_failure(path))
        if not session.is_classic:
            refuse_unshared(session.spark, table._access.location)  # the server may see another folder there
        if rows is not None:
            table.bulk_insert(
                rows.select(*_own(rows.columns)), options=without_operation(session.options_of_writes(None))
            )
        put_entry(
            session, table, (database, name), path=path, is_managed=is_managed, columns=columns,
            properties=statement.properties, comment=statement.comment,
        )  # fmt: skip
    prime(session, (database, name))
    if is_kept(session) and (is_there or rows is not None):
        keep_entry(session, session.get_entry((CATALOG, database, name)))


def _replace_table(session: SqlSession, statement: CreateTable) -> DataFrame:
    """`CREATE OR REPLACE TABLE` of a table that is there: all or nothing, as `mode("overwrite")`."""
    raise Unsupported(
        f"REPLACE TABLE {'.'.join(statement.name)}: a table that is there is not replaced by SQL in this release; use "
        "INSERT OVERWRITE for its rows, or df.write.format('hudi').mode('overwrite').save(path)"
    )


def _like(session: SqlSession, statement: CreateTable) -> CreateTable:
    """`CREATE TABLE a LIKE b`: the columns of b, and its facts where it is a Hudi table."""
    assert statement.like is not None
    entry = session.catalog.find(statement.like)
    if entry is None:
        found = run_query(session, f"SELECT * FROM {quoted_name(*statement.like)} LIMIT 0")
        return replace(statement, query=None, columns=columns_text(found.schema))
    table = HudiTable.open(entry.path)
    columns = session.catalog.columns(entry)
    own = [field for field in columns.fields if field.name not in META_FIELDS]
    like = facts_like(table, statement.properties, statement.partition_by)
    return replace(
        statement,
        columns=columns_text(type(columns)(own)),
        partition_by=statement.partition_by or table.partition_by,
        properties={**entry.properties, **like, **statement.properties},
    )


def columns_text(columns: StructType) -> str:
    """Columns as they stand in `CREATE TABLE`."""
    return ", ".join(f"{quoted_name(field.name)} {field.dataType.simpleString()}" for field in columns.fields)


def drop_table(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`DROP TABLE [PURGE]`. The files of a managed table go, too, and those of any table with PURGE."""
    purges = head.cursor.take("PURGE")
    head.cursor.end()
    is_there = HudiTable.exists(entry.path)
    catalog = session.catalog
    if (
        isinstance(catalog, SessionCatalog)
        and is_kept(session)
        and is_there
        and stands_beside(entry, HudiTable.open(entry.path).name)
    ):
        if purges:
            raise Unsupported(
                f"DROP TABLE {'.'.join(entry.full_name)} PURGE: this name stands beside the own name of the table at "
                f"{entry.path}; drop the table by that one, or leave PURGE out"
            )
        assert isinstance(catalog, SessionCatalog)
        catalog.drop_name(entry)
        return session.nothing()
    beside = names_beside(session, entry) if entry.is_managed or purges else []
    if (entry.is_managed or purges) and is_there:
        delete_table(entry.path)
    for one in (*beside, entry):
        session.catalog.drop(one, purge=purges)
    return session.nothing()


def truncate_table(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`TRUNCATE TABLE t [PARTITION (…)]`: one commit, so that time travel still shows the rows."""
    table = session.open(entry)
    if not head.cursor.take("PARTITION"):
        head.cursor.end()
        table.insert_overwrite_table(table.schema().empty_table())
        return session.nothing()
    said = partition_values(head.cursor.brackets(), needs_values=True)
    head.cursor.end()
    living = living_partitions(table)
    table.delete_partitions(matching_partitions(session, table, said, living, takes_patterns=True))
    return session.nothing()


def alter_table(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`ALTER TABLE`: what changes a name, columns or properties, and partitions that go.

    Raises: Unsupported for the rest.
    """
    statement = read_alter(head)
    match statement.what:
        case "RENAME TO":
            return rename(session, head, entry, statement)
        case "SET TBLPROPERTIES":
            return _set_properties(session, head, entry, statement)
        case "UNSET TBLPROPERTIES":
            return _unset_properties(session, head, entry, statement)
        case "DROP PARTITION":
            return _drop_partitions(session, entry, statement)
        case "ADD COLUMNS":
            added = read_added_columns(statement.columns)
            if any("." in one.path or one.has_place for one in added):
                return change_columns(session, entry, added)
            return _add_columns(session, entry, statement)
        case "CHANGE COLUMNS":
            return change_columns(session, entry, statement.changes)
        case "ADD PARTITION":
            table = session.open(entry)
            for said in statement.partitions:
                matching_partitions(session, table, said, ())  # refuses columns that are none of a partition's
            return session.nothing()  # partitions of a Hudi table are those of its rows
    raise Unsupported(
        f"ALTER TABLE {'.'.join(entry.full_name)} {statement.what}: expected what changes its name, columns, "
        "properties or partitions"
    )


def _add_columns(session: SqlSession, entry: CatalogEntry, statement: AlterTable) -> DataFrame:
    """`ADD COLUMNS (…)`: a commit without rows, whose schema has them. Stored rows have null there."""
    table = session.open(entry)
    added = parsed_columns(session.spark, statement.columns)
    known = {name.lower() for name in table.schema().names}
    for field in added.fields:
        if field.name.lower() in known:
            raise Invalid(f"ALTER TABLE … ADD COLUMNS: column '{field.name}' is there already in '{table.name}'")
        if not field.nullable:
            raise Invalid(
                f"ALTER TABLE … ADD COLUMNS: column '{field.name}': stored rows have no value: leave out NOT NULL"
            )
    if not known:
        raise Invalid(f"ALTER TABLE … ADD COLUMNS: table '{table.name}' has no columns yet; its first write gives them")
    schema = pa.schema([*table.schema(), *arrow_schema(added)])
    table.insert(schema.empty_table(), options={"hoodie.allow.empty.commit": "true"})
    comments = {one.name: one.metadata["comment"] for one in added.fields if one.metadata}
    refresh_entry(session, entry, comments=comments)
    return session.nothing()


def _set_properties(session: SqlSession, head: Head, entry: CatalogEntry, statement: AlterTable) -> DataFrame:
    """Properties that later statements go by. Those that are facts of the table are refused."""
    stated = stated_facts(statement.properties)
    for what, said in (("primaryKey", stated.record_key), ("preCombineField", stated.ordering),
                       ("type", stated.table_type), ("partition columns", stated.partition_by),
                       ("table version", stated.version)):  # fmt: skip
        if said is not None:
            raise Invalid(f"ALTER TABLE … SET TBLPROPERTIES: {what} is a fact of the table, and stays")
    if not isinstance(session.catalog, SessionCatalog):
        return session.spark_sql(head.cursor.text)
    session.catalog.set_properties(entry, statement.properties)
    return session.nothing()


def _unset_properties(session: SqlSession, head: Head, entry: CatalogEntry, statement: AlterTable) -> DataFrame:
    missing = [name for name in statement.removed if name not in (*entry.properties, "comment")]
    if missing and not statement.is_lenient:
        kept = [name for name in missing if name in session.open(entry).properties]
        in_table = f"; the table itself stores {kept[0]}: HudiTable.open(path).set_properties({{'{kept[0]}': None}})"
        raise Invalid(
            f"ALTER TABLE {'.'.join(entry.full_name)} UNSET TBLPROPERTIES: expected properties of the name, found "
            f"{', '.join(missing)}; IF EXISTS passes over them{in_table if kept else ''}"
        )
    table = HudiTable.open(entry.path)
    if stored := options_stored(table, statement.removed):  # CREATE TABLE keeps options in both places
        table.set_properties(dict.fromkeys(stored))
    if not isinstance(session.catalog, SessionCatalog):
        return session.spark_sql(head.cursor.text)
    session.catalog.set_properties(entry, dict.fromkeys(statement.removed))
    return session.nothing()


def _drop_partitions(session: SqlSession, entry: CatalogEntry, statement: AlterTable) -> DataFrame:
    table = session.open(entry)
    living = living_partitions(table)
    chosen: list[str] = []
    for said in statement.partitions:
        found = matching_partitions(session, table, said, living, takes_patterns=True)
        if not found and not statement.is_lenient:
            shown = ", ".join(f"{one.column}={one.value}" for one in said)
            raise Invalid(f"DROP PARTITION ({shown}): expected a partition of '{table.name}', found none; IF EXISTS "
                          "passes over it")  # fmt: skip
        chosen += found
    table.delete_partitions(tuple(dict.fromkeys(chosen)))
    return session.nothing()


def _database(session: SqlSession, name: Name) -> str:
    _refuse_elsewhere(session, name)
    return as_kept(session.spark, name[-2]) if len(name) > 1 else session.catalog.current_database


def _refuse_elsewhere(session: SqlSession, name: Name) -> None:
    """Raises: Unsupported for a new name that is one of another catalog, such as the current one."""
    if (len(name) > 2 and name[-3].lower() != CATALOG) or session.catalog.is_elsewhere(name):
        raise Unsupported(
            f"table '{'.'.join(name)}': expected a name of {CATALOG}, found one of another catalog, where Hudi tables "
            f"have no names; write {CATALOG}.database.table, or USE {CATALOG} first"
        )


def _location(statement: CreateTable) -> str:
    location = statement.location
    assert location is not None
    if not location.strip():
        raise Invalid("LOCATION: expected a path, found nothing")
    return path_of(location)


def _columns(session: SqlSession, statement: CreateTable, rows: DataFrame | None) -> StructType | None:
    if rows is not None:
        if statement.columns:
            raise Invalid("CREATE TABLE … AS: expected no columns beside a query, found some; CAST them in the query")
        columns = nullable(rows.select(*_own(rows.columns)).schema)
        refuse_collations(columns)
        return columns
    if statement.columns is None or not statement.columns.strip():
        return None
    return parsed_columns(session.spark, statement.columns)


def _partition_columns(columns: StructType | None, said: Sequence[str]) -> list[str]:
    """The partition columns as the table's columns are spelled. Raises: Invalid for one that is none of them."""
    if columns is None:
        return list(said)
    spelled = {name.lower(): name for name in columns.names}
    found = []
    for one in said:
        name, colon, kind = one.partition(":")
        if name.lower() not in spelled:
            raise Invalid(f"PARTITIONED BY: no column '{name}' among {listed(columns.names)}")
        found.append(f"{spelled[name.lower()]}{colon}{kind}")
    return found


def _spelled(columns: StructType | None, said: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Columns that properties name, as the table's columns are spelled. Others are left as they are."""
    known = {} if columns is None else {name.lower(): name for name in columns.names}
    return None if said is None else tuple(known.get(name.lower(), name) for name in said)


def _refuse_other_columns(table: HudiTable, columns: StructType | None) -> None:
    names = {name.lower() for name in table.schema().names}
    if columns is None or not names:
        return
    said = [field for field in columns.fields if field.name not in META_FIELDS]
    for field in said:
        if field.name.lower() not in names:
            raise Invalid(
                f"{table.path}: the table that is there has no column '{field.name}'; it has "
                f"{listed(table.schema().names)}; leave the columns out"
            )
    stored = {field.name.lower(): field.dataType.simpleString() for field in spark_schema(table.schema()).fields}
    for kept in spark_schema(arrow_schema(type(columns)(said))).fields:
        if kept.dataType.simpleString() != stored[kept.name.lower()]:
            raise Invalid(
                f"{table.path}: column '{kept.name}': expected {stored[kept.name.lower()]}, as the table there has it, "
                f"found {kept.dataType.simpleString()}; leave the columns out"
            )


def _own(names: Sequence[str]) -> list[str]:
    """Columns without meta fields, in backticks."""
    return [quoted_name(name) for name in names if name not in META_FIELDS]
