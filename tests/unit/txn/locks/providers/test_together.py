"""A writer with a lock provider could take one lock without the other, wait twice as long, or lose a lock unseen."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.api.clock import SYSTEM_CLOCK
from pyhudi.api.overwrite import replacing_table
from pyhudi.errors import Conflict, LockLost
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.open import open_versioned, parse_location
from pyhudi.txn.locks.guard import Guard, Lives, LocalGuard, MemoryGuard
from pyhudi.txn.locks.hold import CertainHold, Hold
from pyhudi.txn.locks.lease import LeaseGuard
from pyhudi.txn.locks.providers.file_system import FileHold
from pyhudi.txn.locks.providers.in_process import InProcessLock
from pyhudi.txn.locks.providers.registry import provided_guard
from pyhudi.txn.locks.providers.together import LivelyTogetherGuard, TogetherGuard
from pyhudi.txn.locks.running import is_surely_dead, running
from pyhudi.txn.locks.waiting import awaited_hold
from tests.support.lock_holders import LOCKS, PREFIX, a_guard, lock_settings
from tests.support.model import Row, StepClock, arrow, seeded_uuids

NOW = "20260101000000000"
IN_PROCESS = {f"{PREFIX}provider": f"{LOCKS}.InProcessLockProvider"}


@dataclass
class Steps:
    """A provider, or a guard, that writes down what happens to it. `conflicts`: tries to come that find it held."""

    name: str
    log: list[str]
    conflicts: int = 0
    waits_ms: list[int] = field(default_factory=list)
    is_lost: bool = False

    @contextmanager
    def hold(self, purpose: str, now: str, *, wait_ms: int) -> Iterator[Hold]:
        self.waits_ms.append(wait_ms)
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict(f"{self.name} is held")
        self.log.append(f"take {self.name}")
        try:
            yield self
        finally:
            self.log.append(f"give {self.name}")

    def acquire(self, purpose: str, now: str):
        return self.hold(purpose, now, wait_ms=0)

    def confirm(self) -> None:
        self.log.append(f"confirm {self.name}")
        if self.is_lost:
            raise LockLost(self.name)


def both(own: Guard, other: Steps, **options: str) -> TogetherGuard:
    stated = {f"{PREFIX}{name.replace('__', '.')}": text for name, text in options.items()}
    return TogetherGuard(own, other, lock_settings({**IN_PROCESS, **stated}))


def test_the_own_guard_comes_first_and_goes_last() -> None:
    log: list[str] = []
    with both(Steps("own", log), Steps("other", log)).acquire("a write", NOW) as hold:
        hold.confirm()
    assert log == ["take own", "take other", "confirm own", "confirm other", "give other", "give own"]


def test_a_held_lock_leaves_the_own_guard_free() -> None:
    log: list[str] = []
    other = Steps("other", log, conflicts=1)
    with pytest.raises(Conflict, match="other is held"), both(Steps("own", log), other).acquire("a write", NOW):
        pytest.fail("the lock was held")
    assert log == ["take own", "give own"]


@pytest.mark.parametrize("lost", ["own", "other"])
def test_a_hold_is_lost_with_either_lock(lost: str) -> None:
    own, other = (Steps(name, [], is_lost=name == lost) for name in ("own", "other"))
    with both(own, other).acquire("a write", NOW) as hold, pytest.raises(LockLost, match=lost):
        hold.confirm()


def test_one_wait_is_for_both_locks() -> None:
    """What the own guard took of the wait is not there for the other."""
    clock = StepClock()
    own, other = Steps("own", [], conflicts=3), Steps("other", [])
    with awaited_hold(both(own, other), "a write", clock=clock, wait_ms=60_000):
        pass
    assert 0 < other.waits_ms[0] < 60_000


def test_further_waits_follow_where_the_option_says_so() -> None:
    clock = StepClock()
    other = Steps("other", [], conflicts=2)
    guard = both(Steps("own", []), other, client__num_retries="2", client__wait_time_ms_between_retry="7")
    with awaited_hold(guard, "a write", clock=clock, wait_ms=100):
        pass
    assert len(other.waits_ms) == 3

    other.conflicts = 3
    with pytest.raises(Conflict), awaited_hold(guard, "a write", clock=clock, wait_ms=100):
        pytest.fail("the lock was held")
    other.conflicts, other.waits_ms = 1, []
    with pytest.raises(Conflict), awaited_hold(guard, "a write", clock=clock, wait_ms=0):
        pytest.fail("the lock was held")
    assert other.waits_ms == [0]


def test_a_local_table_still_knows_which_actions_run(tmp_path: Path) -> None:
    guard = a_guard(IN_PROCESS, str(tmp_path))
    assert isinstance(guard, LivelyTogetherGuard)
    assert isinstance(guard, Lives)
    with running(LocalGuard(str(tmp_path)), NOW):
        assert guard.is_running(NOW)
    assert not is_surely_dead(guard, MemoryStorage(), NOW)
    with running(guard, NOW):
        assert LocalGuard(str(tmp_path)).is_running(NOW)


def test_in_process_excludes_threads_and_waits(tmp_path: Path) -> None:
    """The lock alone, with own guards that keep nobody out."""
    free = Steps("own", [])
    location = parse_location(tmp_path)
    guards = [
        provided_guard(lock_settings(IN_PROCESS), location, clock=StepClock(), new_uuid=seeded_uuids(1), own=free)
        for _ in range(2)
    ]  # fmt: skip
    holding, release = threading.Event(), threading.Event()

    def hold_it() -> None:
        with guards[0].acquire("a compaction", NOW):
            holding.set()
            release.wait(20)

    thread = threading.Thread(target=hold_it)
    thread.start()
    holding.wait(20)
    with pytest.raises(Conflict, match="a compaction"), guards[1].acquire("a write", NOW):
        pytest.fail("both hold the lock")
    release.set()
    thread.join()
    with guards[1].acquire("a write", NOW) as hold:
        assert isinstance(hold.other, CertainHold)  # type: ignore[attr-defined]


def test_a_lease_is_taken_once_with_the_terms_of_the_options() -> None:
    location = parse_location("s3://bucket/table", {"region": "us-east-1"})
    own = LeaseGuard(open_versioned(location), table="t", clock=StepClock(), new_uuid=seeded_uuids(1))
    settings = lock_settings({f"{PREFIX}provider": f"{LOCKS}.StorageBasedLockProvider"})

    def guard_of(own: Guard) -> Guard:
        return provided_guard(settings, location, clock=StepClock(), new_uuid=seeded_uuids(2), own=own)

    assert guard_of(own) is own
    assert isinstance(guard_of(MemoryGuard("m")), TogetherGuard)


def test_a_write_that_loses_the_named_lock_commits_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The lock's file is deleted while rows are written, as another client of Apache Hudi may do."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="city", ordering="ts")
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    lock = tmp_path / "t" / ".hoodie" / "lock"
    whole, deleted = FileHold.confirm, []

    def deleted_first(hold: FileHold) -> None:
        lock.unlink(missing_ok=True)
        deleted.append(True)
        whole(hold)

    monkeypatch.setattr(FileHold, "confirm", deleted_first)
    options = {f"{PREFIX}provider": f"{LOCKS}.FileSystemBasedLockProvider"}
    with pytest.raises(LockLost, match="somebody deleted it"):
        table.upsert(arrow([Row("b", "oslo", 1, 2)]), options=options)
    assert deleted
    assert table.scan().to_arrow().column("id").to_pylist() == ["a"]

    monkeypatch.undo()
    table.upsert(arrow([Row("b", "oslo", 1, 2)]), options=options)
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == ["a", "b"]
    assert not lock.exists()


def test_every_call_that_changes_a_table_holds_the_named_lock() -> None:
    """Writes, services and the metadata table's own calls, by the options of the call and of the handle."""
    storage = MemoryStorage()
    options = {**IN_PROCESS, f"{PREFIX}wait_time_ms": 0}
    rows = arrow([Row("a", "oslo", 1, 1)])
    table = HudiTable.create(
        "", name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ", storage=storage
    )  # fmt: skip
    table.upsert(rows)
    table.upsert(rows)
    handle = HudiTable.open("", storage=storage, options=options)
    last = table.timeline()[-1].requested

    lock = InProcessLock(storage.location.uri, lock_settings(IN_PROCESS), SYSTEM_CLOCK)
    for call in (
        lambda: table.upsert(rows, options=options),
        lambda: handle.upsert(rows),
        lambda: handle.delete(rows),
        lambda: handle.insert_overwrite(rows),
        lambda: handle.delete_partitions(["oslo"]),
        handle.clean,
        handle.archive,
        handle.compact,
        handle.schedule_compaction,
        lambda: handle.savepoint(last),
        lambda: handle.rollback(last),
        lambda: handle.build_index("column_stats"),
        handle.metadata.create,
        handle.metadata.delete,
    ):
        with lock.hold("a hold", NOW, wait_ms=0), pytest.raises(Conflict, match="a hold"):
            call()
    handle.upsert(rows)


def test_a_table_that_takes_the_place_of_another_holds_the_named_lock(tmp_path: Path) -> None:
    """The lock's file does not count as a change of the old table, and does not stay in the new one."""
    path, lock = tmp_path / "t", tmp_path / "t" / ".hoodie" / "lock"
    HudiTable.create(path, name="t", record_key="id", partition_by="city", ordering="ts").upsert(
        arrow([Row("a", "oslo", 1, 1)])
    )
    settings = lock_settings({f"{PREFIX}provider": f"{LOCKS}.FileSystemBasedLockProvider"})

    def replace() -> None:
        with replacing_table(str(path), wait_ms=0, lock=settings) as staged:
            HudiTable.create(staged, name="t", record_key="ts")

    lock.write_bytes(b"")
    with pytest.raises(Conflict, match="does not say who it is"):
        replace()
    assert HudiTable.open(path).record_key == ("id",)

    lock.unlink()
    replace()
    assert HudiTable.open(path).record_key == ("ts",)
    assert not lock.exists()
