"""Counting an input on Spark: its rows by partition and by part, those without a key, and nulls where none may be."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pyhudi.engine.local.input_columns import refuse_broken_text
from pyhudi.engine.local.nulls import null_counts
from pyhudi.engine.local.staged_rows import never_null
from pyhudi.engine.spark.outcomes import running_task
from pyhudi.engine.spark.session import arrow_batches
from pyhudi.engine.spark.write.keys import quoted
from pyhudi.engine.spark.write.parts import PART, has_parts, part_counts
from pyhudi.engine.spark.write.task_rows import TaskRows
from pyhudi.errors import HudiError, Invalid
from pyhudi.format.keys.record_keys import missing_keys, partition_paths
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.write.input.source import LEAVES, InputSpec

PARTS = "__pyhudi_parts"
"""A column of what was counted: the number and the rows of each part of a partition; null where parts are too small."""

_PATH_BYTES = "path_bytes"
_ERROR = "error"
"""A column of what tasks count: an error of pyhudi, pickled; null where there is none."""


def count_rows(rows: DataFrame, spec: InputSpec) -> list[Row]:
    """The count of each partition: `rows`, `bad` (without a key), `null_0` and so on of the columns of `never_null`,
    and `PARTS` if the input may be written by parts. One job.

    `rows` has the columns `PARTITION_PATH` and `RECORD_KEY`. Raises: Invalid for a path that is not UTF-8.
    """
    stays = f.lit(True) if LEAVES not in spec.schema.names else ~f.coalesce(f.col(LEAVES), f.lit(False))
    is_null = [
        f.sum((f.col(quoted(name)).isNull() & stays).cast("long")).alias(f"null_{i}")
        for i, name in enumerate(never_null(spec))
    ]
    apart, by_part = (rows.withColumn(PART, f.spark_partition_id()), [PART]) if has_parts(spec) else (rows, [])
    counted = apart.groupBy(PARTITION_PATH, *by_part).agg(
        f.count(f.lit(1)).alias("rows"),
        f.sum(f.col(RECORD_KEY).isNull().cast("long")).alias("bad"),
        *is_null,
    )
    by_partition = _by_partition(counted) if by_part else counted
    found = by_partition.withColumn(_PATH_BYTES, f.col(PARTITION_PATH).cast("binary")).collect()
    for row in found:
        _refuse_broken_path(bytes(row[_PATH_BYTES] or b""), row["rows"], spec)
    return found


def _refuse_broken_path(path: bytes, rows: int, spec: InputSpec) -> None:
    """Spark takes any bytes for text. As Python gets it, other text stands for them, and no row would have this path.

    Raises: Invalid.
    """
    try:
        path.decode()
    except UnicodeDecodeError:
        columns = ", ".join(f"'{name}'" for name in spec.keys.columns if name not in spec.keys.record_key)
        raise Invalid(
            f"input: column {columns}: expected text in UTF-8 for the partition path, found the bytes {path!r} in "
            f"{rows:,} rows; mend the values"
        ) from None


def count_files(rows: TaskRows, spec: InputSpec) -> list[Row] | None:
    """As `count_rows`, where tasks read the columns that are counted from files. One job. None where Spark is to count:
    the rows are in no files, or a task refuses a value, of which Spark can say more. Raises: Unavailable.
    """
    if rows.parts is None:
        return None
    nulls = [t.StructField(f"null_{i}", t.LongType()) for i in range(len(never_null(spec)))]
    schema = t.StructType([
        t.StructField(PARTITION_PATH, t.StringType()),
        t.StructField(PART, t.IntegerType()),
        t.StructField("rows", t.LongType()),
        t.StructField("bad", t.LongType()),
        *nulls,
        t.StructField(_ERROR, t.BinaryType()),
    ])  # fmt: skip
    names = list(dict.fromkeys((*spec.keys.columns, *never_null(spec))))
    with arrow_batches(rows.session):
        found = _by_partition(rows.map_columns(_count_task(spec), schema, names)).collect()
    for error in (pickle.loads(bytes(row[_ERROR])) for row in found if row[_ERROR] is not None):
        if not isinstance(error, Invalid):
            raise error
        return None
    return found


def _by_partition(counted: DataFrame) -> DataFrame:
    """The counts of each partition, of its counts by part."""
    sums = [f.sum(name).alias(name) for name in counted.columns if name not in (PARTITION_PATH, PART, _ERROR)]
    errors = [f.max(_ERROR).alias(_ERROR)] if _ERROR in counted.columns else []
    return counted.groupBy(PARTITION_PATH).agg(*sums, *errors, part_counts().alias(PARTS))


def _count_task(spec: InputSpec) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`. Its input is the rows of a part, its output their counts."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = running_task().partitionId()
        counted, found = _PartCounts(spec), None
        try:
            for batch in batches:
                refuse_broken_text(batch)
                counted.add(pa.Table.from_batches([batch]))
        except HudiError as error:
            found = pickle.dumps(error)
        yield counted.as_batch(part, found)

    return run


class _PartCounts:
    """What was counted of a part. Rows without a key and nulls are not told apart by partition."""

    def __init__(self, spec: InputSpec) -> None:
        self._spec, self._never_null = spec, never_null(spec)
        self.rows: dict[str, int] = {}
        self._bad, self._nulls = 0, [0] * len(self._never_null)

    def add(self, rows: pa.Table) -> None:
        """Raises: Invalid for a value that is no part of a partition path."""
        self._bad += pc.sum(missing_keys(rows, self._spec.keys)).as_py() or 0
        for i, count in enumerate(null_counts(rows, self._never_null).values()):
            self._nulls[i] += count
        paths = partition_paths(rows, self._spec.keys).chunk(0)
        counts = np.bincount(np.asarray(paths.indices), minlength=len(paths.dictionary))
        for path, count in zip(paths.dictionary.to_pylist(), counts.tolist(), strict=True):
            if count:
                self.rows[path] = self.rows.get(path, 0) + count

    def as_batch(self, part: int, error: bytes | None) -> pa.RecordBatch:
        """A row for each partition, at least one."""
        rows = self.rows or {"": 0}
        once = len(rows) - 1
        columns = {
            PARTITION_PATH: pa.array(list(rows), pa.string()),
            PART: pa.array([part] * len(rows), pa.int32()),
            "rows": pa.array(list(rows.values()), pa.int64()),
            "bad": pa.array([self._bad, *[0] * once], pa.int64()),
            **{f"null_{i}": pa.array([count, *[0] * once], pa.int64()) for i, count in enumerate(self._nulls)},
            _ERROR: pa.array([error, *[None] * once], pa.binary()),
        }
        return pa.RecordBatch.from_pydict(columns)
