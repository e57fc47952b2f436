"""Reduces the records of a log to one for each key, with a merger that the user registered."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyhudi.merge.latest import incoming_wins
from pyhudi.merge.marks import find_deleted
from pyhudi.merge.mergers import run_merger
from pyhudi.merge.ordering import lacks_value, normalized, null_patterns, read_ordering
from pyhudi.merge.outcomes import Kind, Records, newer_wins
from pyhudi.merge.rules import MergeRules
from pyhudi.merge.settle import Entries, gather_states, one_of_each, repeated_keys


def merge_pairs(rules: MergeRules, older: pa.RecordBatch, newer: pa.RecordBatch) -> tuple[pa.RecordBatch, np.ndarray]:
    """The merger's rows for pairs of rows, and which of them are deletes."""
    assert rules.merger is not None
    rows, deleted = run_merger(rules.merger, older, newer, key=rules.key)
    marked = find_deleted(rows, rules)
    is_delete = np.zeros(len(rows), np.bool_) if deleted is None else np.array(deleted)
    return rows, is_delete if marked is None else is_delete | marked


def settle_custom(
    entries: Entries, codes: np.ndarray, keys: pa.Array, rules: MergeRules, fields: Sequence[pa.Field]
) -> Entries:
    """One record for each key, chosen or made by the merger.

    Two rows go to the merger, older first. If one of two records is a delete, event time decides.
    Memory: every row that the merger makes is held until the end.
    """
    repeats = repeated_keys(codes, len(keys))
    grown = _Grown(entries, rules, fields)
    winner = repeats.entries[repeats.starts]

    for active, positions in repeats.rounds():
        newer, older = repeats.entries[positions], winner[:active]
        is_delete = grown.records.is_delete
        by_time = is_delete[newer] | is_delete[older]
        result = np.empty(active, np.int64)
        result[by_time] = grown.later(newer[by_time], older[by_time])
        result[~by_time] = grown.merged(newer[~by_time], older[~by_time])
        winner[:active] = result

    chosen = one_of_each(codes, len(keys))
    chosen[repeats.codes] = winner
    return gather_states(grown.entries(), keys, chosen, {})


class _Grown:
    """The records of a log, followed by the records that the merger made."""

    def __init__(self, entries: Entries, rules: MergeRules, fields: Sequence[pa.Field]) -> None:
        self.records = entries.records
        self._keys = entries.keys
        self._rules = rules
        self._fields = fields
        self._row = entries.row
        self._rows = entries.rows
        self._ordering = [_chunked(column) for column in entries.ordering]

    def entries(self) -> Entries:
        return Entries(self._keys, self.records, self._row, self._ordering, self._rows, {})

    def later(self, newer: np.ndarray, older: np.ndarray) -> np.ndarray:
        """For pairs of records of which one is a delete at least: the record that wins by event time."""
        if not len(newer):
            return newer
        new, old = ([column.take(pa.array(at)) for column in self._ordering] for at in (newer, older))
        at_least = incoming_wins(new, old) if new else np.ones(len(newer), np.bool_)
        exceeds = ~at_least & (null_patterns(new, len(newer)) == null_patterns(old, len(newer)))

        records = self.records
        wins = newer_wins(
            self._rules, records.take(newer), records.take(older), at_least=at_least, older_exceeds=exceeds
        )
        return np.where(wins, newer, older)

    def merged(self, newer: np.ndarray, older: np.ndarray) -> np.ndarray:
        """New records: what the merger makes of pairs of rows."""
        if not len(newer):
            return newer
        count, row_count = len(self._row), self._rows.num_rows
        rows, is_delete = merge_pairs(self._rules, self._batch(older), self._batch(newer))

        ordering = read_ordering(rows, self._rules.ordering, self._fields)
        is_commit_time = is_delete & lacks_value(ordering, len(rows), is_block=False)
        kinds = np.where(is_delete, Kind.ROW_DELETE, Kind.ROW).astype(np.int8)

        self.records = Records(
            np.append(self.records.kinds, kinds), np.append(self.records.is_commit_time, is_commit_time)
        )
        self._row = np.append(self._row, row_count + np.arange(len(rows)))
        self._rows = pa.concat_tables([self._rows, pa.Table.from_batches([rows])])
        self._ordering = [
            pa.chunked_array([*column.chunks, new], column.type)
            for column, new in zip(self._ordering, normalized(ordering), strict=True)
        ]

        return count + np.arange(len(rows))

    def _batch(self, at: np.ndarray) -> pa.RecordBatch:
        rows = self._rows.take(pa.array(self._row[at])).combine_chunks()
        return rows.to_batches()[0]


def _chunked(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
