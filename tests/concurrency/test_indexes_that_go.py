"""Indexes that go while a query is planned: the query could end in an error, though all its files are there."""

from collections.abc import Callable
from functools import cache, partial

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import CorruptFile, NotFound
from pyhudi.storage.memory import MemoryStorage
from tests.concurrency.test_second_writer import ReadHook


def drop_indexes(table: HudiTable) -> None:
    while indexes := [name for name in table.metadata.partitions_in_use if name != "files"]:
        table.drop_index(indexes[-1])


FIRST = pa.table({"id": ["a", "b"], "v": pa.array([1, 2], pa.int32()), "w": ["x", "y"]})
WIDER = pa.table({"id": ["c"], "v": pa.array([1 << 40], pa.int64()), "w": ["z"]})
GOING: dict[str, Callable[[HudiTable], object]] = {
    "drop_index": lambda table: drop_indexes(table),
    "alter": lambda table: table.alter().rename("w", "note").commit(),
    "a write that widens": lambda table: table.upsert(WIDER),
}
READ: dict[str, Callable[[HudiTable], pa.Table]] = {
    "scan": lambda table: table.scan(where="v >= 1").to_arrow(),
    "lookup": lambda table: table.lookup(["a", "b"]),
    "lookup without a record index": lambda table: table.lookup(["a", "b"]),
}


@cache
def made(*, knows_keys: bool) -> MemoryStorage:
    """A table with indexes on columns and on keys. Tests change copies of it."""
    storage = MemoryStorage()
    table = HudiTable.create("", name="t", record_key="id", storage=storage, executor=SerialExecutor())
    table.bulk_insert(FIRST)
    table.build_index("column_stats", columns=["id", "v", "w"])
    table.build_index("partition_stats")
    table.build_index("expr_index", name="e", expression="v")
    table.build_index("record_index" if knows_keys else "bloom_filters")
    return storage


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("going", GOING)
def test_a_query_goes_on_where_an_index_goes_while_it_is_planned(going: str, read: str) -> None:
    at, is_over = 0, False
    while not is_over:
        storage = made(knows_keys=read == "lookup").copy()
        table = HudiTable.open("", storage=storage, executor=SerialExecutor())
        hook = ReadHook(storage, at, partial(GOING[going], table))  # type: ignore[arg-type]
        found = READ[read](HudiTable.open("", storage=hook, executor=SerialExecutor()))  # type: ignore[arg-type]
        assert set(found["id"].to_pylist()) - {"c"} == {"a", "b"}, f"at read {at}"
        at, is_over = at + 1, hook.reads <= at
    assert at > 10


REPLACED: dict[str, Callable[[HudiTable], object]] = {
    "create": lambda table: table.metadata.create(),
    "delete": lambda table: table.metadata.delete(),
}
CALLS: dict[str, Callable[[HudiTable], int]] = {
    "scan by statistics": lambda table: table.scan(where="v >= 1").count(),
    "lookup": lambda table: table.lookup(["a", "b"]).num_rows,
    "incremental": lambda table: table.incremental(start="0").count(),
}


@cache
def listed(version: int) -> MemoryStorage:
    """A table with indexes whose metadata table has logs. Tests change copies of it."""
    storage = MemoryStorage()
    table = HudiTable.create(
        "", name="t", record_key="id", table_version=version, storage=storage, executor=SerialExecutor()
    )
    table.build_index("column_stats")
    table.build_index("record_index")
    table.insert(FIRST)
    return storage


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("replaced,version", [("create", 9), ("create", 6), ("delete", 9)])
def test_a_query_goes_on_where_the_metadata_table_is_replaced_meanwhile(replaced: str, version: int, call: str) -> None:
    """Up to version 7 a log is named after its slice: it is listed without a base file that the timeline lacks."""
    at, is_over = 0, False
    while not is_over:
        storage = listed(version).copy()
        table = HudiTable.open("", storage=storage, executor=SerialExecutor())
        hook = ReadHook(storage, at, partial(REPLACED[replaced], table))  # type: ignore[arg-type]
        found = CALLS[call](HudiTable.open("", storage=hook, executor=SerialExecutor()))  # type: ignore[arg-type]
        assert found == 2, f"at read {at}"
        at, is_over = at + 1, hook.reads <= at
    assert at > 5


def test_a_metadata_table_that_is_damaged_stays_an_error() -> None:
    """Even where its files go while a query reads them: nobody has made it anew."""
    whole = listed(8)

    def damage(storage: MemoryStorage) -> None:
        for file in list(storage.list(".hoodie/metadata/files")):
            storage.put(file.path, b"damaged")

    errors = list[Exception]()
    for at in range(6, 16):
        storage = whole.copy()
        hook = ReadHook(storage, at, partial(damage, storage))
        try:
            HudiTable.open("", storage=hook, executor=SerialExecutor()).scan().count()  # type: ignore[arg-type]
        except (CorruptFile, NotFound) as error:
            errors.append(error)
    assert errors
