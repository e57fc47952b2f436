"""Entries of a Hive metastore in the form that Apache Hudi gives them, so that its jar, Hive and others know them.

Spark's own form keeps the columns in a property only, and formats that are not Hudi's. Seen: 1.2.0 commits a write by
such a name, and fails afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from pyhudi.engine.spark.java import elements, java_class
from pyhudi.engine.spark.session import is_classic
from pyhudi.engine.spark.sql.gateway import (
    constructor_types,
    copied,
    dict_of,
    scala_map,
    scala_seq,
    some,
)

log = logging.getLogger("pyhudi")

READS_OPTIMIZED: Final = "hoodie.query.as.ro.table"
"""The storage property of an entry that tells which rows of a merge-on-read table the name stands for."""

SYNCED: Final = "last_commit_time_sync"
SYNCED_COMPLETION: Final = "last_commit_completion_time_sync"
"""Properties that tell up to which commit the entry's partitions are those of the table."""

_SCHEMA: Final = "spark.sql.sources.schema"
_PIECE_CHARS_MAX: Final = 4_000
_HUDI_INPUT: Final = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
_HUDI_INPUT_WITH_LOGS: Final = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
_PARQUET_CLASSES: Final = (
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
)
_ORC_CLASSES: Final = tuple(
    f"org.apache.hadoop.hive.ql.io.orc.Orc{one}" for one in ("InputFormat", "OutputFormat", "Serde")
)
"""Of what reads files, what writes them, and what takes rows apart, as `CatalogStorageFormat` has them."""

_NOT_IN_HIVE: Final = frozenset({"timestamp_ntz", "variant", "void", "time"})
_NO_COLUMNS = t.StructType([t.StructField("col", t.ArrayType(t.StringType()), True, {"comment": "from deserializer"})])
"""What Spark gives Hive for columns of types that Hive has not."""


def keeps_names_in_hive(spark: SparkSession) -> bool:
    """Whether names of the session are entries of a Hive metastore. Under Spark Connect that cannot be seen to."""
    return is_classic(spark) and spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "hive"


def metastore_uris(spark: SparkSession) -> str:
    """Where the session's metastore server listens; empty for a database that the session opens itself."""
    return str(spark._jsparkSession.sessionState().newHadoopConf().get("hive.metastore.uris") or "")


def fits_hive(columns: t.StructType, base_format: str) -> bool:
    """Whether Hive has the types of these columns, and classes for the format of the base files."""
    return base_format.upper() in ("PARQUET", "ORC") and all(_is_of_hive(field.dataType) for field in columns.fields)


