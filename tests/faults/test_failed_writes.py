"""Whoever should not roll a dead write back could do so, or could trip over it; whoever should could leave some of it.

A write dies at each of its changes. Under each policy others write, clean and compact beside what it left, then it is
rolled back, on tables of every version.
"""

import itertools
from collections.abc import Iterator, Mapping

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Invalid
from pyhudi.format.timeline.instant import WRITE_ACTIONS
from pyhudi.options.entries import Kind
from pyhudi.options.verdicts import find_entry
from pyhudi.services.clean.settings import FAILED_WRITES, CleanSettings, FailedWrites
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.testing.crashing import Crash, CrashingStorage
from tests.concurrency.test_second_writer import watched
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, read_rows, seeded_uuids
from tests.support.versions import with_types

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
EAGER, LAZY, NEVER = ({FAILED_WRITES: policy.value} for policy in FailedWrites)
NOT_BY_ITSELF = {"hoodie.clean.automatic": "false"}
LATEST = {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"}
FIRST = [Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1)]
LOST = [Row("a", "oslo", 1, 2), Row("c", "rome", 1, 2)]
every_table = pytest.mark.parametrize("version,table_type", with_types(TYPES))


class Disk:
    """A table of two rows, of whose storage there are copies, with one clock for all."""

    def __init__(self, version: int, table_type: str) -> None:
        self.clock, self.seed = StepClock(), 1
        storage = MemoryStorage(clock_ms=lambda: self.clock.ms)
        properties = {**NOT_BY_ITSELF, **(LATEST if version == 6 else {})}
        made = self.handles(storage).create(table_version=version, table_type=table_type, properties=properties)
        made.upsert(arrow(FIRST))
        self.storage = storage

    def handles(self, storage: Storage) -> Handles:
        self.seed += 1
        return Handles(storage, self.clock, seeded_uuids(self.seed), SerialExecutor())

    def open(self, storage: Storage, options: Mapping[str, object] | None = None) -> HudiTable:
        return self.handles(storage).open(options)

    def deaths(self) -> Iterator[tuple[str, MemoryStorage]]:
        """What a write leaves that died, for each change after which it may have died."""
        for survives in itertools.count():
            storage = self.storage.copy()
            dying = CrashingStorage(storage, survives, lands=True)
            try:
                self.open(dying, EAGER).upsert(arrow(LOST))
            except Crash:
                yield f"after {survives} changes, {dying.fatal}", storage
            else:
                return

    def dead(self, part: str = ".inflight") -> MemoryStorage:
        """What a write leaves that died right after it put its inflight file."""
        return next(storage for how, storage in self.deaths() if part in how and "/metadata/" not in how)


def pending(table: HudiTable) -> list[str]:
    return [i.requested for i in table.timeline() if not i.is_completed and i.action in WRITE_ACTIONS]


def rollbacks(table: HudiTable) -> int:
    return sum(i.action == "rollback" for i in table.timeline())


def values(storage: Storage, clock: StepClock) -> dict[str, int]:
    stored = read_rows(HudiTable.open("", storage=storage, clock=clock).scan().to_arrow())
    return {key[1]: found.row.v for key, found in stored.items()}


@every_table
def test_others_write_beside_what_a_death_at_any_moment_left_until_a_clean_rolls_it_back(
    version: int, table_type: str
) -> None:
    disk = Disk(version, table_type)
    has_left = 0
    for how, storage in disk.deaths():
        table = disk.open(storage, LAZY)
        left = pending(table)
        has_left += bool(left)
        landed = values(storage, disk.clock).get("c") == 2
        table.upsert(arrow([Row("a", "oslo", 1, 3), Row("d", "oslo", 1, 3)]))
        if table_type == "MERGE_ON_READ":
            table.compact()
        table.upsert(arrow([Row("a", "oslo", 1, 4)]))

        expected = {"a": 4, "b": 1, "d": 3} | ({"c": 2} if landed else {})
        assert (pending(table), rollbacks(table)) == (left, 0), how
        assert values(storage, disk.clock) == expected, how

        table.clean()
        assert (pending(table), rollbacks(table)) == ([], len(left)), how
        assert values(storage, disk.clock) == expected, how
        assert problems_on(storage) == [], how
    assert has_left > 5


