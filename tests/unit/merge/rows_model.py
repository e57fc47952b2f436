"""Merging row by row with plain dicts, as format/log-format.md section 6 tells it: what columns are held against."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.merge.rules import DeleteRule, Fill, MergeRules

META = ("_hoodie_commit_time", "_hoodie_record_key")
Row = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """A record of the log, or a base row. `order`: the ordering values, as they are stored; `row`: None for an entry
    of a delete block; of a partial block it has some columns only."""

    order: tuple[Any, ...]
    row: Row | None
    is_delete: bool = False

    @property
    def is_entry(self) -> bool:
        return self.row is None


@dataclass(frozen=True)
class Facts:
    """`is_int`: which ordering columns are of Avro's int, whose null is the default 0."""

    rules: MergeRules
    is_int: tuple[bool, ...]
    defaults: Mapping[str, Any]
    merge: Callable[[Row, Row], Row | None] | None = None

    def at_least(self, newer: Record, older: Record) -> bool:
        pairs = zip(newer.order, older.order, self.is_int, strict=True)
        for new, old in ((rank(a, is_int), rank(b, is_int)) for a, b, is_int in pairs):
            if new != old:
                return new > old
        return True

    def is_commit_time(self, one: Record) -> bool:
        """A delete whose ordering value is the int 0, or null, which stands for it."""
        if not one.is_delete:
            return False
        if len(one.order) == 1:
            return one.order[0] is None or (self.is_int[0] and one.order[0] == 0)
        return all(value is None for value in one.order) if one.is_entry else not one.order

    def is_same_class(self, first: Record, second: Record) -> bool:
        pairs = zip(first.order, second.order, self.is_int, strict=True)
        return all(is_int or (a is None) == (b is None) for a, b, is_int in pairs)


def rank(value: Any, is_int: bool) -> tuple[Any, ...]:
    """Java's order: null (or the int 0), numbers with -0.0 before 0.0, NaN."""
    if value is None:
        return (1, 0, 1) if is_int else (0, 0, 0)
    if isinstance(value, float):
        return (2, 0, 0) if math.isnan(value) else (1, value, 0 if math.copysign(1, value) < 0 else 1)
    return (1, value, 1)


def fold(facts: Facts, log: Sequence[tuple[str, Record]]) -> dict[str, Record]:
    """One record a key, by merging each record of the log over the one that stands."""
    found: dict[str, Record] = {}
    for key, newer in log:
        found[key] = newer if key not in found else _log_merge(facts, newer, found[key])
    return found


def merge(facts: Facts, base: Sequence[tuple[str, Row, tuple[Any, ...]]], log: Sequence[tuple[str, Record]]) -> Any:
    """The rows of the slice: those of the base file in its order, then those of the log that met none."""
    folded = fold(facts, log)
    rows: list[Row] = []
    for key, row, order in base:
        if key not in folded:
            rows.append(row)
        elif (merged := _base_merge(facts, folded[key], Record(order, row))) is not None:
            rows.append(merged)
    met = {key for key, _, _ in base}
    rows.extend(one.row for key, one in folded.items() if key not in met and not one.is_delete and one.row is not None)
    return rows


def _log_wins(facts: Facts, newer: Record, older: Record) -> bool:
    rules = facts.rules
    if newer.is_entry:
        commit_time = facts.is_commit_time(newer)
        obsolete = not commit_time and facts.is_same_class(newer, older) and not facts.at_least(newer, older)
        match rules.deletes:
            case DeleteRule.LATEST:
                return True
            case DeleteRule.ORDERED:
                return not facts.is_commit_time(older) and not obsolete
            case DeleteRule.ARRIVAL:
                return not obsolete
    if newer.is_delete or older.is_delete:
        match rules.deletes:
            case DeleteRule.LATEST:
                return True
            case DeleteRule.ORDERED:
                return facts.is_commit_time(newer) or facts.is_commit_time(older) or facts.at_least(newer, older)
            case DeleteRule.ARRIVAL if older.is_entry:
                return True
    return not rules.log_by_ordering or facts.at_least(newer, older)


def _log_merge(facts: Facts, newer: Record, older: Record) -> Record:
    wins = _log_wins(facts, newer, older)
    if newer.is_delete or older.is_delete or newer.row is None or older.row is None:
        return newer if wins else older
    if facts.merge is not None:
        return _custom(facts, facts.merge, newer.row, older.row)
    high, low = (newer, older) if wins else (older, newer)
    assert high.row is not None
    assert low.row is not None
    row = _combined(facts, high.row, low.row, newer.row, fills=facts.rules.fills_log)
    return Record(high.order, row)


def _custom(facts: Facts, merge: Callable[[Row, Row], Row | None], newer: Row, older: Row) -> Record:
    row = merge(older, newer)
    order = tuple((newer if row is None else row)[name] for name in facts.rules.ordering)
    return Record(order, newer if row is None else row, is_delete=row is None)


def _base_merge(facts: Facts, log: Record, base: Record) -> Row | None:
    rules = facts.rules
    wins = _base_wins(facts, log, base)
    assert base.row is not None
    if log.is_delete or log.row is None:
        return None if wins else base.row
    if facts.merge is not None:
        return facts.merge(base.row, log.row)
    high, low = (log.row, base.row) if wins else (base.row, log.row)
    return _combined(facts, high, low, log.row, fills=rules.fill is not None)


def _base_wins(facts: Facts, log: Record, base: Record) -> bool:
    rules = facts.rules
    if log.is_delete:
        match rules.deletes:
            case DeleteRule.LATEST:
                return True
            case DeleteRule.ORDERED:
                return facts.is_commit_time(log) or facts.at_least(log, base)
            case DeleteRule.ARRIVAL:
                if log.is_entry or rules.row_deletes_win:
                    return True
    return not rules.base_by_ordering or facts.at_least(log, base)


def _combined(facts: Facts, high: Row, low: Row, newer: Row, *, fills: bool) -> Row:
    """The winning row, with values of the other where it has none or where its own give way."""
    merged = {}
    for name in {**high, **low}:
        if name not in high or (name in low and fills and _gives_way(facts, name, high[name])):
            merged[name] = low[name]
        else:
            merged[name] = high[name]
        if facts.rules.newer_meta_fields and name in META and name in newer:
            merged[name] = newer[name]
    return merged


def _gives_way(facts: Facts, name: str, value: Any) -> bool:
    match facts.rules.fill:
        case Fill.NULLS:
            return value is None
        case Fill.DEFAULTS:
            return bool(value == facts.defaults.get(name))
        case Fill.UNAVAILABLE:
            return value in (facts.rules.unavailable, facts.rules.unavailable.encode())
    return False
