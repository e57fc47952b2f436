"""A writer could die while it builds an index of the metadata table, keeps one true or drops one, and leave an index
that says other than the data files.

Each is stopped at every change of the storage, both ways. Whatever is named in the table's properties then must be
true, and so must everything be after the next write, which tidies up.
"""

from collections import Counter
from collections.abc import Callable
from datetime import UTC

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.support.crashes import crash_points
from tests.support.metadata_indexes import index_problems
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, seeded_uuids

START = 1_780_000_000_000
INDEXES = {
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
    "hoodie.metadata.index.secondary.column": "v",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.index.type": "GLOBAL_SIMPLE",
}
LOG_COMPACTS = {
    "hoodie.metadata.log.compaction.enable": "true",
    "hoodie.metadata.log.compaction.blocks.threshold": "2",
}
SINCE_8 = ("hoodie.metadata.index.secondary.column", "hoodie.metadata.index.partition.stats.enable")
OFF = {
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.global.record.level.index.enable": "false",
    "hoodie.metadata.index.bloom.filter.enable": "false",
}
STORED = [Row(f"k{n}", ("oslo", "rome")[n % 2], 5, n) for n in range(4)]
CHANGES = [Row("k0", "oslo", 6, 9), Row("k1", "bonn", 6, 1), Row("new", "rome", 5, 2)]

Write = Callable[[HudiTable], object]


def open_table(storage: Storage, *, later_ms: int) -> HudiTable:
    return Handles(storage, StepClock(START + later_ms), seeded_uuids(later_ms), SerialExecutor()).open()


def indexes(version: int) -> dict[str, str]:
    return {name: value for name, value in INDEXES.items() if version >= 8 or name not in SINCE_8}


def prepared(version: int, *, has_indexes: bool, **properties: str) -> MemoryStorage:
    storage = MemoryStorage()
    handles = Handles(storage, StepClock(START), seeded_uuids(0), SerialExecutor())
    extra = indexes(version) if has_indexes else {"hoodie.index.type": "GLOBAL_SIMPLE"}
    table = handles.create(properties={**extra, **properties}, table_type="MERGE_ON_READ", table_version=version)
    table.upsert(arrow(STORED))
    table.upsert(arrow(STORED[:1]))
    return storage


SCENARIOS: dict[str, tuple[Callable[[int], MemoryStorage], Write]] = {
    "builds them": (
        lambda version: prepared(version, has_indexes=False),
        lambda table: table.upsert(arrow(CHANGES), options=indexes(table.table_version)),
    ),
    "keeps them true": (
        lambda version: prepared(version, has_indexes=True), lambda table: table.upsert(arrow(CHANGES))
    ),
    "compacts them": (
        lambda version: prepared(version, has_indexes=True, **{"hoodie.metadata.compact.max.delta.commits": "1"}),
        lambda table: table.delete(arrow(STORED[1:3])),
    ),
    "log compacts them": (
        lambda version: prepared(version, has_indexes=True, **LOG_COMPACTS),
        lambda table: table.delete(arrow(STORED[1:3])),
    ),
    "drops them": (
        lambda version: prepared(version, has_indexes=True), lambda table: table.upsert(arrow(CHANGES), options=OFF)
    ),
}  # fmt: skip


@pytest.mark.parametrize("version", [9, pytest.param(6, marks=pytest.mark.long)])
@pytest.mark.parametrize("what", ["keeps them true", *(pytest.param(s, marks=pytest.mark.long) for s in SCENARIOS)])
def test_a_writer_that_dies_leaves_only_true_indexes(what: str, version: int) -> None:
    prepare, write = SCENARIOS[what]
    start = prepare(version)
    points = 0

    def run(storage: Storage) -> None:
        write(open_table(storage, later_ms=2_000))

    for note, disk in crash_points(run, start.copy):
        points += 1
        assert index_problems(disk) == [], note
        open_table(disk, later_ms=4_000).upsert(arrow([Row("k2", "rome", 9, 100)]))
        assert index_problems(disk) == [], note
        assert problems_on(disk) == [], note
    assert points > 20


@pytest.mark.parametrize("version", [8, 6])
def test_a_log_compaction_that_dies_changes_nothing_and_is_done_anew(version: int) -> None:
    """Of `files` and the record index, without anything else being written."""
    properties = {name: INDEXES[name] for name in INDEXES if "record.level" in name}
    start = MemoryStorage()
    table = Handles(start, StepClock(START), seeded_uuids(0), SerialExecutor()).create(
        properties=properties, table_type="MERGE_ON_READ", table_version=version
    )
    for n in range(3):
        table.upsert(arrow([*STORED, Row(f"n{n}", "oslo", 5, n)]))
    states = set()

    def run(storage: Storage) -> None:
        open_table(storage, later_ms=2_000).metadata.update(options=LOG_COMPACTS)

    def log_compactions(disk: Storage) -> Counter[str]:
        timeline = open_metadata_table(disk, UTC).timeline
        return Counter(i.state for i in timeline if i.requested in timeline.log_compactions)

    for note, disk in crash_points(run, start.copy):
        assert index_problems(disk) == [], note
        states |= set(log_compactions(disk))
        open_table(disk, later_ms=4_000).metadata.update(options=LOG_COMPACTS)
        assert log_compactions(disk) == {"COMPLETED": 1}, note
        assert index_problems(disk) == [], note
        assert problems_on(disk) == [], note
    assert states == {"REQUESTED", "INFLIGHT", "COMPLETED"}
