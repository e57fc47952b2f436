"""Hudi tables in Spark's own session catalog: entries that say where a table lies.

A name is resolved through the catalog's cache of relations. It holds `SELECT * FROM hudi_scan('path')`, not analysed.
So each query sees the newest commit, and Spark never takes the table's files for plain Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from pyhudi.engine.spark.format_name import is_hudi
from pyhudi.engine.spark.java import elements, java_class
from pyhudi.engine.spark.sql.gateway import (
    CATALYST,
    constructor_types,
    copied,
    dict_of,
    find_class,
    scala_map,
    scala_object,
    scala_seq,
    some,
    value_of,
)
from pyhudi.engine.spark.sql.hive_entries import READS_OPTIMIZED, HiveEntries, fits_hive, keeps_names_in_hive
from pyhudi.sql.words import Name, quoted_text

CATALOG = "spark_catalog"
SCAN = "hudi_scan"
_TABLES = f"{CATALYST}.catalog"
_LEVELS_MAX = 5
"""Of folders, from one that a statement names up to the table that it may lie in."""

_SIZE_BYTES, _ROWS = "spark.sql.statistics.totalSize", "spark.sql.statistics.numRows"
"""Where Spark keeps statistics of a table in a Hive metastore."""

_COMMENT_NAME = "comment"
_COMMENT = 2
"""Which of the optional fields behind a `CatalogTable`'s properties is its comment."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A table in the catalog. `path`: where it lies. `properties`: its TBLPROPERTIES.

    `reads_optimized`: the name stands for the table's base files alone, as names do that Apache Hudi ends with `_ro`.
    """

    database: str
    name: str
    path: str
    properties: Mapping[str, str]
    partition_by: tuple[str, ...]
    is_managed: bool
    reads_optimized: bool = False

    @property
    def full_name(self) -> Name:
        return self.database, self.name

    @property
    def query(self) -> str:
        """How the name is read, as `HudiTable.scan` calls it."""
        return "read_optimized" if self.reads_optimized else "snapshot"


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to be made. `columns`: with the partition columns last. `comment`: None for none.

    `base_format`: of base files, such as `PARQUET`. `has_logs`: readers of a merge-on-read table are to read them.
    `reads_optimized`: as of `CatalogEntry`.
    """

    database: str
    name: str
    path: str
    columns: t.StructType
    partition_by: Sequence[str]
    properties: Mapping[str, str]
    comment: str | None
    is_managed: bool
    base_format: str = "PARQUET"
    has_logs: bool = False
    reads_optimized: bool = False


