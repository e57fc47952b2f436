"""Two writes could undo each other, or one could be refused for what does it no harm.

Each case is what a write did and what another did meanwhile, and the verdict on the write.
"""

from dataclasses import replace
from typing import Any

import pytest

from pyhudi.format.timeline.instant import Instant
from pyhudi.table.slices.written_keys import WrittenFile
from pyhudi.txn.conflicts.changes import Change
from pyhudi.txn.conflicts.verdict import Mine, Proceed, Refused, TableState, Verdict
from pyhudi.txn.conflicts.writes import WriteRules, judge_write

TARGET = Instant("20260101000000005", "commit", "INFLIGHT")
BEFORE, MEANWHILE = "20260101000000001", "20260101000000006"
UPON = TableState("file:///t", 9, frozenset({BEFORE}), ())
RULES = WriteRules(
    looks_keys_up=True, is_global=False, by_bucket=False, shares_logs=False, schemas=frozenset({"old", "new"})
)
A, B, C = ("oslo", "a"), ("oslo", "b"), ("rome", "c")
BUCKET_1, BUCKET_1_TOO = ("oslo", "00000001-aaaa-0"), ("oslo", "00000001-bbbb-0")


def change(requested: str = TARGET.requested, operation: str = "UPSERT", **groups: object) -> Change:
    return Change(requested, operation, **{name: frozenset(own) for name, own in groups.items()})  # type: ignore[call-overload]


def other(operation: str = "UPSERT", **groups: object) -> Change:
    return change(MEANWHILE, operation, **groups)


def judged(
    mine: Change, *others: Change, rules: WriteRules = RULES, apart: frozenset[str] = frozenset(), **state: Any
) -> Verdict:
    now = replace(UPON, committed=UPON.committed | {o.requested for o in others}, pending=(TARGET,), changes=others)
    action = Mine(TARGET, UPON, mine, written=frozenset(), marked=frozenset())
    return judge_write(action, replace(now, **state), rules, apart)


