"""A partition with another number of buckets could lose rows, or double keys that writers look for elsewhere."""

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable, Invalid
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.keys.bucket_counts import CONFIGS
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.write import operation
from pyhudi.write.handles import file_group
from tests.support.crashes import crash_points
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, read_rows, seeded_uuids

RULES = "hoodie.bucket.index.partition.expressions"
FACTS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2", RULES: "os.*,4;ro[mn]e,3"}
UNPARTITIONED = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
CITIES = ("oslo", "rome", "york")


def handles(storage: Storage, seed: int = 1) -> Handles:
    return Handles(storage, StepClock(), seeded_uuids(seed), SerialExecutor())


def new_table(table_type: str, version: int = 9) -> tuple[MemoryStorage, HudiTable]:
    storage = MemoryStorage()
    return storage, handles(storage).create(table_type=table_type, table_version=version, properties=FACTS)


def batch(v: int, keys: range = range(60)) -> pa.Table:
    return arrow([Row(f"k{n:02}", CITIES[n // 20], v, v) for n in keys])


def values(table: HudiTable) -> dict[str, int]:
    return {key: of.row.v for (_, key), of in read_rows(table.scan().to_arrow()).items()}


def buckets(table: HudiTable) -> dict[str, int]:
    """The file groups of each partition."""
    snapshot = table._access.snapshot()
    return {path: len(snapshot.slices(path)) for path in snapshot.listing.partitions()}


def rule_files(storage: Storage) -> set[str]:
    return {file.path for file in storage.list(CONFIGS, recursive=True)}


@TYPES
@pytest.mark.parametrize("version", [6, 8, 9])
def test_partitions_have_the_buckets_that_the_rules_say_and_get_others(table_type: str, version: int) -> None:
    storage, table = new_table(table_type, version)
    table.upsert(batch(1))
    assert buckets(table) == {"oslo": 4, "rome": 3, "york": 2}
    table.upsert(batch(2, range(0, 60, 2)))
    table.delete(batch(0, range(0, 60, 10)).select(["id", "city"]))
    before = values(table)
    assert RULES not in table.properties

    found = table.rescale_buckets("york,5", default=3, dry_run=True)
    assert (found.requested, dict(found.partitions)) == (None, {"oslo": (4, 3), "york": (2, 5)})
    assert buckets(table) == {"oslo": 4, "rome": 3, "york": 2}

    done = table.rescale_buckets("york,5", default=3)
    rewritten = [key for key in before if not "k20" <= key < "k40"]
    assert (dict(done.partitions), done.rows) == (dict(found.partitions), len(rewritten))
    assert buckets(table) == {"oslo": 3, "rome": 3, "york": 5}
    assert values(table) == before
    assert table.rescale_buckets("york,5").requested is None

    table = handles(storage, 2).open(options={RULES: "oslo,9"})  # of a script of before; the table's rules count
    table.upsert(batch(3))
    assert values(table) == {f"k{n:02}": 3 for n in range(60)}
    assert buckets(table) == {"oslo": 3, "rome": 3, "york": 5}
    assert table.lookup(["k07", "k08"]).num_rows == 2
    assert table.metadata.validate().differences == ()
    assert problems_on(storage) == []


def test_rules_for_partitions_to_come_are_a_commit_without_rows() -> None:
    storage, table = new_table("COPY_ON_WRITE")
    table.upsert(batch(1))
    done = table.rescale_buckets("new,7;os.*,4;ro[mn]e,3")
    assert done.completed is not None
    assert done.partitions == {}
    table.upsert(arrow([Row(f"n{n}", "new york", 1, 1) for n in range(60)]))
    assert buckets(table) == {"oslo": 4, "rome": 3, "york": 2, "new york": 7}
    table.rollback(table.timeline()[-1].requested)
    table.rollback(done.requested or "")
    table.upsert(arrow([Row(f"n{n}", "new york", 1, 1) for n in range(60)]))
    assert buckets(table)["new york"] == 2
    assert problems_on(storage) == []


def test_the_rules_given_replace_all_of_before() -> None:
    _, table = new_table("COPY_ON_WRITE")
    table.upsert(batch(1))
    assert table.rescale_buckets("nosuch,3", dry_run=True).partitions == {"oslo": (4, 2), "rome": (3, 2)}


@TYPES
def test_a_restore_and_time_travel_go_back_to_the_buckets_of_then(table_type: str) -> None:
    _, table = new_table(table_type)
    first = table.upsert(batch(1))
    table.savepoint()
    table.rescale_buckets("oslo,1")
    table.upsert(batch(2))
    assert len(table.scan(as_of=first.completed).to_arrow()) == 60
    table.restore(first.requested or "")
    assert buckets(table) == {"oslo": 4, "rome": 3, "york": 2}
    table.upsert(batch(3))
    assert sorted(values(table).values()) == [3] * 60


def test_a_rescaling_that_dies_leaves_the_buckets_of_before_or_after() -> None:
    disk, table = new_table("MERGE_ON_READ")
    table.upsert(batch(1))
    table.upsert(batch(2, range(20)))
    before = values(table)

    seen = set()

    def rescale(storage: Storage) -> None:
        handles(storage, 3).open().rescale_buckets("oslo,1")

    for crash, after in crash_points(rescale, disk.copy):
        found = handles(after, 4).open()
        assert values(found) == before, crash
        found.upsert(batch(3))
        assert values(found) == {f"k{n:02}": 3 for n in range(60)}, crash
        seen.add(buckets(found)["oslo"])
    assert seen == {1, 4}


def test_a_rescaling_that_fails_before_it_writes_leaves_no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules of an instant that nobody knows would count once the timeline begins after it."""
    storage, table = new_table("COPY_ON_WRITE")
    table.upsert(batch(1))
    files = storage.copy()

    def fails(*_: object) -> None:
        raise Conflict("another writer")

    monkeypatch.setattr(operation, "columns_of_write", fails)
    with pytest.raises(Conflict):
        table.rescale_buckets("york,5")

    assert rule_files(storage) == rule_files(files)
    assert problems_on(storage) == []


def test_a_write_beside_a_rescaling_is_planned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    _, table = new_table("MERGE_ON_READ")
    table.upsert(batch(1))
    done: list[bool] = []

    def rescale_first(*arguments: Any, **others: Any) -> Any:
        if not done:
            done.append(True)
            table.rescale_buckets("lima,6;os.*,4;ro[mn]e,3")
        return create(*arguments, **others)

    create = file_group._create
    monkeypatch.setattr(file_group, "_create", rescale_first)
    table.upsert(arrow([Row(f"l{n}", "lima", 1, 1) for n in range(60)]))
    assert buckets(table)["lima"] == 6
    table.upsert(arrow([Row(f"l{n}", "lima", 2, 2) for n in range(60)]))
    assert len(values(table)) == 120


def test_what_cannot_be_is_refused() -> None:
    _, table = new_table("COPY_ON_WRITE")
    table.upsert(batch(1))
    for rules, sentence in (
        ("oslo", "rules of a pattern and a count"), ("oslo,0", "rules of a pattern and a count"),
        ("(?=o),2", "Java and RE2"), ("", "rules of a pattern"), ("a,b,2", "rules of a pattern"),
    ):  # fmt: skip
        with pytest.raises(Invalid, match=sentence):
            table.rescale_buckets(rules)
    with pytest.raises(Invalid, match="a number of buckets"):
        table.rescale_buckets("oslo,2", default=0)
    with pytest.raises(Invalid, match="default='4': expected a number of buckets"):
        table.rescale_buckets("oslo,2", default="4")  # type: ignore[arg-type]
    plain = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage(), properties=UNPARTITIONED)
    with pytest.raises(Invalid, match=r"'t': is not partitioned, .* a new table with another"):
        plain.rescale_buckets("nosuch,3")
    with pytest.raises(Invalid, match=r"expected hoodie\.index\.type=BUCKET"):
        handles(MemoryStorage()).create().rescale_buckets("oslo,2")
    ring = {**FACTS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    with pytest.raises(Invalid, match="expected the engine SIMPLE"):
        handles(MemoryStorage()).create(table_type="MERGE_ON_READ", properties=ring)
