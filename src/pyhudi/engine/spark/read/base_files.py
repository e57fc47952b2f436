"""Base files whose paths and sizes are known, as native scans."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.spark.read.file_index import ORC_FORMAT, PARQUET_FORMAT
from pyhudi.engine.spark.read.filters import LeftBy
from pyhudi.engine.spark.read.pruned_index import ScanFile, scan_pruned_files
from pyhudi.engine.spark.schema import cast_column, spark_schema
from pyhudi.engine.spark.session import core_count, is_classic, with_settings
from pyhudi.engine.spark.write.keys import quoted
from pyhudi.format.schema.conversion import OWN_COLUMNS
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.prune.partition_values import PathValues
from pyhudi.table.read.plan import PlannedFile, planned_slice
from pyhudi.table.slices.base_files.zones import has_timestamp
from pyhudi.table.slices.stored_types import FilesOfTypes, group_by_stored_types
from pyhudi.table.view.file_system_view import FileSlice

CALENDAR: Final = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
"""Dates are of today's calendar if a file does not say. Otherwise Spark before 4.0 refuses old dates."""

PARQUET: Final = ".parquet"

_FORMATS: Final = {PARQUET: ("parquet", PARQUET_FORMAT), ".orc": ("orc", ORC_FORMAT)}
"""Extension of base files -> the name of Spark's reader, and its class."""

_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def read_as(
    spark: SparkSession,
    location: StorageLocation,
    files: Sequence[tuple[str, int]],
    wanted: pa.Schema,
    *more: Column,
    values: PathValues | None = None,
    left_by: LeftBy | None = None,
) -> DataFrame:
    """These base files' rows with these columns, whatever types the files have, and with the columns `more` of the
    scan.

    `values`: what partition paths tell of the stored rows. `left_by`: what tells the files that filters leave. Files
    that a query's filters rule out are not read.

    Files that hold a column in an older type are a scan of their own, with native casts. Spark's vectorized reader
    makes some of these conversions and fails on others, depending on its release.
    Requests: as `group_by_stored_types`.
    """
    to = spark_schema(wanted)
    parts = []
    for group in _groups(location, files, wanted):
        found = spark_schema(group.schema)
        told = None if values is None else values.among(group.schema)
        rows = read_files(spark, location, group.files, found, values=told, left_by=left_by)

        if found != to:
            columns = [
                cast_column(f.col(quoted(one.name)), stored.dataType, one.dataType).alias(one.name)
                for stored, one in zip(found, to, strict=True)
            ]
            rows = rows.select(*columns, *more)
        elif more:  # each column that is named to the JVM costs a few calls
            rows = rows.select("*", *more)

        parts.append(rows)
    return reduce(DataFrame.union, parts) if parts else read_files(spark, location, [], to)


def _groups(location: StorageLocation, files: Sequence[tuple[str, int]], wanted: pa.Schema) -> list[FilesOfTypes]:
    """The files of each format by their types. A scan has one format."""
    storage, executor = open_storage(location), LocalExecutor()
    return [g for alike in _by_format(files).values() for g in group_by_stored_types(storage, alike, wanted, executor)]


def _by_format(files: Iterable[tuple[str, int]]) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for path, size_bytes in files:
        found.setdefault(_extension(path), []).append((path, size_bytes))
    return found


def is_scanned(file: PlannedFile, schema: pa.Schema) -> bool:
    """Whether Spark's own readers read a base file as pyhudi does. `schema`: the columns to read.

    Spark reads the clock readings of an ORC file in the zone of its JVM.
    """
    if file.source is not None or _extension(file.path) not in _FORMATS:
        return False
    return _extension(file.path) == PARQUET or not any(has_timestamp(field.type) for field in schema)


def holds_columns(file_slice: FileSlice, schema: pa.Schema, names: Sequence[str]) -> bool:
    """Whether Spark's own readers find these columns in the base file of a slice, and read them as pyhudi does."""
    assert file_slice.base_file is not None
    if not names:
        return _extension(file_slice.base_file.name.format()) in _FORMATS
    planned = planned_slice(replace(file_slice, log_files=()), with_logs=False)
    wanted = pa.schema([schema.field(name) for name in names])
    return planned is not None and is_scanned(planned, wanted)


def tells_positions(file: PlannedFile) -> bool:
    """Whether Spark's scan tells the position of each row in a base file that holds all columns of its rows."""
    return file.source is None and _extension(file.path) == PARQUET


def _extension(path: str) -> str:
    return path[path.rfind(".") :]


def read_files(
    spark: SparkSession,
    location: StorageLocation,
    files: Sequence[tuple[str, int]],
    schema: t.StructType,
    *,
    values: PathValues | None = None,
    left_by: LeftBy | None = None,
) -> DataFrame:
    """Exactly these base files (path relative to the table, bytes), as one native scan of the given columns for each
    format.

    `values`, `left_by`: as for `read_as`. Under Spark Connect, Spark looks at each file, with as many tasks as there
    are cores.
    """
    if not files:
        return spark.createDataFrame([], schema)
    if len(formats := _by_format(files)) > 1:
        read = partial(read_files, spark, location, schema=schema, values=values, left_by=left_by)
        return reduce(DataFrame.union, [read(files=alike) for alike in formats.values()])
    if is_classic(spark):
        named = [
            ScanFile(path.rpartition("/")[0], spark_uri(location, path), size_bytes, path=path)
            for path, size_bytes in files
        ]
        return scan_pruned_files(spark, named, values, schema, CALENDAR, _FORMATS[_extension(files[0][0])][1], left_by)
    with with_settings(spark, {_LISTING: str(core_count(spark))}):
        paths = [without_globs(spark_uri(location, path)) for path, _ in files]
        reader = spark.read.options(**CALENDAR).schema(schema)
        return reader.format(_FORMATS[_extension(files[0][0])][0]).load(paths)


def hides_file(columns: Iterable[str]) -> bool:
    """Whether one of these columns has the name `_metadata`, in any case. Spark gives a row's file under this name, so
    a scan with the column no longer tells which file a row is from.
    """
    return any(name.lower() == "_metadata" for name in columns)


def hides_position(columns: Iterable[str]) -> bool:
    """Whether a scan of these columns no longer tells which row of which file a row is: a column has the name of
    Spark's columns that tell it, or of pyhudi's.
    """
    columns = list(columns)
    is_own = any(name.lower().startswith(OWN_COLUMNS) for name in columns)
    return is_own or hides_file(columns) or is_overwritten(columns)


def is_overwritten(columns: Iterable[str]) -> bool:
    """Whether Spark's Parquet scan fails on one of these columns, or puts row numbers into it if it is a long."""
    return any(name.lower() == "_tmp_metadata_row_index" for name in columns)


def spark_uri(location: StorageLocation, path: str) -> str:
    """A file of the table as Hadoop's paths spell it: its S3 client has the scheme s3a."""
    root = location.uri if urlsplit(location.uri).scheme else f"file://{location.uri}"
    if root.startswith("s3://"):
        root = f"s3a{root[2:]}"
    return f"{root.rstrip('/')}/{path}"


def hadoop_uri(path: Path) -> str:
    """A file of this machine as Hadoop's paths spell it: nothing is escaped."""
    return f"file://{path}"


def without_globs(path: str) -> str:
    """Escape glob characters, because Spark's reader takes paths as patterns."""
    return "".join(f"\\{char}" if char in "{}[]*?\\" else char for char in path)
