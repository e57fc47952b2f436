"""A writer could lose the table while it rolls a dead write back, or compacts, and go on: delete the files of whoever
has the table now, or complete what that one has undone.

The hold is lost at every point at which a write confirms it. There another writer takes the table and writes; the first
one must then raise LockLost and change nothing more. That the points suffice is shown by the order of changes: none
deletes or completes anything after an ordinary change without a confirmation in between.
"""

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import LockLost
from pyhudi.format.names import HEARTBEATS, METADATA_TABLE, PROPERTIES, PROPERTIES_BACKUP
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.testing.crashing import Crash, CrashingStorage
from pyhudi.txn.locks.hold import Hold
from tests.faults.test_crash_everywhere import (
    CHANGES,
    NEXT,
    SCENARIOS,
    START,
    Scenario,
    Write,
    digest,
    handles,
    prepared,
    snapshot,
    upsert_changes,
    values,
    with_rows,
    with_rows_and_an_index,
)
from tests.support.model import StepClock, arrow, problems_on, seeded_uuids

T = TypeVar("T")


@dataclass
class LosingGuard:
    """A guard, and its hold: lost at the confirmation `loses_at` (counted from 0), right after `takeover` ran."""

    loses_at: int = 1_000_000
    takeover: Callable[[], object] = lambda: None
    seen: list[str] = field(default_factory=list)
    confirmed: int = 0
    is_lost: bool = False

    @contextmanager
    def acquire(self, purpose: str, now: str) -> Iterator[Hold]:
        yield self

    def confirm(self) -> None:
        if self.confirmed == self.loses_at:
            self.takeover()
            self.is_lost = True
        if self.is_lost:
            raise LockLost("our lease ended before the commit, and another writer took the table")
        self.confirmed += 1
        self.seen.append("confirm")


@dataclass
class NotingStorage(CrashingStorage):
    """Notes each change, in words."""

    seen: list[str] = field(default_factory=list)

    def change(self, what: str, apply: Callable[[], T]) -> T:
        self.seen.append(what)
        return apply()


def dies(prepare: Callable[[MemoryStorage], None], write: Write, last: str) -> Callable[[MemoryStorage], None]:
    """Makes the disk that a write leaves which dies at the first change whose words fit `last`, on a prepared disk."""

    def prepare_and_die(disk: MemoryStorage) -> None:
        prepare(disk)
        whole = NotingStorage(disk.copy(), survives=0, lands=True)
        at_a_later_time(whole, 2_000, write)
        survives = next(at for at, what in enumerate(whole.seen) if re.search(last, what))
        with pytest.raises(Crash, match=last):
            at_a_later_time(CrashingStorage(disk, survives, lands=False), 2_000, write)

    return prepare_and_die


def at_a_later_time(storage: Storage, later_ms: int, write: Write, lock: LosingGuard | None = None) -> None:
    table = HudiTable.open(
        "", storage=storage, clock=StepClock(START + later_ms), random=seeded_uuids(later_ms),
        executor=SerialExecutor(), lock=lock,
    )  # fmt: skip
    write(table)


def finish_and_upsert(table: HudiTable) -> None:
    table.upsert(arrow(NEXT), options={"hoodie.clean.automatic": "true"})


def upsert_twice(table: HudiTable) -> None:
    upsert_changes(table)
    upsert_changes(table)


def clean(table: HudiTable) -> None:
    table.clean()


def upsert_twice_and_clean(table: HudiTable) -> None:
    upsert_twice(table)
    clean(table)


def eager(disk: Storage) -> None:
    """The metadata table is compacted at each write, and keeps two slices."""
    with_rows(disk, **{
        "hoodie.metadata.compact.max.delta.commits": "1", "hoodie.clean.automatic": "false",
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1",
    })  # fmt: skip


def cleaned_on_demand(disk: Storage) -> None:
    with_rows(disk, **{"hoodie.clean.automatic": "false", "hoodie.clean.commits.retained": "1"})


def with_a_clean_without_a_plan(disk: Storage) -> None:
    """Its writer died right after it had put an empty file, as stores without conditional puts may leave one."""
    with_rows(disk)
    disk.put(".hoodie/timeline/20260528202650900.clean.requested", b"")


def first_commit(table: HudiTable) -> str:
    return next(i.requested for i in table.timeline() if i.completed)


def restore(table: HudiTable) -> None:
    table.restore(first_commit(table))


def savepoint_and_delete(table: HudiTable) -> None:
    table.delete_savepoint(table.savepoint().requested)


def written_since(disk: Storage) -> None:
    with_rows(disk, **{"hoodie.metadata.compact.max.delta.commits": "100"})
    at_a_later_time(disk, 1_500, upsert_changes)


COMPLETES = r"put_new '{}\.hoodie/timeline/\d+_\d+\.{}'"

dead_write = dies(with_rows, upsert_changes, COMPLETES.format("", "commit"))

