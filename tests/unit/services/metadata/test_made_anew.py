"""`metadata.create()` could forget the indexes that `build_index` made: queries would read every file again, and no
write would bring them back. It makes the metadata table anew with the indexes that it had, whole or damaged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyhudi import HudiTable
from pyhudi.cli.app import app
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import FileInfo, Storage
from pyhudi.table.facts.properties_file import read_table_properties, replace_table_properties
from pyhudi.testing.crashing import Crash, CrashingStorage
from tests.support.model import StepClock
from tests.support.versions import EVERY_VERSION
from tests.unit.services.metadata.test_table_gone import ALL, CHANGES, OF_FIVE, ROWS, indexed, keys


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_the_indexes_that_it_had_are_made_anew(version: int) -> None:
    _, table = indexed(version)
    had = OF_FIVE if version < 6 else ALL
    for turn in range(2):  # a repeat has them still
        change = table.metadata.create()
        assert (set(change.before), set(change.after)) == (had, had), f"turn {turn}"
    assert table.metadata.validate().is_valid

    table.upsert(CHANGES)

    assert set(table.metadata.partitions_in_use) == had
    assert table.metadata.validate().is_valid
    assert keys(table, "k = 'a' AND v = 3") == ["a"]


def test_indexes_are_made_anew_as_their_definitions_say() -> None:
    storage = MemoryStorage()
    table = HudiTable.create(storage.location.uri, name="t", record_key="k", partition_by="p", storage=storage)
    table.upsert(ROWS)
    table.build_index("partitioned_record_index")
    table.build_index("column_stats", columns=["v"])
    table.build_index("expr_index", expression="upper(k)", name="by_upper")
    before, definitions = set(table.metadata.partitions_in_use), storage.get(".hoodie/.index_defs/index.json")

    table.metadata.create()

    assert set(table.metadata.partitions_in_use) == before
    assert storage.get(".hoodie/.index_defs/index.json") == definitions
    assert table.metadata.validate().is_valid


def test_a_damaged_one_is_made_anew_with_its_indexes() -> None:
    storage, table = indexed(8)
    for file in list(storage.list(".hoodie/metadata", recursive=True)):
        if file.path.endswith(".hfile") or ".log." in file.path:
            storage.delete(file.path)
            storage.put_new(file.path, b"damaged")

    assert set(table.metadata.create().after) == ALL
    assert table.metadata.validate().is_valid
    assert keys(table) == ["a", "b"]


def test_what_an_option_switches_off_goes_and_what_it_asks_for_comes() -> None:
    _, table = indexed(8)
    options = {
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.metadata.index.bloom.filter.enable": "true",
    }

    assert set(table.metadata.create(options=options).after) == {"files", "record_index", "bloom_filters"}
    assert table.metadata.validate().is_valid


def test_the_command_makes_them_anew_too(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="k", partition_by="p")
    table.upsert(ROWS)
    table.build_index("column_stats")

    assert CliRunner().invoke(app, ["metadata", "create", str(tmp_path / "t")]).exit_code == 0

    assert set(table.metadata.partitions_in_use) == {"files", "column_stats"}


def test_deleting_it_takes_its_indexes_for_good() -> None:
    _, table = indexed(8)
    table.metadata.delete()
    table.upsert(CHANGES)
    assert table.metadata.partitions_in_use == ("files",)


HOUR_MS = 3_600_000


@pytest.mark.parametrize("version", [5, 8])
@pytest.mark.parametrize("again", ["create", "a write"])
def test_no_index_is_forgotten_when_it_dies_half_way(version: int, again: str) -> None:
    """Wherever it dies: the next writer, of whatever process, makes them anew."""
    start = StepClock()
    made, _ = indexed(version, start)
    had, survives, is_over = OF_FIVE if version < 6 else ALL, 0, False
    while not is_over:
        storage, clock = made.copy(), StepClock(start.ms)
        dying = HudiTable.open("", storage=CrashingStorage(storage, survives, lands=False), clock=clock)
        try:
            dying.metadata.create()
            is_over = True
        except Crash:
            clock.ms += HOUR_MS
        table = HudiTable.open("", storage=storage, clock=clock, executor=SerialExecutor())
        if again == "create":
            table.metadata.create()
        else:
            table.upsert(CHANGES)

        assert set(table.metadata.partitions_in_use) == had, f"died at change {survives}"
        assert b"partitions.lost" not in storage.get(".hoodie/hoodie.properties")
        survives += 8
    assert survives > 40
    assert table.metadata.validate().is_valid
    assert keys(table, "k = 'a' AND v >= 1") == ["a"]


def died_without_metadata_table() -> tuple[MemoryStorage, StepClock]:
    clock = StepClock()
    storage, _ = indexed(8, clock)
    die_without_metadata_table(storage, clock)
    return storage, clock


def die_without_metadata_table(storage: MemoryStorage, clock: StepClock) -> HudiTable:
    """Lets `create` die where the table has no metadata table. Returns the table."""
    survives = 0
    while b"partitions.lost" not in storage.get(".hoodie/hoodie.properties"):
        with pytest.raises(Crash):
            HudiTable.open("", storage=CrashingStorage(storage, survives, lands=False), clock=clock).metadata.create()
        clock.ms, survives = clock.ms + HOUR_MS, survives + 1
    return HudiTable.open("", storage=storage, clock=clock, executor=SerialExecutor())


def test_what_was_lost_on_the_way_goes_with_the_metadata_table_that_is_deleted() -> None:
    storage, clock = died_without_metadata_table()
    table = HudiTable.open("", storage=storage, clock=clock)
    table.metadata.delete()
    table.upsert(CHANGES)
    assert table.metadata.partitions_in_use == ("files",)


def test_what_was_lost_on_the_way_stays_away_where_options_switch_it_off() -> None:
    storage, clock = died_without_metadata_table()
    table = HudiTable.open("", storage=storage, clock=clock)
    table.upsert(CHANGES, options={"hoodie.metadata.index.column.stats.enable": "false"})
    assert set(table.metadata.partitions_in_use) == ALL - {"column_stats"}
    table.upsert(CHANGES)
    assert set(table.metadata.partitions_in_use) == ALL - {"column_stats"}


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("again", ["update", "a write"])
def test_nothing_is_left_of_an_index_that_is_switched_off_while_it_is_lost(version: int, again: str) -> None:
    """Its definition stayed, though no call could drop it any more."""
    clock = StepClock()
    storage, table = indexed(version, clock)
    table.build_index("secondary_index", name="s", columns="v")
    table.build_index("expr_index", name="e", expression="from_unixtime(v)")
    table = die_without_metadata_table(storage, clock)
    options = {
        "hoodie.metadata.index.secondary.enable": "false",
        "hoodie.metadata.index.expression.enable": "false",
        "hoodie.metadata.index.column.stats.enable": "false",
    }

    if again == "update":
        table.metadata.update(options=options)
    else:
        table.upsert(CHANGES, options=options)

    assert set(table.metadata.partitions_in_use) == {"files", "record_index"}
    assert set(read_definitions(storage)) == {"record_index"}
    assert table.metadata.validate().is_valid
    table.alter().rename("v", "value").commit()


def test_an_index_that_another_tool_has_made_meanwhile_stays() -> None:
    storage, table = indexed(8)
    noted = {"pyhudi.metadata.partitions.lost": "bloom_filters,column_stats"}
    replace_table_properties(storage, read_table_properties(storage) | noted, epoch_ms=0)

    table.upsert(CHANGES, options={"hoodie.metadata.index.bloom.filter.enable": "false"})

    assert set(table.metadata.partitions_in_use) == ALL
    assert b"partitions.lost" not in storage.get(".hoodie/hoodie.properties")
    assert table.metadata.validate().is_valid


OFTEN = {"hoodie.metadata.compact.max.delta.commits": "1"}


def compacted_since(version: int) -> tuple[MemoryStorage, StepClock, str, str, set[str]]:
    """A table whose metadata table was compacted since a commit; that commit, the newest one, and its indexes."""
    clock = StepClock()
    storage, table = indexed(version, clock)
    if version >= 8:
        table.build_index("secondary_index", name="s", columns="v")
        table.build_index("expr_index", name="e", expression="upper(k)")
    to = table.upsert(ROWS).requested or ""
    newest = table.upsert(CHANGES).requested or ""
    table.metadata.update(options=OFTEN)
    return storage, clock, to, newest, set(table.metadata.partitions_in_use)


@pytest.mark.parametrize("version", EVERY_VERSION)
@pytest.mark.parametrize("way", ["restore", "rollback"])
def test_going_back_behind_a_compaction_of_the_metadata_table_forgets_no_index(version: int, way: str) -> None:
    storage, clock, to, newest, had = compacted_since(version)
    definitions = read_definitions(storage)
    table = HudiTable.open("", storage=storage, clock=clock, executor=SerialExecutor())

    result = table.restore(to) if way == "restore" else table.rollback(newest)

    assert result.dropped == ()
    assert set(table.metadata.partitions_in_use) == had
    assert read_definitions(storage) == definitions
    assert table.metadata.validate().is_valid
    assert keys(table) == ["a", "b"]
    table.upsert(CHANGES)
    assert set(table.metadata.partitions_in_use) == had
    assert table.metadata.validate().is_valid
    assert keys(table, "v = 3") == ["a"]


@pytest.mark.parametrize("version,step", [(8, 17), *(pytest.param(of, 1, marks=pytest.mark.long) for of in (6, 8))])
@pytest.mark.parametrize("way", ["restore", "rollback"])
def test_nor_where_going_back_dies(way: str, version: int, step: int) -> None:
    start, began, to, newest, had = compacted_since(version)
    survives, is_over, seen = 0, False, set()
    while not is_over:
        storage, clock = start.copy(), StepClock(began.ms)
        crashing = CrashingStorage(storage, survives, lands=False)
        dying = HudiTable.open("", storage=crashing, clock=clock, executor=SerialExecutor())
        try:
            _ = dying.restore(to) if way == "restore" else dying.rollback(newest)
            is_over = True
        except Crash:
            clock.ms += HOUR_MS
        seen.add(b"partitions.lost" in storage.get(".hoodie/hoodie.properties"))
        table = HudiTable.open("", storage=storage, clock=clock, executor=SerialExecutor())
        table.upsert(CHANGES)

        assert set(table.metadata.partitions_in_use) == had, f"died at change {survives}"
        assert b"partitions.lost" not in storage.get(".hoodie/hoodie.properties")
        assert table.metadata.validate().is_valid
        survives += step
    assert seen == {True, False}


def test_a_restore_leaves_the_note_of_indexes_that_were_lost_before() -> None:
    clock = StepClock()
    storage, table = indexed(8, clock)
    to = table.upsert(ROWS).requested or ""
    table.upsert(CHANGES)
    table = die_without_metadata_table(storage, clock)

    table.restore(to)
    table.upsert(CHANGES)

    assert set(table.metadata.partitions_in_use) == ALL
    assert table.metadata.validate().is_valid


def test_indexes_of_columns_that_are_not_there_then_go_with_their_definitions() -> None:
    _, table = indexed(8)
    storage = table._access.storage
    to = table.upsert(ROWS).requested or ""
    table.drop_index("column_stats")
    table.upsert(CHANGES.append_column("w", CHANGES["k"]))
    table.build_index("secondary_index", name="of_w", columns="w")
    table.build_index("secondary_index", name="of_v", columns="v")
    table.build_index("column_stats", columns=["v", "w"])
    table.metadata.update(options=OFTEN)

    result = table.restore(to)

    assert result.dropped == ("secondary_index_of_w",)
    assert set(table.metadata.partitions_in_use) == ALL | {"secondary_index_of_v"}
    assert set(read_definitions(storage)) == {"column_stats", "record_index", "secondary_index_of_v"}
    table.upsert(CHANGES)
    assert table.metadata.validate().is_valid


@dataclass
class RefusesLists:
    """`inner`, whose partition folders cannot be listed."""

    inner: Storage

    def list(self, prefix: str, *, recursive: bool = False) -> Iterator[FileInfo]:
        if not prefix.startswith(".hoodie"):
            raise PermissionError(f"'{prefix}' may not be listed")
        return self.inner.list(prefix, recursive=recursive)

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


def test_a_storage_that_cannot_be_listed_keeps_its_metadata_table() -> None:
    storage, table = indexed(8)
    before = {file.path: storage.get(file.path) for file in storage.list(".hoodie/metadata", recursive=True)}

    with pytest.raises(PermissionError):
        HudiTable.open("", storage=RefusesLists(storage)).metadata.create()  # type: ignore[arg-type]

    assert set(table.metadata.partitions_in_use) == ALL
    assert {file.path: storage.get(file.path) for file in storage.list(".hoodie/metadata", recursive=True)} == before
