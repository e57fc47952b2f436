"""A lock provider could let two writers in, hold for ever for a dead one, or not notice that its lock is gone.

The other writers are processes that take the provider's lock alone, as Apache Hudi does. The servers are real ones, but
for DynamoDB, which is moto. ZooKeeper and the Hive metastore run with the interop tests: they take Java and some time.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.api.clock import SYSTEM_CLOCK
from pyhudi.errors import Conflict, HudiError, LockLost, Unavailable
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.txn.locks.guard import open_guard
from pyhudi.txn.locks.hold import Hold
from pyhudi.txn.locks.lease import LEASE_FILE
from pyhudi.txn.locks.providers.registry import provided_guard
from pyhudi.txn.locks.waiting import awaited_hold
from tests.support.dynamodb_server import DynamodbServer, dynamodb_server
from tests.support.lock_holders import LOCKS, PREFIX, HolderProcess, a_guard, held_elsewhere, lock_settings
from tests.support.lock_servers import hive_metastore, zookeeper_server
from tests.support.model import Row, arrow
from tests.support.s3_server import S3Server
from tests.support.server_process import free_port

__all__ = ["dynamodb_server", "hive_metastore", "zookeeper_server"]

NOW = "20260101000000000"
SOON_MS = 15_000
SERVERS = [pytest.param(name, marks=pytest.mark.interop) for name in ("zookeeper", "hive")]


@dataclass
class Bench:
    """A table, and the lock that its writers share. `other`: another writer's spelling of the table's path.

    `take`: takes the lock from its holder. `ends_dead`: does what time does to the lock of a process that was killed.
    `holds_by_itself_s`: how long the lock holds without renewal.
    """

    path: str
    other: str
    options: Mapping[str, str]
    take: Callable[[], None]
    ends_dead: Callable[[], None] = lambda: None
    holds_by_itself_s: float = 5.0

    def awaited(self, wait_ms: int = SOON_MS) -> AbstractContextManager[Hold]:
        return awaited_hold(a_guard(self.options, self.path), "a write", clock=SYSTEM_CLOCK, wait_ms=wait_ms)

    def held_elsewhere(self) -> AbstractContextManager[HolderProcess]:
        return held_elsewhere(self.options, self.other)


@pytest.fixture(params=["file system", "dynamodb", *SERVERS])
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    makers = {"file system": on_files, "dynamodb": on_dynamodb, "zookeeper": on_zookeeper, "hive": on_hive}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    return makers[request.param](request, tmp_path)


def on_files(request: pytest.FixtureRequest, folder: Path) -> Bench:
    lock = folder / "locks" / "lock"
    options = {
        f"{PREFIX}provider": f"{LOCKS}.FileSystemBasedLockProvider",
        f"{PREFIX}filesystem.path": str(folder / "locks"),
        f"{PREFIX}filesystem.expire": "1",
    }

    def age() -> None:
        long_ago = time.time() - 61
        os.utime(lock, (long_ago, long_ago))

    return Bench(
        str(folder / "table"), str(folder / "other"), options, take=lock.unlink, ends_dead=age, holds_by_itself_s=0.0
    )


def on_dynamodb(request: pytest.FixtureRequest, folder: Path) -> Bench:
    server: DynamodbServer = request.getfixturevalue("dynamodb_server")
    options = {
        f"{PREFIX}provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        f"{PREFIX}dynamodb.table": server.new_path().rpartition("/")[2],
        f"{PREFIX}dynamodb.endpoint_url": server.endpoint,
        f"{PREFIX}wait_time_ms": "1500",
    }

    def take() -> None:
        """As AWS's client for Java does, for which our lease has ended."""
        item = {
            "key": "t", "ownerName": "another", "leaseDuration": "20000", "recordVersionNumber": "theirs"
        }  # fmt: skip
        dynamodb_client(server).put_item(
            TableName=options[f"{PREFIX}dynamodb.table"], Item={name: {"S": text} for name, text in item.items()}
        )

    return Bench(str(folder / "table"), str(folder / "other"), options, take, holds_by_itself_s=2.0)


def dynamodb_client(server: DynamodbServer):
    import boto3

    return boto3.session.Session().client("dynamodb", region_name="us-east-1", endpoint_url=server.endpoint)


