"""A commit could be in no range or in two: consecutive ranges must share it out exactly once."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import Invalid
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.changes.incremental import CommitRange, commit_range, instants_in
from pyhudi.table.facts.config import table_config
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.history import NoHistory, within


def t(number: int) -> str:
    return f"202611211100000{number:02d}"


def snapshot(version: int, instants: list[Instant], zone: tzinfo = UTC) -> Snapshot:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.version": str(version),
        "hoodie.timeline.layout.version": "2" if version >= 8 else "1",
    }
    storage = MemoryStorage()
    config = table_config(properties, path="p")
    return Snapshot(storage, config, zone, Timeline(config.layout, tuple(instants)), StorageListing(storage))


def completed(action: str, requested: int, completion: int) -> Instant:
    return Instant(t(requested), action, "COMPLETED", t(completion))


# the write requested at 2 completes last
INSTANTS = [
    completed("commit", 1, 3),
    completed("replacecommit", 2, 9),
    Instant(t(4), "commit", "INFLIGHT"),
    completed("commit", 5, 6),
    completed("clean", 7, 8),
]


def chosen(version: int, start: int | None, end: int | None) -> list[str]:
    span = CommitRange(None if start is None else t(start), None if end is None else t(end))
    return [i.requested for i in instants_in(snapshot(version, INSTANTS), span)]


@pytest.mark.parametrize(
    "start, end, requested",
    [
        (None, None, [1, 2, 5]),
        (None, 3, [1]),
        (3, 6, [5]),
        (3, 9, [2, 5]),
        (2, 3, [1]),
        (6, None, [2]),
        (9, None, []),
        (6, 6, []),
        (9, 3, []),
    ],
)
def test_ranges_of_layout_2_are_of_completion_times(start: int | None, end: int | None, requested: list[int]) -> None:
    assert chosen(8, start, end) == [t(n) for n in requested]


@pytest.mark.parametrize(
    "start, end, requested",
    [(None, None, [1, 2, 5]), (None, 1, [1]), (1, 2, [2]), (1, 5, [2, 5]), (2, None, [5]), (5, None, []), (2, 2, [])],
)
def test_ranges_of_layout_1_are_of_requested_times(start: int | None, end: int | None, requested: list[int]) -> None:
    assert chosen(6, start, end) == [t(n) for n in requested]


@given(
    st.lists(st.tuples(st.integers(0, 49), st.integers(1, 50)), unique_by=lambda pair: pair[0], max_size=6),
    st.lists(st.integers(0, 99), max_size=4).map(sorted),
    st.sampled_from([6, 8]),
)
def test_consecutive_ranges_share_out_every_commit_once(
    pairs: list[tuple[int, int]], cuts: list[int], version: int
) -> None:
    commits = [completed("commit", begin, begin + took) for begin, took in sorted(pairs)]
    bounds = [None, *map(t, cuts), None]
    view = snapshot(version, commits)

    found = [i for start, end in pairwise(bounds) for i in instants_in(view, CommitRange(start, end))]

    assert sorted(found, key=lambda i: i.requested) == commits


@pytest.mark.parametrize("start", [None, "earliest", "EARLIEST", "000"])
def test_the_beginning_has_several_names(start: str | None) -> None:
    span = commit_range(snapshot(8, []), start, None)

    assert span == CommitRange(None, None)
    assert str(span) == "(earliest, latest]"


def test_bounds_are_instants_dates_or_moments_in_the_tables_zone() -> None:
    zone = timezone(timedelta(hours=1))
    view = snapshot(8, [], zone)

    assert commit_range(view, t(1), date(2026, 11, 22)) == CommitRange(t(1), "20261122000000000")
    moment = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert commit_range(view, "2026-11-21", moment) == CommitRange("20261121000000000", "20261121130000000")


@pytest.mark.parametrize("bounds, what", [(("soon", None), "start"), ((None, "later"), "end"), ((None, ""), "end")])
def test_bounds_that_are_no_times_are_refused_by_name(bounds: tuple[str | None, str | None], what: str) -> None:
    with pytest.raises(Invalid, match=f"^{what}="):
        commit_range(snapshot(8, []), *bounds)


class FakeHistory(NoHistory):
    """Archived instants that count how often they were asked for."""

    def __init__(self, *instants: Instant) -> None:
        self.archived, self.questions = instants, 0

    def instants(
        self,
        *,
        requested_from: str | None = None,
        requested_until: str | None = None,
        completed_after: str | None = None,
    ) -> tuple[Instant, ...]:
        self.questions += 1
        return tuple(i for i in self.archived if within(i, requested_from, requested_until, completed_after))


def with_history(version: int) -> tuple[Snapshot, FakeHistory]:
    """The write requested at 11 was slow; 10, 11 and 12 are archived, a clean too, and 12 is active as well."""
    history = FakeHistory(
        completed("commit", 10, 12),
        completed("commit", 11, 33),
        completed("commit", 12, 15),
        completed("clean", 13, 14),
    )
    active = [completed("commit", 12, 15), completed("commit", 20, 21), completed("commit", 30, 31)]
    view = snapshot(version, active)
    return replace(view, timeline=replace(view.timeline, history=history)), history


@pytest.mark.parametrize(
    "version,start,end,requested",
    [
        (8, None, None, [10, 11, 12, 20, 30]),
        (8, 12, 21, [12, 20]),
        (8, 31, None, [11]),
        (8, 21, 31, [30]),
        (8, None, 12, [10]),
        (6, None, None, [10, 11, 12, 20, 30]),
        (6, 10, 20, [11, 12, 20]),
        (6, None, 10, [10]),
    ],
)
def test_archived_commits_are_in_the_range_too(
    version: int, start: int | None, end: int | None, requested: list[int]
) -> None:
    view, _ = with_history(version)
    span = CommitRange(None if start is None else t(start), None if end is None else t(end))

    assert [i.requested for i in instants_in(view, span)] == [t(n) for n in requested]


def test_the_history_is_left_alone_where_no_archived_commit_can_be_in_the_range() -> None:
    for version, questions in ((6, 0), (8, 1)):  # on version 8 a slow write may have completed later than all others
        view, history = with_history(version)
        assert [i.requested for i in instants_in(view, CommitRange(t(21), t(32)))] == [t(30)]
        assert history.questions == questions
    empty = snapshot(8, [])
    history = FakeHistory()
    assert instants_in(replace(empty, timeline=replace(empty.timeline, history=history)), CommitRange(None, None)) == []
    assert history.questions == 0
