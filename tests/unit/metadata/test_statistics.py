"""Statistics could leave out rows that a query asks for: nulls of files older than a column, NaN, texts in the order of
Java. Such a query would lose rows, here or in Apache Hudi, and nobody would notice.
"""

import math
from collections.abc import Mapping

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import CorruptFile
from pyhudi.format.metadata.bound_orders import in_every_order
from pyhudi.format.metadata.stats_values import TypedBounds, ValueType
from pyhudi.metadata.derive import column_bounds
from pyhudi.metadata.derive.column_bounds import FileBounds, IndexedColumn, Tally, bounds_table
from pyhudi.metadata.derive.stats_changes import merge_by_partition
from pyhudi.metadata.kinds.stats_reading import _may_be_no_nulls
from pyhudi.storage.memory import MemoryStorage

STATS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
NAN, INF = math.nan, math.inf


def opened(storage: MemoryStorage, **options: str) -> HudiTable:
    return HudiTable.open("t", storage=storage, options={"hoodie.parquet.small.file.limit": "0", **options})


def with_an_older_file(table_type: str = "COPY_ON_WRITE") -> MemoryStorage:
    """Files of one partition, the oldest without the column `c`. Then the statistics are built."""
    storage = MemoryStorage()
    HudiTable.create("t", storage=storage, name="t", record_key="id", partition_by="p", table_type=table_type)
    opened(storage).insert(pa.table({"id": ["a", "b"], "p": ["x", "x"], "n": [1, 2]}))
    opened(storage).insert(pa.table({"id": ["c", "d"], "p": ["x", "x"], "n": [3, 4], "c": [7, 8]}))
    opened(storage, **STATS).insert(pa.table({"id": ["e"], "p": ["y"], "n": [5], "c": [9]}))
    return storage


