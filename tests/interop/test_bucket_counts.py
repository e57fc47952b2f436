"""A partition's number of buckets says where a writer looks for a key. One that goes by other rules than Apache Hudi
doubles keys. Both write the same partitions, and each goes by the rules that the other has set.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from tests.interop.test_indexes import FACTS, rows, shown
from tests.support.reference.client import ReferenceHudi

CITIES = ("oslo", "rome", "york")
RULES = "hoodie.bucket.index.partition.expressions"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2", RULES: "os.*,4;ro[mn]e,3"}


class Both:
    """A table, and what it must hold."""

    def __init__(self, hudi: ReferenceHudi, path: Path, name: str, table_type: str) -> None:
        self.hudi, self.path, self.name, self.type = hudi, path, name, table_type
        self.held: dict[tuple[str, str], tuple[int, int]] = {}

    @property
    def ours(self) -> HudiTable:
        return HudiTable.open(self.path, options={k: v for k, v in BUCKETS.items() if k != RULES})

    def write(self, turn: int, cities: tuple[str, ...] = CITIES) -> None:
        """Stored and new keys, by both."""
        for who in range(2):
            batch = rows(
                *((f"k{n:03}", cities[n // 14 % len(cities)], 10 * turn + who, n) for n in range(who, 42, 3)),
                *((f"n{turn}{who}{n}", city, 1, 0) for n in range(4) for city in cities),
            )
            if who:
                options = {
                    **FACTS,
                    **BUCKETS,
                    "hoodie.table.name": self.name,
                    "hoodie.datasource.write.table.type": self.type,
                }
                self.hudi.write(self.path, batch, operation="upsert", **options)
            else:
                self.ours.upsert(batch)
            self.held |= {(row["city"], row["id"]): (row["ts"], row["v"]) for row in batch.to_pylist()}
            self.check()

    def check(self) -> None:
        found = shown(self.ours.scan().to_arrow())
        assert found == sorted((key, city, key, ts, v) for (city, key), (ts, v) in self.held.items())
        assert found == shown(self.hudi.read(self.path))

    def call(self, arguments: str) -> list[dict[str, Any]]:
        answer = self.hudi.sql(f"CALL partition_bucket_index_manager(table => '{self.name}', {arguments})")
        assert answer is not None
        return answer.to_pylist()

    def buckets(self) -> dict[str, int]:
        snapshot = self.ours._access.snapshot()
        return {path: len(snapshot.slices(path)) for path in snapshot.listing.partitions()}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_each_goes_by_the_rules_that_the_other_sets(hudi_120: ReferenceHudi, tmp_path: Path, table_type: str) -> None:
    path, name = tmp_path / "rides", f"counted_{table_type.lower()}"
    HudiTable.create(
        path, name=name, record_key="id", partition_by="city", ordering="ts", table_type=table_type, table_version=9,
        properties=BUCKETS,
    )  # fmt: skip
    both = Both(hudi_120, path, name, table_type)
    both.write(1)
    hudi_120.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    assert both.buckets() == {"oslo": 4, "rome": 3, "york": 2}
    (told,) = both.call("show_config => true")
    assert str(told["details"]).endswith(f"expressions={BUCKETS[RULES]}, defaultBucketNumber=2, rule=regex, version=1, "
                                         "instant=00000000000000)")  # fmt: skip

    both.call("overwrite => 'york,5', bucket_number => 3, dry_run => false")
    assert both.buckets() == {"oslo": 3, "rome": 3, "york": 5}
    rules = both.ours.bucket_rules()
    assert rules is not None
    assert (rules.expressions, rules.default) == ("york,5", 3)
    both.write(2)

    both.ours.rescale_buckets("os.*,6;york,5")
    assert both.buckets() == {"oslo": 6, "rome": 3, "york": 5}
    both.check()
    (told,) = both.call("show_config => true")
    assert "expressions=os.*,6;york,5, defaultBucketNumber=3" in str(told["details"])
    both.write(3)
    both.write(4, (*CITIES, "lima"))
    assert both.buckets() == {"oslo": 6, "rome": 3, "york": 5, "lima": 3}
    assert both.ours.metadata.validate().differences == ()
