"""A late row could fill the columns that a newer row with some columns only lacks in the log.

Readers merge the records of a log before these meet the base row. So the row of a key would depend on whether a
compaction ran between two writes. The model takes one write after the other, as a table without logs does.
"""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import StepClock, seeded_uuids

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
Row = dict[str, Any]


def new_table(
    version: int, properties: dict[str, str] | None = None, storage: Any = None, ordering: str | None = "ts"
) -> HudiTable:
    clock = StepClock()
    return HudiTable.create(
        "", name="t", record_key="id", ordering=ordering, table_type="MERGE_ON_READ", table_version=version,
        schema=SCHEMA, properties={"hoodie.clean.automatic": "false", **(properties or {})}, clock=clock,
        random=seeded_uuids(1), storage=storage or MemoryStorage(clock_ms=lambda: clock.ms),
    )  # fmt: skip


def rows(*given_rows: Row) -> pa.Table:
    names = [field for field in SCHEMA if field.name in given_rows[0]]
    return pa.Table.from_pylist(list(given_rows), pa.schema(names))


def stored(table: HudiTable) -> list[Row]:
    found: list[Row] = table.scan(meta_fields=False).to_arrow().sort_by("id").to_pylist()
    return found


@pytest.mark.parametrize("properties", [{}, BUCKETS], ids=["looked up", "buckets"])
@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("late", [{"ts": 1, "x": 10, "y": 10}, {"ts": 1, "x": 10}, {"ts": 7, "x": 10, "y": 10}])
@pytest.mark.parametrize("version", [8, 9])
def test_a_late_row_changes_nothing_whether_or_not_a_compaction_ran(
    version: int, late: Row, is_compacted: bool, properties: dict[str, str]
) -> None:
    table = new_table(version, properties)
    table.upsert(rows({"id": "a", "ts": 5, "x": 50, "y": 50}))
    table.upsert(rows({"id": "a", "ts": 9, "y": 90}))
    if is_compacted:
        table.compact()
    table.upsert(rows({"id": "a", **late}))
    for _ in range(2):
        assert stored(table) == [{"id": "a", "ts": 9, "x": 50, "y": 90}]
        table.compact()


def test_only_the_late_row_of_a_write_is_left_out() -> None:
    table = new_table(9)
    table.upsert(rows(*({"id": key, "ts": 5, "x": 50, "y": 50} for key in "abc")))
    table.upsert(rows({"id": "a", "ts": 9, "y": 90}))
    result = table.upsert(rows(*({"id": key, "ts": 7, "x": 70, "y": 70} for key in "abd")))
    assert (result.inserted, result.updated) == (1, 1)
    assert [row["x"] for row in stored(table)] == [50, 70, 50, 70]
    assert table.upsert(rows({"id": "a", "ts": 1, "x": 10, "y": 10})).files == 0


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("version", [8, 9])
def test_a_row_counts_that_wins_over_one_of_several_rows_of_its_key(version: int, is_compacted: bool) -> None:
    table = new_table(version)
    table.bulk_insert(rows(*({"id": "a", "ts": ts, "x": 10 * ts, "y": 10 * ts} for ts in (5, 10))))
    table.upsert(rows({"id": "a", "ts": 7, "y": 70}))
    if is_compacted:
        table.compact()
    table.upsert(rows({"id": "a", "ts": 8, "x": 80, "y": 80}))
    table.upsert(rows({"id": "a", "ts": 6, "x": 60, "y": 60}))
    for _ in range(2):
        found = sorted((row["ts"], row["x"], row["y"]) for row in stored(table))
        assert found == [(8, 80, 80), (10, 100, 100)]
        table.compact()


def test_a_partial_row_takes_no_columns_of_one_of_several_rows_of_its_key() -> None:
    table = new_table(9)
    table.bulk_insert(rows(*({"id": "a", "ts": ts, "x": 10 * ts, "y": 10 * ts} for ts in (5, 6))))
    table.bulk_insert(rows({"id": "b", "ts": 5, "x": 50, "y": 50}))
    table.upsert(rows(*({"id": key, "ts": 3, "x": 30, "y": 30} for key in "ab")))
    table.upsert(rows(*({"id": key, "ts": 9, "x": 90} for key in "ab")))
    assert [(row["id"], row["y"]) for row in stored(table)] == [("a", 30), ("a", 30), ("b", 50)]


@pytest.mark.parametrize("properties", [{}, BUCKETS], ids=["looked up", "buckets"])
@pytest.mark.parametrize("is_late_partial", [False, True])
@pytest.mark.parametrize("version", [8, 9])
def test_a_pending_compaction_changes_no_row(version: int, is_late_partial: bool, properties: dict[str, str]) -> None:
    table = new_table(version, properties)
    table.upsert(rows(*({"id": key, "ts": 5, "x": 50, "y": 50} for key in "ab")))
    table.upsert(rows(*({"id": key, "ts": 9, "x": 90, "y": 90} for key in "ab")))
    table.schedule_compaction()
    late = {"id": "a", "ts": 7, "y": 70}
    table.upsert(rows(late if is_late_partial else {**late, "x": 70}))
    for ts in (10, 11):
        table.upsert(rows(*({"id": key, "ts": ts, "x": 10 * ts} for key in "ab")))
    for _ in range(3):
        assert stored(table) == [{"id": key, "ts": 11, "x": 110, "y": 90} for key in "ab"]
        table.compact()


