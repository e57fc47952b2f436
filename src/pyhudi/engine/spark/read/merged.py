"""Slices with logs as Spark reads them: tasks merge them as this process would, and return Arrow batches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyhudi.engine.spark.schema import rows_for_spark, spark_schema
from pyhudi.engine.spark.session import core_count, use_running_interpreter
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.table.read.files import read_planned
from pyhudi.table.read.plan import PlannedFile, ReadPlan
from pyhudi.table.slices.log_merge import with_key_column
from pyhudi.table.slices.merged_slice import RowsReader
from pyhudi.table.view.file_system_view import FileSlice

_TASKS_A_CORE = 4
PARTITIONS_MAX = 16
"""Partitions that get a plan each. Spark plans each of them for every query."""

PARTITION_BYTES_MIN = 32 << 20
"""Bytes of base files and logs of a partition, on average, from which on partitions get a plan each. A plan has a task
of its own at least. That costs a query of all partitions as much as merging some 8 MiB.
"""

_SHARE_BYTES = 64 << 20
"""Bytes of base files and logs that are worth a task. Each task takes a tenth of a second before it reads anything."""


class Sized(Protocol):
    """What a task reads as a whole. `size_bytes`: what it may read."""

    @property
    def size_bytes(self) -> int: ...


Slice = TypeVar("Slice", bound=Sized)


def read_merged_slices(
    spark: SparkSession,
    location: StorageLocation,
    plan: ReadPlan,
    slices: Sequence[PlannedFile],
    *,
    touched_only: bool = False,
) -> DataFrame:
    """The plan's rows of these slices, filtered and projected. Each task merges a share of the slices, one at a time.

    Slices of up to `PARTITIONS_MAX` large partitions get a plan for each partition. The values that its path tells are
    literals in that plan. No filter reaches the rows of a task, but Spark leaves out a plan whose literals the query's
    filters rule out. Example: `where city = 'oslo'` skips the plan of `city=rome`.

    `touched_only`: without the base rows that the logs do not touch.
    Memory of a task: the merged log of one slice, with the columns that are read.
    """
    lean = replace(plan, files=())  # each task is told its own files only by number; the rest of the plan is small
    read = partial(read_planned, plan=lean, use_threads=False, touched_only=touched_only)

    def run(storage: Storage, planned_file: PlannedFile) -> Iterator[pa.RecordBatch]:
        return read(storage, file=planned_file)

    by_partition: dict[str, list[PlannedFile]] = {}
    for planned_file in slices:
        by_partition.setdefault(planned_file.partition, []).append(planned_file)
    told = plan.told_as_shown
    total_bytes = sum(planned_file.size_bytes for planned_file in slices)
    pays = total_bytes >= PARTITION_BYTES_MIN * len(by_partition)
    if not (told.kinds and pays and len(by_partition) <= PARTITIONS_MAX):
        return map_slices(spark, location, slices, run, plan.schema)

    most = _share_count(slices, core_count(spark))
    parts = []
    for partition, own_slices in by_partition.items():
        share = -(-most * sum(planned_file.size_bytes for planned_file in own_slices) // total_bytes)
        rows = map_slices(spark, location, own_slices, run, plan.schema, tasks_max=share)
        known = told.of(partition).items()
        literals = {name: f.lit(value).cast(rows.schema[name].dataType) for name, value in known}
        parts.append(rows.withColumns(literals) if literals else rows)
    return reduce(DataFrame.union, parts)


def map_slices(
    spark: SparkSession,
    location: StorageLocation,
    slices: Sequence[Slice],
    read: Callable[[Storage, Slice], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    *,
    tasks_max: int | None = None,
) -> DataFrame:
    """The batches that `read` gives for each slice, read by tasks that take a share of the slices each.

    `tasks_max`: None: as many tasks as the bytes to read are worth.
    """
    use_running_interpreter(spark)
    shares = _shares(slices, tasks_max or _share_count(slices, core_count(spark)))
    numbers = spark.range(0, len(shares), 1, max(1, len(shares)))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = open_storage(location)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for planned_file in shares[number]:
                    yield from rows_for_spark(read(storage, planned_file), schema)

    return numbers.mapInArrow(run, spark_schema(schema))


def read_standing_rows(
    spark: SparkSession,
    location: StorageLocation,
    slices: Sequence[tuple[int, FileSlice]],
    reader: RowsReader,
    columns: Sequence[str],
    number: str,
) -> DataFrame:
    """These columns of the rows of numbered slices, read by tasks. `number`: the column with the slice's number."""
    use_running_interpreter(spark)
    stored = with_key_column(reader.stored)
    schema = pa.schema([*(stored.field(name) for name in columns), pa.field(number, pa.int32())])

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = open_storage(location)
        for batch in batches:
            for at in batch.column(0).to_pylist():
                target, file_slice = slices[at]
                numbered = (
                    rows.append_column(schema.field(number), pa.repeat(pa.scalar(target, pa.int32()), len(rows)))
                    for rows in reader.rows(storage, file_slice, columns).to_batches()
                )
                yield from rows_for_spark(numbered, schema)

    tasks = spark.range(0, len(slices), 1, max(1, min(len(slices), _TASKS_A_CORE * core_count(spark))))
    return tasks.mapInArrow(run, spark_schema(schema))


def _share_count(slices: Sequence[Sized], cores: int) -> int:
    """The same number for each core: one to `_TASKS_A_CORE`, by the bytes that there are to read."""
    a_core = -(-sum(planned_file.size_bytes for planned_file in slices) // (cores * _SHARE_BYTES))
    return cores * min(max(1, a_core), _TASKS_A_CORE)


def _shares(slices: Sequence[Slice], most: int) -> list[list[Slice]]:
    """At most so many lists of slices, each with about the same number of bytes."""
    shares: list[list[Slice]] = [[] for _ in range(min(most, len(slices)))]
    sizes = [0] * len(shares)
    for planned_file in sorted(slices, key=lambda planned_file: planned_file.size_bytes, reverse=True):
        at = sizes.index(min(sizes))
        shares[at].append(planned_file)
        sizes[at] += planned_file.size_bytes
    return shares
