"""A delete could compare a part of the ordering columns: those that it needs as key or partition columns."""

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage

EMPTY = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.EmptyHoodieRecordPayload"}
BY_MONTH = {
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
}
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def make(kind: str, **facts: Any) -> HudiTable:
    table = HudiTable.create("", name="t", record_key="id", table_type=kind, storage=MemoryStorage(), **facts)
    table.bulk_insert(rows("a", "b", day=20, seq=5))
    if kind == "MERGE_ON_READ":
        table.upsert(rows("a", day=20, seq=7))
    return table


def rows(*ids: str, day: int, seq: int) -> pa.Table:
    return pa.table({"id": list(ids), "day": [day] * len(ids), "seq": [seq] * len(ids)})


def ids(table: HudiTable) -> list[str]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("ordering", [("day", "seq"), ("seq", "id")])
@pytest.mark.parametrize("by", ["where", "keys"])
def test_a_delete_without_all_ordering_columns_wins(kind: str, version: int, ordering: Any, by: str) -> None:
    if version == 6:
        ordering = ordering[:1]  # it has one
    table = make(kind, table_version=version, ordering=ordering, partition_by="day")
    if by == "where":
        assert table.delete(where="id = 'a'").deleted == 1
    else:
        table.delete(pa.table({"id": ["a"], "day": [20]}))

    assert ids(table) == ["b"]
    if kind == "MERGE_ON_READ":
        table.compact()
        assert ids(table) == ["b"]
    table.upsert(rows("a", day=20, seq=1))
    assert ids(table) == ["a", "b"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_delete_by_another_value_of_a_time_based_partition_column_wins(kind: str) -> None:
    """Both values are of one path. The delete names no `seq`."""
    table = make(kind, table_version=9, ordering=("day", "seq"), partition_by="day", properties=BY_MONTH)
    table.delete(pa.table({"id": ["a"], "day": [10]}))
    assert ids(table) == ["b"]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_the_empty_payload_win_where_the_ordering_column_places_them(kind: str) -> None:
    table = make(kind, ordering="day", partition_by="day", properties=BY_MONTH)
    table.upsert(rows("a", day=10, seq=1), options=EMPTY)
    assert ids(table) == ["b"]


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("version", [5, 6])
def test_up_to_version_7_a_delete_is_compared_with_the_rows_before_it_in_the_log_alone(
    version: int, is_compacted: bool
) -> None:
    table = make("MERGE_ON_READ", table_version=version, ordering="seq")
    if is_compacted:
        table.compact()
    assert table.delete(rows("a", "b", day=20, seq=1)).deleted == 2
    assert ids(table) == ([] if is_compacted else ["a"])
    table.delete(rows("a", "b", day=20, seq=50))
    table.upsert(rows("b", day=20, seq=2))
    assert ids(table) == ["b"]
