"""An archival could die at any step, and an instant be gone from the timeline before the history has it, or be in
both and counted twice. It is stopped at every change of the storage, both ways; every reader must find every
commit once, and the next archival must leave what one that was never stopped leaves."""

from functools import cache

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import OutcomeUnknown, Unavailable
from pyhudi.format.timeline.lsm import decode_manifest, manifest_number
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.support.crashes import crash_points, distinct, every_nth
from tests.support.failing import FailingStorage
from tests.support.model import Handles, Key, Row, StepClock, Stored, arrow, problems_on, read_rows, seeded_uuids

START = 1_780_000_000_000
FOLDER = ".hoodie/timeline/history"
METADATA_TIMELINE = ".hoodie/metadata/.hoodie/timeline"
KEEP = {
    "hoodie.keep.max.commits": "4",
    "hoodie.keep.min.commits": "3",
    "hoodie.clean.automatic": "false",
    "hoodie.clean.commits.retained": "2",
    "hoodie.archive.automatic": "false",
    "hoodie.timeline.compaction.batch.size": "2",
    "hoodie.timeline.manifest.retained.versions": "1",
    "hoodie.metadata.compact.max.delta.commits": "2",
}

Instants = list[tuple[str, str, str | None]]


def handle(storage: Storage, *, later_ms: int = 0) -> HudiTable:
    return Handles(storage, StepClock(START + later_ms), seeded_uuids(later_ms), SerialExecutor()).open()


def write(table: HudiTable, number: int) -> None:
    table.upsert(arrow([Row(f"k{number}", "", number, number), Row("k", "", number, number)]))


@cache
def before() -> MemoryStorage:
    """A table whose history has files to merge and manifests to delete once more is archived."""
    storage = MemoryStorage(clock_ms=lambda: START)
    handles = Handles(storage, StepClock(START), seeded_uuids(0), SerialExecutor())
    table = handles.create(partition_by=None, properties=KEEP)
    for number in range(11):
        write(table, number)
        if number in (5, 7):
            assert table.archive().archived > 0
    return storage


def archive(storage: Storage) -> None:
    handle(storage, later_ms=60_000).archive()


def everything(storage: Storage) -> tuple[Instants, dict[Key, Stored], int]:
    """What readers find: every instant, the rows, and how many of them an incremental query finds."""
    table = handle(storage, later_ms=120_000)
    instants = [(i.requested, i.action, i.completed) for i in table.timeline(history=True)]
    since = next(i.completed for i in table.timeline(history=True) if i.action == "commit")
    return instants, read_rows(table.scan().to_arrow()), table.incremental(since).to_arrow().num_rows


def left(storage: Storage) -> tuple[list[str], list[str], list[str]]:
    """The names on both timelines, and of the files of archived instants."""
    return tuple(  # type: ignore[return-value]
        [file.path for file in storage.list(folder) if "manifest_" not in file.path and "_version_" not in file.path]
        for folder in (".hoodie/timeline", METADATA_TIMELINE, FOLDER)
    )


@pytest.mark.parametrize("batch", [50, 2])
def test_an_archival_that_dies_loses_and_doubles_nothing(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`batch`: how many instants go in one turn."""
    monkeypatch.setattr("pyhudi.services.archive.run.BATCH_INSTANTS_MAX", batch)
    expected = everything(before())
    done = before().copy()
    archive(done)
    assert everything(done) == expected
    steps, unfinished = 0, 0

    for what, disk in distinct(crash_points(archive, before().copy)):
        try:
            assert everything(disk) == expected
            unfinished += left(disk)[:2] != left(done)[:2]
            if steps % 4 == 0:
                check_next(disk, expected)
        except BaseException as error:
            error.add_note(f"crash at {what}")
            raise
        steps += 1

    assert steps > 35
    assert unfinished > 15


def check_next(disk: MemoryStorage, expected: tuple[Instants, dict[Key, Stored], int]) -> None:
    """The next writes and archivals go on from whatever the dead one left, and leave nothing of it."""
    table = handle(disk, later_ms=180_000)
    for number in (20, 21):
        write(table, number)
    table.archive()
    instants, rows, _ = everything(disk)
    assert instants[: len(expected[0])] == expected[0]
    assert [action for _, action, _ in instants[len(expected[0]) :]] == ["commit", "commit"]
    assert len(rows) == len(expected[1]) + 2
    active = [i for i in table.timeline() if i.action == "commit"]
    assert 3 <= len(active) <= 4
    assert problems_on(disk) == []
    assert not [i for i in table.timeline() if not i.is_completed]
    states = [file.path for file in disk.list(".hoodie/timeline")]
    assert len(states) == 3 * len(list(table.timeline()))


def test_a_dead_archival_leaves_no_file_for_good() -> None:
    """Files that no manifest lists go with the manifests that later archivals delete."""
    for what, disk in every_nth(crash_points(archive, before().copy), 23):
        table = handle(disk, later_ms=180_000)
        for number in range(20, 26):
            write(table, number)
            if number % 2:
                table.archive()
        names = {file.path.rpartition("/")[2] for file in disk.list(FOLDER)} - {"_version_"}
        manifests = {name for name in names if manifest_number(name) is not None}
        listed = {
            file.name.format()
            for name in manifests
            for file in decode_manifest(disk.get(f"{FOLDER}/{name}"), path=name)
        }
        assert names - manifests == listed, what
        assert len(manifests) <= 4, what


@pytest.mark.parametrize("lands", [True, False])
def test_a_store_that_fails_once_leaves_a_whole_history(lands: bool) -> None:
    expected = everything(before())
    fails_at, failed = 0, True
    while failed:
        disk = before().copy()
        storage = FailingStorage(disk, fails_at, lands, 1)
        try:
            archive(storage)
        except Unavailable:
            assert storage.failed
        failed = bool(storage.failed)
        try:
            assert everything(disk) == expected
        except BaseException as error:
            error.add_note(f"failure of request {fails_at}, {storage.failed}")
            raise
        fails_at += 3

    assert fails_at > 60


def test_a_failed_archival_does_not_fail_the_write_before_it(caplog: pytest.LogCaptureFixture) -> None:
    """The commit has landed; the archival that follows it is tried again after the next one."""
    disk = before().copy()
    options = {"hoodie.archive.automatic": "true"}
    for fails_at in range(1_000):
        storage = FailingStorage(disk.copy(), fails_at, False, 1_000_000)
        try:
            table = handle(storage, later_ms=60_000)
            result = table.upsert(arrow([Row("new", "", 50, 50)]), options=options)
        except (Unavailable, OutcomeUnknown):
            continue
        break
    assert "the archival after it failed" in caplog.text
    assert result.completed is not None

    again = handle(storage.inner, later_ms=120_000)
    again.upsert(arrow([Row("newer", "", 51, 51)]), options=options)
    assert len([i for i in again.timeline() if i.action == "commit"]) <= 4
