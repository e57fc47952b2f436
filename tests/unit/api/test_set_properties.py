"""Options that a table stores could not be changed: an index that one of them asks for could not be dropped. A change
could also touch a fact by which the table's files were written, and rows would no longer be found."""

import re
from typing import Any

import pytest

from pyhudi import Conflict, HudiTable, Unsupported
from pyhudi.errors import Invalid
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.properties_file import replace_table_properties
from pyhudi.txn.locks.waiting import awaited_hold
from tests.support.crashes import crash_points
from tests.support.model import Handles, Row, arrow

STATS = "hoodie.metadata.index.column.stats.enable"
RECORDS = "hoodie.metadata.global.record.level.index.enable"
KEPT = "hoodie.clean.commits.retained"
LOCK = "hoodie.write.lock.provider"
PACKAGE = "org.apache.hudi.client.transaction.lock"


def new_table(**made: Any) -> HudiTable:
    table = Handles(MemoryStorage()).create(**made)
    table.upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "rome", 1, 1)]))
    return table


def test_an_option_counts_for_later_writes_until_it_is_taken_away() -> None:
    table = new_table()
    before = dict(table.properties)

    found = table.set_properties({STATS: True, KEPT: 3, "hoodie.metadata.record.index.enable": "true"})
    assert {**before, STATS: "true", KEPT: "3", RECORDS: "true"} == dict(found) == dict(table.properties)
    table.upsert(arrow([Row("a", "oslo", 2, 2)]))
    assert {"column_stats", "record_index"} <= set(table.properties["hoodie.table.metadata.partitions"].split(","))

    table.set_properties({STATS: None, KEPT: None, "hoodie.metadata.record.index.enable": None})
    table.drop_index("column_stats")
    table.upsert(arrow([Row("a", "oslo", 3, 3)]))
    assert "column_stats" not in table.properties["hoodie.table.metadata.partitions"]
    assert not {STATS, RECORDS, KEPT} & table.properties.keys()
    assert table.scan().to_arrow().sort_by("id")["v"].to_pylist() == [3, 1]
    assert table.metadata.validate().differences == ()


def test_a_message_that_an_index_is_asked_for_names_the_call_that_ends_it() -> None:
    table = new_table(properties={STATS: "true"})
    with pytest.raises(Invalid) as refused:
        table.drop_index("column_stats")
    call = re.search(r"set_properties\((.*)\)", str(refused.value))
    assert call is not None
    assert call[1] == f"{{'{STATS}': None}}"
    table.set_properties({STATS: None})
    table.drop_index("column_stats")


