"""Changes of a range could be looked up in the table of another moment, if an action began early and completed late."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable, NotFound
from pyhudi.storage.memory import MemoryStorage
from tests.concurrency.test_second_writer import watched
from tests.support.model import StepClock, seeded_uuids

NON_BLOCKING = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
}
PARTIAL = {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}


class Race:
    """A merge-on-read table of `id`, `city`, `ts`, `v` and `w`, and a write beside which something else runs."""

    def __init__(self, version: int, properties: dict[str, str]) -> None:
        self.clock = StepClock()
        self.storage = MemoryStorage(clock_ms=lambda: self.clock.ms)
        HudiTable.create(
            "", name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
            table_version=version, storage=self.storage, clock=self.clock, random=seeded_uuids(3),
            properties=properties,
        )  # fmt: skip
        self.table = HudiTable.open("", storage=self.storage, clock=self.clock)

    def upsert(self, rows: pa.Table, meanwhile: Callable[[], object]) -> Any:
        """Upserts `rows`; the other call runs while the write logs them, and does not hold the table."""
        ran: list[str] = []

        def run(what: str) -> None:
            if ran or ".log." not in what or ".marker" in what or ".hoodie/" in what:
                return
            try:
                with self.table._access.guard.acquire("a look", ""):
                    pass
            except Conflict:
                return
            ran.append(what)
            meanwhile()

        result = HudiTable.open("", storage=watched(self.storage, run), clock=self.clock).upsert(rows)
        assert ran
        return result


def rows(*ids: str, city: str = "oslo", ts: int = 5, v: int, w: int | None = 7) -> pa.Table:
    count = len(ids)
    columns = {"id": list(ids), "city": [city] * count, "ts": [ts] * count, "v": [v] * count}
    return pa.table({**columns, "w": pa.array([w] * count, pa.int64())})


def values(found: Any) -> dict[str, tuple[int, int | None]]:
    return {row["id"]: (row["v"], row["w"]) for row in found.to_arrow().to_pylist()}


@pytest.mark.parametrize("version", [8, 9])
def test_a_clustering_that_completed_after_the_range_hides_no_row_of_it(version: int) -> None:
    table = Race(version, {}).table
    table.upsert(rows("a", "b", v=1))
    table.schedule_clustering(options={"hoodie.clustering.plan.strategy.sort.columns": "v"})
    last = table.upsert(rows("c", city="rome", v=2))
    before = values(table.incremental(end=last.completed))

    assert table.run_clusterings().file_groups == 1

    assert values(table.incremental(end=last.completed)) == before == {"a": (1, 7), "b": (1, 7), "c": (2, 7)}
    assert values(table.incremental()) == before


@pytest.mark.parametrize("is_newer", [False, True])
def test_ranges_by_completion_times_add_up_where_a_write_began_first_and_completed_last(is_newer: bool) -> None:
    """`mine` began first. Where both have one ordering value, the row of the write that began last stands."""
    race = Race(9, NON_BLOCKING)
    first = race.table.upsert(rows("k", "z", ts=1, v=0))
    others: list[Any] = []
    mine = race.upsert(
        rows("k", ts=6 if is_newer else 5, v=10), lambda: others.append(race.table.upsert(rows("k", ts=5, v=20)))
    )

    sums = values(race.table.incremental(start=first.completed, end=others[0].completed))
    assert sums == {"k": (20, 7)}
    sums |= values(race.table.incremental(start=others[0].completed, end=mine.completed))
    assert {"z": (0, 7), **sums} == values(race.table.scan())
    assert sums["k"] == ((10, 7) if is_newer else (20, 7))


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("index", ["BLOOM", "BUCKET"])
@pytest.mark.parametrize("payload", [{}, PARTIAL])
def test_a_log_is_merged_with_what_it_lies_upon_where_the_base_file_below_was_cleaned_away(
    version: int, index: str, payload: dict[str, str]
) -> None:
    """A compaction and a clean ran while the log was written. Its changes cannot be told: the row before is gone."""
    kept = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    buckets = {"hoodie.bucket.index.num.buckets": "1"} if index == "BUCKET" else {}
    race = Race(version, {**kept, **payload, **buckets, "hoodie.index.type": index, "hoodie.clean.automatic": "false"})
    table, compactions = race.table, list[Any]()
    table.upsert(rows("k", "z", ts=5, v=0))
    table.compact()
    before = table.upsert(rows("k", "z", ts=6, v=1))

    def service() -> None:
        compactions.append(table.compact())
        assert table.clean().files_deleted

    race.upsert(rows("k", ts=7 if payload else 1, v=10, w=None), service)

    expected = {"k": (10, 7)} if payload else {}
    assert values(table.scan()) == {"k": (1, 7), "z": (1, 7), **expected}
    assert values(table.incremental(start=compactions[0].completed)) == expected
    with pytest.raises(NotFound, match="files that tell a change were cleaned away"):
        table.cdc(start=before.requested).to_arrow()
