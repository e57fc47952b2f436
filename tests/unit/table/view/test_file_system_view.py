"""A reader could see a file that was never committed, was replaced, or that a retry left; or miss the newest one."""

from dataclasses import replace

import pytest

from pyhudi.format.names import LogFileName
from pyhudi.format.timeline.instant import Instant
from pyhudi.table.view.file_system_view import FileSlice, SliceByCompletion, SliceByName, latest_slices, whole_slices
from pyhudi.table.view.listing import ListedFile
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import timeline_layout
from tests.unit.table.changes.test_incremental import FakeHistory

LAYOUT = timeline_layout({"hoodie.timeline.layout.version": "2"})


def t(number: int) -> str:
    return f"202611211100000{number:02d}"


def timeline(*completed: tuple[int, int] | int, pending: tuple[int, ...] = ()) -> Timeline:
    """Commits: pairs of requested and completion, or requested ones that complete at once; and pending ones."""
    pairs = [c if isinstance(c, tuple) else (c, c) for c in completed]
    instants = [Instant(t(begin), "commit", "COMPLETED", t(end)) for begin, end in pairs]
    instants += [Instant(t(begin), "commit", "INFLIGHT") for begin in pending]
    return Timeline(LAYOUT, tuple(sorted(instants, key=lambda i: i.requested)))


def base(file_id: str, number: int, token: str = "0-1-0") -> ListedFile:
    return ListedFile(f"{file_id}_{token}_{t(number)}.parquet", 10)


def log(file_id: str, number: int, version: int = 1, suffix: str = "") -> ListedFile:
    return ListedFile(f".{file_id}_{t(number)}.log.{version}_0-1-0{suffix}", 3)


def bases(slices: list[FileSlice]) -> dict[str, str | None]:
    return {s.file_id: s.base_file.name.requested if s.base_file else None for s in slices}


def logs(piece: FileSlice) -> list[str]:
    return [f"{log.name.instant}.{log.name.version}" for log in piece.log_files]


def view(files: list[ListedFile], of: Timeline, **kwargs: object) -> list[FileSlice]:
    return latest_slices("p", files, of, slicing=SliceByCompletion(), **kwargs)  # type: ignore[arg-type]


def test_of_each_group_the_newest_committed_file_is_seen() -> None:
    slices = view([base("b", 1), base("a", 1), base("a", 2), base("b", 3)], timeline(1, 2))

    assert [s.file_id for s in slices] == ["a", "b"]
    assert bases(slices) == {"a": t(2), "b": t(1)}
    assert [s.base_instant for s in slices] == [t(2), t(1)]
    assert slices[0].partition == "p"
    assert slices[0].base_file is not None
    assert slices[0].base_file.size_bytes == 10


@pytest.mark.parametrize("pending", [(), (2,)], ids=["rolled back", "under way"])
def test_files_of_writes_that_did_not_complete_are_not_seen(pending: tuple[int, ...]) -> None:
    slices = view([base("a", 1), base("a", 2), base("new", 2)], timeline(1, 3, pending=pending))

    assert bases(slices) == {"a": t(1)}


def test_files_of_archived_commits_are_seen() -> None:
    assert bases(view([base("a", 1)], timeline(5))) == {"a": t(1)}


def test_a_reader_that_travels_back_sees_the_older_file() -> None:
    files = [base("a", 1), base("a", 3), base("b", 3)]

    assert bases(view(files, timeline(1, 3).up_to(t(2)))) == {"a": t(1)}
    assert view(files, timeline(1, 3).up_to(t(0))) == []


def test_replaced_groups_are_not_seen() -> None:
    assert bases(view([base("a", 1), base("b", 1)], timeline(1, 2), replaced={"a": t(2)})) == {"b": t(1)}


@pytest.mark.parametrize("valid", ["0-1-0", "0-2-5"])
def test_of_several_task_attempts_the_committed_one_is_seen(valid: str) -> None:
    files = [base("a", 1, "0-1-0"), base("a", 1, "0-2-5"), base("b", 1, "0-9-9")]

    slices = view(files, timeline(1), valid_tokens={("a", t(1)): valid})

    assert [s.base_file.name.write_token for s in slices if s.base_file] == [valid, "0-9-9"]


def test_other_files_and_change_logs_are_passed_over() -> None:
    files = [base("a", 1), log("a", 1, suffix=".cdc"), log("c", 1, suffix=".cdc"), ListedFile("_SUCCESS", 0)]

    slices = view(files, timeline(1))

    assert bases(slices) == {"a": t(1)}
    assert slices[0].log_files == ()


def test_an_archived_log_is_sliced_by_its_archived_completion_time() -> None:
    """It began before the base file at 4 and completed after it; the history is asked for no other log."""
    history = FakeHistory(
        Instant(t(1), "deltacommit", "COMPLETED", t(2)), Instant(t(3), "deltacommit", "COMPLETED", t(6))
    )
    of = replace(timeline(8), history=history)

    (piece,) = view([base("a", 0), log("a", 1), base("a", 4), log("a", 3), log("a", 5)], of)

    assert logs(piece) == [f"{t(3)}.1", f"{t(5)}.1"]
    assert history.questions == 2


