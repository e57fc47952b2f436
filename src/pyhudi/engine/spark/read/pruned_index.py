"""A native scan whose files are chosen once Spark knows a query's filters.

When Spark runs a scan, it asks a `FileIndex` for the files, and passes the filters that reach the scan. Here the index
is an object of this process, which Spark's JVM calls back. It leaves out each partition that can hold no row of the
query. Spark itself evaluates the filters, on the values that partition paths tell.
"""

import datetime as dt
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from pyhudi.engine.spark.java import elements, java_class
from pyhudi.engine.spark.read.file_index import (
    PARQUET_FORMAT,
    KnownFiles,
    answer,
    index_files,
    index_folders,
    root_of,
    scan_index,
    scan_known_files,
)
from pyhudi.engine.spark.read.filters import LeftBy, is_judged
from pyhudi.errors import Bug, HudiError
from pyhudi.table.prune.partition_values import PathValues

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{}\\[\\]^]")
"""Characters that Spark escapes in the folders of partition columns."""

Values = Mapping[str, object]
"""What is known of all rows of a partition: column -> value."""


@dataclass(frozen=True, slots=True)
class ScanFile:
    """A file of a scan. `time_ms`: what `_metadata.file_modification_time` shows. `path`: of the planned file whose
    rows it holds.
    """

    partition: str
    uri: str
    size_bytes: int
    time_ms: int = 0
    path: str = ""


class KnownPartitions:
    """What is known of the rows of partitions. Finds the partitions that a query's filters leave."""

    def __init__(
        self, spark: SparkSession, partitions: Sequence[str], values: PathValues, schema: t.StructType
    ) -> None:
        """`partitions`: their paths, each once. `schema`: the columns of the scan."""
        self._spark, self._values = spark, [values.of(partition) for partition in partitions]
        named = {name for known in self._values for name in known}
        self._columns = [field for field in schema.fields if field.name in named]
        self._number = _unlike("number", schema.names)

    def left_by(self, filters: Any) -> frozenset[int] | None:
        """The numbers of the partitions that may hold a row for which all filters hold; None: all partitions.

        `filters`: a Scala sequence of Catalyst expressions.
        If a filter fails for a partition, none is left out: Spark fails itself if a row meets the filter.
        """
        if not self._columns or not self._told:  # Spark makes one partition of an empty row of no folders
            return None

        python = java_class(self._spark, "org.apache.spark.api.python.PythonUtils")
        usable = python.toSeq([one for one in elements(filters) if is_judged(self._spark, one)])
        if usable.isEmpty():
            return None

        try:
            left = self._folders.listFiles(usable, python.toSeq([]))
        except (PySparkException, Py4JJavaError):
            return None

        if left.size() == len(self._told):
            return None

        found = frozenset(_number(text) for text in left.mkString(self._between).split(self._between) if text)
        if len(found) != left.size():
            raise Bug(f"Spark left {left.size():,} partitions, of which {len(found):,} could be told by their numbers")
        return found | self._untold

    @cached_property
    def _told(self) -> list[int]:
        """The numbers of the partitions for which every column's value is known."""
        return [
            number for number, known in enumerate(self._values) if all(field.name in known for field in self._columns)
        ]

    @cached_property
    def _untold(self) -> frozenset[int]:
        return frozenset(range(len(self._values))).difference(self._told)

    @cached_property
    def _paths(self) -> list[str]:
        """A folder for each of these partitions, as Spark spells partition columns: `number=7/city=oslo`."""
        return [
            "/".join([f"{self._number}={at}", *(_folder(field.name, self._values[at]) for field in self._columns)])
            for at in self._told
        ]

    @cached_property
    def _folders(self) -> Any:
        number = t.StructField(self._number, t.IntegerType())
        return index_folders(self._spark, self._paths, t.StructType([number, *self._columns]))

    @cached_property
    def _between(self) -> str:
        """The text between partitions when Spark prints several: a hash of the values, which no value can contain."""
        return f"\n{sha256(repr(self._paths).encode()).hexdigest()}\n"


