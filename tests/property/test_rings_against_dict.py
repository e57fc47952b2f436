"""Resizings of rings move keys to other buckets: one that goes by an old ring would lose rows, or double them.

Random writes, splits, merges, pending plans, restores and other services run on tables of rings and on a dict.
"""

import random
import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import HudiError
from pyhudi.storage.memory import MemoryStorage
from tests.golden.test_resizings import check_places
from tests.support.model import StepClock, seeded_uuids

SIZE = "hoodie.parquet.max.file.size"
SMALL, LARGE = {SIZE: "1000"}, {SIZE: "100000000"}
"""Every bucket is too large, or too small."""
DOUBLE = {"hoodie.clustering.updates.strategy": "SparkConsistentBucketDuplicateUpdateStrategy"}
REFUSED = re.compile(
    "is being clustered by|have logged their rows|a table without a schema|its files were cleaned away"
)
"""A write of a bucket whose resizing is pending, its rollback after such a write, a delete before the first write, a
restore to what was cleaned."""
ARCHIVES = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2"}


class RingsAgainstDict:
    """A table of rings, and what it must hold: key number -> the step that wrote it last."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.step = 0
        self.held: dict[int, int] = {}
        self.after: dict[str, dict[int, int]] = {}
        version = self.chance.choice((6, 8, 9))
        self.doubles = self.chance.random() < 0.5
        self.is_partitioned = self.chance.random() < 0.7
        properties = {
            "hoodie.index.type": "BUCKET",
            "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
            "hoodie.bucket.index.num.buckets": self.chance.choice(("1", "2", "4")),
            "hoodie.bucket.index.max.num.buckets": "16",
            "hoodie.bucket.index.min.num.buckets": "1",
            SIZE: self.chance.choice(("1000", "20000", "200000")),
            "hoodie.table.cdc.enabled": str(self.chance.random() < 0.3).lower(),
            **(DOUBLE if self.doubles else {}),
        }
        self.table = HudiTable.create(
            "", name="t", record_key="id", partition_by="p" if self.is_partitioned else None, ordering="ts",
            table_type="MERGE_ON_READ", table_version=version, properties=properties, storage=MemoryStorage(),
            clock=StepClock(), random=seeded_uuids(seed), executor=SerialExecutor(),
        )  # fmt: skip

    def rows(self, keys: Sequence[int]) -> pa.Table:
        columns = {
            "id": [f"k{key}" for key in keys],
            "p": [f"p{key % 2}" for key in keys],
            "ts": [self.step] * len(keys),
        }
        return pa.table(columns, pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())]))

    # Steps.

    def upsert(self, keys: Sequence[int]) -> None:
        self.table.upsert(self.rows(keys))
        self.held |= dict.fromkeys(keys, self.step)

    def insert(self, keys: Sequence[int]) -> None:
        new = [key for key in keys if key not in self.held]
        self.table.insert(self.rows(new))
        self.held |= dict.fromkeys(new, self.step)

    def delete(self, keys: Sequence[int]) -> None:
        self.table.delete(self.rows(keys))
        for key in keys:
            self.held.pop(key, None)

    def restore(self, _: Sequence[int]) -> None:
        known = [one.requested for one in self.table.timeline() if one.requested in self.after and one.completed]
        if known:
            chosen = self.chance.choice(known)
            self.table.restore(chosen)
            self.held = dict(self.after[chosen])

    def roll_back(self, _: Sequence[int]) -> None:
        for pending in [one.requested for one in self.table.timeline() if one.completed is None][:1]:
            self.table.rollback(pending)

    @property
    def steps(self) -> tuple[tuple[int, Callable[[Sequence[int]], object]], ...]:
        """How often each comes, compared with the others."""
        table, retained = self.table, {"hoodie.clean.commits.retained": self.chance.choice(("1", "3"))}
        plan = self.chance.choice((SMALL, LARGE))
        index = self.chance.choice(("record_index", "column_stats"))
        return (
            (3, self.upsert), (1, self.insert), (1, self.delete), (1, self.restore), (1, self.roll_back),
            (1, lambda _: table.cluster(options=SMALL)), (1, lambda _: table.cluster(options=LARGE)),
            (1, lambda _: table.schedule_clustering(options=plan)), (1, lambda _: table.run_clusterings()),
            (1, lambda _: table.compact()), (1, lambda _: table.clean(options=retained)),
            (1, lambda _: table.archive(options=ARCHIVES)), (1, lambda _: table.build_index(index)),
        )  # fmt: skip

    def run(self) -> None:
        for step in range(1, self.chance.randint(7, 16)):
            self.step = step
            weights, calls = zip(*self.steps, strict=True)
            (call,) = self.chance.choices(calls, weights)
            keys = list({self.chance.randrange(60) for _ in range(self.chance.randint(1, 40))})
            try:
                call(keys)
            except HudiError as error:
                if not REFUSED.search(str(error)):
                    raise
            self.check(keys[0])
        assert self.table.metadata.validate().differences == ()

    def check(self, key: int) -> None:
        """Every row is there once, where its ring has it, and an index finds it."""
        done = [one for one in self.table.timeline() if one.completed and "commit" in one.action]
        if not done:
            assert self.held == {}
            return
        newest = max(done, key=lambda one: (one.completed, one.requested))
        self.after[newest.requested] = dict(self.held)
        found = self.table.scan(["id", "ts"]).to_arrow().to_pylist()
        assert {int(row["id"][1:]): row["ts"] for row in found} == self.held
        assert len(found) == len(self.held)
        assert self.table.scan(where=f"id = 'k{key}'").to_arrow().num_rows == (key in self.held)
        check_places(self.table, "id")


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(n, marks=pytest.mark.long) for n in range(4, 70))])
def test_a_table_whose_rings_are_resized_at_random_is_the_dict(seed: int) -> None:
    RingsAgainstDict(seed).run()
