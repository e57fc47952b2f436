"""An instant archived too early is a replaced file seen again, a pending write taken for done, a query that fails;
one that never goes makes the timeline grow for good. What stays, and what goes, is pinned here; golden timelines show
that Apache Hudi chooses the same (`tests/golden/test_history.py`)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import Invalid
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import CleanMetadata
from pyhudi.services.archive import plan as archive_plan
from pyhudi.services.archive.plan import Barrier, Keep, StoredFile, plan_archival
from pyhudi.services.archive.settings import ArchiveSettings
from pyhudi.services.clean.settings import CleanPolicy, CleanSettings
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import timeline_layout

LAYOUT = timeline_layout({"hoodie.timeline.layout.version": "2"})
KEEP = Keep(commits_min=3, commits_max=5)


def t(number: int) -> str:
    return f"20261121110000{number:03d}"


def done(number: int, action: str = "commit", completed: int | None = None) -> Instant:
    return Instant(t(number), action, "COMPLETED", t(number + 1 if completed is None else completed))


def pending(number: int, action: str = "commit") -> Instant:
    return Instant(t(number), action, "INFLIGHT")


def timeline(*instants: Instant) -> Timeline:
    return Timeline(LAYOUT, tuple(sorted(instants, key=lambda i: (i.requested, i.action))))


def commits(*numbers: int) -> list[Instant]:
    return [done(n) for n in numbers]


def clean(earliest: str) -> CleanMetadata:
    return CleanMetadata(t(0), 0, 0, earliest, "", {})


def gone(of: Timeline, *barriers: Barrier | None, keep: Keep = KEEP, is_beyond_savepoint: bool = False) -> list[int]:
    present = [barrier for barrier in barriers if barrier is not None]
    plan = plan_archival(of, keep, present, is_beyond_savepoint=is_beyond_savepoint)
    assert bool(plan.instants) != bool(plan.reason)
    return [int(i.requested[-3:]) for i in plan.instants]


def test_the_oldest_go_when_there_are_too_many() -> None:
    assert gone(timeline(*commits(1, 2, 3, 4, 5))) == []
    assert gone(timeline(*commits(1, 2, 3, 4, 5, 6))) == [1, 2, 3]


def test_cleans_and_rollbacks_go_with_the_writes_around_them() -> None:
    others = [done(2, "clean"), done(4, "rollback"), done(8, "clean"), done(12, "clean"), done(20, "rollback")]

    assert gone(timeline(*commits(1, 3, 5, 7, 9, 11), *others)) == [1, 2, 3, 4, 5]


def test_no_clean_stays_before_an_archived_write() -> None:
    """Apache Hudi 1.2.0 would take that write for pending (`tests/interop/test_archived_logs.py`)."""
    assert gone(timeline(*commits(1, 5, 6, 7, 8, 9), done(2, "clean"), done(3, "clean"))) == [1, 2, 3, 5, 6]


def test_without_completion_times_the_newest_clean_stays() -> None:
    """Readers who go back in time learn from it which files are gone."""
    instants = (*commits(1, 5, 6, 7, 8, 9), done(2, "clean"), done(3, "clean"))
    layout_1 = Timeline(timeline_layout({}), tuple(replace(i, completed=None) for i in timeline(*instants)))

    assert gone(layout_1) == [1, 2, 5, 6]


def test_stored_logs_hold_their_writes_where_an_older_action_stays() -> None:
    writes = commits(1, 3, 5, 6, 7, 8, 9)

    def held(*others: Instant, logs: tuple[int, ...] = (1, 5, 7)) -> str | None:
        barrier = archive_plan.stored_logs_barrier(timeline(*writes, *others), map(t, logs))
        return barrier.requested if barrier is not None else None

    assert held() is None
    assert held(done(2, "clean"), done(2, "rollback")) is None
    assert held(pending(2, "indexing")) is None  # it is a barrier of its own
    for action in ("indexing", "restore", "savepoint"):
        assert held(done(2, action)) == t(5)
    assert held(done(2, "indexing"), logs=(1,)) is None
    assert held(done(2, "indexing"), logs=(4, 7)) == t(7)  # the write at 4 was archived before


def test_stored_files_hold_their_writes_behind_a_commit_with_a_savepoint() -> None:
    def held(stored: tuple[int, ...], from_slice: str | None = None, *, at: int | None = 3) -> str | None:
        saved = [] if at is None else [done(at, "savepoint")]
        of = timeline(*commits(1, 3, 5, 6, 7, 8), *saved)
        barrier = archive_plan.savepoint_barrier(of, map(t, stored), from_slice=from_slice)
        return barrier.requested if barrier is not None else None

    assert held((1, 3, 6, 8)) == t(6)
    assert held((1, 3)) is None
    assert held((1, 3, 6), at=None) is None
    assert held((1, 3, 7), t(1)) == t(5)
    assert held((1, 3), t(8)) == t(8)


def test_savepoints_restores_and_indexings_stay() -> None:
    others = [done(2, "restore"), done(3, "indexing"), done(8, "savepoint")]

    assert gone(timeline(*commits(1, 5, 6, 7, 8, 9, 10), *others)) == [1, 5, 6, 7]


def test_a_savepoint_holds_its_commit_and_all_after_it() -> None:
    of = timeline(*commits(1, 2, 3, 4, 5, 6, 7), done(2, "savepoint"))

    assert gone(of) == [1]
    assert gone(of, is_beyond_savepoint=True) == [1, 3, 4, 5]
    assert "savepoint at" in plan_archival(timeline(*commits(2, 3, 4, 5, 6, 7), done(2, "savepoint")), KEEP, []).reason


def test_a_savepoint_holds_what_a_restore_to_it_takes_back() -> None:
    """A write that began before the commit with the savepoint and completed after it is taken back, too."""
    of = timeline(done(1), done(2, completed=5), *commits(3, 6, 7, 8, 9), done(3, "savepoint"))

    assert gone(of) == [1]
    assert gone(of, is_beyond_savepoint=True) == [1, 2, 6, 7]


def test_a_savepoint_under_way_holds_as_well() -> None:
    assert gone(timeline(*commits(1, 2, 3, 4, 5, 6, 7), pending(2, "savepoint"))) == [1]


@pytest.mark.parametrize(
    "action", ["commit", "compaction", "clustering", "replacecommit", "clean", "rollback", "indexing"]
)
def test_nothing_goes_that_a_pending_action_may_need(action: str) -> None:
    """Not the newest write before it either: it may have been planned upon that."""
    of = timeline(*commits(1, 3, 5, 7, 8, 9), pending(4, action))

    assert gone(of, archive_plan.pending_barrier(of)) == [1]


def test_a_pending_action_before_every_write_holds_all() -> None:
    of = timeline(*commits(3, 5, 7, 8, 9, 10), pending(1))

    assert gone(of, archive_plan.pending_barrier(of)) == []
    assert f"pending commit '{t(1)}'" in plan_archival(of, KEEP, [archive_plan.pending_barrier(of)]).reason  # type: ignore[list-item]


def test_what_a_due_compaction_is_planned_by_stays() -> None:
    deltas = [done(n, "deltacommit") for n in (1, 2, 3, 5, 6, 7, 8)]

    assert archive_plan.compaction_barrier(timeline(*deltas), 3) == Barrier(
        t(6), "the 3 delta commits that make a compaction due"
    )
    assert archive_plan.compaction_barrier(timeline(*deltas), 9) == Barrier(t(1), "the newest compaction")
    with_compaction = timeline(*deltas, done(4))
    assert archive_plan.compaction_barrier(with_compaction, 9) == Barrier(t(4), "the newest compaction")
    assert archive_plan.compaction_barrier(with_compaction, 4) == Barrier(
        t(5), "the 4 delta commits that make a compaction due"
    )
    assert archive_plan.compaction_barrier(timeline(), 3) is None


def test_a_delta_commit_that_completed_after_a_compaction_began_counts_towards_the_next() -> None:
    of = timeline(done(1, "deltacommit"), done(3, "deltacommit", 9), done(4), done(6, "deltacommit"))

    assert archive_plan.compaction_barrier(of, 2) == Barrier(t(3), "the 2 delta commits that make a compaction due")


def test_a_replacing_write_stays_until_its_files_are_cleaned_away() -> None:
    going = timeline(*commits(1, 3, 5, 7), done(2, "replacecommit"), done(6, "replacecommit")).instants

    def held(*stored: int) -> str | None:
        found = {t(n): StoredFile("oslo/a.parquet") for n in stored}
        barrier = archive_plan.replace_barrier(going, lambda i: found.get(i.requested))
        return barrier.requested if barrier is not None else None

    assert held() is None
    assert held(2) == held(2, 6) == t(2)
    assert held(6) == t(6)
    assert held(1, 3) is None  # nothing was replaced there, and nothing is asked


def test_the_metadata_tables_newest_compaction_is_the_limit_of_its_data_table() -> None:
    data = timeline(done(1), done(2, "commit", 9), *commits(3, 5, 7))
    logs = [done(n, "deltacommit") for n in (1, 2, 3, 5, 7)]

    assert archive_plan.metadata_barrier(data, timeline(*logs)) == Barrier(
        "", "the metadata table, which was not compacted yet"
    )
    barrier = archive_plan.metadata_barrier(data, timeline(*logs, done(4)))
    assert barrier is not None
    assert barrier.requested == t(2)  # it completed after the compaction began
    assert archive_plan.metadata_barrier(data, timeline(*logs, done(10))) is None
    slow_clean = archive_plan.metadata_barrier(timeline(*commits(2, 3), done(1, "clean", 9)), timeline(*logs, done(4)))
    assert slow_clean is not None
    assert slow_clean.requested == t(1)


def test_the_metadata_table_keeps_what_the_data_tables_timeline_begins_with() -> None:
    def held(*instants: Instant, beyond: bool = False) -> str | None:
        barrier = archive_plan.data_barrier(timeline(*instants), is_beyond_savepoint=beyond)
        return barrier.requested if barrier is not None else None

    assert held() is None
    assert held(done(2, "clean"), *commits(3, 5)) == t(3)
    assert held(pending(1, "clean"), *commits(3, 5)) == t(1)
    assert held(done(3, "savepoint"), *commits(3, 5)) == t(3)
    assert held(done(3, "savepoint"), *commits(3, 5), beyond=True) == t(5)


def test_what_cleaning_retains_stays_on_the_timeline() -> None:
    of = timeline(*commits(*range(1, 9)))

    def kept(settings: CleanSettings, hours_start: int = 0) -> Keep:
        return archive_plan.commits_kept(of, KEEP, settings, hours_start=t(hours_start))

    assert kept(CleanSettings(commits_retained=2)) == KEEP
    assert kept(CleanSettings(commits_retained=10)) == Keep(11, 13)
    assert kept(CleanSettings(policy=CleanPolicy.VERSIONS, commits_retained=10)) == KEEP
    assert kept(CleanSettings(policy=CleanPolicy.HOURS), hours_start=3) == Keep(7, 9)
    assert kept(CleanSettings(policy=CleanPolicy.HOURS), hours_start=50) == KEEP


def test_archiving_may_wait_for_the_last_clean() -> None:
    assert archive_plan.clean_barrier(None) is None
    assert archive_plan.clean_barrier(clean("")) is None
    assert archive_plan.clean_barrier(clean(t(3))) == Barrier(t(3), f"the last clean, which retained '{t(3)}'")


_ACTIONS = st.sampled_from(["commit", "deltacommit", "replacecommit", "clean", "rollback", "savepoint", "indexing"])


@given(
    st.lists(st.tuples(_ACTIONS, st.booleans()), max_size=25),
    st.integers(1, 6),
    st.integers(1, 4),
    st.lists(st.integers(0, 26), max_size=2),
    st.booleans(),
)
def test_what_goes_is_old_complete_and_free(
    drawn: list[tuple[str, bool]], least: int, more: int, barriers: list[int], is_beyond_savepoint: bool
) -> None:
    of = timeline(*(done(n, a) if whole else pending(n, a) for n, (a, whole) in enumerate(drawn)))
    held = [b for b in (archive_plan.pending_barrier(of), *(Barrier(t(n), "a barrier") for n in barriers)) if b]

    plan = plan_archival(of, Keep(least, least + more), held, is_beyond_savepoint=is_beyond_savepoint)

    left = [i for i in of if i not in plan.instants]
    writes_left = [i for i in left if i.is_completed and i.action in WRITE_ACTIONS]
    savepoints = {i.requested for i in of if i.action == "savepoint"}
    assert all(i.is_completed for i in plan.instants)
    assert {i.action for i in plan.instants} <= {*WRITE_ACTIONS, "clean", "rollback"}
    assert all(i.requested < b.requested for b in held for i in plan.instants)
    assert not savepoints & {i.requested for i in plan.instants if i.action in WRITE_ACTIONS}
    if savepoints and not is_beyond_savepoint:
        assert all(i.requested < min(savepoints) for i in plan.instants)
    if gone_writes := [i.requested for i in plan.instants if i.action in WRITE_ACTIONS]:
        companions = {i.requested for i in left if i.is_completed and i.action in ("clean", "rollback")}
        assert not companions or min(companions) > max(gone_writes)
    if plan.instants:
        assert len(writes_left) >= least
        newest = max(i.requested for i in plan.instants)
        older = [i for i in writes_left if i.requested < newest]
        assert {i.requested for i in older} <= savepoints, "a write was passed over"
    elif not held and not savepoints:
        assert len(of.completed_writes) <= least + more
    if not held and not savepoints and len(of.completed_writes) > least + more:
        assert len(writes_left) == least


def test_settings_from_options() -> None:
    settings = ArchiveSettings.from_options(
        {
            "hoodie.archive.automatic": "false",
            "hoodie.keep.max.commits": "8",
            "hoodie.keep.min.commits": "7",
            "hoodie.archive.beyond.savepoint": "true",
            "hoodie.archive.block.on.latest.clean.ectr": "true",
            "hoodie.compact.inline.max.delta.commits": "6",
            "hoodie.metadata.compact.max.delta.commits": "5",
            "hoodie.timeline.compaction.batch.size": "4",
            "hoodie.timeline.compaction.target.file.max.bytes": "3000",
            "hoodie.timeline.manifest.retained.versions": "2",
            "hoodie.clean.commits.retained": "1",
        }
    )

    assert settings == ArchiveSettings(False, 8, 7, True, True, 6, 5, 4, 3000, 2, CleanSettings(commits_retained=1))
    assert ArchiveSettings.from_options({}) == ArchiveSettings()


@pytest.mark.parametrize(
    "options,said",
    [
        ({"hoodie.keep.max.commits": "20"}, r"hoodie\.keep\.min\.commits=20: expected less than .*=20"),
        ({"hoodie.keep.min.commits": "0"}, "at least 1"),
        ({"hoodie.timeline.compaction.batch.size": "1"}, "at least 2"),
        ({"hoodie.archive.automatic": "perhaps"}, r"hoodie\.archive\.automatic"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(options: dict[str, str], said: str) -> None:
    with pytest.raises(Invalid, match=said):
        ArchiveSettings.from_options(options)
