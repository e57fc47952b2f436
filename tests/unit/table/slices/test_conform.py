"""A column read from an old file could lose values, shift rows, or mix up fields on its way to the table's schema."""

import decimal
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile, Invalid
from pyhudi.table.slices.conform import conform_array, conform_batch, conform_input


def conform(values: pa.Array, target: pa.DataType) -> list[Any]:
    found = conform_array(values, target, path="a.parquet", name="c")

    assert found.type == target
    found.validate(full=True)
    return found.to_pylist()


@pytest.mark.parametrize(
    "values, target, expected",
    [
        (pa.array([1, None], pa.int32()), pa.int64(), [1, None]),
        (pa.array([1, None], pa.int32()), pa.float64(), [1.0, None]),
        (pa.array([1.5, None], pa.float32()), pa.float64(), [1.5, None]),
        (pa.array([0.1, None, -3.4e38, 1e-45], pa.float32()), pa.float64(), [0.1, None, -3.4e38, 1.4e-45]),
        (pa.array([2**53 + 1, None]), pa.float64(), [float(2**53), None]),
        (pa.array([2**24 + 1, None], pa.int32()), pa.float32(), [float(2**24), None]),
        (pa.array([0.1, 1e10, None]), pa.string(), ["0.1", "1.0E10", None]),
        (pa.array([7, None], pa.int32()), pa.string(), ["7", None]),
        (pa.array(["a", None]), pa.binary(), [b"a", None]),
        (pa.array([b"a", None]), pa.string(), ["a", None]),
        (pa.array([b"ab"], pa.binary(2)), pa.binary(), [b"ab"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), pa.string(), ["a", "b", "a"]),
        (pa.array([1], pa.timestamp("ms", "UTC")), pa.timestamp("us", "UTC"), None),
        (pa.array([decimal.Decimal("1.5")], pa.decimal128(3, 1)), pa.decimal128(10, 2), [decimal.Decimal("1.50")]),
        (pa.array([None, None]), pa.struct([("a", pa.int32())]), [None, None]),
    ],
    ids=str,
)
def test_types_are_promoted(values: pa.Array, target: pa.DataType, expected: list[Any] | None) -> None:
    found = conform(values, target)

    assert expected is None or found == expected


def test_an_array_of_the_type_itself_is_not_copied() -> None:
    values = pa.array([1, 2])

    assert conform_array(values, pa.int64(), path="", name="") is values


@pytest.mark.parametrize(
    "values, target",
    [
        (pa.array(["x"]), pa.int32()),
        (pa.array([2**40]), pa.int32()),
        (pa.array([[1]]), pa.int32()),
        (pa.array([1]), pa.list_(pa.int32())),
        (pa.array([b"\xff"]), pa.string()),
    ],
    ids=str,
)
def test_a_type_that_cannot_be_read_names_file_and_column(values: pa.Array, target: pa.DataType) -> None:
    with pytest.raises(CorruptFile, match=r"^a\.parquet.*column 'c'"):
        conform(values, target)


def test_an_error_within_names_the_way_to_it() -> None:
    values = pa.array([{"l": [{"x": "y"}]}])
    target = pa.struct([("l", pa.list_(pa.struct([("x", pa.int32())])))])

    with pytest.raises(CorruptFile, match=r"column 'c\.l\[\]\.x'"):
        conform(values, target)


def test_fields_of_structs_go_by_name() -> None:
    values = pa.array([{"a": 1, "gone": 2, "b": "x"}, None, {"a": None, "gone": 3, "b": "y"}])
    target = pa.struct([("b", pa.string()), ("new", pa.int32()), ("a", pa.float64())])

    assert conform(values, target) == [{"b": "x", "new": None, "a": 1.0}, None, {"b": "y", "new": None, "a": None}]


def test_a_batch_has_exactly_the_fields_of_the_schema() -> None:
    batch = pa.RecordBatch.from_pydict({"gone": [1, 2], "b": pa.array([1, 2], pa.int32()), "a": ["x", None]})
    schema = pa.schema([("a", pa.string()), ("new", pa.list_(pa.int32())), ("b", pa.int64())])

    found = conform_batch(batch, schema, path="a.parquet")

    assert found.schema == schema
    assert found.to_pydict() == {"a": ["x", None], "new": [None, None], "b": [1, 2]}


def test_a_batch_keeps_its_rows_when_all_its_columns_are_new() -> None:
    found = conform_batch(pa.RecordBatch.from_pydict({"gone": [1, 2]}), pa.schema([("a", pa.int32())]), path="")

    assert found.to_pydict() == {"a": [None, None]}


STORED = pa.struct(
    [("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32())), ("s", pa.struct([("x", pa.int32())]))]
)
WANTED = pa.struct(
    [
        ("s", pa.struct([("new", pa.string()), ("x", pa.int64())])),
        ("l", pa.list_(pa.int64())),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)
INTS = st.none() | st.integers(-5, 5)
STRUCTS = st.none() | st.fixed_dictionaries(
    {
        "l": st.none() | st.lists(INTS, max_size=3),
        "m": st.none() | st.lists(st.tuples(st.sampled_from("ab"), INTS), max_size=2),
        "s": st.none() | st.fixed_dictionaries({"x": INTS}),
    }
)


def as_wanted(value: Any) -> Any:
    if value is None:
        return None
    inner = None if value["s"] is None else {"new": None, "x": value["s"]["x"]}
    return {"s": inner, "l": value["l"], "m": value["m"]}


@given(st.lists(STRUCTS, max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_nested_values_stay_what_and_where_they_are_in_slices_too(values: list[Any], start: int, size: int) -> None:
    part = pa.array(values, STORED).slice(min(start, len(values)), size)

    assert conform(part, WANTED) == [as_wanted(value) for value in values[start : start + size]]


@given(st.lists(st.none() | st.lists(INTS, max_size=3), max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_lists_stay_what_they_are_in_slices_too(values: list[Any], start: int, size: int) -> None:
    part = pa.array(values, pa.list_(pa.int32())).slice(min(start, len(values)), size)

    assert conform(part, pa.list_(pa.int64())) == values[start : start + size]


def test_stored_times_that_are_finer_than_the_column_are_its_last_unit_and_those_of_an_input_are_refused() -> None:
    """Spark's writers of older releases put microseconds into files of a column of milliseconds."""
    schema = pa.schema([("l", pa.list_(pa.struct([("at", pa.timestamp("ms", "UTC"))])))])
    finer = pa.struct([("at", pa.timestamp("us", "UTC"))])
    times = pa.array([1_999, -1], pa.int64()).view(pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"l": pa.array([[{"at": at}] for at in times.to_pylist()], pa.list_(finer))})
    found = conform_batch(batch, schema, path="f").column("l").flatten().field("at")
    assert found.cast(pa.int64()).to_pylist() == [1, -1]
    with pytest.raises(Invalid, match=r"input: expected column 'l\[\]\.at' readable as timestamp.ms.*round the column"):
        conform_input(batch, schema)
    whole = pa.record_batch({"l": pa.array([[{"at": datetime(2026, 1, 1, tzinfo=UTC)}]], pa.list_(finer))})
    assert conform_input(whole, schema).schema == schema