CLEAR = {
    "nobody wrote": (change(rewritten=[A]), ()),
    "other file groups": (change(rewritten=[A]), (other(rewritten=[B]),)),
    "new rows in another partition": (change(created=[A], gaining=["oslo"]), (other(created=[C], gaining=["rome"]),)),
    "updates beside new rows": (change(rewritten=[A]), (other(created=[B], gaining=["oslo"]),)),
    "a compaction below our log": (change(appended=[A]), (other("COMPACT", rewritten=[A]),)),
    "a log compaction beside our log": (change(appended=[A]), (other("LOG_COMPACT", appended=[A]),)),
    "an overwrite of another partition": (
        change(rewritten=[A]), (other("INSERT_OVERWRITE", replaced=[C], created=[("rome", "d")], emptied=["rome"]),),
    ),
    "new rows in a partition that was emptied": (
        change(created=[B], gaining=["oslo"]), (other("DELETE_PARTITION", replaced=[A], emptied=["oslo"]),),
    ),
}  # fmt: skip
CLASHES = {
    "one base file": (change(rewritten=[A]), (other(rewritten=[A]),), "changed file group 'a' in partition 'oslo'"),
    "one log": (change(appended=[A]), (other(appended=[A]),), "changed file group 'a'"),
    "a base file beside a log": (change(rewritten=[A]), (other(appended=[A]),), "changed file group 'a'"),
    "a base file that was compacted": (change(rewritten=[A]), (other("COMPACT", rewritten=[A]),), "'a'"),
    "a compaction of what is replaced": (
        change(operation="INSERT_OVERWRITE", replaced=[A], emptied=["oslo"]), (other("COMPACT", rewritten=[A]),), "'a'",
    ),
    "an update of what was replaced": (
        change(rewritten=[A]), (other("DELETE_PARTITION", replaced=[A], emptied=["oslo"]),), "changed file group 'a'",
    ),
    "new rows of both": (
        change(created=[A], gaining=["oslo"]), (other(created=[B], gaining=["oslo"]),), "maybe with keys",
    ),
    "an overwrite of what has grown": (
        change(operation="INSERT_OVERWRITE", replaced=[A], emptied=["oslo"]),
        (other(created=[B], gaining=["oslo"]),), "added rows to partition 'oslo', which this write replaces",
    ),
    "two overwrites of an empty partition": (
        change(operation="INSERT_OVERWRITE", created=[A], emptied=["oslo"]),
        (other("INSERT_OVERWRITE", created=[B], emptied=["oslo"], gaining=["oslo"]),), "added rows to partition",
    ),
    "an overwrite of a table that has grown": (
        change(operation="INSERT_OVERWRITE_TABLE", replaced=[A], emptied=["oslo"]),
        (other(created=[C], gaining=["rome"]),), "added rows to partition 'rome'",
    ),
    "the second of two others": (
        change(rewritten=[A]), (other(rewritten=[B]), other(rewritten=[A])), "changed file group 'a'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mine, others", CLEAR.values(), ids=CLEAR)
def test_what_does_no_harm(mine: Change, others: tuple[Change, ...]) -> None:
    assert judged(mine, *others) == Proceed()


@pytest.mark.parametrize("mine, others, why", CLASHES.values(), ids=CLASHES)
def test_what_would_undo_the_other(mine: Change, others: tuple[Change, ...], why: str) -> None:
    found = judged(mine, *others)

    assert isinstance(found, Refused)
    assert found.is_mendable
    assert why in found.why
    assert MEANWHILE in found.why
    assert TARGET.requested in found.why


def test_new_keys_are_no_matter_to_a_write_that_looks_none_up() -> None:
    mine, theirs = change(created=[A], gaining=["oslo"]), other(created=[B], gaining=["oslo"])

    assert judged(mine, theirs, rules=replace(RULES, looks_keys_up=False)) == Proceed()
    assert isinstance(judged(mine, other(created=[C], gaining=["rome"]), rules=replace(RULES, is_global=True)), Refused)


def test_file_groups_of_one_bucket_are_one() -> None:
    mine, theirs = change(created=[BUCKET_1]), other(created=[BUCKET_1_TOO], gaining=["oslo"])

    assert judged(mine, theirs) == Proceed()
    assert isinstance(judged(mine, theirs, rules=replace(RULES, by_bucket=True)), Refused)


def test_a_file_group_in_which_a_write_found_nothing_to_change_is_one_that_it_read() -> None:
    """By bucket, a delete looks for its keys there. A key that came meanwhile would outlive it."""
    mine = change(operation="DELETE", rewritten=[C])
    rules = replace(RULES, by_bucket=True, planned=frozenset({C, BUCKET_1}))

    found = judged(mine, other(rewritten=[BUCKET_1_TOO]), rules=rules)
    assert isinstance(found, Refused)
    assert found.is_mendable
    assert "found nothing to change" in found.why
    assert judged(mine, other("COMPACT", rewritten=[BUCKET_1]), rules=rules) == Proceed()
    assert judged(mine, other(rewritten=[B]), rules=rules) == Proceed()


def test_logs_that_writers_may_share_where_their_keys_differ() -> None:
    both = replace(RULES, shares_logs=True)
    mine, theirs = change(appended=[A]), other(appended=[A])

    found = judged(mine, theirs, rules=both)
    assert isinstance(found, Refused)
    assert found.by_keys == {MEANWHILE}
    assert judged(mine, theirs, rules=both, apart=frozenset({MEANWHILE})) == Proceed()
    for worse in (other(rewritten=[A]), other("DELETE_PARTITION", replaced=[A])):
        assert getattr(judged(mine, worse, rules=both), "by_keys", None) == frozenset()
        assert isinstance(judged(mine, worse, rules=both, apart=frozenset({MEANWHILE})), Refused)


def test_new_rows_of_both_in_one_partition_where_their_keys_differ() -> None:
    mine, theirs = change(created=[A], gaining=["oslo"]), other(created=[B], gaining=["oslo"])

    assert getattr(judged(mine, theirs), "by_keys", None) == {MEANWHILE}
    assert judged(mine, theirs, apart=frozenset({MEANWHILE})) == Proceed()
    assert getattr(judged(mine, theirs, other(rewritten=[A])), "by_keys", None) == frozenset()


def test_a_schema_that_others_changed() -> None:
    for schema, expected in (("old", ""), ("new", ""), ("third", "changed the table's schema")):
        found = judged(change(rewritten=[A]), replace(other(rewritten=[B]), schema=schema))
        assert expected in (found.why if isinstance(found, Refused) else "")
        assert isinstance(found, Refused) == bool(expected)


@pytest.mark.parametrize(
    "state, why, is_mendable",
    [
        ({"version": 10}, "table version 9 when this write began, now 10", False),
        ({"pending": ()}, "took this write ('20260101000000005') for dead", True),
        ({"committed": frozenset({"20260101000000000"})}, f"the write '{BEFORE}' was taken back", True),
        (
            {"planned": {A: Instant(MEANWHILE, "clustering", "REQUESTED")}},
            f"clustering '{MEANWHILE}', which was",
            False,
        ),
    ],
    ids=["upgraded", "rolled back", "its plan rolled back", "clustered"],
)
def test_what_happened_to_the_table(state: dict[str, Any], why: str, is_mendable: bool) -> None:
    found = judged(change(rewritten=[A]), **state)

    assert isinstance(found, Refused)
    assert why in found.why
    assert found.is_mendable == is_mendable


def test_a_compaction_that_was_planned_meanwhile_stops_whoever_replaced_its_groups() -> None:
    plan = {A: Instant(MEANWHILE, "compaction", "REQUESTED")}

    assert judged(change(appended=[A]), planned=plan) == Proceed()
    found = judged(change(operation="DELETE_PARTITION", replaced=[A]), planned=plan)
    assert isinstance(found, Refused)
    assert not found.is_mendable


@pytest.mark.parametrize("action", ["compaction", "logcompaction"])
def test_a_compaction_that_was_planned_meanwhile_stops_whoever_wrote_a_base_file_anew(action: str) -> None:
    """The compaction's base file is made of older rows, and its time is later: it would count as the newest."""
    found = judged(change(rewritten=[A]), planned={A: Instant(MEANWHILE, action, "REQUESTED")})

    assert isinstance(found, Refused)
    assert found.is_mendable


def test_a_log_compaction_of_older_and_newer_writes_does_not_go_before_a_write() -> None:
    """Its merged rows stand where the newest of the writes stands."""
    apart, mine, newer = frozenset({MEANWHILE}), change(appended=[A]), other(appended=[A])
    both, last = replace(RULES, shares_logs=True), f"{MEANWHILE[:-1]}9"
    plan = {A: Instant(last, "logcompaction", "REQUESTED")}

    assert judged(mine, planned=plan, rules=both) == Proceed()
    for found in (
        judged(mine, newer, planned=plan, rules=both, apart=apart),
        judged(mine, newer, change(last, "LOG_COMPACT", appended=[A]), rules=both, apart=apart),
    ):
        assert isinstance(found, Refused)
        assert found.is_mendable


@pytest.mark.parametrize("action", ["clustering", "replacecommit"])
@pytest.mark.parametrize(
    "mine", [change(appended=[A]), change(rewritten=[A]), change(operation="INSERT_OVERWRITE", replaced=[A])]
)
def test_writes_go_before_a_clustering_that_is_planned_if_it_gives_way(mine: Change, action: str) -> None:
    plan = {A: Instant(MEANWHILE, action, "REQUESTED")}

    assert isinstance(judged(mine, planned=plan), Refused)
    assert judged(mine, planned=plan, rules=replace(RULES, passes_clusterings=True)) == Proceed()


def test_a_clustering_that_has_completed_is_in_the_way_whoever_goes_first() -> None:
    done = other("CLUSTER", replaced=[A], created=[C])
    found = judged(change(rewritten=[A]), done, rules=replace(RULES, passes_clusterings=True))
    assert isinstance(found, Refused)
    assert found.is_mendable


def test_a_compaction_that_was_planned_meanwhile_stops_a_replacement_whoever_goes_first() -> None:
    plan = {A: Instant(MEANWHILE, "compaction", "REQUESTED")}
    mine = change(operation="DELETE_PARTITION", replaced=[A])
    assert isinstance(judged(mine, planned=plan, rules=replace(RULES, passes_clusterings=True)), Refused)


def test_writes_that_were_archived_were_not_taken_back() -> None:
    assert judged(change(rewritten=[A]), committed=frozenset({MEANWHILE})) == Proceed()


def test_a_write_whose_requested_file_is_gone_was_rolled_back() -> None:
    """Although it has put its inflight file again since then."""
    state = replace(UPON, pending=(TARGET,))
    mine = Mine(TARGET, UPON, change(rewritten=[A]), frozenset(), frozenset(), is_requested=False)

    assert "for dead" in getattr(judge_write(mine, state, RULES), "why", "")


def test_a_delete_that_missed_a_key_must_not_complete_after_rows_that_came_meanwhile() -> None:
    """Its key may be among them. A bucket that was not there has no file group in which the two could meet."""
    mine, came = change(operation="DELETE", appended=[A]), other(created=[C], gaining=["rome"])

    for by_bucket in (False, True):
        rules = replace(RULES, looks_keys_up=False, by_bucket=by_bucket, missed=frozenset({"rome"}))
        verdict = judged(mine, came, rules=rules)
        assert isinstance(verdict, Refused)
        assert verdict.is_mendable
        assert "added rows to partition 'rome', maybe with keys that this delete did not find," in verdict.why

    elsewhere = replace(RULES, looks_keys_up=False, missed=frozenset({"bonn"}))
    assert judged(mine, came, rules=elsewhere) == Proceed()
    assert isinstance(judged(mine, came, rules=replace(elsewhere, is_global=True)), Refused)
    assert judged(mine, came, rules=replace(RULES, looks_keys_up=False, is_global=True)) == Proceed()


def test_a_batch_of_a_stream_that_another_driver_stored_is_refused_for_good() -> None:
    mine, theirs = (replace(one, batch='{"a":"5"} q') for one in (change(created=[A]), other(created=[C])))

    verdict = judged(mine, theirs)
    assert isinstance(verdict, Refused)
    assert (verdict.is_mendable, MEANWHILE in verdict.why) == (False, True)
    assert judged(mine, replace(theirs, batch='{"a":"4"} q')) == judged(change(created=[A]), other(created=[C]))
    assert judged(change(rewritten=[A]), other(rewritten=[B])) == Proceed()


@pytest.mark.parametrize("mine,theirs", [("a", "a/b"), ("a/b", "a")])
def test_a_new_partition_within_one_that_another_wrote_to_is_refused_or_planned_anew(mine: str, theirs: str) -> None:
    rules = replace(RULES, new_partitions=frozenset({mine, "z"}))
    file = WrittenFile("file", is_log=False, rows=1, size_bytes=1)
    beside, clash = (replace(other(created=[B]), files={path: (file,)}) for path in ("a0", theirs))
    assert judged(change(created=[(mine, "x")]), beside, rules=rules) == Proceed()
    verdict = judged(change(created=[(mine, "x")]), beside, clash, rules=rules)
    assert isinstance(verdict, Refused)
    assert verdict.is_mendable
    assert "partition 'a/b' of one of them lies within partition 'a'" in verdict.why
