"""What random small slices do not show: records and rows that do not belong together, repeated base keys, hot keys,
what is held in memory, and the answers of a merger of the user's own."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.errors import Bug, CorruptFile, Invalid, Unsupported
from pyhudi.merge.base import BaseMerge, MergeCounts
from pyhudi.merge.fold import LogFold
from pyhudi.merge.marks import find_deleted
from pyhudi.merge.mergers import Merged
from pyhudi.merge.rules import DeleteMark, Fill, MergeRules, commit_time, custom, event_time

KEY = "_hoodie_record_key"
SCHEMA = pa.schema([(KEY, pa.string()), ("v", pa.string()), ("ts", pa.int64())])
BY_TIME = event_time(ordering=("ts",))


class ByFunction:
    def __init__(self, function: Callable[[pa.RecordBatch, pa.RecordBatch], Merged]) -> None:
        self.merge = function


def rows(*triples: tuple[Any, ...], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(schema.names, one, strict=True)) for one in triples], schema=schema)


def deletes(fold: LogFold, *pairs: tuple[str, int | None]) -> None:
    fold.add_deletes(pa.array([key for key, _ in pairs]), [pa.array([ts for _, ts in pairs], pa.int64())])


def tuples(*batches: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_base_rows_that_share_a_key_each_meet_its_record() -> None:
    """Rows inserted twice. With a position only the row there does."""
    base = rows(("a", "1", 1), ("b", "1", 1), ("a", "1", 2), ("a", "1", 9))
    fold = LogFold(BY_TIME, SCHEMA)
    fold.add_rows(rows(("a", "log", 5)))
    by_key = BaseMerge(fold.finish())
    fold.add_rows(rows(("a", "log", 5)), positions=np.array([2]))
    by_position = BaseMerge(fold.finish())

    assert tuples(by_key.merge(base, 0)) == [("a", "log", 5), ("b", "1", 1), ("a", "log", 5), ("a", "1", 9)]
    assert tuples(by_position.merge(base, 0)) == [("a", "1", 1), ("b", "1", 1), ("a", "log", 5), ("a", "1", 9)]
    assert list(by_key.remaining()) == list(by_position.remaining()) == []


def test_a_key_at_two_positions_is_merged_at_both() -> None:
    fold = LogFold(commit_time(), SCHEMA)
    fold.add_rows(rows(("a", "x", 1), ("a", "y", 2)), positions=np.array([0, 2]))

    merged = BaseMerge(fold.finish()).merge(rows(("a", "1", 1), ("b", "1", 1), ("a", "1", 1)), 0)

    assert tuples(merged) == [("a", "y", 2), ("b", "1", 1), ("a", "y", 2)]


@pytest.mark.parametrize("reduce_rows", [1, 100])
def test_positions_outlive_a_reduction(reduce_rows: int) -> None:
    """The first block has positions, the second none: the key is found by the first's."""
    fold = LogFold(BY_TIME, SCHEMA, reduce_rows=reduce_rows)
    fold.add_rows(rows(("a", "x", 1), ("b", "x", 1)), positions=np.array([3, 4]))
    fold.add_rows(rows(("a", "y", 2), ("c", "y", 2)))
    folded = fold.finish()

    assert (folded.positions.tolist(), folded.keyed.tolist()) == ([3, 4], [2])
    merging = BaseMerge(folded)
    assert tuples(merging.merge(rows(("z", "", 0), ("a", "", 0), ("b", "", 0)), 2)) == [
        ("z", "", 0),
        ("a", "y", 2),
        ("b", "x", 1),
    ]
    assert tuples(*merging.remaining()) == [("c", "y", 2)]
    assert merging.counts == MergeCounts(updated=2, deleted=0, inserted=1)


