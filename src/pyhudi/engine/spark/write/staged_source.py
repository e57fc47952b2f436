"""Writing from a Spark DataFrame on one machine: Spark evaluates it, this process tags and writes."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.local.partitioned import PartitionedInput
from pyhudi.engine.local.staged_rows import StagedRows
from pyhudi.engine.spark.schema import arrow_schema
from pyhudi.engine.spark.session import core_count, session_of
from pyhudi.engine.spark.write.gathered_source import GatheredSource
from pyhudi.engine.spark.write.kept import KeptRows
from pyhudi.engine.spark.write.keys import quoted, with_keys
from pyhudi.engine.spark.write.source import SparkSource
from pyhudi.engine.spark.write.staging import runs_on_this_machine, stage, staged_dataframe
from pyhudi.engine.spark.write.typed_rows import typed_rows
from pyhudi.executor import Executor
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.index.bucket import BucketRule
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.view.slice_catalog import SliceCatalog
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.input.source import (
    ARRIVAL,
    BucketedInput,
    CountedInput,
    InputSpec,
    RowOrder,
    TaggedInput,
    Tagging,
    WriteSource,
)
from pyhudi.write.memory_settings import MemorySettings
from pyhudi.write.place.plan import WritePlan

TAGGED_ROWS_MAX = 2_000_000
"""Rows up to which keys are looked up in this process's memory (some 200 bytes a row); beyond that by Spark."""

BUCKETED_ROWS_MAX = 20_000_000
"""Rows up to which this process notes the bucket of each (12 bytes a row); beyond that Spark finds it."""


class StagedSource:
    """A DataFrame as the input of a write where Spark runs on this machine only.

    One job evaluates it into memory-mapped Arrow files; the rest is the same as for Arrow data. Disk: the input's
    Arrow bytes in Spark's local folder, until `close`. An upsert or delete of more than `TAGGED_ROWS_MAX` rows (by
    bucket any write of more than `BUCKETED_ROWS_MAX`) is left to `SparkSource`, which reads the staged rows.
    """

    def __init__(self, rows: DataFrame, location: StorageLocation, memory: MemorySettings) -> None:
        self._input, self._location, self._memory = rows, location, memory
        self._staged: StagedRows | None = None
        self._kept = KeptRows()

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._input.schema)

    def count(self, spec: InputSpec) -> CountedInput:
        cores = core_count(session_of(self._input))
        executor = LocalExecutor(cores)
        if spec.has_float_keys:
            # Java before 19 spells some of these in its own way: let this JVM do it, as it does for Apache Hudi.
            return SparkSource(self._input, self._location, executor=executor, kept=self._kept).count(spec)

        typed = typed_rows(self._input, spec.schema)
        is_sorted = spec.order.is_by_key and not spec.numbers_rows
        if is_sorted:
            typed = self._by_key(typed, spec)

        self._discard()
        self._staged = staged = stage(typed, spec, self._memory.spill_folder)
        staged.refuse_bad_rows()

        rows = PartitionedInput(
            staged.partitions(),
            open_storage(self._location),
            executor,
            splits_by_key=spec.order is RowOrder.BY_KEY_IN_PARTITION and not is_sorted,
            is_sorted=is_sorted,
            memory=staged.memory(self._memory.share_bytes(cores)),
        )
        return StagedInput(rows, staged, self._location, session_of(self._input), self._kept)

    def close(self) -> None:
        self._kept.release()
        self._discard()

    def _by_key(self, typed: DataFrame, spec: InputSpec) -> DataFrame:
        """The rows by partition and key: Spark sorts them, and spills what memory does not hold.

        Sorting reads its input twice, so the input is kept unless it is a plain scan.
        """
        kept = with_keys(self._kept.keep(typed), spec.keys, spec.schema)
        return kept.sort(PARTITION_PATH, RECORD_KEY).select(*map(quoted, spec.schema.names))

    def _discard(self) -> None:
        staged, self._staged = self._staged, None
        if staged is not None:
            staged.discard()


@dataclass(frozen=True, slots=True)
class StagedInput:
    """Staged rows, counted: looked up and written by this process while they are few enough for that."""

    rows: PartitionedInput
    staged: StagedRows
    location: StorageLocation
    spark: SparkSession
    kept: KeptRows

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
        return self._up_to(TAGGED_ROWS_MAX).tag(stored, tagging)

    def count_buckets(self, rules: Mapping[str, BucketRule]) -> BucketedInput:
        return self._up_to(BUCKETED_ROWS_MAX).count_buckets(rules)

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        return self.rows.write(target, plan)

    def _up_to(self, rows_max: int) -> CountedInput:
        """The rows for this process; where they are more, for Spark, which reads them and finds where they go."""
        if sum(self.counts.values()) <= rows_max:
            return self.rows
        spec = self.staged.spec
        schema = spec.schema
        if spec.numbers_rows:  # the staged rows lie by partition: their order is in their numbers
            schema = schema.append(pa.field(ARRIVAL, pa.int64()))
        rows = staged_dataframe(self.spark, self.staged, schema)
        return SparkSource(rows, self.location, executor=self.executor, kept=self.kept, is_stable=True).count(spec)


def source_of(rows: DataFrame, location: StorageLocation, memory: MemorySettings | None = None) -> WriteSource:
    """The way in for a DataFrame: through this process where Spark runs here or its rows are few, else through Spark's
    shuffle."""
    if runs_on_this_machine(session_of(rows)):
        return StagedSource(rows, location, memory or MemorySettings())
    return GatheredSource(rows, location, memory or MemorySettings())
