"""Merges the folded records of a log with the rows of the base file, batch by batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.errors import Bug, CorruptFile
from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.merge.cells import gives_way, replace_values, take_one
from pyhudi.merge.fold import Folded
from pyhudi.merge.latest import incoming_wins, match_rows
from pyhudi.merge.ordering import normalized, read_ordering
from pyhudi.merge.outcomes import compares_base, log_wins
from pyhudi.merge.settle_custom import merge_pairs

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """What a merge did.

    `updated`: base rows that were replaced or changed. `deleted`: base rows that were dropped. `inserted`: log rows
    that met no base row. `deletes_unmet`: deletes of the log that met no base row.
    """

    updated: int
    deleted: int
    inserted: int
    deletes_unmet: int = 0


@dataclass(frozen=True, slots=True)
class Met:
    """Base rows that have a record in the log.

    `at`: their row numbers, ascending. `states`: the numbers of the records. `wins`: whether the record wins over the
    base row. `is_delete`: whether the record is a delete.
    """

    at: np.ndarray
    states: np.ndarray
    wins: np.ndarray
    is_delete: np.ndarray

    @property
    def replaced(self) -> np.ndarray:
        return self.wins & ~self.is_delete

    @property
    def dropped(self) -> np.ndarray:
        return self.at[self.wins & self.is_delete]

    def take(self, chosen: np.ndarray) -> "Met":
        return Met(self.at[chosen], self.states[chosen], self.wins[chosen], self.is_delete[chosen])

    def shifted(self, start: int) -> "Met":
        """The same base rows, with `start` added to their row numbers."""
        return Met(self.at + start, self.states, self.wins, self.is_delete)

    @staticmethod
    def joined(parts: "Sequence[Met]") -> "Met":
        """The base rows of all parts. The parts must be in the order of their row numbers."""
        none = np.zeros(0, np.int64)
        return Met(
            np.concatenate([none, *(one.at for one in parts)]),
            np.concatenate([none, *(one.states for one in parts)]),
            np.concatenate([none.astype(np.bool_), *(one.wins for one in parts)]),
            np.concatenate([none.astype(np.bool_), *(one.is_delete for one in parts)]),
        )


class BaseMerge:
    """One pass over the base file of a slice: `merge` for each batch, in order, then `remaining` once.

    A log record meets the base rows at its stored positions or, if it has none, every base row with its key.

    `stamps_changes`: for a log that a write is about to bring in. A merged row that has any value of the log's row then
    gets the log's meta fields too, for this write is the last to have changed the row, even if the base row won.
    Example: the base row wins, but its null gives way to the log's value; the row gets the write's commit time.
    Without it, for a stored log, the merge rules say which row's meta fields stay.

    Memory: what `Folded` holds, a byte for each of its records, and a batch.
    """

    def __init__(self, folded: Folded, *, stamps_changes: bool = False) -> None:
        self._folded = folded
        self._stamps_changes = stamps_changes
        self._met = np.zeros(len(folded), np.bool_)
        keys = folded.entries.keys
        self._keys = keys if len(folded.keyed) == len(folded) else take_one(keys, folded.keyed)
        self._rows_seen = 0
        self._updated = 0
        self._deleted = 0

    @property
    def counts(self) -> MergeCounts:
        unmet = np.count_nonzero(~self._met & self._folded.entries.records.is_delete)
        return MergeCounts(self._updated, self._deleted, len(self._left()), int(unmet))

    def merge(self, batch: pa.RecordBatch, start_position: int) -> pa.RecordBatch:
        """The rows of a base batch, as the log replaces, changes or drops them. The same batch if none is touched.

        `start_position`: the row number of the batch's first row in the base file.
        Raises: CorruptFile if the row at a position stored in the log has another key than the log's record.
        """
        folded = self._folded
        if not batch.schema.equals(folded.schema):
            raise Bug(f"{folded.path}: expected base rows of {folded.schema}, found {batch.schema}")

        met = self.meet(batch, start_position)
        return self.settled(batch, met) if len(met.at) else batch

    def meet(self, batch: pa.RecordBatch, start_position: int) -> Met:
        """The rows of a base batch that have a record in the log, and whether that record wins.

        `batch`: needs only the record key and the columns that the rules compare. Otherwise as `merge`.
        """
        self._rows_seen = max(self._rows_seen, start_position + len(batch))
        match = self._match(batch, start_position)
        at = np.flatnonzero(match >= 0)
        self._met[match[at]] = True
        return self._settle(batch, at, match[at])

    def needs_base(self, met: Met) -> np.ndarray:
        """For each of these base rows, whether merging may need its values. Decided without reading them."""
        is_whole = self._folded.rules.keeps_rows_whole and not self._folded.entries.absent
        return ~met.wins if is_whole else np.ones(len(met.at), np.bool_)

    def replacements(self, met: Met) -> pa.RecordBatch:
        """The log's rows that replace these base rows as a whole."""
        replaced = met.states[met.replaced]
        self._updated += len(replaced)
        self._deleted += len(met.dropped)
        return self._log_rows(replaced)

    def settled(self, batch: pa.RecordBatch, met: Met) -> pa.RecordBatch:
        """The rows of a base batch as the log leaves them. `met`: base rows, numbered within this batch."""
        is_custom = self._folded.rules.merger is not None
        merged, changed, dropped = self._customized(batch, met) if is_custom else self._replaced(batch, met)
        self._updated += changed
        self._deleted += len(dropped)
        if not len(dropped):
            return merged

        kept = np.ones(len(batch), np.bool_)
        kept[dropped] = False
        return merged.filter(pa.array(kept))

    def remaining(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows of the log that met no base row, in the order of the log. A value that no block had is null.

        Raises: CorruptFile for a record whose position lies behind the last base row.
        """
        folded = self._folded
        beyond = np.flatnonzero(folded.positions >= self._rows_seen)
        if len(beyond):
            position, state = int(folded.positions[beyond[0]]), int(folded.position_states[beyond[0]])
            expected = f"a base row {position:,}, the position of record key '{folded.entries.keys[state].as_py()}'"
            raise CorruptFile(folded.path, 0, expected=expected, found=f"{self._rows_seen:,} rows")

        left = self._left()
        for start in range(0, len(left), batch_rows):
            yield self._log_rows(left[start : start + batch_rows])

    def _left(self) -> np.ndarray:
        return np.flatnonzero(~self._met & ~self._folded.entries.records.is_delete)

    def _log_rows(self, states: np.ndarray) -> pa.RecordBatch:
        entries = self._folded.entries
        row = entries.row[states]
        return pa.RecordBatch.from_arrays(
            [take_one(column, row) for column in entries.rows.columns], schema=self._folded.schema
        )

    def _match(self, batch: pa.RecordBatch, start: int) -> np.ndarray:
        """For each base row the number of its log record, or -1."""
        folded = self._folded
        match = np.full(len(batch), -1, np.int64)
        keys = batch.column(folded.rules.key)

        if len(folded.keyed):
            found = match_rows(keys, self._keys)
            match = np.where(found >= 0, folded.keyed[found], -1)

        low, high = np.searchsorted(folded.positions, [start, start + len(batch)])
        if low < high:
            at, states = folded.positions[low:high] - start, folded.position_states[low:high]
            self._check_keys(take_one(keys, at), take_one(folded.entries.keys, states), start + at)
            match[at] = states
        return match

    def _check_keys(self, found: pa.Array, expected: pa.Array, positions: np.ndarray) -> None:
        if found.equals(expected):
            return
        at = next(at for at in range(len(found)) if found[at].as_py() != expected[at].as_py())
        raise CorruptFile(
            self._folded.path,
            0,
            expected=f"record key '{expected[at].as_py()}' at row {int(positions[at]):,} of the base file, by the log",
            found=f"'{found[at].as_py()}'",
            hint="The log's positions may be of another base file; merge by key.",
        )

    def _settle(self, batch: pa.RecordBatch, at: np.ndarray, states: np.ndarray) -> Met:
        folded = self._folded
        records = folded.entries.records.take(states)
        at_least = np.ones(len(at), np.bool_)
        if compares_base(folded.rules):
            stored = read_ordering(batch, folded.rules.ordering, folded.fields)
            at_least = incoming_wins(
                [take_one(column, states) for column in folded.entries.ordering],
                [take_one(column, at) for column in normalized(stored)],
            )

        wins = log_wins(folded.rules, records, at_least=at_least)
        return Met(at, states, wins, records.is_delete)

    def _replaced(self, batch: pa.RecordBatch, met: Met) -> tuple[pa.RecordBatch, int, np.ndarray]:
        """The batch with the log's values in it, the number of rows that took some, and the rows to drop."""
        written = met.replaced
        # A base row that wins may still take values from the log's row.
        if self._folded.rules.fill is not None:
            written |= ~met.is_delete
        hits = np.flatnonzero(written)
        if not len(hits):
            return batch, 0, met.dropped

        at, row = met.at[hits], self._folded.entries.row[met.states[hits]]
        changed = np.zeros(len(hits), np.bool_)
        columns: dict[str, pa.Array] = {}
        names = batch.schema.names
        # If changes are stamped, meta fields come last: they are taken for rows whose other columns changed.
        for name in sorted(names, key=lambda name: name in META_FIELDS) if self._stamps_changes else names:
            column, logged = batch.column(name), self._folded.entries.rows.column(name)
            if self._stamps_changes and name in META_FIELDS:
                takes: np.ndarray | None = changed
            else:
                takes = self._takes(name, column, logged, at, row, met.wins[hits])
                changed |= True if takes is None else takes
            new = take_one(logged, row if takes is None else row[takes])
            columns[name] = replace_values(column, at if takes is None else at[takes], new)

        merged = pa.RecordBatch.from_arrays([columns[name] for name in names], schema=batch.schema)
        return merged, int(changed.sum()), met.dropped

    def _takes(
        self,
        name: str,
        column: pa.Array,
        logged: pa.ChunkedArray,
        at: np.ndarray,
        row: np.ndarray,
        wins: np.ndarray,
    ) -> np.ndarray | None:
        """For each pair of a base row and a log row, whether the log's value is taken. None: always."""
        rules = self._folded.rules
        takes = wins.copy()
        absent = self._folded.entries.absent.get(name)
        if rules.newer_meta_fields and name in META_FIELDS:
            takes[:] = True

        # Values of the winner that give way are taken from the loser, whichever of the two is the log's row.
        if rules.fill is not None:
            yields = gives_way(take_one(logged, row), name, rules)
            takes = takes if yields is None else takes & ~yields
            lost = np.flatnonzero(~wins)
            if len(lost) and (open_base := gives_way(take_one(column, at[lost]), name, rules)) is not None:
                takes[lost[open_base]] = True

        # A partial block says nothing about the columns that it lacks.
        if absent is not None:
            takes &= ~absent[row]

        return None if takes.all() else takes

    def _customized(self, batch: pa.RecordBatch, met: Met) -> tuple[pa.RecordBatch, int, np.ndarray]:
        pairs = np.flatnonzero(~met.is_delete)
        if not len(pairs):
            return batch, 0, met.dropped
        at = met.at[pairs]
        newer = self._log_rows(met.states[pairs])
        rows, is_delete = merge_pairs(self._folded.rules, batch.take(pa.array(at)), newer)

        stamped = set(META_FIELDS) if self._stamps_changes else set()
        columns = [
            replace_values(batch.column(name), at, (newer if name in stamped else rows).column(name))
            for name in batch.schema.names
        ]
        merged = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
        return merged, int((~is_delete).sum()), np.append(met.dropped, at[is_delete])
