"""An upgrade or a downgrade that dies could leave a table that no version reads, or rows of two timelines.

It is stopped at every change of the storage. Then the rows are those of before, at either version, and the next call
ends it.
"""

import pyarrow as pa
import pytest

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.support.compare import assert_same_rows
from tests.support.crashes import crash_points
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, seeded_uuids

KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


def handles(storage: Storage, later_ms: int) -> Handles:
    return Handles(storage, StepClock(1_780_000_000_000 + later_ms), seeded_uuids(later_ms), SerialExecutor())


def seen(storage: Storage) -> pa.Table:
    return handles(storage, 50_000).open().scan(meta_fields=False).to_arrow()


BARE = {"hoodie.metadata.enable": "false"}
CASES = [
    (6, 8, "COPY_ON_WRITE", BARE),
    (5, 6, "COPY_ON_WRITE", BARE),
    (6, 7, "COPY_ON_WRITE", BARE),
    (7, 6, "COPY_ON_WRITE", BARE),
    pytest.param(7, 8, "COPY_ON_WRITE", BARE, marks=pytest.mark.long),
    pytest.param(8, 7, "COPY_ON_WRITE", BARE, marks=pytest.mark.long),
    pytest.param(6, 7, "MERGE_ON_READ", {}, marks=pytest.mark.long),
    pytest.param(7, 6, "MERGE_ON_READ", {}, marks=pytest.mark.long),
    pytest.param(7, 9, "MERGE_ON_READ", {}, marks=pytest.mark.long),
    pytest.param(9, 7, "MERGE_ON_READ", {}, marks=pytest.mark.long),
    pytest.param(9, 8, "MERGE_ON_READ", {}, marks=pytest.mark.long),
    pytest.param(8, 6, "MERGE_ON_READ", {}, marks=pytest.mark.long),
    pytest.param(5, 6, "MERGE_ON_READ", {}, marks=pytest.mark.long),
    pytest.param(6, 5, "MERGE_ON_READ", {}, marks=pytest.mark.long),
    pytest.param(9, 5, "MERGE_ON_READ", {}, marks=pytest.mark.long),
    pytest.param(6, 9, "COPY_ON_WRITE", {}, marks=pytest.mark.long),
    pytest.param(9, 6, "COPY_ON_WRITE", {}, marks=pytest.mark.long),
    pytest.param(8, 9, "MERGE_ON_READ", {}, marks=pytest.mark.long),
    pytest.param(6, 8, "MERGE_ON_READ", {}, marks=pytest.mark.long),
]


@pytest.mark.parametrize("before,after,kind,properties", CASES)
def test_a_crash_leaves_the_table_at_one_version_and_the_next_call_ends_it(
    before: int, after: int, kind: str, properties: dict[str, str]
) -> None:
    clock = StepClock()
    start = MemoryStorage(clock_ms=lambda: clock.ms)
    table = Handles(start, clock, seeded_uuids(1), SerialExecutor()).create(
        table_version=before, table_type=kind, properties={**KEEP, **properties}
    )
    for ts in range(1, 3 if properties else 6):
        table.upsert(arrow([Row("a", "oslo", ts, ts), Row(f"b{ts}", "rome", ts, ts)]))
    expected = seen(start)
    archived = {i.requested for i in table.timeline(history=True)}

    def change(storage: Storage) -> None:
        own = handles(storage, 20_000).open()
        (own.upgrade if after > before else own.downgrade)(after)

    versions = set()
    for what, disk in crash_points(change, start.copy):
        own = handles(disk, 600_000).open()
        versions.add(own.table_version)
        assert own.table_version in (before, after), what
        assert_same_rows(seen(disk), expected)
        assert archived <= {i.requested for i in own.timeline(history=True)}, what
        (own.upgrade if after > before else own.downgrade)(after)
        assert own.table_version == after, what
        assert_same_rows(seen(disk), expected)
        assert archived <= {i.requested for i in own.timeline(history=True)}, what
        own.upsert(arrow([Row("a", "oslo", 9, 9)]))
        assert problems_on(disk, has_metadata_table=not properties) == [], what
        assert not [file.path for file in disk.list(".hoodie") if "version_change" in file.path], what
    assert versions == {before, after}


def test_a_write_behind_a_change_that_died_costs_no_index() -> None:
    """The write makes the metadata table anew. Right after the change of version it has the list of files alone: the
    next call makes the other indexes.
    """
    clock = StepClock()
    start = MemoryStorage(clock_ms=lambda: clock.ms)
    table = Handles(start, clock, seeded_uuids(1), SerialExecutor()).create(table_version=8)
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    table.build_index("record_index")

    def change(storage: Storage) -> None:
        handles(storage, 20_000).open().upgrade(9)

    lost, noted_at = 0, set[int]()
    for what, disk in [*crash_points(change, start.copy)][::3]:
        own = handles(disk, 600_000).open()
        is_noted = "pyhudi.metadata.partitions.lost" in own.properties
        own.upsert(arrow([Row("b", "oslo", 1, 1)]))
        has_index = "record_index" in own.metadata.partitions_in_use
        assert has_index or (own.table_version == 9 and not is_noted), what
        noted_at.update([own.table_version] if is_noted else [])
        lost += not has_index
        own.upgrade(9)
        assert set(own.metadata.partitions_in_use) == {"files", "record_index"}, what
        assert own.metadata.validate().differences == (), what
    assert lost
    assert noted_at == {8, 9}
