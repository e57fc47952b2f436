"""Finding the rows of a source that have the same values as rows of a table, batch after batch of the table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.predicate.types import is_float

Numbers = npt.NDArray[np.int64]

_PAIRS_MAX = 4_000_000


@dataclass(frozen=True, slots=True)
class _Level:
    """One column of the join. `values`: its distinct values; `codes`: distinct pairs of the code so far and a value."""

    values: pa.Array
    codes: Numbers


class SourceRows:
    """The source's rows by their values in the columns that must be equal. Null equals nothing, NaN equals NaN.

    Memory: the distinct values of each column, and three int64 a row of the source.
    """

    def __init__(self, columns: Sequence[pa.Array], rows: int) -> None:
        self._levels: list[_Level] = []
        codes = np.zeros(rows, dtype=np.int64)
        for column in map(_comparable, columns):
            values = one_array(column.unique().drop_null())
            mixed = _mixed(codes, column, values)
            known, at = np.unique(mixed, return_inverse=True)
            shift = int(bool(len(known)) and known[0] < 0)  # the first code stands for rows that equal nothing
            self._levels.append(_Level(values, known[shift:]))
            codes = at.astype(np.int64) - shift
        found = np.flatnonzero(codes >= 0)
        self._order = found[np.argsort(codes[found], kind="stable")]
        counts = np.bincount(codes[found], minlength=len(self._levels[-1].codes) if self._levels else 1)
        self._counts = counts.astype(np.int64)
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._counts)])[:-1]

    def pairs(self, columns: Sequence[pa.Array], rows: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Row numbers of the batch, and of the source's rows that equal them, in pieces of some million pairs.

        All pairs of a row of the batch are in one piece. `columns`: the batch's values, in the order of the source's.
        """
        codes = np.zeros(rows, dtype=np.int64)
        for level, column in zip(self._levels, map(_comparable, columns), strict=True):
            mixed = _mixed(codes, column, level.values)
            at = np.searchsorted(level.codes, mixed)
            inside = np.minimum(at, max(len(level.codes) - 1, 0))
            is_known = (level.codes[inside] == mixed) & (mixed >= 0) if len(level.codes) else np.zeros(rows, bool)
            codes = np.where(is_known, inside, -1)

        found = np.flatnonzero(codes >= 0) if len(self._order) else np.zeros(0, dtype=np.int64)
        counts = self._counts[codes[found]]
        ends = np.cumsum(counts)
        start, before = 0, 0
        while start < len(found):
            stop = max(int(np.searchsorted(ends, before + _PAIRS_MAX, side="right")), start + 1)
            of, many = found[start:stop], counts[start:stop]
            within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
            yield np.repeat(of, many), self._order[np.repeat(self._starts[codes[of]], many) + within]
            start, before = stop, int(ends[stop - 1])


def _mixed(codes: Numbers, column: pa.Array, values: pa.Array) -> Numbers:
    """One number for the code so far and the column's value; -1 where either is unknown."""
    at = np.asarray(pc.fill_null(pc.index_in(column, value_set=values), -1), dtype=np.int64)
    return np.where((codes >= 0) & (at >= 0), codes * max(len(values), 1) + at, -1)


def _comparable(column: pa.Array) -> pa.Array:
    """Values whose equality is plain: -0.0 becomes 0.0."""
    return pc.add(column, pa.scalar(0.0, column.type)) if is_float(column.type) else column
