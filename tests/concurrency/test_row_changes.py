"""Row-level changes of several writers could overwrite each other: a row is read, and another writer changes it then.

Every writer adds one to the same rows, many times. The sums show each addition that got lost, or was done twice.
"""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage
from tests.support.crashes import crash_points

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
TABLES = [(kind, version) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for version in (6, 8, 9)]
ROWS = 4


def make(path: str, kind: str, version: int, **given: Any) -> HudiTable:
    table = HudiTable.create(
        path, name="t", record_key="id", ordering="ts", table_type=kind, table_version=version, **given
    )
    ids = [f"k{n}" for n in range(ROWS)]
    table.upsert(pa.table({"id": ids, "ts": [1] * ROWS, "n": [0] * ROWS}, schema=SCHEMA))
    return table


def values(table: HudiTable) -> list[int]:
    return table.scan(columns=["id", "n"]).to_arrow().sort_by("id")["n"].to_pylist()


def add_in_a_process(path: str, turns: int) -> None:
    for _ in range(turns):
        HudiTable.open(path).update({"n": "n + 1"})


@pytest.mark.parametrize("kind,version", TABLES)
def test_additions_of_threads_all_count(kind: str, version: int) -> None:
    storage = MemoryStorage()
    table = make("unused", kind, version, storage=storage)
    writers, turns = 4, 3

    def add(number: int) -> None:
        mine = HudiTable.open("unused", storage=storage)
        for _ in range(turns):
            mine.update({"n": "n + 1"}, where=f"id <> 'k{number}'")

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(add, range(writers)))

    assert values(table) == [(writers - 1) * turns] * ROWS


@pytest.mark.parametrize(
    "kind,version",
    [
        ("MERGE_ON_READ", 8),
        *(pytest.param(*case, marks=pytest.mark.long) for case in (("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 6))),
    ],
)
def test_additions_of_processes_all_count(tmp_path: Path, kind: str, version: int) -> None:
    table = make(str(tmp_path / "t"), kind, version)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=add_in_a_process, args=(table.path, 3)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert values(table) == [9] * ROWS


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_merges_of_threads_add_up_and_insert_each_key_once(kind: str) -> None:
    storage = MemoryStorage()
    table = make("unused", kind, 8, storage=storage)
    source = pa.table({"id": ["k0", "new"], "ts": [1, 1], "n": [1, 1]}, schema=SCHEMA)

    def add(_: int) -> None:
        mine = HudiTable.open("unused", storage=storage)
        for _ in range(3):
            mine.merge(source, when_matched_update={"n": "target.n + source.n"}, when_not_matched_insert=True)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(add, range(3)))

    assert values(table) == [9, 0, 0, 0, 9]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_that_is_deleted_meanwhile_does_not_come_back(kind: str) -> None:
    storage = MemoryStorage()
    table = make("unused", kind, 8, storage=storage)

    def change(turn: Iterator[int]) -> None:
        mine = HudiTable.open("unused", storage=storage)
        for number in turn:
            if number < 0:
                mine.delete(where=f"id = 'k{-number}'")
            else:
                mine.update({"n": "n + 1"})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(change, [iter([0, 0, 0, 0]), iter([-1, -2])]))

    read = table.scan(columns=["id", "n"]).to_arrow().sort_by("id").to_pylist()
    assert read == [{"id": "k0", "n": 4}, {"id": "k3", "n": 4}]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_update_that_dies_leaves_the_table_before_or_after(kind: str) -> None:
    stored = MemoryStorage()
    make("unused", kind, 8, storage=stored)
    seen = set()

    def add(storage: object) -> None:
        HudiTable.open("unused", storage=storage).update({"n": "n + 1"})  # type: ignore[arg-type]

    for crash, disk in crash_points(add, stored.copy):
        table = HudiTable.open("unused", storage=disk)
        before = values(table)
        assert before in ([0] * ROWS, [1] * ROWS), crash
        seen.add(before[0])
        table.update({"n": "n + 10"})
        assert values(table) == [before[0] + 10] * ROWS, crash

    assert seen == {0, 1}
