"""A clean could run when nothing is due or not run when it is, take a file that somebody needs, leave the metadata
table with files that are gone, or make a write fail that has landed."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TypeVar

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Conflict, Invalid, NotFound, Unavailable
from pyhudi.format.names import METADATA_TABLE, BaseFileName
from pyhudi.format.timeline.action_files import (
    decode_cleaner_plan,
    encode_clean_metadata,
    encode_cleaner_plan,
    encode_index_plan,
    encode_requested_replace,
    encode_savepoint,
)
from pyhudi.format.timeline.instant import Instant, State
from pyhudi.format.timeline.records import (
    ActionInstant,
    CleanerPlan,
    CleanFileInfo,
    CleanMetadata,
    ClusteringGroup,
    ClusteringPlan,
    IndexPartitionInfo,
    IndexPlan,
    RequestedReplaceMetadata,
    SavepointMetadata,
    SavepointPartitionMetadata,
    SliceInfo,
)
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.cleaned import planned_names
from pyhudi.table.view.snapshot import Snapshot, read_snapshot
from pyhudi.testing.crashing import CrashingStorage
from tests.support.model import (
    Handles,
    Row,
    StepClock,
    arrow,
    problems_on,
    read_rows,
    seeded_uuids,
    without_metadata_table,
)

T = TypeVar("T")

OFF = {"hoodie.clean.automatic": "false"}
TWO = {"hoodie.clean.commits.retained": "2"}
HOUR_MS = 3_600_000


@dataclass
class Bench:
    """A table of two partitions with a file group each, in memory."""

    storage: Storage
    clock: StepClock
    table: HudiTable

    def upsert(self, turn: int, options: Mapping[str, object] | None = None) -> str:
        """Rewrites both file groups."""
        requested = self.table.upsert(arrow(rows(turn)), options=options).requested
        assert requested is not None
        return requested

    def files(self) -> list[str]:
        return sorted(without_metadata_table(self.storage))

    def written_at(self) -> set[str]:
        """The requested times of the base files that are there."""
        names = (BaseFileName.parse(path.rpartition("/")[2]) for path in self.files())
        return {name.requested for name in names if name is not None}

    def snapshot(self) -> Snapshot:
        return read_snapshot(self.storage, UTC, open_listing)

    def put(self, requested: str, action: str, state: State, content: bytes, completed: str | None = None) -> None:
        instant = Instant(requested, action, state, completed)
        assert self.storage.put_new(self.snapshot().timeline.layout.path(instant), content)

    def actions(self, action: str) -> list[Instant]:
        return [i for i in self.table.timeline() if i.action == action]


def rows(turn: int) -> list[Row]:
    return [Row("a", "oslo", turn, turn), Row("b", "rome", turn, turn)]


def bench(properties: Mapping[str, str] | None = None, storage: Storage | None = None) -> Bench:
    clock = StepClock()
    on = storage or MemoryStorage(clock_ms=lambda: clock.ms)
    handles = Handles(on, clock, seeded_uuids(1), SerialExecutor())
    return Bench(on, clock, handles.create(properties=properties))


# When a clean is due.


def test_a_clean_follows_each_commit_once_there_are_more_than_are_retained() -> None:
    table = bench()  # ten by default
    commits = [table.upsert(turn) for turn in range(13)]

    # The eleventh commit moves the range to the second, whose readers see the file of the first no more than of it.
    assert [len(table.actions(action)) for action in ("commit", "clean")] == [13, 2]
    assert table.written_at() == set(commits[2:])
    assert problems_on(table.storage) == []


def test_no_clean_follows_when_it_is_not_wanted() -> None:
    table = bench({**OFF, **TWO})
    commits = [table.upsert(turn) for turn in range(5)]
    assert table.actions("clean") == []

    result = table.table.clean()

    assert (result.files_deleted, result.partitions_deleted, result.reason) == (4, 0, "")
    assert result.earliest_retained == commits[3]
    assert (result.requested, result.completed) == (
        table.actions("clean")[0].requested, table.actions("clean")[0].completed
    )  # fmt: skip
    assert table.written_at() == set(commits[2:])
    assert problems_on(table.storage) == []


def test_why_nothing_was_due_is_said() -> None:
    table = bench({**OFF, **TWO})
    assert table.table.clean().reason == "every commit is within what KEEP_LATEST_COMMITS retains"
    for turn in range(3):
        table.upsert(turn)
    table.table.clean()

    again = table.table.clean()

    assert (again.requested, again.files_deleted, again.reason) == (None, 0, "no file is superfluous")


def test_the_trigger_counts_commits_since_the_last_clean_and_a_call_does_not_wait_for_it() -> None:
    table = bench({**TWO, "hoodie.clean.trigger.max.commits": "3"})
    for turn in range(8):
        table.upsert(turn)
    # After the fourth (the third commit makes three, but retains them all but one: nothing goes), the seventh.
    assert len(table.actions("clean")) == 2

    waiting = table.table.clean(options={"hoodie.clean.trigger.max.commits": "3"})
    assert (waiting.files_deleted, waiting.reason[:29]) == (0, "1 commits since the last clea")
    assert table.table.clean().files_deleted == 2


@pytest.mark.parametrize("name", ["hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained"])
def test_a_write_may_ask_for_another_retention(name: str) -> None:
    table = bench()
    for turn in range(4):
        table.upsert(turn)

    last = table.upsert(4, {name: "1"})

    assert len(table.written_at()) == 2
    assert last in table.written_at()


def test_versions_are_counted_by_file_group() -> None:
    table = bench({"hoodie.clean.policy": "keep_latest_file_versions", "hoodie.clean.fileversions.retained": "2"})
    commits = [table.upsert(turn) for turn in range(4)]
    table.table.upsert(arrow([Row("a", "oslo", 9, 9)]))

    assert [path.rpartition("/")[0] for path in table.files()] == ["oslo", "oslo", "rome", "rome"]
    assert table.snapshot().timeline.completed_writes[-1].requested in table.written_at()
    assert table.table.scan(as_of=commits[3]).to_arrow().num_rows == 2
    with pytest.raises(NotFound, match=f"as_of='{commits[2]}': its files were cleaned away, such as 'oslo/"):
        table.table.scan(as_of=commits[2])
    assert problems_on(table.storage) == []


def test_hours_are_counted_by_the_clock() -> None:
    table = bench({"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "2"})
    commits = []
    for turn in range(6):
        commits.append(table.upsert(turn))
        table.clock.ms += HOUR_MS

    # The last write, after five hours, retains the commits since the third hour, and what their readers see.
    assert table.written_at() == set(commits[3:])
    assert table.actions("clean") != []


# What stays.


def test_readers_of_the_retained_range_see_their_rows_and_older_ones_are_refused() -> None:
    table = bench({"hoodie.clean.commits.retained": "3"})
    commits = [table.upsert(turn) for turn in range(9)]
    completed = {i.requested: i.completed for i in table.actions("commit")}

    for turn in (6, 7, 8):
        found = read_rows(table.table.scan(as_of=commits[turn]).to_arrow())
        assert {of.row for of in found.values()} == set(rows(turn))
        assert {of.requested for of in found.values()} == {commits[turn]}
        changed = table.table.incremental(completed[commits[turn - 1]], completed[commits[turn]]).to_arrow()
        assert {of.row for of in read_rows(changed).values()} == set(rows(turn))
    for turn in range(6):
        with pytest.raises(NotFound, match=f"the earliest kept commit is '{commits[6]}'"):
            table.table.scan(as_of=commits[turn])


def test_a_moment_before_an_earlier_stricter_clean_is_refused_too() -> None:
    """The last clean retained more commits than the one before it: what that deleted is gone all the same."""
    table = bench({**OFF})
    commits = [table.upsert(turn) for turn in range(6)]
    table.table.clean(options={"hoodie.clean.commits.retained": "1"})
    requested = table.snapshot().timeline.newest or ""
    later = CleanMetadata(requested, 0, 0, commits[1], commits[5], {})
    table.put(requested, "clean", "COMPLETED", encode_clean_metadata(later), completed=requested)

    assert table.table.scan(as_of=commits[5]).to_arrow().num_rows == 2
    with pytest.raises(NotFound, match=f"the earliest kept commit is '{commits[5]}'"):
        table.table.scan(as_of=commits[4])


def test_savepointed_files_stay_until_the_savepoint_goes() -> None:
    table = bench({**OFF, "hoodie.clean.commits.retained": "1"})
    first = table.upsert(0)
    saved = table.files()
    metadata = SavepointMetadata(
        "me",
        1,
        "",
        {
            p: SavepointPartitionMetadata(p, (of.rpartition("/")[2],))
            for p, of in zip(("oslo", "rome"), saved, strict=True)
        },
    )
    table.put(first, "savepoint", "COMPLETED", encode_savepoint(metadata), completed=table.upsert(1))
    for turn in range(2, 5):
        table.upsert(turn)

    assert table.table.clean().files_deleted == 4
    assert set(saved) <= set(table.files())
    clean = table.actions("clean")[0]
    path = table.snapshot().timeline.layout.path(Instant(clean.requested, "clean", "REQUESTED"))
    assert decode_cleaner_plan(table.storage.get(path), path=path).extra_metadata == {"savepointed_timestamps": first}

    table.storage.delete(table.snapshot().timeline.layout.path(table.actions("savepoint")[0]))
    table.upsert(5)
    result = table.table.clean()  # incremental, but a savepoint went: every partition is looked at

    assert not set(saved) & set(table.files())
    assert result.files_deleted == 4
    assert problems_on(table.storage) == []


def pending_clustering(table: Bench) -> None:
    group = table.snapshot().slices("oslo")[0]
    assert group.base_file is not None
    piece = SliceInfo(f"file:/elsewhere/oslo/{group.base_file.name.format()}", (), group.file_id, "oslo")
    plan = RequestedReplaceMetadata("CLUSTER", ClusteringPlan((ClusteringGroup((piece,)),)), version=1)
    table.put(table.snapshot().timeline.newest or "", "clustering", "REQUESTED", encode_requested_replace(plan))


def pending_savepoint(table: Bench) -> None:
    table.put(table.snapshot().timeline.completed_writes[-1].requested, "savepoint", "INFLIGHT", b"")


def pending_index(table: Bench) -> None:
    upto = table.snapshot().timeline.completed_writes[-1].requested
    plan = IndexPlan(index_partition_infos=(IndexPartitionInfo(1, "column_stats", upto),))
    table.put(table.snapshot().timeline.newest or "", "indexing", "REQUESTED", encode_index_plan(plan))


@pytest.mark.parametrize("request_it", [pending_clustering, pending_savepoint, pending_index])
@pytest.mark.parametrize("policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"])
def test_what_a_pending_action_reads_stays(request_it: Callable[[Bench], None], policy: str) -> None:
    options = {"hoodie.clean.commits.retained": "1", "hoodie.clean.fileversions.retained": "1"}
    table = bench({**OFF, **options, "hoodie.clean.policy": policy})
    needed = {table.upsert(0): "", table.upsert(1): "needed"}
    request_it(table)
    path = next(p for p in table.files() if max(needed) in p and p.startswith("oslo/"))
    for turn in range(2, 5):  # oslo is taken by the clustering: the rest is enough
        table.table.upsert(arrow([Row("b", "rome", turn, turn)]))

    table.table.clean()

    assert path in table.files()


def test_replaced_partitions_go_with_their_folder_once_nobody_reads_them() -> None:
    table = bench({**TWO})
    table.upsert(0)
    before = table.upsert(1)
    table.table.delete_partitions(["oslo"])
    assert any(path.startswith("oslo/") for path in table.files())
    assert table.table.scan(as_of=before).to_arrow().num_rows == 2

    table.table.upsert(arrow([Row("b", "rome", 2, 2)]))
    assert list(table.storage.list("oslo")) != []  # the range still begins at the deletion itself
    table.table.upsert(arrow([Row("b", "rome", 3, 3)]))

    assert list(table.storage.list("oslo")) == []
    snapshot = table.snapshot()
    assert snapshot.listing.source == "metadata table"
    assert snapshot.listing.partitions() == ["rome"]
    assert problems_on(table.storage) == []
    table.upsert(5)  # and it may come again
    assert table.table.scan().to_arrow().num_rows == 2
    assert table.snapshot().listing.partitions() == ["oslo", "rome"]


def test_a_partition_with_files_of_others_keeps_its_folder() -> None:
    table = bench({**OFF, **TWO})
    table.upsert(0)
    table.table.delete_partitions(["oslo"])
    foreign = "oslo/f_9-9-9_20990101000000000.parquet"
    table.storage.put(foreign, b"of a write that is pending elsewhere")
    for turn in range(1, 4):
        table.table.upsert(arrow([Row("b", "rome", turn, turn)]))

    result = table.table.clean()

    assert result.partitions_deleted == 0
    assert [p for p in table.files() if p.startswith("oslo/")] == [foreign]
    assert table.snapshot().listing.partitions() == ["oslo", "rome"]


# Pending cleans.


def plan_for(table: Bench, keep: int, root: str = "file:/somewhere/else") -> CleanerPlan:
    """A plan that deletes all but the newest `keep` files of each partition."""
    files = {}
    for partition in ("oslo", "rome"):
        names = sorted(p.rpartition("_")[2] + " " + p for p in table.files() if p.startswith(f"{partition}/"))
        gone = [name.partition(" ")[2] for name in names[:-keep]]
        files[partition] = tuple(CleanFileInfo(f"{root}/{path}") for path in gone)
    commit = table.snapshot().timeline.completed_writes[-1].requested
    return CleanerPlan(
        ActionInstant(commit, "commit", "COMPLETED"), commit, "KEEP_LATEST_COMMITS",
        file_paths_to_be_deleted_per_partition=files,
    )  # fmt: skip


@pytest.mark.parametrize("inflight", [None, "plan", ""], ids=["requested", "inflight as 1.0.2", "inflight as 1.2.0"])
def test_a_pending_clean_of_apache_hudi_is_carried_out_where_the_table_lies(inflight: str | None) -> None:
    table = bench(OFF)
    for turn in range(4):
        table.upsert(turn)
    plan = plan_for(table, keep=1)
    requested = table.snapshot().timeline.newest or ""
    table.put(requested, "clean", "REQUESTED", encode_cleaner_plan(plan))
    if inflight is not None:
        table.put(requested, "clean", "INFLIGHT", encode_cleaner_plan(plan) if inflight else b"")
        table.storage.delete(next(p for p in table.files() if plan_names(plan)[0] in p))  # it had begun

    result = table.table.clean()

    assert (result.requested, result.files_deleted) == (requested, 6)
    assert result.reason == "every commit is within what KEEP_LATEST_COMMITS retains"
    assert len(table.files()) == 2
    assert [i.state for i in table.actions("clean")] == ["COMPLETED"]
    assert problems_on(table.storage) == []


def plan_names(plan: CleanerPlan) -> list[str]:
    return [name for of in planned_names(plan).values() for name in of]


def test_a_pending_clean_is_finished_after_the_next_commit() -> None:
    table = bench({"hoodie.clean.commits.retained": "50"})
    for turn in range(4):
        table.upsert(turn)
    table.put(table.snapshot().timeline.newest or "", "clean", "REQUESTED", encode_cleaner_plan(plan_for(table, 1)))

    table.upsert(4)

    assert len(table.files()) == 4
    assert [i.state for i in table.actions("clean")] == ["COMPLETED"]
    assert problems_on(table.storage) == []


def test_readers_heed_a_clean_that_is_pending() -> None:
    """Its files may be gone already, and the metadata table lists them still."""
    table = bench(OFF)
    commits = [table.upsert(turn) for turn in range(4)]
    completed = [i.completed for i in table.actions("commit")]
    plan = plan_for(table, keep=1)
    table.put(table.snapshot().timeline.newest or "", "clean", "REQUESTED", encode_cleaner_plan(plan))
    table.storage.delete_many([p for p in table.files() if p.rpartition("/")[2] in plan_names(plan)])

    assert table.table.scan().to_arrow().num_rows == 2
    assert table.table.scan(as_of=commits[3]).to_arrow().num_rows == 2
    with pytest.raises(NotFound, match="the earliest kept commit is"):
        table.table.scan(as_of=commits[2])
    with pytest.raises(NotFound, match="cleaned away after their rows had changed again"):
        table.table.incremental(None, completed[2])
    left = table.table.incremental(None, completed[2], on_cleaned="rows")
    assert left.to_arrow().num_rows == 0  # all were written again since
    assert table.table.incremental(completed[2]).to_arrow().num_rows == 2


def test_a_plan_that_has_become_wrong_deletes_nothing_that_is_needed(caplog: pytest.LogCaptureFixture) -> None:
    """The plan is from before a rollback: what it calls old is the newest there is."""
    table = bench(OFF)
    for turn in range(3):
        table.upsert(turn)
    newest = table.table.scan().to_arrow()
    wrong = plan_for(table, keep=1)
    paths = tuple(CleanFileInfo(f"x/{p}") for p in table.files() if p.startswith("oslo/"))
    wrong = replace(wrong, file_paths_to_be_deleted_per_partition={"oslo": paths})
    table.put(table.snapshot().timeline.newest or "", "clean", "REQUESTED", encode_cleaner_plan(wrong))

    with caplog.at_level(logging.WARNING):
        assert table.table.clean().files_deleted == 2

    assert "1 file(s) in partition 'oslo' are needed again and stay" in caplog.text
    assert table.table.scan().to_arrow().equals(newest)
    assert problems_on(table.storage) == []


def test_a_clean_without_a_plan_is_forgotten() -> None:
    table = bench(OFF)
    table.upsert(0)
    table.put(table.snapshot().timeline.newest or "", "clean", "REQUESTED", b"")

    assert table.table.clean().requested is None
    assert table.actions("clean") == []


def test_sources_of_a_bootstrapped_table_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    table = bench()
    table.upsert(0)
    plan = replace(
        plan_for(table, keep=1),
        file_paths_to_be_deleted_per_partition={"oslo": (CleanFileInfo("file:/source/x.parquet", True),)},
    )
    table.put(table.snapshot().timeline.newest or "", "clean", "REQUESTED", encode_cleaner_plan(plan))

    table.upsert(1)

    assert "a source of a bootstrapped table; let Apache Hudi finish it" in caplog.text
    assert [i.state for i in table.actions("clean")] == ["REQUESTED"]


# Failures, and who else is there.


@dataclass
class FailsOn(CrashingStorage):
    """The store fails each change whose words hold `mark`."""

    survives: int = 1_000_000
    lands: bool = False
    mark: str = "no such words"

    def change(self, what: str, apply: Callable[[], T]) -> T:
        if self.mark in what:
            raise Unavailable(f"{what}: the store did not answer")
        return super().change(what, apply)


@pytest.mark.parametrize("mark", ["clean.requested", "clean.inflight", "delete 'oslo/", ".clean'"])
def test_a_clean_that_fails_fails_no_write_and_is_finished_later(mark: str, caplog: pytest.LogCaptureFixture) -> None:
    storage = FailsOn(MemoryStorage())
    table = bench(TWO, storage)
    for turn in range(3):
        table.upsert(turn)
    storage.mark = mark

    for turn in range(3, 6):
        table.upsert(turn)
        assert {of.row for of in read_rows(table.table.scan().to_arrow()).values()} == set(rows(turn))
    assert caplog.text.count("the commit landed, the clean after it failed and is tried again after the next one") == 3

    storage.mark = "no such words"
    table.upsert(6)
    assert len(table.written_at()) <= 3
    assert problems_on(storage) == []


def test_an_error_that_nobody_expected_fails_no_write(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = bench(TWO)
    for turn in range(3):
        table.upsert(turn)
    monkeypatch.setattr("pyhudi.services.clean.planning.plan_partition", lambda *_: 1 / 0)

    table.upsert(3)

    assert "ZeroDivisionError" in caplog.text


def test_a_clean_waits_for_no_other_writer() -> None:
    table = bench(OFF)
    table.upsert(0)
    other = Handles(table.storage, table.clock, seeded_uuids(2), SerialExecutor()).open()

    with table.table._access.guard.acquire("a write", "now"), pytest.raises(Conflict):
        other.clean()


def test_without_a_metadata_table_the_storage_is_cleaned() -> None:
    table = bench({**TWO, "hoodie.metadata.enable": "false"})
    commits = [table.upsert(turn) for turn in range(6)]

    assert table.written_at() == set(commits[3:])
    assert problems_on(table.storage, has_metadata_table=False) == []


def test_a_table_without_partitions_is_cleaned_and_keeps_its_root() -> None:
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    table = Handles(storage, clock, seeded_uuids(1), SerialExecutor()).create(partition_by=None, properties=TWO)
    for turn in range(6):
        table.insert_overwrite_table(arrow(rows(turn)))

    assert table.scan().to_arrow().num_rows == 2
    assert len(list(without_metadata_table(storage))) == 3
    assert problems_on(storage) == []


# The metadata table's own cleaning.


def test_the_metadata_table_is_cleaned_after_its_compactions() -> None:
    table = bench({"hoodie.metadata.compact.max.delta.commits": "3"})
    counts = []
    for turn in range(40):
        table.upsert(turn)
        counts.append(len(list(table.storage.list(f"{METADATA_TABLE}/files"))))

    own = open_metadata_table(table.storage, UTC)
    assert any(i.action == "clean" and i.is_completed for i in own.timeline)
    assert max(counts[25:]) <= max(counts[:25])
    assert problems_on(table.storage) == []


def test_a_clean_of_the_metadata_table_that_died_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = FailsOn(MemoryStorage())
    table = bench({"hoodie.metadata.compact.max.delta.commits": "3"}, storage)
    for turn in range(14):
        table.upsert(turn)
    storage.mark = "delete '.hoodie/metadata/files/"
    while not any(i.action == "clean" for i in open_metadata_table(storage, UTC).timeline.pending):
        turn += 1
        table.upsert(turn)

    storage.mark = "no such words"
    table.upsert(turn + 1)

    assert open_metadata_table(storage, UTC).timeline.pending == ()
    assert problems_on(storage) == []


@pytest.mark.parametrize(
    "name,value",
    [
        ("hoodie.clean.commits.retained", "0"),
        ("hoodie.clean.hours.retained", "-1"),
        ("hoodie.clean.fileversions.retained", "many"),
        ("hoodie.clean.trigger.max.commits", "0"),
        ("hoodie.clean.automatic", "maybe"),
    ],
)
def test_a_value_that_cannot_be_one_is_refused_before_anything_is_written(name: str, value: str) -> None:
    with pytest.raises(Invalid, match=f"option '{name}'='{value}'"):
        bench({name: value})
    table = bench()
    with pytest.raises(Invalid, match=f"option '{name}'='{value}'"):
        table.upsert(0, {name: value})
    assert table.files() == []
