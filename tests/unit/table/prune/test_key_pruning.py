"""A query by key could skip the file group that holds its row: a key spelled otherwise than stored, an index that is
ahead of the query or damaged, a location that is out of date, a query of the past. Or it could cost what a scan costs.
"""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import CorruptFile, Invalid
from pyhudi.metadata.kinds.record_index import RecordLocations
from pyhudi.predicate import parse_predicate
from pyhudi.predicate.allowed import allowed_values
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.prune.key_pruning import KEYS_MAX, PARTITIONS_MAX
from pyhudi.testing.counting import CountingStorage
from tests.support.model import SMALL_FILES, Handles, Row, StepClock, arrow, seeded_uuids

RECORD_INDEX = "hoodie.metadata.global.record.level.index"
PARTITIONED = "hoodie.metadata.record.level.index"
MOVING = {
    "hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true",
    f"{RECORD_INDEX}.enable": "true", f"{RECORD_INDEX}.min.filegroup.count": "2",
}  # fmt: skip


def new_table(properties: Mapping[str, str] = MOVING, **facts: object) -> tuple[Handles, HudiTable]:
    clock = StepClock()
    handles = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(1), SerialExecutor())
    return handles, handles.create(properties=properties, **facts)  # type: ignore[arg-type]


def used(table: HudiTable, where: object) -> dict[str, int]:
    """What each index ruled out, partitions and files together."""
    return {one.index: one.files + one.partitions for one in table.scan(where=where)._plan.explanation.indexes}


ALLOWED = [
    ("id = 'a'", ["a"]), ("'a' = id", ["a"]), ("id <=> 'a'", ["a"]), ("id in ('b', 'a', null)", ["a", "b"]),
    ("id = 'a' or id in ('b')", ["a", "b"]), ("id = 'a' or v = 1", None), ("id = 'a' and v = 1", ["a"]),
    ("id = 'a' and id = 'b'", []), ("id in ('a', 'b') and (id = 'b' or v = 2 and id = 'c')", ["b"]),
    ("not (id <> 'a')", ["a"]), ("not (id = 'a')", None), ("id = null", []), ("id <=> null", None),
    ("id is null", None), ("id > 'a'", None), ("id = note", None), ("lower(id) = 'a'", None), ("id like 'a'", None),
    ("v = 1 and id = 'a' and true", ["a"]), ("id = 'a' and false", []), ("id = 5", None),
]  # fmt: skip


@pytest.mark.parametrize("where, values", ALLOWED)
def test_the_values_that_a_predicate_allows_a_column(where: str, values: list[str] | None) -> None:
    schema = pa.schema([("id", pa.string()), ("note", pa.string()), ("v", pa.int32()), ("x", pa.float64())])
    found = allowed_values(parse_predicate(where, schema), "id")
    assert (None if found is None else found.to_pylist()) == values


def test_values_are_told_in_the_columns_type() -> None:
    schema = pa.schema([("v", pa.int16()), ("x", pa.float64()), ("d", pa.date32())])
    for where, column, values in (
        ("v = 5", "v", [5]), ("v in (5, 70000)", "v", None), ("x = 1.0", "x", None), ("d = '2026-01-10'", "d", 1),
        ("v = 5L", "v", [5]), ("v = '5'", "v", [5]),
    ):  # fmt: skip
        found = allowed_values(parse_predicate(where, schema), column)
        if column == "d":
            assert found is not None
            assert (found.type, len(found)) == (pa.date32(), values)
        else:
            assert (None if found is None else found.to_pylist()) == values, where
    assert allowed_values(parse_predicate(pc.field("v") == 5, schema), "v") is None, "an expression does not tell"


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("keys", [["id"], ["id", "n"]])
def test_keys_are_spelled_as_the_tables_generator_does(version: int, keys: list[str]) -> None:
    """A complex generator with one field: bare or with its name, by release."""
    table = HudiTable.create(
        "", name="t", record_key=keys, partition_by=["p", "q"], table_version=version, storage=MemoryStorage(),
        clock=StepClock(), properties={**SMALL_FILES, **MOVING}, executor=SerialExecutor(),
    )  # fmt: skip
    rows = [{"id": f"k,{at}", "n": at % 3, "p": f"p{at % 2}", "q": "q", "v": at} for at in range(6)]
    table.bulk_insert(pa.Table.from_pylist(rows))
    one = "id = 'k,3' and n = 0 and v >= 0"
    assert table.scan(["v"], where=one).to_arrow().to_pylist() == [{"v": 3}]
    assert used(table, one)["record_index"] == 1
    several = "id in ('k,0', 'k,3', 'k,5') and n in (0, 2)"
    assert sorted(table.scan(["v"], where=several).to_arrow().column("v").to_pylist()) == [0, 3, 5]
    assert used(table, several) == {}
    assert used(table, "id = 'none' and n = 1")["record_index"] == 2
    assert ("record_index" in used(table, "id = 'k,3'")) == (keys == ["id"]), "half a key is none"
    assert used(table, "id = '' and n = 0").get("record_index") == 2


