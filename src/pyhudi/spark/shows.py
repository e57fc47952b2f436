"""SHOW PARTITIONS, REFRESH, ANALYZE, MSCK REPAIR and LOAD DATA, carried out or refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.api.partitions import has_slashed_dates, living_partitions, partition_texts
from pyhudi.api.table import HudiTable
from pyhudi.engine.spark.sql.catalog import CatalogEntry, SessionCatalog
from pyhudi.engine.spark.sql.columns import catalog_columns
from pyhudi.errors import Unsupported
from pyhudi.format.keys.record_keys import DEFAULT_PARTITION
from pyhudi.spark.inserts import partition_columns
from pyhudi.spark.partitions import matching_partitions
from pyhudi.spark.session import SqlSession
from pyhudi.spark.table_facts import has_meta_fields
from pyhudi.sql.changes import partition_values
from pyhudi.sql.heads import Head

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def show_partitions(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`SHOW PARTITIONS t [PARTITION (…)]`: the paths of partitions with rows, as they are stored.

    Seen: of a path with slashed dates, 1.2.0 shows the column and its text: `day=2026-01-05`.
    """
    table = HudiTable.open(entry.path)
    paths = list(living_partitions(table))
    if head.cursor.take("PARTITION"):
        paths = matching_partitions(session, table, partition_values(head.cursor.brackets()), paths)
    head.cursor.end()
    shown = _with_dates(table, paths) if has_slashed_dates(table) else paths
    return session.rows([(path,) for path in shown if path], "partition string")


def _with_dates(table: HudiTable, paths: list[str]) -> list[str]:
    texts = partition_texts(table, paths)
    return [f"{name}={text or DEFAULT_PARTITION}" for path in paths for name, text in texts[path].items()]


def refresh_table(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`REFRESH TABLE`, `MSCK REPAIR TABLE`: the catalog learns the table's columns. Queries are always up to date."""
    refresh_entry(session, entry)
    return session.nothing()


def refresh_entry(session: SqlSession, entry: CatalogEntry, *, comments: Mapping[str, str] | None = None) -> None:
    """Let the catalog and the session know the table as it is.

    `comments`: new ones of columns. Those of fields within columns are not the catalog's.
    """
    tell_columns(session, entry, comments=comments or {})
    session.catalog.prime(entry)


def tell_columns(session: SqlSession, entry: CatalogEntry, *, comments: Mapping[str, str]) -> None:
    """Tell the catalog of columns that writes have added or changed, and of new comments."""
    stored = session.catalog.columns(entry)
    kept = [field for field in stored.fields if field.name not in comments]
    told = [type(kept[0])(name, kept[0].dataType, True, {"comment": text}) for name, text in comments.items()]
    table = HudiTable.open(entry.path)
    partition_by = partition_columns(table)
    said = type(stored)([*kept, *told])
    now = catalog_columns(table.schema(), partition_by, said=said, has_meta_fields=has_meta_fields(table))
    known = [(f.name, f.dataType) for f in stored.fields]
    if not comments and [(f.name, f.dataType) for f in now.fields] == known:
        return
    session.catalog.set_columns(entry, now, base_format=base_format_of(table))


def base_format_of(table: HudiTable) -> str:
    return table.properties.get("hoodie.table.base.file.format", "PARQUET")


def analyze(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    """`ANALYZE TABLE t COMPUTE STATISTICS [NOSCAN]`: the table's size, and the number of its rows, for the catalog.

    Spark shows them, and other sessions plan by them; pyhudi does not. A change by name takes them out again.
    Raises: Unsupported for statistics of columns and of partitions.
    """
    what, cursor = f"ANALYZE TABLE {'.'.join(entry.full_name)}", head.cursor
    if cursor.sees("PARTITION"):
        raise Unsupported(f"{what} PARTITION: the catalog keeps statistics of whole tables; leave PARTITION out")
    cursor.expect("COMPUTE", "STATISTICS")
    if cursor.sees("FOR"):
        raise Unsupported(
            f"{what} COMPUTE STATISTICS FOR: statistics of columns are an index of the table: CREATE INDEX … USING "
            "column_stats, or HudiTable.build_index('column_stats')"
        )
    counts = not cursor.take("NOSCAN")
    cursor.end()
    if not isinstance(session.catalog, SessionCatalog):
        raise Unsupported(
            f"{what}: Spark Connect has no way to the catalog's statistics; analyze it in a classic session"
        )

    scan = HudiTable.open(entry.path).scan(query=entry.query)
    session.catalog.set_statistics(entry, scan.explain().size_bytes, scan.count() if counts else None)
    return session.nothing()


def load_data(session: SqlSession, head: Head, entry: CatalogEntry) -> DataFrame:
    raise Unsupported(
        f"LOAD DATA INTO TABLE {'.'.join(entry.full_name)}: files are not put into a Hudi table; read them, and write "
        "their rows with INSERT INTO … SELECT"
    )
