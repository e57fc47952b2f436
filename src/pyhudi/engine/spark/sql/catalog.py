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
from pyhudi.engine.spark.java import java_class
from pyhudi.engine.spark.sql.gateway import (
    CATALYST,
    constructor_types,
    scala_map,
    scala_object,
    scala_seq,
    some,
    value_of,
)
from pyhudi.sql.words import Name, quoted_text

CATALOG = "spark_catalog"
SCAN = "hudi_scan"
_TABLES = f"{CATALYST}.catalog"
LEVELS_MAX = 5
"""Of folders, from one that a statement names up to the table that it may lie in."""

_COMMENT = 2
"""Which of the optional fields behind a `CatalogTable`'s properties is its comment."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A table in the catalog. `path`: where it lies. `properties`: its TBLPROPERTIES."""

    database: str
    name: str
    path: str
    properties: Mapping[str, str]
    partition_by: tuple[str, ...]
    is_managed: bool

    @property
    def full_name(self) -> Name:
        return self.database, self.name


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to be made. `columns`: with the partition columns last. `comment`: None for none."""

    database: str
    name: str
    path: str
    columns: t.StructType
    partition_by: Sequence[str]
    properties: Mapping[str, str]
    comment: str | None
    is_managed: bool


class SessionCatalog:
    """The session catalog of a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._catalog = spark._jsparkSession.sessionState().catalog()

    @property
    def current_database(self) -> str:
        return str(self._catalog.getCurrentDatabase())

    def find(self, name: Name) -> CatalogEntry | None:
        """The Hudi table of this name, or None for anything else: other formats, views, other catalogs, nothing."""
        table = self._table(name)
        if table is None or not is_hudi(value_of(table.provider())):
            return None
        identifier = table.identifier()
        location = value_of(table.storage().locationUri())
        return CatalogEntry(
            database=str(value_of(identifier.database())),
            name=str(identifier.table()),
            path=path_of(str(location.toString())),
            properties=_dict_of(table.properties()),
            partition_by=tuple(_list_of(table.partitionColumnNames())),
            is_managed=table.tableType().name() == "MANAGED",
        )

    def exists(self, name: Name) -> bool:
        """Whether a table or view has this name."""
        return self._table(name) is not None

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
        self._catalog.createTable(self._new_table(entry), False, False)

    def drop(self, entry: CatalogEntry, *, purge: bool = False) -> None:
        """Take an entry out. Spark deletes the files of a managed table."""
        self._catalog.dropTable(self._identifier(entry.full_name), True, purge)
        self._catalog.invalidateCachedTable(self._cache_key(entry.database, entry.name))

    def set_columns(self, entry: CatalogEntry, columns: t.StructType) -> None:
        """Tell the catalog of a table's columns, those of partitions left out.

        The session's catalog takes new columns only, so the one behind it is told.
        """
        parsed = self._spark._jsparkSession.parseDataType(columns.json())
        self._catalog.externalCatalog().alterTableDataSchema(entry.database, entry.name, parsed)

    def prime(self, entry: CatalogEntry) -> None:
        """Let queries find the table by its name, as it is when they are analysed."""
        parser = self._spark._jsparkSession.sessionState().sqlParser()
        plan = parser.parsePlan(f"SELECT * FROM {SCAN}({quoted_text(entry.path)})")
        self._catalog.cacheTable(self._cache_key(entry.database, entry.name), plan)

    def unprime(self, name: Name) -> None:
        """Forget what `prime` told of a name that is another table's now, or nobody's."""
        name = name[1:] if len(name) == 3 else name
        if not 1 <= len(name) <= 2:
            return
        key = self._cache_key(name[-2].lower() if len(name) > 1 else self.current_database, name[-1].lower())
        cached = self._catalog.getCachedTable(key)
        if cached is not None and f"{SCAN}]" in str(cached.toString()):
            self._catalog.invalidateCachedTable(key)

    def hudi_tables(self, database: str) -> list[CatalogEntry]:
        """The Hudi tables of a database. One request a table."""
        found = []
        for identifier in _list_of(self._catalog.listTables(database)):
            parent = value_of(identifier.database())
            if parent is None:  # a temporary view
                continue
            entry = self.find((str(parent), str(identifier.table())))
            if entry is not None:
                found.append(entry)
        return found

    def _cache_key(self, database: str, name: str) -> Any:
        method = next(one for one in self._catalog.getClass().getMethods() if one.getName() == "cacheTable")
        kind = java_class(self._spark, str(method.getParameterTypes()[0].getName()))
        return kind(CATALOG, database, name)

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
            self._storage(entry.path),
            spark._jsparkSession.parseDataType(entry.columns.json()),
            some(spark, "hudi"),
            scala_seq(spark, list(entry.partition_by)),
        ]
        types = constructor_types(spark, name)
        properties = types.index("scala.collection.immutable.Map")
        options = [at for at, kind in enumerate(types) if kind == "scala.Option" and at > properties]
        for at in range(len(values), len(types)):
            if at == properties:
                values.append(scala_map(spark, dict(entry.properties)))
            elif at == options[_COMMENT]:
                values.append(some(spark, entry.comment))
            else:
                values.append(getattr(companion, f"$lessinit$greater$default${at + 1}")())
        return java_class(spark, name)(*values)

    def _storage(self, path: str) -> Any:
        """A `CatalogStorageFormat` that knows the location only, the first of its fields."""
        spark, name = self._spark, f"{_TABLES}.CatalogStorageFormat"
        empty = {
            "scala.Option": some(spark, None),
            "boolean": False,
            "scala.collection.immutable.Map": scala_map(spark, {}),
        }
        uri = java_class(spark, "org.apache.hadoop.fs.Path")(path).toUri()
        others = [empty[kind] for kind in constructor_types(spark, name)[1:]]
        return java_class(spark, name)(some(spark, uri), *others)


def find_table_above(spark: SparkSession, folder: str) -> str | None:
    """The Hudi table that a folder is, or lies below; None for another folder.

    Spark's own file system is asked, with one request a level. Where it cannot tell, Spark fails itself.
    """
    try:
        path = java_class(spark, "org.apache.hadoop.fs.Path")(folder)
        files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        for _ in range(LEVELS_MAX):
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


def _list_of(sequence: Any) -> list[Any]:
    return [sequence.apply(at) for at in range(sequence.size())]


def _dict_of(mapping: Any) -> dict[str, str]:
    found = {}
    iterator = mapping.iterator()
    while iterator.hasNext():
        pair = iterator.next()
        found[str(pair._1())] = str(pair._2())
    return found
