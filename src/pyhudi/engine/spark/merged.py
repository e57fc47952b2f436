"""Slices with logs as Spark reads them: tasks merge them as this process would, and hand over Arrow batches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.spark.schema import spark_schema
from pyhudi.engine.spark.session import core_count, use_running_interpreter
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.merged_slice import SliceReader
from pyhudi.table.read_files import read_planned
from pyhudi.table.read_plan import PlannedFile, ReadPlan

_TASKS_A_CORE = 4


def read_merged_slices(
    spark: SparkSession, location: StorageLocation, plan: ReadPlan, slices: Sequence[PlannedFile]
) -> DataFrame:
    """The plan's rows of these slices, filtered and projected; each task merges a share of them, one at a time.

    Memory of a task: what the log of one slice comes to, of the columns that are read.
    """
    use_running_interpreter(spark)
    shares = _shares(slices, _TASKS_A_CORE * core_count(spark))
    numbers = spark.range(0, len(shares), 1, len(shares))
    lean = replace(plan, files=())  # each task is told its own files only by number; the rest of the plan is small
    return numbers.mapInArrow(_merge_task(location, lean, shares), spark_schema(plan.schema))


def read_standing_rows(
    spark: SparkSession,
    location: StorageLocation,
    slices: Sequence[tuple[int, FileSlice]],
    reader: SliceReader,
    columns: Sequence[str],
    number: str,
) -> DataFrame:
    """These columns of the rows of numbered slices with logs, as they stand, and the slice's number under `number`."""
    use_running_interpreter(spark)
    schema = pa.schema([*(reader.stored.field(name) for name in columns), pa.field(number, pa.int32())])

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = open_storage(location)
        for batch in batches:
            for at in batch.column(0).to_pylist():
                target, piece = slices[at]
                for rows in reader.rows(storage, piece, columns).to_batches():
                    yield rows.append_column(schema.field(number), pa.repeat(pa.scalar(target, pa.int32()), len(rows)))

    tasks = spark.range(0, len(slices), 1, max(1, min(len(slices), _TASKS_A_CORE * core_count(spark))))
    return tasks.mapInArrow(run, spark_schema(schema))


def _shares(slices: Sequence[PlannedFile], most: int) -> list[list[PlannedFile]]:
    """So many lists of slices at most, of about as many bytes each."""
    shares: list[list[PlannedFile]] = [[] for _ in range(min(most, len(slices)))]
    sizes = [0] * len(shares)
    for piece in sorted(slices, key=lambda piece: piece.size_bytes, reverse=True):
        at = sizes.index(min(sizes))
        shares[at].append(piece)
        sizes[at] += piece.size_bytes
    return shares


def _merge_task(
    location: StorageLocation, plan: ReadPlan, shares: Sequence[Sequence[PlannedFile]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = open_storage(location)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for piece in shares[number]:
                    yield from read_planned(storage, plan, piece, use_threads=False)

    return run
