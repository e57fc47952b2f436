"""`lookup` could take a key for another one, and answer with no row: each spelling of a key finds its row."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
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


def layouts(values: pa.Array) -> dict[str, Any]:
    """The values as Arrow has them in other layouts."""
    return {
        "an array": values,
        "a slice": pa.concat_arrays([values, values])[len(values) :],
        "chunks": pa.chunked_array([values[:1], values[1:]]),
        "a dictionary": values.dictionary_encode(),
        "dictionaries": pa.chunked_array([values[:1].dictionary_encode(), values[1:].dictionary_encode()]),
        "runs": pc.run_end_encode(values.cast(pa.string()) if values.type == pa.string_view() else values),
        "scalars": list(values),
        "scalars of a dictionary": list(values.dictionary_encode()),
        "no chunks and one": pa.chunked_array([values[:0], values]),
    }


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("layout", layouts(pa.array(["a"])))
def test_texts_in_any_layout_of_arrow_find_their_rows(kind: pa.DataType, layout: str) -> None:
    if kind == pa.string_view() and layout == "scalars of a dictionary":
        pytest.skip("PyArrow makes no array of them")
    table = table_of(pa.table({"id": ["a", "b", "c"]}), [])
    keys = layouts(pa.array(["a", "c"], kind))[layout]

    assert sorted(table.lookup(keys)["id"].to_pylist()) == ["a", "c"]


@pytest.mark.parametrize("given", [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()], ids=str)
@pytest.mark.parametrize("layout", layouts(pa.array([1])))
@pytest.mark.parametrize("stored", [pa.int32(), pa.int64()], ids=str)
def test_whole_numbers_of_any_width_and_layout_find_their_rows(
    stored: pa.DataType, layout: str, given: pa.DataType
) -> None:
    table = table_of(pa.table({"id": pa.array([1, 2, 3], stored)}), [])
    keys = layouts(pa.array([1, 3], given))[layout]

    assert sorted(table.lookup(keys)["id"].to_pylist()) == [1, 3]


def test_numbers_beyond_the_columns_type_are_refused() -> None:
    table = table_of(pa.table({"id": pa.array([1], pa.int32())}), [])

    for keys in (pa.array([2**40]).dictionary_encode(), pa.array([2**63], pa.uint64()), [2**40]):
        with pytest.raises(Invalid, match="keys: expected values of int32"):
            table.lookup(keys)


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1]).cast(pa.duration("s")),
        pa.StringArray.from_buffers(1, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")),
        pa.array([["a"]]),
    ],
    ids=["durations", "no UTF-8", "lists"],
)
def test_an_array_of_what_no_column_of_texts_holds_is_refused(keys: pa.Array) -> None:
    table = table_of(pa.table({"id": ["a"]}), [])

    with pytest.raises(Invalid, match="keys"):
        table.lookup(keys)


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
