"""A clean could delete a file that somebody still needs: a reader within the retained range, a savepoint, a pending
action; or keep files for ever.

Random histories of a table are cleaned by every policy and held against a model that only knows which version of a
file group a reader sees; then single rules, by example.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.format.timeline.instant import Instant, State
from pyhudi.services.clean.plan import (
    CleanRules,
    PartitionClean,
    Protected,
    earliest_to_retain,
    needed_by_newest,
    plan_partition,
)
from pyhudi.services.clean.settings import CleanPolicy, CleanSettings
from pyhudi.table.view.file_system_view import LogSlicing, SliceByCompletion, SliceByName
from pyhudi.table.view.listing import ListedFile
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import timeline_layout

LAYOUT = timeline_layout({"hoodie.timeline.layout.version": "2"})


def at(n: int) -> str:
    """The requested time of the n-th write."""
    return f"202611210000{10 * n:05d}"


def number_of(instant: Instant) -> int:
    return int(instant.requested[-5:]) // 10


def write(n: int, action: str = "commit", state: State = "COMPLETED") -> Instant:
    return Instant(at(n), action, state, f"{at(n)[:-1]}5" if state == "COMPLETED" else None)


def timeline_of(*instants: Instant) -> Timeline:
    return Timeline(LAYOUT, tuple(sorted(instants, key=lambda i: i.requested)))


def base(group: str, n: int, token: str = "0-0-0") -> str:
    return f"{group}_{token}_{at(n)}.parquet"


def listed(names: Iterable[str]) -> list[ListedFile]:
    return [ListedFile(name, 1) for name in sorted(names)]


def rules(
    timeline: Timeline,
    earliest: int | None,
    *,
    policy: CleanPolicy = CleanPolicy.COMMITS,
    versions: int = 3,
    replaced: dict[str, int] | None = None,
    protected: Protected | None = None,
    slicing: LogSlicing | None = None,
) -> CleanRules:
    groups = {"p": {group: at(n) for group, n in (replaced or {}).items()}}
    start = at(earliest) if earliest is not None else None
    slicing = slicing or SliceByCompletion()
    return CleanRules(policy, versions, start, timeline, slicing, groups, protected or Protected())


def planned(names: Iterable[str], of: CleanRules) -> PartitionClean:
    return plan_partition("p", listed(names), of)


# Random histories.


@dataclass
class History:
    """Writes 1 to `count`. `versions`: group -> the writes that wrote it. `replaced`: group -> the write."""

    count: int
    versions: dict[str, list[int]]
    replaced: dict[str, int]
    pending: set[int] = field(default_factory=set)

    @property
    def timeline(self) -> Timeline:
        replacing = set(self.replaced.values())
        return timeline_of(
            *(
                write(
                    n, "replacecommit" if n in replacing else "commit", "INFLIGHT" if n in self.pending else "COMPLETED"
                )
                for n in range(1, self.count + 1)
            )
        )

    @property
    def names(self) -> set[str]:
        return {base(group, n) for group, of in self.versions.items() for n in of}

    def seen(self, reader: int) -> set[str]:
        """The files of a reader at a write's requested time."""
        found = set()
        for group, of in self.versions.items():
            if self.replaced.get(group, self.count + 1) <= reader:
                continue
            known = [n for n in of if n <= reader and n not in self.pending]
            if known:
                found.add(base(group, max(known)))
        return found

    def changed(self, start: int, end: int) -> set[str]:
        """The files of an incremental reader of the writes in [start, end]."""
        found = set()
        for group, of in self.versions.items():
            known = [n for n in of if start <= n <= end and n not in self.pending]
            if known and not start <= self.replaced.get(group, 0) <= end:
                found.add(base(group, max(known)))
        return found


@st.composite
def histories(draw: st.DrawFn) -> History:
    count = draw(st.integers(1, 14))
    versions: dict[str, list[int]] = {}
    replaced: dict[str, int] = {}
    pending = draw(st.sets(st.integers(1, count), max_size=2))
    for number in range(draw(st.integers(1, 5))):
        group = f"group-{number}"
        first = draw(st.integers(1, count))
        end = draw(st.one_of(st.just(count + 1), st.integers(first + 1, count + 1)))
        if end <= count and end not in pending:
            replaced[group] = end
        later = draw(st.sets(st.integers(first, count)))
        last = replaced.get(group, count + 1)
        versions[group] = sorted({first, *(n for n in later if n < last)})
    return History(count, versions, replaced, pending)