def test_positions_of_another_base_file_are_found_out() -> None:
    fold = LogFold(BY_TIME, SCHEMA, path="city=oslo/f1")
    fold.add_rows(rows(("a", "x", 1)), positions=np.array([7]))
    folded = fold.finish()

    with pytest.raises(CorruptFile, match=r"city=oslo/f1.*'a' at row 7.*found 'b'.*merge by key"):
        BaseMerge(folded).merge(rows(("b", "1", 1)), 7)
    merging = BaseMerge(folded)
    merging.merge(rows(("b", "1", 1)), 0)
    with pytest.raises(CorruptFile, match="a base row 7, the position of record key 'a', found 1 rows"):
        next(merging.remaining())
    fold.add_rows(rows(("b", "x", 1)), positions=np.array([7]))
    with pytest.raises(CorruptFile, match=r"one record key for row 7.*found 'a' and 'b'"):
        fold.finish()


def test_a_key_that_is_null_is_corrupt() -> None:
    fold = LogFold(BY_TIME, SCHEMA, path="f1")

    with pytest.raises(CorruptFile, match=r"f1.*null in 1"):
        fold.add_rows(rows(("a", "", 1), (None, "", 1)))
    with pytest.raises(CorruptFile, match=r"f1.*null in 0"):
        fold.add_deletes(pa.array([None], pa.string()), [pa.array([1], pa.int64())])


def test_columns_that_the_rules_need_are_asked_for() -> None:
    with pytest.raises(Invalid, match=r"'at'.*_hoodie_record_key, v, ts"):
        LogFold(event_time(ordering=("at",)), SCHEMA)
    with pytest.raises(Invalid, match="a column '_hoodie_record_key'"):
        LogFold(BY_TIME, pa.schema([("v", pa.string()), ("ts", pa.int64())]))
    with pytest.raises(Invalid, match=r"'ts\.at': expected a struct with 'at', found int64"):
        LogFold(event_time(ordering=("ts.at",)), SCHEMA)


def test_an_ordering_column_may_lie_in_a_struct() -> None:
    schema = pa.schema([(KEY, pa.string()), ("at", pa.struct([("n", pa.int64())]))])
    fold = LogFold(event_time(ordering=("at.n",)), schema)
    fold.add_rows(rows(("a", {"n": 5}), ("a", {"n": 4}), ("b", {"n": 1}), schema=schema))

    merging = BaseMerge(fold.finish())

    assert tuples(merging.merge(rows(("b", {"n": 2}), schema=schema), 0)) == [("b", {"n": 2})]
    assert tuples(*merging.remaining()) == [("a", {"n": 5})]


def test_rows_of_other_columns_are_a_mistake_of_ours() -> None:
    fold = LogFold(BY_TIME, SCHEMA)
    other = rows(("a", "x", 1)).rename_columns([KEY, "w", "ts"])

    with pytest.raises(Bug, match="log rows"):
        fold.add_rows(other)
    with pytest.raises(Bug, match="found w"):
        fold.add_rows(other, is_partial=True)
    with pytest.raises(Bug, match="ordering values"):
        fold.add_deletes(pa.array(["a"]), [pa.array(["5"])])
    with pytest.raises(Bug, match="positions"):
        fold.add_rows(rows(("a", "x", 1)), positions=np.array([1, 2]))
    with pytest.raises(Bug, match="base rows"):
        BaseMerge(fold.finish()).merge(other, 0)


def test_a_log_without_records_changes_nothing() -> None:
    base = rows(("a", "1", 1))
    fold = LogFold(BY_TIME, SCHEMA)
    fold.add_rows(rows())
    merging = BaseMerge(fold.finish())

    assert merging.merge(base, 0) is base
    assert list(merging.remaining()) == []
    assert merging.counts == MergeCounts(0, 0, 0)


def test_a_delete_that_loses_in_the_log_or_to_the_base_row_deletes_nothing() -> None:
    fold = LogFold(BY_TIME, SCHEMA)
    fold.add_rows(rows(("a", "log", 5), ("b", "log", 5), ("c", "log", 5)))
    deletes(fold, ("a", 4), ("b", 5), ("c", None), ("d", 8), ("e", 9))
    merging = BaseMerge(fold.finish())

    merged = merging.merge(rows(("a", "", 1), ("b", "", 1), ("c", "", 99), ("d", "", 9), ("e", "", 9)), 0)

    assert tuples(merged) == [("a", "log", 5), ("d", "", 9)]
    assert merging.counts == MergeCounts(updated=1, deleted=3, inserted=0)


