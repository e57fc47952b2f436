"""`ALTER TABLE … RENAME TO`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyhudi.api.renaming import rename_table
from pyhudi.engine.spark.sql.catalog import CatalogEntry, SessionCatalog, as_kept
from pyhudi.errors import Invalid, Unsupported
from pyhudi.spark.entries.kept import names_beside, stands_beside
from pyhudi.spark.session import SqlSession
from pyhudi.sql.definitions import AlterTable
from pyhudi.sql.heads import Head

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rename(session: SqlSession, head: Head, entry: CatalogEntry, statement: AlterTable) -> DataFrame:
    """The name in the catalog, and in the table's properties. The folder of a managed table moves with it."""
    what, name = f"ALTER TABLE {'.'.join(entry.full_name)} RENAME TO", as_kept(session.spark, statement.name[-1])
    if len(statement.name) > 1 and as_kept(session.spark, statement.name[-2]) != entry.database:
        raise Invalid(f"{what}: expected a name of the same database")
    if session.catalog.exists((entry.database, name)):
        raise Invalid(f"{what}: a table or view '{entry.database}.{name}' is there already")
    if entry.is_managed and "://" in entry.path:
        raise Unsupported(
            f"{what}: the folder of a managed table moves with its name, and {entry.path} is no folder that moves at "
            "once; create the table with LOCATION to rename it"
        )
    catalog = session.catalog
    if entry.is_managed and not isinstance(catalog, SessionCatalog):
        raise Unsupported(
            f"{what}: under Spark Connect the folder of a managed table would stay under the old name; rename it in a "
            "classic session, or create the table with LOCATION"
        )

    folder = session.catalog.default_path(entry.database, name)
    if entry.is_managed and os.path.lexists(folder):
        raise Invalid(f"{what}: the table's folder would move to {folder}, where something lies; choose another name")
    beside = [one.name for one in names_beside(session, entry)] if entry.is_managed else []
    if beside:
        raise Unsupported(
            f"{what}: the folder moves with the name, and {', '.join(beside)} would lead to where it was; drop those "
            "names first"
        )

    def keep() -> None:
        if isinstance(catalog, SessionCatalog):
            catalog.rename(entry, name)
        else:
            session.spark_sql(head.cursor.text)

    table = session.open(entry)
    if stands_beside(entry, table.name):
        raise Unsupported(f"{what}: this name stands beside the own name of the table at {entry.path}; drop it instead")
    rename_table(table._handle, name, keep, moves=entry.is_managed)
    return session.nothing()