@every_table
def test_by_default_the_next_write_rolls_back(version: int, table_type: str) -> None:
    disk = Disk(version, table_type)
    table = disk.open(disk.dead())
    assert pending(table)
    table.upsert(arrow([Row("d", "oslo", 1, 3)]))
    assert (pending(table), rollbacks(table)) == ([], 1)
    assert problems_on(table._access.storage) == []


@every_table
def test_a_clean_that_follows_a_write_rolls_back(version: int, table_type: str) -> None:
    disk = Disk(version, table_type)
    storage = disk.dead()
    table = disk.open(storage, {**LAZY, "hoodie.clean.automatic": "true"})
    written = table.upsert(arrow([Row("d", "oslo", 1, 3)])).requested or ""
    rolled_back = [i.requested for i in table.timeline() if i.action == "rollback"]
    assert (pending(table), len(rolled_back)) == ([], 1)
    assert rolled_back[0] > written
    assert values(storage, disk.clock) == {"a": 1, "b": 1, "d": 3}
    assert problems_on(storage) == []


@every_table
def test_under_never_it_stays_until_somebody_asks(version: int, table_type: str) -> None:
    disk = Disk(version, table_type)
    storage = disk.dead()
    table = disk.open(storage, {**NEVER, "hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"})
    (dead,) = pending(table)
    for v in range(3, 6):
        table.upsert(arrow([Row("a", "oslo", 1, v)]))
    table.clean()
    assert (pending(table), rollbacks(table)) == ([dead], 0)

    assert table.rollback(dead).rolled_back == dead
    assert (pending(table), rollbacks(table)) == ([], 1)
    assert values(storage, disk.clock) == {"a": 5, "b": 1}
    assert problems_on(storage) == []


@every_table
def test_a_rollback_that_has_begun_is_finished_under_every_policy(version: int, table_type: str) -> None:
    disk = Disk(version, table_type)
    for survives in itertools.count():
        storage = disk.storage.copy()
        newest = disk.open(storage).timeline()[-1].requested
        dying = CrashingStorage(storage, survives, lands=True)
        try:
            disk.open(dying).rollback(newest)
        except Crash:
            pass
        else:
            return
        table = disk.open(storage, NEVER)
        table.upsert(arrow([Row("d", "oslo", 1, 3)]))
        assert pending(table) == [], f"after {survives} changes, {dying.fatal}"
        assert problems_on(storage) == [], f"after {survives} changes, {dying.fatal}"


def test_a_living_write_stays_under_every_policy() -> None:
    for policy in (EAGER, LAZY, NEVER):
        disk = Disk(8, "COPY_ON_WRITE")
        seen: list[list[str]] = []

        def write_and_clean(
            what: str, disk: Disk = disk, policy: Mapping[str, str] = policy, seen: list[list[str]] = seen
        ) -> None:
            if what.endswith(".inflight'") and "metadata" not in what and not seen:
                seen.append([])
                table = disk.open(disk.storage, policy)
                table.upsert(arrow([Row("d", "bari", 1, 3)]))
                table.clean()
                seen.append(pending(table))

        disk.open(watched(disk.storage, write_and_clean), policy).upsert(arrow([Row("a", "oslo", 1, 2)]))
        assert [len(found) for found in seen] == [0, 1]
        assert values(disk.storage, disk.clock) == {"a": 2, "b": 1, "d": 3}


def test_the_policy_is_read_under_both_names() -> None:
    assert CleanSettings().failed_writes is FailedWrites.EAGER
    for policy in FailedWrites:
        assert CleanSettings.from_options({FAILED_WRITES: policy.value.lower()}).failed_writes is policy
    assert find_entry(FAILED_WRITES).kind is Kind.SETTING

    disk = Disk(8, "COPY_ON_WRITE")
    storage = disk.dead()
    table = disk.open(storage, {"hoodie.cleaner.policy.failed.writes": "LAZY"})
    table.upsert(arrow([Row("d", "oslo", 1, 3)]))
    assert pending(table)
    with pytest.raises(Invalid, match=FAILED_WRITES):
        table.upsert(arrow([Row("d", "oslo", 1, 4)]), options={FAILED_WRITES: "SOMETIMES"})
