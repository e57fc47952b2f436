"""A delete or an update by a predicate could miss rows, touch others, move rows, or write where it should refuse.

Each call is made on small tables of every type and version, and the rows are compared with what SQL says.
"""

from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable, Invalid, Unsupported
from pyhudi.storage.memory import MemoryStorage
from pyhudi.write.rows import changes, merge

ROWS = {
    "id": ["a", "b", "c", "d"],
    "city": ["oslo", "oslo", "rome", "rome"],
    "ts": [5, 5, 5, 5],
    "n": [1, 2, None, 4],
}
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("n", pa.int32())])
TABLES = [(kind, version) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for version in (6, 8, 9)]


def make(kind: str = "COPY_ON_WRITE", version: int = 8, **given: Any) -> HudiTable:
    facts = {"record_key": "id", "partition_by": "city", "ordering": "ts", "storage": MemoryStorage(), **given}
    table = HudiTable.create("unused", name="t", table_type=kind, table_version=version, **facts)
    table.bulk_insert(pa.table(ROWS, schema=SCHEMA))
    return table


def rows(table: HudiTable) -> dict[str, Any]:
    read = table.scan(columns=["id", "n"]).to_arrow()
    return dict(zip(read["id"].to_pylist(), read["n"].to_pylist(), strict=True))


def instants(table: HudiTable) -> int:
    return len(table.timeline())


@pytest.mark.parametrize("kind,version", TABLES)
def test_a_delete_takes_the_rows_that_match_and_no_null(kind: str, version: int) -> None:
    table = make(kind, version)

    result = table.delete(where="n >= 2")

    assert rows(table) == {"a": 1, "c": None}
    assert (result.operation, result.deleted, result.inserted, result.updated) == ("delete", 2, 0, 0)
    assert instants(table) == 2


@pytest.mark.parametrize("kind,version", TABLES)
def test_an_update_sets_the_matching_rows_and_sees_rows_as_they_were(kind: str, version: int) -> None:
    table = make(kind, version)

    first = table.update({"n": "n * 10", "ts": "ts + n"}, where="n IS NOT NULL AND city = 'oslo'")
    second = table.update({"n": "coalesce(n, 0) + 1"})

    assert (first.updated, second.updated, first.inserted, second.deleted) == (2, 4, 0, 0)
    assert rows(table) == {"a": 11, "b": 21, "c": 1, "d": 5}
    assert table.scan(columns=["ts"], where="city = 'oslo'").to_arrow()["ts"].to_pylist() == [6, 7]
    assert instants(table) == 3


@pytest.mark.parametrize("kind,version", TABLES)
def test_nothing_matched_is_no_commit(kind: str, version: int) -> None:
    table = make(kind, version)

    results = [table.delete(where="n > 100"), table.update({"n": 1}, where="false"), table.delete(where="id = 'x'")]

    assert [(r.requested, r.completed, r.deleted, r.updated) for r in results] == [(None, None, 0, 0)] * 3
    assert instants(table) == 1


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_empty_table_has_nothing_to_change(kind: str) -> None:
    table = HudiTable.create(
        "unused", name="t", record_key="id", schema=SCHEMA, table_type=kind, storage=MemoryStorage()
    )
    assert table.delete(where="n > 1").requested is None
    assert table.update({"n": "n + 1"}).requested is None
    assert instants(table) == 0


def test_a_table_without_a_schema_says_so() -> None:
    table = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    for call in (lambda: table.delete(where="true"), lambda: table.update({"n": 1})):
        with pytest.raises(Invalid, match="without a schema"):
            call()


def test_a_delete_wants_either_rows_or_a_predicate() -> None:
    table = make()
    with pytest.raises(Invalid, match="found neither; where='true' deletes all rows"):
        table.delete()
    with pytest.raises(Invalid, match=r"found both; leave one of them out$"):
        table.delete(pa.table({"id": ["a"], "city": ["oslo"]}), where="true")
    assert table.delete(where="true").deleted == 4
    assert rows(table) == {}


