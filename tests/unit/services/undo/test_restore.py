"""A restore could take a table to a moment that it never was, or go where it must not: behind files that are gone,
another's running work, or a later savepoint.
"""

from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.errors import Conflict, Invalid, NotFound
from pyhudi.format.names import heartbeat_path
from pyhudi.format.timeline.action_files import encode_restore_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import InstantInfo, RestorePlan
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import timeline_layout
from pyhudi.txn.locks.heartbeat import OURS
from pyhudi.txn.undo.restore_plan import plan_restore
from pyhudi.write.handles.base_file_writer import BaseFileWriter
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, read_rows, seeded_uuids

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
KEPT = {"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "true"}
NO_CLEAN = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "100",
}
PARTITION_STATS = {"hoodie.metadata.index.partition.stats.enable": "true"}


def made(version: int = 8, table_type: str = COW, **properties: str) -> tuple[MemoryStorage, HudiTable, list[str]]:
    """A table with three commits of rows k0 to k5, the second and third of which change them; and its commits."""
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    table = Handles(storage, clock, seeded_uuids(1)).create(
        table_version=version, table_type=table_type, properties=NO_CLEAN | properties
    )
    commits = [table.upsert(rows(turn)).requested or "" for turn in (1, 2, 3)]
    return storage, table, commits


def rows(turn: int, count: int = 6) -> object:
    return arrow([Row(f"k{n}", ("oslo", "rome")[n % 2], turn, turn * 10 + n) for n in range(turn - 1, count)])


def layout_of(table: HudiTable) -> Callable[[Instant], str]:
    return table._access.snapshot().timeline.layout.path


@pytest.mark.parametrize(
    "version,table_type",
    [
        (6, MOR), (8, MOR),
        *(pytest.param(*of, marks=pytest.mark.long) for of in ((9, MOR), (6, COW), (8, COW), (9, COW))),
    ],
)  # fmt: skip
def test_a_restore_brings_rows_files_and_every_index_back(version: int, table_type: str) -> None:
    """Behind updates, deletes, compactions, done and planned, replaced groups, a clean and a new index."""
    kept = {**INDEXES, **(PARTITION_STATS if version > 6 else {})}
    storage, table, commits = made(version, table_type, **kept)
    files, before = sorted(table.scan().files()), read_rows(table.scan().to_arrow())
    assert table.savepoint().requested == commits[-1]
    table.upsert(rows(4))
    table.delete(arrow([Row("k0", "oslo", 9, 9)], ["id", "city"]))
    table.insert_overwrite(arrow([Row("q", "rome", 1, 1)]))
    if table_type == MOR:
        table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "1"})
        table.compact()
        table.upsert(rows(5))
        table.schedule_compaction()
        table.upsert(rows(6, 8))
    table.clean(options=KEPT)
    if version > 6:
        table.build_index("secondary_index", columns="note")
    assert read_rows(table.scan().to_arrow()) != before

    result = table.restore(commits[-1])

    assert read_rows(table.scan().to_arrow()) == before
    more = set(table.scan().files()) ^ set(files)
    # Up to version 6 logs stay, and others say that their blocks count no more.
    assert all(".log." in path for path in more) if (version, table_type) == (6, MOR) else not more
    assert result.restored_to == commits[-1]
    assert result.files_deleted > 0
    assert result.dropped == (("secondary_index_note",) if version > 6 else ())
    assert set(table.metadata.partitions_in_use) == {
        "files", "column_stats", "bloom_filters", "record_index", *(["partition_stats"] if version > 6 else [])
    }  # fmt: skip
    assert table.metadata.validate().differences == ()
    assert problems_on(storage) == []
    assert table.timeline()[-1].action == "restore"

    table.upsert(rows(4, 7))
    assert table.scan().to_arrow().num_rows == 7
    assert table.metadata.validate().differences == ()
    newest = table.timeline()[-1].requested
    assert table.restore(commits[-1]).rolled_back == (newest,)
    assert read_rows(table.scan().to_arrow()) == before
    assert table.metadata.validate().differences == ()


