"""A resizing of rings moves rows to other buckets. A writer that goes by another ring doubles their keys. Apache Hudi
carries out the resizings of pyhudi and pyhudi those of Apache Hudi, and both write on by the rings of the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from tests.golden.test_resizings import check_places, ring_of
from tests.interop.test_indexes import FACTS, rows, shown
from tests.interop.test_ten_turns import STAYS
from tests.interop.test_version_6 import EVENT_TIME
from tests.support.reference.client import ReferenceHudi

RING = {
    "hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "3",
}  # fmt: skip
SPLIT = {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.max.num.buckets": "12"}
MERGE = {
    "hoodie.bucket.index.min.num.buckets": "1", "hoodie.bucket.index.split.threshold": "1000",
    "hoodie.bucket.index.merge.threshold": "100",
}  # fmt: skip
STRATEGIES = {
    "hoodie.clustering.plan.strategy.class":
        "org.apache.hudi.client.clustering.plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class":
        "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
}  # fmt: skip
BY_RECORDS = {"hoodie.datasource.write.row.writer.enable": "false"}
"""By rows of Spark 0.15.0 looks for the ring of the resizing itself, and does not find it."""
HASHED = {"hoodie.bucket.index.hash.field": "id"}
CITIES = ("oslo", "rome")


class Both:
    """A table of rings, and what it must hold."""

    def __init__(self, path: Path, hudi: ReferenceHudi, version: int, options: dict[str, Any]) -> None:
        self.path, self.hudi, self.options = path, hudi, {**options, **RING}
        self.held: dict[tuple[str, str], tuple[int, int]] = {}
        HudiTable.create(
            path, name="rides", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
            table_version=version, properties=RING,
        )  # fmt: skip

    @property
    def ours(self) -> HudiTable:
        return HudiTable.open(self.path)

    def write(self, turn: int, ours: dict[str, str] | None = None) -> None:
        """Stored and new keys, by both. `ours`: the options of our write."""
        for who in range(2):
            batch = rows(
                *((f"k{n:03}", CITIES[n % 2], 10 * turn + who, n) for n in range(who, 40, 3)),
                *((f"n{turn}{who}{n}", CITIES[n % 2], 1, 0) for n in range(4)),
            )
            if who:
                facts = {**FACTS, **self.options, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
                self.hudi.write(self.path, batch, operation="upsert", **facts)
            else:
                self.ours.upsert(batch, options=ours)
            self.held |= {(row["city"], row["id"]): (row["ts"], row["v"]) for row in batch.to_pylist()}
            self.check()

    def check(self) -> None:
        found = shown(self.ours.scan().to_arrow())
        assert found == sorted((key, city, key, ts, v) for (city, key), (ts, v) in self.held.items())
        assert found == shown(self.hudi.read(self.path))
        check_places(self.ours, "id")

    def buckets(self) -> list[int]:
        snapshot = self.ours._access.snapshot()
        return [len(ring_of(snapshot, path).nodes) for path in CITIES]

    def call(self, operation: str, **options: str) -> None:
        """Schedule or execute by Apache Hudi's procedure."""
        stated = {**FACTS, **HASHED, **self.options, **BY_RECORDS, **STRATEGIES, **options}
        texts = ",".join(f"{name}={text}" for name, text in stated.items())
        self.hudi.sql(f"CALL run_clustering(op => '{operation}', path => '{self.path}', options => '{texts}')")

    def pending(self) -> list[str]:
        return [i.requested for i in self.ours.timeline() if i.completed is None]


@pytest.mark.parametrize(
    "name, version, options",
    [
        ("hudi_102", 8, {}),
        ("hudi_120", 9, {}),
        ("hudi_0150", 6, EVENT_TIME),
        pytest.param("hudi_120", 8, STAYS, marks=pytest.mark.long),
    ],
    ids=["1.0.2 on version 8", "1.2.0 on version 9", "0.15.0 on version 6", "1.2.0 on version 8"],
)
def test_each_carries_out_the_resizings_of_the_other_and_both_write_on(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any]
) -> None:
    both = Both(tmp_path / "rides", request.getfixturevalue(name), version, options)
    both.write(1)

    result = both.ours.cluster(options=SPLIT)
    assert result.completed is not None
    assert sum(both.buckets()) > 6
    both.check()
    both.write(2)

    both.call("schedule", **MERGE)
    (theirs,) = both.pending()
    both.check()
    result = both.ours.run_clusterings()
    assert (result.requested, result.given_up) == (theirs, ())
    merged = both.buckets()
    assert sum(merged) < 6
    both.check()
    both.write(3)

    ours = both.ours.schedule_clustering(options=SPLIT).requested
    assert both.pending() == [ours]
    both.call("execute")
    assert both.pending() == []
    assert sum(both.buckets()) > sum(merged)
    both.check()
    both.write(4)
    assert both.ours.metadata.validate().differences == ()


DOUBLE = {
    "hoodie.clustering.updates.strategy":
        "org.apache.hudi.client.clustering.update.strategy.SparkConsistentBucketDuplicateUpdateStrategy"
}  # fmt: skip


@pytest.mark.parametrize(
    "name, version, options",
    [
        pytest.param("hudi_102", 8, {}, marks=pytest.mark.long),
        ("hudi_120", 9, {}),
        ("hudi_0150", 6, EVENT_TIME),
        pytest.param("hudi_120", 8, STAYS, marks=pytest.mark.long),
    ],
    ids=["1.0.2 on version 8", "1.2.0 on version 9", "0.15.0 on version 6", "1.2.0 on version 8"],
)
def test_both_write_to_the_old_and_the_new_buckets_while_a_resizing_is_pending(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any]
) -> None:
    both = Both(tmp_path / "rides", request.getfixturevalue(name), version, {**options, **DOUBLE})
    both.write(1)

    both.call("schedule", **SPLIT)
    (planned,) = both.pending()
    for turn in (2, 3):
        both.write(turn, DOUBLE)
    both.call("execute")
    assert both.pending() == []
    both.check()
    both.write(4)

    planned = both.ours.schedule_clustering(options=MERGE).requested or ""
    for turn in (5, 6):
        both.write(turn, DOUBLE)
    result = both.ours.run_clusterings()
    assert (result.requested, result.given_up) == (planned, ())
    both.check()
    both.write(7)
    both.ours.compact()
    both.check()
    assert both.ours.metadata.validate().differences == ()