TURNS = {
    "rolls a dead write back": Scenario(dead_write, upsert_changes),
    "finishes a rollback": Scenario(dies(dead_write, upsert_changes, COMPLETES.format("", "rollback")), upsert_changes),
    "removes the heartbeat of a write that landed": Scenario(
        dies(with_rows, upsert_changes, rf"delete '{HEARTBEATS}/"), upsert_changes
    ),
    "undoes a dead compaction of the metadata table": Scenario(
        dies(eager, upsert_changes, COMPLETES.format(f"{METADATA_TABLE}/", "commit")), upsert_changes
    ),
    "compacts and cleans the metadata table": Scenario(eager, upsert_twice),
    "finishes a clean of the metadata table": Scenario(
        dies(eager, upsert_twice, COMPLETES.format(f"{METADATA_TABLE}/", "clean")), upsert_changes
    ),
    "cleans, and tells the metadata table": Scenario(cleaned_on_demand, upsert_twice_and_clean),
    "finishes a clean": Scenario(dies(cleaned_on_demand, upsert_twice_and_clean, COMPLETES.format("", "clean")), clean),
    "forgets a clean without a plan": Scenario(with_a_clean_without_a_plan, clean),
    "restores": Scenario(written_since, restore),
    "finishes a restore": Scenario(dies(written_since, restore, COMPLETES.format("", "restore")), upsert_changes),
    "makes a savepoint and deletes it": Scenario(with_rows, savepoint_and_delete),
    "makes the metadata table": SCENARIOS["a write that makes the metadata table"],
    "drops an index": SCENARIOS["a write that drops an index"],
    "drops the metadata table with an index": Scenario(
        with_rows_and_an_index,
        lambda table: table.upsert(arrow(CHANGES), options={"hoodie.metadata.enable": "false"}),
    ),
}


LIKE_OTHERS = (
    "finishes a rollback",
    "finishes a restore",
    "compacts and cleans the metadata table",
    "drops the metadata table with an index",
)
"""Turns whose steps are those of others in another order: for the long run."""


def losses(write: Write, start: MemoryStorage) -> Iterator[tuple[LosingGuard, MemoryStorage, str]]:
    """For each confirmation at which a write loses its hold: its guard, the disk, and what the other writer left."""
    for loses_at in itertools.count():
        disk = start.copy()
        taken: list[str] = []
        guard = LosingGuard(loses_at, functools.partial(take_over, disk, taken))
        try:
            at_a_later_time(disk, 10_000, write, guard)
        except LockLost:
            yield guard, disk, taken[0]
        else:
            assert not taken, f"it lost its hold at confirmation {loses_at} and raised nothing"
            return


def take_over(disk: MemoryStorage, taken: list[str]) -> None:
    at_a_later_time(disk, 600_000, finish_and_upsert)
    taken.append(digest(disk))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in LIKE_OTHERS else []) for name in TURNS]
)
def test_a_writer_that_lost_its_hold_leaves_the_table_to_the_other(name: str) -> None:
    scenario = TURNS[name]
    wanted = {(row.city, row.id): row for row in NEXT}
    lost = 0
    for guard, disk, left in losses(scenario.write, prepared(scenario)):
        note = f"lost at confirmation {guard.loses_at}"
        assert digest(disk) == left, note
        assert problems_on(disk, has_metadata_table=None) == [], note
        rows = values(snapshot(handles(disk, later_ms=900_000).open()))
        assert {key: rows[key] for key in wanted} == wanted, note
        lost += 1
    assert lost >= 1


@pytest.mark.parametrize("name", TURNS)
def test_nothing_is_deleted_or_completed_without_a_confirmation_right_before(name: str) -> None:
    """Each completion has one of its own; a run of deletions has one in each of the two tables."""
    scenario = TURNS[name]
    storage = NotingStorage(prepared(scenario), survives=0, lands=True)
    guard = LosingGuard(seen=storage.seen)

    at_a_later_time(storage, 10_000, scenario.write, guard)

    covered: str | None = None
    final = 0
    for before, what in itertools.pairwise(["", *storage.seen]):
        if what == "confirm":
            covered = "either table"
            continue
        table = "metadata table" if METADATA_TABLE in what else "table"
        if not is_final(what):
            covered = None
            continue
        final += 1
        assert covered in ("either table", table), f"{what} after {before}"
        assert before == "confirm" or not begins_anew(what), f"{what} after {before}"
        covered = table
    assert final >= 2


def is_final(change: str) -> bool:
    """Whether a change takes something away, or lets others see something as done: what a lost hold would damage."""
    return begins_anew(change) or change.startswith(("delete", f"put '{PROPERTIES}'"))


def begins_anew(change: str) -> bool:
    """Whether a change completes an action, or begins to replace the table's properties."""
    completes = COMPLETES.format(rf"(?:{METADATA_TABLE}/)?", r"\w+")
    return bool(re.match(completes, change)) or change.startswith(f"put '{PROPERTIES_BACKUP}'")
