"""A write could make a partition within another one, whose rows a listing of the storage by Apache Hudi would lose; or
rows of a table that has such partitions could get lost by a listing of ours.
"""

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, Invalid
from pyhudi.storage.memory import MemoryStorage
from pyhudi.write.place import placement

BARE = {"hoodie.metadata.enable": "false"}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
SLASHED = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}


def a_table(properties: dict[str, str], **facts: Any) -> HudiTable:
    return HudiTable.create(
        "unused", name="t", record_key="id", storage=MemoryStorage(), properties=properties,
        **{"partition_by": "p", **facts},
    )  # fmt: skip


def rows(**paths: Any) -> pa.Table:
    return pa.table({"id": list(paths), "p": list(paths.values()), "v": [1] * len(paths)})


def ids(table: HudiTable) -> list[str]:
    return sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist())


@pytest.mark.parametrize("metadata", [{}, BARE], ids=["listed by the metadata table", "by the storage"])
@pytest.mark.parametrize("first,second", [("a", "a/b"), ("a/b", "a"), ("a/b/c", "a"), ("a", "a/b/c")])
def test_a_new_partition_within_another_one_or_around_it_is_refused(
    metadata: dict[str, str], first: str, second: str
) -> None:
    table = a_table(metadata)
    table.insert(rows(one=first, two="z/y"))
    for write in (table.insert, table.upsert, table.bulk_insert, table.insert_overwrite):
        with pytest.raises(Invalid, match=r"partition path 'a/b.*' lies below partition 'a'.*urlencode"):
            write(rows(three=second))
    table.upsert(rows(four="a0", five=first))
    assert ids(table) == ["five", "four", "one", "two"]


@pytest.mark.parametrize("properties", [HIVE, SLASHED, BARE], ids=["hive style", "slashed dates", "no metadata table"])
def test_partitions_within_one_another_in_one_input_are_refused(properties: dict[str, str]) -> None:
    table = a_table(properties)
    given = rows(one="2020-01", two="2020-01-05") if properties is SLASHED else rows(one="a", two="a/b")
    with pytest.raises(Invalid, match="lies below partition"):
        table.insert(given)
    assert len(table.timeline()) == 0
    table.insert(given.slice(0, 1))
    assert ids(table) == ["one"]


@pytest.mark.parametrize("metadata", [{}, BARE])
def test_the_last_of_two_columns_may_not_nest_either(metadata: dict[str, str]) -> None:
    table = a_table(metadata, partition_by=["q", "p"])
    table.insert(rows(one="a").append_column("q", [["x"]]))
    with pytest.raises(Invalid, match="partition path 'x/a/b' lies below partition 'x/a'"):
        table.insert(rows(two="a/b").append_column("q", [["x"]]))


def test_encoded_values_make_no_folders() -> None:
    table = a_table(ENCODED)
    table.insert(rows(one="a", two="a/b"))
    assert ids(table) == ["one", "two"]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
def test_a_table_that_has_such_partitions_keeps_their_rows(
    table_type: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = a_table({}, table_type=table_type, table_version=version)
    with monkeypatch.context() as patch:
        patch.setattr(placement, "refuse_nested_partitions", lambda *_: None)
        table.insert(rows(one="a", two="a/b"))
    point = table.savepoint()
    table.upsert(rows(one="a", two="a/b", three="c"))
    table.restore(point.requested)
    assert ids(table) == ["one", "two"]
    table.metadata.delete()
    assert ids(table) == ["one", "two"]
    table.metadata.create()
    assert ids(table) == ["one", "two"]
    table.upsert(rows(two="a/b", four="a/b"), options=BARE)
    table.upsert(rows(two="a/b"))
    assert ids(table) == ["four", "one", "two"]
    assert table.metadata.validate().is_valid
