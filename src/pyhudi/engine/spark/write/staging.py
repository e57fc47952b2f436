"""Handing a DataFrame's rows to this process: Arrow files on the machine's own disk, sorted by partition.

The DataFrame is evaluated once; its rows are not shuffled: each task sorts what it holds, a piece at a time, and says
where each partition's rows lie. Where all tasks run on this machine (a `local` master) they write the files. On a
cluster the tasks send few rows with their reports, and this process writes them.
"""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.local.input_columns import refuse_broken_text
from pyhudi.engine.local.staged_rows import (
    StagedFile,
    StagedRows,
    open_batches,
    receive_file,
    runs_path,
    stage_rows,
)
from pyhudi.engine.spark.batches import map_in_arrow
from pyhudi.engine.spark.outcomes import running_task
from pyhudi.engine.spark.schema import rows_for_spark, spark_schema
from pyhudi.engine.spark.session import arrow_batches, is_classic
from pyhudi.engine.spark.write.parquet_files import ParquetFiles, parquet_files
from pyhudi.engine.spark.write.task_rows import TaskRows
from pyhudi.errors import HudiError
from pyhudi.storage.scratch import ScratchFolder
from pyhudi.table.slices.conform import conform_input
from pyhudi.write.input.source import InputSpec
from pyhudi.write.memory_settings import SPILL_FOLDER

_REPORT = "file string, rows long, bad_keys long, example string, error binary, nulls array<long>"
_REPORT_SCHEMA = pa.schema(
    [("file", pa.string()), ("rows", pa.int64()), ("bad_keys", pa.int64()), ("example", pa.string()),
     ("error", pa.binary()), ("nulls", pa.list_(pa.int64()))]
)  # fmt: skip
_SENT = f"{_REPORT}, content binary, runs binary"
_SENT_SCHEMA = pa.schema([*_REPORT_SCHEMA, pa.field("content", pa.binary()), pa.field("runs", pa.binary())])

READ_HERE_ROWS_MAX, READ_HERE_BYTES_MAX = 250_000, 64 * 1024 * 1024
"""Rows in Parquet files, and their bytes decompressed but encoded, up to which this process reads them alone."""

SENT_BYTES_MAX = 16 * 1024 * 1024
"""Arrow bytes that a task sends to this process at most."""


def runs_on_this_machine(spark: SparkSession) -> bool:
    """Whether every task of the session runs where this process does."""
    if not is_classic(spark):
        return False
    master = spark.sparkContext.master or ""
    return master == "local" or master.startswith("local[")


def stage(rows: DataFrame, spec: InputSpec, parent: str | None) -> StagedRows:
    """Evaluate `rows`, which has the columns of the spec's schema, into files of a new folder. One job, or none for few
    rows that lie in Parquet files.

    `parent`: the folder in which that is made; None: where Spark puts what it spills.
    Raises: what a task raises, such as Invalid; null keys and nulls are counted, for the caller to refuse.
    """
    spark = rows.sparkSession
    parent = parent or scratch_folder(spark)
    files = parquet_files(rows, spec.schema)
    if files is not None and files.is_within(READ_HERE_ROWS_MAX, READ_HERE_BYTES_MAX):
        return stage_files(files, spec, parent)

    folder = ScratchFolder.make("pyhudi-staged-", parent, setting=SPILL_FOLDER)
    run = _stage_task(str(folder.path), spec)
    try:
        with arrow_batches(spark):
            found = TaskRows.of(rows, files).map(run, _REPORT).collect()
        return _staged(folder, found, spec)
    except BaseException:
        folder.discard()
        raise


def stage_files(files: ParquetFiles, spec: InputSpec, parent: str | None) -> StagedRows:
    """As `stage`, by this process. No job."""
    folder = ScratchFolder.make("pyhudi-staged-", parent, setting=SPILL_FOLDER)
    try:
        rows = conformed(files.batches(), spec.schema)
        return StagedRows(folder, (stage_rows(str(folder.path / "rows.arrow"), rows, spec),), spec)
    except BaseException:
        folder.discard()
        raise


def gather(rows: DataFrame, spec: InputSpec, parent: str | None) -> StagedRows | None:
    """As `stage`, from a cluster: tasks send their rows. None where one holds more than `SENT_BYTES_MAX`. One job.

    `rows` may be evaluated again. `parent`: None: in the system's folder for temporary files.
    """
    spark = rows.sparkSession
    with arrow_batches(spark):
        found = map_in_arrow(rows, _sending_task(spec, SENT_BYTES_MAX), _SENT).collect()
    if any(row["error"] is None and row["content"] is None for row in found):
        return None

    folder = ScratchFolder.make("pyhudi-staged-", parent, setting=SPILL_FOLDER)
    try:
        received = []
        for row in found:
            path = folder.path / row["file"]
            if row["content"] is not None:
                receive_file(str(path), bytes(row["content"]), bytes(row["runs"]))
            received.append({**row.asDict(), "file": str(path)})
        return _staged(folder, received, spec)
    except BaseException:
        folder.discard()
        raise


