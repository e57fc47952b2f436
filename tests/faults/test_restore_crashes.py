"""A restore deletes what others have written: one that died halfway could leave a table that never was.

It is stopped at every change of the storage, both ways. Before it is requested the table must be as it was; from then
on every way of reading must give the table that it is to be restored to, and whoever comes next, a write or a restore,
brings it to its end.
"""

from dataclasses import dataclass, field

import pytest

from pyhudi import HudiTable
from pyhudi.format.timeline.instant import WRITE_ACTIONS
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.faults.test_crash_everywhere import (
    NEXT,
    START,
    STORED,
    Values,
    handles,
    snapshot,
    values,
    without_metadata_table,
)
from tests.support.crashes import crash_points, distinct, every_nth
from tests.support.model import Row, arrow, problems_on, read_rows

OLD_INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
INDEXES = {
    **OLD_INDEXES,
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.secondary.column": "note",
}
SELDOM = {"hoodie.metadata.compact.max.delta.commits": "100"}
OFTEN = {"hoodie.metadata.compact.max.delta.commits": "1"}
NO_METADATA = {"hoodie.metadata.enable": "false"}


@dataclass(frozen=True)
class Case:
    """What a table is, and whether everything that can come after a savepoint does, services too."""

    version: int
    table_type: str = "COPY_ON_WRITE"
    properties: dict[str, str] = field(default_factory=lambda: SELDOM)
    is_busy: bool = False

    def prepare(self) -> tuple[MemoryStorage, str, Values]:
        """A table with a savepoint and writes since, its commit, and its rows then."""
        disk = MemoryStorage(clock_ms=lambda: START)
        made = handles(disk)
        table = made.create(
            table_type=self.table_type, table_version=self.version, properties={**NO_CLEAN, **self.properties}
        )
        table.upsert(arrow(STORED[:6]))
        table.upsert(arrow([*STORED[6:], *STORED[:2]]))
        saved = table.savepoint(comment="before the flood").requested
        rows = values(snapshot(table))
        table.upsert(arrow([Row("k0", "oslo", 9, 77, "x"), Row("z", "bonn", 1, 1)]))
        if self.is_busy:
            table.delete(arrow([STORED[1]], ["id", "city"]))
            if self.table_type == "MERGE_ON_READ":
                table.compact()
                table.upsert(arrow([Row("k2", "oslo", 9, 78)]))
                table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "1"})
                table.schedule_compaction()
                table.upsert(arrow([Row("k2", "oslo", 9, 79), Row("k4", "oslo", 9, 79)]))
            table.insert_overwrite(arrow([Row("q", "rome", 1, 1)]))
        assert values(snapshot(table)) != rows
        return disk, saved, rows


NO_CLEAN = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
MOR = "MERGE_ON_READ"
CASES = {
    "8": Case(8),
    "8, everything": Case(8, MOR, {**SELDOM, **INDEXES}, is_busy=True),
    "8, a compacted metadata table": Case(8, properties=OFTEN),
    "8, no metadata table": Case(8, MOR, NO_METADATA),
    "9, everything": Case(9, MOR, {**SELDOM, **INDEXES}, is_busy=True),
    "9, everything, copy-on-write": Case(9, properties={**SELDOM, **INDEXES}, is_busy=True),
    "6, logs": Case(6, MOR),
    "6, everything": Case(6, MOR, {**SELDOM, **OLD_INDEXES}, is_busy=True),
    "6, everything, copy-on-write": Case(6, properties={**SELDOM, **OLD_INDEXES}, is_busy=True),
}
QUICK = {"8": 15, "6, logs": 13}


def at(storage: Storage, later_ms: int) -> HudiTable:
    return handles(storage, later_ms=later_ms).open()


def check_reads(disk: MemoryStorage, rows: Values) -> None:
    """Every way of reading gives these rows."""
    table, by_storage = at(disk, 5_000), without_metadata_table(disk)
    found = snapshot(table)
    assert values(found) == rows
    assert snapshot(by_storage) == found
    assert read_rows(by_storage.incremental().to_arrow()) == found
    ids = [row.id for row in rows.values()]
    assert values(read_rows(table.lookup([*ids, "q", "z"]))) == rows
    assert values(read_rows(table.scan(where="id in ('k0', 'k2', 'z', 'q')").to_arrow())) == {
        key: row for key, row in rows.items() if row.id in ("k0", "k2", "z", "q")
    }


def check_end(disk: MemoryStorage, saved: str) -> None:
    """Nothing is left under way, what is after the commit is gone, and the metadata table is true."""
    table = at(disk, 1_000_000)
    assert problems_on(disk, has_metadata_table=None) == []
    writes = [i for i in table.timeline() if i.comparable_action in WRITE_ACTIONS]
    assert [i.requested for i in writes][:2][-1] == saved
    assert [i.action for i in table.timeline() if i.action == "rollback"] == []
    if table.metadata.partitions_in_use:
        assert table.metadata.validate().differences == ()


@pytest.mark.parametrize("name,step", [*QUICK.items(), *(pytest.param(of, 1, marks=pytest.mark.long) for of in CASES)])
def test_a_restore_that_dies_is_brought_to_its_end(name: str, step: int) -> None:
    """`step`: every so manieth crash only."""
    start, saved, rows = CASES[name].prepare()
    before = values(snapshot(at(start, 3_000)))
    seen: set[tuple[str, ...]] = set()

    def restore(storage: Storage) -> None:
        at(storage, 4_000).restore(saved)

    for number, (what, disk) in enumerate(every_nth(distinct(crash_points(restore, start.copy)), step)):
        try:
            states = [i.state for i in at(disk, 5_000).timeline() if i.action == "restore"]
            begun = bool(states)
            seen.add(tuple(states))
            check_reads(disk, rows if begun else before)
            if number % 2:
                result = at(disk, 6_000).restore(saved)
                assert (result.requested is None) == (states == ["COMPLETED"]), result
                check_reads(disk, rows)
                check_end(disk, saved)
            at(disk, 7_000).upsert(arrow(NEXT))
            wanted = {**(rows if begun or number % 2 else before), **{(row.city, row.id): row for row in NEXT}}
            check_reads(disk, wanted)
            if begun or number % 2:
                check_end(disk, saved)
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise

    assert {(), ("INFLIGHT",)} <= seen <= {(), ("REQUESTED",), ("INFLIGHT",), ("COMPLETED",)}
