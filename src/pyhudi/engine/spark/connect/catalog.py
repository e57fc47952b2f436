"""Hudi tables in the catalog of a Connect session: the same entries as those of a classic one, by SQL statements.

Each entry is external to Spark, so that Spark deletes no files. A property says which tables are managed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from pyhudi.engine.spark.format_name import is_hudi
from pyhudi.engine.spark.sql.catalog import CATALOG, CatalogEntry, NewEntry, path_of
from pyhudi.engine.spark.sql.hive_entries import READS_OPTIMIZED
from pyhudi.sql.words import Name, quoted_name, quoted_text

_MANAGED = "pyhudi.managed"
_GLOBAL_VIEWS = "global_temp"
_OF_SPARK = ("owner", "provider", "location", "external")
"""Properties that Spark adds to those of a table."""

_NEXT_PROPERTY = re.compile(r", (?=[^\s=,\[\]]+=)")


@dataclass(frozen=True, slots=True)
class View:
    """A view that an SQL text defines. `namespace`: the database in which its names are looked for."""

    text: str
    namespace: str


class ConnectCatalog:
    """The session catalog of a Connect session. Each question is a request to the server."""

    def __init__(self, spark: SparkSession, spark_sql: Callable[..., DataFrame]) -> None:
        """`spark_sql`: PySpark's own `SparkSession.sql`."""
        from pyhudi.engine.spark.connect.entries import know_format  # PySpark 3.5 has no such sources

        self._spark, self._sql = spark, spark_sql
        know_format(spark)  # else Spark would find no entry of it

    @property
    def current_database(self) -> str:
        return self._spark.catalog.currentDatabase()

    def find(self, name: Name, *, namespace: str | None = None) -> CatalogEntry | None:
        """The Hudi table of this name, or None for anything else: other formats, views, other catalogs, nothing."""
        found = self.look(name, namespace=namespace)
        return found if isinstance(found, CatalogEntry) else None

    def find_own(self, name: Name) -> CatalogEntry | None:
        """As `find`: Spark says of which catalog a name is."""
        return self.find(name)

    def look(self, name: Name, *, namespace: str | None = None) -> CatalogEntry | View | None:
        """The Hudi table or the view of a name; None for anything else. `namespace`: instead of the current one."""
        shown = self._shown(name, namespace)
        if shown is None:
            return None
        facts = _Facts(shown["information"])
        if facts.line("Type") == "VIEW":
            text = facts.view_text()
            space = facts.line("View Catalog and Namespace").rpartition(".")[2].strip("`")
            return View(text, space) if text else None
        return _entry(shown, facts) if is_hudi(facts.line("Provider")) else None

    def is_elsewhere(self, name: Name) -> bool:
        """Whether a name of one or two parts is one of another catalog: `c.t` is, if there is a catalog `c`."""
        if len(name) > 2:
            return False
        if len(name) == 2 and self._spark.conf.get(f"spark.sql.catalog.{name[0]}", None) is not None:
            return True
        return self._spark.catalog.currentCatalog() != CATALOG

    def exists(self, name: Name) -> bool:
        """Whether a table or view has this name."""
        return self._shown(name, None) is not None

    def columns(self, entry: CatalogEntry) -> t.StructType:
        """The columns of an entry, with their comments."""
        return self._sql(f"SELECT * FROM {quoted_name(CATALOG, *entry.full_name)}").schema

    def comment(self, entry: CatalogEntry) -> str | None:
        """The comment of a table, or None."""
        shown = self._shown(entry.full_name, None)
        return None if shown is None else _Facts(shown["information"]).line("Comment") or None

    def default_path(self, database: str, name: str) -> str:
        """Where a managed table of this name lies."""
        return f"{path_of(self._spark.catalog.getDatabase(database).locationUri)}/{name}"

    def create(self, entry: NewEntry) -> None:
        """Raises: Spark's own error where the name is taken or the database is not there."""
        properties = {**entry.properties, _MANAGED: str(entry.is_managed).lower()}
        if entry.reads_optimized:
            properties[READS_OPTIMIZED] = "true"
        columns = ", ".join(_column(field) for field in entry.columns.fields)
        partitions = ", ".join(map(quoted_name, entry.partition_by))
        self._sql(
            f"CREATE TABLE {quoted_name(CATALOG, entry.database, entry.name)} ({columns}) USING hudi"
            + (f" PARTITIONED BY ({partitions})" if partitions else "")
            + (f" COMMENT {quoted_text(entry.comment)}" if entry.comment is not None else "")
            + f" LOCATION {quoted_text(entry.path)} TBLPROPERTIES ("
            + ", ".join(f"{quoted_text(key)} = {quoted_text(value)}" for key, value in properties.items())
            + ")"
        )

    def drop(self, entry: CatalogEntry, *, purge: bool = False) -> None:
        """Take an entry out. The table's files are not the catalog's."""
        self._sql(f"DROP TABLE IF EXISTS {quoted_name(CATALOG, *entry.full_name)}{' PURGE' if purge else ''}")

    def set_columns(self, entry: CatalogEntry, columns: t.StructType, *, base_format: str) -> None:
        """Tell the catalog of a table's columns, those of partitions last: its entry is made anew.

        The entry of a classic session's managed table stays as it is: Spark would delete its files with the entry.
        """
        shown = self._shown(entry.full_name, None)
        if shown is None or _Facts(shown["information"]).line("Type") == "MANAGED":
            return
        comment = self.comment(entry)
        self.drop(entry)
        self.create(
            NewEntry(
                database=entry.database,
                name=entry.name,
                path=entry.path,
                columns=columns,
                partition_by=entry.partition_by,
                properties=entry.properties,
                comment=comment,
                is_managed=entry.is_managed,
                base_format=base_format,
                reads_optimized=entry.reads_optimized,
            )
        )

    def prime(self, entry: CatalogEntry) -> None:
        """Nothing: names in queries are found when a text is run."""

    def unprime(self, name: Name) -> None:
        """Nothing, as `prime`."""

    def hudi_tables(self, database: str) -> list[CatalogEntry]:
        """The Hudi tables of a database, by one request."""
        rows = self._sql(f"SHOW TABLE EXTENDED IN {quoted_name(database)} LIKE '*'").collect()
        pairs = [(row, _Facts(row["information"])) for row in rows if not row["isTemporary"]]
        return [_entry(row, facts) for row, facts in pairs if is_hudi(facts.line("Provider"))]

    def _shown(self, name: Name, namespace: str | None) -> Any:
        """What Spark shows of a table or view; None where there is none. A temporary view hides a table."""
        if len(name) == 3 and name[0].lower() == CATALOG:
            name = name[1:]
        if not 1 <= len(name) <= 2 or any(sign in name[-1] for sign in "*|"):
            return None
        within = name[0] if len(name) == 2 else namespace
        is_global = within is not None and within.lower() == _GLOBAL_VIEWS
        place = "" if within is None else f"IN {quoted_name(within) if is_global else quoted_name(CATALOG, within)} "
        try:
            rows = self._sql(f"SHOW TABLE EXTENDED {place}LIKE {quoted_text(name[-1])}").collect()
        except PySparkException as error:
            if error.getCondition() in ("SCHEMA_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND"):
                return None
            raise
        named = [row for row in rows if row["tableName"].lower() == name[-1].lower()]
        hidden = [row for row in named if row["isTemporary"] and len(name) == 1]
        tables = [row for row in named if not row["isTemporary"] or name[0].lower() == _GLOBAL_VIEWS]
        return next(iter(hidden + tables), None)


