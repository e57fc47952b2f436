"""A writer that dies while it alters a table could leave columns of before with a history of after, or the other way
round; and the next writer could carry on a history that never was. It is stopped at every change of the storage."""

import json

import pyarrow as pa
import pytest

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.support.crashes import crash_points
from tests.support.model import Handles, StepClock, problems_on, seeded_uuids

ROWS = pa.table({"id": ["a", "b"], "city": ["x", "y"], "ts": [1, 1], "v": [1, 2], "note": ["na", "nb"]})
BEFORE = (["id", "city", "ts", "v", "note"], ["na", "nb"])
STATS = {"hoodie.metadata.index.column.stats.enable": "true"}


def handles(storage: Storage, later_ms: int) -> Handles:
    return Handles(storage, StepClock(1_780_000_000_000 + later_ms), seeded_uuids(later_ms), SerialExecutor())


def seen(storage: Storage) -> tuple[list[str], list[object]]:
    """The names of the columns, and the values of the last one, which an alteration renames."""
    table = handles(storage, 5_000).open()
    found = table.scan(meta_fields=False).to_arrow().sort_by("id")
    assert found.schema == table.schema()
    return found.column_names, found.column(found.num_columns - 1).to_pylist()


def versions(storage: Storage) -> list[int]:
    """The instants of the newest history, the newest first."""
    files = sorted(file.path for file in storage.list(".hoodie/.schema") if file.path.endswith(".schemacommit"))
    return [schema["version_id"] for schema in json.loads(storage.get(files[-1]))["schemas"]] if files else []


CASES = [
    (8, "COPY_ON_WRITE", True, {}),
    (6, "MERGE_ON_READ", False, {}),
    pytest.param(9, "MERGE_ON_READ", True, STATS, marks=pytest.mark.long),
]


@pytest.mark.parametrize("version,kind,first,properties", CASES)
def test_a_crash_leaves_the_columns_of_before_or_of_after(
    version: int, kind: str, first: bool, properties: dict[str, str]
) -> None:
    """`first`: the table has no history yet."""
    start = MemoryStorage()
    table = handles(start, 0).create(table_version=version, table_type=kind, properties=properties)
    table.insert(ROWS)
    if not first:
        table.alter().drop("v").add("v", "int64", after="ts").commit()
    before = versions(start)

    def alter(storage: Storage) -> None:
        handles(storage, 1_000).open().alter().rename("note", "label").drop("v").commit()

    whole = start.copy()
    alter(whole)
    after = seen(whole)
    assert after == (["id", "city", "ts", "label"], ["na", "nb"])

    states = []
    for what, disk in crash_points(alter, start.copy):
        state = seen(disk)
        assert state in (BEFORE, after), what
        states.append(state == after)
        if state != after:
            alter_again = handles(disk, 9_000).open().alter().rename("note", "label").drop("v")
            alter_again.commit()
        assert seen(disk) == after, what
        handles(disk, 12_000).open().upsert(pa.table({"id": ["a"], "city": ["x"], "ts": [2], "label": ["new"]}))
        assert seen(disk) == (after[0], ["new", "nb"]), what
        assert len(versions(disk)) == max(len(before), 1) + 1, what
        completed = {i.requested for i in handles(disk, 20_000).open().timeline() if i.is_completed}
        assert {str(one) for one in versions(disk) if one} <= completed, what
        assert problems_on(disk) == [], what
    assert True in states
    assert False in states
