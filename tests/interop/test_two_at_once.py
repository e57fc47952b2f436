"""Apache Hudi and pyhudi write one table at the same moment, under a lock that both hold.

Each commit that succeeded must be there at last, on both sides, and nothing else. Some keys are each side's own, some
are shared: of these the row with the greatest ordering value counts, whoever wrote it.
"""

import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import Conflict
from tests.support.lock_servers import zookeeper_server
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

__all__ = ["zookeeper_server"]

COMMITS = 30
_LOCKS = "org.apache.hudi.client.transaction.lock"
WAITING = {
    "hoodie.write.lock.wait_time_ms": 60_000,
    "hoodie.write.lock.num_retries": 30,
    "hoodie.write.lock.wait_time_ms_between_retry": 200,
}
LOCK: dict[str, object] = {**WAITING, "hoodie.write.lock.provider": f"{_LOCKS}.FileSystemBasedLockProvider"}
THEIRS = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}
SERVICES = {
    "hoodie.clean.commits.retained": 6, "hoodie.keep.min.commits": 8, "hoodie.keep.max.commits": 10,
    "hoodie.metadata.compact.max.delta.commits": 6,
}  # fmt: skip
CITIES = ("oslo", "rome")
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.string())])

Rows = dict[str, tuple[str, int, str]]


def batch_of(who: str, number: int) -> Rows:
    """Three keys of the side's own and one that both write. Ordering values grow, and no two are equal."""
    ts = 2 * number + (who == "pyhudi")
    own = {f"{who}{key}": (CITIES[key % 2], ts, who) for key in range(number, number + 3)}
    return {**own, f"shared{number % 5}": (CITIES[number % 2 if number % 5 else 0], ts, who)}


def stored_city(key: str, city: str) -> str:
    """A shared key lies in one partition, whoever writes it."""
    return CITIES[int(key[-1]) % 2] if key.startswith("shared") else city


def as_table(rows: Rows) -> pa.Table:
    columns = [(key, stored_city(key, city), ts, v) for key, (city, ts, v) in rows.items()]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, values, strict=True)) for values in columns], SCHEMA)


def newest(commits: list[Rows]) -> dict[str, tuple[int, str]]:
    """Key -> ordering value and writer of the row that counts."""
    found: dict[str, tuple[int, str]] = {}
    for rows in commits:
        for key, (_, ts, v) in rows.items():
            found[key] = max(found.get(key, (-1, "")), (ts, v))
    return found


def rows_of(table: pa.Table) -> dict[str, tuple[int, str]]:
    rows = {row["id"]: (row["ts"], row["v"]) for row in table.select(["id", "ts", "v"]).to_pylist()}
    assert len(rows) == len(table), "no key is there twice"
    return rows


@pytest.fixture(params=["file system", "ZooKeeper"])
def lock(request: pytest.FixtureRequest) -> dict[str, object]:
    """The lock that both sides hold."""
    if request.param == "file system":
        return LOCK
    return {
        **WAITING,
        "hoodie.write.lock.provider": f"{_LOCKS}.ZookeeperBasedLockProvider",
        "hoodie.write.lock.zookeeper.url": request.getfixturevalue("zookeeper_server"),
        "hoodie.write.lock.zookeeper.base_path": f"/hudi/{uuid4()}",
        "hoodie.write.lock.zookeeper.lock_key": "rides",
    }


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    "name, version, options",
    [
        ("hudi_120", 9, {"hoodie.write.auto.upgrade": False}),
        ("hudi_102", 8, {"hoodie.write.auto.upgrade": False, "hoodie.write.table.version": 8}),
        ("hudi_0150", 6, {}),
    ],
    ids=["1.2.0 on version 9", "1.0.2 on version 8", "0.15.0 on version 6"],
)
def test_both_write_at_once(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    lock: dict[str, object],
    name: str,
    version: int,
    options: dict[str, object],
    table_type: str,
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    path = tmp_path / "rides"
    table = HudiTable.create(
        path, name="rides", record_key="id", partition_by="city", ordering="ts", table_type=table_type,
        table_version=version, properties=SERVICES,
    )  # fmt: skip
    known = {
        "hoodie.table.name": "rides", "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city", "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": table_type,
    }  # fmt: skip
    stated: dict[str, Any] = {**known, **lock, **THEIRS, **SERVICES, **options}
    first = {f"{who}{key}": (CITIES[key % 2], -1, "first") for who in ("pyhudi", "hudi") for key in range(5)}
    table.upsert(as_table(first))
    hudi.write(path, as_table(first), operation="upsert", **stated)  # its first write takes as long as our thirty
    turns = threading.Semaphore(2)  # without turns our thirty commits are over before its third
    done: dict[str, list[Rows]] = {"pyhudi": [], "hudi": []}
    failed: list[str] = []
    errors: list[BaseException] = []

    def ours() -> None:
        mine = HudiTable.open(path, options=lock)
        for number in range(COMMITS):
            turns.acquire()
            rows = batch_of("pyhudi", number)
            try:
                mine.upsert(as_table(rows))
                done["pyhudi"].append(rows)
            except Conflict as error:
                failed.append(f"pyhudi: {error}")

    def theirs() -> None:
        for number in range(COMMITS):
            rows = batch_of("hudi", number)
            if number % 2:  # it does not try a write again that lost to ours
                turns.release()
            try:
                hudi.write(path, as_table(rows), operation="upsert", **stated)
                done["hudi"].append(rows)
            except ReferenceFailed as error:
                failed.append(f"hudi: {error}")

    def run(side: "type[object] | object") -> None:
        try:
            side()  # type: ignore[operator]
        except BaseException as error:  # told by the test
            errors.append(error)
        finally:
            turns.release(COMMITS)  # where theirs is over, ours goes on alone

    threads = [threading.Thread(target=run, args=(side,)) for side in (ours, theirs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    unlike = [text for text in failed if "onflict" not in text]
    assert unlike == [], "only conflicts make a write fail"
    assert len(done["pyhudi"]) == COMMITS, failed
    assert len(done["hudi"]) >= COMMITS // 3, failed
    expected = newest([first, *done["pyhudi"], *done["hudi"]])
    assert rows_of(table.scan().to_arrow()) == expected
    assert rows_of(hudi.read(path)) == expected
    assert rows_of(hudi.read(path, **{"hoodie.metadata.enable": False})) == expected

    last = {"pyhudi0": ("oslo", 1_000, "last")}
    HudiTable.open(path, options=lock).upsert(as_table(last))
    assert rows_of(hudi.read(path)) == expected | {"pyhudi0": (1_000, "last")}
    assert table.metadata.validate().is_valid
