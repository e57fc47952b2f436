"""A native Parquet scan of given files, for which Spark asks the storage nothing.

`spark.read.parquet(*paths)` looks at each path, and lists more than 32 of them with a job of one task a path. The
driver knows names and sizes already: they go to the JVM as one byte array, into Spark's own file index.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from pyhudi.errors import Bug
from pyhudi.format.hfile.varint import encode_bytes_field, encode_varint_field

_BLOCK_BYTES = 128 * 1024 * 1024
_NO_COLUMNS = '{"type":"struct","fields":[]}'


def scan_known_files(
    spark: SparkSession, files: Sequence[tuple[str, int]], schema: t.StructType, options: Mapping[str, str]
) -> DataFrame:
    """The rows of Parquet files, as (URI, bytes); needs the gateway to the driver's JVM.

    Filters and projections are pushed down as in any scan of Spark's. The index stands under a made-up root named
    after its content: two scans are equal to Spark only if they read the same files, and no refresh of a path
    that exists lists them anew.
    """
    jvm, session = spark._jvm, spark._jsparkSession
    assert jvm is not None
    content = encode_statuses(files)
    statuses = _decoded(spark, content, len(files))
    python = jvm.org.apache.spark.api.python.PythonUtils
    sources = jvm.org.apache.spark.sql.execution.datasources
    nothing = jvm.scala.Option.empty()
    root = jvm.org.apache.hadoop.fs.Path(f"file:///pyhudi-scan/{sha256(content).hexdigest()}")
    cache = sources.FileStatusCache.getOrCreate(session)
    cache.putLeafFiles(root, statuses)
    # With a recursive lookup Spark takes all files of the root, and infers no partition columns from their folders.
    lookup = python.toScalaMap({"recursiveFileLookup": "true"})
    index = sources.InMemoryFileIndex(session, python.toSeq([root]), lookup, nothing, cache, nothing, nothing)
    cache.invalidateAll()
    if index.allFiles().size() != len(files):
        raise Bug(f"a scan of {len(files):,} files was given {index.allFiles().size():,} by Spark's file index")
    relation = sources.HadoopFsRelation(
        index,
        session.parseDataType(_NO_COLUMNS),
        session.parseDataType(schema.json()),
        nothing,
        sources.parquet.ParquetFileFormat(),
        python.toScalaMap(dict(options)),
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def encode_statuses(files: Sequence[tuple[str, int]]) -> bytes:
    """Files as Hadoop's `ArrayWritable` of `FileStatus` spells them: a count, then each one's length and protobuf."""
    parts = [len(files).to_bytes(4, "big")]
    for uri, size_bytes in files:
        message = _status(uri.encode(), size_bytes)
        parts += (len(message).to_bytes(4, "big"), message)
    return b"".join(parts)


def _status(path: bytes, size_bytes: int) -> bytes:
    """A `FileStatusProto`: 1 type (2: a file), 2 path, 3 bytes, 7 modification time, 10 replication, 11 block bytes."""
    return (
        encode_varint_field(1, 2)
        + encode_bytes_field(2, path)
        + encode_varint_field(3, size_bytes)
        + encode_varint_field(7, 0)
        + encode_varint_field(10, 1)
        + encode_varint_field(11, _BLOCK_BYTES)
    )


def _decoded(spark: SparkSession, content: bytes, count: int) -> object:
    """The file statuses as an array in the JVM."""
    jvm = spark._jvm
    assert jvm is not None
    kind = jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass("org.apache.hadoop.fs.FileStatus")
    written = jvm.org.apache.hadoop.io.ArrayWritable(kind)
    written.readFields(jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(bytearray(content))))
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    statuses = gateway.new_array(jvm.org.apache.hadoop.fs.FileStatus, count)
    jvm.java.lang.System.arraycopy(written.get(), 0, statuses, 0, count)
    return statuses