def test_an_index_that_is_ahead_of_the_query_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another writer moves the key, and commits, after the query has read the timeline."""
    handles, table = new_table()
    table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1)]))
    assert used(table, "id = 'a'") == {"record_index": 1}
    before = table._access.snapshot()
    assert before.listing.partitions() == ["oslo", "rome"]
    handles.open().upsert(arrow([Row("a", "rome", 2, 2), Row("c", "york", 2, 2)]))
    monkeypatch.setattr(type(table._access), "snapshot", lambda _: before)
    with caplog.at_level("INFO", logger="pyhudi"):
        assert table.scan(["city", "v"], where="id = 'a'").to_arrow().to_pylist() == [{"city": "oslo", "v": 1}]
    assert "the table has changed meanwhile" in caplog.text
    assert used(table, "id = 'a'") == {}


def test_an_index_that_is_dropped_meanwhile_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    handles, table = new_table()
    table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1)]))
    before = table._access.snapshot()
    assert before.listing.partitions() == ["oslo", "rome"]
    handles.open({f"{RECORD_INDEX}.enable": "false"}).upsert(arrow([Row("b", "rome", 2, 2)]))
    kept = replace(before, timeline=table._access.snapshot().timeline)
    monkeypatch.setattr(type(table._access), "snapshot", lambda _: kept)
    assert table.scan(["v"], where="id = 'a'").to_arrow().to_pylist() == [{"v": 1}]


def test_a_location_whose_file_group_is_not_there_puts_all_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    _, table = new_table()
    table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1)]))
    monkeypatch.setattr(RecordLocations, "locate", lambda *_: {"oslo": {"gone"}})
    assert table.scan(["v"], where="id = 'b'").to_arrow().to_pylist() == [{"v": 1}]
    assert used(table, "id = 'b'") == {}


def test_a_partition_that_the_index_does_not_know_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    _, table = new_table({f"{PARTITIONED}.enable": "true"}, table_version=9)
    table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1), Row("c", "york", 1, 1)]))
    assert used(table, "id = 'a'") == {"record_index": 2}
    located = RecordLocations.locate
    monkeypatch.setattr(RecordLocations, "locate", lambda *of: {**(located(*of) or {}), "rome": None})
    assert used(table, "id = 'a'") == {"record_index": 1}


def test_damage_is_named_and_passed_over_only_when_asked(caplog: pytest.LogCaptureFixture) -> None:
    handles, table = new_table()
    table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1)]))
    storage = handles.storage
    broken = [file.path for file in storage.list(".hoodie/metadata/record_index") if ".log." in file.path]
    for path in broken:
        storage.put(path, b"\0" * 40)
    with pytest.raises(CorruptFile, match="record_index/"):
        table.scan(where="id = 'a'")
    assert table.scan(where="v = 1").to_arrow().num_rows == 2, "an index that is not asked is not looked at"
    falls_back = handles.open({"hoodie.fileIndex.dataSkippingFailureMode": "FALLBACK"})
    assert falls_back.scan(["v"], where="id = 'a'").to_arrow().to_pylist() == [{"v": 1}]
    assert "record_index is damaged, and rules nothing out" in caplog.text
    assert "record_index/" in caplog.text
    off = handles.open({"hoodie.enable.data.skipping": "false"})
    assert off.scan(["v"], where="id = 'a'").to_arrow().to_pylist() == [{"v": 1}]
    with pytest.raises(Invalid, match="expected strict or fallback"):
        handles.open({"hoodie.fileIndex.dataSkippingFailureMode": "lenient"}).scan(where="id = 'a'")


def test_queries_of_the_past_and_of_base_files_alone_do_not_ask_where_keys_are_now() -> None:
    _, table = new_table(table_type="MERGE_ON_READ")
    first = table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1), Row("c", "rome", 1, 1)]))
    table.upsert(arrow([Row("a", "rome", 2, 2)]))
    table.delete(arrow([Row("b", "rome", 3, 3)], ["id"]))
    assert first.requested is not None
    for query, as_of, where, cities in (
        ("snapshot", first.requested, "id = 'a'", ["oslo"]), ("read_optimized", None, "id = 'b'", ["rome"]),
        ("snapshot", None, "id = 'b'", []), ("snapshot", None, "id = 'a'", ["rome"]),
    ):  # fmt: skip
        scan = table.scan(["city"], where=where, query=query, as_of=as_of)
        assert scan.to_arrow().column("city").to_pylist() == cities
        is_now = query == "snapshot" and as_of is None
        assert ("record_index" in {one.index for one in scan._plan.explanation.indexes}) == is_now
    changes = table.incremental(where="id = 'a'")
    assert changes._plan.explanation.indexes == ()
    assert changes.to_arrow().num_rows == 1


def test_more_keys_or_partitions_than_an_index_is_worth_are_scanned() -> None:
    _, table = new_table()
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    many = ", ".join(f"'{n}'" for n in range(KEYS_MAX))
    assert used(table, f"id in ({many})") == {"record_index": 1}
    assert used(table, f"id in ({many}, 'a')") == {}

    _, wide = new_table({f"{PARTITIONED}.enable": "true"}, table_version=9)
    wide.upsert(arrow([Row("a", f"c{n:02}", 1, 1) for n in range(PARTITIONS_MAX + 1)]))
    assert used(wide, "id = 'a'") == {}
    assert used(wide, "id = 'none' and city >= 'c10'") == {"record_index": PARTITIONS_MAX + 1 - 10}


def test_what_a_query_by_key_costs_does_not_follow_the_table() -> None:
    costs = []
    for partitions in (4, 40):
        handles, table = new_table()
        table.bulk_insert(arrow([Row(f"k{n:02}", f"c{n % partitions:02}", 1, n) for n in range(40)]))
        counted = CountingStorage(handles.storage)
        reader = replace(handles, storage=counted).open()
        assert reader.scan(["v"], where="id = 'k07'").to_arrow().to_pylist() == [{"v": 7}]
        costs.append(dict(counted.counts))
    assert costs[0] == costs[1]


FILTERS = {"hoodie.metadata.index.bloom.filter.enable": "true", "hoodie.parquet.small.file.limit": "0"}


def test_filters_rule_out_base_files_in_few_look_ups_and_no_slice_whose_log_may_hold_the_key() -> None:
    handles, table = new_table(FILTERS)
    table.bulk_insert(arrow([Row(f"k{n:02}", f"c{n:02}", 1, n) for n in range(40)]))
    counted = CountingStorage(handles.storage)
    assert replace(handles, storage=counted).open().scan(where="id = 'none'").to_arrow().num_rows == 0
    assert used(table, "id = 'none'") == {"bloom_filters": 40}
    assert counted.counts["open_input"] == 0
    assert sum(counted.counts.values()) <= 30, counted.counts
    assert table.scan(["v"], where="id in ('k07', 'none') and v >= 0").to_arrow().to_pylist() == [{"v": 7}]

    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    _, logged = new_table({**FILTERS, **buckets}, table_type="MERGE_ON_READ")
    logged.upsert(arrow([Row("a", "oslo", 1, 1), Row("a", "rome", 1, 1)]))
    logged.upsert(arrow([Row("new", "oslo", 1, 2)]))
    assert any(file.logs for file in logged.scan()._plan.files), "the new key is in a log"
    assert used(logged, "id = 'new'") == {"bloom_filters": 1}
    assert logged.scan(["v"], where="id = 'new'").to_arrow().to_pylist() == [{"v": 2}]
    assert logged.scan(where="id = 'new'", query="read_optimized").to_arrow().num_rows == 0
