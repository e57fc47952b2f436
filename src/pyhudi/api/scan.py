"""Scans: a query that is planned, and gives its rows in the form that is asked for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from pyhudi.api.neighbours.library import library
from pyhudi.api.neighbours.narrowed import NarrowedReads, Replan
from pyhudi.api.neighbours.polars_frame import lazy_frame
from pyhudi.errors import Invalid
from pyhudi.executor import Executor
from pyhudi.storage.protocol import Storage
from pyhudi.table.prune.row_groups import without_unmatched_files
from pyhudi.table.read.counting import count_rows
from pyhudi.table.read.files import read_plan_batches, read_plan_table
from pyhudi.table.read.plan import Explanation, ReadPlan
from pyhudi.table.read.tasks import ScanTask, scan_tasks

if TYPE_CHECKING:
    import pandas as pd
    from pyarrow.dataset import Dataset
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Scan:
    """Rows of a table, bound to its timeline at the moment the scan was made."""

    _storage: Storage
    _plan: ReadPlan
    _executor: Executor
    _to_spark: Callable[["SparkSession", ReadPlan], "DataFrame"]
    _replan: Replan
    _rows_max: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer, in order."""
        return self._plan.schema

    def is_located(self, *, files_max: int, bytes_max: int) -> bool:
        """Whether an index of record keys told the files that hold the rows, and they are at most so many and large."""
        files = self._plan.files
        return self._plan.is_located and len(files) <= files_max and sum(f.size_bytes for f in files) <= bytes_max

    def limit(self, count: int) -> "Scan":
        """The scan, of so many rows at most; which of them is not promised. Reading stops once it has them."""
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise Invalid(f"limit({count!r}): expected a number of rows, 0 or more")
        return replace(self, _rows_max=count if self._rows_max is None else min(count, self._rows_max))

    def count(self) -> int:
        """The number of rows, exactly.

        Footers tell it where every row is asked for and files have no logs. Otherwise only the columns that choose rows
        are read, and the keys of slices with logs.
        """
        rows = count_rows(self._storage, self._plan, self._executor)
        return rows if self._rows_max is None else min(rows, self._rows_max)

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table, in memory; in no promised order."""
        if self._rows_max is not None:
            return pa.Table.from_batches(self.to_batches(), self.schema)
        return read_plan_table(self._storage, self._plan, self._executor)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, of bounded memory."""
        batches = read_plan_batches(self._storage, self._plan)
        return batches if self._rows_max is None else _first_rows(batches, self._rows_max)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches, of bounded memory."""
        return pa.RecordBatchReader.from_batches(self._plan.schema, self.to_batches())

    def tasks(self) -> list[ScanTask]:
        """The scan in pieces, one a file slice. Each is picklable, and is read alone: by a thread pool, Ray or Dask.

        Raises: Invalid for a scan with a limit, which no piece could keep by itself.
        """
        if self._rows_max is not None:
            raise Invalid("tasks: expected a scan without a limit, found one; limit what the tasks give")
        return scan_tasks(self._storage.location, self._plan)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for any library that speaks the Arrow PyCapsule stream interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> "pd.DataFrame":
        """All rows as a pandas DataFrame. Raises: Unsupported where pandas is not installed."""
        library("pandas", asked="to_pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self, *, lazy: bool = False) -> Any:
        """All rows as a Polars DataFrame. `lazy`: as a LazyFrame, which reads when it is collected.

        A LazyFrame hands the filters and columns of its query to the scan: partitions, slices and row groups that
        cannot matter to it are not read. It gives the rows of the scan's moment, however often it is collected.
        Raises: Unsupported where Polars is not installed.
        """
        if not lazy:
            return library("polars", asked="to_polars").from_arrow(self.to_arrow())
        frame = lazy_frame(self._narrowed)
        return frame if self._rows_max is None else frame.head(self._rows_max)

    def to_dataset(self) -> "Dataset":
        """The rows as a `pyarrow.dataset.Dataset`, which reads when it is scanned: what DuckDB takes, and others.

        The filter and the columns of a scanner leave out partitions, slices, row groups and columns, as `where` and
        `columns` do. The scanner's rows are those of the scan's moment. With a limit, the rows are held in memory.
        """
        import pyarrow.dataset as ds  # imports pandas if it is installed, so not at the top

        from pyhudi.api.neighbours.arrow_dataset import ScanDataset  # the same

        return ScanDataset(self._narrowed, repr(self)) if self._rows_max is None else ds.dataset(self.to_arrow())

    def to_duckdb(self, connection: Any, name: str) -> Any:
        """Make the rows a view of a DuckDB connection, under this name; returns the view as a relation.

        Each query of the view reads the files, with its filters and columns pushed down as in `to_dataset`.
        Raises: Invalid where DuckDB takes no such view.
        """
        if not hasattr(connection, "register"):
            raise Invalid(
                f"to_duckdb: expected a DuckDB connection, such as duckdb.connect(), found {type(connection).__name__}"
            )
        rows = self.to_dataset()
        try:
            connection.register(name, rows)
            return connection.table(name)
        except Exception as error:  # of a closed connection, or a name that is none
            raise Invalid(f"to_duckdb: DuckDB takes no view named {name!r}: {error}") from error

    def to_spark(self, spark: "SparkSession") -> "DataFrame":
        """The rows as a Spark DataFrame over a native Parquet scan: its plan is Spark's own."""
        rows = self._to_spark(spark, self._plan)
        return rows if self._rows_max is None else rows.limit(self._rows_max)

    def files(self) -> list[str]:
        """Paths, relative to the table, of the files that the scan reads after pruning. Reads footers, as `explain`."""
        return [path for file in self._pruned.files for path in file.paths]

    def explain(self) -> Explanation:
        """What was pruned and by what; `str()` of it is meant to be read.

        Reading skips files and row groups by the statistics in their footers. To tell so beforehand, this reads the
        footer of each file where the scan filters.
        """
        return self._pruned.explanation

    @property
    def _narrowed(self) -> NarrowedReads:
        return NarrowedReads(self._storage, self._plan, self._replan)

    @cached_property
    def _pruned(self) -> ReadPlan:
        return without_unmatched_files(self._storage, self._plan, self._executor)

    def __reduce__(self) -> NoReturn:
        raise Invalid("a scan cannot be pickled: hand on its tasks(), or the table, and scan there")

    def _repr_html_(self) -> str:
        return f"<pre>{self._plan.explanation}</pre>"

    def __repr__(self) -> str:
        return f"Scan({self._plan.explanation.query}, {len(self._plan.files):,} files)"


def _first_rows(batches: Iterator[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """The first rows of a stream, which is not read further."""
    while count > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, min(count, len(batch)))
        count -= len(batch)
