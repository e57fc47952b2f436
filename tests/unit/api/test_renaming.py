"""A table could have one name in its properties and another where it is kept, or move away under a writer at work."""

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.api.renaming import rename_table
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.properties import CHECKSUM, table_checksum
from tests.concurrency.test_second_writer import watched
from tests.support.model import Handles
from tests.unit.api.test_alterations import KINDS, ROWS, filled


def rename(handles: Handles, *, moves: bool = True) -> None:
    rename_table(handles.open()._handle, "other", lambda: None, moves=moves)


def test_the_name_and_its_checksum_are_stated_anew() -> None:
    handles = filled()
    before = dict(handles.open().properties)
    rename(handles)
    after = dict(handles.open().properties)
    assert {name: text for name, text in after.items() if before.get(name) != text} == {
        "hoodie.table.name": "other", CHECKSUM: table_checksum(after)
    }  # fmt: skip
    handles.open().upsert(ROWS)
    assert handles.open().scan().count() == 3


def test_a_name_that_cannot_be_kept_is_not_given() -> None:
    handles = filled()
    before = handles.open().properties

    def fail() -> None:
        raise ValueError("taken")

    with pytest.raises(ValueError, match="taken"):
        rename_table(handles.open()._handle, "other", fail, moves=True)
    assert handles.open().properties == before


@pytest.mark.parametrize("moves", [True, False])
def test_a_table_does_not_move_under_a_writer_at_work(moves: bool) -> None:
    handles = filled()
    found: list[str] = []

    def rename_meanwhile(change: str) -> None:
        if ".parquet" in change and "metadata" not in change and not found:
            try:
                rename(handles, moves=moves)
                found.append("")
            except Conflict as conflict:
                found.append(str(conflict))

    storage = watched(handles.storage, rename_meanwhile)
    table = HudiTable.open("", storage=storage, clock=handles.clock, random=handles.random, executor=SerialExecutor())
    table.upsert(ROWS.set_column(2, "ts", pa.array([2, 2, 2])))

    assert ("expected no writer at work while the table's folder moves" in found[0]) == moves
    assert handles.open().name == ("t" if moves else "other")
    assert handles.open().scan(where="ts = 2").count() == 3


def test_plans_move_with_the_table() -> None:
    handles = filled(9, KINDS[1])
    handles.open().upsert(ROWS.set_column(2, "ts", pa.array([2, 2, 2])))
    assert handles.open().schedule_compaction().requested
    rename(handles)
    assert handles.open().compact().completed
    assert handles.open().scan(where="ts = 2").count() == 3
