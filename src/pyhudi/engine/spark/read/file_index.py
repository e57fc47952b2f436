"""A native scan of given files, planned without a request to the storage.

`spark.read.parquet(*paths)` looks at each path; more than 32 paths are listed by a job with one task per path. The
driver knows names and sizes already. They go to the JVM as one byte array, and from there into Spark's own file index.

Spark's index lists its root anew when it is refreshed. So an index of this process stands before it, which the JVM
calls back.
"""

import threading
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from pyhudi.engine.spark.java import java_class
from pyhudi.errors import Bug
from pyhudi.format.hfile.varint import encode_bytes_field, encode_varint_field

_BLOCK_BYTES = 128 * 1024 * 1024
_ASKS_DICTIONARIES: Final = "parquet.filter.dictionary.enabled"
_CACHE_BYTES = 1 << 40
_SOURCES = "org.apache.spark.sql.execution.datasources"
_NO_COLUMNS = '{"type":"struct","fields":[]}'

PARQUET_FORMAT: Final = f"{_SOURCES}.parquet.ParquetFileFormat"
ORC_FORMAT: Final = f"{_SOURCES}.orc.OrcFileFormat"

# With a recursive lookup Spark takes all files of the root, and infers no partition columns from their folders.
_ALL_FILES = {"recursiveFileLookup": "true"}

_answered = threading.local()
"""What the JVM was answered last on each thread. py4j would let the JVM drop it before the JVM has taken it."""


class KnownFiles:
    """Spark's `FileIndex` of files that stay the same. The methods have the names that the JVM calls."""

    class Java:
        implements: Final = ["org.apache.spark.sql.execution.datasources.FileIndex"]

    def __init__(self, spark: SparkSession, root: str, inputs: Sequence[tuple[str, int]], files: Any = None) -> None:
        """`root`: tells the index from others. `inputs`: the files that Spark shows, as (URI, bytes). `files`: Spark's
        own index of the files that it reads, unless `listFiles` says which.
        """
        self._spark, self._root, self._inputs, self._files = spark, root, inputs, files

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802
        """The files that a scan with these filters reads: all."""
        return answer(self._files.listFiles(self._nothing(), self._nothing()))

    def rootPaths(self) -> Any:  # noqa: N802
        path = java_class(self._spark, "org.apache.hadoop.fs.Path")(self._root)
        return answer(java_class(self._spark, "org.apache.spark.api.python.PythonUtils").toSeq([path]))

    def inputFiles(self) -> Any:  # noqa: N802
        return answer(index_files(self._spark, self._inputs).inputFiles())

    def refresh(self) -> None:
        """Does nothing: a DataFrame shows the table as it was when the DataFrame was made."""

    def sizeInBytes(self) -> int:  # noqa: N802
        return sum(size_bytes for _, size_bytes in self._inputs)

    def partitionSchema(self) -> Any:  # noqa: N802
        return answer(self._spark._jsparkSession.parseDataType(_NO_COLUMNS))

    def metadataOpsTimeNs(self) -> Any:  # noqa: N802
        return answer(java_class(self._spark, "scala.Option").empty())

    def isTimeTravel(self) -> bool:  # noqa: N802
        """Whether Spark leaves cached rows alone when it refreshes. Spark asks from 4.3 on, of all that is cached."""
        return False

    def hashCode(self) -> int:  # noqa: N802
        return hash(self._root) & 0x7FFF_FFFF

    def equals(self, other: Any) -> bool:
        """`other`: an object of the JVM, which may stand for one of this process."""
        return other is not None and bool(other.toString() == self.toString())

    def toString(self) -> str:  # noqa: N802
        return f"pyhudi({self._root})"

    def _nothing(self) -> Any:
        """No filters."""
        return java_class(self._spark, "org.apache.spark.api.python.PythonUtils").toSeq([])


def answer(of_jvm: Any) -> Any:
    """An object of the JVM, kept until this thread answers the next call, by when the JVM has taken it."""
    _answered.last = of_jvm
    return of_jvm


def scan_known_files(
    spark: SparkSession,
    files: Sequence[tuple[str, int]],
    schema: t.StructType,
    options: Mapping[str, str],
    times_ms: Sequence[int] = (),
    file_format: str = PARQUET_FORMAT,
) -> DataFrame:
    """The rows of files of one format.

    `times_ms`: what `_metadata.file_modification_time` shows for each file; empty: 1970.
    Filters and projections are pushed down as in any Spark scan.
    """
    content = encode_statuses(files, times_ms or [0] * len(files))
    root = _root(content)
    known = _in_memory_index(spark, root, content, len(files), _ALL_FILES, None)
    return scan_index(spark, KnownFiles(spark, root, files, known), schema, options, file_format)


def index_files(spark: SparkSession, files: Sequence[tuple[str, int]], times_ms: Sequence[int] = ()) -> Any:
    """Spark's own index of these files, an `InMemoryFileIndex`, which must not be refreshed: its root is made up."""
    content = encode_statuses(files, times_ms or [0] * len(files))
    return _in_memory_index(spark, _root(content), content, len(files), _ALL_FILES, None)