def found(storage: MemoryStorage, where: str) -> list[str]:
    return sorted(opened(storage).scan(where=where).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_files_older_than_a_column_count_its_nulls(table_type: str) -> None:
    storage = with_an_older_file(table_type)
    scan = opened(storage).scan(where="c IS NULL")
    assert sorted(scan.to_arrow()["id"].to_pylist()) == ["a", "b"]
    assert [(one.index, one.partitions) for one in scan._plan.explanation.indexes][:1] == [("partition_stats", 1)]
    assert found(storage, "c IS NULL AND n > 1") == ["b"]
    assert opened(storage).metadata.validate().differences == ()


def test_statistics_of_a_partition_that_leave_files_out_rule_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: 1.0.2 and 1.2.0 write such statistics, and so did this package."""
    with monkeypatch.context() as old:
        old.setattr(column_bounds, "_lacks", lambda *_: False)
        storage = with_an_older_file()
    assert found(storage, "c IS NULL") == ["a", "b"]
    assert found(storage, "c IS NULL AND n > 1") == ["b"]
    assert found(storage, "c = 7") == ["c"]


def test_a_block_of_a_log_that_lacks_a_column_counts_its_nulls() -> None:
    storage = MemoryStorage()
    HudiTable.create("t", storage=storage, name="t", record_key="id", partition_by="p", table_type="MERGE_ON_READ")
    opened(storage, **STATS).insert(pa.table({"id": ["a"], "p": ["x"], "n": [1], "c": [7]}))
    opened(storage, **STATS).upsert(pa.table({"id": ["a"], "p": ["x"], "n": [2]}))
    assert found(storage, "c = 7 AND n = 2") == ["a"]
    assert opened(storage).metadata.validate().differences == ()


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(
    "values, low, high",
    [([NAN, 1.0, -2.0], -2.0, INF), ([NAN, None], INF, INF), ([None, None], None, None), ([0.0], -0.0, 0.0)],
)
def test_nan_makes_the_bound_infinite(kind: pa.DataType, values: list[float | None], low: float, high: float) -> None:
    """Apache Hudi passes over a file with values whose bounds are null, so NaN must not take them away."""
    tally = Tally(IndexedColumn("f", kind))
    tally.add(pa.array(values, kind))
    bounds = tally.bounds()
    assert [repr(bounds.low.as_py()), repr(bounds.high.as_py())] == [repr(low), repr(high)]


def merged(kind: pa.DataType, *files: list[object]) -> Mapping[str, object]:
    column, told = IndexedColumn("c", kind), []
    for number, values in enumerate(files):
        tally = Tally(column)
        tally.add(pa.array(values, kind))
        told.append(FileBounds("x", f"f{number}", {"c": tally.bounds()}))
    (row,) = merge_by_partition(bounds_table(told, column)).to_pylist()
    return dict(row)


def test_nan_of_one_file_makes_the_bound_of_its_partition_infinite() -> None:
    row = merged(pa.float64(), [1.0, NAN], [5.0])
    assert (row["min"], row["max"]) == (1.0, INF)
    row = merged(pa.float64(), [NAN], [5.0, None])
    assert (row["min"], row["max"], row["null_count"]) == (5.0, INF, 1)
    row = merged(pa.float64(), [2.0], [5.0])
    assert (row["min"], row["max"]) == (2.0, 5.0)


@pytest.mark.parametrize("kind, ends", [(pa.float64(), "[-inf, inf]"), (pa.string(), "['', '\\U0010ffff']")])
def test_a_partition_with_a_file_of_unknown_bounds_has_those_of_the_type(kind: pa.DataType, ends: str) -> None:
    column = IndexedColumn("c", kind)
    known = Tally(column)
    known.add(pa.array([1.0], pa.float64()).cast(kind))
    unknown = column_bounds.ColumnBounds(2, 0, pa.scalar(None, kind), pa.scalar(None, kind))
    files = [FileBounds("x", "f0", {"c": known.bounds()}), FileBounds("x", "f1", {"c": unknown})]
    (row,) = merge_by_partition(bounds_table(files, column)).to_pylist()
    assert repr([row["min"], row["max"]]) == ends


@pytest.mark.parametrize(
    "kind, size, in_doubt",
    [
        (pa.string(), 5_000, True),
        (pa.string(), 60, False),
        (pa.timestamp("us", "UTC"), 60, True),
        (pa.int64(), 60, False),
    ],
)
def test_a_column_that_is_said_to_be_null_may_be_without_statistics(
    kind: pa.DataType, size: int, in_doubt: bool
) -> None:
    """Apache Hudi 1.2.0 says so of a file with a text of 5,000 bytes."""
    two, none = pa.array([2, 2, 2]), pa.array([2, 1, 2])
    found = _may_be_no_nulls(kind, none, two, pa.array([size, size, 0]))
    assert found.to_pylist() == [in_doubt, False, False]


# Bounds in the order of Java.

TEXTS = [
    "", "a", "ab", "ab\uff0c", "ab\uff0cx",
    "ab\U0001f600", "ab\ud7ff", "ab\ue000", "\uff0c", "\U0001f600", "\U0010ffff",
    "\ud7ff\U0001f600", "\ud7ff\uff0c", "\u00e9", "z",
]  # fmt: skip


def known(low: list[str], high: list[str]) -> TypedBounds:
    return TypedBounds(pa.array(low), pa.array(high), pa.array([True] * len(low)))


def test_bounds_of_texts_hold_whether_java_ordered_them_or_not() -> None:
    def units(text: str) -> bytes:
        return text.encode("utf-16-be")

    pairs = [(low, high) for low in TEXTS for high in TEXTS if units(low) <= units(high)]
    wide = in_every_order(known([low for low, _ in pairs], [high for _, high in pairs]))
    for at, (low, high) in enumerate(pairs):
        within = [text for text in TEXTS if units(low) <= units(text) <= units(high)]
        if wide.is_known[at].as_py():
            least, greatest = wide.min[at].as_py().encode(), wide.max[at].as_py().encode()
            assert all(least <= text.encode() <= greatest for text in within), (low, high)


def test_bounds_of_common_texts_stay_as_they_are() -> None:
    wide = in_every_order(known(["a", "\u00e9"], ["z", "\u4e2d\u6587"]))
    assert (wide.min.to_pylist(), wide.max.to_pylist()) == (["a", "\u00e9"], ["z", "\u4e2d\u6587"])
    assert wide.is_known.to_pylist() == [True, True]


def test_bounds_of_bytes_and_bounds_in_the_wrong_order_are_not_known() -> None:
    bounds = TypedBounds(pa.array([b"a"]), pa.array([b"b"]), pa.array([True]))
    assert in_every_order(bounds).is_known.to_pylist() == [False]
    bounds = TypedBounds(pa.array([1, 2, None]), pa.array([3, 1, None]), pa.array([True, True, False]))
    assert in_every_order(bounds).is_known.to_pylist() == [True, False, False]
    bounds = TypedBounds(pa.array([False]), pa.array([True]), pa.array([True]))
    assert in_every_order(bounds).is_known.to_pylist() == [True]


def test_a_log_of_deletes_alone_has_the_type_of_an_indexed_expression() -> None:
    """Seen: 1.2.0 merges the bounds of a partition's files, and its next write fails where their types differ."""
    storage = MemoryStorage()
    HudiTable.create("t", storage=storage, name="t", record_key="id", table_type="MERGE_ON_READ", table_version=9)
    opened(storage).upsert(pa.table({"id": ["a", "b"], "x": ["A", "B"]}))
    opened(storage).build_index("column_stats", name="e", columns="x", expression="lower(x)")
    opened(storage).delete(pa.table({"id": ["b"]}))

    records = opened(storage).metadata.read_records(["expr_index_e"]).read_all()["ColumnStatsMetadata"].to_pylist()
    assert sorted(one["valueCount"] for one in records) == [0, 2, 2]
    assert {one["valueType"]["typeOrdinal"] for one in records} == {ValueType.STRING}


def test_file_groups_of_another_partition_are_passed_over() -> None:
    """Seen: a clean of 1.2.0 logs what it deletes from the statistics of an expression to `column_stats`."""
    storage = MemoryStorage()
    properties = {**STATS, "hoodie.metadata.compact.max.delta.commits": "2"}
    HudiTable.create("t", storage=storage, name="t", record_key="id", properties=properties)
    opened(storage).upsert(pa.table({"id": ["a", "b"], "x": ["A", "B"]}))
    opened(storage).build_index("column_stats", name="e", columns="x", expression="lower(x)")
    opened(storage).upsert(pa.table({"id": ["c"], "x": ["C"]}))

    own, other = ".hoodie/metadata/column_stats", ".hoodie/metadata/expr_index_e"
    logs = [file.path for file in storage.list(other) if "/.expr-index-e-0000-0_" in file.path]
    for path in logs:
        storage.put(f"{own}/{path.rpartition('/')[2]}", storage.get(path))
    assert logs

    for number in range(4):  # a compaction of the metadata table is among what they do
        assert opened(storage).metadata.validate().differences == ()
        assert found(storage, "x = 'C'") == ["c"]
        assert found(storage, "lower(x) = 'a'") == ["a"]
        opened(storage).upsert(pa.table({"id": ["d"], "x": [f"D{number}"]}))

    for path in [file.path for file in storage.list(own) if "expr-index" not in file.path]:
        storage.delete(path)
    with pytest.raises(CorruptFile, match=r"(?s)'expr-index-e-0000-0'.*[Dd]rop and rebuild this index"):
        found(storage, "x = 'C'")