class SessionCatalog:
    """The session catalog of a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        state = spark._jsparkSession.sessionState()
        self._catalog, self._catalogs = state.catalog(), state.catalogManager()

    @property
    def current_database(self) -> str:
        return str(self._catalog.getCurrentDatabase())

    def find(self, name: Name) -> CatalogEntry | None:
        """The Hudi table of a name in a text; None for anything else: other formats, views, other catalogs, nothing."""
        return None if self.is_elsewhere(name) else self.find_own(name)

    def find_own(self, name: Name) -> CatalogEntry | None:
        """As `find`, where names of one or two parts are those of this catalog, whichever is the current one."""
        table = self._table(name)
        if table is None or not is_hudi(value_of(table.provider())):
            return None
        identifier = table.identifier()
        location = value_of(table.storage().locationUri())
        stated = {**dict_of(table.storage().properties()), **dict_of(table.properties())}
        return CatalogEntry(
            database=str(value_of(identifier.database())),
            name=str(identifier.table()),
            path=path_of(str(location.toString())),
            properties=dict_of(table.properties()),
            partition_by=tuple(elements(table.partitionColumnNames())),
            is_managed=table.tableType().name() == "MANAGED",
            reads_optimized=stated.get(READS_OPTIMIZED, "").lower() == "true",
        )

    def exists(self, name: Name) -> bool:
        """Whether a table or view has this name."""
        return not self.is_elsewhere(name) and self._table(name) is not None

    def columns(self, entry: CatalogEntry) -> t.StructType:
        """The columns of an entry, with their comments."""
        table = self._table(entry.full_name)
        assert table is not None
        return t.StructType.fromJson(_json(table.schema()))

    def default_path(self, database: str, name: str) -> str:
        """Where a managed table of this name lies."""
        return path_of(str(self._catalog.defaultTablePath(self._identifier((database, name))).toString()))

    def create(self, entry: NewEntry) -> None:
        """Raises: Spark's own error where the name is taken or the database is not there."""
        table = self._new_table(entry)
        if keeps_names_in_hive(self._spark) and fits_hive(entry.columns, entry.base_format):
            HiveEntries(self._spark).create(
                table, columns=entry.columns, base_format=entry.base_format, has_logs=entry.has_logs
            )
        else:
            self._catalog.createTable(table, False, False)

    def drop(self, entry: CatalogEntry, *, purge: bool = False) -> None:
        """Take an entry out. Spark deletes the files of a managed table."""
        self._catalog.dropTable(self._identifier(entry.full_name), True, purge)
        self._catalog.invalidateCachedTable(self._cache_key(entry.database, entry.name))

    def drop_name(self, entry: CatalogEntry) -> None:
        """Take an entry of a Hive metastore out, and leave the files, also of a managed table."""
        assert keeps_names_in_hive(self._spark)
        HiveEntries(self._spark).drop(entry.database, entry.name)
        self._catalog.invalidateCachedTable(self._cache_key(entry.database, entry.name))

    def rename(self, entry: CatalogEntry, name: str) -> None:
        """Give a table another name in its database. The folder of a managed one moves with it."""
        if keeps_names_in_hive(self._spark):
            moves_to = self.default_path(entry.database, name) if entry.is_managed else None
            HiveEntries(self._spark).rename(entry.database, entry.name, name, moves_to)
        else:
            self._catalog.externalCatalog().renameTable(entry.database, entry.name, name)
        self._catalog.invalidateCachedTable(self._cache_key(entry.database, entry.name))

    def set_properties(self, entry: CatalogEntry, properties: Mapping[str, str | None]) -> None:
        """Set properties, and take those out that are None."""
        if keeps_names_in_hive(self._spark):
            HiveEntries(self._spark).set_properties(entry.database, entry.name, properties)
            return
        table = self._catalog.getTableMetadata(self._identifier(entry.full_name))
        merged = {**dict_of(table.properties()), **properties}
        kept = scala_map(self._spark, {name: text for name, text in merged.items() if text is not None})
        at, comment = self._places_in_table()
        changed = {at: kept}
        if _COMMENT_NAME in properties:  # Spark keeps it apart
            changed[comment] = some(self._spark, properties[_COMMENT_NAME])
        self._catalog.externalCatalog().alterTable(copied(self._spark, table, changed))

    def drop_statistics(self, entry: CatalogEntry) -> None:
        """Take out what `set_statistics` keeps, if anything."""
        table = self._table(entry.full_name)
        if table is not None and table.stats().isDefined():
            self.set_statistics(entry, None)

    def set_statistics(self, entry: CatalogEntry, size_bytes: int | None, rows: int | None = None) -> None:
        """Keep the size of a table and the number of its rows. None: not known; without a size, none are kept."""
        if keeps_names_in_hive(self._spark):
            told = {_SIZE_BYTES: size_bytes, _ROWS: rows}
            texts = {name: None if number is None else str(number) for name, number in told.items()}
            HiveEntries(self._spark).set_properties(entry.database, entry.name, texts)
            return
        made = None if size_bytes is None else self._statistics(size_bytes, rows)
        self._catalog.externalCatalog().alterTableStats(entry.database, entry.name, some(self._spark, made))

    def _statistics(self, size_bytes: int, rows: int | None) -> Any:
        """A `CatalogStatistics`. Py4J makes a number of Python of each `BigInt`, so they stay within collections."""
        spark = self._spark
        as_list = java_class(spark, "scala.collection.JavaConverters").seqAsJavaList
        fields = java_class(spark, "java.util.ArrayList")(as_list(self._big_integer(size_bytes).toList()))
        fields.add(some(spark, None) if rows is None else self._big_integer(rows))
        fields.add(scala_map(spark, {}))
        (constructor,) = find_class(spark, f"{_TABLES}.CatalogStatistics").getConstructors()
        return constructor.newInstance(fields.toArray())

    def _big_integer(self, number: int) -> Any:
        """`Some(BigInt)`: the number of rows of a plan that nobody runs."""
        return self._spark._jsparkSession.range(number).queryExecution().analyzed().stats().rowCount()

    def set_columns(self, entry: CatalogEntry, columns: t.StructType, *, base_format: str) -> None:
        """Tell the catalog of a table's columns, those of partitions last.

        The session's catalog takes new columns only, so the one behind it is told.
        """
        if keeps_names_in_hive(self._spark):
            hive = HiveEntries(self._spark)
            hive.set_columns(entry.database, entry.name, columns, entry.partition_by, base_format)
            return
        data = t.StructType([field for field in columns.fields if field.name not in entry.partition_by])
        parsed = self._spark._jsparkSession.parseDataType(data.json())
        self._catalog.externalCatalog().alterTableDataSchema(entry.database, entry.name, parsed)

    def prime(self, entry: CatalogEntry) -> None:
        """Let queries find the table by its name, as it is when they are analysed."""
        parser = self._spark._jsparkSession.sessionState().sqlParser()
        plan = parser.parsePlan(f"SELECT * FROM {scan_text(entry.path, reads_optimized=entry.reads_optimized)}")
        self._catalog.cacheTable(self._cache_key(entry.database, entry.name), plan)

    def unprime(self, name: Name) -> None:
        """Forget what `prime` told of a name that is another table's now, or nobody's."""
        name = name[1:] if len(name) == 3 else name
        if not 1 <= len(name) <= 2:
            return
        database = as_kept(self._spark, name[-2]) if len(name) > 1 else self.current_database
        key = self._cache_key(database, as_kept(self._spark, name[-1]))
        cached = self._catalog.getCachedTable(key)
        if cached is not None and f"{SCAN}]" in str(cached.toString()):
            self._catalog.invalidateCachedTable(key)

    def hudi_tables(self, database: str) -> list[CatalogEntry]:
        """The Hudi tables of a database. One request a table."""
        found = []
        for identifier in elements(self._catalog.listTables(database)):
            parent = value_of(identifier.database())
            if parent is None:  # a temporary view
                continue
            entry = self.find_own((str(parent), str(identifier.table())))
            if entry is not None:
                found.append(entry)
        return found

    def _cache_key(self, database: str, name: str) -> Any:
        method = next(one for one in self._catalog.getClass().getMethods() if one.getName() == "cacheTable")
        kind = java_class(self._spark, str(method.getParameterTypes()[0].getName()))
        return kind(CATALOG, database, name)

    def is_elsewhere(self, name: Name) -> bool:
        """Whether a name of one or two parts is one of another catalog: `c.t` is, if there is a catalog `c`."""
        if len(name) > 2:
            return False
        if len(name) == 2 and self._catalogs.isCatalogRegistered(name[0]):
            return True
        return str(self._catalogs.currentCatalog().name()) != CATALOG

    def _table(self, name: Name) -> Any:
        """The `CatalogTable` of a name, or None."""
        if len(name) == 3 and name[0].lower() == CATALOG:
            name = name[1:]
        if not 1 <= len(name) <= 2:
            return None
        if len(name) == 1 and self._catalog.getTempView(name[0]).isDefined():
            return None
        identifier = self._identifier(name)
        return self._catalog.getTableMetadata(identifier) if self._catalog.tableExists(identifier) else None

    def _identifier(self, name: Name) -> Any:
        kind = java_class(self._spark, f"{CATALYST}.TableIdentifier")
        return kind(name[-1], some(self._spark, name[-2] if len(name) > 1 else None))

    def _new_table(self, entry: NewEntry) -> Any:
        """A `CatalogTable`. Its fields differ by release: those that are not known here get their defaults."""
        spark, name = self._spark, f"{_TABLES}.CatalogTable"
        companion = scala_object(spark, name)
        kinds = scala_object(spark, f"{_TABLES}.CatalogTableType")
        identifier = java_class(spark, f"{CATALYST}.TableIdentifier")(
            entry.name, some(spark, entry.database), some(spark, CATALOG)
        )
        values: list[Any] = [
            identifier,
            kinds.MANAGED() if entry.is_managed else kinds.EXTERNAL(),
            self._storage(entry.path, {READS_OPTIMIZED: "true"} if entry.reads_optimized else {}),
            spark._jsparkSession.parseDataType(entry.columns.json()),
            some(spark, "hudi"),
            scala_seq(spark, list(entry.partition_by)),
        ]
        properties, comment = self._places_in_table()
        for at in range(len(values), len(constructor_types(spark, name))):
            if at == properties:
                values.append(scala_map(spark, dict(entry.properties)))
            elif at == comment:
                values.append(some(spark, entry.comment))
            else:
                values.append(getattr(companion, f"$lessinit$greater$default${at + 1}")())
        return java_class(spark, name)(*values)

    def _places_in_table(self) -> tuple[int, int]:
        """Which fields of a `CatalogTable` are its properties and its comment."""
        types = constructor_types(self._spark, f"{_TABLES}.CatalogTable")
        properties = types.index("scala.collection.immutable.Map")
        options = [at for at, kind in enumerate(types) if kind == "scala.Option" and at > properties]
        return properties, options[_COMMENT]

    def _storage(self, path: str, properties: Mapping[str, str]) -> Any:
        """A `CatalogStorageFormat` that knows the location, the first of its fields, and these properties."""
        spark, name = self._spark, f"{_TABLES}.CatalogStorageFormat"
        empty = {
            "scala.Option": some(spark, None),
            "boolean": False,
            "scala.collection.immutable.Map": scala_map(spark, dict(properties)),
        }
        uri = java_class(spark, "org.apache.hadoop.fs.Path")(path).toUri()
        others = [empty[kind] for kind in constructor_types(spark, name)[1:]]
        return java_class(spark, name)(some(spark, uri), *others)


