"""A service that completed an action could be told of by one way to call it, and not by another."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi.services
from pyhudi import HudiTable, NotFound
from pyhudi.metrics import Event, ServiceDone, ServiceFailed, subscribe
from pyhudi.storage.local import LocalStorage
from pyhudi.testing.crashing import Crash, CrashingStorage
from tests.support.model import StepClock

SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "v"}


@pytest.fixture
def heard() -> Iterator[list[Event]]:
    events: list[Event] = []
    end = subscribe(events.append)
    yield events
    end()


def a_table(path: Path, **properties: object) -> HudiTable:
    table = HudiTable.create(path, name="t", record_key="id", table_version=8, properties=properties)
    for value in range(3):
        write(table, value)
    return table


def write(table: HudiTable, value: int) -> str:
    done = table.upsert(pa.table({"id": ["a", "b"], "v": [value, value]})).requested
    assert done is not None
    return done


def done(events: list[Event]) -> list[tuple[str, str | None]]:
    """What was told since this was last asked."""
    found = [(one.service, one.requested) for one in events if isinstance(one, ServiceDone)]
    events.clear()
    return found


def test_each_call_that_completes_an_action_is_told_once(tmp_path: Path, heard: list[Event]) -> None:
    table = a_table(tmp_path / "t")
    heard.clear()

    built = table.build_index("column_stats")
    assert done(heard) == [("indexing", built.requested)]
    table.build_index("column_stats")
    assert done(heard) == [], "it was there"

    clustered = table.cluster(options=SORTED)
    assert done(heard) == [("clustering", clustered.requested)]
    planned = table.schedule_clustering(options=SORTED)
    assert done(heard) == []
    table.run_clusterings()
    assert done(heard) == [("clustering", planned.requested)]

    saved = table.savepoint()
    assert done(heard) == [("savepoint", saved.requested)]
    newest = write(table, 7)
    undone = table.rollback(newest)
    assert done(heard) == [("rollback", undone.requested)]
    write(table, 8)
    restored = table.restore(saved.requested)
    assert done(heard) == [("restore", restored.requested)]
    table.restore(saved.requested)
    assert done(heard) == [], "nothing was written since"

    altered = table.alter().add("w", "int64").commit()
    assert done(heard) == [("alter", altered.requested)]
    table.upgrade(9)
    assert [service for service, _ in done(heard)] == ["upgrade"]
    table.upgrade(9)
    assert done(heard) == []

    with pytest.raises(NotFound):
        table.rollback("20200101000000000")
    assert [(one.service, one.error) for one in heard if isinstance(one, ServiceFailed)] == [("rollback", "NotFound")]


def test_several_results_of_one_service_are_one_event(tmp_path: Path, heard: list[Event]) -> None:
    table = a_table(tmp_path / "t")
    first, second = table.schedule_index("column_stats"), table.schedule_index("bloom_filters")
    heard.clear()
    pyhudi.services.run(table, services=["indexing"], once=True)
    assert done(heard) == [("indexing", second.requested)]

    table.drop_index("column_stats")
    again = table.schedule_index("column_stats").requested
    heard.clear()
    table.run_indexes()
    assert done(heard) == [("indexing", again)]
    assert first.requested is not None


def test_a_round_tells_of_dead_writes(tmp_path: Path, heard: list[Event]) -> None:
    table = a_table(tmp_path / "t")
    storage = CrashingStorage(LocalStorage(str(tmp_path / "t")), survives=4, lands=True)
    dying = HudiTable.open(tmp_path / "t", storage=storage)
    with pytest.raises(Crash):
        write(dying, 9)
    heard.clear()
    pyhudi.services.run(table, services=["failed_writes"], once=True)
    ((service, requested),) = done(heard)
    assert (service, requested) == ("failed_writes", table.timeline()[-1].requested)


def test_a_clustering_after_a_write_is_told(tmp_path: Path, heard: list[Event]) -> None:
    options = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": 3, **SORTED}
    table = a_table(tmp_path / "t", **options)
    assert [service for service, _ in done(heard)] == ["clustering"], table.timeline()


def test_an_expiry_is_told(tmp_path: Path, heard: list[Event]) -> None:
    clock, days = StepClock(), {"hoodie.partition.ttl.strategy.days.retain": 1}
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="day", clock=clock)
    table.upsert(pa.table({"id": ["a"], "day": ["x"]}))
    heard.clear()
    table.expire_partitions(options=days)
    assert done(heard) == []
    clock.ms += 3 * 86_400_000
    table.expire_partitions(options=days, dry_run=True)
    assert done(heard) == []
    expired = table.expire_partitions(options=days)
    assert done(heard) == [("expiry", expired.requested)]
