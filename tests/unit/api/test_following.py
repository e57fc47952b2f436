"""One who follows a table could miss the commits of a slow write, or get a commit twice."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from tests.concurrency.test_second_writer import watched

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])


def one(key: str) -> pa.Table:
    return pa.table({"id": [key], "v": [0]}, schema=SCHEMA)


class Follower:
    """Reads what is new at each turn, as `docs/reading.md` says."""

    def __init__(self, table: HudiTable, *, cdc: bool) -> None:
        self.table, self.cdc, self.last = table, cdc, table.position(cdc=cdc)

    def turn(self) -> list[str]:
        end = self.table.position(cdc=self.cdc)
        if end <= self.last:
            return []
        start, self.last = self.last, end
        if self.cdc:
            return [row["id"] for row in self.table.cdc(start, end).to_arrow()["after"].to_pylist()]
        return self.table.incremental(start, end, columns=["id"]).to_arrow()["id"].to_pylist()


@pytest.mark.parametrize("cdc", [False, True], ids=["rows", "changes"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_each_commit_is_given_once_beside_a_slow_write(version: int, cdc: bool) -> None:
    storage, beside = MemoryStorage(), list[str]()
    table = HudiTable.create("", name="t", record_key="id", table_version=version, storage=storage)
    table.insert(one("before"))
    follower = Follower(table, cdc=cdc)

    def write_meanwhile(what: str) -> None:
        if what.startswith("put_stream") and not table.scan(where="id = 'fast'").count():
            table.insert(one("fast"))
            beside.extend(follower.turn())

    HudiTable.open("", storage=watched(storage, write_meanwhile), executor=SerialExecutor()).insert(one("slow"))
    after = follower.turn()

    waits_for_it = cdc or version == 6
    assert beside == ([] if waits_for_it else ["fast"])
    assert sorted(after) == (["fast", "slow"] if waits_for_it else ["slow"])
    assert follower.turn() == []


def test_a_table_without_commits_has_a_position_before_all(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    start = table.position()

    table.insert(one("a"))

    assert table.incremental(start, table.position()).to_arrow().num_rows == 1
    assert table.cdc(start, table.position(cdc=True)).to_arrow().num_rows == 1
    assert table.incremental(start, start).to_arrow().num_rows == 0


def test_a_restore_takes_the_position_back_and_later_commits_are_given(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    kept = table.insert(one("a"))
    table.insert(one("b"))
    follower = Follower(table, cdc=False)

    table.restore(kept.requested or "")
    assert follower.turn() == []
    table.insert(one("c"))
    assert follower.turn() == ["c"]
