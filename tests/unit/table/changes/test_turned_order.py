"""Changes could end in another row than the table has, where a compaction turned the order of two writes of one key.

`mine` begins first. While it is at work, others write the same key and complete, and a compaction takes their logs. So
the log of `mine` lies upon the new base file, and its row wins: by completion. Ranges and time travel go by requested
times.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, NotFound
from tests.unit.table.changes.test_changed_rows import applied, counted
from tests.unit.table.changes.test_late_completions import NON_BLOCKING, PARTIAL, Race, rows, values

Inner = Callable[[HudiTable], object]


def gone(table: HudiTable) -> None:
    table.delete(pa.table({"id": ["k"], "city": ["oslo"]}))
    table.compact()


def changed(table: HudiTable) -> None:
    table.upsert(rows("k", "y", v=20))
    table.compact()


def changed_twice(table: HudiTable) -> None:
    gone(table)
    table.upsert(rows("k", v=30, w=None))
    table.compact()


def others(table: HudiTable) -> None:
    table.upsert(rows("y", "z", ts=8, v=20))
    table.compact()


def after(inner: Inner, version: int = 9, properties: dict[str, str] | None = None) -> Race:
    race = Race(version, {**NON_BLOCKING, "hoodie.clean.automatic": "false", **(properties or {})})
    race.table.upsert(rows("k", "z", ts=1, v=0))
    race.table.compact()
    race.upsert(rows("k", "n", v=10, w=None), lambda: inner(race.table))
    return race


def check_changes(table: HudiTable) -> None:
    """Changes lead from the rows of each moment to those of the next, and to those of now."""
    moments = [instant.requested for instant in table.timeline() if instant.action != "clean"]
    then: dict[str | None, list[dict[str, Any]]] = {
        moment: table.scan(as_of=moment, meta_fields=False).to_arrow().to_pylist() for moment in moments
    }
    then[None] = []
    assert counted(then[moments[-1]]) == counted(table.scan(meta_fields=False).to_arrow().to_pylist())
    starts = [None, *moments]
    for place, start in enumerate(starts):
        for end in sorted({*moments[place : place + 1], moments[-1]}):
            changes = table.cdc(start=start, end=end).to_arrow().to_pylist()
            assert applied(then[start], changes) == counted(then[end]), (start, end)


@pytest.mark.parametrize("properties", [{}, {"hoodie.table.cdc.enabled": "true"}, PARTIAL])
@pytest.mark.parametrize("inner", [gone, changed, changed_twice, others])
@pytest.mark.parametrize("version", [8, 9])
def test_changes_lead_to_the_rows_of_the_table(version: int, inner: Inner, properties: dict[str, str]) -> None:
    table = after(inner, version, properties).table
    check_changes(table)
    table.compact()
    check_changes(table)


def test_the_compaction_that_turned_the_order_tells_what_it_changed() -> None:
    table = after(gone).table
    told = [(one["op"], one["requested"]) for one in table.cdc().to_arrow().to_pylist() if "k" in repr(one)]
    first, _, mine, other, compaction = (instant.requested for instant in table.timeline())
    assert told == [("i", first), ("u", mine), ("d", other), ("i", compaction)]


def test_a_compaction_beside_a_write_of_other_keys_tells_nothing() -> None:
    table = after(others).table
    compactions = {instant.requested for instant in table.timeline() if instant.action == "commit"}
    assert compactions.isdisjoint(table.cdc().to_arrow()["requested"].to_pylist())


def test_incremental_queries_go_by_completion() -> None:
    table = after(gone).table
    first, _, mine, other, compaction = table.timeline()
    assert other.completed is not None
    assert mine.completed is not None
    assert mine.completed > str(compaction.completed) > other.completed
    assert values(table.incremental(end=other.completed)) == {"z": (0, 7)}
    assert values(table.incremental(start=first.completed, end=compaction.completed)) == {}
    assert values(table.incremental(start=other.completed)) == {"k": (10, None), "n": (10, None)}
    assert values(table.scan()) == {"z": (0, 7), "k": (10, None), "n": (10, None)}


def test_where_the_files_before_were_cleaned_away_the_changes_are_refused() -> None:
    table = after(gone).table
    last = table.timeline()[-1].requested
    kept = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert table.clean(options=kept).files_deleted
    other = sorted(instant.requested for instant in table.timeline() if instant.action == "deltacommit")[-1]
    with pytest.raises(NotFound, match=f"the earliest start that can be answered with this end is '{last}'"):
        table.cdc(start=other).to_arrow()
    assert table.cdc(start=last).to_arrow().num_rows == 0


def test_the_order_is_known_where_the_writes_were_archived() -> None:
    table = after(gone).table
    first, _, mine, other, compaction = (instant.requested for instant in table.timeline())
    short = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    for turn in range(6):
        table.upsert(rows("z", ts=9, v=turn))
        table.archive(options=short)
    assert {mine, compaction}.isdisjoint(instant.requested for instant in table.timeline())

    now = table.scan(meta_fields=False).to_arrow().to_pylist()
    for start in (first, mine, other):
        changes = table.cdc(start=start).to_arrow().to_pylist()
        then = table.scan(as_of=start, meta_fields=False).to_arrow().to_pylist()
        assert applied(then, changes) == counted(now)