@pytest.mark.parametrize("version", [6, 8])
def test_log_compactions_of_the_metadata_table_are_taken_back(version: int) -> None:
    """They hold what writes before the commit logged, and what those logged that go."""
    often = {
        "hoodie.metadata.log.compaction.enable": "true",
        "hoodie.metadata.log.compaction.blocks.threshold": "2",
    }
    storage, table, commits = made(version, MOR, **INDEXES, **often)
    before = read_rows(table.scan().to_arrow())
    for turn in (4, 5, 6, 7):
        table.upsert(rows(turn, 8))
    at = open_metadata_table(storage, UTC).timeline
    assert any(requested > commits[-1] for requested in at.log_compactions)

    table.restore(commits[-1])

    for turn in (8, 9, 10):
        assert table.metadata.validate().differences == ()
        assert problems_on(storage) == []
        assert read_rows(table.scan().to_arrow()) == before
        table.upsert(rows(turn, 12))
        before = read_rows(table.scan().to_arrow())


def test_a_commit_without_a_savepoint_is_restored_while_its_files_are_there() -> None:
    storage, table, commits = made()
    then = read_rows(table.scan(as_of=commits[0]).to_arrow())
    assert table.restore(commits[2]).reason == "nothing was written after this commit"

    assert table.restore(commits[0]).rolled_back == (commits[2], commits[1])

    assert read_rows(table.scan().to_arrow()) == then
    assert problems_on(storage) == []
    table.upsert(rows(2))
    table.upsert(rows(3))
    table.clean(options=KEPT)
    with pytest.raises(NotFound, match="its files were cleaned away"):
        table.restore(commits[0])
    with pytest.raises(NotFound, match="its files were cleaned away"):
        table.savepoint(commits[0])
    for missing in (commits[1], "20200101000000000"):
        with pytest.raises(NotFound, match="no completed write of that requested time"):
            table.restore(missing)


def test_what_a_restore_would_break_stops_it() -> None:
    storage, table, commits = made(table_type=MOR)
    table.savepoint(commits[1])
    with pytest.raises(Invalid, match=rf"found {commits[1]}; delete_savepoint\('{commits[1]}'\) first$"):
        table.restore(commits[0])
    table.delete_savepoint(commits[1])

    compaction = table.schedule_compaction().requested or ""
    storage.put(heartbeat_path(compaction), OURS)
    with pytest.raises(Conflict, match="another writer runs it"):
        table.restore(commits[0])
    storage.delete(heartbeat_path(compaction))
    assert [i.action for i in table.timeline() if i.action == "restore"] == []

    path, writer = layout_of(table), f"{int(compaction) + 100}"
    for state in ("REQUESTED", "INFLIGHT"):
        storage.put(path(Instant(writer, "deltacommit", state)), b"")
    storage.put(heartbeat_path(writer), b"")
    with pytest.raises(Conflict, match=f"'{writer}' of another writer is running"):
        table.restore(commits[0])
    storage.delete(heartbeat_path(writer))

    result = table.restore(commits[0])
    assert compaction in result.rolled_back
    assert problems_on(storage) == []


def test_archived_writes_cannot_be_rolled_back() -> None:
    _, table, commits = made()
    table.savepoint(commits[0])
    few = {"hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2", "hoodie.archive.beyond.savepoint": "true"}
    options = {**few, "hoodie.metadata.compact.max.delta.commits": "1", "hoodie.clean.commits.retained": "1"}
    for turn in (4, 5):
        table.upsert(rows(turn), options=options)
    table.clean(options=options)
    table.archive(options=options)
    assert commits[1] not in [i.requested for i in table.timeline()]

    with pytest.raises(Invalid, match=f"'{commits[1]}' was archived"):
        table.restore(commits[0])


def test_nor_can_those_that_began_before_the_savepoint_and_completed_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _, table, _ = made()

    def write_first(writer: BaseFileWriter, *values: Any, **of: Any) -> None:
        monkeypatch.undo()
        table.savepoint(table.upsert(arrow([Row("other", "rome", 1, 1)])).requested)
        writer.write(*values, **of)

    monkeypatch.setattr(BaseFileWriter, "write", write_first)
    early = table.upsert(arrow([Row("early", "bergen", 1, 1)])).requested
    (saved,) = (i.requested for i in table.timeline() if i.action == "savepoint")
    assert early is not None
    assert early < saved
    few = {"hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2", "hoodie.archive.beyond.savepoint": "true"}
    options = {**few, "hoodie.metadata.compact.max.delta.commits": "1", "hoodie.clean.commits.retained": "1"}
    for turn in (4, 5, 6):
        table.upsert(rows(turn), options=options)
    table.archive(options=options)
    assert early not in [i.requested for i in table.timeline()]

    with pytest.raises(Invalid, match=f"'{early}' was archived"):
        table.restore(saved)


