"""An overwrite could take rows that it must leave, leave some that it must take, or lose the past of what it replaces.

Overwrites and deletions of partitions, by every way of reading; what stands in their way must be refused before a byte
is written.
"""

from dataclasses import replace

import pytest

from pyhudi import HudiTable
from pyhudi.errors import Conflict, Invalid, NotFound
from pyhudi.format.timeline.action_files import encode_compaction_plan, encode_requested_replace
from pyhudi.format.timeline.records import (
    ClusteringGroup,
    ClusteringPlan,
    CompactionOperation,
    CompactionPlan,
    RequestedReplaceMetadata,
    SliceInfo,
)
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.file_system_view import FileSlice
from tests.support.model import Handles, Row, arrow, dump, problems_on, read_rows

ROWS = [Row(f"k{n}", ("oslo", "rome", "bonn")[n % 3], 5, n) for n in range(30)]
NEW = [Row("k0", "oslo", 1, 99), Row("fresh", "york", 1, 1)]
TIMELINE = ".hoodie/timeline"


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def table(storage: MemoryStorage) -> HudiTable:
    table = Handles(storage).create()
    table.upsert(arrow(ROWS))
    return table


def rows_of(table: HudiTable, as_of: str | None = None) -> set[Row]:
    return {of.row for of in read_rows(table.scan(as_of=as_of).to_arrow()).values()}


def of_cities(*cities: str) -> set[Row]:
    return {row for row in ROWS if row.city in cities}


def some_slice(table: HudiTable, partition: str) -> FileSlice:
    return table._access.snapshot().slices(partition)[0]


def replaced_by(table: HudiTable) -> dict[str, tuple[str, ...]]:
    """What the newest commit says that it replaced."""
    snapshot = table._access.snapshot()
    metadata = read_commit(snapshot.storage, snapshot.timeline, snapshot.timeline.completed_writes[-1])
    assert metadata.partition_to_replace_file_ids is not None
    return dict(metadata.partition_to_replace_file_ids)


def test_an_overwrite_replaces_the_partitions_of_its_rows_whatever_their_ordering(table: HudiTable) -> None:
    before = table.timeline()[-1]
    groups = {piece.file_id for piece in table._access.snapshot().slices("oslo")}

    result = table.insert_overwrite(arrow(NEW), extra_metadata={"job": "7"})

    assert (result.operation, result.inserted, result.replaced) == ("insert_overwrite", 2, len(groups))
    assert table.timeline()[-1].action == "replacecommit"
    assert rows_of(table) == {*NEW, *of_cities("rome", "bonn")}
    assert rows_of(table, as_of=before.requested) == set(ROWS)
    assert {n: set(of) for n, of in replaced_by(table).items()} == {"oslo": groups, "york": set()}
    newest = table._access.snapshot().slices("oslo")
    assert not groups & {piece.file_id for piece in newest}, "new rows joined a group that was replaced"


def test_an_overwrite_of_the_table_leaves_nothing_else(table: HudiTable) -> None:
    before = table.timeline()[-1]

    table.insert_overwrite_table(arrow(NEW))
    emptied = table.insert_overwrite_table(arrow([]))

    assert emptied.replaced == 2
    assert rows_of(table) == set()
    assert rows_of(table, as_of=before.requested) == set(ROWS)
    assert set(replaced_by(table)) == {"oslo", "rome", "bonn", "york"}


def test_deleted_partitions_are_gone_until_rows_come_again(table: HudiTable, storage: MemoryStorage) -> None:
    before = table.timeline()[-1]

    result = table.delete_partitions(["rome", "oslo", "rome"], extra_metadata={"why": "old"})
    gone = rows_of(table)
    again = table.upsert(arrow([ROWS[0]]))

    assert (result.operation, result.deleted, result.files) == ("delete_partition", 0, 0)
    assert gone == of_cities("bonn")
    assert (again.inserted, again.updated) == (1, 0), "a row that was deleted was found"
    assert rows_of(table) == {ROWS[0], *of_cities("bonn")}
    assert rows_of(table, as_of=before.requested) == set(ROWS)
    assert problems_on(storage) == []


def test_an_increment_shows_what_an_overwrite_wrote_and_nothing_that_it_replaced(table: HudiTable) -> None:
    first = table.timeline()[-1]
    second = table.insert_overwrite(arrow(NEW))
    third = table.delete_partitions(["york"])

    def between(start: str | None, end: str | None) -> set[Row]:
        return {of.row for of in read_rows(table.incremental(start, end).to_arrow()).values()}

    assert between(None, first.completed) == set(ROWS)
    assert between(first.completed, second.completed) == set(NEW)
    assert between(None, second.completed) == {*NEW, *of_cities("rome", "bonn")}
    assert between(second.completed, third.completed) == set()
    assert between(first.completed, third.completed) == {NEW[0]}


