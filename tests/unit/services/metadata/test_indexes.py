"""An index of the metadata table could say other than the data files: after any operation, built late, or after a
compaction of either table. What it says is compared with what a scan gives, and with footers.
"""

import random
from datetime import UTC

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.metadata.index_definitions import encode_index_definitions, record_index_definition
from pyhudi.format.names import METADATA_TABLE
from pyhudi.metadata.store.indexes import INDEX_DEFINITIONS, read_definitions
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.services.metadata import compaction
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.facts.config import table_config
from pyhudi.table.facts.properties_file import read_table_properties
from pyhudi.testing.counting import CountingStorage
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


def expression(column: str, options: str, **more: str) -> dict[str, str]:
    name = "hoodie.metadata.index.expression"
    return {f"{name}.enable": "true", f"{name}.column": column, f"{name}.options": options, **more}


def test_an_index_on_an_expression_is_built_within_a_write_once_and_kept_true() -> None:
    store = Store("COPY_ON_WRITE", 9)
    upper = expression("id", "expr='upper'")
    store.table.upsert(arrow([Row("k", "oslo", 1, 1)]), options=upper)  # which brings the column
    assert store.partitions() == ("files",)
    store.table.upsert(arrow([Row("l", "rome", 2, 2)]), options=upper)
    assert store.partitions() == ("expr_index_id", "files")
    assert index_problems(store.storage) == []
    definition = read_definitions(store.storage)["expr_index_id"]
    assert (definition.type, definition.function) == ("column_stats", "upper")
    assert (definition.source_fields, definition.options) == (("id",), {"expr": "upper"})
    pruned = store.table.scan(where="upper(id) = 'L'").explain()
    assert "expr_index_id" in str(pruned)

    # By another name it is the same index; of another kind, or another expression, it is another.
    store.table.upsert(arrow([Row("l", "rome", 3, 2)]), options={**upper, "hoodie.index.name": "other"})
    assert store.partitions() == ("expr_index_id", "files")
    with pytest.raises(Invalid, match="give the new one another in"):
        store.table.upsert(arrow([Row("l", "rome", 4, 2)]), options=expression("id", "expr=lower"))
    blooms = expression("id", "expr=substring, pos=1, len=2, fpp=0.01", **{
        "hoodie.index.name": "expr_index_begin", "hoodie.expression.index.type": "Bloom_Filters",
    })  # fmt: skip
    store.table.upsert(arrow([Row("m", "bonn", 5, 2)]), options=blooms)
    assert store.partitions() == ("expr_index_begin", "expr_index_id", "files")
    store.table.upsert(arrow([Row("n", "bonn", 6, 2)]))  # kept true without an option
    assert store.partitions() == ("expr_index_begin", "expr_index_id", "files")
    assert index_problems(store.storage) == []
    assert read_definitions(store.storage)["expr_index_begin"].options["fpp"] == "0.01"

    asking = Handles(store.storage, StepClock(1_780_000_300_000), seeded_uuids(3), SerialExecutor()).open(blooms)
    with pytest.raises(Invalid, match="is set, and the next write would build it again"):
        asking.drop_index("begin")
    off = {**blooms, "hoodie.metadata.index.expression.enable": "false"}
    store.table.upsert(arrow([Row("n", "bonn", 7, 2)]), options=off)
    assert store.partitions() == ("files",)
    assert problems_on(store.storage) == []


