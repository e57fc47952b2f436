"""Writing from a Spark DataFrame on one machine: Spark evaluates it, this process tags and writes."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.engine.local.partitioned import PartitionedInput
from pyhudi.engine.local.row_memory import RowMemory
from pyhudi.engine.local.staged_rows import StagedRows
from pyhudi.engine.spark.schema import arrow_schema
from pyhudi.engine.spark.session import core_count, session_of
from pyhudi.engine.spark.write.kept import keep_input
from pyhudi.engine.spark.write.keys import partition_path, record_key
from pyhudi.engine.spark.write.source import SparkSource, as_table_types
from pyhudi.engine.spark.write.staging import runs_on_this_machine, stage, staged_dataframe
from pyhudi.executor import Executor
from pyhudi.index.bucket import BucketRule
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.view.slice_catalog import SliceCatalog
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.input.source import ARRIVAL, InputSpec, RowOrder, Tagging, WriteSource
from pyhudi.write.memory_settings import MemorySettings
from pyhudi.write.place.plan import WorkloadProfile, WritePlan

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
        self._spark = session_of(rows)
        self._spec: InputSpec | None = None
        self._staged: StagedRows | None = None
        self._by: PartitionedInput | SparkSource | None = None
        self._total = 0
        self._is_sorted = False
        self._let_go: DataFrame | None = None

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._input.schema)

    @property
    def executor(self) -> Executor:
        return LocalExecutor(core_count(self._spark))

    def count(self, spec: InputSpec) -> Mapping[str, int]:
        self._spec = spec
        if any(pa.types.is_floating(spec.schema.field(name).type) for name in spec.keys.columns):
            # Java before 19 spells some of these in its own way: let this JVM do it, as it does for Apache Hudi.
            self._by = SparkSource(self._input, self._location)
            return self._by.count(spec)
        typed = self._input.select(*(as_table_types(self._input, name, spec.schema) for name in spec.schema.names))
        self._is_sorted = spec.order is not RowOrder.AS_ARRIVED and not spec.numbers_rows
        if self._is_sorted:
            typed = self._by_key(typed, spec)
        self._discard()
        self._staged = staged = stage(typed, spec, self._memory.spill_folder)
        staged.refuse_bad_rows()
        splits = spec.order is RowOrder.BY_KEY_IN_PARTITION and not self._is_sorted
        share_bytes = self._memory.share_bytes(core_count(self._spark))
        placed = PartitionedInput(
            staged.partitions(), open_storage(self._location), self.executor, splits_by_key=splits,
            memory=RowMemory(share_bytes, row_bytes=staged.row_bytes, let_go=staged.let_go),
        )  # fmt: skip
        self._by, self._total = placed, sum(placed.counts.values())
        return placed.counts

    @property
    def group_rows_max(self) -> int | None:
        return self._by.group_rows_max if self._by is not None else None

    def tag(self, stored: SliceCatalog, tagging: Tagging) -> WorkloadProfile:
        if self._total > TAGGED_ROWS_MAX:
            self._leave_to_spark()
        assert self._by is not None
        return self._by.tag(stored, tagging)

    def count_buckets(self, rules: Mapping[str, BucketRule]) -> Mapping[tuple[str, int], int]:
        if self._total > BUCKETED_ROWS_MAX:
            self._leave_to_spark()
        assert self._by is not None
        return self._by.count_buckets(rules)

    def _leave_to_spark(self) -> None:
        """Have Spark read the staged rows, and find where they go."""
        assert self._spec is not None
        assert self._staged is not None
        schema = self._spec.schema
        if self._spec.numbers_rows:  # the staged rows lie by partition: their order is in their numbers
            schema = schema.append(pa.field(ARRIVAL, pa.int64()))
        rows = staged_dataframe(self._spark, self._staged, schema)
        self._by = SparkSource(rows, self._location, is_stable=True)
        self._by.count(self._spec)

    def stored_keys(self) -> tuple[int, str]:
        assert self._by is not None
        return self._by.stored_keys()

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        assert self._by is not None
        return self._by.write(replace(target, sorts_rows=False) if self._is_sorted else target, plan)

    def _by_key(self, typed: DataFrame, spec: InputSpec) -> DataFrame:
        """The rows by partition and key: Spark sorts them, and spills what memory does not hold.

        Sorting reads its input twice, so the input is kept unless it is a plain scan.
        """
        kept, self._let_go = keep_input(typed)
        return kept.sort(partition_path(spec.keys, spec.schema), record_key(spec.keys, spec.schema))

    def close(self) -> None:
        if isinstance(self._by, SparkSource):
            self._by.close()
        if self._let_go is not None:
            self._let_go.unpersist()
        self._by = None
        self._discard()

    def _discard(self) -> None:
        staged, self._staged = self._staged, None
        if staged is not None:
            staged.discard()


def source_of(rows: DataFrame, location: StorageLocation, memory: MemorySettings | None = None) -> WriteSource:
    """The way in for a DataFrame: through this process where Spark runs here, through Spark's shuffle elsewhere."""
    if runs_on_this_machine(session_of(rows)):
        return StagedSource(rows, location, memory or MemorySettings())
    return SparkSource(rows, location)
