"""A scan could count, cut or split its rows otherwise than it reads them."""

import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import CorruptFile, HudiTable, Invalid, ScanTask, Unsupported
from pyhudi.storage.memory import MemoryStorage

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])


def make(kind: str, path: str = "unused", **given: Any) -> HudiTable:
    """Two partitions, with rows that were updated and deleted since: on merge-on-read tables in logs."""
    table = HudiTable.create(path, name="t", record_key="id", partition_by="city", table_type=kind, **given)
    cities = ["oslo" if n % 2 else "rome" for n in range(100)]
    table.bulk_insert(pa.table([[f"k{n}" for n in range(100)], cities, range(100)], schema=SCHEMA))
    table.update({"n": "n + 1000"}, where="n < 10")
    table.delete(where="n = 20 OR n = 31")
    return table


def ids(rows: pa.Table) -> list[str]:
    return sorted(rows["id"].to_pylist())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    "asked",
    [{}, {"where": "n >= 1000"}, {"where": "city = 'oslo' AND n < 50"}, {"columns": ["n"]}, {"query": "read_optimized"},
     {"where": "false"}],
    ids=str,
)  # fmt: skip
def test_a_count_is_the_number_of_rows_that_are_read(kind: str, asked: dict[str, Any]) -> None:
    table = make(kind, storage=MemoryStorage())
    scan = table.scan(**asked)
    assert scan.count() == len(scan.to_arrow()) == sum(map(len, scan.to_batches()))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_incremental_count_is_the_number_of_rows_that_are_read(kind: str) -> None:
    table = make(kind, storage=MemoryStorage())
    start = table.timeline()[0].completed
    assert table.incremental(start).count() == len(table.incremental(start).to_arrow()) == 10


def test_a_count_of_every_row_reads_footers_alone() -> None:
    storage = MemoryStorage()
    table = make("COPY_ON_WRITE", storage=storage)
    scan = table.scan()
    for path in scan.files():
        content = storage.get(path)
        footer = content[-8 - int.from_bytes(content[-8:-4], "little") :]
        storage.put(path, b"PAR1" + bytes(len(content) - 4 - len(footer)) + footer)  # the pages are gone
    with pytest.raises(CorruptFile):
        scan.to_arrow()
    assert scan.count() == 98


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_limit_cuts_every_form_of_the_answer(kind: str) -> None:
    table = make(kind, storage=MemoryStorage())
    for count, expected in ((0, 0), (1, 1), (60, 60), (1000, 98)):
        scan = table.scan(columns=["id"]).limit(count)
        assert len(scan.to_arrow()) == scan.count() == expected
        if find_spec("pandas"):
            assert len(scan.to_pandas()) == expected
        assert sum(map(len, scan.to_batches())) == expected
        assert len(pa.table(scan)) == expected
    assert table.scan().limit(5).limit(9).count() == 5


@pytest.mark.parametrize("count", [-1, True, "3", 1.5])
def test_a_limit_is_a_number_of_rows(count: Any) -> None:
    with pytest.raises(Invalid, match="expected a number of rows"):
        make("COPY_ON_WRITE", storage=MemoryStorage()).scan().limit(count)


def read_task(pickled: bytes) -> list[str]:
    task = pickle.loads(pickled)
    assert isinstance(task, ScanTask)
    return task.to_arrow()["id"].to_pylist()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_tasks_are_read_alone_and_give_all_rows(kind: str, tmp_path: Path) -> None:
    table = make(kind, str(tmp_path / "t"))
    scan = table.scan(where="n > 10")
    tasks = scan.tasks()

    assert len(tasks) == 2
    assert all(task.size_bytes > 0 and task.schema == scan.schema for task in tasks)
    with ThreadPoolExecutor(2) as pool:
        by_threads = pool.map(ScanTask.to_arrow, tasks)
        assert ids(pa.concat_tables(by_threads)) == ids(scan.to_arrow())
    with ProcessPoolExecutor(1) as processes:
        by_processes = processes.map(read_task, map(pickle.dumps, tasks))
        assert sorted(key for keys in by_processes for key in keys) == ids(scan.to_arrow())


def test_tasks_of_a_limit_are_refused() -> None:
    with pytest.raises(Invalid, match="expected a scan without a limit"):
        make("COPY_ON_WRITE", storage=MemoryStorage()).scan().limit(3).tasks()


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(Unsupported, match="pip install polars"):
        make("COPY_ON_WRITE", storage=MemoryStorage()).scan().to_polars()


def test_a_view_is_registered_under_its_name() -> None:
    class Connection:
        def __init__(self) -> None:
            self.views: dict[str, Any] = {}

        def register(self, name: str, rows: Any) -> None:
            self.views[name] = rows

        def table(self, name: str) -> Any:
            return self.views[name]

    scan = make("COPY_ON_WRITE", storage=MemoryStorage()).scan()
    assert scan.to_duckdb(Connection(), "t").count_rows() == 98
    assert scan.limit(3).to_duckdb(Connection(), "t").count_rows() == 3
    with pytest.raises(Invalid, match="expected a DuckDB connection"):
        scan.to_duckdb(object(), "t")
