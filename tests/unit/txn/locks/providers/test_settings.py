"""A table's properties could send a writer where they like, or a lock that is asked for could be passed over."""

import builtins
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.errors import HudiError, Invalid, Unsupported
from pyhudi.txn.locks.lease import LeaseTerms
from pyhudi.txn.locks.providers.implicit import path_key
from pyhudi.txn.locks.providers.registry import lease_terms
from pyhudi.txn.locks.providers.settings import LockSettings, Pauses, ProviderName
from tests.support.lock_holders import LOCKS, PREFIX, a_guard, lock_settings

PROVIDER = f"{PREFIX}provider"
FILES = f"{LOCKS}.FileSystemBasedLockProvider"
ZOOKEEPER = f"{LOCKS}.ZookeeperBasedLockProvider"


def test_without_a_provider_there_is_none() -> None:
    assert LockSettings.from_options({}, {}) is None
    assert LockSettings.from_options({PROVIDER: " ", f"{PREFIX}zookeeper.url": "host"}, {}) is None


@pytest.mark.parametrize("name", ["FileSystemBasedLockProvider", "com.evil.InProcessLockProvider", FILES.lower()])
def test_only_whole_names_of_apache_hudis_classes_count(name: str) -> None:
    """As in Apache Hudi, which loads a class by its whole name."""
    with pytest.raises(Invalid, match=r"expected one of org\.apache\.hudi"):
        LockSettings.from_options({PROVIDER: name}, {})


def test_options_become_settings() -> None:
    settings = lock_settings(
        {
            PROVIDER: FILES, f"{PREFIX}wait_time_ms": "7", f"{PREFIX}num_retries": "8", "hoodie.index.type": "BLOOM",
            f"{PREFIX}wait_time_ms_between_retry": "9", f"{PREFIX}max_wait_time_ms_between_retry": "20",
            f"{PREFIX}client.num_retries": "2", f"{PREFIX}client.wait_time_ms_between_retry": "11",
        }
    )  # fmt: skip
    assert (settings.wait_ms, settings.request_tries) == (7, 8)
    assert (settings.client_retries, settings.client_pause_ms) == (2, 11)
    assert [settings.pauses.after(tries) for tries in (0, 1, 2, 40)] == [9, 18, 20, 20]
    assert settings.table_name == "t"
    assert "hoodie.index.type" not in dict(settings.options)


def test_a_longer_first_pause_is_the_longest_too() -> None:
    assert lock_settings({PROVIDER: FILES, f"{PREFIX}wait_time_ms_between_retry": "5000"}).pauses == Pauses(5000, 5000)


@pytest.mark.parametrize(
    "table,found",
    [
        ({PROVIDER: FILES, f"{PREFIX}filesystem.expire": "5"}, ProviderName.FILE_SYSTEM),
        ({PROVIDER: f"{LOCKS}.InProcessLockProvider"}, ProviderName.IN_PROCESS),
        ({PROVIDER: f"{LOCKS}.StorageBasedLockProvider"}, ProviderName.STORAGE),
    ],
)
def test_a_provider_of_the_table_is_followed_in_its_folder(table: Mapping[str, str], found: ProviderName) -> None:
    settings = LockSettings.from_options({f"{PREFIX}wait_time_ms": "5"}, table)
    assert settings is not None
    assert settings.provider is found
    assert settings.text(f"{PREFIX}filesystem.expire") == table.get(f"{PREFIX}filesystem.expire", "")
    assert settings.wait_ms == 5


@pytest.mark.parametrize(
    "table",
    [
        {PROVIDER: FILES, f"{PREFIX}filesystem.path": "/elsewhere"},
        {PROVIDER: ZOOKEEPER, f"{PREFIX}zookeeper.url": "evil:1"},
        *({PROVIDER: name.value} for name in ProviderName if not name.stays_in_table),
    ],
)
def test_a_provider_of_the_table_leads_nowhere_else(table: Mapping[str, str]) -> None:
    with pytest.raises(Unsupported, match="may not send a writer there"):
        LockSettings.from_options({f"{PREFIX}wait_time_ms": "5"}, table)


def test_the_addresses_of_the_table_never_count() -> None:
    settings = LockSettings.from_options({PROVIDER: ZOOKEEPER}, {PROVIDER: ZOOKEEPER, f"{PREFIX}zookeeper.url": "evil"})
    assert settings is not None
    with pytest.raises(Invalid, match=r"zookeeper\.url"):
        settings.needed(f"{PREFIX}zookeeper.url")


def test_a_write_to_a_table_that_names_an_address_asks_for_nothing(tmp_path: Path) -> None:
    """No file either: the table stays as it was."""
    properties = {PROVIDER: FILES, f"{PREFIX}filesystem.path": str(tmp_path / "elsewhere")}
    rows = pa.table({"id": ["a"], "v": [1]})
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", properties=properties)
    with pytest.raises(Unsupported, match="may not send a writer there"):
        table.insert(rows)
    assert not (tmp_path / "elsewhere").exists()

    table.insert(rows, options=properties)
    assert table.scan().to_arrow().num_rows == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_terms_of_a_lease() -> None:
    storage = {PROVIDER: f"{LOCKS}.StorageBasedLockProvider"}
    assert lease_terms(lock_settings(storage)) == LeaseTerms()
    stated = {f"{PREFIX}storage.validity.timeout.secs": "20", f"{PREFIX}storage.renew.interval.secs": "2"}
    assert lease_terms(lock_settings(storage | stated)) == LeaseTerms(validity_ms=20_000, renewal_ms=2_000)
    with pytest.raises(Invalid, match="at least ten times"):
        lease_terms(lock_settings(storage | stated | {f"{PREFIX}storage.renew.interval.secs": "3"}))


@pytest.mark.parametrize(
    "options,missing",
    [
        ({PROVIDER: ZOOKEEPER, f"{PREFIX}zookeeper.url": "h:1"}, "zookeeper.base_path"),
        ({PROVIDER: "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"}, "dynamodb.table"),
        (
            {
                PROVIDER: "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
                f"{PREFIX}hivemetastore.uris": "thrift://h:1", f"{PREFIX}hivemetastore.database": "db",
            },
            "hivemetastore.table",
        ),
    ],
)  # fmt: skip
def test_what_a_provider_needs_is_asked_for(options: Mapping[str, str], missing: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid) as caught:
        a_guard(options, str(tmp_path))
    assert PREFIX + missing in str(caught.value)


@pytest.mark.parametrize(
    "package,extra,name",
    [
        ("kazoo", "zookeeper", ZOOKEEPER),
        ("boto3", "dynamodb", "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"),
        ("thrift", "hive", "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    package: str, extra: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    whole = builtins.__import__

    def without(module: str, *args: object, **keywords: object) -> object:
        if module.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named '{package}'", name=package)
        return whole(module, *args, **keywords)  # type: ignore[arg-type]

    for module in [m for m in sys.modules if m.startswith("pyhudi.txn.locks.providers.")]:
        if module.rpartition(".")[2] in ("zookeeper", "dynamodb", "hive_calls", "hive_metastore"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(HudiError) as caught:
        a_guard({PROVIDER: name}, str(tmp_path))
    assert f"needs the package {package}: pip install 'pyhudi[{extra}]'" in str(caught.value)


def test_the_key_of_a_path_is_apache_hudis() -> None:
    """Seen: `HashID.generateXXHashAsString` of Apache Hudi 1.2.0 makes these of the paths."""
    assert path_key("/tables/rides") == "C65693508A86D5AD"
    assert path_key("s3://lake/tables/rides") == "DAEA1792C313FF9A"
