"""A write could make a partition within another one, whose rows a listing of the storage by Apache Hudi would lose; or
rows of a table that has such partitions could get lost by a listing of ours.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable, Invalid
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.testing.crashing import Crash, CrashingStorage
from pyhudi.write.place import placement
from pyhudi.write.place.nested_partitions import Nesting
from tests.support.model import StepClock

BARE = {"hoodie.metadata.enable": "false"}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
LAZY = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}
SLASHED = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}


class Beside:
    """Runs something once, before a file that begins with `path` is put by the method `put`."""

    def __init__(self, inner: Storage, put: str, path: str, then: Callable[[], object]) -> None:
        self.inner, self.put_by, self.path = inner, put, path
        self.left = [then]

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        if name != self.put_by:
            return method

        def call(path: str, *rest: object) -> Any:
            if path.startswith(self.path) and self.left:
                self.left.pop()()
            return method(path, *rest)

        return call


def a_table(properties: dict[str, str], **facts: Any) -> HudiTable:
    return HudiTable.create(
        "unused", name="t", record_key="id", properties=properties,
        **{"partition_by": "p", "storage": MemoryStorage(), **facts},
    )  # fmt: skip


def rows(**paths: Any) -> pa.Table:
    return pa.table({"id": list(paths), "p": list(paths.values()), "v": [1] * len(paths)})


def ids(table: HudiTable) -> list[str]:
    return sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist())


@pytest.mark.parametrize("metadata", [{}, BARE], ids=["listed by the metadata table", "by the storage"])
@pytest.mark.parametrize("first,second", [("a", "a/b"), ("a/b", "a"), ("a/b/c", "a"), ("a", "a/b/c")])
def test_a_new_partition_within_another_one_or_around_it_is_refused(
    metadata: dict[str, str], first: str, second: str
) -> None:
    table = a_table(metadata)
    table.insert(rows(one=first, two="z/y"))
    for write in (table.insert, table.upsert, table.bulk_insert, table.insert_overwrite):
        with pytest.raises(Invalid, match=r"partition path 'a/b.*' lies below partition 'a'.*urlencode"):
            write(rows(three=second))
    table.upsert(rows(four="a0", five=first))
    assert ids(table) == ["five", "four", "one", "two"]


@pytest.mark.parametrize("properties", [HIVE, SLASHED, BARE], ids=["hive style", "slashed dates", "no metadata table"])
def test_partitions_within_one_another_in_one_input_are_refused(properties: dict[str, str]) -> None:
    table = a_table(properties)
    given = rows(one="2020-01", two="2020-01-05") if properties is SLASHED else rows(one="a", two="a/b")
    with pytest.raises(Invalid, match="lies below partition"):
        table.insert(given)
    assert len(table.timeline()) == 0
    table.insert(given.slice(0, 1))
    assert ids(table) == ["one"]


@pytest.mark.parametrize("metadata", [{}, BARE])
def test_the_last_of_two_columns_may_not_nest_either(metadata: dict[str, str]) -> None:
    table = a_table(metadata, partition_by=["q", "p"])
    table.insert(rows(one="a").append_column("q", [["x"]]))
    with pytest.raises(Invalid, match="partition path 'x/a/b' lies below partition 'x/a'"):
        table.insert(rows(two="a/b").append_column("q", [["x"]]))


def test_encoded_values_make_no_folders() -> None:
    table = a_table(ENCODED)
    table.insert(rows(one="a", two="a/b"))
    assert ids(table) == ["one", "two"]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
def test_a_table_that_has_such_partitions_keeps_their_rows(
    table_type: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = a_table({}, table_type=table_type, table_version=version)
    with monkeypatch.context() as patch:
        patch.setattr(placement, "refuse_nested_partitions", lambda *_: Nesting())
        table.insert(rows(one="a", two="a/b"))
    point = table.savepoint()
    table.upsert(rows(one="a", two="a/b", three="c"))
    table.restore(point.requested)
    assert ids(table) == ["one", "two"]
    table.metadata.delete()
    assert ids(table) == ["one", "two"]
    table.metadata.create()
    assert ids(table) == ["one", "two"]
    table.upsert(rows(two="a/b", four="a/b"), options=BARE)
    table.upsert(rows(two="a/b"))
    assert ids(table) == ["four", "one", "two"]
    assert table.metadata.validate().is_valid


def marks(storage: Storage) -> list[str]:
    names = (file.path for file in storage.list("", recursive=True) if not file.path.startswith(".hoodie/"))
    return sorted(name for name in names if name.endswith(".hoodie_partition_metadata"))


EITHER = pytest.mark.parametrize("metadata", [{}, BARE], ids=["listed by the metadata table", "by the storage"])


@EITHER
@pytest.mark.parametrize("lands", [False, True])
def test_a_dead_write_neither_hides_nor_refuses_partitions_below_its_own(metadata: dict[str, str], lands: bool) -> None:
    """Apache Hudi finds nothing below a folder with such a file. Where the dead write landed, its partition counts."""
    for survives in count():
        storage, clock = MemoryStorage(), StepClock()
        a_table(metadata, storage=storage, clock=clock).insert(rows(one="z"))
        try:
            HudiTable.open("unused", storage=CrashingStorage(storage, survives, lands), clock=clock).insert(
                rows(two="a")
            )
        except Crash:
            clock.ms += 3_600_000
        else:
            assert survives > 5
            return
        table = HudiTable.open("unused", storage=storage, clock=clock)
        if "two" in ids(table):
            with pytest.raises(Invalid, match="lies below partition 'a'"):
                table.insert(rows(three="a/b"))
            assert marks(storage) == ["a/.hoodie_partition_metadata", "z/.hoodie_partition_metadata"]
        else:
            table.insert(rows(three="a/b"))
            assert ids(table) == ["one", "three"]
            assert marks(storage) == ["a/b/.hoodie_partition_metadata", "z/.hoodie_partition_metadata"]


@EITHER
@pytest.mark.parametrize("put", ["put_new", "put_stream"], ids=["before its partition", "before its file"])
@pytest.mark.parametrize("first,second", [("a", "a/b"), ("a/b", "a")])
def test_of_two_writes_at_a_time_one_makes_its_partition(
    metadata: dict[str, str], first: str, second: str, put: str
) -> None:
    storage, clock = MemoryStorage(), StepClock()
    table = a_table(metadata, storage=storage, clock=clock)
    table.insert(rows(one="z"))
    outcomes: list[bool] = []

    def insert(at: Storage, key: str, path: str) -> None:
        try:
            HudiTable.open("unused", storage=at, clock=clock).insert(rows(**{key: path}))
        except (Conflict, Invalid):
            outcomes.append(False)
        else:
            outcomes.append(True)

    insert(Beside(storage, put, first, lambda: insert(storage, "other", second)), "mine", first)
    assert sorted(outcomes) == [False, True]
    won = ("mine", first) if outcomes[1] else ("other", second)
    assert ids(table) == sorted([won[0], "one"])
    assert f"{won[1]}/.hoodie_partition_metadata" in marks(storage)
    if won[1] == "a/b":
        assert "a/.hoodie_partition_metadata" not in marks(storage)


@EITHER
def test_a_write_that_loses_takes_its_partition_back_from_above_the_rows_of_the_other(metadata: dict[str, str]) -> None:
    """Its partition metadata file comes after the other has completed. Where it dies, the next writer clears up."""
    for survives in count():
        inner, clock = MemoryStorage(), StepClock()
        a_table(metadata, storage=inner, clock=clock).insert(rows(one="z"))
        other = HudiTable.open("unused", storage=inner, clock=clock)
        storage = Beside(inner, "put_new", "a/", lambda: other.insert(rows(three="a/b")))  # noqa: B023
        try:
            HudiTable.open("unused", storage=CrashingStorage(storage, survives, False), clock=clock).insert(
                rows(two="a")
            )
        except Crash:
            clock.ms += 3_600_000
        except (Conflict, Invalid):
            assert marks(inner) == ["a/b/.hoodie_partition_metadata", "z/.hoodie_partition_metadata"]
            return
        if not storage.left:
            other.upsert(rows(four="z"))
            assert ids(other) == ["four", "one", "three"]
            assert marks(inner) == ["a/b/.hoodie_partition_metadata", "z/.hoodie_partition_metadata"]


@pytest.mark.parametrize("content", [b"{", b"no commit", b"Obj\x01"])
def test_a_dead_write_is_rolled_back_whatever_its_inflight_file_says(content: bytes) -> None:
    storage, clock = MemoryStorage(), StepClock()
    table = a_table({}, storage=storage, clock=clock)
    table.insert(rows(one="z"))
    with pytest.raises(Crash):
        HudiTable.open("unused", storage=CrashingStorage(storage, 4, False), clock=clock).insert(rows(two="a"))
    inflight = [f.path for f in storage.list(".hoodie/timeline") if f.path.endswith(".inflight")]
    storage.put(max(inflight), content)
    clock.ms += 3_600_000
    table.upsert(rows(three="z"))
    assert ids(table) == ["one", "three"]
    assert not any(instant.state != "COMPLETED" for instant in table.timeline())


@EITHER
def test_files_of_a_write_that_was_rolled_back_refuse_no_partition_below(metadata: dict[str, str]) -> None:
    """A task may go on after its write was rolled back, and leave a file that nobody knows."""
    storage = MemoryStorage()
    table = a_table(metadata, storage=storage)
    table.insert(rows(one="z"))
    undone = table.insert(rows(two="a"))
    left = [(file.path, storage.get(file.path)) for file in storage.list("a")]
    assert undone.requested is not None
    table.rollback(undone.requested)
    for path, content in left:
        storage.put(path, content)
    table.insert(rows(three="a/b"))
    assert ids(table) == ["one", "three"]
    assert marks(storage) == ["a/b/.hoodie_partition_metadata", "z/.hoodie_partition_metadata"]


@EITHER
def test_a_dead_write_refuses_no_partition_below_where_only_cleans_roll_back(metadata: dict[str, str]) -> None:
    storage, clock = MemoryStorage(), StepClock()
    a_table(metadata, storage=storage, clock=clock).insert(rows(one="z"))

    def die() -> None:
        raise Crash("no power")

    dying = Beside(storage, "put_stream", "a/", die)
    with pytest.raises(Crash):
        HudiTable.open("unused", storage=dying, clock=clock, options=LAZY).insert(rows(two="a"))
    clock.ms += 3_600_000
    table = HudiTable.open("unused", storage=storage, clock=clock, options=LAZY)
    table.insert(rows(three="a/b"))
    assert ids(table) == ["one", "three"]
    assert marks(storage) == ["a/b/.hoodie_partition_metadata", "z/.hoodie_partition_metadata"]