def on_zookeeper(request: pytest.FixtureRequest, folder: Path) -> Bench:
    hosts = request.getfixturevalue("zookeeper_server")
    options = {
        f"{PREFIX}provider": f"{LOCKS}.ZookeeperBasedLockProvider",
        f"{PREFIX}zookeeper.url": hosts,
        f"{PREFIX}zookeeper.base_path": f"/locks{folder}",
        f"{PREFIX}zookeeper.session_timeout_ms": "1500",
    }

    def take() -> None:
        with zookeeper(hosts) as client:
            for node in client.get_children(f"/locks{folder}/t"):
                client.delete(f"/locks{folder}/t/{node}")

    return Bench(str(folder / "table"), str(folder / "other"), options, take)


@contextmanager
def zookeeper(hosts: str) -> Iterator:
    from kazoo.client import KazooClient

    client = KazooClient(hosts=hosts)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def on_hive(request: pytest.FixtureRequest, folder: Path) -> Bench:
    from pyhudi.txn.locks.providers.hive_calls import Metastore, closing

    uris, name = request.getfixturevalue("hive_metastore"), f"t{abs(hash(folder))}"
    options = {
        f"{PREFIX}provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
        f"{PREFIX}hivemetastore.uris": uris,
        f"{PREFIX}hivemetastore.database": "db",
        f"{PREFIX}hivemetastore.table": name,
        f"{PREFIX}heartbeat_interval_ms": "1000",
    }

    def take() -> None:
        with closing(Metastore(uris, tries=0)) as metastore:
            for shown in metastore.show_locks("db", name):
                metastore.unlock(shown.lock_id)

    return Bench(str(folder / "table"), str(folder / "other"), options, take)


# one holder


def test_a_lock_of_another_process_is_a_conflict_that_names_it(bench: Bench) -> None:
    with bench.held_elsewhere() as holder:
        with pytest.raises(Conflict) as caught, bench.awaited(300):
            pytest.fail("both hold the lock")
        assert f"process {holder.process.pid} on " in str(caught.value)
        assert "(a hold, since " in str(caught.value)

        with pytest.raises(Conflict), a_guard(bench.options, bench.path).acquire("a write", NOW):
            pytest.fail("both hold the lock")


def test_a_waiting_writer_takes_the_lock_once_it_is_free(bench: Bench) -> None:
    with bench.held_elsewhere() as holder:
        holder.tell("release")
        with bench.awaited() as hold:
            hold.confirm()
        holder.wait_until("released")

    with bench.held_elsewhere():
        pass


def test_two_handles_of_one_process_exclude_each_other(bench: Bench) -> None:
    with bench.awaited() as hold:
        with pytest.raises(Conflict), bench.awaited(0):
            pytest.fail("both hold the lock")
        hold.confirm()
    with bench.awaited(0) as hold:
        hold.confirm()


def test_the_lock_of_a_killed_process_ends(bench: Bench) -> None:
    with bench.held_elsewhere() as holder:
        holder.kill()
        bench.ends_dead()
        with bench.awaited() as hold:
            hold.confirm()


def test_a_lost_lock_is_noticed(bench: Bench) -> None:
    with bench.awaited() as hold:
        bench.take()
        with pytest.raises(LockLost) as caught:
            hold.confirm()
    assert bench.path in str(caught.value) or "locks/lock" in str(caught.value)


def test_a_long_hold_is_renewed(bench: Bench) -> None:
    """For longer than the lock holds by itself."""
    with bench.awaited() as hold:
        time.sleep(bench.holds_by_itself_s)
        with pytest.raises(Conflict), held_at_once(bench):
            pytest.fail("the lock ran out")
        hold.confirm()


@contextmanager
def held_at_once(bench: Bench) -> Iterator[None]:
    with a_guard(bench.options, bench.other).acquire("another write", NOW):
        yield


# a table's writes


def a_table(bench: Bench) -> HudiTable:
    table = HudiTable.create(bench.path, name="t", record_key="id", partition_by="city", ordering="ts")
    table.upsert(arrow([Row("a", "oslo", 1, 1)]))
    return HudiTable.open(bench.path, options={**bench.options, f"{PREFIX}wait_time_ms": "1000"})