@pytest.mark.parametrize("version", [8, 9])
def test_until_a_compaction_has_run_the_rows_that_it_will_merge_fill_nothing(version: int) -> None:
    table = new_table(version)
    table.upsert(rows({"id": "a", "ts": 5, "x": 50, "y": 50}))
    table.upsert(rows({"id": "a", "ts": 1, "x": 10, "y": 10}))
    table.schedule_compaction()
    table.upsert(rows({"id": "a", "ts": 9, "y": 90}))
    for _ in range(3):
        assert stored(table) == [{"id": "a", "ts": 9, "x": 50, "y": 90}]
        table.compact()


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("version", [8, 9])
def test_a_late_row_changes_nothing_where_a_column_marks_deletes(
    version: int, is_compacted: bool, is_stored: bool
) -> None:
    def marked(*given_rows: Row, mark: bool) -> pa.Table:
        return rows(*given_rows).append_column("_hoodie_is_deleted", pa.array([mark] * len(given_rows)))

    table = new_table(version)
    table.upsert(rows(*({"id": key, "ts": 5, "x": 50, "y": 50} for key in "abc")))
    table.upsert(rows(*({"id": key, "ts": 9, "y": 90} for key in "abc")))
    if is_compacted:
        table.compact()
    if is_stored:
        table.upsert(marked({"id": "z", "ts": 1, "x": 1, "y": 1}, mark=False))
    table.upsert(marked(*({"id": key, "ts": 7, "x": 70, "y": 70} for key in "ac"), mark=False))
    table.upsert(marked({"id": "a", "ts": 8, "x": 80, "y": 80}, {"id": "b", "ts": 9, "x": 0, "y": 0}, mark=True))
    table.upsert(marked({"id": "b", "ts": 1, "x": 10, "y": 10}, mark=False))
    for _ in range(2):
        found = {row["id"]: (row["ts"], row["x"], row["y"]) for row in stored(table)}
        found.pop("z", None)
        assert found == {"a": (9, 50, 90), "c": (9, 50, 90)}
        table.compact()


changes = st.lists(
    st.one_of(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 6)), min_size=1, max_size=3).map(dict).flatmap(
            lambda keys: st.tuples(st.just(keys), st.sampled_from(["xy", "x", "y"]))
        ),
        st.sampled_from(["compact", "schedule", "a", "b"]),
    ),
    min_size=2,
    max_size=8,
)  # fmt: skip


@pytest.mark.parametrize("properties", [{}, BUCKETS], ids=["looked up", "buckets"])
@pytest.mark.parametrize("version", [8, 9])
def test_rows_are_those_of_one_write_after_the_other(version: int, properties: dict[str, str]) -> None:
    @settings(
        max_examples=12, deadline=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(changes)
    def check(actions: list[Any]) -> None:
        table, model = new_table(version, properties), dict[str, Row]()
        for number, action in enumerate(actions):
            if action == "compact":
                table.compact()
            elif action == "schedule":
                table.schedule_compaction()
            elif isinstance(action, str):
                table.delete(pa.table({"id": [action]}))
                model.pop(action, None)
            else:
                keys, names = action
                given_rows = [{"id": key, "ts": ts, **dict.fromkeys(names, number)} for key, ts in keys.items()]
                table.upsert(rows(*given_rows))
                for row in given_rows:
                    old = model.get(row["id"], {"ts": 0, "x": None, "y": None})
                    if row["ts"] >= old["ts"]:
                        model[row["id"]] = {**old, **row}
            assert stored(table) == [{name: model[key][name] for name in SCHEMA.names} for key in sorted(model)]

    check()


@pytest.mark.parametrize(
    "properties",
    [
        {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"},
        {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.EventTimeAvroPayload"},
        {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"},
    ],
    ids=lambda value: str(*value.values()).rpartition(".")[2],
)
@pytest.mark.parametrize("version", [8, 9])
def test_by_event_time_without_an_ordering_column_the_later_row_wins(version: int, properties: dict[str, str]) -> None:
    table = new_table(version, properties, ordering=None)
    table.upsert(rows({"id": "a", "ts": 5, "x": 5, "y": 5}))
    table.upsert(rows({"id": "a", "x": 6}))
    table.upsert(rows({"id": "a", "y": 7}))
    assert stored(table) == [{"id": "a", "ts": 5, "x": 6, "y": 7}]
    table.upsert(rows({"id": "a", "ts": 1, "x": 8, "y": 8}))
    assert stored(table) == [{"id": "a", "ts": 1, "x": 8, "y": 8}]
    table.compact()
    assert stored(table) == [{"id": "a", "ts": 1, "x": 8, "y": 8}]


class LogReads(MemoryStorage):
    """Counts the reads of logs."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[str] = []

    def get(self, path: str, start: int = 0, end: int | None = None) -> bytes:
        if ".log." in path and not path.startswith(".hoodie"):
            self.paths.append(path)
        return super().get(path, start, end)


@pytest.mark.parametrize("names", ["xy", "y"], ids=["whole rows", "partial rows"])
def test_each_log_is_read_once(names: str) -> None:
    storage = LogReads()
    table = new_table(9, storage=storage)
    table.upsert(rows({"id": "a", "ts": 5, "x": 50, "y": 50}))
    for ts in (6, 7):
        table.upsert(rows({"id": "a", "ts": ts, **dict.fromkeys(names, ts)}))
    storage.paths.clear()
    table.upsert(rows({"id": "a", "ts": 1, "x": 10, "y": 10}))
    assert len(storage.paths) == 2