def test_a_row_after_a_commit_time_delete_wins_over_it_but_not_over_the_base_row() -> None:
    """Seen: the log is settled before the base row is looked at, so that an older row brings the base row back."""
    fold = LogFold(BY_TIME, SCHEMA)
    deletes(fold, ("a", None), ("b", None))
    fold.add_rows(rows(("a", "log", 5), ("b", "log", 5)))

    assert tuples(BaseMerge(fold.finish()).merge(rows(("a", "base", 9), ("b", "base", 1)), 0)) == [
        ("a", "base", 9),
        ("b", "log", 5),
    ]


def test_a_key_in_many_records_is_settled_without_a_round_each() -> None:
    """A hundred thousand rows of one key, and of others: a round each would take minutes."""
    count = 100_000
    order = np.random.default_rng(7).integers(0, 1000, count)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(["a"] * (count - 1) + ["b"]),
            pa.array(np.arange(count)).cast(pa.string()),
            pa.array(order, pa.int64()),
        ],
        schema=SCHEMA,
    )
    fold = LogFold(BY_TIME, SCHEMA)
    fold.add_rows(batch)

    (found,) = BaseMerge(fold.finish()).remaining()

    last = np.flatnonzero(order[:-1] == order[:-1].max())[-1]
    assert tuples(found)[0] == ("a", str(last), int(order[last]))


def test_what_is_held_is_one_row_a_key_however_long_the_log() -> None:
    fold = LogFold(BY_TIME, SCHEMA, reduce_rows=1_000)
    block = rows(*((f"k{at:04d}", "x" * 100, 1) for at in range(500)))
    sizes = []
    for _ in range(40):
        fold.add_rows(block)
        sizes.append(fold.size_bytes)

    assert max(sizes) < 4 * block.nbytes
    assert len(fold.finish()) == 500


def test_a_base_row_that_wins_and_lacks_nothing_does_not_count_as_updated() -> None:
    fold = LogFold(replace(BY_TIME, fill=Fill.DEFAULTS, fills_log=True), SCHEMA)
    fold.add_rows(rows(("a", "log", 1), ("b", "log", 1), ("c", None, 9)))
    merging = BaseMerge(fold.finish())

    merged = merging.merge(rows(("a", "base", 5), ("b", None, 5), ("c", "base", 5)), 0)

    assert tuples(merged) == [("a", "base", 5), ("b", "log", 5), ("c", "base", 9)]
    assert merging.counts == MergeCounts(updated=2, deleted=0, inserted=0)


def test_rows_of_the_log_come_in_batches_of_the_size_asked_for() -> None:
    fold = LogFold(commit_time(), SCHEMA)
    fold.add_rows(rows(*((f"k{at}", "", 1) for at in range(5))))

    assert [len(batch) for batch in BaseMerge(fold.finish()).remaining(2)] == [2, 2, 1]


# Marks of deletes.


def test_marks_of_deletes_are_read_as_text() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "_hoodie_operation": ["I", "-U", "D", None, "+U", "I"],
            "_hoodie_is_deleted": [False, None, False, False, True, False],
            "flag": [None, 0, 0, 0, 0, 3],
        }
    )

    found = find_deleted(batch, MergeRules(marks=(DeleteMark("flag", "3"), DeleteMark("gone", "x"))))

    assert found is not None
    assert found.tolist() == [False, True, True, False, True, True]
    assert find_deleted(batch.select(["flag"]), MergeRules()) is None
    with pytest.raises(Unsupported, match=r"'flag'.*double"):
        find_deleted(pa.RecordBatch.from_pydict({"flag": [1.0]}), MergeRules(marks=(DeleteMark("flag", "1.0"),)))


