"""Handing a DataFrame's rows to this process: Arrow files on the machine's own disk, sorted by partition.

Only where all tasks run on this machine (a `local` master). The DataFrame is evaluated once; its rows are not
shuffled: each task sorts what it holds, a piece at a time, and says where each partition's rows lie.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.local.staged_rows import StagedFile, StagedRows, open_batches, stage_rows
from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import arrow_batches, is_classic
from pyhudi.errors import Bug, Invalid
from pyhudi.storage.scratch import ScratchFolder
from pyhudi.table.slices.conform import conform_batch
from pyhudi.write.input.source import InputSpec
from pyhudi.write.memory_settings import SPILL_FOLDER

_REPORT = "file string, rows long, bad_keys long, example string, refusal string, nulls array<long>"
_REPORT_SCHEMA = pa.schema(
    [("file", pa.string()), ("rows", pa.int64()), ("bad_keys", pa.int64()), ("example", pa.string()),
     ("refusal", pa.string()), ("nulls", pa.list_(pa.int64()))]
)  # fmt: skip


def runs_on_this_machine(spark: SparkSession) -> bool:
    """Whether every task of the session runs where this process does."""
    if not is_classic(spark):
        return False
    master = spark.sparkContext.master or ""
    return master == "local" or master.startswith("local[")


def stage(rows: DataFrame, spec: InputSpec, parent: str | None) -> StagedRows:
    """Evaluate `rows`, which has the columns of the spec's schema, into files of a new folder. One job.

    `parent`: the folder in which that is made; None: where Spark puts what it spills.
    Raises: Invalid for what a task refuses; null keys and nulls are counted, for the caller to refuse.
    """
    spark = rows.sparkSession
    folder = ScratchFolder.make("pyhudi-staged-", parent or scratch_folder(spark), setting=SPILL_FOLDER)
    try:
        with arrow_batches(spark):
            found = rows.mapInArrow(_stage_task(str(folder.path), spec), _REPORT).collect()
        if refused := [row["refusal"] for row in found if row["refusal"] is not None]:
            raise Invalid(refused[0])
    except BaseException:
        folder.discard()
        raise
    files = [
        StagedFile(
            path=row["file"],
            rows=row["rows"],
            bad_keys=row["bad_keys"],
            example=row["example"],
            nulls=tuple(row["nulls"]),
        )
        for row in found
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
    first = named.split(",")[0].strip()
    return first if first and Path(first).is_dir() else None


def _stage_task(folder: str, spec: InputSpec) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context is None:
            raise Bug("a staging task runs outside of Spark")
        first = next((batch for batch in batches if len(batch)), None)
        if first is None:
            return
        # Names sort as the input's parts do.
        file, task = f"{folder}/{context.partitionId():08d}-{context.taskAttemptId()}.arrow", context.partitionId()
        refusal = None
        try:
            found = stage_rows(file, _conformed(first, batches, spec.schema), spec, task=task)
        except Invalid as error:
            found, refusal = StagedFile(path=file, rows=0, bad_keys=0, example=None, nulls=()), str(error)
            for _ in batches:  # Spark expects its rows to be read
                pass
        report = {
            "file": found.path, "rows": found.rows, "bad_keys": found.bad_keys, "example": found.example,
            "refusal": refusal, "nulls": list(found.nulls),
        }  # fmt: skip
        yield pa.RecordBatch.from_pylist([report], schema=_REPORT_SCHEMA)

    return run


def _conformed(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    yield conform_batch(first, schema, path="input")
    for batch in rest:
        if len(batch):
            yield conform_batch(batch, schema, path="input")


def _read_files(
    files: Sequence[str], schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for rows in open_batches(files[number]):
                    yield rows.select(schema.names)

    return run
