"""Somebody could delete the metadata table, or a part of it, and leave a table that cannot be read, or reads as empty.

Whatever part goes: readers find every row, the next write goes through and doubles none, and what is named is true.
"""

import logging
from collections.abc import Iterator

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import NotFound
from pyhudi.metadata.check.differences import DifferenceKind
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.clock import Clock
from tests.support.versions import EVERY_VERSION

ROWS = pa.table({"k": ["a", "b"], "p": ["x", "y"], "v": [1, 2]})
CHANGES = pa.table({"k": ["a", "c"], "p": ["x", "y"], "v": [3, 4]})
ALL = {"column_stats", "files", "record_index"}
OF_FIVE = {"bloom_filters", "column_stats", "files"}


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, logger="pyhudi"):
        yield caplog


def indexed(version: int, clock: Clock | None = None) -> tuple[MemoryStorage, HudiTable]:
    storage = MemoryStorage()
    table = HudiTable.create(
        storage.location.uri, name="t", record_key="k", partition_by="p", table_version=version, storage=storage,
        clock=clock, executor=SerialExecutor(),
    )  # fmt: skip
    table.upsert(ROWS)
    for index in sorted((OF_FIVE if version < 6 else ALL) - {"files"}):
        table.build_index(index)
    return storage, table


def keys(table: HudiTable, where: str | None = None) -> list[str]:
    return sorted(table.scan(where=where).to_arrow().column("k").to_pylist())


@pytest.mark.parametrize("version", EVERY_VERSION)
@pytest.mark.parametrize("gone", ["", "/.hoodie", "/.hoodie/hoodie.properties", "/files", "/.hoodie/timeline"])
def test_rows_are_found_without_it_and_the_next_write_makes_it_anew(
    version: int, gone: str, warnings: pytest.LogCaptureFixture
) -> None:
    storage, table = indexed(version)
    storage.delete_prefix(f".hoodie/metadata{gone}")
    storage.delete(f".hoodie/metadata{gone}")

    if not (version <= 7 and gone == "/.hoodie/timeline"):  # which it does not have
        assert keys(table) == ["a", "b"]
        assert keys(table, "k = 'a' AND v = 1") == ["a"]
        assert table.lookup(["b"]).column("v").to_pylist() == [2]
        assert "the next write makes the metadata table anew" in warnings.text
    result = table.upsert(CHANGES)

    assert (result.inserted, result.updated) == (1, 1)
    assert keys(table) == ["a", "b", "c"]
    assert set(table.metadata.partitions_in_use) == (OF_FIVE if version < 6 else ALL)
    assert table.metadata.validate().is_valid


@pytest.mark.parametrize("index", ["record_index", "column_stats"])
def test_an_index_that_is_gone_is_not_asked_and_the_next_write_drops_it(
    index: str, warnings: pytest.LogCaptureFixture
) -> None:
    storage, table = indexed(8)
    storage.delete_prefix(f".hoodie/metadata/{index}")

    assert keys(table, "k = 'a' AND v = 1") == ["a"]
    assert table.lookup(["b"]).column("v").to_pylist() == [2]
    assert [found.kind for found in table.metadata.validate().differences] == [DifferenceKind.GONE]
    assert table.upsert(CHANGES).updated == 1

    assert set(table.metadata.partitions_in_use) == ALL - {index}
    assert f"dropping the metadata partitions {index}, of which nothing is left" in warnings.text
    table.build_index(index)
    assert table.metadata.validate().is_valid


