"""A writer plans a rollback and stands still, while another writer rolls the same write back. Its plan could stay
pending for good, as nobody has anything to carry out. A rollback of Apache Hudi's that died could be left to it: it
cannot finish one once others have written, nor write at all.
"""

from collections.abc import Callable

import pytest

from pyhudi import HudiTable
from pyhudi.errors import Conflict
from pyhudi.format.timeline.action_files import encode_rollback_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import InstantInfo, RollbackPlan
from pyhudi.storage.memory import MemoryStorage
from pyhudi.txn.locks.heartbeat import put_heartbeat
from pyhudi.txn.undo.restore_plan import plan_undo
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, read_rows, seeded_uuids
from tests.support.versions import EVERY_VERSION

GONE, ROLLBACK = "20200101000000001", "20200101000000002"
LONG_MS = 3_600_000


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_our_rollback_of_a_write_that_is_gone_is_dropped(version: int) -> None:
    storage, path = with_rollback(version)
    put_heartbeat(storage, ROLLBACK)
    Handles(storage).open().upsert(arrow([Row("b", "oslo", 1, 2)]))
    assert storage.head(path) is None
    assert problems_on(storage) == []


def test_the_rollback_of_a_write_that_may_be_archived_stays() -> None:
    """Then its files are the table's."""
    storage, path = with_rollback(8)
    Handles(storage).open().upsert(arrow([Row("b", "oslo", 1, 2)]))
    assert storage.head(path) is not None


@pytest.mark.parametrize("state", ["REQUESTED", "INFLIGHT"])
@pytest.mark.parametrize("version", EVERY_VERSION)
def test_a_rollback_of_another_tool_is_finished_where_its_write_is_gone(version: int, state: str) -> None:
    """Apache Hudi deletes the instant before it completes the rollback."""
    storage, clock, table, (first, _) = with_two_writes(version)
    gone, rollback = f"{int(first) + 1}", f"{int(first) + 2}"
    put_plan(storage, table, RollbackPlan(InstantInfo(gone, "commit")), rollback, state)
    with pytest.raises(Conflict, match=f"rollback '{rollback}' of another writer is pending"):
        table.upsert(arrow([Row("b", "oslo", 2, 2)]))

    clock.ms += LONG_MS
    table.upsert(arrow([Row("b", "oslo", 2, 2)]))

    (done,) = [instant for instant in table.timeline() if instant.action == "rollback"]
    assert (done.requested, done.state) == (rollback, "COMPLETED")
    assert len(read_rows(table.scan().to_arrow())) == 2
    assert problems_on(storage) == []


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_what_another_tool_is_about_to_take_back_is_not_built_upon(version: int) -> None:
    storage, clock, table, (first, second) = with_two_writes(version)
    then = read_rows(table.scan(as_of=first).to_arrow())
    snapshot = table._access.snapshot()
    target = snapshot.timeline.get_completed(second)
    plan = plan_undo(storage, snapshot.timeline, snapshot.config, target, {second})
    put_plan(storage, table, plan, f"{int(second) + 1}", "INFLIGHT")
    clock.ms += LONG_MS

    calls: tuple[Callable[[], object], ...] = (lambda: table.upsert(arrow([Row("b", "oslo", 3, 2)])), table.clean)
    for call in calls:
        with pytest.raises(Conflict, match=f"is about to take '{second}' back"):
            call()
    assert table.rollback(second).rolled_back == second

    assert read_rows(table.scan().to_arrow()) == then
    assert [instant.state for instant in table.timeline() if instant.action == "rollback"] == ["COMPLETED"]
    table.upsert(arrow([Row("b", "oslo", 3, 2)]))
    assert problems_on(storage) == []


def test_a_plan_for_a_write_that_others_have_built_upon_stops_nobody() -> None:
    storage, _, table, (first, _) = with_two_writes(8)
    put_plan(storage, table, RollbackPlan(InstantInfo(first, "commit")), f"{int(first) + 1}", "REQUESTED")
    table.upsert(arrow([Row("b", "oslo", 3, 2)]))


def with_rollback(version: int) -> tuple[MemoryStorage, str]:
    """A table with a pending rollback of a write that is gone, and the path of its plan."""
    storage = MemoryStorage()
    table = Handles(storage).create(table_version=version)
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    return storage, put_plan(storage, table, RollbackPlan(InstantInfo(GONE, "commit")), ROLLBACK, "REQUESTED")


def with_two_writes(version: int) -> tuple[MemoryStorage, StepClock, HudiTable, tuple[str, str]]:
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    table = Handles(storage, clock, seeded_uuids(1)).create(table_version=version)
    first = table.upsert(arrow([Row("a", "oslo", 1, 1)])).requested
    clock.ms += 1_000
    second = table.upsert(arrow([Row("a", "oslo", 2, 1)])).requested
    assert first
    assert second
    return storage, clock, table, (first, second)


def put_plan(storage: MemoryStorage, table: HudiTable, plan: RollbackPlan, rollback: str, state: str) -> str:
    """Put a rollback as another tool leaves it that dies. Returns the path of its plan."""
    layout = table._access.snapshot().timeline.layout
    path = layout.path(Instant(rollback, "rollback", "REQUESTED"))
    storage.put(path, encode_rollback_plan(plan))
    if state == "INFLIGHT":
        storage.put(layout.path(Instant(rollback, "rollback", "INFLIGHT")), b"")
    return path