@pytest.mark.parametrize("version", [6, 8])
def test_rows_of_archived_commits_are_there_when_only_the_savepoint_is_left(version: int) -> None:
    """Nothing but the commit with the savepoint stays on the timeline: what is older is archived, not gone."""
    storage, table, _ = made(version)
    few = {
        "hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2", "hoodie.clean.commits.retained": "1",
        "hoodie.metadata.compact.max.delta.commits": "1", "hoodie.clean.automatic": "true",
        "hoodie.archive.automatic": "true",
    }  # fmt: skip
    for turn in (4, 5):
        saved = table.upsert(arrow([Row("k1", "rome", turn, turn)]), options=few).requested or ""
    before = read_rows(table.scan().to_arrow())
    assert {of.requested for of in before.values()} > {saved}
    table.savepoint(saved)
    for turn in (6, 7):
        table.upsert(rows(turn, 9), options=few)

    table.restore(saved)

    assert [i.requested for i in table.timeline() if i.action == "commit"] == [saved]
    assert read_rows(table.scan().to_arrow()) == before
    found = {key[1] for key in read_rows(table.lookup(["k0", "k1", "k2", "k9"]))}
    assert found == {"k0", "k1", "k2"}
    assert table.metadata.validate().differences == ()
    assert problems_on(storage) == []
    assert table.upsert(rows(1)).inserted == 0
    table.delete_savepoint(saved)
    assert table.metadata.validate().differences == ()


@pytest.mark.parametrize("state", ["REQUESTED", "INFLIGHT"])
def test_a_restore_that_another_writer_left_is_finished_when_asked_for(state: str) -> None:
    storage, table, commits = made()
    then = read_rows(table.scan(as_of=commits[1]).to_arrow())
    path, restore = layout_of(table), f"{int(commits[2]) + 100}"
    plan = RestorePlan((InstantInfo(commits[2], "commit"),), savepoint_to_restore=commits[1])
    storage.put(path(Instant(restore, "restore", "REQUESTED")), encode_restore_plan(plan))
    if state == "INFLIGHT":
        storage.put(path(Instant(restore, "restore", "INFLIGHT")), b"")

    assert read_rows(table.scan().to_arrow()) == then
    for call in (lambda: table.upsert(rows(4)), lambda: table.restore(commits[0]), table.savepoint):
        with pytest.raises(Conflict, match=f"restore '{restore}' of another writer is pending"):
            call()
    result = table.restore(commits[1])

    assert (result.requested, result.rolled_back) == (restore, (commits[2],))
    assert read_rows(table.scan().to_arrow()) == then
    assert problems_on(storage) == []


@pytest.mark.parametrize("of_clustering", [False, True])
def test_a_savepoint_keeps_what_a_restore_needs_around_a_clustering_that_ran_later(of_clustering: bool) -> None:
    """It was planned before a write, so that time travel and cleans count it as older. A restore to that write takes it
    back, and one to the clustering leaves the write.
    """
    table = Handles(MemoryStorage()).create(properties={**NO_CLEAN, "hoodie.clean.commits.retained": "1"})
    for n in (1, 2):
        table.insert(arrow([Row(f"k{n}", "oslo", n, n)]), options={"hoodie.parquet.small.file.limit": "0"})
    plan = table.schedule_clustering().requested or ""
    table.upsert(arrow([Row("r", "rome", 1, 1)]))
    assert table.run_clusterings().requested == plan
    saved = table.savepoint(plan if of_clustering else None).requested
    for n in (2, 3, 4):
        table.upsert(arrow([Row("r", "rome", n, n)]))
    assert table.clean().files_deleted > 0

    assert (plan in table.restore(saved).rolled_back) is not of_clustering
    assert {key[1]: of.row.v for key, of in read_rows(table.scan().to_arrow()).items()} == {"k1": 1, "k2": 2, "r": 1}
    assert table.metadata.validate().differences == ()


