"""Changed rows as columns: what happened to each, its row before and its row after."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.merge.latest import match_rows
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

    Keys of each side are distinct. Memory: a batch beside the input.
    """
    stood, stands = before.column(RECORD_KEY), after.column(RECORD_KEY)
    matched = match_rows(stands, stood)
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

    gone = np.flatnonzero(np.asarray(pc.invert(pc.is_in(stood, value_set=stands))))
    for start in range(0, len(gone), BATCH_ROWS):
        yield ChangedRows.deleted(before.take(pa.array(gone[start : start + BATCH_ROWS])))
