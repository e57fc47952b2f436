"""A writer that dies while its write changes the schema could leave columns without rows, or rows without columns."""

import pyarrow as pa

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.support.crashes import crash_points
from tests.support.model import Handles, Row, StepClock, arrow, seeded_uuids

STORED = [Row("a", "oslo", 1, 1), Row("b", "rome", 1, 2)]


def handles(storage: Storage, later_ms: int) -> Handles:
    return Handles(storage, StepClock(1_780_000_000_000 + later_ms), seeded_uuids(later_ms), SerialExecutor())


def widened(rows: list[Row]) -> pa.Table:
    """Rows with one column of a wider type, and one that is new."""
    narrow = arrow(rows)
    wide = narrow.set_column(narrow.schema.get_field_index("v"), "v", pa.array([row.v + 0.5 for row in rows]))
    return wide.append_column("new", pa.array(["x"] * len(rows)))


def seen(storage: Storage) -> tuple[pa.Schema, dict[str, object]]:
    table = handles(storage, 5_000).open()
    found = table.scan(meta_fields=False).to_arrow()
    assert found.schema == table.schema()
    return table.schema(), {row["id"]: row for row in found.to_pylist()}


def test_a_crash_leaves_schema_and_rows_of_before_or_of_after() -> None:
    start = MemoryStorage()
    handles(start, 0).create().upsert(arrow(STORED))
    before = seen(start)

    def change(storage: Storage) -> None:
        handles(storage, 1_000).open().upsert(widened(STORED[:1]))

    whole = start.copy()
    change(whole)
    after = seen(whole)
    assert after[0] != before[0]

    states = []
    for what, disk in crash_points(change, start.copy):
        state = seen(disk)
        assert state in (before, after), what
        states.append(state == after)
        handles(disk, 9_000).open().upsert(widened(STORED))
        schema, rows = seen(disk)
        assert schema == after[0], what
        assert {key: row["new"] for key, row in rows.items()} == {"a": "x", "b": "x"}, what  # type: ignore[index]
    assert True in states
    assert False in states
