"""`metadata.create()` could forget the indexes that `build_index` made: queries would read every file again, and no
write would bring them back. It makes the metadata table anew with the indexes that it had, whole or damaged.
"""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyhudi import HudiTable
from pyhudi.cli.app import app
from pyhudi.storage.memory import MemoryStorage
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
