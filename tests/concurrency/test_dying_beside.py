"""A writer that dies while another works could leave what the other's commit builds upon, and nobody can finish."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.testing.crashing import Crash, CrashingStorage
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
