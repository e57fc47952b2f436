"""INSERT INTO and INSERT OVERWRITE, carried out: rows of a query as rows of the table, by Spark's store assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyhudi.api.partitions import has_rows, has_times_in_paths, living_partitions, overwrite_partitions
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.catalog import CatalogEntry
from pyhudi.engine.spark.sql.columns import table_columns
from pyhudi.engine.spark.sql.partition_values import in_type_of
from pyhudi.engine.spark.sql.stored_as import stored_as, with_constants, without
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.options import told_names
from pyhudi.options.resolve import without_operation
from pyhudi.spark.partitions import matching_partitions
from pyhudi.spark.queries import run_query
from pyhudi.spark.session import SqlSession
from pyhudi.sql.changes import Insert, PartitionValue, read_insert
from pyhudi.sql.heads import Head
from pyhudi.sql.insert_settings import OF_SQL, InsertSettings, asked_operation
from pyhudi.sql.words import quoted_name
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField


def insert(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`INSERT INTO | OVERWRITE`: one commit."""
    statement = read_insert(head)
    table = session.open(entry)
    statement = replace(statement, partition=_spelled(statement.partition, table))
    if statement.overwrites:
        _refuse_times(statement, table)
    if statement.is_lenient and _has_partition(session, statement, table):
        return session.nothing()
    rows = run_query(session, statement.query)
    columns = table_columns(table.schema(), partition_columns(table))
    if statement.partition:
        rows = _with_static_partition(session, statement, rows, table, columns)
        columns = _in_order_of_spec(statement, columns)
    typed = typed_rows(
        rows, columns, table, listed=statement.columns, by_name=statement.by_name, fixed=_fixed(statement)
    )
    write_rows(session, entry, table, typed, overwrites=statement.overwrites, statement=statement)
    return session.nothing()


def _spelled(said: Sequence[PartitionValue], table: HudiTable) -> tuple[PartitionValue, ...]:
    """What is said of each column, with the names as the table has them. Others stay as they are, to be refused."""
    known = {name.lower(): name for name in table.schema().names}
    return tuple(PartitionValue(known.get(one.column.lower(), one.column), one.value) for one in said)


def _refuse_times(statement: Insert, table: HudiTable) -> None:
    """Raises: Unsupported for an overwrite of one value of a column whose values share partitions."""
    known = {name.lower(): name for name in table.partition_by}
    for one in statement.partition:
        name = known.get(one.column.lower())
        if name is not None and one.value is not None and has_times_in_paths(table, name):
            raise Unsupported(
                f"INSERT OVERWRITE … PARTITION ({name} = …): partitions of table '{table.name}' are of times, and one "
                f"holds many values of '{name}'; leave the value out, and SET hoodie.datasource.overwrite.mode=dynamic,"
                " which replaces the partitions of the new rows"
            )


def _has_partition(session: SqlSession, statement: Insert, table: HudiTable) -> bool:
    """Whether the partition that the statement names has rows. Raises: Invalid where it names several."""
    living = matching_partitions(session, table, statement.partition, living_partitions(table))
    said = {one.column.lower() for one in statement.partition}
    if missing := [name for name in table.partition_by if name.lower() not in said]:
        raise Invalid(
            f"INSERT OVERWRITE … PARTITION … IF NOT EXISTS: expected a value of each partition column of table "
            f"'{table.name}', found none of {', '.join(missing)}"
        )
    return has_rows(table, living)


def typed_rows(
    rows: DataFrame,
    columns: Sequence[StructField],
    table: HudiTable,
    *,
    listed: Sequence[str] | None = None,
    by_name: bool = False,
    fixed: Sequence[str] = (),
) -> DataFrame:
    """The rows of a query as rows of the table. `columns`: the table's, as positions count. `listed`: named in the
    statement. `fixed`: columns whose value the statement says; the rows have them last.

    Columns that are not listed are null. Where the query's columns have all names of the table, names count. Seen: so
    does 1.0.2, which tries names first.
    """
    rows = without(rows, META_FIELDS)
    wanted = [field for field in columns if field.name not in fixed]
    missing: list[StructField] = []
    if listed is not None:
        wanted = _listed(listed, columns, table.name)
        missing = [field for field in columns if field not in wanted and field.name not in fixed]
    names = [name.lower() for name in rows.columns[: len(rows.columns) - len(fixed)]]
    if by_name:
        missing = [field for field in wanted if field.name.lower() not in names]
        wanted = [field for field in wanted if field.name.lower() in names]
    has_names = len(set(names)) == len(names) and set(names) == {field.name.lower() for field in wanted}
    is_named = by_name or (has_names and listed is None)
    last = [field for name in fixed for field in columns if field.name == name]
    typed = stored_as(rows, [*wanted, *last], table_name=table.name, by_name=is_named)
    return with_constants(typed, missing, columns)


