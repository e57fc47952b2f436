"""Of a merge-on-read table an incremental query could read a slice that is not the one of the range's end."""

import pytest

from pyhudi import HudiTable, Invalid, NotFound
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.changes.incremental import OnCleaned
from tests.support.model import Handles, Row, arrow
from tests.support.versions import EVERY_VERSION


@pytest.mark.parametrize("version", EVERY_VERSION)
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
    span = (None, deleted.requested if version <= 6 else deleted.completed)
    assert found(table, *span) == {("ada", 2), ("cleo", 1)}

    table.compact()
    table.upsert(arrow([Row("ada", "oslo", 4, 4)]))
    table.compact()
    assert table.clean(options={"hoodie.clean.commits.retained": "1"}).files_deleted
    with pytest.raises(NotFound, match="cleaned away after their rows had changed again"):
        found(table, *span)
    assert found(table, *span, on_cleaned="rows") == {("cleo", 1)}  # ada was written again after the range


@pytest.mark.parametrize("version", EVERY_VERSION)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_range_that_lacks_rows_is_refused_and_the_start_that_is_named_is_answered(
    table_type: str, version: int
) -> None:
    handles = Handles(MemoryStorage())
    off = {"hoodie.clean.automatic": "false", "hoodie.parquet.small.file.limit": "0"}
    table = handles.create(table_type=table_type, table_version=version, partition_by=None, properties=off)
    wrote = [table.insert(arrow([Row(name, "oslo", 1, 1)])) for name in ("ada", "ben")]
    for ts in (2, 3, 4):
        wrote.append(table.upsert(arrow([Row("ada", "oslo", ts, ts)])))
        if table_type == "MERGE_ON_READ":
            table.compact()
    times = [of.requested if version <= 6 else of.completed for of in wrote]
    assert found(table, None, times[2]) == {("ada", 2), ("ben", 1)}

    table.clean(options={"hoodie.clean.commits.retained": "1"})

    with pytest.raises(NotFound, match=f"earliest start that can be answered with this end is '{times[2]}'"):
        table.incremental(None, times[2])
    assert found(table, times[2], times[2]) == set()
    assert found(table, None, times[2], on_cleaned="rows") == {("ben", 1)}
    assert found(table, None, None) == {("ada", 4), ("ben", 1)}
    with pytest.raises(Invalid, match="a start at or before the end"):
        table.incremental(times[2], times[1])
    with pytest.raises(Invalid, match="expected 'error' or 'rows'"):
        table.incremental(on_cleaned="fallback")  # type: ignore[arg-type]


def found(
    table: HudiTable, start: str | None, end: str | None, on_cleaned: OnCleaned = "error"
) -> set[tuple[str, int]]:
    rows = table.incremental(start, end, on_cleaned=on_cleaned).to_arrow()
    return set(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_a_group_that_was_only_compacted_in_a_range_has_nothing_new(version: int) -> None:
    """Seen: a log compaction of 1.2.0 stamps rows of before with its own instant, and its range has none of them."""
    handles = Handles(MemoryStorage())
    off = {"hoodie.compact.inline": "false", "hoodie.log.compaction.blocks.threshold": "2"}
    table = handles.create(table_type="MERGE_ON_READ", table_version=version, partition_by=None, properties=off)
    for ts in (1, 2, 3, 4):
        last = table.upsert(arrow([Row("ada", "oslo", ts, ts), Row("ben", "oslo", 1, 1)][: 1 + (ts == 1)]))
    since = last.requested if version <= 6 else last.completed
    for compact in (table.log_compact, table.compact):
        assert compact().completed
        scan = table.incremental(since, None)
        assert (scan.count(), scan.files()) == (0, [])
    assert found(table, None, None) == {("ada", 4), ("ben", 1)}