def as_kept(spark: SparkSession, name: str) -> str:
    """A part of a name as a catalog of the session keeps it."""
    return name if spark.conf.get("spark.sql.caseSensitive", "false") == "true" else name.lower()


def scan_text(path: str, moment: str = "NULL", *, reads_optimized: bool = False) -> str:
    """A call of the table function that reads a table. `moment`: an expression; NULL: the newest commit."""
    mode = ", 'read_optimized'" if reads_optimized else ""
    return f"{SCAN}({quoted_text(path)}{f', {moment}' if mode or moment != 'NULL' else ''}{mode})"


def find_table_above(spark: SparkSession, folder: str) -> str | None:
    """The Hudi table that a folder is, or lies below; None for another folder.

    Spark's own file system is asked, with one request a level. Where it cannot tell, Spark fails itself.
    """
    try:
        path = java_class(spark, "org.apache.hadoop.fs.Path")(folder)
        files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        for _ in range(_LEVELS_MAX):
            if files.exists(java_class(spark, "org.apache.hadoop.fs.Path")(path, ".hoodie/hoodie.properties")):
                return path_of(str(path.toString()))
            path = path.getParent()
            if path is None:
                break
    except (PySparkException, Py4JJavaError):
        return None
    return None


def path_of(uri: str) -> str:
    """A catalog's location as a path: `file:/a%20b` is `/a b`. Other stores keep their scheme."""
    if not uri.startswith("file:"):
        return uri.rstrip("/")
    return unquote("/" + uri.removeprefix("file:").lstrip("/")).rstrip("/")


def _json(schema: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(schema.json())
    return parsed