@pytest.mark.parametrize("kind,version", TABLES)
def test_a_delete_wins_over_rows_of_any_ordering_value(kind: str, version: int) -> None:
    table = make(kind, version)
    table.upsert(pa.table({"id": ["a"], "city": ["oslo"], "ts": [10**12], "n": [7]}, schema=SCHEMA))

    assert table.delete(where="n = 7").deleted == 1
    assert rows(table) == {"b": 2, "c": None, "d": 4}


def test_arrow_expressions_choose_and_compute() -> None:
    table = make()
    table.update({"n": pc.field("n") + 100}, where=pc.field("n") > 1)
    table.delete(where=pc.field("id") == "d")
    assert rows(table) == {"a": 1, "b": 102, "c": None}


@pytest.mark.parametrize(
    "given,told",
    [
        ({"id": "'x'"}, "is a record key column"),
        ({"CITY": "'x'"}, "is a partition column"),
        ({"nn": 1}, "no column 'nn' in table 't'; the nearest is 'n'"),
        ({"n": 1, "N": 2}, "found 'n' twice"),
        ({}, "expected columns and their values"),
        ("n = 1", "expected columns and their values"),
        ({"n": "uper(id)"}, "no function 'uper' here; the nearest is 'upper'"),
        ({"n": "id"}, "write a CAST"),
        ({"n": "n + 3000000000"}, "expected values that fit column 'n'"),
        ({"ts": None}, "('ts') not less than the stored ones"),
        ({"ts": "ts - 1"}, "('ts') not less than the stored ones"),
        ({"_hoodie_record_key": "'x'"}, "no column '_hoodie_record_key'"),
    ],
    ids=lambda value: str(value),
)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_an_update_refuses_leaves_no_trace(kind: str, given: Any, told: str) -> None:
    storage = MemoryStorage()
    table = make(kind, storage=storage)
    before = {file.path for file in storage.list("") if "/." not in f"/{file.path}" or ".hoodie/timeline" in file.path}

    with pytest.raises(Invalid) as error:
        table.update(given)

    assert told in str(error.value)
    after = {file.path for file in storage.list("") if "/." not in f"/{file.path}" or ".hoodie/timeline" in file.path}
    assert after == before
    assert rows(table) == {"a": 1, "b": 2, "c": None, "d": 4}


def test_only_files_that_can_match_are_read() -> None:
    storage = MemoryStorage()
    table = make(storage=storage)
    for file in list(storage.list("oslo")):
        if file.path.endswith(".parquet"):
            storage.delete(file.path)  # who reads it fails

    assert table.update({"n": 9}, where="city = 'rome' AND n = 4").updated == 1
    assert table.delete(where="city = 'rome' AND n = 9").deleted == 1


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_of_keys_that_writers_made_are_changed_by_their_meta_field(kind: str) -> None:
    table = make(kind, record_key=None, ordering=None)
    twins = pa.table({"id": ["a", "a"], "city": ["oslo", "oslo"], "ts": [1, 1], "n": [50, 60]}, schema=SCHEMA)
    table.insert(twins)

    table.update({"n": "n + 1", "id": "upper(id)"}, where="n >= 50")
    table.delete(where="n = 51 OR n = 1")

    assert sorted(table.scan(columns=["id", "n"]).to_arrow().to_pylist(), key=str) == sorted(
        [{"id": "A", "n": 61}, {"id": "b", "n": 2}, {"id": "c", "n": None}, {"id": "d", "n": 4}], key=str
    )


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    "index",
    [
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
        {"hoodie.index.type": "GLOBAL_SIMPLE"},
        {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"},
    ],
    ids=lambda index: index["hoodie.index.type"],
)
def test_every_index_finds_the_rows_again(kind: str, index: dict[str, str]) -> None:
    table = make(kind, properties=index)
    table.update({"n": "n + 1"}, where="n > 1")
    assert table.delete(where="n = 1 OR n IS NULL").deleted == 2
    assert rows(table) == {"b": 3, "d": 5}


