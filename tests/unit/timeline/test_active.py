"""A reader could take a write for committed that is not, or overlook one that is."""

from datetime import UTC, timedelta, timezone

import pytest

from pyhudi.errors import NotFound
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.timeline.layout import timeline_layout

LAYOUT_1 = timeline_layout({"hoodie.timeline.layout.version": "1"})
LAYOUT_2 = timeline_layout({"hoodie.timeline.layout.version": "2"})


def t(number: int) -> str:
    return f"202611211100000{number:02d}"


def timeline(*names: str) -> Timeline:
    """A layout-2 timeline of these files."""
    storage = MemoryStorage()
    for name in names:
        storage.put(f".hoodie/timeline/{name}", b"")
    return read_timeline(storage, LAYOUT_2, UTC)


def commit(number: int) -> str:
    return f"{t(number)}_{t(number + 1)}.commit"


def test_an_instant_has_the_highest_state_that_it_has_a_file_of() -> None:
    found = timeline(
        *(f"{t(1)}.commit.requested", f"{t(1)}.inflight", f"{t(1)}_{t(2)}.commit"),
        *(f"{t(3)}.commit.requested", f"{t(3)}.inflight"),
        f"{t(4)}.clean.requested",
    )

    assert list(found) == [
        Instant(t(1), "commit", "COMPLETED", t(2)),
        Instant(t(3), "commit", "INFLIGHT"),
        Instant(t(4), "clean", "REQUESTED"),
    ]
    assert [i.requested for i in found.pending] == [t(3), t(4)]
    assert found.newest == t(4)


@pytest.mark.parametrize(
    "service, action", [("compaction", "commit"), ("logcompaction", "deltacommit"), ("clustering", "replacecommit")]
)
def test_a_service_completes_under_another_name(service: str, action: str) -> None:
    pending = timeline(f"{t(1)}.{service}.requested", f"{t(1)}.{service}.inflight")
    completed = timeline(f"{t(1)}.{service}.requested", f"{t(1)}.{service}.inflight", f"{t(1)}_{t(2)}.{action}")

    assert pending.pending_services == (Instant(t(1), service, "INFLIGHT"),)
    assert list(completed) == [Instant(t(1), action, "COMPLETED", t(2))]
    assert completed.pending_services == ()


def test_two_actions_may_share_their_requested_time() -> None:
    found = timeline(commit(1), f"{t(1)}_{t(5)}.savepoint", f"{t(1)}.savepoint.inflight")

    assert [i.action for i in found] == ["commit", "savepoint"]


def test_other_files_and_the_history_are_passed_over() -> None:
    found = timeline(commit(1), "_version_", "history/manifest_1", f"history/{t(3)}_{t(4)}.commit")

    assert [i.requested for i in found] == [t(1)]


def test_an_empty_timeline_has_nothing() -> None:
    found = timeline()

    assert list(found) == []
    assert found.newest is None
    assert found.start is None
    assert not found.is_committed(t(1))


def test_without_completion_times_the_files_modification_stands_in() -> None:
    storage = MemoryStorage(clock_ms=lambda: 1_795_258_757_123)
    storage.put(f".hoodie/{t(1)}.commit", b"")
    storage.put(f".hoodie/timeline/{t(1)}.commit", b"")
    zone = timezone(timedelta(hours=1))

    (old,) = read_timeline(storage, LAYOUT_1, UTC)
    (legacy,) = read_timeline(storage, LAYOUT_2, zone)

    assert old == Instant(t(1), "commit", "COMPLETED", "20261121105917123")
    assert legacy == Instant(t(1), "commit", "COMPLETED", "20261121115917123", is_legacy=True)


def test_completed_writes_are_those_that_may_have_written_data() -> None:
    found = timeline(
        *(f"{t(5)}_{t(6)}.replacecommit", f"{t(3)}_{t(9)}.deltacommit", commit(1)),
        *(f"{t(4)}_{t(5)}.clean", f"{t(6)}_{t(7)}.rollback", f"{t(7)}_{t(8)}.indexing", f"{t(8)}.commit.requested"),
    )

    assert [i.requested for i in found.completed_writes] == [t(1), t(3), t(5)]
    assert found.completion_times == {t(1): t(2), t(3): t(9), t(5): t(6)}
    assert found.newest == t(9)


def test_a_write_is_committed_when_it_completed_or_was_archived() -> None:
    found = timeline(f"{t(2)}.inflight", f"{t(2)}.commit.requested", commit(4), f"{t(6)}.inflight")

    assert found.start == t(2)
    assert found.is_committed(t(1))  # before the timeline's start: archived
    assert not found.is_committed(t(2))
    assert not found.is_committed(t(3))  # rolled back: no trace of it is left
    assert found.is_committed(t(4))
    assert not found.is_committed(t(6))
    assert not found.is_committed(t(7))


def test_what_a_savepoint_pins_does_not_begin_the_timeline() -> None:
    found = timeline(commit(1), f"{t(1)}_{t(2)}.savepoint", commit(5))

    assert found.start == t(5)
    assert found.is_committed(t(1))
    assert found.is_committed(t(3))  # archived, though a pinned commit before it is still here


def test_where_savepoints_pin_every_write_what_is_older_is_archived_all_the_same() -> None:
    """As a restore leaves it."""
    found = timeline(commit(3), f"{t(3)}_{t(4)}.savepoint", commit(5), f"{t(5)}_{t(6)}.savepoint")

    assert [found.is_committed(t(n)) for n in range(1, 8)] == [True, True, True, True, True, False, False]


def test_a_savepoint_under_way_pins_nothing() -> None:
    assert timeline(commit(1), f"{t(1)}.savepoint.inflight", commit(5)).start == t(1)


def test_cleans_and_rollbacks_do_not_begin_the_timeline() -> None:
    found = timeline(f"{t(1)}_{t(2)}.clean", f"{t(3)}_{t(4)}.rollback", commit(5))

    assert found.start == t(5)


def test_a_reader_that_travels_back_sees_nothing_requested_later() -> None:
    found = timeline(commit(2), commit(4), commit(6)).up_to(t(4))

    assert [i.requested for i in found.completed_writes] == [t(2), t(4)]
    assert [found.is_committed(t(n)) for n in range(1, 8)] == [True, True, False, True, False, False, False]
    assert found.newest == t(7)  # a new instant must be later than all, wherever the reader stands


def test_travel_before_the_start_shows_what_was_archived_by_then_only() -> None:
    found = timeline(commit(4)).up_to(t(2))

    assert [found.is_committed(t(n)) for n in range(1, 5)] == [True, True, False, False]


def test_a_completed_write_is_found_by_its_requested_time() -> None:
    found = timeline(commit(1), f"{t(3)}.inflight")

    assert found.get_completed(t(1)).completed == t(2)
    with pytest.raises(NotFound, match=f"instant '{t(3)}'"):
        found.get_completed(t(3))