def test_logs_by_completion_go_to_the_newest_slice_that_began_before_they_completed() -> None:
    # delta commit 2 began before the compaction at 3 and completed after it
    files = [base("a", 1), base("a", 3), log("a", 2), log("a", 4)]

    (piece,) = view(files, timeline(1, (2, 5), (3, 6), (4, 7)))

    assert piece.base_instant == t(3)
    assert logs(piece) == [f"{t(2)}.1", f"{t(4)}.1"]


def test_logs_that_completed_before_the_newest_slice_began_are_in_the_older_one() -> None:
    (piece,) = view([base("a", 1), base("a", 4), log("a", 2)], timeline(1, (2, 3), 4))

    assert piece.base_instant == t(4)
    assert piece.log_files == ()


def test_logs_of_writes_that_did_not_complete_are_not_seen() -> None:
    (piece,) = view([base("a", 1), log("a", 2), log("a", 3)], timeline(1, 3, pending=(2,)))

    assert logs(piece) == [f"{t(3)}.1"]
    assert view([log("b", 2)], timeline(1, 3, pending=(2,))) == []


def test_a_group_may_have_logs_only() -> None:
    (piece,) = view([log("a", 2, 2), log("a", 1), log("a", 2, 1)], timeline(1, 2))

    assert piece.base_file is None
    assert piece.base_instant == t(1)
    assert logs(piece) == [f"{t(1)}.1", f"{t(2)}.1", f"{t(2)}.2"]


def test_log_versions_are_read_as_numbers() -> None:
    (piece,) = view([base("a", 1), log("a", 1, 10), log("a", 1, 9)], timeline(1))

    assert logs(piece) == [f"{t(1)}.9", f"{t(1)}.10"]


def test_logs_by_name_carry_the_instant_of_their_base_file() -> None:
    files = [base("a", 1), base("a", 3), log("a", 1), log("a", 3, 2), log("a", 3, 1)]

    (piece,) = latest_slices("p", files, timeline(1, 3), slicing=SliceByName())

    assert piece.base_instant == t(3)
    assert logs(piece) == [f"{t(3)}.1", f"{t(3)}.2"]


def test_logs_by_name_are_not_seen_before_the_clustering_that_they_are_named_after_has_completed() -> None:
    """A writer put such a log for a file group that the clustering is about to make."""
    files, of = [log("a", 2), base("b", 1), log("b", 2)], timeline(1, 3)
    pending = Instant(t(2), "replacecommit", "REQUESTED")
    of = replace(of, instants=tuple(sorted((*of.instants, pending), key=lambda i: i.requested)))

    (piece,) = latest_slices("p", files, of, slicing=SliceByName())
    assert piece.file_id == "b"
    assert logs(latest_slices("p", files, timeline(1, 2, 3), slicing=SliceByName())[0]) == [f"{t(2)}.1"]


def test_a_log_that_carries_a_base_instant_is_in_its_slice_on_an_upgraded_table() -> None:
    name = LogFileName("a", t(1), 1, "0-1-0")

    assert SliceByCompletion().base_instant(name, {t(1), t(3)}, timeline((1, 4), 3)) == t(1)


def test_a_log_that_carries_a_pending_compaction_stands_upon_the_base_file_before_it_on_an_upgraded_table() -> None:
    """And before those of after the upgrade, which carry their own instants; not so that of a log compaction."""
    of = timeline(1, 3, 5)
    pending = Instant(t(2), "compaction", "REQUESTED"), Instant(t(4), "logcompaction", "INFLIGHT")
    of = replace(of, instants=tuple(sorted((*of.instants, *pending), key=lambda i: i.requested)))
    files = [base("a", 1), log("a", 1), log("a", 2), log("a", 4), log("a", 5)]

    (piece,) = view(files, of)

    assert piece.base_instant == t(1)
    assert logs(piece) == [f"{t(1)}.1", f"{t(2)}.1", f"{t(5)}.1"]


def test_whole_slices_have_the_logs_that_lie_in_no_slice_of_a_base_file() -> None:
    files = [base("g", 3), base("g", 6), log("h", 1), *(log("g", n) for n in range(1, 6))]
    found = whole_slices("p", files, timeline(*range(1, 7)), slicing=SliceByName())

    assert [piece.base_instant for piece in found["g"]] == [t(6), t(3), t(1)]
    assert [len(piece.log_files) for piece in found["g"]] == [0, 3, 2]
    assert [log.name.instant for log in found["g"][1].log_files] == [t(3), t(4), t(5)]
    assert [len(piece.log_files) for piece in found["h"]] == [1]