def test_columns_with_the_names_of_marks_may_hold_anything_else() -> None:
    batch = pa.RecordBatch.from_pydict({"_hoodie_operation": [5, None], "_hoodie_is_deleted": ["true", "D"]})

    assert find_deleted(batch, MergeRules()) is None


@pytest.mark.parametrize("ignores_case,found", [(True, [True, True, False]), (False, [True, False, False])])
def test_marks_of_payload_classes_ignore_case(ignores_case: bool, found: list[bool]) -> None:
    rules = MergeRules(marks=(DeleteMark("Op", "D", ignores_case=ignores_case),))
    batch = pa.RecordBatch.from_pydict({"Op": ["D", "d", None]})

    assert np.asarray(find_deleted(batch, rules)).tolist() == found


# Mergers of the user's own.


def merged_by(function: Callable[[pa.RecordBatch, pa.RecordBatch], Any]) -> list[tuple[Any, ...]]:
    fold = LogFold(custom(ByFunction(function), ordering=("ts",)), SCHEMA)
    fold.add_rows(rows(("a", "1", 5), ("b", "1", 5)))
    return tuples(BaseMerge(fold.finish()).merge(rows(("a", "0", 9), ("b", "0", 9), ("c", "0", 9)), 0))


@pytest.mark.parametrize(
    "function,words",
    [
        (lambda old, new: new.slice(1), "2 rows.*found 1"),
        (lambda old, new: new.rename_columns(["k", "v", "ts"]), "a record batch of"),
        (lambda old, new: "rows", "found <class 'str'>"),
        (lambda old, new: (new, pa.array([True])), "2 rows.*found 2 and 1"),
        (lambda old, new: (new, pa.array([True, None])), "booleans without nulls"),
        (lambda old, new: new.take(pa.array([1, 0])), "must stay"),
    ],
)
def test_a_merger_that_answers_with_something_else_is_refused(function: Any, words: str) -> None:
    with pytest.raises(Invalid, match=f"merger ByFunction.*{words}"):
        merged_by(function)


def test_a_merger_sees_the_base_row_first_and_may_delete() -> None:
    def merge(older: pa.RecordBatch, newer: pa.RecordBatch) -> Merged:
        joined = pc.binary_join_element_wise(older.column("v"), newer.column("v"), ">")
        return newer.set_column(1, SCHEMA.field("v"), joined), pc.equal(newer.column(KEY), "b")

    assert merged_by(merge) == [("a", "0>1", 5), ("c", "0", 9)]


@pytest.mark.parametrize("ts,left", [(None, []), (5, [("a", "base", 9)]), (9, [])])
def test_a_delete_that_a_merger_makes_of_log_rows_is_settled_by_event_time(ts: int | None, left: Any) -> None:
    """As any delete is: without ordering value it wins over the base row."""
    fold = LogFold(custom(ByFunction(lambda old, new: (new, pc.is_valid(new.column(KEY)))), ordering=("ts",)), SCHEMA)
    fold.add_rows(rows(("a", "1", 8), ("a", "2", ts)))

    assert tuples(BaseMerge(fold.finish()).merge(rows(("a", "base", 9)), 0)) == left


def test_rows_of_a_merger_that_are_marked_as_deleted_are_deletes() -> None:
    rules = custom(ByFunction(lambda old, new: old), marks=(DeleteMark("v", "gone"),))
    fold = LogFold(rules, SCHEMA)
    fold.add_rows(rows(("a", "1", 1), ("b", "1", 1)))

    assert tuples(BaseMerge(fold.finish()).merge(rows(("a", "gone", 1), ("b", "here", 1)), 0)) == [("b", "here", 1)]


def test_a_merger_is_not_handed_rows_of_some_columns() -> None:
    fold = LogFold(custom(ByFunction(lambda old, new: new)), SCHEMA, path="f1")

    with pytest.raises(Unsupported, match=r"f1.*ByFunction wants whole rows"):
        fold.add_rows(rows(("a", "", 1)).select([KEY, "ts"]), is_partial=True)
