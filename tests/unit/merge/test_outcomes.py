"""The wrong one of two records could win where a delete is among them: cases that are easy to get wrong, one by one.

Each is a log of rows (a number: the ordering value), rows marked as deleted and entries of delete blocks, over a base
row or none; what is left is its ordering value. Spec: format/log-format.md section 6.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.merge.base import BaseMerge
from pyhudi.merge.fold import LogFold
from pyhudi.merge.rules import DeleteRule, MergeRules, commit_time, event_time

SCHEMA = pa.schema([("_hoodie_record_key", pa.string()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
BY_TIME, LATEST = event_time(ordering=("ts",)), commit_time()
ARRIVAL = replace(BY_TIME, deletes=DeleteRule.ARRIVAL)
GREATEST_OF_LOG = replace(BY_TIME, base_by_ordering=False)
OVERWRITE = replace(GREATEST_OF_LOG, deletes=DeleteRule.ARRIVAL)


@dataclass(frozen=True)
class Entry:
    """Of a delete block."""

    ts: int | None


@dataclass(frozen=True)
class Deleted:
    """A row that is marked as deleted."""

    ts: int | None


Log: TypeAlias = list[int | Entry | Deleted]


def left(rules: MergeRules, log: Log, base: int | None, kind: pa.DataType | None = None) -> int | None:
    schema = SCHEMA.set(1, pa.field("ts", kind or pa.int64()))
    fold = LogFold(rules, schema)
    for one in log:
        if isinstance(one, Entry):
            fold.add_deletes(pa.array(["a"]), [pa.array([one.ts], kind) for kind in fold.ordering_types])
        else:
            is_deleted, ts = (True, one.ts) if isinstance(one, Deleted) else (False, one)
            row = {"_hoodie_record_key": "a", "ts": ts, "_hoodie_is_deleted": is_deleted}
            fold.add_rows(pa.RecordBatch.from_pylist([row], schema=schema))
    merging = BaseMerge(fold.finish())
    rows = []
    if base is not None:
        row = {"_hoodie_record_key": "a", "ts": base, "_hoodie_is_deleted": False}
        rows = merging.merge(pa.RecordBatch.from_pylist([row], schema=schema), 0).to_pylist()
    rows += [row for batch in merging.remaining() for row in batch.to_pylist()]
    assert len(rows) <= 1
    return rows[0]["ts"] if rows else None


@pytest.mark.parametrize(
    "rules,log,base,expected",
    [
        # The later one wins, whatever it is.
        (LATEST, [5, Entry(1)], 9, None),
        (LATEST, [5, Deleted(1)], 9, None),
        (LATEST, [Entry(9), 5], 9, 5),
        # The greater one wins, the later on a tie.
        (BY_TIME, [5, 4], 3, 5),
        (BY_TIME, [5], 6, 6),
        (BY_TIME, [Deleted(5)], 5, None),
        (BY_TIME, [Deleted(5)], 6, 6),
        (BY_TIME, [Entry(5)], 6, 6),
        (BY_TIME, [5, Entry(4)], None, 5),
        (BY_TIME, [5, Entry(5)], None, None),
        (BY_TIME, [Entry(200), 150], 100, None),
        # A delete without ordering value wins, and loses to the row after it.
        (BY_TIME, [5, Entry(None)], 9, None),
        (BY_TIME, [5, Deleted(None)], 9, None),
        (BY_TIME, [Entry(None), 5], None, 5),
        (BY_TIME, [Deleted(None), 5], None, 5),
        (BY_TIME, [Entry(None), 5], 9, 9),
        # The entry of a delete block does not replace it, so that the row after both still wins; a marked row does.
        (BY_TIME, [Entry(None), Entry(200), 150], None, 150),
        (BY_TIME, [Deleted(None), Entry(200), 150], None, 150),
        (BY_TIME, [Entry(None), Deleted(200), 150], None, None),
        # Readers of 0.x: a row wins over the entry of a delete block, and such an entry over the base row.
        (ARRIVAL, [Entry(200), 150], 100, 150),
        (ARRIVAL, [Entry(200), 150], 300, 300),
        (ARRIVAL, [Entry(200)], 300, None),
        (ARRIVAL, [250, Entry(200)], 300, 300),
        (ARRIVAL, [Deleted(200), 150], 100, None),
        (ARRIVAL, [Deleted(200)], 300, 300),
        (replace(ARRIVAL, row_deletes_win=True), [Deleted(200)], 300, None),
        (replace(ARRIVAL, row_deletes_win=True), [200], 300, 300),
        # The greatest of the log, whatever the base row is; with deletes by event time.
        (OVERWRITE, [200, 100], 100, 200),
        (OVERWRITE, [50, 40], 100, 50),
        (OVERWRITE, [Deleted(50)], 100, None),
        (GREATEST_OF_LOG, [50, 40], 100, 50),
        (GREATEST_OF_LOG, [Deleted(50)], 100, 100),
        (GREATEST_OF_LOG, [Entry(50)], 100, 100),
    ],
)
def test_what_is_left_of_a_log_over_a_base_row(rules: MergeRules, log: Log, base: int | None, expected: int) -> None:
    assert left(rules, log, base) == expected


@pytest.mark.parametrize("delete", [Entry(0), Deleted(0)])
def test_a_zero_is_no_ordering_value_where_the_column_is_of_ints(delete: Entry | Deleted) -> None:
    """Seen: Apache Hudi tells a delete without ordering value by an int 0, which a column of ints can hold itself."""
    assert left(BY_TIME, [delete], 5, pa.int32()) is None
    assert left(BY_TIME, [delete], 5, pa.int64()) == 5


@pytest.mark.parametrize("base, expected", [(5, 5), (None, None)])
def test_a_delete_with_a_value_of_another_class_is_late_for_each_base_row_with_a_value(
    base: int | None, expected: int | None
) -> None:
    fold = LogFold(BY_TIME, SCHEMA)
    fold.add_deletes(pa.array(["a"]), [pa.array([None], pa.int64())], is_commit_time=np.array([False]))
    row = {"_hoodie_record_key": "a", "ts": base, "_hoodie_is_deleted": False}
    merged = BaseMerge(fold.finish()).merge(pa.RecordBatch.from_pylist([row], schema=SCHEMA), 0)
    assert merged.column("ts").to_pylist() == ([] if expected is None else [expected])


def test_a_null_is_0_among_ints_and_least_among_others() -> None:
    def first(kind: pa.DataType) -> int | None:
        schema = SCHEMA.set(1, pa.field("ts", kind))
        fold = LogFold(BY_TIME, schema)
        rows = [{"_hoodie_record_key": "a", "ts": ts, "_hoodie_is_deleted": False} for ts in (None, -1)]
        fold.add_rows(pa.RecordBatch.from_pylist(rows, schema=schema))
        (batch,) = BaseMerge(fold.finish()).remaining()
        return batch.column("ts")[0].as_py()

    assert first(pa.int32()) is None
    assert first(pa.int64()) == -1


@pytest.mark.parametrize(
    "row,entry,is_kept",
    [
        ((2, 1), (1, 5), True),
        ((1, 5), (1, 4), True),
        ((1, 4), (1, 4), False),
        ((2, None), (1, 5), False),  # values of another class do not compare: the delete wins
        ((2, None), (1, None), True),
        ((9, 9), (None, None), False),
    ],
)
def test_a_delete_with_several_ordering_values(row: tuple[int, int], entry: tuple[int, int], is_kept: bool) -> None:
    schema = pa.schema([("_hoodie_record_key", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
    fold = LogFold(event_time(ordering=("ts", "n")), schema)
    fold.add_rows(pa.RecordBatch.from_pydict({"_hoodie_record_key": ["a"], "ts": row[:1], "n": row[1:]}, schema=schema))
    fold.add_deletes(pa.array(["a"]), [pa.array([value], pa.int64()) for value in entry])

    assert bool(list(BaseMerge(fold.finish()).remaining())) == is_kept