def root_of(files: Sequence[tuple[str, int]], times_ms: Sequence[int]) -> str:
    """The made-up root of an index of these files, named after its content.

    So two scans are equal to Spark only if they read the same files, and refreshing a path that exists does not touch
    them.
    """
    return _root(encode_statuses(files, times_ms))


def _root(content: bytes) -> str:
    return f"file:///pyhudi-scan/{sha256(content).hexdigest()}"


def index_folders(spark: SparkSession, folders: Sequence[str], columns: t.StructType) -> Any:
    """Spark's own index of made-up folders `a=1/b=2`, each with a made-up file. It knows these partition columns."""
    content = encode_statuses([(f"file:///pyhudi-folders/{folder}/file", 1) for folder in folders], [0] * len(folders))
    return _in_memory_index(spark, "file:///pyhudi-folders", content, len(folders), {}, columns)


def scan_index(
    spark: SparkSession,
    index: KnownFiles,
    schema: t.StructType,
    options: Mapping[str, str],
    file_format: str = PARQUET_FORMAT,
) -> DataFrame:
    """The rows of the files that an index gives. `file_format`: the class that reads them.

    Needs the gateway to the driver's JVM. This process must live as long as the DataFrame.
    Seen: Parquet's reader in Spark compares the values of a filter with those of a file's dictionary by their bits, so
    that `x = 0.0` leaves out files which have `-0.0`. Rows with floating point are read without asking dictionaries.
    """
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    session = spark._jsparkSession
    if _has_floats(schema):
        options = {**options, _ASKS_DICTIONARIES: "false"}
    relation = java_class(spark, f"{_SOURCES}.HadoopFsRelation")(
        index,
        session.parseDataType(_NO_COLUMNS),
        session.parseDataType(schema.json()),
        java_class(spark, "scala.Option").empty(),
        java_class(spark, file_format)(),
        java_class(spark, "org.apache.spark.api.python.PythonUtils").toScalaMap(dict(options)),
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _has_floats(kind: t.DataType) -> bool:
    """Whether values of floating point are in a type that filters can reach: a column, or a field of a struct."""
    if isinstance(kind, t.StructType):
        return any(_has_floats(field.dataType) for field in kind)
    return isinstance(kind, t.FractionalType) and not isinstance(kind, t.DecimalType)


def _in_memory_index(
    spark: SparkSession, root: str, content: bytes, count: int, options: Mapping[str, str], columns: t.StructType | None
) -> Any:
    """An index of files with these statuses. `columns`: the partition columns that the folders below the root state."""
    session = spark._jsparkSession
    python = java_class(spark, "org.apache.spark.api.python.PythonUtils")
    option = java_class(spark, "scala.Option")
    nothing = option.empty()

    # The session's own cache has a bound, and holds nothing where its settings say so.
    path = java_class(spark, "org.apache.hadoop.fs.Path")(root)
    cache = java_class(spark, f"{_SOURCES}.SharedInMemoryCache")(_CACHE_BYTES, -1).createForNewClient()
    cache.putLeafFiles(path, _decoded(spark, content, count))

    known = nothing if columns is None else option.apply(session.parseDataType(columns.json()))
    index = java_class(spark, f"{_SOURCES}.InMemoryFileIndex")(
        session, python.toSeq([path]), python.toScalaMap(dict(options)), known, cache, nothing, nothing
    )
    cache.invalidateAll()
    if index.allFiles().size() != count:
        raise Bug(f"a scan of {count:,} files was given {index.allFiles().size():,} by Spark's file index")
    return index


def encode_statuses(files: Sequence[tuple[str, int]], times_ms: Sequence[int]) -> bytes:
    """Files and their modification times as the bytes of Hadoop's `ArrayWritable` of `FileStatus`.

    Layout: the count of files, 4 bytes, big endian; then for each file the length of its message, 4 bytes, and the
    protobuf message.
    """
    parts = [len(files).to_bytes(4, "big")]
    for (uri, size_bytes), time_ms in zip(files, times_ms, strict=True):
        message = _status(uri.encode(), size_bytes, time_ms)
        parts += (len(message).to_bytes(4, "big"), message)
    return b"".join(parts)


def _status(path: bytes, size_bytes: int, time_ms: int) -> bytes:
    """A `FileStatusProto`: 1 type (2: a file), 2 path, 3 bytes, 7 modification time, 10 replication, 11 block bytes."""
    return (
        encode_varint_field(1, 2)
        + encode_bytes_field(2, path)
        + encode_varint_field(3, size_bytes)
        + encode_varint_field(7, time_ms)
        + encode_varint_field(10, 1)
        + encode_varint_field(11, _BLOCK_BYTES)
    )


def _decoded(spark: SparkSession, content: bytes, count: int) -> object:
    """The file statuses as an array in the JVM."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    status = "org.apache.hadoop.fs.FileStatus"
    loader = java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    written = java_class(spark, "org.apache.hadoop.io.ArrayWritable")(loader.loadClass(status))
    stream = java_class(spark, "java.io.ByteArrayInputStream")(bytearray(content))
    written.readFields(java_class(spark, "java.io.DataInputStream")(stream))
    statuses = gateway.new_array(java_class(spark, status), count)
    java_class(spark, "java.lang.System").arraycopy(written.get(), 0, statuses, 0, count)
    return statuses
