"""A table that went to another version and came back could tell other times, or merge logs upon base files that hold
them already. Small tables go both ways here, in memory."""

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import Handles, Row, StepClock, arrow, seeded_uuids

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def new_table(version: int, kind: str, **properties: str) -> HudiTable:
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    return Handles(storage, clock, seeded_uuids(version), SerialExecutor()).create(
        table_version=version, table_type=kind, properties={"hoodie.metadata.enable": "false", **properties}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_comes_back_from_version_6_has_its_completion_times(kind: str) -> None:
    table = new_table(8, kind)
    first = table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "oslo", 1, 1)]))
    second = table.upsert(arrow([Row("a", "oslo", 2, 2)]))
    times = {i.requested: i.completed for i in table.timeline()}

    table.downgrade(6)
    table.upgrade(8)

    assert {i.requested: i.completed for i in table.timeline() if i.requested in times} == times
    changed = table.incremental(start=first.completed).to_arrow()
    assert changed["id"].to_pylist() == ["a"]
    assert table.incremental(start=second.completed).count() == 0
    newest = table.scan()
    assert not [file for file in newest.files() if ".log." in file], "logs that a base file holds are read again"
    assert table.upgrade(9, dry_run=True).steps
