"""Change data as a call of a table, and the changes of a range, in the form that is asked for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.api import frames
from pyhudi.api.handle import TableHandle
from pyhudi.api.neighbours.library import library
from pyhudi.api.queries import TimeLike, Where
from pyhudi.executor import Executor
from pyhudi.format.timeline.instant_text import INIT_INSTANT
from pyhudi.predicate import parse_predicate
from pyhudi.storage.protocol import Storage
from pyhudi.table.changes.change_plan import ChangePiece, ChangePlan, image_columns, plan_changes
from pyhudi.table.changes.change_rows import read_piece
from pyhudi.table.changes.change_texts import TEXT_SCHEMA, as_texts
from pyhudi.table.changes.incremental import commit_range
from pyhudi.table.changes.stream_range import stream_range
from pyhudi.table.read.plan import chosen_columns

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession


class ChangeCalls:
    """The calls about change data, and about following a table, that a table has."""

    _handle: TableHandle

    def position(self, *, cdc: bool = False) -> str:
        """How far one who follows the table can read now: the end of this range, and the start of the next.

        No commit will come to lie before it. It is the newest completion time for `incremental`. For `cdc=True`, and
        for both on table version 6, ranges are of requested times: then it is the newest one before all writes that
        are pending, so that it may stay where it is while a write runs. Zeros where the table has no such commit.
        """
        snapshot = self._handle.access.snapshot()
        return stream_range(snapshot, has_changes=cdc).newest(snapshot) or INIT_INSTANT

    def cdc(
        self,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
    ) -> "Changes":
        """What the writes requested in `(start, end]` did to each row: inserted, updated or deleted it.

        By requested time, on every table version. `start` None, `"earliest"` or `"000"`: from the beginning; `end`
        None: to the latest. `columns`: those of the rows before and after; None: all. `where`: a change is given if its
        row before or its row after meets it.

        Reads change logs where writers kept some (`hoodie.table.cdc.enabled`). Otherwise the answer is worked out from
        the files before and after each write, as long as they are there. Clusterings change no row. Nor does a
        compaction, unless it turned the order of two writes of one key (docs/concurrency.md, "Without blocking").
        Raises: NotFound where files that tell a change were cleaned away, with the earliest start that can be answered;
        Invalid for a start after the end; Unsupported for a table without meta fields.
        """
        return plan_cdc(self._handle, start, end, columns, where)


def plan_cdc(
    handle: TableHandle,
    start: TimeLike | None,
    end: TimeLike | None,
    columns: Sequence[str] | None,
    where: Where | None,
) -> "Changes":
    """As `HudiTable.cdc`."""
    snapshot = handle.access.snapshot()
    every = image_columns(snapshot)
    images = every if columns is None else chosen_columns(every, columns, table_name=snapshot.config.name)

    predicate = None if where is None else parse_predicate(where, every)
    span = commit_range(snapshot, start, end, query="cdc")
    plan = plan_changes(snapshot, span, images=images, predicate=predicate)
    to_spark = partial(_to_spark, handle, plan)
    return Changes(handle.access.storage, plan, handle.executor, to_spark)


@dataclass(frozen=True)
class Changes:
    """The changes of a range of commits, bound to the table's timeline at the moment they were asked for.

    Columns: `op` (`i`, `u` or `d`), `requested` and `completed` (the times of the write), `before` and `after`: the row
    as a struct of the table's columns, null where there is none. Order: by requested time of the write; of one write
    and partition, rows that were deleted with a whole file group come first.
    """

    _storage: Storage
    _plan: ChangePlan
    _executor: Executor
    _to_spark: Callable[..., "DataFrame"]
    _are_texts: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer, in order."""
        return TEXT_SCHEMA if self._are_texts else self._plan.schema

    def as_json(self) -> "Changes":
        """The same changes in the columns of Apache Hudi: `op`, `ts_ms`, `before` and `after`, all of them texts.

        `ts_ms` is the requested time; the rows are JSON, in which decimals are arrays of bytes and times are numbers.
        """
        return Changes(self._storage, self._plan, self._executor, self._to_spark, _are_texts=True)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changes as record batches, of bounded memory."""
        for piece in self._plan.pieces:
            yield from _piece_batches(self._storage, piece, plan=self._plan, are_texts=self._are_texts)

    def to_reader(self) -> pa.RecordBatchReader:
        """The changes as a stream of record batches, of bounded memory."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """All changes as an Arrow table, in memory. File groups are read in parallel."""
        read = partial(_piece_list, self._storage, plan=self._plan, are_texts=self._are_texts)
        found = self._executor.run(read, self._plan.pieces)
        return pa.Table.from_batches([batch for batches in found for batch in batches], self.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The changes for any library that speaks the Arrow PyCapsule stream interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> "pd.DataFrame":
        """All changes as a pandas DataFrame."""
        library("pandas", asked="to_pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """All changes as a Polars DataFrame. Raises: Unsupported where Polars is not installed."""
        return library("polars", asked="to_polars").from_arrow(self.to_arrow())

    def to_spark(self, spark: "SparkSession") -> "DataFrame":
        """The changes as a Spark DataFrame, read by tasks: a share of the file groups each."""
        return self._to_spark(spark, are_texts=self._are_texts)

    def count(self) -> int:
        """The number of changes."""
        return sum(map(len, self.to_batches()))

    def files(self) -> list[str]:
        """Paths, relative to the table, of the files that may be read."""
        return list(dict.fromkeys(path for piece in self._plan.pieces for path in piece.paths))

    def __repr__(self) -> str:
        return f"Changes({self._plan.span}, {len(self._plan.pieces):,} file groups)"


def _piece_batches(
    storage: Storage, piece: ChangePiece, *, plan: ChangePlan, are_texts: bool
) -> Iterator[pa.RecordBatch]:
    found = read_piece(storage, plan, piece)
    return as_texts(found) if are_texts else found


def _piece_list(storage: Storage, piece: ChangePiece, *, plan: ChangePlan, are_texts: bool) -> list[pa.RecordBatch]:
    return list(_piece_batches(storage, piece, plan=plan, are_texts=are_texts))


def _to_spark(handle: TableHandle, plan: ChangePlan, spark: "SparkSession", *, are_texts: bool) -> Any:
    engine = frames.spark_engine()
    return engine.changes_to_dataframe(spark, handle.access.location, plan, are_texts=are_texts)
