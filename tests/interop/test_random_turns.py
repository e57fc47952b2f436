"""What a turn leaves could be misread some turns later: after a rollback by Apache Hudi, statistics of partitions ruled
rows out. Random turns of both on one table, beside a dict."""

from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.interop.cow_rows import key_range, rows
from tests.interop.cow_tables import Shape, Shared
from tests.interop.mor_tables import NO_STATISTICS_OF_DATES, SharedLogs
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

STATISTICS: dict[str, Any] = {"hoodie.metadata.index.column.stats.enable": True, **NO_STATISTICS_OF_DATES}
FEW = {"hoodie.clean.commits.retained": 3, "hoodie.keep.min.commits": 5, "hoodie.keep.max.commits": 6}
INLINE = {
    "compact": {"hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1},
    "cluster": {"hoodie.clustering.inline": True, "hoodie.clustering.inline.max.commits": 1},
    "clean": {"hoodie.clean.automatic": True, "hoodie.clean.commits.retained": 1},
}
NOT_COMPACTED = {"hoodie.compact.inline.max.delta.commits": 100}
"""For a write that is rolled back: Apache Hudi compacts after each fifth, and rolls back none before a compaction."""
TURNS = 10
LIMITS = {
    "is earlier than the latest compaction": ("1.0.2", "1.1.1", "1.2.0"),
    "Index -1 out of bounds for length 0": ("1.0.2",),
}
"""What Apache Hudi says where it cannot go on, by release. A run ends there. It has just compacted its metadata table,
and can roll nothing back; or it cannot read the empty lists of a base file that its own compaction wrote."""


class Turns:
    """One table and who comes next. `options`: what Apache Hudi is told in each of its turns.

    1.0.2 clusters nothing here: it cannot read the lists that it wrote then, where they are empty.
    """

    def __init__(self, hudi: ReferenceHudi, folder: Path, seed: int, version: int) -> None:
        self.draw = Random(seed)
        kind = self.draw.choice([Shared, SharedLogs])
        indexes = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE")
        kept: dict[str, Any] = {
            "hoodie.index.type": self.draw.choice(indexes),
            **self.draw.choice([STATISTICS, {"hoodie.metadata.index.column.stats.enable": False}]),
        }
        self.compactions = ["compact"] if kind is SharedLogs else []
        self.options = {**kept, **FEW, "hoodie.clean.automatic": False}
        self.shared = kind(folder / "turns", Shape("turns", properties=kept), version=version)
        self.shared.bulk_insert(rows(key_range(0, 40), turn=1))
        self.hudi, self.name, self.turn, self.keys = hudi, f"turns_{version}_{seed}", 1, 40
        self.done: list[str] = []
        hudi.sql(f"CREATE TABLE {self.name} USING hudi LOCATION '{self.shared.path}'")

    def go(self) -> None:
        for self.turn in range(2, 2 + TURNS):
            act = self.draw.choice(
                [self.we_write, self.we_serve, self.they_write, self.they_write, self.they_roll_back]
            )
            try:
                act()
            except ReferenceFailed as refused:
                if any(text in refused.text for text, releases in LIMITS.items() if self.hudi.version in releases):
                    return
                raise
            self.check(with_hudi=self.turn % 4 == 1)
        self.check(with_hudi=True)

    def we_write(self) -> None:
        self.done.append("we write")
        self.shared.upsert(rows(self.some(), turn=self.turn))
        self.shared.delete(self.draw.sample(sorted(self.shared.model.rows), 2))

    def we_serve(self) -> None:
        name = self.draw.choice(["clean", "cluster", "archive", *self.compactions])
        self.done.append(f"we {name}")
        getattr(self.shared.ours, name)()

    def they_write(self) -> None:
        names = ["upsert", "upsert", "delete", "clean", *["cluster"] * (self.hudi.version != "1.0.2")]
        name = self.draw.choice([*names, *self.compactions])
        self.done.append(f"Apache Hudi: {name}")
        options = {**self.options, **INLINE.get(name, {})}
        if name == "delete":
            self.shared.hudi_delete(self.hudi, self.draw.sample(sorted(self.shared.model.rows), 2), **options)
        else:
            self.shared.hudi_write(self.hudi, "upsert", rows(self.some(), turn=self.turn), **options)

    def they_roll_back(self) -> None:
        self.done.append("Apache Hudi: rollback")
        before = deepcopy(self.shared.model.rows)
        options = {**self.options, **NOT_COMPACTED}
        time = self.shared.hudi_write(self.hudi, "upsert", rows(self.some(), turn=self.turn), **options)
        self.hudi.sql(f"CALL rollback_to_instant(table => '{self.name}', instant_time => '{time}')")
        self.shared.model.rows = before

    def some(self) -> list[str]:
        self.keys += 2
        return [*self.draw.sample(key_range(0, self.keys), 6), *key_range(self.keys - 2, self.keys)]

    def check(self, *, with_hudi: bool) -> None:
        self.shared.check(*[self.hudi] * with_hudi)
        stored = pc.value_counts(self.shared.model.table()["ts"]).to_pylist()
        found = {one["values"]: self.shared.ours.scan(where=f"ts = {one['values']}").count() for one in stored}
        assert found == {one["values"]: one["counts"] for one in stored}, self.done


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 40))])
@pytest.mark.parametrize(
    "name, version", [("hudi_102", 8), ("hudi_111", 9), ("hudi_120", 9)], ids=["1.0.2", "1.1.1", "1.2.0"]
)
def test_random_turns(request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, seed: int) -> None:
    Turns(request.getfixturevalue(name), tmp_path, seed, version).go()