def test_what_a_caller_adds_to_a_commit_lands_in_replacements_too(table: HudiTable) -> None:
    heard: list[str] = []
    for write in (
        lambda **of: table.insert_overwrite(arrow(NEW), **of),
        lambda **of: table.insert_overwrite_table(arrow(NEW), **of),
        lambda **of: table.delete_partitions(["york"], **of),
    ):
        result = write(
            extra_metadata={"job": "7"}, options={"_batch": "b"}, on_commit=lambda of: heard.append(of.operation)
        )
        snapshot = table._access.snapshot()
        metadata = read_commit(snapshot.storage, snapshot.timeline, snapshot.timeline.completed_writes[-1])
        said = metadata.extra_metadata
        assert (said["job"], said["_batch"]) == ("7", "b")
        assert said["schema"] == snapshot.schema_text, "without it the next reader finds no columns"
        assert heard[-1] == result.operation
    assert len(heard) == 3


def test_an_unknown_partition_is_named_and_nothing_is_done(table: HudiTable, storage: MemoryStorage) -> None:
    before = dump(storage)

    with pytest.raises(NotFound, match=r"partition 'osla': .* the nearest is 'oslo'"):
        table.delete_partitions(["rome", "osla"])
    with pytest.raises(Invalid, match=r"expected a sequence of paths, such as \['rome'\]"):
        table.delete_partitions("rome")

    assert table.delete_partitions([]).requested is None
    assert dump(storage) == before


def test_patterns_name_partitions() -> None:
    table = Handles(MemoryStorage()).create()
    table.upsert(arrow(Row("k", city, 1, 1) for city in ("a1", "a2", "b1", "[a]1")))

    assert table.partitions_like(["a*"]) == ("a1", "a2")
    assert table.partitions_like(["*1", "a1"]) == ("[a]1", "a1", "b1")
    assert table.partitions_like(["%2A2", "b1"]) == ("a2", "b1")
    assert table.partitions_like(["[a]1"]) == ("[a]1",)
    with pytest.raises(NotFound, match=r"partitions 'c\*': expected at least one that matches, found none among '"):
        table.partitions_like(["c*"])
    assert table.partitions_of(arrow([Row("k", "a1", 1, 1), Row("l", "new", 1, 1)])) == ("a1", "new")


def plan_clustering(storage: MemoryStorage, table: HudiTable, partition: str) -> None:
    piece = some_slice(table, partition)
    slices = (SliceInfo(None, (), piece.file_id, partition),)
    plan = RequestedReplaceMetadata("CLUSTER", ClusteringPlan((ClusteringGroup(slices),)), {}, version=1)
    storage.put(f"{TIMELINE}/20300101000000000.clustering.requested", encode_requested_replace(plan))


def plan_compaction(storage: MemoryStorage, table: HudiTable, partition: str) -> None:
    piece = some_slice(table, partition)
    plan = CompactionPlan((CompactionOperation(piece.base_instant, (), None, piece.file_id, partition),))
    storage.put(f"{TIMELINE}/20300101000000000.compaction.requested", encode_compaction_plan(plan))


@pytest.mark.parametrize("service", [plan_clustering, plan_compaction])
def test_a_pending_service_keeps_its_partition_from_being_replaced(
    table: HudiTable, storage: MemoryStorage, service: object
) -> None:
    """It would bring the rows back that the overwrite took."""
    assert callable(service)
    table._access.clock.ms = 1_893_456_000_000  # type: ignore[attr-defined]  # 2030-01-01
    service(storage, table, "rome")
    pending = r"partition 'rome': (clustering|compaction) '20300101000000000' is pending"

    for write in (
        lambda: table.delete_partitions(["oslo", "rome"]),
        lambda: table.insert_overwrite(arrow([Row("a", "rome", 1, 1)])),
        lambda: table.insert_overwrite_table(arrow([])),
    ):
        with pytest.raises(Conflict, match=pending):
            write()
    assert rows_of(table) == set(ROWS)

    table.delete_partitions(["oslo"])
    table.insert_overwrite(arrow([replace(ROWS[2], v=-1)]))
    assert rows_of(table) == {replace(ROWS[2], v=-1), *of_cities("rome")}


def test_an_empty_overwrite_commits_or_not_as_the_setting_says(table: HudiTable) -> None:
    assert table.insert_overwrite(arrow([]), options={"hoodie.allow.empty.commit": "false"}).requested is None
    assert table.insert_overwrite(arrow([])).replaced == 0
    assert rows_of(table) == set(ROWS)
    emptied = table.insert_overwrite_table(arrow([]), options={"hoodie.allow.empty.commit": "false"})
    assert emptied.requested is not None, "it had something to replace"
    assert rows_of(table) == set()


def test_the_first_write_of_a_table_may_be_an_overwrite() -> None:
    for method in ("insert_overwrite", "insert_overwrite_table"):
        table = Handles(MemoryStorage()).create()
        getattr(table, method)(arrow(NEW))
        assert rows_of(table) == set(NEW)
