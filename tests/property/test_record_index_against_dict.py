"""A record index could send a row to the wrong file group: the key would be stored twice, or lost.

Random upserts and deletes whose keys move between partitions run on tables that are written by their record index, and
on a dict. After each step the index says what the data files say, and look-ups by it give the dict's rows.
"""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from pyhudi.testing.counting import CountingStorage
from tests.property.test_indexes_against_dict import BRIEF as SHORT
from tests.property.test_indexes_against_dict import LONG, GlobalModel, orders, steps
from tests.support.metadata_indexes import index_problems
from tests.support.model import Handles, Model, Row, StepClock, arrow, read_rows, seeded_uuids

BRIEF = settings(SHORT, max_examples=4)
TABLE_TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
BY_INDEX = {
    "RECORD_INDEX": "hoodie.metadata.record.index",
    "GLOBAL_RECORD_LEVEL_INDEX": "hoodie.metadata.global.record.level.index",
    "RECORD_LEVEL_INDEX": "hoodie.metadata.record.level.index",
}


def new_table(index: str, table_type: str, order: str, seed: int, options: dict[str, str]) -> Handles:
    clock = StepClock()
    handles = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(seed), SerialExecutor())
    handles.create(
        ordering=None if order == "commit time" else "ts",
        table_version=9 if index == "RECORD_LEVEL_INDEX" else 8 + seed % 2,
        table_type=table_type,
        properties={
            "hoodie.index.type": index,
            f"{BY_INDEX[index]}.enable": "true",
            f"{BY_INDEX[index]}.min.filegroup.count": "2",
            **options,
            **({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"} if order == "commit time, ordered" else {}),
        },
    )
    return handles


@pytest.mark.parametrize("table_type", TABLE_TYPES)
@BRIEF
@given(steps=steps, order=orders, seed=st.integers(0, 99), moves=st.booleans())
@example(
    steps=[("upsert", [Row("k", "oslo", 3, 1)]), ("upsert", [Row("k", "rome", 2, 2), Row("k", "york", 4, 3)]),
           ("delete", [Row("k", "oslo", 9, 9)]), ("upsert", [Row("k", "oslo", 1, 1)])],
    order="event time", seed=0, moves=True,
)  # fmt: skip
def test_by_a_global_record_index_a_key_is_one_row_of_the_table(
    table_type: str, steps: list[tuple[str, list[Row]]], order: str, seed: int, moves: bool
) -> None:
    index = "RECORD_INDEX" if seed % 2 else "GLOBAL_RECORD_LEVEL_INDEX"
    by = {"hoodie.record.index.update.partition.path": str(moves).lower()}
    handles = new_table(index, table_type, order, seed, by)
    model = GlobalModel(moves, ordered=order != "commit time", event_time=order == "event time")
    table = handles.open()
    written = False
    for step, batch in steps:
        if step == "upsert":
            table.upsert(arrow(batch))
            model.upsert(batch)
        elif not written:
            continue
        else:
            columns = ["id", "ts"] if step == "delete by time" else ["id", "city"][: 1 + len(batch) % 2]
            table.delete(arrow(batch, columns))
            model.delete(batch, ordered="ts" in columns)
        written = True
        expected = {(city, row.id): row for city, row in model.rows.values()}
        assert {key: of.row for key, of in read_rows(table.scan().to_arrow()).items()} == expected
        assert {key: of.row for key, of in read_rows(table.lookup([*model.rows, "none"])).items()} == expected
        assert table.lookup([row.id for row in batch if row.id not in model.rows]).num_rows == 0
        assert index_problems(handles.storage) == []


@pytest.mark.parametrize("table_type", TABLE_TYPES)
@BRIEF
@given(steps=steps, order=orders, seed=st.integers(0, 99))
def test_by_a_partitioned_record_index_a_key_is_one_row_of_its_partition(
    table_type: str, steps: list[tuple[str, list[Row]]], order: str, seed: int
) -> None:
    handles = new_table("RECORD_LEVEL_INDEX", table_type, order, seed, {})
    model = Model(is_partitioned=True, ordered=order != "commit time", event_time=order == "event time")
    table = handles.open()
    for step, batch in [("upsert", [Row("k00", "oslo", 0, 0)]), *steps]:
        if step == "upsert":
            put, *_ = model.upsert(batch)
            result = table.upsert(arrow(batch))
            model.committed(result.requested or "", result.completed or "", put, set())
        else:
            by_time = step == "delete by time"
            gone = model.delete(batch, ordered=by_time)
            result = table.delete(arrow(batch, ["city", "id", *(["ts"] if by_time else [])]))
            model.committed(result.requested or "", result.completed or "", {}, gone)
        assert read_rows(table.scan().to_arrow()) == model.rows
        assert read_rows(table.lookup(sorted({key for _, key in model.rows}))) == model.rows
        asked = arrow([of.row for of in model.rows.values()], ["id", "city"])
        assert read_rows(table.lookup(asked)) == model.rows
        assert index_problems(handles.storage) == []


@pytest.mark.long
@pytest.mark.parametrize("table_type", TABLE_TYPES)
@LONG
@given(steps=steps, order=orders, seed=st.integers(0, 99), moves=st.booleans())
def test_by_a_global_record_index_for_long(table_type: str, **drawn: object) -> None:
    test_by_a_global_record_index_a_key_is_one_row_of_the_table.hypothesis.inner_test(table_type=table_type, **drawn)


@pytest.mark.parametrize("index", BY_INDEX)
def test_no_data_file_is_opened_to_find_keys(index: str) -> None:
    """An upsert opens the one base file that it rewrites; by SIMPLE it would open all of its partition's."""
    handles = new_table(index, "COPY_ON_WRITE", "event time", 1, {"hoodie.parquet.small.file.limit": "0"})
    table = handles.open()
    for n in range(4):
        table.upsert(arrow([Row(f"k{n}", "oslo", 1, 1)]))
    counted = CountingStorage(handles.storage)
    assert replace(handles, storage=counted).open().upsert(arrow([Row("k2", "oslo", 2, 2)])).updated == 1
    by_index = counted.counts["open_input"]
    counted.reset()
    simple = replace(handles, storage=counted).open({"hoodie.index.type": "SIMPLE"})
    assert simple.upsert(arrow([Row("k2", "oslo", 3, 3)])).updated == 1
    assert counted.counts["open_input"] == by_index + 4


def test_without_a_record_index_base_files_are_searched_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    handles = Handles(MemoryStorage(), executor=SerialExecutor())
    table = handles.create()
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    result = table.upsert(arrow([Row("a", "rome", 2, 2)]), options={"hoodie.index.type": "RECORD_INDEX"})
    assert (result.inserted, result.deleted) == (1, 1), "as GLOBAL_SIMPLE has it"
    assert "GLOBAL_SIMPLE looks keys up instead" in caplog.text
    assert table.upsert(arrow([Row("b", "rome", 2, 2)]), options={"hoodie.index.type": "RECORD_LEVEL_INDEX"}).inserted
    assert "; SIMPLE looks keys up instead" in caplog.text


def test_an_insert_that_drops_stored_keys_asks_the_record_index() -> None:
    handles = new_table("RECORD_INDEX", "MERGE_ON_READ", "event time", 1, {})
    table = handles.open({"hoodie.datasource.insert.dup.policy": "drop"})
    table.insert(arrow([Row("a", "oslo", 1, 1), Row("b", "oslo", 1, 1)]))
    table.delete(pa.table({"id": ["b"]}))
    assert table.insert(arrow([Row("a", "rome", 2, 2), Row("b", "oslo", 2, 2), Row("c", "rome", 2, 2)])).inserted == 2
    assert sorted(table.scan(["id", "v"]).to_arrow().to_pylist(), key=str) == [
        {"id": "a", "v": 1}, {"id": "b", "v": 2}, {"id": "c", "v": 2},
    ]  # fmt: skip
    assert index_problems(handles.storage) == []


def test_a_lookup_stands_where_its_snapshot_does_when_the_index_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer moves the key, and commits, between a reader's look at the timeline and its look at the index."""
    by = {"hoodie.record.index.update.partition.path": "true"}
    handles = new_table("RECORD_INDEX", "COPY_ON_WRITE", "event time", 1, by)
    table = handles.open()
    table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "oslo", 1, 1)]))
    before = table._access.snapshot()
    assert before.listing.partitions() == ["oslo"]
    handles.open().upsert(arrow([Row("a", "rome", 2, 2), Row("c", "rome", 2, 2)]))
    monkeypatch.setattr(type(table._access), "snapshot", lambda _: before)
    found = read_rows(table.lookup(["a", "b", "c"]))
    assert {key: of.row.v for key, of in found.items()} == {("oslo", "a"): 1, ("oslo", "b"): 1}
