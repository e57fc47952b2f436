"""An event could be missing, tell something else than happened, or fail the write that it tells of; and writes could
measure while nobody listens.

Tables do what is to be told, and listeners keep what they hear.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Conflict, Invalid
from pyhudi.metrics import (
    Backlog,
    Event,
    LockAsked,
    LockFreed,
    Replanned,
    ServiceDone,
    ServiceFailed,
    VerdictGiven,
    WriteDone,
    WriteFailed,
    measuring,
    subscribe,
)
from pyhudi.metrics.listeners import is_listening, tell
from pyhudi.storage.memory import MemoryStorage
from pyhudi.txn.locks.guard import MemoryGuard
from tests.concurrency.test_second_writer import watched
from tests.support.model import Handles, Row, StepClock, arrow, seeded_uuids
from tests.support.odd_errors import ODD_ERRORS

T = TypeVar("T", bound=Event)

NO_CLEAN = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}

ONLY_NEWEST = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


class Ear:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.heard.append(event)

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.heard if isinstance(event, kind)]


@pytest.fixture
def ear() -> Iterator[Ear]:
    listening = Ear()
    end = subscribe(listening)
    yield listening
    end()
    assert not is_listening()


def handles() -> Handles:
    clock = StepClock()
    return Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(1), SerialExecutor())


def table_of(table_type: str = "COPY_ON_WRITE", properties: Mapping[str, object] | None = None) -> HudiTable:
    return handles().create(table_type=table_type, properties={**NO_CLEAN, **(properties or {})})


@pytest.mark.parametrize(
    "table_type,action", [("COPY_ON_WRITE", "commit"), ("MERGE_ON_READ", "deltacommit")]
)  # fmt: skip
def test_a_write_is_told_with_its_rows_bytes_and_phases(ear: Ear, table_type: str, action: str) -> None:
    table = table_of(table_type)
    table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "oslo", 1, 1)]))
    result = table.upsert(arrow([Row("a", "oslo", 2, 2), Row("c", "oslo", 1, 1)]))

    told = ear.of(WriteDone)[-1]
    assert (told.uri, told.table, told.operation, told.action) == (table.path, "t", "upsert", action)
    assert (told.requested, told.completed) == (result.requested, result.completed)
    assert (told.inserted, told.updated, told.deleted, told.files) == (
        result.inserted, result.updated, 0, result.files
    )  # fmt: skip
    assert told.size_bytes == result.size_bytes > 0
    assert set(told.phases_ms) == {"begin", "place", "write", "complete"}
    assert 0 <= sum(told.phases_ms.values()) <= told.duration_ms + 4
    assert told.retries == 0

    table.delete_partitions(["oslo"])
    told = ear.of(WriteDone)[-1]
    assert (told.operation, told.action, told.replaced) == ("delete_partition", "replacecommit", 1)


def test_a_write_that_does_nothing_or_fails_is_no_write_that_landed(ear: Ear) -> None:
    table = table_of()
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    ear.heard.clear()

    assert table.delete_partitions([]).requested is None
    with pytest.raises(Invalid):
        table.upsert(pa.table({"nothing": [1]}))

    assert ear.of(WriteDone) == []
    assert [(told.operation, told.error) for told in ear.of(WriteFailed)] == [("upsert", "Invalid")]


def test_verdicts_retries_and_turns_of_two_writers_are_told(ear: Ear) -> None:
    made = handles()
    table = made.create(properties=NO_CLEAN)
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    ear.heard.clear()
    others: list[str] = []

    def write_between(what: str) -> None:
        if what.endswith(".inflight'") and "metadata" not in what and not others:
            others.append("")
            others[0] = made.open().upsert(arrow([Row("a", "oslo", 2, 2)])).requested or ""

    mine = replace(made, storage=watched(made.storage, write_between)).open()
    result = mine.upsert(arrow([Row("a", "oslo", 3, 3)]))

    verdicts = [(told.requested, bool(told.conflict)) for told in ear.of(VerdictGiven) if told.uri == table.path]
    assert verdicts[0] == (others[0], False)
    assert [conflict for _, conflict in verdicts] == [False, True, False]
    assert verdicts[-1] == (result.requested, False)
    assert [(told.operation, others[0] in told.why) for told in ear.of(Replanned)] == [("upsert", True)]
    assert [told.retries for told in ear.of(WriteDone)] == [0, 1]

    asked, freed = ear.of(LockAsked), ear.of(LockFreed)
    assert len(asked) == len(freed) >= 4
    assert all(told.is_taken and told.purpose == "upsert of table 't'" for told in asked)


def test_a_lock_that_is_held_is_told_with_the_wait(ear: Ear) -> None:
    made = handles()
    table = made.create(properties=NO_CLEAN)
    guard = table._access.guard
    assert isinstance(guard, MemoryGuard)
    with guard.acquire("a long job", "20260101000000000"), pytest.raises(Conflict):
        table.upsert(arrow([Row("a", "oslo", 1, 1)]), options={"hoodie.write.lock.wait_time_ms": "0"})

    assert [(told.purpose, told.is_taken) for told in ear.of(LockAsked)] == [("upsert of table 't'", False)]
    assert ear.of(LockFreed) == []


def test_services_are_told_when_they_do_something(ear: Ear) -> None:
    often = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
    table = table_of("MERGE_ON_READ", often)
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    assert ear.of(ServiceDone) == []

    for turn in range(3):
        table.upsert(arrow([Row("a", "oslo", turn, turn)]))
    compacted = table.compact()
    for turn in range(3):
        table.upsert(arrow([Row("a", "oslo", turn, turn)]))
    cleaned = table.clean(options=ONLY_NEWEST)

    told = ear.of(ServiceDone)
    (compaction,) = (one for one in told if one.service == "compaction")
    assert (compaction.uri, compaction.requested) == (table.path, compacted.requested)
    assert compaction.figures == {"file_groups": 1, "rows": compacted.rows, "size_bytes": compacted.size_bytes}
    cleans = [one for one in told if one.service == "clean"]
    assert sum(one.figures["files_deleted"] for one in cleans) >= max(1, cleaned.files_deleted)


def test_a_service_that_fails_is_told(ear: Ear) -> None:
    with pytest.raises(Invalid):
        measuring.told("memory://t", "clean", _raise(Invalid("no")))()
    assert [(told.service, told.error) for told in ear.of(ServiceFailed)] == [("clean", "Invalid")]


def _raise(error: Exception) -> Callable[[], None]:
    def run() -> None:
        raise error

    return run


def test_what_is_pending_is_told_with_its_age(ear: Ear) -> None:
    made = handles()
    table = made.create(table_type="MERGE_ON_READ", properties=NO_CLEAN)
    for turn in range(2):
        table.upsert(arrow([Row("a", "oslo", turn, turn)]))
    assert [told.pending for told in ear.of(Backlog)] == [{}, {}]

    planned = table.schedule_compaction().requested
    made.clock.ms += 60_000
    table.upsert(arrow([Row("b", "rome", 1, 1)]))
    (pending,) = ear.of(Backlog)[-1].pending.items()
    assert (pending[0], pending[1].count, pending[1].earliest) == ("compaction", 1, planned)
    assert 60_000 <= pending[1].age_ms < 61_000


def test_a_listener_that_fails_fails_no_write_and_keeps_nobody_else_from_hearing(
    ear: Ear, caplog: pytest.LogCaptureFixture
) -> None:
    end = subscribe(_fail)
    try:
        assert table_of().upsert(arrow([Row("a", "oslo", 1, 1)])).requested
    finally:
        end()
    assert "a listener failed at WriteDone: ZeroDivisionError" in caplog.text
    assert len(ear.of(WriteDone)) == 1


@pytest.mark.parametrize("error", ODD_ERRORS.values(), ids=ODD_ERRORS)
def test_an_odd_error_of_a_listener_fails_no_write(caplog: pytest.LogCaptureFixture, error: type[Exception]) -> None:
    def fail(_: object) -> None:
        raise error

    end = subscribe(fail)
    try:
        assert table_of().upsert(arrow([Row("a", "oslo", 1, 1)])).requested
    finally:
        end()
    assert any(error.__qualname__ in line for line in caplog.messages)


def _fail(event: Event) -> float:
    return 1 / 0


def test_the_uri_of_an_event_has_no_secret() -> None:
    assert WriteFailed("s3://me:hush@bucket/t", "t", "upsert", "Invalid", 1).uri == "s3://***@bucket/t"


def test_nothing_is_measured_while_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of()
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    monkeypatch.setattr("pyhudi.metrics.measuring.time", None)
    assert not is_listening()
    table.upsert(arrow([Row("a", "oslo", 2, 2)]))
    table.clean()
    assert measuring.phase("write") is measuring.phase("place")
    assert measuring.told("memory://t", "clean", time.time) is time.time


def test_each_subscription_of_a_function_ends_alone() -> None:
    heard: list[Event] = []
    event = LockFreed("memory://t", "upsert", 1)
    first, second = subscribe(heard.append), subscribe(heard.append)
    try:
        tell(event)
        assert heard == [event, event]
        first()
        first()
        tell(event)
        assert len(heard) == 3
    finally:
        second()
    tell(event)
    assert len(heard) == 3
    assert not is_listening()


def test_what_cannot_be_called_is_no_listener() -> None:
    with pytest.raises(Invalid, match=r"subscribe\(5\): expected a function of an event, found int"):
        subscribe(5)  # type: ignore[arg-type]
    assert not is_listening()
