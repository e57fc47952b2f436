"""Of a merge-on-read table an incremental query could read a slice that is not the one of the range's end."""

import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import Handles, Row, arrow


@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_older_slice_that_a_savepoint_kept_does_not_stand_in(version: int) -> None:
    """The slice in which ben was deleted is cleaned away; in the one before, he is there still."""
    handles = Handles(MemoryStorage())
    off = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}
    table: HudiTable = handles.create(
        table_type="MERGE_ON_READ", table_version=version, partition_by=None, properties=off
    )
    table.bulk_insert(arrow([Row(name, "oslo", 1, 1) for name in ("ada", "ben", "cleo")]))
    saved = table.upsert(arrow([Row("ada", "oslo", 2, 2)])).requested
    assert saved is not None
    table.savepoint(saved)
    table.compact()
    deleted = table.delete(arrow([Row("ben", "oslo", 3, 3)], ["id"]))
    span = (None, deleted.requested if version == 6 else deleted.completed)
    assert found(table, *span) == {("ada", 2), ("cleo", 1)}

    table.compact()
    table.upsert(arrow([Row("ada", "oslo", 4, 4)]))
    table.compact()
    assert table.clean(options={"hoodie.clean.commits.retained": "1"}).files_deleted
    assert found(table, *span) == {("cleo", 1)}  # ada was written again after the range


def found(table: HudiTable, start: str | None, end: str | None) -> set[tuple[str, int]]:
    rows = table.incremental(start, end).to_arrow()
    return set(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))
