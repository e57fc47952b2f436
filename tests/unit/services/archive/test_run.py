"""A timeline could grow for good, or an instant be lost on its way into the history, be doubled, or go while a
reader needs it. Tables are archived after each of hundreds of writes, and everything is counted."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC
from typing import Any

import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Conflict, LockLost, NotFound
from pyhudi.format.timeline.action_files import (
    encode_cleaner_plan,
    encode_commit_avro,
    encode_compaction_plan,
    encode_requested_replace,
)
from pyhudi.format.timeline.instant import Instant, State
from pyhudi.format.timeline.lsm import HISTORY_SCHEMA
from pyhudi.format.timeline.records import CleanerPlan, CommitMetadata, CompactionPlan, RequestedReplaceMetadata
from pyhudi.services.archive.run import ArchiveResult, carry_out_archival
from pyhudi.services.archive.settings import ArchiveSettings
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.table.changes.incremental import CommitRange, instants_in
from pyhudi.table.view.commits import read_clean, read_commit
from pyhudi.testing.counting import CountingStorage, RequestKind
from pyhudi.timeline.active import read_timeline
from pyhudi.timeline.layout import timeline_layout
from pyhudi.timeline.lsm_history import read_manifest
from pyhudi.txn.locks.hold import CertainHold
from pyhudi.write.handles.base_file_writer import BaseFileWriter
from tests.support.model import Handles, Row, StepClock, arrow, read_rows, seeded_uuids

LAYOUT = timeline_layout({"hoodie.timeline.layout.version": "2", "hoodie.table.initial.version": "8"})
METADATA_LAYOUT_FOLDER = ".hoodie/metadata/.hoodie/timeline"
SMALL = {
    "hoodie.keep.max.commits": "6",
    "hoodie.keep.min.commits": "4",
    "hoodie.clean.automatic": "false",
    "hoodie.clean.commits.retained": "2",
    "hoodie.timeline.compaction.batch.size": "3",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
NO_ARCHIVE = {**SMALL, "hoodie.archive.automatic": "false"}


HELD = CertainHold().confirm
MERGING = ArchiveSettings(files_per_merge=2, manifests_kept=1)


def t(number: int) -> str:
    return f"20261121110000{number:03d}"


def table_on(storage: Storage, properties: Mapping[str, str] | None = None, *, version: int = 8) -> HudiTable:
    handles = Handles(storage, StepClock(), seeded_uuids(1), SerialExecutor())
    return handles.create(partition_by=None, table_version=version, properties={**SMALL, **(properties or {})})


def write(table: HudiTable, number: int, options: Mapping[str, object] | None = None) -> str:
    requested = table.upsert(arrow([Row(f"k{number % 5}", "", number, number)]), options=options).requested
    assert requested is not None
    return requested


def requested_times(table: HudiTable, action: str = "commit", *, history: bool = True) -> list[str]:
    return [i.requested for i in table.timeline(history=history) if i.action == action]


def timeline_files(storage: Storage, folder: str = ".hoodie/timeline") -> int:
    return len(list(storage.list(folder)))


@pytest.mark.parametrize("version", [8, 9])
def test_a_table_stays_bounded_and_remembers_every_commit(version: int) -> None:
    storage = MemoryStorage()
    table = table_on(storage, version=version)
    made, most, most_in_metadata, most_in_history = [], 0, 0, 0
    for number in range(30):
        made.append(write(table, number))
        most = max(most, timeline_files(storage))
        most_in_metadata = max(most_in_metadata, timeline_files(storage, METADATA_LAYOUT_FOLDER))
        most_in_history = max(most_in_history, timeline_files(storage, LAYOUT.history_folder))

    assert requested_times(table) == made
    assert len(requested_times(table, history=False)) <= 6
    assert most <= 3 * (6 + 1)
    assert most_in_metadata <= 3 * 16
    assert most_in_history <= 20
    rows = read_rows(table.scan().to_arrow())
    assert {of.row.ts for of in rows.values()} == {25, 26, 27, 28, 29}
    assert read_rows(table.incremental().to_arrow()) == rows
    completed = {i.requested: i.completed for i in table.timeline(history=True)}
    since = read_rows(table.incremental(completed[made[26]]).to_arrow())
    assert {of.row.ts for of in since.values()} == {27, 28, 29}


@pytest.mark.long
def test_a_table_of_200_commits_stays_bounded_with_the_defaults() -> None:
    storage = MemoryStorage()
    table = Handles(storage, StepClock(), seeded_uuids(1), SerialExecutor()).create(partition_by=None)
    made = [write(table, number) for number in range(210)]

    assert requested_times(table) == made
    assert len(requested_times(table, history=False)) <= 30
    assert timeline_files(storage) <= 3 * (31 + 31)
    assert timeline_files(storage, METADATA_LAYOUT_FOLDER) <= 3 * 2 * 45
    assert timeline_files(storage, LAYOUT.history_folder) <= 30


def test_hundreds_of_instants_are_each_archived_once() -> None:
    """The same on a bare timeline, so that the history grows several layers."""
    storage = MemoryStorage()
    settings = ArchiveSettings(files_per_merge=3)
    for number in range(0, 600, 6):
        batch = [put(storage, n) for n in range(number, number + 6)]
        carry_out_archival(storage, LAYOUT, UTC, batch, settings, confirm=HELD)

    timeline = read_timeline(storage, LAYOUT, UTC)
    assert timeline.instants == ()
    assert [i.requested for i in timeline.history.instants()] == [t(n) for n in range(600)]
    found = timeline.history.instants(requested_from=t(500), requested_until=t(501))
    assert [timeline.history.read_commit(i).operation_type for i in found] == [t(500), t(501)]
    assert max(file.name.layer for file in read_manifest(storage, LAYOUT.history_folder).files) >= 3
    assert timeline_files(storage, LAYOUT.history_folder) < 40


def put(storage: Storage, number: int, action: str = "commit", plan: bytes = b"", inflight: bytes = b"") -> Instant:
    """A completed instant with its earlier states."""
    states: tuple[tuple[State, bytes], ...] = (("REQUESTED", plan), ("INFLIGHT", inflight))
    for state, content in states:
        storage.put(LAYOUT.path(Instant(t(number), action, state)), content)
    done = Instant(t(number), action, "COMPLETED", t(number + 1))
    storage.put(LAYOUT.path(done), encode_commit_avro(CommitMetadata({}, t(number))))
    return done


def archived_rows(storage: Storage) -> list[dict[str, object]]:
    (file,) = read_manifest(storage, LAYOUT.history_folder).files
    rows = pq.read_table(io.BytesIO(storage.get(f"{LAYOUT.history_folder}/{file.name.format()}")))
    assert rows.schema.remove_metadata().equals(HISTORY_SCHEMA)
    listed: list[dict[str, object]] = rows.to_pylist()
    return listed


def test_plans_are_archived_with_what_they_led_to() -> None:
    """Spec: format/timeline.md section 5, "plan"."""
    storage = MemoryStorage()
    clean = encode_cleaner_plan(CleanerPlan(None, "", "KEEP_LATEST_COMMITS"))
    compaction = encode_compaction_plan(CompactionPlan(()))
    clustering = encode_requested_replace(RequestedReplaceMetadata("CLUSTER"))
    profile = encode_commit_avro(CommitMetadata({}, "INSERT_OVERWRITE"))
    instants = [
        put(storage, 1, inflight=profile),
        put(storage, 2, "clean", clean, clean),
        put(storage, 3, "compaction", compaction),
        put(storage, 4, "clustering", clustering),
        put(storage, 5, "replacecommit", clustering, profile),
        put(storage, 6, "replacecommit"),
        put(storage, 7, "rollback", b"a plan"),
        put(storage, 8, "logcompaction", compaction),
    ]

    carry_out_archival(storage, LAYOUT, UTC, instants, ArchiveSettings(), confirm=HELD)

    found = [(row["action"], row["plan"]) for row in archived_rows(storage)]
    assert found == [
        ("commit", None), ("clean", clean), ("commit", compaction), ("replacecommit", clustering),
        ("replacecommit", profile), ("replacecommit", None), ("rollback", None), ("deltacommit", compaction),
    ]  # fmt: skip
    assert list(read_timeline(storage, LAYOUT, UTC)) == []


def test_what_the_history_has_already_is_only_deleted() -> None:
    storage = MemoryStorage()
    first = [put(storage, n) for n in (1, 2, 3)]
    carry_out_archival(storage, LAYOUT, UTC, first, ArchiveSettings(), confirm=HELD)
    again = [put(storage, n) for n in (2, 3)]

    carry_out_archival(storage, LAYOUT, UTC, [*again, put(storage, 4)], ArchiveSettings(), confirm=HELD)

    names = [file.name.format() for file in read_manifest(storage, LAYOUT.history_folder).files]
    assert names == [f"{t(1)}_{t(3)}_0.parquet", f"{t(4)}_{t(4)}_0.parquet"]
    carry_out_archival(storage, LAYOUT, UTC, [put(storage, 4)], ArchiveSettings(), confirm=HELD)
    timeline = read_timeline(storage, LAYOUT, UTC)
    assert timeline.instants == ()
    assert [i.requested for i in timeline.history.instants()] == [t(n) for n in (1, 2, 3, 4)]


def test_markers_that_were_left_of_archived_instants_go() -> None:
    storage = MemoryStorage()
    storage.put(f".hoodie/.temp/{t(1)}/oslo/x.marker.CREATE", b"")
    storage.put(f".hoodie/.temp/{t(9)}/oslo/x.marker.CREATE", b"")

    carry_out_archival(storage, LAYOUT, UTC, [put(storage, 1)], ArchiveSettings(), confirm=HELD)

    assert list(storage.list_folders(".hoodie/.temp")) == [f".hoodie/.temp/{t(9)}"]


def test_archive_says_what_it_did_or_why_it_did_nothing() -> None:
    table = table_on(MemoryStorage(), {"hoodie.archive.automatic": "false"})
    for number in range(6):
        write(table, number)
    assert table.archive() == ArchiveResult(
        archived=0, metadata_archived=0, reason="6 completed writes: expected more than 6 before any goes"
    )

    for number in range(6, 12):
        write(table, number)
    result = table.archive()

    assert (result.archived, result.reason) == (8, "")
    assert result.metadata_archived > 0
    assert len(requested_times(table, history=False)) == 4
    assert len(requested_times(table)) == 12
    assert table.archive().archived == 0


def test_nothing_is_archived_that_the_metadata_table_was_not_compacted_after() -> None:
    table = table_on(MemoryStorage(), {**NO_ARCHIVE, "hoodie.metadata.compact.max.delta.commits": "50"})
    for number in range(9):
        write(table, number)

    assert table.archive().reason == "everything is held by the metadata table, which was not compacted yet"


def test_logs_hold_their_writes_while_an_index_build_stays_before_them() -> None:
    """Apache Hudi 1.2.0 would lose them (`tests/interop/test_archived_logs.py`)."""
    handles = Handles(MemoryStorage(), StepClock(), seeded_uuids(1), SerialExecutor())
    table = handles.create(partition_by=None, table_version=9, table_type="MERGE_ON_READ", properties=SMALL)
    write(table, 0)
    table.build_index("record_index")
    for number in range(1, 15):
        write(table, number)

    held = table.archive()
    assert held.archived == 0
    assert "compacted and cleaned away; for the indexing" in held.reason

    table.compact()
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    for number in range(5):
        write(table, number)
    table.compact()
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    assert table.archive().archived > 0
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [f"k{n}" for n in range(5)]


@pytest.mark.parametrize("version", [6, 8])
def test_deleted_rows_stay_deleted_where_cleans_spared_their_files_for_an_index(version: int) -> None:
    """The write that deleted them was archived while their files were stored, and they came back."""
    automatic = {**SMALL, "hoodie.clean.automatic": "true"}
    storage = MemoryStorage()
    handles = Handles(storage, StepClock(), seeded_uuids(1), SerialExecutor())
    table = handles.create(table_version=version, properties=automatic)
    table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1)]))
    table.schedule_index("column_stats" if version < 8 else "record_index")
    replaced = table.delete_partitions(["oslo"]).requested
    for ts in range(6):
        table.upsert(arrow([Row("b", "rome", ts, 1)]))
    table.run_indexes()
    for ts in range(6, 14):
        table.upsert(arrow([Row("b", "rome", ts, 1)]))
        assert table.scan().to_arrow()["id"].to_pylist() == ["b"]

    assert replaced not in requested_times(table, "replacecommit", history=False), "it held the timeline for good"
    assert not list(storage.list("oslo"))


def test_a_write_stays_that_replaced_files_of_which_the_last_clean_knew_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clean that keeps a number of versions ran while the write was under way."""
    table = table_on(MemoryStorage(), {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"})
    for number in (0, 5):
        write(table, number)

    def clean_first(writer: BaseFileWriter, *rows: Any, **of: Any) -> None:
        monkeypatch.undo()
        assert table.clean(options={"hoodie.clean.fileversions.retained": "1"}).files_deleted
        writer.write(*rows, **of)

    monkeypatch.setattr(BaseFileWriter, "write", clean_first)
    table.insert_overwrite(arrow([Row("a", "", 1, 1)]))
    for number in range(8):
        table.upsert(arrow([Row("b", "", number, 1)]))

    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ["a", "b"]


@pytest.mark.parametrize("version", [6, 9])
def test_rows_stay_when_the_savepoint_goes_behind_which_their_writes_were_to_be_archived(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apache Hudi would not read them (`tests/interop/test_archived_timelines.py`), and archives them all the same."""
    beyond = {**SMALL, "hoodie.archive.beyond.savepoint": "true", "hoodie.clean.automatic": "true"}
    for archives_as_apache_hudi_does in (False, True):
        if archives_as_apache_hudi_does:
            monkeypatch.setattr("pyhudi.services.archive.plan.savepoint_barrier", lambda *_, **__: None)
        handles = Handles(MemoryStorage(), StepClock(), seeded_uuids(1), SerialExecutor())
        table = handles.create(table_version=version, properties=beyond)
        saved = table.upsert(arrow([Row("k", "saved", 1, 1)])).requested or ""
        table.savepoint(saved)
        for number in range(12):
            table.upsert(arrow([Row("k", f"city {number}", 1, 1)]))
        is_left = len(requested_times(table, history=False)) == 13
        assert is_left is not archives_as_apache_hudi_does

        table.delete_savepoint(saved)
        assert len(table.scan().to_arrow()) == 13
        table.upsert(arrow([Row("k", "last", 1, 1)]))
        assert len(table.scan().to_arrow()) == 14


def test_a_table_without_a_metadata_table_is_archived_too() -> None:
    table = table_on(MemoryStorage(), {"hoodie.metadata.enable": "false"})
    made = [write(table, number) for number in range(15)]

    assert requested_times(table) == made
    assert len(requested_times(table, history=False)) <= 6


def test_writes_archive_by_themselves_unless_told_not_to() -> None:
    table = table_on(MemoryStorage())
    for number in range(10):
        write(table, number, {"hoodie.archive.automatic": "false"})
    assert len(requested_times(table, history=False)) == 10

    write(table, 10)

    assert len(requested_times(table, history=False)) == 4


def test_a_write_that_has_nothing_to_archive_asks_for_nothing() -> None:
    def requests(options: Mapping[str, object]) -> dict[RequestKind, int]:
        counting = CountingStorage(MemoryStorage())
        table = table_on(counting)
        write(table, 0)
        counting.reset()
        write(table, 1, options)
        return dict(counting.counts)

    assert requests({}) == requests({"hoodie.archive.automatic": "false"})


def test_a_table_that_somebody_writes_to_is_not_archived() -> None:
    storage = MemoryStorage()
    table = table_on(storage)
    write(table, 0)

    with table._access.guard.acquire("a test", t(1)), pytest.raises(Conflict, match="a test"):
        table.archive()


def test_cleaned_and_archived_tables_answer_for_what_is_left() -> None:
    table = table_on(MemoryStorage(), {"hoodie.clean.automatic": "true"})
    made = [write(table, number) for number in range(20)]

    cleans = requested_times(table, "clean")
    assert len(cleans) > len(requested_times(table, "clean", history=False)) >= 1
    rows = read_rows(table.scan().to_arrow())
    assert read_rows(table.scan(as_of=made[-1]).to_arrow()) == rows
    assert read_rows(table.incremental().to_arrow()) == rows


def test_time_travel_to_an_archived_commit() -> None:
    table = table_on(MemoryStorage())
    made = [write(table, number) for number in range(12)]
    archived = set(made) - set(requested_times(table, history=False))
    assert made[3] in archived

    then = read_rows(table.scan(as_of=made[3]).to_arrow())

    assert {of.row.ts for of in then.values()} == {0, 1, 2, 3}
    assert {of.requested for of in then.values()} == set(made[:4])


def test_a_reader_who_listed_the_timeline_before_an_archival_finds_what_went_meanwhile() -> None:
    table = table_on(MemoryStorage(), {**NO_ARCHIVE, "hoodie.clean.automatic": "true"})
    for number in range(12):
        write(table, number)
    snapshot = table._access.snapshot()
    cleans = [i for i in snapshot.timeline if i.action == "clean"]
    before = [read_commit(snapshot.storage, snapshot.timeline, i) for i in snapshot.timeline.completed_writes]

    assert table.archive().archived > 0

    assert snapshot.storage.head(LAYOUT.path(cleans[0])) is None
    assert [read_commit(snapshot.storage, snapshot.timeline, i) for i in snapshot.timeline.completed_writes] == before
    clean = read_clean(snapshot.storage, snapshot.timeline, cleans[0])
    assert clean is not None
    assert clean.start_clean_time == cleans[0].requested
    assert [i.requested for i in instants_in(snapshot, CommitRange(None, None))] == requested_times(table)
    lost = Instant(t(1), "commit", "COMPLETED", t(2))
    timeline = replace(snapshot.timeline, instants=(lost,))
    with pytest.raises(NotFound, match=t(1)):
        read_commit(snapshot.storage, timeline, lost)


def test_an_archival_that_no_longer_holds_the_table_stops_before_its_next_step() -> None:
    """The table's lease may end while its holder sleeps: another writer may be archiving by then."""
    stopped = 0
    for allowed in range(20):
        storage = MemoryStorage()
        for first in (1, 4):
            carry_out_archival(
                storage, LAYOUT, UTC, [put(storage, n) for n in range(first, first + 3)], MERGING, confirm=HELD
            )
        asked = iter([None] * allowed)

        def confirm(left: Iterator[None] = asked) -> None:
            if next(left, "none") is not None:
                raise LockLost("the lease ended")

        try:
            carry_out_archival(storage, LAYOUT, UTC, [put(storage, n) for n in (7, 8)], MERGING, confirm=confirm)
        except LockLost:
            stopped += 1
        timeline = read_timeline(storage, LAYOUT, UTC)
        assert [i.requested for i in timeline.with_archived()] == [t(n) for n in range(1, 9)]
        if allowed == 0:
            assert [i.requested for i in timeline.instants] == [t(7), t(8)]

    assert stopped >= 3