@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_filters_of_an_expression_that_shut_apache_hudi_out_are_warned_of(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(kind, 9)
    store.table.upsert(arrow([Row("k", "oslo", 1, 1)]))
    store.table.build_index("expr_index", name="stats", expression="lower(id)")
    asked = expression("id", "expr=upper", **{"hoodie.expression.index.type": "bloom_filters"})
    assert not caplog.records
    store.table.build_index("bloom_filters", name="filters", expression="lower(id)")
    store.table.upsert(arrow([Row("l", "oslo", 1, 1)]), options=asked)
    store.table.upsert(arrow([Row("m", "oslo", 1, 1)]), options=asked)
    said = [record.getMessage() for record in caplog.records if "cannot write" in record.getMessage()]
    if kind == "COPY_ON_WRITE":
        assert said == []
    else:
        assert [text.partition(", ")[0] for text in said] == [
            f"{store.storage.location.uri}: with the index 'expr_index_{name}'" for name in ("filters", "id")
        ]


@pytest.mark.parametrize(
    "options, error, text",
    [
        (expression("id", ""), Invalid, "expected hoodie.metadata.index.expression.options"),
        (expression("id", "lower"), Invalid, "expected name=value, parted by commas, found 'lower'"),
        (expression("nix", "expr=lower"), Invalid, "no column 'nix'"),
        (expression("id", "expr=fly"), Invalid, "expected a function that an index can be of"),
        (expression("id", "expr=split,pattern=o"), Unsupported, "split"),
        (
            expression("id", "expr=lower", **{"hoodie.expression.index.type": "RECORD_INDEX"}),
            Invalid, "expected COLUMN_STATS or BLOOM_FILTERS",
        ),
    ],
)  # fmt: skip
def test_an_index_on_an_expression_that_a_write_cannot_build_is_refused(
    options: dict[str, str], error: type[Exception], text: str
) -> None:
    store = Store("COPY_ON_WRITE", 9)
    store.table.upsert(arrow([Row("k", "oslo", 1, 1)]))
    before = {f.path for f in store.storage.list("", recursive=True)}
    with pytest.raises(error, match=text):
        store.table.upsert(arrow([Row("k", "oslo", 2, 2)]), options=options)
    assert {f.path for f in store.storage.list("", recursive=True)} == before


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


@pytest.mark.parametrize("is_beside_writers", [False, True])
def test_a_partition_that_is_listed_but_empty_has_groups_of_a_partitioned_record_index(is_beside_writers: bool) -> None:
    """Apache Hudi 1.2.0 makes groups for partitions that are not listed, and fails to write to others without any."""
    store = Store("COPY_ON_WRITE", 9)
    store.table.upsert(arrow([Row("k1", "oslo", 1, 1), Row("k2", "rome", 1, 1)]))
    store.table.delete_partitions(["rome"])
    if is_beside_writers:
        store.table.build_index("partitioned_record_index", options=PARTITIONED)
    else:
        store.table.upsert(arrow([Row("k1", "oslo", 2, 2)]), options=PARTITIONED)
    assert {f"record-index-{city}-000{n}-0" for city in ("oslo", "rome") for n in (0, 1)} == _groups(store)

    store.table.upsert(arrow([Row("k3", "rome", 3, 3)]), options={"hoodie.index.type": "RECORD_LEVEL_INDEX"})
    assert index_problems(store.storage) == []


def test_the_definition_of_an_earlier_partitioned_record_index_does_not_say_how_keys_are_spread_now() -> None:
    """Apache Hudi 1.2.0 leaves the definition when it drops the index, and when it builds one of the whole table."""
    store = Store("COPY_ON_WRITE", 9, **GLOBAL, **{"hoodie.index.type": "GLOBAL_SIMPLE"})
    store.table.upsert(arrow([Row("k1", "oslo", 1, 1)]))
    stale = record_index_definition(is_partitioned=True)
    store.storage.put(INDEX_DEFINITIONS, encode_index_definitions({"record_index": stale}))

    store.table.upsert(arrow([Row("k1", "oslo", 2, 2), Row("k2", "rome", 2, 2)]))

    assert [store.table.scan(where=f"id = '{key}'").to_arrow().num_rows for key in ("k1", "k2")] == [1, 1]
    assert index_problems(store.storage) == []
    assert _groups(store) == {f"record-index-000{n}-0" for n in range(3)}, "more would change where keys are sought"


def _groups(store: Store) -> set[str]:
    files = (file.path.rpartition("/")[2] for file in store.storage.list(f"{METADATA_TABLE}/record_index"))
    return {name.lstrip(".").split("_")[0] for name in files if "record-index" in name}


def test_an_index_that_is_built_is_not_the_newest_action() -> None:
    """Apache Hudi would make its next indexes at that action's time, and delete the base files of this one first."""
    clock = StepClock()
    handles = Handles(MemoryStorage(), clock, seeded_uuids(1), SerialExecutor())
    table = handles.create(table_version=9)
    table.upsert(arrow([Row("k1", "oslo", 1, 1)]))
    clock.ms += 5_000
    table.upsert(arrow([Row("k2", "oslo", 1, 1)]))

    for kind in ("record_index", "bloom_filters", "column_stats"):
        table.build_index(kind)

    actions = [instant.action for instant in sorted(table.timeline(), key=lambda instant: instant.requested)]
    assert actions == ["commit", "indexing", "indexing", "indexing", "commit"]
    assert [instant.action for instant in table.timeline()] == ["commit", "commit", *["indexing"] * 3]
    table.upsert(arrow([Row("k1", "oslo", 2, 2), Row("k3", "rome", 2, 2)]))
    assert table.metadata.validate().is_valid


@pytest.mark.parametrize("quiet_max", [200, 8])
def test_the_base_file_of_a_quiet_group_has_its_instant_on_the_timeline(
    quiet_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apache Hudi makes a new index at the first instants again: what is archived counts as uncommitted then."""
    monkeypatch.setattr(compaction, "_QUIET_WRITES_MAX", quiet_max)
    kept = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6", "hoodie.clean.commits.retained": "2"}
    store = Store("COPY_ON_WRITE", 9, **GLOBAL, **kept, **{"hoodie.metadata.compact.max.delta.commits": "3"})
    store.table.upsert(arrow([Row(f"k{n}", "oslo", 1, 1) for n in range(9)]))
    for n in range(14):
        store.table.upsert(arrow([Row("k1", "oslo", 2 + n, 2)]))

    metadata = open_metadata_table(store.storage, UTC)
    active = {instant.requested for instant in metadata.timeline}
    bases = {one.base_instant for name in store.partitions() for one in metadata.slices(name)}
    assert bases <= active
    assert (len(active) < 20) == (quiet_max == 8), "quiet base files are written anew at times, or all would stay"
    assert index_problems(store.storage) == []