def test_odd_types_pass_through_unchanged() -> None:
    data = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "day": pa.array([date(2026, 1, 1), None]),
            "tags": pa.array([["a", None], []], pa.list_(pa.string())),
            "place": pa.array([{"x": 1.5, "y": None}, None], pa.struct([("x", pa.float64()), ("y", pa.string())])),
            "counts": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
            "raw": pa.array([b"\x00\xff", None]),
            "m": pa.array([1, None], pa.decimal128(20, 3)),
            "at": pa.array([10**15, None], pa.timestamp("us", tz="UTC")),
            "n": pa.array([0.5, float("nan")]),
        }
    )
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        table = HudiTable.create("unused", name="t", record_key="id", table_type=kind, storage=MemoryStorage())
        table.upsert(data)
        table.update({"n": 1.0, "tags": ["z"], "place": {"x": 2.0, "y": "q"}}, where="day IS NOT NULL")
        table.update({"raw": b"new", "m": "place.x * 2"}, where="place.x = 2")
        read = table.scan(meta_fields=False).to_arrow().sort_by("id")
        first, second = read.to_pylist()
        assert first | {"day": None} == {
            "id": 1, "day": None, "tags": ["z"], "place": {"x": 2.0, "y": "q"}, "counts": [("a", 1)], "raw": b"new",
            "m": 4, "at": first["at"], "n": 1.0,
        }  # fmt: skip
        assert (
            read.drop_columns(["n"])
            .slice(1)
            .equals(data.drop_columns(["n"]).slice(1).cast(read.drop_columns(["n"]).schema))
        )
        assert second["n"] != second["n"]


