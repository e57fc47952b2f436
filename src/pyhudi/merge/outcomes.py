"""Which of two records with the same key wins, as masks over many pairs of records.

Spec: format/log-format.md section 6.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import assert_never

import numpy as np

from pyhudi.merge.rules import DeleteRule, MergeRules


class Kind(IntEnum):
    """The kinds of log records: a row, a row that is marked as deleted, an entry of a delete block."""

    ROW = 0
    ROW_DELETE = 1
    BLOCK_DELETE = 2


@dataclass(frozen=True, slots=True)
class Records:
    """Records of the log, as columns. `is_commit_time`: which records are deletes without ordering value."""

    kinds: np.ndarray
    is_commit_time: np.ndarray

    def take(self, rows: np.ndarray) -> "Records":
        return Records(self.kinds[rows], self.is_commit_time[rows])

    @property
    def is_delete(self) -> np.ndarray:
        return self.kinds != Kind.ROW

    @property
    def is_block_delete(self) -> np.ndarray:
        return self.kinds == Kind.BLOCK_DELETE


def newer_wins(
    rules: MergeRules, newer: Records, older: Records, *, at_least: np.ndarray, older_exceeds: np.ndarray
) -> np.ndarray:
    """For each pair of log records, whether the one that was written later wins.

    `at_least`: the later record's ordering value is not less than the older one's. `older_exceeds`: it is less, and
    both are of the same class. Seen (1.0.2, 1.2.0): a delete block's entry never replaces a delete without ordering
    value. That matters to the next row of the key: it wins over such a delete, whatever its ordering value is.
    """
    by_rows = at_least if rules.log_by_ordering else np.ones(len(at_least), np.bool_)
    match rules.deletes:
        case DeleteRule.LATEST:
            return by_rows
        case DeleteRule.ORDERED:
            by_block = ~older.is_commit_time & (newer.is_commit_time | ~older_exceeds)
            by_delete = newer.is_commit_time | older.is_commit_time | at_least
            by_row = np.where(newer.is_delete | older.is_delete, by_delete, by_rows)
            return np.where(newer.is_block_delete, by_block, by_row)
        case DeleteRule.ARRIVAL:
            by_block = newer.is_commit_time | ~older_exceeds
            return np.where(newer.is_block_delete, by_block, older.is_block_delete | by_rows)
        case _:
            assert_never(rules.deletes)


def compares_base(rules: MergeRules) -> bool:
    """Whether the ordering values of base rows decide anything."""
    return bool(rules.ordering) and (rules.base_by_ordering or rules.deletes is DeleteRule.ORDERED)


def log_wins(rules: MergeRules, log: Records, *, at_least: np.ndarray) -> np.ndarray:
    """For each log record and its base row, whether the log record wins. `at_least`: as above, for the log record."""
    by_rows = at_least if rules.base_by_ordering else np.ones(len(at_least), np.bool_)
    match rules.deletes:
        case DeleteRule.LATEST:
            return by_rows
        case DeleteRule.ORDERED:
            return np.where(log.is_delete, log.is_commit_time | at_least, by_rows)
        case DeleteRule.ARRIVAL:
            always = log.is_block_delete | (log.is_delete & rules.row_deletes_win)
            return always | by_rows
        case _:
            assert_never(rules.deletes)