def _staged(folder: ScratchFolder, reports: Sequence[Any], spec: InputSpec) -> StagedRows:
    """The files that tasks report. Raises: what a task raised."""
    for error in (report["error"] for report in reports if report["error"] is not None):
        raise pickle.loads(bytes(error))
    files = [
        StagedFile(
            path=report["file"],
            rows=report["rows"],
            bad_keys=report["bad_keys"],
            example=report["example"],
            nulls=tuple(report["nulls"]),
        )
        for report in reports
    ]
    return StagedRows(folder, tuple(sorted(files, key=lambda file: file.path)), spec)


def staged_dataframe(spark: SparkSession, staged: StagedRows, schema: pa.Schema) -> DataFrame:
    """The rows as a DataFrame that may be evaluated again and again."""
    files = tuple(file.path for file in staged.files)
    numbers = spark.range(0, len(files), 1, max(1, len(files)))
    return numbers.mapInArrow(_read_files(files, schema), spark_schema(schema))


def scratch_folder(spark: SparkSession) -> str | None:
    """Where Spark itself puts what it spills."""
    named = os.environ.get("SPARK_LOCAL_DIRS") or spark.conf.get("spark.local.dir", "") or ""
    return first_folder(named)


def first_folder(named: str) -> str | None:
    """The first of the folders that Spark names, with commas between; None if it is none."""
    first = named.split(",")[0].strip()
    return first if first and Path(first).is_dir() else None


def _stage_task(folder: str, spec: InputSpec) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report = _stage_part(folder, batches, spec)
        if report is not None:
            yield pa.RecordBatch.from_pylist([report], schema=_REPORT_SCHEMA)

    return run


def _sending_task(spec: InputSpec, bytes_max: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        few = _UpTo(bytes_max)
        with TemporaryDirectory(prefix="pyhudi-sent-") as folder:
            report = _stage_part(folder, few.of(batches), spec)
            if report is None:
                return
            path = Path(report["file"])
            sends = report["error"] is None and not few.is_exceeded
            sent = {
                **report,
                "file": path.name,
                "content": path.read_bytes() if sends else None,
                "runs": runs_path(path).read_bytes() if sends else None,
            }
        yield pa.RecordBatch.from_pylist([sent], schema=_SENT_SCHEMA)

    return run


class _UpTo:
    """The first batches of a task, at least one, up to about so many bytes. The others are read all the same: Spark
    expects that."""

    def __init__(self, bytes_max: int) -> None:
        self._left_bytes = bytes_max
        self.is_exceeded = False

    def of(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not self.is_exceeded:
                yield batch
            self._left_bytes -= batch.nbytes
            self.is_exceeded = self._left_bytes < 0


def _stage_part(folder: str, batches: Iterator[pa.RecordBatch], spec: InputSpec) -> dict[str, Any] | None:
    """Put a task's rows into a file of a folder. Returns what it found in them, None where there are no rows."""
    context = running_task()
    # Names sort as the input's parts do.
    file, task = f"{folder}/{context.partitionId():08d}-{context.taskAttemptId()}.arrow", context.partitionId()
    told = None
    try:
        first = next((batch for batch in batches if len(batch)), None)
        if first is None:
            return None
        found = stage_rows(file, conformed(chain([first], batches), spec.schema), spec, task=task)
    except HudiError as error:
        found, told = StagedFile(path=file, rows=0, bad_keys=0, example=None, nulls=()), pickle.dumps(error)
        for _ in batches:  # Spark expects its rows to be read
            pass
    return {
        "file": found.path, "rows": found.rows, "bad_keys": found.bad_keys, "example": found.example,
        "error": told, "nulls": list(found.nulls),
    }  # fmt: skip


def conformed(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of Spark's batches in the types of a schema; batches without rows are left out.

    Raises: Invalid for text that is not UTF-8, and for values that the types cannot hold.
    """
    for batch in batches:
        if len(batch):
            refuse_broken_text(batch)
            yield conform_input(batch, schema)


def _read_files(
    files: Sequence[str], schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                staged = (rows.select(schema.names) for rows in open_batches(files[number]))
                yield from rows_for_spark(staged, schema, path=files[number])

    return run