def test_columns_shown_otherwise_than_stored_are_asked_as_they_are_shown() -> None:
    """The TIMESTAMP key generator's partition column is shown as text."""
    properties = {
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    table = HudiTable.create(
        "unused", name="t", record_key="id", partition_by="at", properties=properties, storage=MemoryStorage()
    )
    day = 86_400_000
    table.upsert(pa.table({"id": ["a", "b"], "at": pa.array([day, 2 * day]), "n": pa.array([1, 2], pa.int32())}))

    table.update({"n": "n + 10"}, where=f"at = '{day}'")
    table.delete(where=f"at = '{2 * day}'")

    assert rows(table) == {"a": 11}


def test_rules_that_make_one_row_of_two_refuse_updates_and_let_rows_be_deleted() -> None:
    properties = {
        "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS",
        "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    }
    table = make(version=9, ordering=None, properties=properties)
    with pytest.raises(Unsupported, match="make one row of the stored one and the new one"):
        table.update({"n": None})
    assert table.delete(where="n = 1").deleted == 1


def test_settings_under_which_rows_would_come_out_wrong_are_refused() -> None:
    table = make()
    with pytest.raises(Invalid, match="expected a payload class that keeps rows"):
        table.update(
            {"n": 1},
            options={"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.EmptyHoodieRecordPayload"},
        )
    with pytest.raises(Unsupported, match="a row-level change writes what it read"):
        table.update({"n": 1}, options={"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"})


@pytest.mark.parametrize("kind,version", [table for table in TABLES if table != ("MERGE_ON_READ", 6)])
def test_rows_that_another_writer_changed_meanwhile_are_made_anew(kind: str, version: int) -> None:
    """The other commits land after the rows were read, before they are written.

    Writes of merge-on-read tables of version 6 hold the table throughout, so that nothing can come between.
    """
    storage = MemoryStorage()
    make(kind, version, storage=storage)
    other = HudiTable.open("unused", storage=storage)
    beside = [
        lambda: other.update({"n": "n * 100"}, where="id = 'a'"),
        lambda: other.delete(where="id = 'b'"),
    ]

    class Between:
        """Runs the other writer's work before its own, once."""

        def run(self, work: Any, tasks: Any) -> list[Any]:
            while beside:
                beside.pop()()
            return [work(task) for task in tasks]

    table = HudiTable.open("unused", storage=storage, executor=Between())
    table.update({"n": "n + 1"})

    assert not beside
    assert rows(table) == {"a": 101, "c": None, "d": 5}


@pytest.mark.parametrize("value", ["concat(id, _hoodie_commit_time)", pc.field("_hoodie_commit_time")])
def test_a_value_may_be_made_of_a_meta_field(value: Any) -> None:
    table = make(partition_by=None)
    requested = table.timeline()[-1].requested

    table.update({"city": value}, where="id = 'a'")

    (row,) = table.scan(where="id = 'a'").to_arrow().to_pylist()
    assert row["city"].removeprefix("a") == requested


STAYING = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
STAYED = pa.table({"id": ["a"], "city": ["rome"], "ts": [6], "n": pa.array([10], pa.int32())})


@pytest.mark.parametrize("kind,version", TABLES)
def test_a_row_that_lies_in_another_partition_than_its_columns_say_is_changed_there(kind: str, version: int) -> None:
    table = make(kind, version)
    table.upsert(STAYED, options=STAYING)  # the row stays in the partition of oslo

    result = table.update({"n": 11}, where="id = 'a'")
    assert (result.updated, result.inserted) == (1, 0)
    assert table.merge(
        STAYED.set_column(2, "ts", [[7]]), on="target.id = source.id", when_matched_update=True,
        when_not_matched_insert=True,
    ).updated == 1  # fmt: skip
    assert rows(table) == {"a": 10, "b": 2, "c": None, "d": 4}

    assert table.delete(where="id = 'a'").deleted == 1
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == ["b", "c", "d"]


@pytest.mark.parametrize("kind,version", TABLES)
def test_commit_time_ordering_takes_rows_without_an_ordering_value(kind: str, version: int) -> None:
    table = make(kind, version, properties={"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})

    table.upsert(pa.table({"id": ["a", "a"], "city": ["oslo"] * 2, "ts": [1, None], "n": [8, 9]}, schema=SCHEMA))
    table.merge(pa.table({"id": ["e"]}), when_not_matched_insert={"id": "source.id", "city": "'oslo'"})

    assert rows(table) == {"a": 8, "b": 2, "c": None, "d": 4, "e": None}
    if kind == "MERGE_ON_READ":
        table.compact()
        assert rows(table) == {"a": 8, "b": 2, "c": None, "d": 4, "e": None}


@pytest.mark.parametrize("kind,version", TABLES)
def test_an_insert_that_may_not_double_keys_updates_stored_rows(kind: str, version: int) -> None:
    table = make(kind, version)
    change = pa.table({"id": ["a", "e"], "city": ["oslo"] * 2, "ts": [6, 6], "n": [9, 5]}, schema=SCHEMA)

    table.insert(change, options={"hoodie.merge.allow.duplicate.on.inserts": "false"})

    assert rows(table) == {"a": 9, "b": 2, "c": None, "d": 4, "e": 5}
    assert table.scan().count() == 5


@pytest.mark.parametrize("kind,version", TABLES)
def test_times_in_paths_are_spelled_as_the_stored_paths_are(kind: str, version: int) -> None:
    """Apache Hudi's SQL writes a date and a time, its DataFrame writer microseconds."""
    schema = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("n", pa.int32())])
    when = pa.scalar(1_621_505_472_500_000, pa.timestamp("us", "UTC"))
    some = pa.table({"id": ["a", "b"], "at": pa.array([when.as_py(), None], schema.field("at").type), "n": [1, 2]},
                    schema=schema)  # fmt: skip
    for stated, path in ((schema, "2021-05-20 10%3A11%3A12"), (None, "1621505472500000")):
        table = HudiTable.create(
            "unused", name="t", record_key="id", partition_by="at", table_type=kind, table_version=version,
            schema=stated, storage=MemoryStorage(),
        )  # fmt: skip
        table.upsert(some)
        table.upsert(some.slice(0, 1))
        table.update({"n": 5}, where="id = 'a'")

        read = table.scan(["id", "n", "_hoodie_partition_path"], where="at is not null").to_arrow().to_pylist()
        assert read == [{"id": "a", "n": 5, "_hoodie_partition_path": path}]
        assert table.scan().count() == 2


def test_a_fault_of_ours_is_not_told_as_one_of_the_caller_s_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise IndexError("a bug")

    for module in (changes, merge):
        monkeypatch.setattr(module, "matching_rows", lambda *_: (fails() for _ in range(1)))
    table = make()
    source = pa.table(ROWS, schema=SCHEMA)
    for change in (
        lambda: table.delete(where="n = 1"),
        lambda: table.update({"n": 5}),
        lambda: table.merge(source, when_matched_update=True),
    ):
        with pytest.raises(IndexError, match="a bug"):
            change()
    assert instants(table) == 1
