"""A clustering works without the table's guard, on file groups that writers may be let into: it could complete over
their rows, or a write over its files. Each meeting is played here, at the moment between work and commit.
"""

from collections.abc import Callable

import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.services.clustering.trigger import pending_clusterings
from pyhudi.storage.memory import MemoryStorage
from pyhudi.txn.conflicts.verdict import PlanOutdated
from tests.concurrency.test_compaction_beside_others import Meeting
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, read_rows, seeded_uuids

BY_VALUE = {"hoodie.clustering.plan.strategy.sort.columns": "v"}
ALLOW = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
_KINDS = [(8, "COPY_ON_WRITE"), (9, "MERGE_ON_READ"), (6, "COPY_ON_WRITE"), (6, "MERGE_ON_READ")]
KINDS = pytest.mark.parametrize("version,table_type", _KINDS)
BETWEEN = pytest.mark.parametrize("version,table_type", _KINDS[:3])
"""Those whose writes let others come between. On the last kind a write holds the table throughout."""


class Table:
    """A table of two small file groups in Oslo, and two in Rome, with handles that meet each other."""

    def __init__(self, version: int, table_type: str) -> None:
        self.clock = StepClock()
        self.storage = MemoryStorage(clock_ms=lambda: self.clock.ms)
        self.uuids = seeded_uuids(1)
        other = {"hoodie.parquet.small.file.limit": "0"}
        table = self._handles().create(table_version=version, table_type=table_type, properties=other)
        for start in (0, 4):
            table.bulk_insert(arrow([Row(f"k{n}", ("oslo", "rome")[n % 2], 1, -n) for n in range(start, start + 4)]))

    def _handles(self, happens: Callable[[], object] | None = None) -> Handles:
        executor = Meeting(happens or (lambda: None))
        return Handles(self.storage, self.clock, self.uuids, executor)

    def open(self, happens: Callable[[], object] | None = None) -> HudiTable:
        return self._handles(happens).open()

    def values(self) -> dict[str, int]:
        return {of.row.id: of.row.v for of in read_rows(self.open().scan().to_arrow()).values()}


def once(happens: Callable[[], object]) -> Callable[[], object]:
    left = [happens]
    return lambda: left.pop()() if left else None


@KINDS
def test_a_clustering_gives_way_to_a_write_that_was_let_pass(version: int, table_type: str) -> None:
    table = Table(version, table_type)

    def write() -> None:
        table.open().upsert(arrow([Row("k0", "oslo", 2, 50), Row("new", "oslo", 2, 51)]), options=ALLOW)

    with pytest.raises(PlanOutdated, match=r"UPSERT '\d+' changed file group .* the clustering '\d+' is taken off"):
        table.open(once(write)).cluster(options=BY_VALUE)

    assert pending_clusterings(table.open()._access.snapshot()) == []
    assert problems_on(table.storage) == []
    assert table.values() == {**{f"k{n}": -n for n in range(8)}, "k0": 50, "new": 51}
    assert table.open().cluster(options=BY_VALUE).rows == 9
    assert table.values()["k0"] == 50


@KINDS
def test_writes_of_other_file_groups_go_on_beside_a_clustering(version: int, table_type: str) -> None:
    table = Table(version, table_type)
    done: list[object] = []

    def write() -> None:
        mine = table.open()
        done.append(mine.insert(arrow([Row("a", "oslo", 2, 1)])).inserted)
        done.append(mine.upsert(arrow([Row("b", "rome", 2, 2), Row("k1", "rome", 2, 3)])).updated)
        with pytest.raises(Conflict, match="is being clustered"):
            mine.delete(arrow([Row("k0", "oslo", 2, 0)]))
        with pytest.raises(Conflict, match=r"run_clusterings\(\) carries it out"):
            mine.delete_partitions(["oslo"])

    result = table.open(once(write)).cluster(options=BY_VALUE, partitions=["oslo"])
    assert (result.rows, done) == (4, [1, 1])
    assert problems_on(table.storage) == []
    assert table.values() == {**{f"k{n}": -n for n in range(8)}, "a": 1, "b": 2, "k1": 3}


@BETWEEN
@pytest.mark.parametrize("options", [{}, ALLOW])
def test_a_write_that_a_clustering_overtook_is_planned_anew(
    version: int, table_type: str, options: dict[str, str]
) -> None:
    table = Table(version, table_type)
    clustered = once(lambda: table.open().cluster(options=BY_VALUE))
    result = table.open(clustered).upsert(arrow([Row("k0", "oslo", 2, 50), Row("new", "rome", 2, 51)]), options=options)
    assert (result.inserted, result.updated) == (1, 1)
    assert problems_on(table.storage) == []
    assert table.values() == {**{f"k{n}": -n for n in range(8)}, "k0": 50, "new": 51}


@BETWEEN
def test_a_write_that_only_adds_rows_is_not_in_the_way(version: int, table_type: str) -> None:
    table = Table(version, table_type)
    writes: list[str] = []

    def cluster() -> None:
        writes.extend(i.requested for i in table.open().timeline() if not i.is_completed)
        table.open().cluster(options=BY_VALUE)

    result = table.open(once(cluster)).upsert(arrow([Row("new", "rome", 2, 51)]))
    assert writes == [result.requested]  # it was not planned anew
    assert problems_on(table.storage) == []
    assert table.values() == {**{f"k{n}": -n for n in range(8)}, "new": 51}


def test_a_clustering_that_was_rolled_back_meanwhile_does_not_commit() -> None:
    table = Table(8, "COPY_ON_WRITE")
    dead_ms = 10 * 60_000

    def roll_back() -> None:
        table.clock.ms += dead_ms
        mine = table.open()
        mine.rollback(pending_clusterings(mine._access.snapshot())[0].requested)

    with pytest.raises(Conflict, match="rolled it back"):
        table.open(once(roll_back)).cluster(options=BY_VALUE)
    assert problems_on(table.storage) == []
    assert table.values() == {f"k{n}": -n for n in range(8)}


def test_two_runs_of_one_plan_end_in_one_clustering() -> None:
    table = Table(8, "COPY_ON_WRITE")
    planned = table.open().schedule_clustering(options=BY_VALUE).requested

    def again() -> None:
        with pytest.raises(Conflict, match="another thread of this process runs it"):
            table.open().run_clusterings()
        table.clock.ms += 10 * 60_000
        assert table.open().run_clusterings().requested == planned

    with pytest.raises(Conflict, match="another writer completed it"):
        table.open(once(again)).run_clusterings()
    assert problems_on(table.storage) == []
    assert table.values() == {f"k{n}": -n for n in range(8)}
