"""The input's rows of one partition, wherever they lie in the input's tables."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.write.input.source import ARRIVAL

BATCH_ROWS = 131_072
_SPARSE = 4  # rows spread over more than this many times their number are gathered from the whole table
_PIECE_ROWS = 1_024  # where a chunk gives fewer rows than this, gathering chunk by chunk no longer pays


@dataclass(frozen=True)
class PartitionRows:
    """The input's rows in one partition, as they arrived: all rows of `table`, or those that `rows` numbers.

    `key_column`: the column that holds the record keys. `ARRIVAL` is among the columns if rows of different partitions
    are compared with each other and their numbers do not tell their order.
    """

    table: pa.Table
    key_column: str
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.table) if self.rows is None else len(self.rows)

    def keys(self) -> pa.Array:
        """The record keys, as one array."""
        return self.column(self.key_column)

    def key_chunks(self) -> pa.ChunkedArray:
        """The record keys, as they are stored if they need not be gathered."""
        keys = self.table.column(self.key_column)
        return keys if self.rows is None else keys.take(pa.array(self.rows))

    def column(self, name: str) -> pa.Array:
        """A column of the rows, as one array."""
        column = self.table.column(name)
        column = column if self.rows is None else column.take(pa.array(self.rows))
        return one_array(column)

    def arrivals(self) -> np.ndarray:
        """Numbers that ascend as the rows arrived, comparable between partitions. Shape: (rows,)."""
        if ARRIVAL in self.table.column_names:
            return np.asarray(self.column(ARRIVAL))
        return np.arange(len(self.table)) if self.rows is None else self.rows

    def chosen(self, rows: np.ndarray) -> "PartitionRows":
        """Only these rows, ascending."""
        return PartitionRows(self.table, self.key_column, rows if self.rows is None else self.rows[rows])

    def key_numbers(self) -> np.ndarray:
        """For each row the number of its key, counted from 0 as keys first appear. Shape: (rows,)."""
        return np.asarray(self.keys().dictionary_encode().indices)

    def batches(self, chosen: np.ndarray) -> Iterator[pa.RecordBatch]:
        """The chosen rows, ascending, with their record key as a column. Memory: one batch."""
        absolute = chosen if self.rows is None else self.rows[chosen]
        for start in range(0, len(absolute), BATCH_ROWS):
            for batch in _gathered(self.table, absolute[start : start + BATCH_ROWS]):
                yield self._with_key(batch)

    def batches_between(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """The rows from number `start` to before number `stop`. Cheaper than `batches` with all of the numbers."""
        if self.rows is not None:
            yield from self.batches(np.arange(start, stop))
            return

        rows = self.table.slice(start, stop - start)
        if len(rows) >= _PIECE_ROWS * rows.column(0).num_chunks:
            batches: Iterable[pa.RecordBatch] = rows.to_batches(max_chunksize=BATCH_ROWS)
        else:  # what follows costs more for each batch than a copy does
            batches = _joined(rows)

        for batch in batches:
            yield self._with_key(batch)

    def _with_key(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.key_column == RECORD_KEY:
            return batch
        return batch.append_column(RECORD_KEY, batch.column(self.key_column))


def _joined(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows of many small chunks, in larger chunks."""
    for start in range(0, len(table), BATCH_ROWS):
        yield from table.slice(start, BATCH_ROWS).combine_chunks().to_batches()


def _gathered(table: pa.Table, rows: np.ndarray) -> list[pa.RecordBatch]:
    """Rows of a table by ascending number."""
    first, span = int(rows[0]), int(rows[-1] - rows[0]) + 1
    if span == len(rows):
        return table.slice(first, span).to_batches()
    if span <= _SPARSE * len(rows):
        table, rows = table.slice(first, span), rows - first
    if len(rows) < _PIECE_ROWS * max(1, table.column(0).num_chunks):
        return table.take(pa.array(rows)).combine_chunks().to_batches()
    return list(_gathered_by_chunk(table.to_batches(), rows))


def _gathered_by_chunk(chunks: Sequence[pa.RecordBatch], rows: np.ndarray) -> Iterator[pa.RecordBatch]:
    """Take rows chunk by chunk: that costs a third of one take from all chunks."""
    ends = np.cumsum([0, *map(len, chunks)])
    cuts = np.searchsorted(rows, ends).tolist()
    for number, chunk in enumerate(chunks):
        if cuts[number] < cuts[number + 1]:
            yield chunk.take(pa.array(rows[cuts[number] : cuts[number + 1]] - ends[number]))
