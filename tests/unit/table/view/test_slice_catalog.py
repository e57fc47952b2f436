"""A write, or a query, could look at every partition of a table for the few that it touches, or confuse two slices."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC

import pytest

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.predicate import Predicate, partition_can_match
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.read import plan as read_plan
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.slice_catalog import SliceCatalog
from pyhudi.table.view.snapshot import Snapshot, read_snapshot
from tests.support.model import Handles, Row, StepClock, arrow, seeded_uuids

PARTITIONS = 12
RECORD_INDEX = {
    "hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "true",
}  # fmt: skip


@contextmanager
def asked_for(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The partitions whose slices are made out meanwhile."""
    made, own = [], Snapshot.slices

    def slices(snapshot: Snapshot, partition: str, groups: Collection[str] | None = None) -> list[FileSlice]:
        made.append(partition)
        return own(snapshot, partition, groups)

    with monkeypatch.context() as patch:
        patch.setattr(Snapshot, "slices", slices)
        yield made


def handles_of(options: dict[str, str]) -> Handles:
    handles = Handles(MemoryStorage(), StepClock(), seeded_uuids(1), SerialExecutor())
    table = handles.create(properties=options, schema=arrow([]).schema)
    table.bulk_insert(arrow(Row(f"k{n:02}", f"p{n:02}", 1, n) for n in range(PARTITIONS)))
    return handles


def test_slices_keep_their_numbers_and_are_made_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = read_snapshot(handles_of({}).storage, UTC, open_listing)
    stored = SliceCatalog(snapshot)

    with asked_for(monkeypatch) as made:
        stored.bring(["p02", "nowhere"])
        first = stored[0]
        stored.bring(["p00", "p02"])
        few = dict(stored.by_partition)
        stored.bring_all()

    assert made[:3] == ["p02", "nowhere", "p00"]
    assert set(few) == {"p00", "p02"}
    assert len(made) == len(set(made)) == PARTITIONS + 1
    assert [piece.partition for piece in stored] == [partition for partition in made if partition != "nowhere"]
    assert stored[0] is first


def test_of_a_partition_that_is_brought_in_twice_no_file_group_has_two_numbers() -> None:
    handles = handles_of({})
    handles.open().bulk_insert(arrow(Row(f"m{n:02}", "p00", 1, n) for n in range(3)))
    snapshot = read_snapshot(handles.storage, UTC, open_listing)
    file_ids = [piece.file_id for piece in snapshot.slices("p00")]
    assert len(file_ids) == 2
    stored = SliceCatalog(snapshot)

    stored.bring_groups({"p00": {file_ids[1], "gone"}, "nowhere": {"any"}})
    assert [piece.file_id for piece in stored] == [file_ids[1]]
    assert [piece.file_id for piece in stored.whole(["p00"])["p00"]] == file_ids
    stored.bring(["p00"])

    assert [piece.file_id for piece in stored] == [file_ids[1], file_ids[0]]
    assert set(stored.by_partition) == {"p00"}


def test_by_record_index_only_the_partitions_of_rows_and_of_their_keys_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = handles_of(RECORD_INDEX).open()

    with asked_for(monkeypatch) as made:
        moved = table.upsert(arrow([Row("k07", "p03", 2, 0), Row("new", "p05", 2, 0)]))

    assert set(made) == {"p03", "p05", "p07"}
    assert (moved.inserted, moved.deleted) == (2, 1)


def test_a_key_whose_row_comes_with_a_partition_of_its_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has no slice in the input's partition, and still holds its key."""
    table = handles_of(RECORD_INDEX).open()

    with asked_for(monkeypatch) as made:
        moved = table.upsert(arrow([Row("k07", "elsewhere", 2, 0)]))

    assert set(made) <= {"p07", "elsewhere"}
    assert (moved.inserted, moved.deleted) == (1, 1)
    assert table.scan().to_arrow().num_rows == PARTITIONS


def test_a_delete_by_record_index_looks_at_the_partitions_of_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    table = handles_of(RECORD_INDEX).open()

    with asked_for(monkeypatch) as made:
        deleted = table.delete(arrow([Row("k01", "", 0, 0), Row("gone", "", 0, 0)]).select(["id"]))

    assert set(made) == {"p01"}
    assert deleted.deleted == 1


def test_an_index_of_base_files_over_the_whole_table_is_asked_about_every_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = handles_of({"hoodie.index.type": "GLOBAL_SIMPLE"}).open()

    with asked_for(monkeypatch) as made:
        moved = table.upsert(arrow([Row("k07", "p03", 2, 0)]))

    assert sorted(made) == [f"p{n:02}" for n in range(PARTITIONS)]
    assert (moved.inserted, moved.deleted) == (1, 1)


def test_a_predicate_on_other_columns_is_asked_of_no_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    table = handles_of(RECORD_INDEX).open()
    asked: list[object] = []

    def noting(predicate: Predicate, values: Mapping[str, object]) -> bool:
        asked.append(values)
        return partition_can_match(predicate, values)

    monkeypatch.setattr(read_plan, "partition_can_match", noting)

    assert table.scan(where="id = 'k07' and ts > 0").explain().files == 1
    assert table.scan(where="id = 'k07' and 1 = 2").explain().files == 0
    assert asked == [{}, {}]
