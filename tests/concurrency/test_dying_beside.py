"""A writer that dies while another works could leave what the other's commit builds upon, and nobody can finish."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import LockLost
from pyhudi.metadata.derive.changes_files import files_change, listing_records
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.testing.crashing import Crash, CrashingStorage
from pyhudi.timeline.clock import issue_instant
from pyhudi.write.metadata.deltacommit import Spreading, write_deltacommit
from tests.concurrency.test_second_writer import watched
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, read_rows, seeded_uuids


def upsert(storage: object, clock: StepClock, row: Row, uuids: int, *, compacts_after: int = 10) -> None:
    options = {"hoodie.metadata.compact.max.delta.commits": compacts_after}
    table = HudiTable.open(
        "", storage=storage, clock=clock, random=seeded_uuids(uuids), options=options, executor=SerialExecutor()  # type: ignore[arg-type]
    )  # fmt: skip
    table.upsert(arrow([row]))


@pytest.mark.parametrize("version", [6, 8, 9])
def test_another_writer_dies_at_each_of_its_changes(version: int) -> None:
    """The metadata table's compaction may be what it leaves half done, while the first is about to log its commit."""
    clock = StepClock()
    made = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(1), SerialExecutor())
    made.create(table_version=version).upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1)]))
    assert isinstance(made.storage, MemoryStorage)

    for survives in itertools.count():
        storage = made.storage.copy()
        dying = CrashingStorage(storage, survives, lands=True)
        begun = list[str]()

        def die_while_it_works(what: str, dying: CrashingStorage = dying, begun: list[str] = begun) -> None:
            if what.endswith(".inflight'") and "metadata" not in what and not begun:
                begun.append(what)
                with ThreadPoolExecutor(1) as pool, suppress(Crash):
                    pool.submit(upsert, dying, clock, Row("b", "rome", 1, 2), 2, compacts_after=1).result()

        upsert(watched(storage, die_while_it_works), clock, Row("a", "oslo", 1, 3), 3)
        assert begun
        upsert(storage, clock, Row("c", "bonn", 1, 4), 4)

        assert problems_on(storage) == [], f"after {survives} changes, {dying.fatal}"
        found = read_rows(HudiTable.open("", storage=storage, clock=clock).scan().to_arrow())
        assert {key[1] for key in found} == {"a", "b", "c"}
        if not dying.dead:
            assert survives > 15
            return


def log_as_a_sleeper(storage: Storage, requested: str) -> None:
    """What a writer does that wakes up after another has taken its lease: it logs its commit, then learns of that."""
    table = open_metadata_table(storage, UTC)
    changes = [files_change(listing_records({"oslo": {"gone.parquet": 1}}), schema_text=table.record_schema)]

    def confirm() -> None:
        raise LockLost("another has the lease")

    with suppress(LockLost):
        write_deltacommit(
            table, requested, changes, Spreading(SerialExecutor()), issue_instant=lambda: requested, confirm=confirm
        )  # fmt: skip


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_deltacommit_of_no_action_is_taken_off(version: int) -> None:
    """Its writer lost the lease, and its action was rolled back, before it logged to the metadata table. A crash of who
    takes it off, at each of its changes, leaves it to be found.
    """
    clock = StepClock()
    made = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(1), SerialExecutor())
    made.create(table_version=version).upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1)]))
    assert isinstance(made.storage, MemoryStorage)
    requested = issue_instant(clock, UTC, after=None)
    log_as_a_sleeper(made.storage, requested)
    assert problems_on(made.storage) == [f"metadata table: pending deltacommit {requested}"]

    for survives in itertools.count():
        storage = made.storage.copy()
        dying = CrashingStorage(storage, survives, lands=True)
        with suppress(Crash):
            upsert(dying, clock, Row("a", "oslo", 1, 2), 2)
        upsert(storage, clock, Row("c", "bonn", 1, 4), 3)

        assert problems_on(storage) == [], f"after {survives} changes, {dying.fatal}"
        assert HudiTable.open("", storage=storage, clock=clock).metadata.validate().differences == ()
        if not dying.dead:
            assert survives > 8
            return
