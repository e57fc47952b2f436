"""An index of the metadata table could say other than the data files: after any operation, built late, or after a
compaction of either table. What it says is compared with what a scan gives, and with footers.
"""

import random

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local import SerialExecutor
from pyhudi.errors import Invalid
from pyhudi.metadata.indexes import read_definitions
from pyhudi.storage.counting import CountingStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.config import table_config
from pyhudi.table.properties_file import read_table_properties
from tests.support.metadata_indexes import index_problems
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, seeded_uuids

GLOBAL = {
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.global.record.level.index.min.filegroup.count": "3",
}
PARTITIONED = {
    "hoodie.metadata.record.level.index.enable": "true",
    "hoodie.metadata.record.level.index.min.filegroup.count": "2",
}
OTHERS = {
    "hoodie.metadata.index.bloom.filter.enable": "true", "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",
}  # fmt: skip
SECONDARY = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.metadata.index.secondary.column": "v"}
CITIES = ("oslo", "rome", "bonn", "a-b/c_d=e")


class Store:
    def __init__(self, kind: str, version: int, **properties: str) -> None:
        self.storage = MemoryStorage()
        handles = Handles(self.storage, StepClock(), seeded_uuids(1), SerialExecutor())
        self.table = handles.create(properties=properties, table_type=kind, table_version=version)

    def partitions(self) -> tuple[str, ...]:
        return table_config(read_table_properties(self.storage), path="t").metadata_partitions


def random_step(table: HudiTable, draw: random.Random, turn: int, kind: str) -> str:
    rows = [
        Row(f"k{draw.randint(0, 40)}", draw.choice(CITIES), draw.randint(0, 9), draw.randint(0, 5))
        for _ in range(draw.randint(1, 9))
    ]
    rows = list({row.id: row for row in rows}.values())
    names = ["upsert", "upsert", "upsert", "delete", "insert_overwrite", "delete_partitions", "clean"]
    name = draw.choice([*names, "compact"] if kind == "MERGE_ON_READ" else names)
    match name:
        case "delete_partitions":
            table.delete_partitions([draw.choice(CITIES[:3])])
        case "clean" | "compact":
            getattr(table, name)()
        case _:
            getattr(table, name)(arrow(rows))
    return name


@pytest.mark.parametrize(
    "index, kind, version",
    [
        (GLOBAL, "COPY_ON_WRITE", 8),
        (GLOBAL, "MERGE_ON_READ", 9),
        (PARTITIONED, "COPY_ON_WRITE", 9),
        (PARTITIONED, "MERGE_ON_READ", 9),
        pytest.param(GLOBAL, "MERGE_ON_READ", 8, marks=pytest.mark.long),
        pytest.param(GLOBAL, "COPY_ON_WRITE", 9, marks=pytest.mark.long),
    ],
)
def test_indexes_after_every_one_of_random_operations(index: dict[str, str], kind: str, version: int) -> None:
    options = SECONDARY if index is GLOBAL else {}
    store = Store(kind, version, **index, **OTHERS, **options)
    draw, done = random.Random(version), []
    store.table.upsert(arrow([Row("k0", "oslo", 1, 1), Row("k1", "rome", 1, 2)]))
    for turn in range(6):
        done.append(random_step(store.table, draw, turn, kind))
        assert index_problems(store.storage) == [], done
    assert problems_on(store.storage) == []


def test_an_index_is_built_when_it_is_asked_for_kept_while_nobody_asks_and_dropped_when_switched_off() -> None:
    store = Store("MERGE_ON_READ", 9)
    store.table.upsert(arrow([Row(f"k{n}", CITIES[n % 4], 1, n % 3) for n in range(12)]))
    store.table.upsert(arrow([Row("k0", "oslo", 2, 9)]))
    assert store.partitions() == ("files",)

    store.table.upsert(arrow([Row("k1", "rome", 2, 9)]), options={**GLOBAL, **OTHERS, **SECONDARY})
    every = ("bloom_filters", "column_stats", "files", "partition_stats", "record_index", "secondary_index_v")
    assert store.partitions() == every
    assert index_problems(store.storage) == []
    assert set(read_definitions(store.storage)) == {"column_stats", "record_index", "secondary_index_v"}
    # Apache Hudi looks for definitions nowhere else.
    assert read_table_properties(store.storage)["hoodie.table.index.defs.path"] == ".hoodie/.index_defs/index.json"

    store.table.delete(arrow([Row("k2", "bonn", 2, 9)]))
    assert store.partitions() == every
    assert index_problems(store.storage) == []

    off = {"hoodie.metadata.global.record.level.index.enable": "false"}
    store.table.upsert(arrow([Row("k3", "oslo", 2, 9)]), options=off)
    assert store.partitions() == ("bloom_filters", "column_stats", "files", "partition_stats")
    assert set(read_definitions(store.storage)) == {"column_stats"}
    assert not list(store.storage.list(".hoodie/metadata/record_index"))
    assert problems_on(store.storage) == []


def test_a_secondary_index_without_a_global_record_index_is_refused_before_anything_is_written() -> None:
    store = Store("COPY_ON_WRITE", 9)
    store.table.upsert(arrow([Row("k", "oslo", 1, 1)]))
    with pytest.raises(Invalid, match="expected a global record index"):
        store.table.upsert(arrow([Row("k", "oslo", 2, 2)]), options=SECONDARY)
    assert store.partitions() == ("files",)


def test_a_secondary_index_has_the_name_that_it_is_given_and_a_column_gets_no_second_one() -> None:
    store = Store("COPY_ON_WRITE", 9)
    store.table.upsert(arrow([Row("k", "oslo", 1, 1)]))
    store.table.upsert(arrow([Row("k", "oslo", 2, 2)]), options={**GLOBAL, **SECONDARY, "hoodie.index.name": "by_v"})
    assert store.partitions() == ("files", "record_index", "secondary_index_by_v")

    store.table.upsert(arrow([Row("l", "rome", 2, 2)]), options=SECONDARY)
    assert store.partitions() == ("files", "record_index", "secondary_index_by_v")
    assert index_problems(store.storage) == []

    taken = {**SECONDARY, "hoodie.metadata.index.secondary.column": "id", "hoodie.index.name": "by_v"}
    with pytest.raises(Invalid, match="expected a name that no other index has"):
        store.table.upsert(arrow([Row("l", "rome", 3, 2)]), options=taken)

    off = {"hoodie.metadata.index.secondary.enable": "false"}
    store.table.upsert(arrow([Row("l", "rome", 4, 2)]), options=off)
    assert store.partitions() == ("files", "record_index")
    assert set(read_definitions(store.storage)) == {"record_index"}


def test_updates_in_logs_read_no_base_file_for_the_record_index() -> None:
    """What stands in the index costs what the change holds, not what the file groups do."""
    store = Store("MERGE_ON_READ", 9, **GLOBAL)
    store.table.upsert(arrow([Row(f"k{n}", CITIES[n % 4], 1, n) for n in range(40)]))
    counted = CountingStorage(store.storage)
    table = Handles(counted, StepClock(1_780_000_100_000), seeded_uuids(2), SerialExecutor()).open()
    table.upsert(arrow([Row("k0", "oslo", 2, 1)]))
    assert counted.counts["open_input"] == 1  # by the index of the write itself
    table.upsert(arrow([Row("k1", "rome", 2, 1)]))
    table.delete(arrow([Row("k1", "rome", 3, 1)]))
    table.upsert(arrow([Row("k1", "rome", 2, 9)]))  # too late: it stays deleted
    table.upsert(arrow([Row("k1", "rome", 4, 9)]))
    assert index_problems(store.storage) == []
