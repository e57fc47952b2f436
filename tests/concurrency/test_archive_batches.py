"""An archival of many instants could keep writers waiting for all of them, or archive by a plan that a writer between
two batches has made wrong.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.txn.locks.guard import MemoryGuard
from pyhudi.txn.locks.hold import Hold
from tests.support.model import Row, StepClock, arrow, problems_on, read_rows, seeded_uuids

KEEP = {
    "hoodie.keep.max.commits": "4", "hoodie.keep.min.commits": "3", "hoodie.archive.automatic": "false",
    "hoodie.clean.commits.retained": "2", "hoodie.metadata.compact.max.delta.commits": "2",
}  # fmt: skip
UUIDS = seeded_uuids(5)


class Turns:
    """A guard that counts its turns. Before the second turn and the third, something happens."""

    def __init__(self, between: Callable[[], object]) -> None:
        self._inner, self._between, self.taken = MemoryGuard("turns"), between, 0

    @contextmanager
    def acquire(self, purpose: str, now: str) -> Iterator[Hold]:
        self.taken += 1
        if self.taken in (2, 3):
            self._between()
        with self._inner.acquire(purpose, now) as hold:
            yield hold


@pytest.mark.parametrize("version", [6, 9])
def test_writers_have_their_turn_between_two_batches(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    table = HudiTable.create(
        "", name="t", record_key="id", table_version=version, storage=storage, clock=clock, random=UUIDS,
        executor=SerialExecutor(), properties=KEEP,
    )  # fmt: skip
    for number in range(14):
        table.upsert(arrow([Row(f"k{number}", "", number, number)]))
    before = [(i.requested, i.action) for i in table.timeline(history=True)]

    def write() -> None:
        table.upsert(arrow([Row("between", "", lock.taken, lock.taken)]))

    lock = Turns(write)
    archiving = HudiTable.open(
        "", storage=storage, clock=clock, random=UUIDS, executor=SerialExecutor(), lock=lock
    )  # fmt: skip
    monkeypatch.setattr("pyhudi.services.archive.run.BATCH_INSTANTS_MAX", 4)
    result = archiving.archive()

    assert lock.taken > 2
    assert result.archived > 4
    assert result.metadata_archived > 4
    after = [(i.requested, i.action) for i in table.timeline(history=True)]
    assert after[: len(before)] == before
    assert [action for _, action in after[len(before) :] if action == "commit"] == ["commit", "commit"]
    assert len([i for i in table.timeline() if i.action == "commit"]) <= 5
    assert {key[1] for key in read_rows(table.scan().to_arrow())} == {*(f"k{n}" for n in range(14)), "between"}
    assert problems_on(storage) == []


def test_an_archival_of_one_batch_takes_one_turn() -> None:
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    table = HudiTable.create(
        "", name="t", record_key="id", storage=storage, clock=clock, random=UUIDS, executor=SerialExecutor(),
        properties=KEEP,
    )  # fmt: skip
    for number in range(8):
        table.upsert(arrow([Row(f"k{number}", "", number, number)]))
    lock = Turns(lambda: None)
    archiving = HudiTable.open("", storage=storage, clock=clock, random=UUIDS, executor=SerialExecutor(), lock=lock)
    assert archiving.archive().archived > 0
    assert lock.taken == 1
