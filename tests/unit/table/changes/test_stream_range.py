"""A stream out of a table could pass a commit over, give one twice, or ask for files that are gone."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.format.timeline.instant import Instant
from pyhudi.table.changes.stream_range import BatchLimits, KnownArchive, StreamRange, choose_batch, stream_range
from pyhudi.table.view.snapshot import Snapshot

NO_CLEAN = {"hoodie.clean.automatic": "false"}


def rows(first: int, last: int, time: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in range(first, last)], "ts": [time] * (last - first)})


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering="ts")
    for time in range(1, 6):
        made.upsert(rows(0, time, time), options=NO_CLEAN)
    return made


def snapshot_of(table: HudiTable) -> Snapshot:
    return table._access.snapshot()


def times(commits: list[Instant]) -> list[str]:
    return [commit.requested for commit in commits]


def test_new_commits_are_those_after_the_last_offset(table: HudiTable) -> None:
    snapshot = snapshot_of(table)
    commits = [i for i in table.timeline() if i.action == "commit"]
    found = stream_range(snapshot, has_changes=False)

    assert not found.by_requested
    assert times(found.new(snapshot, None, None, KnownArchive())) == times(commits)
    assert times(found.new(snapshot, commits[1].completed, commits[3].completed, KnownArchive())) == times(commits[2:4])
    assert found.newest(snapshot) == commits[-1].completed
    assert found.new(snapshot, commits[-1].completed, None, KnownArchive()) == []
    assert stream_range(snapshot, has_changes=True) == StreamRange(by_requested=True)


def test_by_requested_times_commits_wait_for_those_before_them(table: HudiTable) -> None:
    snapshot = snapshot_of(table)
    commits = [i for i in table.timeline() if i.action == "commit"]
    folder = Path(table.path.removeprefix("file://")) / ".hoodie" / "timeline"
    for state in ("commit.requested", "inflight"):
        (folder / f"{commits[2].requested[:-1]}x.{state}").touch()  # no instant
        (folder / f"{int(commits[2].requested) - 1}.{state}").touch()
    snapshot = snapshot_of(table)
    by_requested = StreamRange(by_requested=True)

    assert times(by_requested.new(snapshot, None, None, KnownArchive())) == times(commits[:2])
    assert by_requested.newest(snapshot) == commits[1].requested
    assert len(StreamRange(by_requested=False).new(snapshot, None, None, KnownArchive())) == 5


def test_a_planned_clustering_keeps_no_commit_from_a_stream(tmp_path: Path) -> None:
    """Up to version 6 its action is that of an overwrite, for which commits wait."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", ordering="ts", table_version=6)
    table.upsert(rows(0, 3, 1))
    table.schedule_clustering(options={"hoodie.clustering.plan.strategy.sort.columns": "id"})
    table.insert(
        rows(3, 5, 2),
        options={"hoodie.merge.allow.duplicate.on.inserts": "true", "hoodie.parquet.small.file.limit": "0"},
    )
    snapshot = snapshot_of(table)
    commits = [i for i in table.timeline() if i.action == "commit"]
    assert [i.action for i in table.timeline() if not i.completed] == ["replacecommit"]
    found = stream_range(snapshot, has_changes=False).new(snapshot, None, None, KnownArchive())
    assert times(found) == times(commits)
    assert len(found) == 2


def test_commits_that_were_archived_meanwhile_are_not_passed_over(table: HudiTable) -> None:
    commits = [i for i in table.timeline() if i.action == "commit"]
    few = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    for time in range(6, 12):
        table.upsert(rows(0, 1, time), options={**few, "hoodie.metadata.compact.max.delta.commits": 2})
    snapshot = snapshot_of(table)
    assert snapshot.timeline.start is not None
    assert snapshot.timeline.start > commits[2].requested

    for by_requested, after in ((False, commits[1].completed), (True, commits[1].requested)):
        seen, archive, found = [], KnownArchive(), StreamRange(by_requested)
        # One commit at a time, as a stream with a limit that was behind. The archive is read once.
        while new := found.new(snapshot, after, None, archive):
            seen.append(new[0])
            after = found.time(new[0])
        assert times(seen) == times([i for i in table.timeline(history=True) if i.action == "commit"][2:])
        assert len(seen) == 9
    early = StreamRange(by_requested=False).new(snapshot, commits[0].completed, None, KnownArchive())
    assert len(early) == 10


@pytest.mark.parametrize(
    "limits,count",
    [
        (BatchLimits(), 5),
        (BatchLimits(commits_max=2), 2),
        (BatchLimits(bytes_max=1), 1),
        (BatchLimits(commits_max=9, bytes_max=1), 1),
        (BatchLimits(bytes_max=10**9), 5),
    ],
)
def test_a_batch_keeps_to_its_limits(table: HudiTable, limits: BatchLimits, count: int) -> None:
    snapshot = snapshot_of(table)
    commits = StreamRange(by_requested=False).new(snapshot, None, None, KnownArchive())

    assert choose_batch(snapshot, commits, limits, is_first=False) == commits[count - 1]


def test_the_first_batch_of_all_takes_the_commits_whose_files_may_be_gone(table: HudiTable) -> None:
    table.clean(options={"hoodie.clean.commits.retained": "2"})
    snapshot = snapshot_of(table)
    commits = StreamRange(by_requested=False).new(snapshot, None, None, KnownArchive())
    one = BatchLimits(commits_max=1)

    first = choose_batch(snapshot, commits, one, is_first=True)
    assert first == commits[3]
    assert table.incremental(None, first.completed).count() == 4
    assert choose_batch(snapshot, commits[4:], one, is_first=False) == commits[4]
