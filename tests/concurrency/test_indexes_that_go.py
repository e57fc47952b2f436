"""Indexes that go while a query is planned: the query could end in an error, though all its files are there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import count

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import CorruptFile, NotFound
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import FileInfo
from pyhudi.testing.crashing import Crash, CrashingStorage
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


@dataclass(frozen=True)
class HalfDone:
    """A table that is read while it changes. `steps`: as a change leaves it that dies, at each step of the change."""

    whole: MemoryStorage
    steps: list[MemoryStorage]

    def answers(self, call: Callable[[HudiTable], object], *, share: int = 1) -> Iterator[tuple[int, int, object]]:
        """The answer for each read, and for each step from it on. `share`: one of so many is asked for."""
        at, is_over = 0, False
        while not is_over:
            for number in range(at % share, len(self.steps), share):
                hook = ReadHook(self.whole, at, lambda: None)
                hook.then = partial(setattr, hook, "inner", self.steps[number])
                table = HudiTable.open("", storage=hook, executor=SerialExecutor())  # type: ignore[arg-type]
                yield at, number, call(table)
                is_over = hook.reads <= at + 1
            at += 1


def build_anew(table: HudiTable) -> None:
    table.drop_index("record_index")
    table.build_index("record_index")


CHANGES: dict[str, Callable[[HudiTable], object]] = {**REPLACED, "drop and build": build_anew}


@cache
def half_done(version: int, change: str) -> HalfDone:
    whole, steps = MemoryStorage(), list[MemoryStorage]()
    table = HudiTable.create(
        "", name="t", record_key="id", table_version=version, storage=whole, executor=SerialExecutor()
    )
    table.build_index("record_index")
    table.insert(FIRST)
    table.upsert(FIRST.slice(0, 1))
    for survives in count():
        storage = whole.copy()
        crashing = CrashingStorage(storage, survives, lands=False)
        try:
            CHANGES[change](HudiTable.open("", storage=crashing, executor=SerialExecutor()))
        except Crash:
            steps.append(storage)
        else:
            break
    return HalfDone(whole, steps)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("change", ["create", "delete"])
def test_a_query_finds_every_row_while_the_metadata_table_is_half_there(change: str, version: int) -> None:
    """Of a list of files that is deleted or made, a part could be taken for all of it."""
    found = half_done(version, change).answers(lambda table: table.scan().count())
    assert [(at, step) for at, step, rows in found if rows != 2] == []


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("change", CHANGES)
def test_a_lookup_finds_every_row_while_the_index_is_half_there(change: str, version: int) -> None:
    found = half_done(version, change).answers(lambda table: table.lookup(["a", "b"]).num_rows, share=6)
    assert [(at, step) for at, step, rows in found if rows != 2] == []


@pytest.mark.parametrize("version", [6, 9])
def test_a_lookup_misses_no_key_that_a_later_commit_has_taken_out_of_the_index(version: int) -> None:
    """A compaction of the metadata table leaves nothing of the state that the query's snapshot is of."""
    gone, new = FIRST.slice(0, 1).select(["id"]), WIDER.set_column(1, "v", pa.array([3], pa.int32()))
    at, is_over = 0, False
    while not is_over:
        storage = listed(version).copy()

        def take_out(storage: MemoryStorage = storage) -> None:
            options = {"hoodie.metadata.compact.max.delta.commits": "1"}
            table = HudiTable.open("", options=options, storage=storage, executor=SerialExecutor())
            table.delete(gone)
            table.upsert(new)
            table.upsert(new)

        hook = ReadHook(storage, at, take_out)
        table = HudiTable.open("", storage=hook, executor=SerialExecutor())  # type: ignore[arg-type]
        is_later = at <= 2  # the third read is that of the timeline
        assert table.lookup(["a", "b"]).column("id").to_pylist() == (["b"] if is_later else ["a", "b"]), f"at read {at}"
        at, is_over = at + 1, hook.reads <= at


@dataclass
class EachTime:
    """`inner`, with a call before each list of a folder."""

    inner: MemoryStorage
    folder: str
    then: Callable[[], None]
    times: int = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        if prefix == self.folder:
            self.times += 1
            self.then()
        return self.inner.list(prefix, recursive=recursive)


@pytest.mark.parametrize("version", [6, 9])
def test_a_metadata_table_that_is_replaced_again_and_again_is_read_from_the_storage(version: int) -> None:
    storage = listed(version).copy()
    writer = HudiTable.open("", storage=storage, executor=SerialExecutor())

    def replace_it() -> None:
        writer.upsert(FIRST)
        writer.metadata.create()

    each = EachTime(storage, ".hoodie/metadata/files", replace_it)
    table = HudiTable.open("", storage=each, executor=SerialExecutor())  # type: ignore[arg-type]
    assert table.scan().to_arrow().column("id").to_pylist() == ["a", "b"]
    assert each.times <= 5


SHOWN: dict[str, Callable[[HudiTable], object]] = {
    "list_files": lambda table: table.metadata.list_files().num_rows,
    "list_partitions": lambda table: table.metadata.list_partitions(),
    "stats": lambda table: (table.metadata.stats().data_partitions, table.metadata.stats().data_files),
    "lookup": lambda table: len((table.metadata.lookup(["."])["."] or {"files": {}})["files"]),
}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("shown", SHOWN)
def test_what_the_metadata_table_shows_is_true_while_it_is_replaced(shown: str, version: int) -> None:
    """It is shown whole, or as what is gone: there may be none at that moment."""
    half, show = half_done(version, "create"), SHOWN[shown]
    expected = show(HudiTable.open("", storage=half.whole, executor=SerialExecutor()))

    def answer(table: HudiTable) -> object:
        try:
            return show(table)
        except NotFound as error:
            return expected if "metadata table" in str(error) else error

    wrong = [(at, step, found) for at, step, found in half.answers(answer) if found != expected]
    assert wrong == []

    made = HalfDone(half.whole, [half.whole.copy()])
    HudiTable.open("", storage=made.steps[0], executor=SerialExecutor()).metadata.create()
    assert {found for _, _, found in made.answers(lambda table: repr(show(table)))} == {repr(expected)}