class PrunedIndex(KnownFiles):
    """An index over pieces of a table, each of one partition.

    `files_of`: gives the files of pieces, by their numbers. It is asked only for pieces that a query needs.
    """

    def __init__(
        self,
        spark: SparkSession,
        root: str,
        inputs: Sequence[tuple[str, int]],
        partitions: Sequence[str],
        values: PathValues,
        schema: t.StructType,
        files_of: Callable[[Sequence[int]], Sequence[ScanFile]],
        paths: Sequence[str] = (),
        left_by: LeftBy | None = None,
    ) -> None:
        """`root`: tells the index from others. `inputs`: the files of the table behind it, as (URI, bytes).
        `partitions`: of each piece. `schema`: the columns of the scan. `left_by`: tells which pieces filters leave, by
        their `paths`.
        """
        super().__init__(spark, root, inputs)
        self._files_of = files_of
        numbers = {partition: number for number, partition in enumerate(dict.fromkeys(partitions))}
        self._partition_of = [numbers[partition] for partition in partitions]
        self._known = KnownPartitions(spark, list(numbers), values, schema)
        self._paths, self._left_by = paths, left_by
        self._lock = threading.Lock()
        self._last: tuple[Sequence[int], Any] | None = None

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802
        """The files that a scan with these filters reads."""
        left = self._known.left_by(data_filters)
        numbers = [at for at, partition in enumerate(self._partition_of) if left is None or partition in left]
        if self._left_by is not None and len(numbers) > 1:
            numbers = self._narrowed(numbers, data_filters, self._left_by)
        with self._lock:
            if self._last is None or self._last[0] != numbers:
                files = self._get_files(numbers)
                named = [(file.uri, file.size_bytes) for file in files]
                self._last = numbers, index_files(self._spark, named, [file.time_ms for file in files])
            return answer(self._last[1].listFiles(self._nothing(), self._nothing()))

    def _narrowed(self, numbers: list[int], filters: Any, left_by: LeftBy) -> list[int]:
        try:
            paths = left_by(filters)
        except HudiError as error:  # as in `_get_files`
            raise error.with_traceback(None) from None
        return numbers if paths is None else [at for at in numbers if self._paths[at] in paths]

    def _get_files(self, numbers: Sequence[int]) -> Sequence[ScanFile]:
        try:
            return self._files_of(numbers)
        except HudiError as error:  # the JVM shows the whole trace of Python: the sentence should not stand far below
            raise error.with_traceback(None) from None


def scan_pruned_files(
    spark: SparkSession,
    files: Sequence[ScanFile],
    values: PathValues | None,
    schema: t.StructType,
    options: Mapping[str, str],
    file_format: str = PARQUET_FORMAT,
    left_by: LeftBy | None = None,
) -> DataFrame:
    """As `scan_known_files`, without the files that a query's filters rule out.

    `values`: what partition paths tell; None: all files are read. `left_by`: what tells the planned files that filters
    leave.
    """
    named, times = [(file.uri, file.size_bytes) for file in files], [file.time_ms for file in files]
    if values is None or (not values.kinds and left_by is None):
        return scan_known_files(spark, named, schema, options, times, file_format)

    partitions = [file.partition for file in files]
    chosen = lambda numbers: [files[at] for at in numbers]  # noqa: E731
    paths = [file.path for file in files]
    index = PrunedIndex(spark, root_of(named, times), named, partitions, values, schema, chosen, paths, left_by)
    return scan_index(spark, index, schema, options, file_format)


def _number(printed: str) -> int:
    """The number of a partition that Spark prints as `PartitionDirectory([7,oslo],…`."""
    found = re.match(r"PartitionDirectory\(\[(\d+)[,\]]", printed)
    if found is None:
        raise Bug(f"Spark prints a partition as {printed[:80]!r}, expected its number first")
    return int(found[1])


def _folder(name: str, known: Values) -> str:
    return f"{_escaped(name)}={_escaped(_text(known[name]))}"


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _text(value: object) -> str:
    match value:
        case None:
            return _NULL
        case bool():
            return "true" if value else "false"
        case str() | int():
            return str(value)
        case dt.date():
            return value.isoformat()
        case _:
            raise Bug(f"a partition path told {value!r}: expected a text, number, boolean or date")


def _unlike(word: str, names: Sequence[str]) -> str:
    """A name that is none of these in any case."""
    taken, name = {one.lower() for one in names}, f"__pyhudi_{word}"
    while name in taken:
        name += "_"
    return name
