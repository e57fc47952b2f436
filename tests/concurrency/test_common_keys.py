"""Two writers that share a file group but no key could fail, or two that share a key could make two rows of it.

The second write runs while the first is at work. The first may not try again, so that the verdict shows.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Conflict
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.concurrency.test_second_writer import watched
from tests.support.model import Row, arrow, dump, problems_on, read_rows

ONCE = {"hoodie.write.num.retries.on.conflict.failures": 0, "hoodie.parquet.small.file.limit": 0}
STORED = [Row(f"k{n}", "oslo", 1, n) for n in range(4)]
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
LOGS = {"table_type": "MERGE_ON_READ"}


def a_table(storage: Storage, kind: dict[str, str], properties: dict[str, str], version: int) -> HudiTable:
    table = HudiTable.create(
        "", name="t", record_key="id", partition_by="city", ordering="ts", storage=storage, properties=properties,
        table_version=version, **kind,  # type: ignore[arg-type]
    )  # fmt: skip
    table.upsert(arrow(STORED))
    return table


def write_at_once(storage: Storage, first: list[Row], second: Callable[[HudiTable], object]) -> Conflict | None:
    """Upsert rows, and let `second` write while that is at work. Returns the conflict of the first, if there is one."""
    begun = list[str]()

    def once(what: str) -> None:
        if ".inflight" in what and "metadata" not in what and not begun:
            begun.append(what)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(second, HudiTable.open("", storage=storage, options=ONCE)).result()

    table = HudiTable.open("", storage=watched(storage, once), options=ONCE)
    try:
        table.upsert(arrow(first))
    except Conflict as error:
        return error
    finally:
        assert begun
    return None


def rows_of(storage: Storage) -> dict[str, int]:
    found = HudiTable.open("", storage=storage).scan().to_arrow()
    assert len(found) == len(read_rows(found)), "no key is there twice"
    assert problems_on(storage) == []
    return {key: stored.row.v for (_, key), stored in read_rows(found).items()}


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("properties", [{}, BUCKETS], ids=["simple", "bucket"])
@pytest.mark.parametrize("shared", [False, True])
def test_two_logs_of_one_file_group(version: int, properties: dict[str, str], shared: bool) -> None:
    storage = MemoryStorage()
    a_table(storage, LOGS, properties, version)

    theirs = Row("k0" if shared else "k1", "oslo", 2, 100)
    error = write_at_once(storage, [Row("k0", "oslo", 3, 200)], lambda table: table.upsert(arrow([theirs])))

    assert (error is not None) == shared
    expected = {row.id: row.v for row in STORED} | {theirs.id: 100}
    assert rows_of(storage) == (expected if shared else expected | {"k0": 200})


def test_a_log_that_deletes_a_key_of_the_other() -> None:
    storage = MemoryStorage()
    a_table(storage, LOGS, {}, 9)

    error = write_at_once(storage, [Row("k0", "oslo", 3, 200)], lambda table: table.delete(arrow([STORED[0]])))

    assert error is not None
    assert rows_of(storage) == {row.id: row.v for row in STORED[1:]}


@pytest.mark.parametrize("kind", [{}, LOGS], ids=["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "RECORD_INDEX"])
@pytest.mark.parametrize("shared", [False, True])
def test_new_keys_of_both(kind: dict[str, str], index: str, shared: bool) -> None:
    storage = MemoryStorage()
    properties = {"hoodie.index.type": index}
    if index == "RECORD_INDEX":
        properties["hoodie.metadata.record.index.enable"] = "true"
    a_table(storage, kind, properties, 9)

    theirs = Row("new" if shared else "other", "rome" if index.startswith("GLOBAL") else "oslo", 2, 100)
    error = write_at_once(storage, [Row("new", "oslo", 3, 200)], lambda table: table.upsert(arrow([theirs])))

    assert (error is not None) == shared
    expected = {row.id: row.v for row in STORED} | {theirs.id: 100}
    assert rows_of(storage) == (expected if shared else expected | {"new": 200})


@pytest.mark.parametrize("kind", [{}, LOGS], ids=["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("shared", [False, True])
def test_keys_that_no_file_stores_are_compared_too(kind: dict[str, str], shared: bool) -> None:
    storage = MemoryStorage()
    a_table(storage, kind, {"hoodie.populate.meta.fields": "false"}, 9)

    theirs = Row("new" if shared else "other", "oslo", 2, 100)
    error = write_at_once(storage, [Row("new", "oslo", 3, 200)], lambda table: table.upsert(arrow([theirs])))

    assert (error is not None) == shared
    expected = {row.id: row.v for row in STORED} | {theirs.id: 100} | ({} if shared else {"new": 200})
    found = HudiTable.open("", storage=storage).scan().to_arrow().select(["id", "v"]).to_pylist()
    assert sorted((row["id"], row["v"]) for row in found) == sorted(expected.items())


def test_a_conflict_that_is_noticed_before_the_work() -> None:
    """The second write plans while the first has begun a file of the same group, and then writes no file."""
    storage = MemoryStorage()
    a_table(storage, {}, {}, 9)
    early = {**ONCE, "hoodie.write.concurrency.early.conflict.detection.enable": True}
    seen = list[str]()

    def once(what: str) -> None:
        if what.startswith("put_stream") and not seen:
            seen.append(what)
            before = dump(storage)
            with pytest.raises(Conflict, match=r"which is running, changes file group '.+' in partition 'oslo'"):
                HudiTable.open("", storage=storage, options=early).upsert(arrow([Row("k1", "oslo", 2, 1)]))
            assert dump(storage) == before

    HudiTable.open("", storage=watched(storage, once), options=ONCE, executor=SerialExecutor()).upsert(
        arrow([Row("k0", "oslo", 2, 2)])
    )

    assert seen
    assert rows_of(storage)["k0"] == 2


def test_by_apache_hudis_rule_one_file_group_is_a_conflict_and_new_rows_are_none() -> None:
    strategy = "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy"
    by_groups = {"hoodie.write.lock.conflict.resolution.strategy": strategy}
    storage = MemoryStorage()
    a_table(storage, LOGS, by_groups, 9)
    error = write_at_once(
        storage, [Row("k0", "oslo", 3, 1)], lambda table: table.upsert(arrow([Row("k1", "oslo", 2, 1)]))
    )
    assert error is not None

    other = MemoryStorage()
    a_table(other, {}, by_groups, 9)
    error = write_at_once(
        other, [Row("new", "oslo", 3, 1)], lambda table: table.upsert(arrow([Row("new", "oslo", 2, 1)]))
    )
    assert error is None
    assert len(HudiTable.open("", storage=other).scan().to_arrow()) == len(STORED) + 2


def bring_back(storage: Storage, properties: dict[str, str], second: Callable[[HudiTable], object]) -> Conflict | None:
    """Upsert a key that a log has deleted, which brings it back into its file group, while a compaction comes there."""
    index = {"hoodie.index.type": properties["hoodie.index.type"]} if "hoodie.index.type" in properties else {}
    options = {**ONCE, **index}
    begun = list[str]()

    def once(what: str) -> None:
        if ".inflight" in what and "metadata" not in what and not begun:
            begun.append(what)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(second, HudiTable.open("", storage=storage, options=options)).result()

    retries = {**options, "hoodie.write.num.retries.on.conflict.failures": int(properties.get("retries", 0))}
    table = HudiTable.open("", storage=watched(storage, once), options=retries)
    try:
        table.upsert(arrow([Row("k0", "oslo", 3, 200), Row("k1", "oslo", 3, 201)]))
    except Conflict as error:
        return error
    finally:
        assert begun
    return None


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", "BLOOM"])
@pytest.mark.parametrize("second", ["schedule_compaction", "compact"])
@pytest.mark.parametrize("retries", ["0", "1"])
def test_a_compaction_that_drops_a_key_which_comes_back(version: int, index: str, second: str, retries: str) -> None:
    """The base file that the compaction writes lacks the key. In the log only, it would never be found again."""
    storage = MemoryStorage()
    a_table(storage, LOGS, {}, version).delete(arrow(STORED[:1]))

    error = bring_back(
        storage, {"hoodie.index.type": index, "retries": retries}, lambda table: getattr(table, second)()
    )

    if retries == "0" and index != "GLOBAL_SIMPLE":  # which knows that the key was deleted, and makes a new row
        assert error is not None
        assert "without a key that this write" in str(error)
    else:
        assert error is None
    HudiTable.open("", storage=storage).compact()
    brought = {} if error else {"k0": 200, "k1": 201}
    assert rows_of(storage) == {row.id: row.v for row in STORED[1:]} | brought
    for turn in range(2):
        rows = [Row("k0", "oslo", 4 + turn, 300 + turn)]
        HudiTable.open("", storage=storage, options={"hoodie.index.type": index}).upsert(arrow(rows))
        assert rows_of(storage)["k0"] == 300 + turn
    HudiTable.open("", storage=storage).delete(arrow([Row("k0", "oslo", 9, 0)]))
    assert "k0" not in rows_of(storage)


@pytest.mark.parametrize("second", ["schedule_compaction", "compact"])
def test_a_compaction_that_keeps_the_keys_lets_the_write_pass(second: str) -> None:
    storage = MemoryStorage()
    a_table(storage, LOGS, {}, 9).delete(arrow(STORED[3:]))

    assert bring_back(storage, {}, lambda table: getattr(table, second)()) is None
    HudiTable.open("", storage=storage).compact()
    assert rows_of(storage) == {"k0": 200, "k1": 201, "k2": 2}