@settings(max_examples=200, deadline=None)
@given(histories(), st.sampled_from([CleanPolicy.COMMITS, CleanPolicy.HOURS]), st.integers(1, 12), st.integers(0, 14))
def test_readers_of_retained_commits_find_their_files(
    history: History, policy: CleanPolicy, retained: int, hours_start: int
) -> None:
    timeline = history.timeline
    earliest = earliest_to_retain(
        timeline, CleanSettings(policy=policy, commits_retained=retained), hours_start=at(hours_start), previous=None
    )
    if earliest is None:
        return
    first = number_of(earliest)
    plan = planned(history.names, rules(timeline, first, policy=policy, replaced=history.replaced))
    left = history.names - set(plan.names)

    assert {base(g, n) for g, of in history.versions.items() for n in of if n in history.pending} <= left
    for reader in range(first, history.count + 1):
        assert history.seen(reader) <= left, f"a reader as of {reader}"
        for start in range(first, reader + 1):
            assert history.changed(start, reader) <= left, f"a reader of the changes from {start} to {reader}"
    if history.pending:
        assert first <= min(history.pending)
    for group, of in history.versions.items():  # and no more than that is kept
        old = [n for n in of if n < first and base(group, n) in left]
        if group not in history.replaced:
            assert len(old) <= 1
        elif history.replaced[group] < first:
            assert old == []


@settings(max_examples=200, deadline=None)
@given(histories(), st.integers(1, 4))
def test_the_newest_versions_stay_and_no_others(history: History, versions: int) -> None:
    of = rules(history.timeline, None, policy=CleanPolicy.VERSIONS, versions=versions, replaced=history.replaced)
    left = history.names - set(planned(history.names, of).names)

    assert history.seen(history.count) <= left
    for group, numbers in history.versions.items():
        done = [n for n in numbers if n not in history.pending]
        kept = [] if group in history.replaced else done[-versions:]
        assert {n for n in done if base(group, n) in left} == set(kept)


@settings(max_examples=200, deadline=None)
@given(histories(), st.sampled_from(list(CleanPolicy)), st.integers(1, 14), st.data())
def test_what_is_protected_stays_under_every_policy(
    history: History, policy: CleanPolicy, reader: int, data: st.DataObject
) -> None:
    """A savepoint's files, the files of a reader that builds a savepoint or an index, those of a compaction."""
    saved = data.draw(st.sets(st.sampled_from(sorted(history.names)), max_size=3))
    group, start = data.draw(st.sampled_from(sorted(history.versions))), data.draw(st.integers(1, 14))
    protected = Protected(
        frozenset(("p", name) for name in saved), {("p", group): at(start)}, (at(min(reader, history.count)),)
    )
    earliest = None if policy is CleanPolicy.VERSIONS else history.count
    of = rules(history.timeline, earliest, policy=policy, versions=1, replaced=history.replaced, protected=protected)
    gone = set(planned(history.names, of).names)

    assert not gone & saved
    assert not gone & history.seen(min(reader, history.count))
    assert not gone & {base(group, n) for n in history.versions[group] if n >= start}
    assert history.seen(history.count) <= needed_by_newest("p", listed(history.names), of)


# Single rules.


def test_the_newest_slice_before_the_retained_range_stays() -> None:
    timeline = timeline_of(*(write(n) for n in range(1, 6)))
    names = {base("g", n) for n in (1, 2, 4, 5)}

    assert planned(names, rules(timeline, 4)).names == (base("g", 1),)
    assert planned(names, rules(timeline, 5)).names == (base("g", 1), base("g", 2))


def test_log_files_and_change_logs_go_with_their_slice() -> None:
    timeline = timeline_of(*(write(n, "deltacommit") for n in range(1, 6)))
    old = {base("g", 1), f".g_{at(1)}.log.1_0-0-0.cdc", f".g_{at(2)}.log.1_0-0-0"}
    new = {base("g", 3), base("g", 5), f".g_{at(4)}.log.1_0-0-0"}

    assert set(planned(old | new, rules(timeline, 5)).names) == old


@pytest.mark.parametrize("policy", list(CleanPolicy))
def test_logs_named_after_their_own_write_go_and_stay_with_the_base_file_below_them(policy: CleanPolicy) -> None:
    """So they are named after a downgrade to version 6, and after a compaction that was taken back."""
    timeline = timeline_of(*(write(n, "deltacommit") for n in range(1, 8)))
    own = {base("g", 1), *(f".g_{at(n)}.log.1_0-0-0" for n in (2, 3))}
    newer = {base("g", 4), *(f".g_{at(n)}.log.1_0-0-0" for n in (5, 6))}

    def gone(names: set[str], earliest: int, reader: int | None = None) -> set[str]:
        of = rules(
            timeline, None if policy is CleanPolicy.VERSIONS else earliest, policy=policy, versions=1,
            protected=Protected(readers=(at(reader),) if reader else ()), slicing=SliceByName(),
        )  # fmt: skip
        assert own | newer != names or needed_by_newest("p", listed(names), of) >= newer
        return set(planned(names, of).names)

    assert not gone(own, 7)
    assert gone(own | newer, 7) == own
    assert not gone(own | newer, 7, reader=3)
    assert policy is CleanPolicy.VERSIONS or not gone(own | newer, 3)


