"""Changed rows as columns: what happened to each, its row before and its row after."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa

from pyhudi.format.avro.encode import row_encoder
from pyhudi.format.schema.conversion import COMMIT_TIME, META_FIELDS, RECORD_KEY, avro_from_arrow
from pyhudi.merge.latest import are_distinct, match_in_turn, match_rows
from pyhudi.predicate import Predicate

INSERTED: Final = "i"
UPDATED: Final = "u"
DELETED: Final = "d"

BATCH_ROWS: Final = 65_536

Differs = Callable[[pa.RecordBatch, pa.RecordBatch], np.ndarray]
"""For pairs of rows before and after, whether the write changed the row. Shape: (n,) bool."""


@dataclass(frozen=True, slots=True)
class Images:
    """The rows before, or after, a change. `is_there`: which changes have one; the row of the others means nothing."""

    rows: pa.RecordBatch
    is_there: np.ndarray

    @classmethod
    def of(cls, rows: pa.RecordBatch) -> Self:
        return cls(rows, np.ones(len(rows), np.bool_))

    @classmethod
    def taken(cls, rows: pa.RecordBatch, at: np.ndarray) -> Self:
        """The rows at these positions. A position below 0 stands for no row."""
        return cls(rows.take(pa.array(at, pa.int64(), mask=at < 0)), at >= 0)

    def column(self, schema: pa.Schema) -> pa.StructArray:
        """The images as structs of the columns of `schema`. An image that is not there is null."""
        columns = [self.rows.column(name) for name in schema.names]
        if not columns:  # from which Arrow cannot tell how many structs there are
            validity = np.packbits(self.is_there, bitorder="little")
            return pa.StructArray.from_buffers(pa.struct([]), len(self.is_there), [pa.py_buffer(validity)])
        mask = None if self.is_there.all() else pa.array(~self.is_there)
        return pa.StructArray.from_arrays(columns, fields=list(schema), mask=mask)

    def meeting(self, predicate: Predicate) -> np.ndarray:
        return np.asarray(predicate.mask(self.rows)) & self.is_there

    def filter(self, kept: np.ndarray) -> Self:
        return type(self)(self.rows.filter(pa.array(kept)), self.is_there[kept])


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Changes of one write. `op`: text, for each change. `before`, `after`: None if no change has such an image."""

    op: pa.Array
    before: Images | None
    after: Images | None

    @classmethod
    def inserted(cls, rows: pa.RecordBatch) -> Self:
        return cls(pa.repeat(pa.scalar(INSERTED), len(rows)), None, Images.of(rows))

    @classmethod
    def deleted(cls, rows: pa.RecordBatch) -> Self:
        return cls(pa.repeat(pa.scalar(DELETED), len(rows)), Images.of(rows), None)

    def meeting(self, predicate: Predicate | None) -> Self:
        """The changes whose row before or row after meets the predicate."""
        if predicate is None:
            return self
        sides = [side.meeting(predicate) for side in (self.before, self.after) if side is not None]
        kept = np.logical_or.reduce(sides)
        if kept.all():
            return self
        before, after = (None if side is None else side.filter(kept) for side in (self.before, self.after))
        return type(self)(self.op.filter(pa.array(kept)), before, after)


def pair_rows(before: pa.RecordBatch, after: pa.RecordBatch, *, differs: Differs) -> Iterator[ChangedRows]:
    """The changes between two states of rows: pairs by record key that differ, rows that are new, and rows that went.

    Of several rows with one key, equal ones are pairs first, so that a row that stayed is no change.
    Memory: a batch beside the input; where a side has a key twice, all rows once more.
    """
    matched = _matched(before, after)
    at = np.flatnonzero(matched >= 0)
    for start in range(0, len(at), BATCH_ROWS):
        here = at[start : start + BATCH_ROWS]
        old, new = before.take(pa.array(matched[here])), after.take(pa.array(here))
        changed = differs(old, new)
        if not changed.all():
            old, new = old.filter(pa.array(changed)), new.filter(pa.array(changed))
        if len(new):
            yield ChangedRows(pa.repeat(pa.scalar(UPDATED), len(new)), Images.of(old), Images.of(new))

    fresh = np.flatnonzero(matched < 0)
    for start in range(0, len(fresh), BATCH_ROWS):
        yield ChangedRows.inserted(after.take(pa.array(fresh[start : start + BATCH_ROWS])))

    gone = _others(matched, len(before))
    for start in range(0, len(gone), BATCH_ROWS):
        yield ChangedRows.deleted(before.take(pa.array(gone[start : start + BATCH_ROWS])))


def row_bytes(rows: pa.RecordBatch) -> pa.Array:
    """Each row as the bytes of an Avro record, which are equal if all values are. Shape: (n,) large binary."""
    encoded = row_encoder(avro_from_arrow(rows.schema, record_name="rows.row")).encode(rows)
    offsets = np.append(encoded.starts, encoded.ends[-1:]).astype(np.int64)
    return pa.Array.from_buffers(
        pa.large_binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(encoded.content)]
    )


def _matched(before: pa.RecordBatch, after: pa.RecordBatch) -> np.ndarray:
    """For each row after, the row before that it is a pair with, or -1. Shape: (n,)."""
    stood, stands = before.column(RECORD_KEY), after.column(RECORD_KEY)
    if are_distinct(stood) and are_distinct(stands):
        return match_rows(stands, stood)

    names = [name for name in after.schema.names if name not in META_FIELDS or name in (COMMIT_TIME, RECORD_KEY)]
    matched = match_in_turn(row_bytes(after.select(names)), row_bytes(before.select(names)))
    new, old = np.flatnonzero(matched < 0), _others(matched, len(before))
    found = match_in_turn(stands.take(pa.array(new)), stood.take(pa.array(old)))
    matched[new[found >= 0]] = old[found[found >= 0]]
    return matched


def _others(matched: np.ndarray, count: int) -> np.ndarray:
    """The rows among so many that nothing is matched with, ascending."""
    is_other = np.ones(count, np.bool_)
    is_other[matched[matched >= 0]] = False
    return np.flatnonzero(is_other)