def test_the_calls_of_the_metadata_table_say_that_it_is_gone_and_make_it_anew() -> None:
    storage, table = indexed(8)
    storage.delete_prefix(".hoodie/metadata")

    with pytest.raises(NotFound, match=r"which is gone; `metadata update`, or the next write"):
        table.metadata.validate()
    assert set(table.metadata.update().after) == ALL
    assert table.metadata.validate().is_valid


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_indexes_that_a_definition_describes_are_made_anew_by_it(version: int, table_type: str) -> None:
    storage = MemoryStorage()
    table = HudiTable.create(
        storage.location.uri, name="t", record_key="k", partition_by="p", table_version=version, storage=storage,
        executor=SerialExecutor(), table_type=table_type,
    )  # fmt: skip
    table.upsert(ROWS)
    table.build_index("record_index")
    table.build_index("secondary_index", columns="v", name="by_v")
    table.build_index("column_stats", columns=["v"])
    table.build_index("expr_index", expression="upper(k)", name="by_upper")
    table.build_index("bloom_filters", expression="lower(k)", name="by_lower")
    before, definitions = set(table.metadata.partitions_in_use), storage.get(".hoodie/.index_defs/index.json")
    storage.delete_prefix(".hoodie/metadata")

    table.upsert(CHANGES)

    assert set(table.metadata.partitions_in_use) == before
    assert storage.get(".hoodie/.index_defs/index.json") == definitions
    assert keys(table, "v = 4") == ["c"]
    assert table.metadata.validate().is_valid


def test_a_record_index_by_partition_is_made_anew_by_partition() -> None:
    storage, table = by_partition(pa.concat_tables([ROWS, pa.table({"k": ["a"], "p": ["y"], "v": [5]})]))
    storage.delete_prefix(".hoodie/metadata")

    table.upsert(CHANGES)

    assert keys(table, "k = 'a'") == ["a", "a"]
    assert table.metadata.validate().is_valid


def by_partition(rows: pa.Table) -> tuple[MemoryStorage, HudiTable]:
    storage = MemoryStorage()
    table = HudiTable.create(
        storage.location.uri, name="t", record_key="k", partition_by="p", storage=storage, executor=SerialExecutor()
    )
    table.upsert(rows)
    table.build_index("partitioned_record_index")
    return storage, table


def test_a_record_index_by_partition_that_is_gone_is_not_begun_anew_by_a_write(
    warnings: pytest.LogCaptureFixture,
) -> None:
    """It would know the keys of that write alone."""
    storage, table = by_partition(ROWS)
    storage.delete_prefix(".hoodie/metadata/record_index")

    table.upsert(CHANGES)

    assert set(table.metadata.partitions_in_use) == {"files"}
    assert "dropping the metadata partitions record_index, of which nothing is left" in warnings.text
    assert sorted(table.lookup(["a", "b", "c"]).column("k").to_pylist()) == ["a", "b", "c"]


def test_a_record_index_by_partition_of_an_empty_table_is_there(warnings: pytest.LogCaptureFixture) -> None:
    _, table = by_partition(ROWS.slice(0, 0))

    assert table.lookup(["a"]).num_rows == 0
    assert table.metadata.validate().is_valid
    first = table.upsert(ROWS)
    assert table.lookup(["a"]).num_rows == 1
    table.rollback(first.requested or "")
    assert table.metadata.validate().is_valid
    assert "is gone" not in warnings.text


def test_an_index_that_nothing_describes_any_more_stops_no_write(warnings: pytest.LogCaptureFixture) -> None:
    storage, table = indexed(8)
    table.build_index("secondary_index", columns="v", name="by_v")
    table.build_index("expr_index", expression="upper(k)", name="by_upper")
    storage.delete_prefix(".hoodie/metadata")
    storage.delete(".hoodie/.index_defs/index.json")

    table.upsert(CHANGES)

    assert set(table.metadata.partitions_in_use) == ALL
    assert "expr_index_by_upper, secondary_index_by_v" in warnings.text
    assert table.metadata.validate().is_valid


def test_a_write_is_taken_back_without_it() -> None:
    storage, table = indexed(8)
    newest = table.upsert(CHANGES).requested or ""
    storage.delete_prefix(".hoodie/metadata")

    table.rollback(newest)

    assert keys(table) == ["a", "b"]
    assert table.upsert(CHANGES).updated == 1
