"""An input that is nothing but Parquet files: Python reads them itself, and no row passes through Spark's JVM.

Spark reads a row of Parquet, turns it into its own form, then into Arrow: that takes longer than all the rest of a
write. Where this process can tell that it would read the very same values, it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.java import elements
from pyhudi.engine.spark.session import BATCH_ROWS, is_classic, session_of
from pyhudi.errors import HudiError, NotFound, Unavailable
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.slices.base_files.parquet import ParquetBaseFile
from pyhudi.table.slices.conform import conform_batch

FILES_MAX = 1_000
"""Files up to which this process looks at the footer of each."""

PART_BYTES = 128 * 1024 * 1024
"""Bytes of a part's row groups, decompressed but encoded, up to which a part for each core is enough."""

_DATASOURCES = "org.apache.spark.sql.execution.datasources"
_OPTIONS = frozenset({
    "path", "paths", "__paths__", "basepath", "recursivefilelookup", "pathglobfilter", "modifiedbefore", "modifiedafter"
})  # fmt: skip
"""Options of a reader that only choose files."""

_EXPECTED_OFF = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
)
_REBASE_MODE = "spark.sql.parquet.datetimeRebaseModeInRead"
_SPARK_VERSION = b"org.apache.spark.version"
_HYBRID, _HYBRID_96 = b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"
_GREGORIAN_SINCE_DAYS = -141_427
"""15 October 1582. Days before it may be counted by another calendar, which Spark's settings tell."""
_ZONES_SINCE_US = -2_208_988_800_000_000
"""1900. Moments before it may be stored by the local time of a city, which Spark's settings tell."""


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Row groups of a file. `rows`, `size_bytes`: of each, `size_bytes` decompressed but encoded."""

    path: str
    numbers: tuple[int, ...]
    rows: tuple[int, ...]
    size_bytes: tuple[int, ...]

    def only(self, at: int) -> RowGroups:
        return RowGroups(self.path, (self.numbers[at],), (self.rows[at],), (self.size_bytes[at],))


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """The files of an input, whose rows are read as `schema`. `stored`: what each of its columns is called in them."""

    files: tuple[RowGroups, ...]
    stored: tuple[str, ...]
    schema: pa.Schema

    @property
    def rows(self) -> int:
        return sum(sum(file.rows) for file in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(sum(file.size_bytes) for file in self.files)

    def batches(self, names: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, or some of their columns, in the order of the files. Memory: a row group. Raises: Unavailable for a
        file that is another one by now; CorruptFile.
        """
        schema = self.schema if names is None else pa.schema([self.schema.field(name) for name in names])
        stored = dict(zip(self.schema.names, self.stored, strict=True))
        columns = [stored[name] for name in schema.names]
        for groups in self.files:
            for batch in _read(groups, columns):
                named = batch.select(columns).rename_columns(schema.names)
                yield conform_batch(named, schema, path=groups.path)

    def is_within(self, rows: int, size_bytes: int) -> bool:
        """Whether there are so many rows and bytes at most."""
        return self.rows <= rows and self.size_bytes <= size_bytes

    def parts(self, cores: int) -> list[ParquetFiles]:
        """The rows in parts of about equal size, in order: one for each core, or more if they are many."""
        each = [file.only(at) for file in self.files for at in range(len(file.numbers)) if file.rows[at]]
        count = min(len(each), max(cores, -(-self.size_bytes // PART_BYTES)))
        parts: list[list[RowGroups]] = [[] for _ in range(count)]
        total, before = self.rows, 0
        for group in each:
            (rows,) = group.rows
            parts[min(count - 1, (before + rows // 2) * count // total)].append(group)
            before += rows
        return [ParquetFiles(tuple(part), self.stored, self.schema) for part in parts if part]


def parquet_files(rows: DataFrame, schema: pa.Schema) -> ParquetFiles | None:
    """The files of which `rows` are all rows, with the columns of `schema`; None where Spark is to read them.

    That is so for anything but a plain scan of local Parquet files without partition columns; for nested columns, types
    that Spark would cast, and dates that it might shift to another calendar.
    """
    spark = session_of(rows)
    scan = _plain_scan(spark, rows) if is_classic(spark) and not any(map(pa.types.is_nested, schema.types)) else None
    if scan is None or scan.names != schema.names:
        return None
    try:
        files = [_checked(path, scan.stored, schema, spark) for path in scan.paths]
    except HudiError:  # Spark's own error says it in the words that its users know
        return None
    if any(file is None for file in files):
        return None
    found = ParquetFiles(tuple(file for file in files if file is not None and file.numbers), scan.stored, schema)
    return found if found.rows else None


@dataclass(frozen=True, slots=True)
class _Scan:
    """`names`: of the columns that come out. `stored`: of the same columns in the files."""

    paths: tuple[str, ...]
    names: list[str]
    stored: tuple[str, ...]


def _plain_scan(spark: SparkSession, rows: DataFrame) -> _Scan | None:
    """The scan that a DataFrame is; None if its plan holds anything else, or its reader was told how to read."""
    execution = rows._jdf.queryExecution()
    # To optimize a plan takes many times as long as this look at it, and Spark does it once more for its own job.
    if not _may_be_plain(execution.analyzed(), len(rows.columns)):
        return None

    plan = execution.optimizedPlan()
    expressions = elements(plan.output())
    if _kind(plan) == "Project":
        expressions, plan = elements(plan.projectList()), plan.child()
    if _kind(plan) != "LogicalRelation" or plan.isStreaming() or plan.catalogTable().isDefined():
        return None
    relation = plan.relation()
    if not _reads_plainly(spark, relation):
        return None

    stored: list[str] = []
    for expression in expressions:
        name = _column_of(expression)
        if name is None:
            return None
        stored.append(name)
    names = [str(expression.name()) for expression in expressions]
    listed = sorted(map(str, relation.location().inputFiles()))  # the same order at each look
    paths = [path for path in map(_local_path, listed) if path is not None]
    if not len(paths) == len(listed) <= FILES_MAX or not _have_bytes(paths, relation.location().sizeInBytes()):
        return None
    return _Scan(tuple(filter(_is_data, paths)), names, tuple(stored))


_NODES_OF_A_SCAN = frozenset({"Project", "SubqueryAlias", "View"})


def _may_be_plain(plan: Any, columns: int) -> bool:
    """Whether a plan that is analyzed, not optimized, may choose and rename columns of files. Not so where it has more
    of them than the files: one is computed, then.
    """
    while (kind := _kind(plan)) in _NODES_OF_A_SCAN:
        plan = plan.child()
    return kind == "LogicalRelation" and columns <= plan.relation().schema().length()


def _reads_plainly(spark: SparkSession, relation: Any) -> bool:
    """Whether a relation is of Parquet files without partition columns, and no option or setting changes a row."""
    if relation.getClass().getName() != f"{_DATASOURCES}.HadoopFsRelation":
        return False
    options = {str(pair._1()).lower() for pair in elements(relation.options().toSeq())}
    return (
        relation.fileFormat().getClass().getName() == f"{_DATASOURCES}.parquet.ParquetFileFormat"
        and relation.location().getClass().getName() == f"{_DATASOURCES}.InMemoryFileIndex"
        and relation.partitionSchema().length() == 0
        and relation.bucketSpec().isEmpty()
        and options <= _OPTIONS
        and not any(_is_on(spark, name) for name in _EXPECTED_OFF)
        and spark.sparkContext._jsc.hadoopConfiguration().get("parquet.crypto.factory.class") is None
    )


def _have_bytes(paths: Sequence[str], size_bytes: int) -> bool:
    """Whether files have so many bytes together, as they had when Spark listed them."""
    try:
        return sum(Path(path).stat().st_size for path in paths) == size_bytes
    except OSError:
        return False


def _local_path(uri: str) -> str | None:
    """The path of a file on a local disk; None for any other file."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" and parts.netloc in ("", "localhost") else None


def _is_data(path: str) -> bool:
    """Whether Spark reads rows of a file that it lists. Seen: `PartitioningAwareFileIndex.isDataPath`; it lists summary
    files such as `_metadata`, too.
    """
    name = path.rpartition("/")[2]
    return not (name.startswith(".") or (name.startswith("_") and "=" not in name))


def _column_of(expression: Any) -> str | None:
    """The name of the stored column that an output column is; None if it is computed."""
    if _kind(expression) == "Alias":
        expression = expression.child()
    return str(expression.name()) if _kind(expression) == "AttributeReference" else None


def _checked(path: str, stored: Sequence[str], schema: pa.Schema, spark: SparkSession) -> RowGroups | None:
    """The row groups of a file of a local disk. None if Spark might read other values. Raises: HudiError."""
    with closing(_open(path)) as opened:
        footer = opened.footer
        types = dict(zip(stored, schema.types, strict=True))
        if not _is_read_alike(opened, types) or not _has_todays_times(footer, types, spark):
            return None
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return RowGroups(
        path,
        tuple(range(len(groups))),
        tuple(group.num_rows for group in groups),
        tuple(group.total_byte_size for group in groups),
    )


def _is_read_alike(opened: ParquetBaseFile, types: Mapping[str, pa.DataType]) -> bool:
    """Whether the columns are read as these types without a cast that Spark might do in another way."""
    moments = _moments_of_96_bits(opened.footer)
    names = [name.lower() for name in opened.schema.names]
    for name, kind in types.items():
        if name not in opened.schema.names or names.count(name.lower()) != 1:
            return False
        stored = pa.timestamp("us", "UTC") if name in moments else opened.schema.field(name).type
        if stored != kind:
            return False
    return True


def _moments_of_96_bits(footer: pq.FileMetaData) -> frozenset[str]:
    """The columns of the old type INT96, which Spark writes by default: moments, to all who read it."""
    columns = [footer.schema.column(at) for at in range(footer.num_columns)]
    return frozenset(column.path for column in columns if column.physical_type == "INT96")


def _has_todays_times(footer: pq.FileMetaData, types: Mapping[str, pa.DataType], spark: SparkSession) -> bool:
    """Whether dates and moments are to be taken as they are stored.

    Seen: Spark's `DataSourceUtils.datetimeRebaseSpec` and `int96RebaseSpec`.
    """
    timed = {name: kind for name, kind in types.items() if pa.types.is_temporal(kind)}
    old = timed.keys() & _moments_of_96_bits(footer)
    if old and _is_on(spark, "spark.sql.parquet.int96TimestampConversion"):
        return False

    notes = footer.metadata or {}
    if (version := notes.get(_SPARK_VERSION)) is not None:
        is_hybrid = (_HYBRID in notes or version < b"3.0.0") and len(old) < len(timed)
        return not is_hybrid and not ((_HYBRID_96 in notes or version < b"3.1.0") and old)
    if old and not _is_corrected(spark, "spark.sql.parquet.int96RebaseModeInRead"):
        return False  # such columns have no statistics to go by
    if _is_corrected(spark, _REBASE_MODE):
        return True

    columns = {footer.schema.column(at).path: at for at in range(footer.num_columns)}
    for number in range(footer.num_row_groups):
        for name in timed.keys() - old:
            statistics = footer.row_group(number).column(columns[name]).statistics
            limit = _oldest(timed[name])
            if statistics is None or not statistics.has_min_max or statistics.min_raw < limit:
                return False
    return True


def _oldest(kind: pa.DataType) -> int:
    """The first date or time that all releases of Spark write alike, as Parquet stores it."""
    if pa.types.is_date(kind):
        return _GREGORIAN_SINCE_DAYS
    return _ZONES_SINCE_US // 1_000 if pa.types.is_timestamp(kind) and kind.unit == "ms" else _ZONES_SINCE_US


def _is_on(spark: SparkSession, name: str) -> bool:
    return str(spark.conf.get(name, "false")).lower() == "true"


def _is_corrected(spark: SparkSession, name: str) -> bool:
    return str(spark.conf.get(name)).upper() == "CORRECTED"


def _read(groups: RowGroups, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    changed = Unavailable(f"{groups.path}: this file of the input changed since the write began; write it once more")
    try:
        opened = _open(groups.path)
    except NotFound as error:
        raise changed from error
    with closing(opened):
        if not opened.footer.num_row_groups > max(groups.numbers) or not set(columns) <= set(opened.schema.names):
            raise changed
        for number, rows in zip(groups.numbers, groups.rows, strict=True):
            if opened.footer.row_group(number).num_rows != rows:
                raise changed
            yield from opened.batches(columns, groups=[number], batch_rows=BATCH_ROWS)


def _open(path: str) -> ParquetBaseFile:
    """Raises: HudiError."""
    file = Path(path)
    source = open_storage(StorageLocation(str(file.parent))).open_input(file.name).__enter__()
    try:
        return ParquetBaseFile(source, path)
    except BaseException:
        source.close()
        raise


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())