def keys_in(table: HudiTable) -> list[str]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def test_a_write_waits_for_the_lock_and_gives_it_back(bench: Bench) -> None:
    table = a_table(bench)
    with bench.held_elsewhere() as holder:
        with pytest.raises(Conflict):
            table.upsert(arrow([Row("b", "oslo", 1, 2)]))
        assert keys_in(table) == ["a"]
        holder.release()

    table.upsert(arrow([Row("b", "oslo", 1, 2)]))
    assert keys_in(table) == ["a", "b"]
    with bench.held_elsewhere():
        pass


# DynamoDB alone


def test_an_answer_that_is_lost_does_not_lose_the_lock(
    dynamodb_server: DynamodbServer, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    bench = on_dynamodb(request, tmp_path)
    once = {"left": 0}

    def loses_one(what: str) -> bool:
        once["left"] -= 1
        return once["left"] >= 0

    with dynamodb_server.failing(loses_answer_to=loses_one):
        with bench.awaited():
            pass
        for lost in (1, 2, 3):
            with bench.awaited() as hold:
                once["left"] = lost
                hold.confirm()
                hold.confirm()
        once["left"] = 1
        with bench.awaited(0) as hold:
            hold.confirm()


def test_a_lock_service_that_is_away_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    nobody = f"127.0.0.1:{free_port()}"
    for options in (
        {
            f"{PREFIX}provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
            f"{PREFIX}dynamodb.table": "locks",
            f"{PREFIX}dynamodb.endpoint_url": f"http://{nobody}",
        },
        {
            f"{PREFIX}provider": f"{LOCKS}.ZookeeperBasedLockProvider",
            f"{PREFIX}zookeeper.url": nobody,
            f"{PREFIX}zookeeper.base_path": "/locks",
            f"{PREFIX}zookeeper.connection_timeout_ms": "300",
        },
        {
            f"{PREFIX}provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
            f"{PREFIX}hivemetastore.uris": f"thrift://{nobody}",
            f"{PREFIX}hivemetastore.database": "db",
            f"{PREFIX}hivemetastore.table": "t",
        },
    ):
        guard = a_guard({**options, f"{PREFIX}num_retries": "1"}, str(tmp_path))
        with pytest.raises(Unavailable) as caught, guard.acquire("a write", NOW):
            pytest.fail("nobody gave the lock")
        assert nobody in str(caught.value)


# StorageBasedLockProvider


def test_the_lease_of_an_object_store_has_the_terms_of_the_options(s3_server: S3Server) -> None:
    path = s3_server.new_path()
    location = parse_location(path, s3_server.options)
    options = {
        f"{PREFIX}provider": f"{LOCKS}.StorageBasedLockProvider",
        f"{PREFIX}storage.validity.timeout.secs": "60",
        f"{PREFIX}storage.renew.interval.secs": "6",
    }
    uuids = iter(str(number) for number in range(100))
    own = open_guard(location, clock=SYSTEM_CLOCK, new_uuid=lambda: next(uuids))
    guard = provided_guard(
        lock_settings(options), location, clock=SYSTEM_CLOCK, new_uuid=lambda: next(uuids), own=own
    )  # fmt: skip

    s3_server.requests.clear()
    with guard.acquire("a write", NOW) as hold:
        taken = len([request for request in s3_server.requests if "table_lock.json" in request])
        hold.confirm()
        with pytest.raises(Conflict), own.acquire("another", NOW):
            pytest.fail("both hold the lease")
        record = json.loads(open_storage(location).get(LEASE_FILE))
        left_ms = record["validUntil"] - SYSTEM_CLOCK.now_ms()
        assert 50_000 < left_ms <= 60_000
    assert taken <= 4  # one lease, taken once: two requests, and two that try the store
    with own.acquire("another", NOW):
        pass


def test_a_lease_needs_an_object_store(tmp_path: Path) -> None:
    with pytest.raises(HudiError, match="in no object store"):
        a_guard({f"{PREFIX}provider": f"{LOCKS}.StorageBasedLockProvider"}, str(tmp_path))
