"""Beside a pending resizing, rows could be lost with the buckets that go, or show twice before the new ones come."""

from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.services.clustering import run
from pyhudi.storage.memory import MemoryStorage
from pyhudi.write.clustering.resizing import resize_group
from tests.golden.test_resizings import check_places
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, read_rows, seeded_uuids

RING = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.bucket.index.min.num.buckets": "1",
}
SPLIT = {"hoodie.parquet.max.file.size": "1000"}
MERGE = {"hoodie.parquet.max.file.size": "100000000"}
UPDATES = "hoodie.clustering.updates.strategy"
DOUBLE = {UPDATES: "org.apache.hudi.client.clustering.update.strategy.SparkConsistentBucketDuplicateUpdateStrategy"}


def numbers(table: HudiTable) -> dict[str, int]:
    return {key: stored.row.v for (_, key), stored in read_rows(table.scan().to_arrow()).items()}


def batch(keys: range, v: int) -> pa.Table:
    return arrow([Row(f"k{n:02}", "oslo" if n % 2 else "rome", v, v) for n in keys])


def ring_table(version: int, **properties: str) -> tuple[MemoryStorage, HudiTable]:
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    handles = Handles(storage, clock, seeded_uuids(version), SerialExecutor())
    return storage, handles.create(table_type="MERGE_ON_READ", table_version=version, properties={**RING, **properties})


@pytest.mark.parametrize("sizes", [SPLIT, MERGE], ids=["split", "merge"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_beside_a_resizing_are_there_before_and_after_it(version: int, sizes: dict[str, str]) -> None:
    storage, table = ring_table(version)
    table.upsert(batch(range(40), 1))
    planned = table.schedule_clustering(options=sizes).requested
    assert planned is not None
    with pytest.raises(Conflict, match="is being clustered"):
        table.upsert(batch(range(3), 2))

    first = table.upsert(batch(range(0, 44, 3), 2), options=DOUBLE)
    table.delete(batch(range(0, 44, 9), 3), options=DOUBLE)
    second = table.upsert(batch(range(0, 44, 12), 4), options=DOUBLE)
    expected = dict.fromkeys((f"k{n:02}" for n in range(40)), 1)
    expected |= dict.fromkeys((f"k{n:02}" for n in range(0, 44, 3)), 2)
    expected = {key: v for key, v in expected.items() if int(key[1:]) % 9} | {f"k{n:02}": 4 for n in range(0, 44, 12)}
    assert (first.inserted, first.updated) == (0, 15)
    assert numbers(table) == expected
    assert read_rows(table.incremental(first.requested if version == 6 else first.completed).to_arrow()).keys() == {
        ("oslo" if n % 2 else "rome", f"k{n:02}") for n in range(0, 44, 12)
    }

    with pytest.raises(Conflict, match=r"writes have logged their rows .* run_clusterings\(\)"):
        table.rollback(planned)

    result = table.run_clusterings()
    assert (result.requested, result.given_up) == (planned, ())
    assert numbers(table) == expected
    then = read_rows(table.scan(as_of=first.requested).to_arrow()).values()
    assert sum(stored.requested == first.requested for stored in then) == 15
    assert len(then) == 41
    check_places(table, "id")
    assert {stored.requested for stored in read_rows(table.scan().to_arrow()).values() if stored.row.v == 4} == {
        second.requested
    }

    table.upsert(batch(range(40), 5))
    assert numbers(table) == dict.fromkeys((*expected, *(f"k{n:02}" for n in range(40))), 5) | {
        key: v for key, v in expected.items() if int(key[1:]) >= 40
    }
    table.compact()
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    assert table.metadata.validate().differences == ()
    assert problems_on(storage) == []
    check_places(table, "id")


@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_that_come_while_a_resizing_runs_are_there_after_it(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, table = ring_table(version, **DOUBLE)
    table.upsert(batch(range(40), 1))
    other = table.upsert(batch(range(0, 40, 7), 2))

    def resize(*arguments: Any, **others: Any) -> Any:
        with monkeypatch.context() as patched:
            patched.setattr(run, "resize_group", resize_group)
            turn = next(turns)
            table.upsert(batch(range(turn, 50, 5), 3 + turn))
        return resize_group(*arguments, **others)

    turns = count()
    monkeypatch.setattr(run, "resize_group", resize)
    result = table.cluster(options=SPLIT)
    assert other.completed is not None
    assert result.completed is not None

    done = next(turns)
    expected = {f"k{n:02}": 1 for n in range(40)} | {f"k{n:02}": 2 for n in range(0, 40, 7)}
    for turn in range(done):
        expected |= {f"k{n:02}": 3 + turn for n in range(turn, 50, 5)}
    assert done > 1
    assert numbers(table) == expected
    check_places(table, "id")
    assert problems_on(storage) == []


def test_a_write_that_goes_first_does_not_end_a_resizing_for_which_rows_are_logged() -> None:
    _, table = ring_table(9)
    table.upsert(batch(range(40), 1))
    planned = table.schedule_clustering(options=SPLIT).requested
    allow = {UPDATES: "SparkAllowUpdateStrategy"}
    table.upsert(batch(range(10), 2), options=DOUBLE)
    with pytest.raises(Conflict, match="writes have logged their rows"):
        table.upsert(batch(range(10), 3), options=allow)

    assert table.run_clusterings().requested == planned
    table.upsert(batch(range(10), 3), options=allow)
    assert sorted(numbers(table).values()) == [1] * 30 + [3] * 10


@pytest.mark.parametrize("version", [6, 8, 9])
def test_changes_are_told_once(version: int) -> None:
    _, table = ring_table(version, **DOUBLE, **{"hoodie.table.cdc.enabled": "true"})
    first = table.upsert(batch(range(20), 1))
    table.schedule_clustering(options=SPLIT)
    table.upsert(batch(range(0, 24, 3), 2))
    table.delete(batch(range(0, 24, 9), 3))

    start = first.requested if version == 6 else first.completed
    for call in (lambda: None, table.run_clusterings, table.compact):
        call()
        assert sorted(table.cdc(start).to_arrow().column("op").to_pylist()) == ["d"] * 3 + ["i"] + ["u"] * 7


@pytest.mark.parametrize("version", [6, 9])
def test_a_record_index_that_comes_later_follows_the_rows(version: int) -> None:
    """Beside one that is there already, rows are not logged twice: it would go on naming the bucket of before."""
    _, table = ring_table(version, **DOUBLE)
    table.upsert(batch(range(20), 1))
    table.schedule_clustering(options=SPLIT)
    table.upsert(batch(range(10, 30), 2))

    table.build_index("record_index")
    with pytest.raises(Conflict, match="is being clustered"):
        table.upsert(batch(range(40), 3))
    assert table.lookup(["k25"]).num_rows == 1

    table.run_clusterings()
    assert table.metadata.validate().differences == ()
    assert table.lookup(["k25", "k05"]).num_rows == 2
    assert table.scan(where="id = 'k25'").to_arrow().num_rows == 1
