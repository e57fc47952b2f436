"""Reduces the records of a log that share a key to one record for each key, over columns.

A key's records are compared in the order of the log, pair by pair as in Apache Hudi. All keys are handled at once:
first the second record of every key, then the third, and so on. Only row numbers move; rows are copied once, at the
end.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.schema.conversion import META_FIELDS
from pyhudi.merge.cells import gives_way, take_one
from pyhudi.merge.ordering import Columns, null_patterns, ranks
from pyhudi.merge.outcomes import Records, newer_wins
from pyhudi.merge.rules import MergeRules

_SPARSE = 2
"""If at most one of so many rows is left, the remaining rows are copied, to free the memory of the others."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Records of a log as columns, in the order of the log.

    `row`: the row in `rows` of each record, or -1 for a delete. `ordering`: normalized ordering values. `absent`: for
    columns that partial blocks left out, which rows lack a value.
    """

    keys: pa.Array | pa.ChunkedArray
    records: Records
    row: np.ndarray
    ordering: Columns
    rows: pa.Table
    absent: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class Repeats:
    """The records of keys that have several, sorted by key, then by their order in the log.

    `entries`: the numbers of the records. `starts`, `sizes`: where each key's records stand in `entries`, and how many
    they are; keys with most records first. `codes`: the numbers of the keys.
    """

    entries: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    codes: np.ndarray

    def rounds(self) -> Iterator[tuple[int, np.ndarray]]:
        """For the second, third, ... record of the keys: how many keys have one (they come first), and where."""
        for step in range(1, int(self.sizes[0])):
            active = int(np.searchsorted(-self.sizes, -step, side="left"))
            yield active, self.starts[:active] + step


def settle_plain(entries: Entries, codes: np.ndarray, keys: pa.Array, rules: MergeRules) -> Entries:
    """One record for each key, if records win as a whole. Memory: some integers for each record of repeated keys."""
    repeats = _without_runs(repeated_keys(codes, len(keys)), entries, rules)
    pairs = _Pairs(entries, repeats.entries, rules)

    winner = repeats.starts.copy()
    for active, newer in repeats.rounds():
        wins = pairs.newer_wins(newer, winner[:active])
        winner[:active] = np.where(wins, newer, winner[:active])

    chosen = one_of_each(codes, len(keys))
    chosen[repeats.codes] = repeats.entries[winner]
    return gather_states(entries, keys, chosen, {})


def settle_cells(entries: Entries, codes: np.ndarray, keys: pa.Array, rules: MergeRules) -> Entries:
    """One record for each key, if values of the winning row may give way to the other row's.

    That happens in columns that a partial block lacks, and to values that the rules fill; not if one of the two is a
    delete. An absent value never replaces another. Example: the later row wins, but its block lacks column c: the
    earlier row's c stays. Spec: format/log-format.md section 6.2.
    Memory: what `settle_plain` needs and, for each such column, an integer for each key.
    """
    repeats = repeated_keys(codes, len(keys))
    pairs = _Pairs(entries, repeats.entries, rules)

    row = entries.row[repeats.entries]
    cells = [_Cells(entries, name, row[repeats.starts], rules) for name in entries.rows.column_names]
    cells = [one for one in cells if one.can_move]

    winner = repeats.starts.copy()
    for active, newer in repeats.rounds():
        older = winner[:active]
        wins = pairs.newer_wins(newer, older)
        are_rows = ~(pairs.records.is_delete[newer] | pairs.records.is_delete[older])
        for one in cells:
            one.settle(active, row[newer], wins, are_rows)
        winner[:active] = np.where(wins, newer, older)

    chosen = one_of_each(codes, len(keys))
    chosen[repeats.codes] = repeats.entries[winner]

    sources = {}
    for one in cells:
        sources[one.name] = entries.row[chosen]
        sources[one.name][repeats.codes] = one.source
    return gather_states(entries, keys, chosen, sources)


class _Cells:
    """One column's values in `settle_cells`. `source`: the row from which each key's value is taken so far."""

    def __init__(self, entries: Entries, name: str, first: np.ndarray, rules: MergeRules) -> None:
        nothing = np.zeros(entries.rows.num_rows, np.bool_)
        filled = gives_way(entries.rows.column(name), name, rules) if rules.fills_log else None
        absent = entries.absent.get(name)
        self.name = name
        self.source = first.copy()
        self.is_newer_always = rules.newer_meta_fields and name in META_FIELDS
        self.can_move = filled is not None or absent is not None or self.is_newer_always
        self._absent = nothing if absent is None else absent
        self._yields = self._absent if filled is None else self._absent | filled

    def settle(self, active: int, newer: np.ndarray, wins: np.ndarray, are_rows: np.ndarray) -> None:
        older = self.source[:active]
        if self.is_newer_always:
            wins = wins | are_rows
        high, low = np.where(wins, newer, older), np.where(wins, older, newer)
        moves = np.flatnonzero(are_rows)
        moves = moves[self._yields[high[moves]] & ~self._absent[low[moves]]]
        high[moves] = low[moves]
        self.source[:active] = high


class _Pairs:
    """Tells which of two records wins. Records are named by their positions in `Repeats.entries`."""

    def __init__(self, entries: Entries, order: np.ndarray, rules: MergeRules) -> None:
        ordering = [take_one(column, order) for column in entries.ordering]
        self._rules = rules
        self._ranks = ranks(ordering, len(order))
        self._patterns = null_patterns(ordering, len(order)) if len(ordering) > 1 else None
        self.records = entries.records.take(order)

    def newer_wins(self, newer: np.ndarray, older: np.ndarray) -> np.ndarray:
        at_least = self._ranks[newer] >= self._ranks[older]
        exceeds = ~at_least
        if self._patterns is not None:
            exceeds &= self._patterns[newer] == self._patterns[older]
        records = self.records
        return newer_wins(
            self._rules, records.take(newer), records.take(older), at_least=at_least, older_exceeds=exceeds
        )


def one_of_each(codes: np.ndarray, key_count: int) -> np.ndarray:
    """One record for each key. For a key with several, an arbitrary one."""
    chosen = np.empty(key_count, np.int64)
    chosen[codes] = np.arange(len(codes))
    return chosen


def repeated_keys(codes: np.ndarray, key_count: int) -> Repeats:
    entries = np.flatnonzero(np.bincount(codes, minlength=key_count)[codes] > 1)
    assert len(entries)
    entries = entries[np.argsort(codes[entries], kind="stable")]
    return _parts(entries, codes[entries])


def _parts(entries: np.ndarray, sorted_codes: np.ndarray) -> Repeats:
    starts = np.flatnonzero(np.append(True, sorted_codes[1:] != sorted_codes[:-1]))
    sizes = np.diff(np.append(starts, len(entries)))
    by_size = np.argsort(-sizes, kind="stable")
    return Repeats(entries, starts[by_size], sizes[by_size], sorted_codes[starts[by_size]])


def _without_runs(repeats: Repeats, entries: Entries, rules: MergeRules) -> Repeats:
    """Replaces each run of consecutive rows of a key by the row that wins, without comparing them pair by pair.

    Exact if ordering values have a total order: nothing else decides between two rows.
    """
    order = repeats.entries
    codes = np.empty(len(order), repeats.codes.dtype)
    by_start = np.argsort(repeats.starts)
    codes[:] = np.repeat(repeats.codes[by_start], repeats.sizes[by_start])

    is_row = ~entries.records.is_delete[order]
    is_start = np.append(True, (codes[1:] != codes[:-1]) | ~is_row[1:] | ~is_row[:-1])
    starts = np.flatnonzero(is_start)
    if len(starts) == len(order):
        return repeats

    positions = np.arange(len(order))
    if rules.log_by_ordering and rules.ordering:
        ranked = ranks([take_one(column, order) for column in entries.ordering], len(order))
        greatest = np.maximum.reduceat(ranked, starts)
        positions = np.where(ranked == greatest[np.cumsum(is_start) - 1], positions, -1)

    last = np.maximum.reduceat(positions, starts)
    return _parts(order[last], codes[last])


def gather_states(entries: Entries, keys: pa.Array, chosen: np.ndarray, sources: dict[str, np.ndarray]) -> Entries:
    """The chosen record of each key, with its row. `sources`: other rows, for columns that take values from those."""
    records = entries.records.take(chosen)
    row = np.where(records.is_delete, -1, entries.row[chosen])
    ordering = [take_one(column, chosen) for column in entries.ordering]

    kept = np.flatnonzero(row >= 0)
    if not sources and len(kept) * _SPARSE > entries.rows.num_rows:
        return Entries(keys, records, row, ordering, entries.rows, entries.absent)

    picks = {name: source[kept] for name, source in sources.items()}
    whole = row[kept]
    names = entries.rows.column_names
    columns = [take_one(entries.rows.column(name), picks.get(name, whole)) for name in names]
    absent = {name: mask[picks.get(name, whole)] for name, mask in entries.absent.items()}

    row = row.copy()
    row[kept] = np.arange(len(kept))
    rows = pa.table(columns, schema=entries.rows.schema) if names else entries.rows.slice(0, len(kept))
    return Entries(keys, records, row, ordering, rows, {name: mask for name, mask in absent.items() if mask.any()})


def settle_nothing(entries: Entries) -> Entries:
    """The records as they are, if no key has several."""
    return Entries(
        one_array(entries.keys), entries.records, np.where(entries.records.is_delete, -1, entries.row),
        [one_array(column) for column in entries.ordering], entries.rows, entries.absent,
    )  # fmt: skip
