"""An index that a write did not keep true would hide rows: queries trust it and read no other file.

Indexes are built and dropped between random writes and services, on tables of each type, version and way to place rows.
After each step the table is asked by key, by indexed columns and by range, and must answer as a dict does. At the end
the metadata table is compared with the data.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.memory import MemoryStorage
from tests.support.model import Handles, Row, StepClock, arrow, read_rows, seeded_uuids

KEYS = [f"k{n}" for n in range(9)]
NOTES = ["Ada", "Bob", "Eve"]
DROP = {"hoodie.datasource.insert.dup.policy": "drop"}
CLEANS = {"hoodie.clean.commits.retained": "1"}

PLACEMENTS: Mapping[str, dict[str, str]] = {
    "SIMPLE": {"hoodie.index.type": "SIMPLE", "hoodie.parquet.small.file.limit": "0"},
    "BLOOM": {"hoodie.index.type": "BLOOM"},
    "GLOBAL_BLOOM": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "RECORD_INDEX": {"hoodie.index.type": "RECORD_INDEX"},
    "BUCKET": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    "RING": {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    },
}
INDEXES: Mapping[str, dict[str, object]] = {
    "record_index": {},
    "bloom_filters": {},
    "column_stats": {"columns": ["id", "v", "note"]},
    "partition_stats": {},
    "secondary_index": {"columns": "note", "name": "by_note"},
    "expr_index": {"expression": "lower(note)", "name": "by_lower"},
}
OF_VERSION_6 = ("record_index", "bloom_filters", "column_stats")


@dataclass
class Steps:
    """One table and the dict that it must equal. Each method is a step."""

    table: HudiTable
    chance: random.Random
    kinds: tuple[str, ...]
    replaces: bool
    rows: dict[str, Row] = field(default_factory=dict)
    ts: int = 0

    def batch(self) -> list[Row]:
        self.ts += 1
        keys = self.chance.sample(KEYS, k=self.chance.randint(1, 5))
        return [Row(key, city_of(key), self.ts, self.chance.randrange(5), self.chance.choice(NOTES)) for key in keys]

    def upsert(self) -> None:
        batch = self.batch()
        self.table.upsert(arrow(batch))
        self.rows |= {row.id: row for row in batch}

    def delete(self) -> None:
        batch = self.batch()
        self.table.delete(arrow(batch, ["id", "city"]))
        self.rows = {key: row for key, row in self.rows.items() if key not in {gone.id for gone in batch}}

    def insert(self) -> None:
        batch = [row for row in self.batch() if row.id not in self.rows]
        write: Callable[[pa.Table], object] = self.chance.choice((self.table.insert, self.table.bulk_insert))
        write(arrow(batch))
        self.rows |= {row.id: row for row in batch}

    def insert_absent(self) -> None:
        batch = self.batch()
        self.table.insert(arrow(batch), options=DROP)
        self.rows = {row.id: row for row in batch} | self.rows

    def replace(self) -> None:
        if not self.replaces:
            return
        batch = self.batch()
        self.table.insert_overwrite(arrow(batch))
        cities = {row.city for row in batch}
        self.rows = {key: row for key, row in self.rows.items() if row.city not in cities}
        self.rows |= {row.id: row for row in batch}

    def service(self) -> None:
        if self.table.table_type == "MERGE_ON_READ" and self.chance.random() < 0.7:
            self.table.compact()
        else:
            self.table.clean(options=CLEANS)

    def undo(self) -> None:
        """Write once more and take that back, beside indexes that were built before."""
        batch = self.batch()
        wrote = self.table.upsert(arrow(batch))
        assert wrote.requested is not None
        self.table.rollback(wrote.requested)

    def build(self) -> None:
        kind = self.chance.choice(self.kinds)
        needed = {"secondary_index": "record_index", "partition_stats": "column_stats"}.get(kind)
        for one in [needed, kind] if needed else [kind]:
            arguments = {} if self.table.table_version <= 7 else INDEXES[one]  # which stores no columns
            self.table.build_index(one, **arguments)  # type: ignore[arg-type]

    def drop(self) -> None:
        there = [of.name for of in self.table.metadata.stats().partitions if of.name != "files"]
        if there:
            self.table.drop_index(self.chance.choice(sorted(there)))

    def check(self) -> None:
        assert found(self.table.scan()) == self.rows
        asked: list[tuple[str, Callable[[Row], bool]]] = [
            *((f"id = '{key}'", lambda row, key=key: row.id == key) for key in KEYS),
            *((f"note = '{note}'", lambda row, note=note: row.note == note) for note in NOTES),
            ("lower(note) = 'eve'", lambda row: row.note == "Eve"),
            ("v > 2", lambda row: row.v > 2),
            ("id >= 'k3' and id < 'k6'", lambda row: "k3" <= row.id < "k6"),
        ]
        for where, is_wanted in asked:
            expected = {key: row for key, row in self.rows.items() if is_wanted(row)}
            assert found(self.table.scan(where=where)) == expected, where
        assert {row.id for row in self.rows.values()} == set(self.table.lookup(KEYS)["id"].to_pylist())


STEPS = (
    ("upsert",) * 3 + ("delete", "insert", "insert_absent", "replace", "service", "undo") + ("build",) * 2 + ("drop",)
)


def city_of(key: str) -> str:
    return "oslo" if int(key[1:]) % 2 else "rome"


def found(scan: object) -> dict[str, Row]:
    """The rows by key; `read_rows` refuses a key that shows twice."""
    return {key: stored.row for (_, key), stored in read_rows(scan.to_arrow()).items()}  # type: ignore[attr-defined]


def run(placement: str, table_type: str, version: int, seed: int, count: int) -> None:
    clock = StepClock()
    handles = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(seed), SerialExecutor())
    table = handles.create(table_type=table_type, table_version=version, properties=PLACEMENTS[placement])
    kinds = OF_VERSION_6[version == 5 :] if version <= 7 else tuple(INDEXES)
    steps = Steps(table, random.Random(seed), kinds, replaces=placement != "RING")
    steps.upsert()

    for _ in range(count):
        name = steps.chance.choice(STEPS)
        getattr(steps, name)()
        steps.check()

    assert table.metadata.validate().is_valid


PLACED = [
    (placement, table_type)
    for placement in PLACEMENTS
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ")
    if placement != "RING" or table_type == "MERGE_ON_READ"
]


@pytest.mark.parametrize(
    "placement,table_type,version", [(*placed, (6, 8, 9)[n % 3]) for n, placed in enumerate(PLACED)]
)
def test_indexes_stay_true(placement: str, table_type: str, version: int) -> None:
    run(placement, table_type, version, seed=version, count=6)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 104))
@pytest.mark.parametrize(
    "placement,table_type,version",
    [
        (placement, of, version)
        for (placement, of), version in product(PLACED, (5, 6, 7, 8, 9))
        if (placement, version) != ("RECORD_INDEX", 5)  # which has none
    ],
)
def test_indexes_stay_true_in_the_long_run(placement: str, table_type: str, version: int, seed: int) -> None:
    run(placement, table_type, version, seed, count=40)


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("placement", ["BUCKET", "RING"])
def test_a_record_index_hears_of_keys_that_go_to_the_log_of_a_bucket(placement: str, version: int) -> None:
    handles = Handles(MemoryStorage())
    table = handles.create(table_type="MERGE_ON_READ", table_version=version, properties=PLACEMENTS[placement])
    table.upsert(arrow([Row(key, city_of(key), 1, 1) for key in KEYS[:4]]))
    table.build_index("record_index")

    table.upsert(arrow([Row(key, city_of(key), 2, 2) for key in KEYS]))

    assert [table.scan(where=f"id = '{key}'").to_arrow().num_rows for key in KEYS] == [1] * len(KEYS)
    assert table.lookup(KEYS).num_rows == len(KEYS)
    assert table.metadata.validate().is_valid


@pytest.mark.parametrize("city", ["zé", "日本", "new york", "2026.01", "a+b", "$(x)", "São Paulo, SP"])
@pytest.mark.parametrize("version", [8, 9])
def test_a_partitioned_record_index_finds_keys_of_every_partition_name(city: str, version: int) -> None:
    handles = Handles(MemoryStorage())
    table = handles.create(table_type="MERGE_ON_READ", table_version=version)
    table.upsert(arrow([Row("k1", "rome", 1, 1), Row("k2", city, 1, 1)]))
    table.build_index("partitioned_record_index")
    table.upsert(arrow([Row("k3", city, 2, 2)]), options={"hoodie.index.type": "RECORD_LEVEL_INDEX"})
    table.upsert(arrow([Row("k2", city, 2, 2)]), options={"hoodie.index.type": "RECORD_LEVEL_INDEX"})

    assert sorted(table.lookup(["k1", "k2", "k3"])["id"].to_pylist()) == ["k1", "k2", "k3"]
    assert table.metadata.validate().is_valid
    assert table.scan().to_arrow().num_rows == 3
