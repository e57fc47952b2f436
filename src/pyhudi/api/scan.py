"""Scans: a query that is planned, and gives its rows in the form that is asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.storage.protocol import Storage
from pyhudi.table.prune.row_groups import without_unmatched_files
from pyhudi.table.read.files import read_plan_batches, read_plan_table
from pyhudi.table.read.plan import Explanation, ReadPlan

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Scan:
    """Rows of a table, bound to its timeline at the moment the scan was made."""

    _storage: Storage
    _plan: ReadPlan
    _executor: Executor
    _to_spark: Callable[["SparkSession", ReadPlan], "DataFrame"]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer, in order."""
        return self._plan.schema

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table, in memory; in no promised order."""
        return read_plan_table(self._storage, self._plan, self._executor)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches, of bounded memory."""
        return pa.RecordBatchReader.from_batches(self._plan.schema, read_plan_batches(self._storage, self._plan))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for any library that speaks the Arrow PyCapsule stream interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> "pd.DataFrame":
        """All rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_spark(self, spark: "SparkSession") -> "DataFrame":
        """The rows as a Spark DataFrame over a native Parquet scan: its plan is Spark's own."""
        return self._to_spark(spark, self._plan)

    def files(self) -> list[str]:
        """Paths, relative to the table, of the files that the scan reads after pruning. Reads footers, as `explain`."""
        return [path for file in self._pruned.files for path in file.paths]

    def explain(self) -> Explanation:
        """What was pruned and by what; `str()` of it is meant to be read.

        Reading skips files and row groups by the statistics in their footers. To tell so beforehand, this reads the
        footer of each file where the scan filters.
        """
        return self._pruned.explanation

    @cached_property
    def _pruned(self) -> ReadPlan:
        return without_unmatched_files(self._storage, self._plan, self._executor)

    def _repr_html_(self) -> str:
        return f"<pre>{self._plan.explanation}</pre>"

    def __repr__(self) -> str:
        return f"Scan({self._plan.explanation.query}, {len(self._plan.files):,} files)"
