"""A clean of many files deletes them without the table's guard. Others could meet it half done: lose files of theirs,
read files that are gone, take the same clean for theirs, or wait for it for ever. Each meeting is played here, while
the clean has deleted its first file and not yet its second.
"""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyhudi import Conflict, HudiTable, NotFound, Unavailable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.txn.locks.guard import Guard, MemoryGuard
from pyhudi.txn.locks.hold import Hold
from tests.concurrency.test_pairs import is_at_work
from tests.concurrency.test_second_writer import SOURCE_DIR, watched
from tests.support.model import Row, StepClock, arrow, problems_on, read_rows, seeded_uuids

UUIDS = seeded_uuids(7)
KEEPS_ONE = {"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"}
FREELY = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
"""The first rows of a bucket are then a log."""
AT_ONCE = {"hoodie.write.lock.wait_time_ms": 0}
DEAD_MS = 10 * 60_000


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every clean has too many files for one turn."""
    monkeypatch.setattr("pyhudi.services.clean.run.IN_TURN_FILES_MAX", 0)


class Disk:
    """A table in memory that several handles have open. Its clock goes on by a millisecond a look."""

    def __init__(self, *, version: int = 9, table_type: str = "COPY_ON_WRITE") -> None:
        self.clock = StepClock()
        self.storage = MemoryStorage(clock_ms=lambda: self.clock.ms)
        self.version, self.table_type = version, table_type

    def create(self, turns: int = 4, cities: tuple[str, ...] = ("oslo", "rome")) -> HudiTable:
        table = HudiTable.create(
            "", name="t", record_key="id", partition_by="city", ordering="ts", table_type=self.table_type,
            table_version=self.version, storage=self.storage, clock=self.clock, random=UUIDS,
            executor=SerialExecutor(), properties=KEEPS_ONE,
        )  # fmt: skip
        for turn in range(turns):
            table.upsert(arrow([Row(f"k-{city}", city, turn, turn) for city in cities]))
        return table

    def open(self, storage: Storage | None = None, lock: Guard | None = None) -> HudiTable:
        return HudiTable.open(
            "", storage=storage or self.storage, clock=self.clock, random=UUIDS, executor=SerialExecutor(),
            options=AT_ONCE, lock=lock,
        )  # fmt: skip

    def deleting(self, then: Callable[[], object], lock: Guard | None = None, *, after: int = 1) -> HudiTable:
        """A handle whose deletions of data files let something happen, once so many of them are done."""
        deleted: list[str] = []

        def before(what: str) -> None:
            if what.startswith("delete") and ".parquet" in what and ".hoodie" not in what:
                deleted.append(what)
                if len(deleted) == after + 1:
                    then()

        return self.open(watched(self.storage, before), lock)

    def check(self, rows: dict[str, int], *, is_pending: bool = False) -> None:
        """`is_pending`: a clean is left that has deleted some of its files."""
        table = self.open()
        assert {key[1]: of.row.v for key, of in read_rows(table.scan().to_arrow()).items()} == rows
        assert is_pending or problems_on(self.storage) == []
        assert table.metadata.validate().differences == ()


def cleans(table: HudiTable) -> list[str]:
    return [i.state for i in table.timeline() if i.action == "clean"]


@pytest.mark.parametrize("files,is_free", [(101, True), (100, False)])
def test_a_clean_of_more_than_a_hundred_files_lets_go_of_the_table(files: int, is_free: bool) -> None:
    disk = Disk()
    disk.create(3, tuple(f"c{n}" for n in range(files)))
    seen: list[bool] = []
    result = disk.deleting(lambda: seen.append(is_at_work(disk.open()))).clean()
    assert (result.files_deleted, seen) == (files, [is_free])
    disk.check({f"k-c{n}": 2 for n in range(files)})


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_write_begins_and_completes_while_files_are_deleted(version: int, table_type: str, beside: None) -> None:
    disk = Disk(version=version, table_type=table_type)
    table = disk.create()
    for _ in range(2 if table_type == "MERGE_ON_READ" else 0):
        table.upsert(arrow([Row("k-oslo", "oslo", 4, 4)]))
        table.compact()

    def upsert() -> None:
        disk.open().upsert(arrow([Row("k-oslo", "oslo", 9, 9), Row("new", "rome", 9, 9)]))
        disk.open().upsert(arrow([Row("k-oslo", "oslo", 10, 10)]))

    cleaning = disk.deleting(upsert, after=0)
    assert cleaning.clean().files_deleted > 0
    assert cleans(table) == ["COMPLETED"]
    disk.check({"k-oslo": 10, "k-rome": 3, "new": 9})
    disk.open().upsert(arrow([Row("k-rome", "rome", 11, 11)]), options={"hoodie.clean.automatic": "true"})
    disk.check({"k-oslo": 10, "k-rome": 11, "new": 9})


def test_a_large_clean_that_follows_a_write_comes_after_the_writers_turn(beside: None) -> None:
    disk = Disk()
    disk.create()
    seen: list[bool] = []
    table = disk.deleting(lambda: seen.append(is_at_work(disk.open())))
    table.upsert(arrow([Row("k-oslo", "oslo", 9, 9)]), options={"hoodie.clean.automatic": "true"})
    assert seen == [True]
    assert cleans(table) == ["COMPLETED"]
    disk.check({"k-oslo": 9, "k-rome": 3})


def test_a_clean_that_follows_a_deletion_of_partitions_comes_after_its_turn(beside: None) -> None:
    disk = Disk()
    disk.create()
    seen: list[bool] = []
    table = disk.deleting(lambda: seen.append(is_at_work(disk.open())))
    table.delete_partitions(["oslo"], options={"hoodie.clean.automatic": "true"})
    assert (seen, cleans(table)) == ([True], ["COMPLETED"])
    disk.check({"k-rome": 3})


def test_a_second_clean_leaves_a_living_one_alone(beside: None) -> None:
    disk = Disk()
    disk.create()
    seen: list[str] = []

    def clean() -> None:
        other = disk.open()
        result = other.clean()
        assert result.requested is None
        seen.append(result.reason)
        other.upsert(arrow([Row("k-oslo", "oslo", 9, 9)]), options={"hoodie.clean.automatic": "true"})

    table = disk.deleting(clean)
    requested = table.clean().requested
    assert seen == [f"clean '{requested}' is being carried out by another writer"]
    assert cleans(table) == ["COMPLETED"]
    disk.check({"k-oslo": 9, "k-rome": 3})


def test_a_clean_that_fails_is_finished_by_the_next_at_once(beside: None) -> None:
    disk = Disk()
    table = disk.create()

    def fail() -> None:
        raise Unavailable("the store did not answer")

    with pytest.raises(Unavailable):
        disk.deleting(fail).clean()
    assert cleans(table) == ["INFLIGHT"]
    assert table.metadata.validate().pending_cleans
    disk.check({"k-oslo": 3, "k-rome": 3}, is_pending=True)

    table.upsert(arrow([Row("k-oslo", "oslo", 9, 9)]), options={"hoodie.clean.automatic": "true"})
    assert set(cleans(table)) == {"COMPLETED"}
    assert [file.path for file in disk.storage.list(".hoodie/.heartbeat")] == []
    disk.check({"k-oslo": 9, "k-rome": 3})


def test_rows_that_come_to_a_partition_that_is_being_emptied_stay(beside: None) -> None:
    disk = Disk()
    table = disk.create()
    table.delete_partitions(["oslo"])
    table.upsert(arrow([Row("k-rome", "rome", 4, 4)]))

    cleaning = disk.deleting(lambda: disk.open().upsert(arrow([Row("k-oslo", "oslo", 9, 9)])))
    assert cleaning.clean().partitions_deleted == 0
    disk.check({"k-oslo": 9, "k-rome": 4})


def test_a_partition_stays_while_a_write_to_it_is_running(beside: None) -> None:
    """The write begins after the clean was planned, has no file yet, and completes after the clean."""
    disk = Disk()
    table = disk.create()
    table.delete_partitions(["oslo"])
    table.upsert(arrow([Row("k-rome", "rome", 4, 4)]))
    has_begun, is_cleaned = threading.Event(), threading.Event()

    def wait(what: str) -> None:
        if "oslo" in what and not has_begun.is_set():
            has_begun.set()
            assert is_cleaned.wait(60)

    writer = disk.open(watched(disk.storage, wait))
    with ThreadPoolExecutor(1) as pool:
        running = []

        def begin() -> None:
            running.append(pool.submit(writer.upsert, arrow([Row("k-oslo", "oslo", 9, 9)])))
            assert has_begun.wait(60)

        try:
            assert disk.deleting(begin).clean().partitions_deleted == 0
        finally:
            is_cleaned.set()
        running[0].result()
    disk.check({"k-oslo": 9, "k-rome": 4})


def test_a_partition_that_stays_empty_is_removed(beside: None) -> None:
    disk = Disk()
    table = disk.create()
    table.delete_partitions(["oslo"])
    table.upsert(arrow([Row("k-rome", "rome", 4, 4)]))
    assert disk.deleting(lambda: None).clean().partitions_deleted == 1
    assert [file.path for file in disk.storage.list("oslo", recursive=True)] == []
    disk.check({"k-rome": 4})


@pytest.mark.parametrize("index", ["column_stats", "bloom_filters"])
def test_an_index_is_built_while_files_are_deleted(index: str, beside: None) -> None:
    disk = Disk()
    disk.create()
    cleaning = disk.deleting(lambda: disk.open().build_index(index))
    assert cleaning.clean().files_deleted == 4
    disk.check({"k-oslo": 3, "k-rome": 3})
    assert index in disk.open().metadata.validate().checked


@pytest.mark.parametrize("index", ["column_stats", "bloom_filters"])
def test_an_index_that_was_begun_before_the_clean_is_built(index: str, beside: None) -> None:
    """The first reader of a file finds half of the old ones gone, of which it knows by the plan of the clean alone."""
    disk = Disk()
    disk.create()
    begun: list[str] = []

    def clean_half(what: str) -> None:
        if begun or not is_at_work(disk.open()):
            return
        begun.append(what)

        def fail() -> None:
            raise Unavailable("the store did not answer")

        with pytest.raises(Unavailable):
            disk.deleting(fail).clean()

    disk.open(watched(disk.storage, clean_half)).build_index(index)
    assert begun
    disk.check({"k-oslo": 3, "k-rome": 3}, is_pending=True)
    disk.open().clean()
    disk.check({"k-oslo": 3, "k-rome": 3})


def test_rollback_and_restore_wait_for_the_clean(beside: None) -> None:
    disk = Disk()
    table = disk.create()
    writes = [i.requested for i in table.timeline() if i.action == "commit"]
    refused: list[str] = []

    def take_back() -> None:
        for call in (lambda: disk.open().rollback(writes[-1]), lambda: disk.open().restore(writes[-2])):
            with pytest.raises(Conflict) as caught:
                call()
            refused.append(str(caught.value))

    requested = disk.deleting(take_back).clean(options={"hoodie.clean.commits.retained": 2}).requested
    assert len(refused) == 2
    assert all(f"clean '{requested}'" in text for text in refused)
    table.restore(writes[-2])
    disk.check({"k-oslo": 2, "k-rome": 2})


def test_a_savepoint_of_what_is_being_deleted_is_refused_and_one_of_what_stays_is_made(beside: None) -> None:
    disk = Disk()
    table = disk.create()
    writes = [i.requested for i in table.timeline() if i.action == "commit"]

    def save() -> None:
        with pytest.raises(NotFound, match="cleaned away"):
            disk.open().savepoint(writes[0])
        disk.open().savepoint(writes[-1])

    disk.deleting(save).clean()
    table.upsert(arrow([Row("k-oslo", "oslo", 9, 9)]))
    table.restore(writes[-1])
    disk.check({"k-oslo": 3, "k-rome": 3})


def test_a_savepoint_of_logs_that_a_clean_by_versions_deletes_is_refused(beside: None) -> None:
    """Such a clean names no earliest commit, and a file slice of logs alone has no base file that tells."""
    disk = Disk(table_type="MERGE_ON_READ")
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = HudiTable.create(
        "", name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        storage=disk.storage, clock=disk.clock, random=UUIDS, executor=SerialExecutor(),
        properties={**KEEPS_ONE, **bucket},
    )  # fmt: skip
    table.upsert(arrow([Row("a", "oslo", 1, 1)]), options=FREELY)
    first = table.timeline()[0].requested
    assert not [f.path for f in disk.storage.list("oslo") if f.path.endswith(".parquet")]
    table.compact()
    table.upsert(arrow([Row("a", "oslo", 2, 2)]))
    refused: list[str] = []

    def save(what: str) -> None:
        if "oslo" in what and what.startswith("delete") and not refused:
            with pytest.raises(NotFound) as caught:
                disk.open().savepoint(first)
            refused.append(str(caught.value))

    by_versions = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
    disk.open(watched(disk.storage, save)).clean(options=by_versions)
    assert "its files were cleaned away, such as" in refused[0]
    disk.check({"a": 2})


class Mutex:
    """A guard that does not know which processes live, as the lease of an object store."""

    def __init__(self) -> None:
        self._inner = MemoryGuard("mutex")

    @contextmanager
    def acquire(self, purpose: str, now: str) -> Iterator[Hold]:
        with self._inner.acquire(purpose, now) as hold:
            yield hold


def test_a_clean_that_stood_still_deletes_and_completes_nothing_more(
    beside: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyhudi.services.clean.run._FILES_AT_A_TIME", 1)
    disk = Disk()
    disk.create()
    lock = Mutex()
    left: list[list[str]] = []

    def stand_still() -> None:
        disk.clock.ms += DEAD_MS
        disk.open(lock=lock).clean()
        left.append([file.path for file in disk.storage.list("", recursive=True)])

    with pytest.raises(Conflict, match="stood still"):
        disk.deleting(stand_still, lock).clean()
    assert cleans(disk.open(lock=lock)) == ["COMPLETED"]
    assert {file.path for file in disk.storage.list("", recursive=True)} >= {p for p in left[0] if ".parquet" in p}
    disk.check({"k-oslo": 3, "k-rome": 3})


def test_a_clean_that_another_has_completed_is_not_completed_twice(beside: None) -> None:
    disk = Disk()
    disk.create()
    lock = Mutex()

    def take_over() -> None:
        disk.clock.ms += DEAD_MS
        disk.open(lock=lock).clean()

    with pytest.raises(Conflict, match="another writer took it for dead, and has completed it"):
        disk.deleting(take_over, lock).clean()
    assert cleans(disk.open(lock=lock)) == ["COMPLETED"]
    disk.check({"k-oslo": 3, "k-rome": 3})


KILLED = textwrap.dedent(
    """
    import os, signal, sys
    from pyhudi import HudiTable
    from pyhudi.services.clean import run
    from pyhudi.storage.local import LocalStorage

    run.IN_TURN_FILES_MAX = 0
    delete = LocalStorage.delete

    def delete_and_die(self, path):
        delete(self, path)
        if path.endswith(".parquet") and ".hoodie" not in path:
            os.kill(os.getpid(), signal.SIGKILL)

    LocalStorage.delete = delete_and_die
    HudiTable.open(sys.argv[1]).clean()
    """
)


@pytest.mark.skipif(sys.platform == "win32", reason="kills by a signal")
def test_a_clean_whose_process_is_killed_on_local_disk_is_finished_at_once(tmp_path: Path) -> None:
    table = HudiTable.create(
        str(tmp_path / "t"), name="t", record_key="id", partition_by="city", ordering="ts", properties=KEEPS_ONE
    )
    for turn in range(4):
        table.upsert(arrow([Row("k", "oslo", turn, turn)]))

    killed = subprocess.run(
        [sys.executable, "-c", KILLED, table.path], env={**os.environ, "PYTHONPATH": str(SOURCE_DIR)}, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert cleans(table) == ["INFLIGHT"]
    assert read_rows(table.scan().to_arrow())

    table.upsert(arrow([Row("k", "oslo", 9, 9)]), options={**AT_ONCE, "hoodie.clean.automatic": "true"})
    assert set(cleans(table)) == {"COMPLETED"}
    assert os.listdir(tmp_path / "t/.hoodie/.pyhudi_running") == []
    assert table.metadata.validate().differences == ()
