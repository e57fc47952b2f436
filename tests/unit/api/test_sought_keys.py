"""`lookup` could take a key for another one, and answer with no row: each spelling of a key finds its row."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Invalid
from pyhudi.storage.memory import MemoryStorage
from tests.support.versions import EVERY_VERSION


def table_of(rows: pa.Table, partition_by: list[str], version: int = 8) -> HudiTable:
    storage = MemoryStorage()
    table = HudiTable.create(
        storage.location.uri, name="t", record_key="id", partition_by=partition_by, table_version=version,
        storage=storage, executor=SerialExecutor(),
    )  # fmt: skip
    table.upsert(rows)
    return table


@pytest.mark.parametrize("version", EVERY_VERSION)
@pytest.mark.parametrize("partition_by", [[], ["p"], ["p", "q"]])
def test_values_and_texts_of_a_text_column_find_their_rows(partition_by: list[str], version: int) -> None:
    """With several partition columns a record key is `id:a` in version 9."""
    table = table_of(pa.table({"id": ["a", "b:c", "d"], "p": ["x"] * 3, "q": ["y"] * 3}), partition_by, version)
    texts = table.scan(columns=["_hoodie_record_key"]).to_arrow().column(0).to_pylist()

    assert sorted(table.lookup(["a", "b:c"])["id"].to_pylist()) == ["a", "b:c"]
    assert sorted(table.lookup(texts)["id"].to_pylist()) == ["a", "b:c", "d"]
    assert table.lookup(["e"]).num_rows == 0


@pytest.mark.parametrize("version", EVERY_VERSION)
@pytest.mark.parametrize("partition_by", [[], ["p", "q"]])
def test_values_and_texts_of_numbers_find_their_rows(partition_by: list[str], version: int) -> None:
    table = table_of(pa.table({"id": [1, 2], "p": ["x"] * 2, "q": ["y"] * 2}), partition_by, version)

    for keys in ([1, 2], ["1", "2"], pa.table({"id": [1, 2]}), pa.table({"id": pa.array([1, 2], pa.int32())})):
        assert sorted(table.lookup(keys)["id"].to_pylist()) == [1, 2]


def test_whole_numbers_find_keys_that_are_decimals() -> None:
    table = table_of(pa.table({"id": pa.array([Decimal(1), Decimal(2)], pa.decimal128(10, 2))}), [])

    for keys in ([2], pa.table({"id": [2]}), pa.table({"id": pa.array([Decimal(2)], pa.decimal128(3, 0))})):
        assert table.lookup(keys)["_hoodie_record_key"].to_pylist() == ["2.00"]


@pytest.mark.parametrize(
    "days, given",
    [
        (pa.array([date(2020, 1, 1)]), pa.array([datetime(2020, 1, 1)], pa.timestamp("ns"))),
        (pa.array([1]), pa.array([1.0])),
        (pa.array([1]), pa.array([Decimal("1.0")])),
        (pa.array(["1"]), pa.array([1])),
    ],
    ids=lambda values: str(values.type),
)
def test_a_value_of_a_partition_column_of_another_type_is_refused(days: pa.Array, given: pa.Array) -> None:
    table = table_of(pa.table({"id": ["a"], "p": days}), ["p"])

    with pytest.raises(Invalid, match=f"keys: expected {days.type}.* as in the partition column 'p'".replace("[", ".")):
        table.lookup(pa.table({"id": ["a"], "p": given}))
    assert table.lookup(pa.table({"id": ["a"], "p": days})).num_rows == 1


@pytest.mark.parametrize("kind", [pa.decimal128(10, 2), pa.float64(), pa.int64()], ids=str)
def test_a_narrower_number_of_a_partition_column_finds_its_row(kind: pa.DataType) -> None:
    table = table_of(pa.table({"id": ["a"], "p": pa.array(["1"]).cast(kind)}), ["p"])

    assert table.lookup(pa.table({"id": ["a"], "p": pa.array([1], pa.int32())})).num_rows == 1


@pytest.mark.parametrize(
    "keys, message",
    [
        (None, "expected a sequence of record keys"),
        (1, "expected a sequence of record keys"),
        (["\ud800"], "expected texts of record keys"),
        (b"a", "expected a sequence of record keys"),
        ({"id": ["a"]}, "expected a sequence of record keys"),
        (pa.table({"id": [1]}), "keys: expected string as in the key column 'id', found int64"),
    ],
)
def test_what_are_no_keys_of_the_table_is_refused(keys: Any, message: str) -> None:
    table = table_of(pa.table({"id": ["a"]}), [])

    with pytest.raises(Invalid, match=message):
        table.lookup(keys)