class _Facts:
    """What `SHOW TABLE EXTENDED` says of a table: a line for each fact."""

    def __init__(self, information: str) -> None:
        self._text = information.partition("\nSchema: root")[0]

    def line(self, fact: str) -> str:
        """The text of a fact; empty where there is none."""
        found = re.search(rf"^{fact}: (.*)$", self._text, re.MULTILINE)
        return found[1] if found else ""

    def last_line(self, fact: str) -> str:
        """The same for facts behind those that users may write several lines of."""
        found = re.findall(rf"^{fact}: (.*)$", self._text, re.MULTILINE)
        return found[-1] if found else ""

    def view_text(self) -> str:
        found = re.search(r"^View Text: (.*?)\n(?=View |Table Properties: )", self._text, re.MULTILINE | re.DOTALL)
        return found[1] if found else ""

    def properties(self, of: str = "Table") -> dict[str, str]:
        """The properties of the table, or those `of` its storage, where classic sessions keep some."""
        found = re.search(rf"^{of} Properties: \[(.*?)\]\n(?=[A-Z])", self._text, re.MULTILINE | re.DOTALL)
        pairs = (one.partition("=") for one in _NEXT_PROPERTY.split(found[1])) if found and found[1] else ()
        return {key: value for key, _, value in pairs}


def _entry(shown: Any, facts: _Facts) -> CatalogEntry:
    properties = facts.properties()
    managed = properties.pop(_MANAGED, None)
    stated = {**facts.properties("Storage"), **properties}
    return CatalogEntry(
        database=shown["namespace"],
        name=shown["tableName"],
        path=path_of(facts.last_line("Location")),
        properties={name: text for name, text in properties.items() if name not in _OF_SPARK},
        partition_by=tuple(re.findall(r"`([^`]*)`", facts.last_line("Partition Columns"))),
        is_managed=facts.line("Type") == "MANAGED" if managed is None else managed == "true",
        reads_optimized=stated.get(READS_OPTIMIZED, "").lower() == "true",
    )


def _column(field: t.StructField) -> str:
    comment = field.metadata.get("comment") if field.metadata else None
    said = f" COMMENT {quoted_text(comment)}" if comment else ""
    return f"{quoted_name(field.name)} {field.dataType.simpleString()}{said}"
