"""The rows that a write brings for one file group: one a key if the write combines, and which of them are deletes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.merge.cells import take_one
from pyhudi.merge.fold import Folded, LogFold
from pyhudi.merge.latest import latest_per_key
from pyhudi.merge.marks import find_deleted
from pyhudi.merge.rules import MergeRules
from pyhudi.write.handles.target import WriteTarget
from pyhudi.write.input.source import ARRIVAL, LEAVES, POSITION, STORED_PATH


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """Rows, and which of them are deletes of their keys.

    Of a delete only the key and the ordering values can be relied on, because it may be made of several rows.
    """

    table: pa.Table
    is_delete: np.ndarray

    @property
    def living(self) -> pa.Table:
        return self.table.filter(pa.array(~self.is_delete)) if self.is_delete.any() else self.table

    @property
    def gone(self) -> pa.Table:
        return self.table.filter(pa.array(self.is_delete)) if self.is_delete.any() else self.table.slice(0, 0)


def collect_rows(target: WriteTarget, batches: Iterator[pa.RecordBatch]) -> IncomingRows:
    """All rows of a file group. If the write combines, one row a key remains, by the table's rules.

    Memory: the rows; where keys repeat, twice.
    """
    rows = pa.Table.from_batches(list(batches))
    if target.combines and (target.is_delete or target.rules.wins_whole):
        arrival = (ARRIVAL,) if ARRIVAL in rows.column_names else ()
        rows = latest_per_key(rows, key=RECORD_KEY, order=(*target.ordering, *arrival))
    elif target.combines and pc.count_distinct(rows.column(RECORD_KEY)).as_py() < len(rows):
        return combine_rows(rows, target.rules)
    return IncomingRows(rows, delete_mask(target, rows))


def delete_mask(target: WriteTarget, rows: pa.Table | pa.RecordBatch) -> np.ndarray:
    """Which rows are deletes: all rows of a delete, rows marked as deleted, and rows that move to another partition."""
    mask = np.full(rows.num_rows, target.is_delete)
    if target.drops_marked and (marked := find_deleted(rows, target.rules)) is not None:
        mask |= marked
    if target.matches_keys and LEAVES in rows.schema.names:
        mask |= np.asarray(pc.fill_null(rows.column(LEAVES), False))
    return mask


def combine_rows(rows: pa.Table, rules: MergeRules) -> IncomingRows:
    """One row a key, made of its rows in the order of their arrival, as one record is made of several in a log.

    Seen: 1.2.0 does so before it looks keys up, in an order of its own (`BaseWriteHelper.reduceRecords`).
    """
    if ARRIVAL in rows.column_names:
        rows = rows.sort_by(ARRIVAL)

    own = [name for name in rows.column_names if name not in (ARRIVAL, LEAVES, POSITION, STORED_PATH)]
    folded = fold_rows(rows.select(own), rules)
    entries = folded.entries

    columns = {name: take_one(entries.rows.column(name), entries.row) for name in own}
    columns[rules.key] = entries.keys.cast(rows.schema.field(rules.key).type)
    for name, values in zip(rules.ordering, entries.ordering, strict=True):
        if name in columns:
            columns[name] = pc.coalesce(columns[name], values.cast(columns[name].type))

    if POSITION in rows.column_names:  # the same for all rows of a key
        first = pc.index_in(entries.keys, value_set=rows.column(rules.key).combine_chunks())
        columns[POSITION] = rows.column(POSITION).take(first).combine_chunks()

    return IncomingRows(pa.table(columns), np.array(entries.records.is_delete))


def fold_rows(rows: pa.Table, rules: MergeRules) -> Folded:
    """The rows, merged as the records of a log."""
    fold = LogFold(rules, rows.schema, path="the input")
    for batch in rows.to_batches():
        fold.add_rows(batch)
    return fold.finish()
