"""Writing from a Spark DataFrame on one machine: Spark evaluates it, this process tags and writes."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.engine.local import LocalExecutor
from pyhudi.engine.nulls import refuse_null_ordering, refuse_null_required
from pyhudi.engine.partitioned import PartitionedInput
from pyhudi.engine.spark.schema import arrow_schema
from pyhudi.engine.spark.session import core_count, session_of
from pyhudi.engine.spark.source import SparkSource, as_table_types, bare_key
from pyhudi.engine.spark.staging import StagedInput, runs_on_this_machine, stage
from pyhudi.errors import Invalid
from pyhudi.format.keys import null_key_message
from pyhudi.storage.open import open_storage
from pyhudi.storage.protocol import StorageLocation
from pyhudi.table.file_system_view import FileSlice
from pyhudi.write.handle import WriteStatus, WriteTarget
from pyhudi.write.plan import WorkloadProfile, WritePlan
from pyhudi.write.source import InputSpec, WriteSource

TAGGED_ROWS_MAX = 2_000_000
"""Rows up to which keys are looked up in this process's memory (some 200 bytes a row); beyond that by Spark."""


class StagedSource:
    """A DataFrame as the input of a write where Spark runs on this machine only.

    One job evaluates it into memory-mapped Arrow files; the rest is the same as for Arrow data. Disk: the input's
    Arrow bytes in Spark's local folder, until `close`. An upsert or delete of more than `TAGGED_ROWS_MAX` rows is
    left to `SparkSource`, which reads the staged rows.
    """

    def __init__(self, rows: DataFrame, location: StorageLocation) -> None:
        self._input, self._location = rows, location
        self._spark = session_of(rows)
        self._spec: InputSpec | None = None
        self._staged: StagedInput | None = None
        self._by: PartitionedInput | SparkSource | None = None
        self._total = 0

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._input.schema)

    def count(self, spec: InputSpec) -> Mapping[str, int]:
        self._spec = spec
        if any(pa.types.is_floating(spec.schema.field(name).type) for name in spec.keys.columns):
            # Java before 19 spells some of these in its own way: let this JVM do it, as it does for Apache Hudi.
            self._by = SparkSource(self._input, self._location)
            return self._by.count(spec)
        typed = self._input.select(*(as_table_types(self._input, name, spec.schema) for name in spec.schema.names))
        self._staged = staged = stage(typed, spec, bare_key(spec))
        if staged.bad_keys:
            raise Invalid(null_key_message(spec.keys.record_key, staged.bad_keys, f"one row has {staged.example}"))
        refuse_null_ordering({name: staged.nulls[name] for name in spec.ordering})
        refuse_null_required({name: staged.nulls[name] for name in spec.required})
        executor = LocalExecutor(core_count(self._spark))
        placed = PartitionedInput(staged.partitions(), open_storage(self._location), executor)
        self._by, self._total = placed, sum(placed.counts.values())
        return placed.counts

    def tag(self, slices: Sequence[FileSlice]) -> WorkloadProfile:
        if self._total > TAGGED_ROWS_MAX:
            assert self._spec is not None
            assert self._staged is not None
            rows = self._staged.dataframe(self._spark, self._spec.schema)
            self._by = SparkSource(rows, self._location, is_stable=True)
            self._by.count(self._spec)
        assert self._by is not None
        return self._by.tag(slices)

    def write(self, target: WriteTarget, plan: WritePlan) -> list[WriteStatus]:
        assert self._by is not None
        return self._by.write(target, plan)

    def close(self) -> None:
        if isinstance(self._by, SparkSource):
            self._by.close()
        self._by = None
        if self._staged is not None:
            self._staged.discard()


def source_of(rows: DataFrame, location: StorageLocation) -> WriteSource:
    """The way in for a DataFrame: through this process where Spark runs here, through Spark's shuffle elsewhere."""
    if runs_on_this_machine(session_of(rows)):
        return StagedSource(rows, location)
    return SparkSource(rows, location)