@contextmanager
def logged_failure(what: str) -> Iterator[None]:
    """Let a failure of the metastore be a line of the log. `what`: its beginning."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        log.warning("%s: %s", what, error)


class HiveEntries:
    """The metastore of a session that has one."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._catalog = spark._jsparkSession.sessionState().catalog().externalCatalog()

    def create(self, table: Any, *, columns: t.StructType, base_format: str, has_logs: bool) -> None:
        """Store a `CatalogTable` of Spark. `columns`: its own. `has_logs`: of a merge-on-read table.

        Spark looks for each class that it is told of, so Hudi's is told to the metastore, in a second step.
        Raises: Spark's own error where the name is taken.
        """
        spark, name = self._spark, table.identifier()
        storage, partition_by = table.storage(), elements(table.partitionColumnNames())
        place = self._qualified(str(storage.locationUri().get().toString()))
        is_orc = base_format.upper() == "ORC"
        of_hive = _ORC_CLASSES if is_orc else _PARQUET_CLASSES
        formats = {
            0: some(spark, place.toUri()),
            **{at + 1: some(spark, kind) for at, kind in enumerate(of_hive)},
            _map_at(spark, storage): scala_map(spark, {**dict_of(storage.properties()), "path": str(place.toString())}),
        }
        properties = {
            **dict_of(table.properties()),
            **schema_properties(columns, partition_by),
            "spark.sql.sources.provider": "hudi",
            "spark.sql.create.version": spark.version,
            "provider": "hudi",
            "path": str(place.toString()),
        }
        changes = {
            _at(spark, table, "CatalogStorageFormat"): copied(spark, storage, formats),
            _map_at(spark, table): scala_map(spark, properties),
        }
        self._catalog.unwrapped().client().createTable(copied(spark, table, changes), False)
        if is_orc:
            return
        database, table_name = str(name.database().get()), str(name.table())
        try:
            entry = self._metastore.getTable(database, table_name)
            entry.getSd().setInputFormat(_HUDI_INPUT_WITH_LOGS if has_logs else _HUDI_INPUT)
            self._metastore.alter_table(database, table_name, entry)
        except BaseException:
            self.drop(database, table_name)
            raise

    def drop(self, database: str, name: str) -> None:
        """Take an entry out, and leave the files, also of a managed table."""
        self._metastore.dropTable(database, name, False, True)

    def rename(self, database: str, name: str, new: str, moves_to: str | None) -> None:
        """`moves_to`: where the metastore puts the folder of a managed table, which its partitions follow."""
        entry = self._metastore.getTable(database, name)
        entry.setTableName(new)
        if moves_to is not None:
            place = str(self._qualified(moves_to).toString())
            for texts in (entry.getParameters(), entry.getSd().getSerdeInfo().getParameters()):
                if texts.containsKey("path"):
                    texts.put("path", place)
        self._metastore.alter_table(database, name, entry)

    def set_properties(self, database: str, name: str, properties: Mapping[str, str | None]) -> None:
        """Set properties of an entry, and take those out that are None.

        Spark would look for the classes of the entry's formats, which are Hudi's.
        """
        entry = self._metastore.getTable(database, name)
        stored = entry.getParameters()
        for key, text in properties.items():
            stored.remove(key) if text is None else stored.put(key, text)
        self._metastore.alter_table(database, name, entry)

    def set_columns(
        self, database: str, name: str, columns: t.StructType, partition_by: Sequence[str], base_format: str
    ) -> None:
        """Tell an entry of the table's columns, those of partitions last.

        The properties that hold them are Apache Hudi's: with Spark's own beside them its jar would go by old columns.
        """
        data = [field for field in columns.fields if field.name not in partition_by]
        shown = data if fits_hive(columns, base_format) else _NO_COLUMNS.fields
        entry = self._metastore.getTable(database, name)
        pattern, told = entry.getSd().getCols()[0], []
        for field in shown:
            column = pattern.deepCopy()
            column.setName(field.name.lower())
            column.setType(field.dataType.simpleString())
            column.setComment(field.metadata.get("comment"))
            told.append(column)
        entry.getSd().setCols(told)
        properties = entry.getParameters()
        for key in [str(key) for key in properties.keySet()]:
            if key.startswith(_SCHEMA):
                properties.remove(key)
        for key, text in schema_properties(columns, partition_by).items():
            properties.put(key, text)
        self._metastore.alter_table(database, name, entry, bool(partition_by))

    def add_partitions(self, database: str, name: str, folders: Mapping[str, Sequence[str]]) -> None:
        """Add those that are not there. `folders`: path below the table -> the values of partition columns."""
        if not folders:
            return
        entry, kind = self._metastore.getTable(database, name), self._hive_class("metastore.api.Partition")
        base, found = str(entry.getSd().getLocation()), []
        for path, values in folders.items():
            partition, storage = kind.newInstance(), entry.getSd().deepCopy()
            storage.setLocation(f"{base}/{path}")
            partition.setDbName(database)
            partition.setTableName(name)
            partition.setValues(list(values))
            partition.setSd(storage)
            partition.setParameters({})
            found.append(partition)
        self._metastore.add_partitions(found, True, False)

    def drop_partitions(
        self, database: str, name: str, partition_by: Sequence[str], values: Iterable[Sequence[str]]
    ) -> None:
        """Drop entries of partitions, and leave all files."""
        found = [scala_map(self._spark, dict(zip(partition_by, one, strict=True))) for one in values]
        if found:
            self._catalog.dropPartitions(database, name, scala_seq(self._spark, found), True, False, True)

    def partition_values(self, database: str, name: str) -> list[tuple[str, ...]]:
        """The values of partition columns of each partition that the metastore has."""
        names = self._catalog.listPartitionNames(database, name, some(self._spark, None)).mkString("\n")
        found = [one.split("/") for one in str(names).split("\n") if one]
        return [tuple(unquote(part.partition("=")[2]) for part in one) for one in found]

    @cached_property
    def _metastore(self) -> Any:
        """The client that Spark's own settings give, of the classes that Spark's own client has."""
        gateway, own = self._spark.sparkContext._gateway, self._catalog.unwrapped().client()
        assert gateway is not None
        settings = own.conf()
        kinds = gateway.new_array(gateway.jvm.Class, 1)
        kinds[0] = settings.getClass()
        values = gateway.new_array(gateway.jvm.Object, 1)
        values[0] = settings
        return self._hive_class("ql.metadata.Hive").getMethod("get", kinds).invoke(None, values).getMSC()

    def _hive_class(self, name: str) -> Any:
        """A class of Hive, of the release that Spark's own client is of."""
        return (
            self._catalog.unwrapped().client().getClass().getClassLoader().loadClass(f"org.apache.hadoop.hive.{name}")
        )

    def _qualified(self, place: str) -> Any:
        path = java_class(self._spark, "org.apache.hadoop.fs.Path")
        found = path(java_class(self._spark, "java.net.URI").create(place)) if "%" in place else path(place)
        files = found.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf())
        return files.makeQualified(found)


def schema_properties(columns: t.StructType, partition_by: Sequence[str]) -> dict[str, str]:
    """The properties from which Spark reads a table's columns, as Apache Hudi writes them: in pieces.

    Where there are such without pieces Spark reads those, and passes over what Apache Hudi tells of new columns.
    """
    text = columns.json()
    pieces = [text[at : at + _PIECE_CHARS_MAX] for at in range(0, len(text), _PIECE_CHARS_MAX)]
    found = {f"{_SCHEMA}.numParts": str(len(pieces))}
    found |= {f"{_SCHEMA}.part.{at}": piece for at, piece in enumerate(pieces)}
    if partition_by:
        found[f"{_SCHEMA}.numPartCols"] = str(len(partition_by))
        found |= {f"{_SCHEMA}.partCol.{at}": name for at, name in enumerate(partition_by)}
    return found


def _is_of_hive(kind: t.DataType) -> bool:
    if isinstance(kind, t.StructType):
        return all(_is_of_hive(field.dataType) for field in kind.fields)
    if isinstance(kind, t.ArrayType):
        return _is_of_hive(kind.elementType)
    if isinstance(kind, t.MapType):
        return _is_of_hive(kind.keyType) and _is_of_hive(kind.valueType)
    name = kind.simpleString()
    return not name.startswith(("interval", "time(")) and name not in _NOT_IN_HIVE


def _at(spark: SparkSession, value: Any, type_name: str) -> int:
    """Which field of a case class of Scala has a type."""
    types = constructor_types(spark, str(value.getClass().getName()))
    return next(at for at, kind in enumerate(types) if kind.endswith(f".{type_name}"))


def _map_at(spark: SparkSession, value: Any) -> int:
    """Which field of a case class of Scala holds its properties: the first map."""
    return _at(spark, value, "Map")
