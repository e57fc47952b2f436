"""A rollback of a completed write that dies could leave a write that is there in part, or a plan that a later writer
carries out when others hang on that write.

It is stopped at every change of the storage, both ways. Every way of reading gives the table with the write or without
it; whoever writes next brings a rollback to its end that began, and drops one that did not.
"""

import pytest

from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.faults.test_crash_everywhere import Values, snapshot, values
from tests.faults.test_restore_crashes import (
    INDEXES,
    MOR,
    NO_METADATA,
    OFTEN,
    OLD_INDEXES,
    SELDOM,
    Case,
    at,
    check_reads,
)
from tests.support.crashes import crash_points, distinct, every_nth
from tests.support.model import Row, arrow, problems_on, read_rows

CASES = {
    "8": Case(8),
    "8, logs and indexes": Case(8, MOR, {**SELDOM, **INDEXES}),
    "8, a metadata table that was compacted since": Case(8, properties=OFTEN),
    "8, no metadata table": Case(8, MOR, NO_METADATA),
    "9, logs and indexes": Case(9, MOR, {**SELDOM, **INDEXES}),
    "9, indexes": Case(9, properties={**SELDOM, **INDEXES}),
    "6, logs and indexes": Case(6, MOR, {**SELDOM, **OLD_INDEXES}),
    "6, indexes": Case(6, properties={**SELDOM, **OLD_INDEXES}),
}
QUICK = {"8": 9, "6, logs and indexes": 23}


@pytest.mark.parametrize("name,step", [*QUICK.items(), *(pytest.param(of, 1, marks=pytest.mark.long) for of in CASES)])
def test_a_rollback_that_dies_has_happened_or_not(name: str, step: int) -> None:
    """`step`: every so manieth crash only."""
    start, _, without = CASES[name].prepare()
    if "since" in name:
        at(start, 2_000).metadata.update()
    newest = max(i.requested for i in at(start, 3_000).timeline() if i.action in ("commit", "deltacommit"))
    written = values(snapshot(at(start, 3_000)))
    seen: set[bool] = set()

    def roll_back(storage: Storage) -> None:
        at(storage, 4_000).rollback(newest)

    for number, (what, disk) in enumerate(every_nth(distinct(crash_points(roll_back, start.copy)), step)):
        try:
            is_there = any(i.requested == newest and i.is_completed for i in at(disk, 5_000).timeline())
            seen.add(is_there)
            check_reads(disk, written if is_there else without)
            if is_there and number % 2:
                assert at(disk, 900_000).rollback(newest).rolled_back == newest
                check_end(disk, without)
            else:
                new = Row("new", "bonn", 1, 1)
                at(disk, 900_000).upsert(arrow([new]))
                check_end(disk, {**(written if is_there else without), ("bonn", "new"): new})
        except BaseException as error:
            error.add_note(f"stopped {what}")
            raise
    assert seen == {True, False}


def check_end(disk: MemoryStorage, rows: Values) -> None:
    """These rows, nothing under way, and a metadata table that is true."""
    table = at(disk, 1_000_000)
    assert values(read_rows(table.scan().to_arrow())) == rows
    assert problems_on(disk, has_metadata_table=None) == []
    assert [i for i in table.timeline() if not i.is_completed] == []
    if table.metadata.partitions_in_use:
        assert table.metadata.validate().differences == ()
