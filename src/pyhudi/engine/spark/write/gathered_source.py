"""Writing few rows from a DataFrame on a cluster: one job brings them here, and this process looks up where they go.

It writes them, too. Many file groups are rewritten by tasks of Spark, to which their rows are sent: one job more. A
write of a thousand rows through Spark's shuffle takes some ten jobs, each of which costs more than the rows do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.local.executors import LocalExecutor, worker_count
from pyhudi.engine.local.partitioned import PartitionedInput
from pyhudi.engine.local.staged_rows import StagedRows
from pyhudi.engine.spark.schema import arrow_schema
from pyhudi.engine.spark.session import is_classic, session_of
from pyhudi.engine.spark.slice_work import SparkSliceWork
from pyhudi.engine.spark.write.kept import KeptRows
from pyhudi.engine.spark.write.parquet_files import parquet_files
from pyhudi.engine.spark.write.source import SparkSource
from pyhudi.engine.spark.write.staging import gather, stage_files
from pyhudi.engine.spark.write.typed_rows import typed_rows
from pyhudi.executor import Executor
from pyhudi.index.bucket import BucketRule
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.view.slice_catalog import SliceCatalog
from pyhudi.write.handles.slice_work import SliceWork
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.input.source import (
    BucketedInput,
    CountedInput,
    InputSpec,
    RowOrder,
    TaggedInput,
    Tagging,
)
from pyhudi.write.memory_settings import MemorySettings
from pyhudi.write.place.plan import TaskKind, WritePlan

GATHERED_ROWS_MAX = 250_000
"""Rows up to which an input is few rows."""

GATHERED_BYTES_MAX = 32 * 1024 * 1024
"""Bytes of an input, as Spark's planner estimates them, up to which it is gathered before it is counted."""

HELD_BYTES_MAX = 64 * 1024 * 1024
"""Arrow bytes up to which an input is few rows: each task that rewrites file groups loads those of all of them."""

SEARCHED_BYTES_MAX = 256 * 1024 * 1024
"""Bytes of stored files, for each core here, up to which keys are looked up here; Spark joins with more."""

TASK_BYTES = 16 * 1024 * 1024
"""Bytes of base files that a task of Spark rewrites at least, if it is given several: some half a second of work."""

REWRITES_MAX = 2
"""File groups, for each core here, up to which they are rewritten here; tasks of Spark rewrite more."""


class GatheredSource:
    """A DataFrame as the input of a write on a cluster. Few rows are looked up here, many by `SparkSource`.

    Also few rows are left to that where their keys are to be looked up in large files. Disk of this machine: the Arrow
    bytes of the few rows, until `close`.
    """

    def __init__(self, rows: DataFrame, location: StorageLocation, memory: MemorySettings) -> None:
        self._input, self._location, self._memory = rows, location, memory
        self._kept = KeptRows()
        self._staged: StagedRows | None = None

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._input.schema)

    def count(self, spec: InputSpec) -> CountedInput:
        self._discard()
        if spec.has_float_keys:
            # Each JVM spells some of these keys in its own way.
            return SparkSource(self._input, self._location, kept=self._kept).count(spec)

        typed = typed_rows(self._input, spec.schema)
        kept = self._kept.keep(typed)
        files = parquet_files(kept, spec.schema)

        def count_all() -> CountedInput:
            return SparkSource(kept, self._location, kept=self._kept, files=files, is_stable=True).count(spec)

        if files is not None and not files.is_within(GATHERED_ROWS_MAX, HELD_BYTES_MAX):
            return count_all()
        if files is None and estimated_bytes(kept) > GATHERED_BYTES_MAX:
            counted = count_all()
            if sum(counted.counts.values()) > GATHERED_ROWS_MAX:
                return counted

        spill_folder = self._memory.spill_folder
        self._staged = staged = (
            gather(kept, spec, spill_folder) if files is None else stage_files(files, spec, spill_folder)
        )
        if staged is None:
            return count_all()
        if staged.rows > GATHERED_ROWS_MAX or staged.size_bytes > HELD_BYTES_MAX:
            self._discard()
            return count_all()
        staged.refuse_bad_rows()

        executor = LocalExecutor()
        elsewhere = _SparkForMany(session_of(self._input), REWRITES_MAX * executor.workers)
        rows = PartitionedInput(
            staged.partitions(),
            open_storage(self._location),
            executor,
            splits_by_key=spec.order is RowOrder.BY_KEY_IN_PARTITION,
            elsewhere=elsewhere.work,
        )
        return GatheredInput(rows, elsewhere, count_all)

    def close(self) -> None:
        self._kept.release()
        self._discard()

    def _discard(self) -> None:
        staged, self._staged = self._staged, None
        if staged is not None:
            staged.discard()


@dataclass(frozen=True, slots=True)
class GatheredInput:
    """Few rows, counted. `count_all`: the same rows for Spark, counted anew, to be looked up in much."""

    rows: PartitionedInput
    elsewhere: _SparkForMany
    count_all: Callable[[], CountedInput]

    @property
    def counts(self) -> Mapping[str, int]:
        return self.rows.counts

    @property
    def executor(self) -> Executor:
        return self.rows.executor

    @property
    def group_rows_max(self) -> int | None:
        return self.rows.group_rows_max

    def tag(self, stored: SliceCatalog, tagging: Tagging) -> TaggedInput:
        if not tagging.index.is_exact and _base_bytes(stored) > SEARCHED_BYTES_MAX * worker_count(self.executor):
            return self.count_all().tag(stored, tagging)

        tagged = self.rows.tag(stored, tagging)
        elsewhere = replace(self.elsewhere, group_bytes=_base_bytes(stored) // max(1, len(stored[:])))
        return replace(tagged, counted=replace(tagged.counted, elsewhere=elsewhere.work))

    def count_buckets(self, rules: Mapping[str, BucketRule]) -> BucketedInput:
        return self.rows.count_buckets(rules)

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        return self.rows.write(target, plan)


@dataclass(frozen=True, slots=True)
class _SparkForMany:
    """`rewrites_max`: file groups that a plan may rewrite without Spark. `group_bytes`: of the base file of one."""

    spark: SparkSession
    rewrites_max: int
    group_bytes: int = TASK_BYTES

    def work(self, plan: WritePlan) -> SliceWork | None:
        rewrites = sum(task.kind is TaskKind.REWRITE for task in plan.tasks)
        if rewrites <= self.rewrites_max:
            return None
        return SparkSliceWork(self.spark, slices_a_task=max(1, TASK_BYTES // max(1, self.group_bytes)))


def estimated_bytes(rows: DataFrame) -> int:
    """How large Spark's planner takes the rows to be; without a gateway to the JVM, more than few rows are."""
    if not is_classic(session_of(rows)):
        return GATHERED_BYTES_MAX + 1
    return int(str(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _base_bytes(stored: SliceCatalog) -> int:
    return sum(one.base_bytes for one in stored[:])
