"""Apache Hudi's lock provider and ours of the same name could both hold "the" lock: under another node, file or key.

Apache Hudi's own classes take and release the lock in a process of their own, each against ours in turn.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pyhudi.api.clock import SYSTEM_CLOCK
from pyhudi.errors import Conflict, LockLost
from pyhudi.txn.locks.waiting import awaited_hold
from tests.support.dynamodb_server import DynamodbServer, dynamodb_server
from tests.support.lock_holders import LOCKS, PREFIX, HolderProcess, a_guard, running
from tests.support.lock_servers import hive_metastore, zookeeper_server
from tests.support.reference.environment import PROJECT, hudi_bundle, maven_jars, reference_java_home, reference_python

__all__ = ["dynamodb_server", "hive_metastore", "zookeeper_server"]

VERSION = "1.2.0"
_SOURCE = PROJECT / "tests" / "support" / "reference" / "HoldLock.java"
_DYNAMODB = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"
_PROVIDERS = (
    *("file system", "file system at a path", "zookeeper", "zookeeper, path derived", "hive", "dynamodb"),
)  # fmt: skip
_DEFAULTS = {
    f"{PREFIX}filesystem.expire": "0",
    f"{PREFIX}num_retries": "3",
    f"{PREFIX}wait_time_ms_between_retry": "500",
}


def options_of(name: str, request: pytest.FixtureRequest, folder: Path) -> dict[str, str]:
    if name.startswith("file system"):
        at_path = {f"{PREFIX}filesystem.path": str(folder / "locks")} if "path" in name else {}
        return {f"{PREFIX}provider": f"{LOCKS}.FileSystemBasedLockProvider", **at_path}
    if name == "hive":
        return {
            f"{PREFIX}provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
            f"{PREFIX}hivemetastore.uris": request.getfixturevalue("hive_metastore"),
            f"{PREFIX}hivemetastore.database": "db",
            f"{PREFIX}hivemetastore.table": "shared",
        }
    if name == "dynamodb":
        server: DynamodbServer = request.getfixturevalue("dynamodb_server")
        return {
            f"{PREFIX}provider": _DYNAMODB,
            f"{PREFIX}dynamodb.endpoint_url": server.endpoint,
            f"{PREFIX}dynamodb.table": server.new_path().rpartition("/")[2],
            f"{PREFIX}dynamodb.partition_key": "trips",
            f"{PREFIX}wait_time_ms": "2000",
        }
    url = {f"{PREFIX}zookeeper.url": request.getfixturevalue("zookeeper_server")}
    if "derived" in name:
        return {f"{PREFIX}provider": f"{LOCKS}.ZookeeperBasedImplicitBasePathLockProvider", **url}
    return {
        f"{PREFIX}provider": f"{LOCKS}.ZookeeperBasedLockProvider", **url,
        f"{PREFIX}zookeeper.base_path": f"/hudi{folder}", f"{PREFIX}zookeeper.lock_key": "trips",
    }  # fmt: skip


@contextmanager
def theirs(options: Mapping[str, str], table: str) -> Iterator[HolderProcess]:
    if options[f"{PREFIX}provider"] == _DYNAMODB:
        with theirs_of_aws(options) as holder:
            yield holder
        return

    spark = next(reference_python().parents[1].glob("lib/python*/site-packages/pyspark/jars"))
    path = os.pathsep.join((str(hudi_bundle(VERSION)), f"{spark}/*"))
    stated = {**_DEFAULTS, **options, "hoodie.base.path": table}
    command = [
        f"{reference_java_home()}/bin/java", "-Xmx512m", "-cp", path, str(_SOURCE), options[f"{PREFIX}provider"],
        *(f"{name}={text}" for name, text in stated.items()),
    ]  # fmt: skip
    with running(HolderProcess(command)) as holder:
        holder.wait_until("ready")
        yield holder


@contextmanager
def theirs_of_aws(options: Mapping[str, str]) -> Iterator[HolderProcess]:
    """AWS's lock client as Apache Hudi sets it up. Apache Hudi's own class adds no more than this."""
    command = [
        f"{reference_java_home()}/bin/java", "-Xmx512m", "-cp", f"{maven_jars('dynamodb-lock-client')}/*",
        str(_SOURCE.with_name("HoldItem.java")),
        *(options[f"{PREFIX}{name}"] for name in (
            "dynamodb.endpoint_url", "dynamodb.table", "dynamodb.partition_key", "wait_time_ms"
        )),
    ]  # fmt: skip
    with running(HolderProcess(command)) as holder:
        holder.wait_until("ready")
        yield holder


@pytest.fixture(params=_PROVIDERS)
def both(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[HolderProcess, Callable]]:
    """Apache Hudi's provider, and ours, of one table."""
    for name, text in {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", text)
    table = str(tmp_path / "table")
    (tmp_path / "table" / ".hoodie").mkdir(parents=True)
    options = options_of(request.param, request, tmp_path)

    def ours(wait_ms: int):
        return awaited_hold(a_guard(options, table), "a write", clock=SYSTEM_CLOCK, wait_ms=wait_ms)

    if request.param == "dynamodb":  # AWS's client makes no table
        with ours(0):
            pass
    with theirs(options, table) as holder:
        yield holder, ours


def test_each_excludes_the_other(both: tuple[HolderProcess, Callable]) -> None:
    hudi, ours = both

    hudi.tell("take 5000")
    hudi.wait_until("held")
    with pytest.raises(Conflict) as caught, ours(500):
        pytest.fail("both hold the lock")
    print(caught.value)
    hudi.tell("release")
    hudi.wait_until("released")

    with ours(10_000) as hold:
        hold.confirm()
        hudi.tell("take 500")
        hudi.wait_until("refused")
        hold.confirm()

    hudi.tell("take 10000")
    hudi.wait_until("held")
    with pytest.raises(Conflict), ours(0):
        pytest.fail("both hold the lock")


def test_a_client_of_hudi_that_deletes_our_lock_is_noticed(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Its `unlock` deletes the file of whoever holds the lock."""
    (tmp_path / "table" / ".hoodie").mkdir(parents=True)
    table, options = str(tmp_path / "table"), options_of("file system", request, tmp_path)
    guard = a_guard(options, table)
    with theirs(options, table) as hudi, guard.acquire("a write", "20260101000000000") as hold:
        hold.confirm()
        hudi.tell("release")
        hudi.wait_until("released")
        with pytest.raises(LockLost, match="somebody deleted it"):
            hold.confirm()


def test_a_checksum_of_another_file_keeps_nobody_from_the_lock(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    (tmp_path / "table" / ".hoodie").mkdir(parents=True)
    table, options = str(tmp_path / "table"), options_of("file system", request, tmp_path)
    checksum = tmp_path / "table" / ".hoodie" / ".lock.crc"
    checksum.write_bytes(b"crc\0\0\0\2\0" + b"odd!")
    guard = a_guard(options, table)
    with theirs(options, table) as hudi:
        with guard.acquire("a write", "20260101000000000") as hold:
            hudi.tell("take 1000")
            hudi.wait_until("refused")
            hold.confirm()
        hudi.tell("take 1000")
        hudi.wait_until("held")
        hudi.release()


def test_the_lock_goes_to_and_fro_many_times(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Its lock stayed for ever where ours was given back while Apache Hudi made its file."""
    (tmp_path / "table" / ".hoodie").mkdir(parents=True)
    table, options = str(tmp_path / "table"), options_of("file system", request, tmp_path)
    guard, is_over, held = a_guard(options, table), threading.Event(), 0

    def take_again_and_again() -> None:
        nonlocal held
        while not is_over.is_set():
            with suppress(Conflict), guard.acquire("a write", "20260101000000000"):
                held += 1
            time.sleep(0.005)

    with theirs(options, table) as hudi:
        ours = threading.Thread(target=take_again_and_again)
        ours.start()
        try:
            rounds = 0
            while rounds < 600 or (held < 20 and rounds < 3_000):
                take_within_20_s(hudi)
                hudi.release()
                rounds += 1
                time.sleep(0.002)
        finally:
            is_over.set()
            ours.join()
    assert held >= 20


def take_within_20_s(hudi: HolderProcess) -> None:
    """One try of Apache Hudi's provider takes the lock or not, and does not wait."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        hudi.tell("take 0")
        if hudi.answer() == "held":
            return
    pytest.fail("nobody holds the lock, and Apache Hudi does not get it")