def test_a_savepoint_keeps_its_commit_and_files_until_it_is_deleted() -> None:
    storage, table, commits = made()
    saved = table.savepoint(commits[1], user="me", comment="why")
    assert table.savepoints() == (saved,)
    files = saved.file_count
    table.upsert(rows(4))
    table.clean(options=KEPT)
    before = table.restore(commits[1])
    assert files == table.scan().to_arrow().num_rows // 3
    assert before.restored_to == commits[1]

    table.upsert(rows(3))
    table.upsert(rows(4))
    assert table.delete_savepoint(commits[1]) == saved
    assert table.clean(options=KEPT).files_deleted > 0
    with pytest.raises(NotFound, match="cleaned away"):
        table.savepoint(commits[1])
    assert problems_on(storage) == []


def test_a_savepoint_one_of_whose_files_is_gone_is_none_to_go_back_to() -> None:
    storage, table, commits = made()
    table.savepoint(commits[1])
    (lost, *_) = (path for path in table.scan(as_of=commits[1]).files() if commits[1] in path)
    storage.delete(lost)

    with pytest.raises(NotFound, match=f"its savepoint names '{lost}', which is gone"):
        table.restore(commits[1])
    assert [i for i in table.timeline() if i.action == "restore"] == []


def test_a_savepoint_that_dies_is_taken_back_by_the_next_writer() -> None:
    storage, table, commits = made()
    storage.put(heartbeat_path(commits[2]), OURS)
    storage.put(layout_of(table)(Instant(commits[2], "savepoint", "INFLIGHT")), b"")

    assert table.savepoints() == ()
    table.upsert(rows(4))

    assert [i for i in table.timeline() if i.action == "savepoint"] == []
    assert problems_on(storage) == []
    with pytest.raises(Invalid, match="expected a commit to make a savepoint of, found none"):
        Handles(MemoryStorage()).create().savepoint()


@pytest.mark.parametrize("version", [6, 8])
def test_a_commit_counts_while_a_savepoint_of_it_is_made(version: int) -> None:
    """The savepoint has the commit's time. Its new files, as the metadata table lists them, were taken for pending."""
    storage, table, _ = made(version)
    commit = table.insert(arrow([Row("new", "oslo", 1, 1)])).requested or ""
    before = read_rows(table.scan().to_arrow())
    storage.put(layout_of(table)(Instant(commit, "savepoint", "INFLIGHT")), b"")

    assert read_rows(table.scan().to_arrow()) == before
    assert table.metadata.validate().differences == ()
    assert len(table.lookup(["new"]).to_pylist()) == 1
    table.upsert(arrow([Row("new", "oslo", 2, 2)]))
    assert read_rows(table.scan().to_arrow()).keys() == before.keys()


def planned(instants: list[Instant], to: int, *, version: str = "2", table_type: str = MOR) -> list[str]:
    layout = timeline_layout({"hoodie.timeline.layout.version": version})
    timeline = Timeline(layout, tuple(sorted(instants, key=lambda i: i.requested)))
    plan = plan_restore(
        timeline, timeline.get_completed(str(to)), is_merge_on_read=table_type == MOR,
        is_clustering=lambda i: i.action == "clustering" or (version == "1" and i.action == "replacecommit"),
    )  # fmt: skip
    return [f"{info.requested} {info.action}" for info in plan.instants_to_rollback]


def test_what_came_after_is_told_by_completion_and_of_compactions_by_request() -> None:
    def done(requested: int, completed: int, action: str = "deltacommit") -> Instant:
        return Instant(str(requested), action, "COMPLETED", str(completed))

    instants = [
        done(10, 19), done(11, 30), done(13, 20), done(21, 26, "commit"), done(22, 24),
        Instant("09", "commit", "COMPLETED", "40"),
        Instant("12", "compaction", "REQUESTED"), Instant("15", "logcompaction", "INFLIGHT"),
        Instant("23", "clustering", "REQUESTED"), Instant("25", "compaction", "INFLIGHT"),
        done(13, 27, "savepoint"), done(16, 17, "clean"), Instant("28", "clean", "REQUESTED"),
    ]  # fmt: skip
    assert planned(instants, 13) == [
        "23 clustering", "25 compaction", "15 logcompaction", "11 deltacommit", "21 commit", "22 deltacommit",
    ]  # fmt: skip
    assert planned(instants, 13, table_type=COW)[:5] == [
        "23 clustering", "25 compaction", "15 logcompaction", "12 compaction", "09 commit",
    ]  # fmt: skip
    assert planned(instants, 13, version="1") == [
        "23 clustering", "25 compaction", "22 deltacommit", "21 commit", "15 logcompaction",
    ]  # fmt: skip