def write_rows(
    session: SqlSession,
    entry: CatalogEntry | None,
    table: HudiTable,
    rows: DataFrame,
    *,
    overwrites: bool,
    statement: Insert | None = None,
    options: Mapping[str, str] | None = None,
) -> None:
    """Write rows in one commit, by the operation that the session's options and the table choose."""
    stated = {**session.write_options(entry), **(options or {})}
    settings = InsertSettings.from_options(stated)
    asked = asked_operation({**session.session_options, **(options or {})})  # not as a property: as in 1.2.0
    given = {name: text for name, text in without_operation(stated).items() if name not in OF_SQL}
    if asked == "insert_overwrite_table":
        table.insert_overwrite_table(rows, options=given)
        return
    if not overwrites and asked != "insert_overwrite":
        settings = replace(settings, operation=asked or settings.operation)
        given = {**settings.duplicates(), **given}
        writes = WriteSettings.from_options(given)
        operation = settings.operation_for(
            has_keys=bool(table.record_key), has_ordering=bool(table.ordering),
            drops=writes.insert_duplicates != "none", combines=writes.combine_before_insert,
        )  # fmt: skip
        getattr(table, operation)(rows, options=given)
        return
    fixed = () if statement is None else _fixed(statement)
    is_static = _is_static(session, settings.overwrite_mode)
    if not table.partition_by or (not fixed and is_static and asked != "insert_overwrite"):
        table.insert_overwrite_table(rows, options=given)
    elif statement is not None and fixed and (is_static or len(fixed) == len(table.partition_by)):
        _overwrite_static(session, table, rows, statement, given)
    else:
        table.insert_overwrite(rows, options=given)


def partition_columns(table: HudiTable) -> list[str]:
    """The partition columns that are columns of the table."""
    names = set(table.schema().names)
    return [name for name in table.partition_by if name in names]


def _is_static(session: SqlSession, mode: str) -> bool:
    """Whether an overwrite replaces all rows that have the values of `PARTITION`, or the partitions of its rows.

    Seen: 0.15.0, 1.0.2 and 1.2.0 go by their own option, and without it by Spark's.
    """
    found = mode or str(session.spark.conf.get("spark.sql.sources.partitionOverwriteMode", "STATIC")).upper()
    return found == "STATIC"


def _overwrite_static(
    session: SqlSession, table: HudiTable, rows: DataFrame, statement: Insert, options: dict[str, str]
) -> None:
    """Replace the partitions that have the values of the statement, in one commit."""
    fixed = [one for one in statement.partition if one.value is not None]
    living = matching_partitions(session, table, fixed, living_partitions(table))
    if rows.isEmpty():
        table.delete_partitions(living, options=options)
    else:
        overwrite_partitions(table, rows, living, options)


def _fixed(statement: Insert) -> tuple[str, ...]:
    return tuple(one.column for one in statement.partition if one.value is not None)


def _with_static_partition(
    session: SqlSession, statement: Insert, rows: DataFrame, table: HudiTable, columns: Sequence[StructField]
) -> DataFrame:
    """The rows with the values of `PARTITION (column = value)` as columns at the end."""
    known = {field.name.lower() for field in columns}
    own = {name.lower() for name in table.partition_by}
    for one in statement.partition:
        if one.column.lower() not in own & known:
            raise Invalid(
                f"INSERT … PARTITION: '{one.column}' is no partition column of table '{table.name}', which has "
                f"{', '.join(table.partition_by) or 'none'}"
            )
    stored = {field.name.lower(): field for field in table.schema()}
    fixed = {
        one.column: in_type_of(stored[one.column.lower()], one.value, session.spark_sql)
        for one in statement.partition
        if one.value is not None
    }
    rows = without(rows, META_FIELDS)
    with session.view(rows, session.new_view("rows")) as view:
        added = ", ".join(f"{text} AS {quoted_name(name)}" for name, text in fixed.items())
        return session.spark_sql(f"SELECT *, {added} FROM {view}") if fixed else rows


def _in_order_of_spec(statement: Insert, columns: Sequence[StructField]) -> list[StructField]:
    """The columns as the rows have them: those of the table, then partitions without value, then those with."""
    said = {one.column.lower(): one for one in statement.partition}
    return [
        *(field for field in columns if field.name.lower() not in said),
        *(field for name in said for field in columns if field.name.lower() == name and said[name].value is None),
        *(field for name in said for field in columns if field.name.lower() == name and said[name].value is not None),
    ]


def _listed(listed: Sequence[str], columns: Sequence[StructField], table_name: str) -> list[StructField]:
    known = {field.name.lower(): field for field in columns}
    found = []
    for name in listed:
        if name.lower() not in known:
            raise Invalid(f"INSERT: no column '{name}' in table '{table_name}', which has {told_names.listed(known)}")
        found.append(known[name.lower()])
    if len(set(map(id, found))) != len(found):
        raise Invalid(f"INSERT: expected each column once, found {', '.join(listed)}")
    return found