@pytest.mark.parametrize(
    "changes,said",
    [
        ({}, "expected a mapping of names to values, found {}"),
        ({"hoodie.table.name": "u"}, "a fact of table 't', which has 't'"),
        ({"hoodie.table.recordkey.fields": None}, "a fact of table 't', which has 'id'"),
        ({"hoodie.datasource.write.hive_style_partitioning": True}, "a fact of table 't', which has 'false'"),
        ({"hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP"}, "a fact of table 't', which has none"),
        ({"hoodie.index.type": "BUCKET"}, "rescale_buckets changes how many buckets"),
        ({"hoodie.bucket.index.num.buckets": 4}, "rescale_buckets changes how many buckets"),
        ({"hoodie.table.metadata.partitions": ""}, "a fact of table 't', which has 'files'"),
        ({"hoodie.table.version": 9}, "a fact of table 't', which has '8'"),
        ({"hoodie.clean.commits.retaned": None}, "the nearest known name is 'hoodie.clean.commits.retained'"),
        (
            {"hoodie.clustering.plan.strategy.sort.colums": "v"},
            "known name is 'hoodie.clustering.plan.strategy.sort.columns'",
        ),
        ({KEPT: "three"}, "expected a whole number of at least 1"),
        ({KEPT: [3]}, f"option '{KEPT}'"),
        ({3: None}, "expected a name as text, found int"),
        ({RECORDS: True, "hoodie.metadata.record.index.enable": None}, "expected one spelling of it"),
        ({"pyhudi.memory.max.bytes": 1 << 20}, "no table stores it"),
        ({"hoodie.write.commit.callback.http.url": "http://x"}, "a commit callback is not stored"),
        ({LOCK: "x.Y"}, LOCK),
        ({LOCK: "InProcessLockProvider"}, f"{PACKAGE}.InProcessLockProvider"),
        ({LOCK: f"{PACKAGE}.ZookeeperBasedLockProvider"}, "may not send a writer there"),
        ({LOCK: f"{PACKAGE}.StorageBasedLockProvider"}, "is in no object store"),
        ({LOCK: f"{PACKAGE}.FileSystemBasedLockProvider"}, "local folder"),
        (
            {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"},
            "expected a table of type MERGE_ON_READ",
        ),
        ({"hoodie.metadata.index.secondary.column": "v"}, "expected a global record index beside a secondary index"),
        ({"hoodie.datasource.write.commitmeta.key.prefix": "\ud800"}, "expected text that UTF-8 can spell"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_is_changed(changes: Any, said: str) -> None:
    table = new_table()
    before = dict(table.properties)
    with pytest.raises((Invalid, Unsupported), match=re.escape(said)):
        table.set_properties(changes if not changes else {KEPT: 5, **changes} if KEPT not in changes else changes)
    assert dict(table.properties) == before
    table.upsert(arrow([Row("a", "oslo", 2, 2)]))


def test_a_misspelled_name_that_a_table_holds_from_before_can_be_taken_away() -> None:
    misspelled = "hoodie.clustering.plan.strategy.sort.colums"
    table = new_table()
    replace_table_properties(table._handle.access.storage, {**table.properties, misspelled: "v"}, epoch_ms=0)

    table.upsert(arrow([Row("a", "oslo", 2, 2)]))
    table.set_properties({misspelled: None})

    assert misspelled not in table.properties


def test_a_text_that_no_file_holds_makes_no_table() -> None:
    storage = MemoryStorage()
    with pytest.raises(Invalid, match="expected text that UTF-8 can spell"):
        Handles(storage).create(properties={"hoodie.datasource.write.commitmeta.key.prefix": "\ud800"})
    assert list(storage.list("", recursive=True)) == []


@pytest.mark.parametrize(
    "made,said",
    [
        ({}, "expected a table of type MERGE_ON_READ"),
        ({"table_type": "MERGE_ON_READ"}, "expected the bucket index with a fixed number of buckets, found"),
        ({"table_type": "MERGE_ON_READ", "table_version": 6}, "expected table version 8 or 9, found 6"),
    ],
)
def test_a_mode_of_writers_that_the_table_cannot_have_makes_no_table(made: dict[str, Any], said: str) -> None:
    storage = MemoryStorage()
    with pytest.raises((Invalid, Unsupported), match=said):
        Handles(storage).create(
            properties={"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}, **made
        )
    assert list(storage.list("", recursive=True)) == []


def test_an_index_that_the_version_lacks_is_refused() -> None:
    table = new_table(table_version=6)
    with pytest.raises(Unsupported, match="tables of version 6 have none such"):
        table.set_properties({STATS: True, "hoodie.metadata.index.partition.stats.enable": True})
    assert STATS not in table.properties


def test_the_index_of_a_table_of_buckets_stays() -> None:
    table = new_table(properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"})
    for changes in ({"hoodie.index.type": "SIMPLE"}, {"hoodie.index.type": None}):
        with pytest.raises(Invalid, match="a fact of table 't', which has 'BUCKET'"):
            table.set_properties(changes)
    plain = new_table(properties={"hoodie.index.type": "BLOOM"})
    assert plain.set_properties({"hoodie.index.type": "GLOBAL_SIMPLE"})["hoodie.index.type"] == "GLOBAL_SIMPLE"


@pytest.mark.parametrize("stray", [("hoodie.clean.policy", "NIX"), ("hoodie.write.table.version", "6")])
def test_a_stored_option_that_no_write_accepts_is_taken_away(stray: tuple[str, str]) -> None:
    """Properties that other tools, or hands, wrote. Each write refuses the table until then."""
    table = new_table()
    storage = table._access.storage
    name, text = stray
    stored = storage.get(".hoodie/hoodie.properties")
    storage.put(".hoodie/hoodie.properties", stored + f"{name}={text}\n".encode())
    with pytest.raises((Invalid, Unsupported), match=re.escape(name)):
        table.upsert(arrow([Row("a", "oslo", 2, 2)]))
    table.set_properties({name: None})
    table.upsert(arrow([Row("a", "oslo", 2, 2)]))


def test_a_crash_leaves_the_properties_before_or_after() -> None:
    stored = MemoryStorage()
    before = dict(Handles(stored).create().properties)
    seen = set()
    for crash, after in crash_points(lambda storage: set_kept(storage, 3), stored.copy):
        found = dict(Handles(after).open().properties)
        assert found in (before, {**before, KEPT: "3"}), crash
        seen.add(KEPT in found)
        set_kept(after, 4)
        assert Handles(after).open().properties[KEPT] == "4", crash
    assert seen == {False, True}


def set_kept(storage: Storage, count: int) -> None:
    Handles(storage).open().set_properties({KEPT: count})


def test_it_waits_for_the_table_and_gives_up() -> None:
    table = new_table()
    options = {"hoodie.write.lock.wait_time_ms": "0"}
    other = Handles(table._access.storage).open(options)
    with other._access.guard.acquire("a test", "20260101000000000"), pytest.raises(Conflict):
        other.set_properties({KEPT: 3})
    assert KEPT not in other.properties
    other.set_properties({KEPT: 3})


def test_the_table_is_looked_at_again_once_it_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer may change the version while the call waits: an option would be stored that no write accepts."""
    table = new_table()

    def held_late(*args: Any, **kwargs: Any) -> Any:
        table.downgrade(6)
        return awaited_hold(*args, **kwargs)

    monkeypatch.setattr("pyhudi.api.service_calls.properties.awaited_hold", held_late)
    with pytest.raises(Unsupported, match="tables of version 6 have none such"):
        table.set_properties({STATS: True, "hoodie.metadata.index.partition.stats.enable": True})
    assert STATS not in table.properties
    table.upsert(arrow([Row("a", "oslo", 2, 2)]))