def test_what_a_lost_task_attempt_left_goes_with_its_slice() -> None:
    """Left behind, it would be the only file of its instant, and be taken for the committed one."""
    timeline = timeline_of(*(write(n) for n in range(1, 5)))
    attempts = {base("g", 1), base("g", 1, "0-7-9")}

    assert set(planned(attempts | {base("g", 2), base("g", 4)}, rules(timeline, 4)).names) == attempts


def test_a_replaced_group_goes_whole_and_so_does_what_no_write_stands_for() -> None:
    timeline = timeline_of(write(1), write(2, "replacecommit"), write(3), write(5))
    rolled_back = base("old", 4)  # no instant of that time is left

    plan = planned({base("old", 1), rolled_back}, rules(timeline, 5, replaced={"old": 2}))

    assert plan == PartitionClean(tuple(sorted({base("old", 1), rolled_back})), is_replaced=True)


def test_a_group_that_was_replaced_within_the_range_stays_whole() -> None:
    timeline = timeline_of(write(1), write(2), write(3), write(4, "replacecommit"), write(5))
    names = {base("old", n) for n in (1, 2, 3)}

    assert planned(names, rules(timeline, 4, replaced={"old": 4})) == PartitionClean((), is_replaced=False)
    assert set(planned(names, rules(timeline, 5, replaced={"old": 4})).names) == names


def test_a_partition_with_a_group_that_lives_is_not_given_up() -> None:
    timeline = timeline_of(write(1), write(2, "replacecommit"), write(3))

    plan = planned({base("old", 1), base("new", 2)}, rules(timeline, 3, replaced={"old": 2}))

    assert plan == PartitionClean((base("old", 1),), is_replaced=False)


def test_one_version_less_is_kept_beside_those_of_a_pending_compaction() -> None:
    timeline = timeline_of(*(write(n) for n in range(1, 6)))
    protected = Protected(compacted_from={("p", "g"): at(4)})
    names = {base("g", n) for n in range(1, 6)}

    of = rules(timeline, None, policy=CleanPolicy.VERSIONS, versions=2, protected=protected)

    assert planned(names, of).names == (base("g", 1), base("g", 2))


# The earliest commit to retain. Spec: format/actions.md section 7.2.


def earliest(timeline: Timeline, previous: int | None = None, **settings: object) -> int | None:
    found = earliest_to_retain(
        timeline,
        CleanSettings(**settings),  # type: ignore[arg-type]
        hours_start=at(7),
        previous=at(previous) if previous is not None else None,
    )
    return number_of(found) if found is not None else None


TEN = tuple(write(n) for n in range(1, 11))


@pytest.mark.parametrize("retained,expected", [(1, 10), (3, 8), (9, 2), (10, None), (11, None)])
def test_as_many_commits_are_retained_as_asked(retained: int, expected: int | None) -> None:
    assert earliest(timeline_of(*TEN), commits_retained=retained) == expected


@pytest.mark.parametrize("action", ["commit", "clustering", "compaction", "replacecommit", "logcompaction"])
def test_a_pending_write_holds_the_range_back(action: str) -> None:
    pending = Instant(at(4)[:-1] + "7", action, "INFLIGHT")  # requested between the fourth and the fifth

    for policy in (CleanPolicy.COMMITS, CleanPolicy.HOURS):
        assert earliest(timeline_of(*TEN, pending), policy=policy, commits_retained=2) == 4
        assert earliest(timeline_of(*TEN, write(0, action, "REQUESTED")), policy=policy, commits_retained=2) is None


def test_services_that_write_nothing_do_not_count() -> None:
    others = (
        write(20, "clean"),
        write(21, "rollback"),
        write(22, "savepoint", "INFLIGHT"),
        write(3, "clean", "INFLIGHT"),
    )

    assert earliest(timeline_of(*TEN, *others), commits_retained=3) == 8


def test_hours_retain_the_first_commit_within_them() -> None:
    assert earliest(timeline_of(*TEN), policy=CleanPolicy.HOURS) == 7
    assert earliest(timeline_of(*TEN[:5]), policy=CleanPolicy.HOURS) is None


def test_versions_retain_no_commit() -> None:
    assert earliest(timeline_of(*TEN), policy=CleanPolicy.VERSIONS) is None


def test_one_clean_goes_no_further_than_it_may() -> None:
    assert earliest(timeline_of(*TEN), 2, commits_retained=1, commits_per_clean_max=3) == 5
    assert earliest(timeline_of(*TEN), 9, commits_retained=1, commits_per_clean_max=3) == 10
    assert earliest(timeline_of(*TEN), None, commits_retained=1, commits_per_clean_max=3) == 10
