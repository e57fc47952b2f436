"""A comparison that overlooks a difference makes every test that uses it worthless; one that sees
differences where there are none makes them a nuisance. Each kind of value is held up to both."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.support.compare import assert_same_rows

NAN_WITH_PAYLOAD = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]
POINT = pa.struct([("x", pa.int32()), ("y", pa.float32())])
NESTED = pa.list_(pa.list_(pa.string()))
POINTS = pa.map_(pa.string(), pa.list_(POINT))
AT = dt.datetime(2026, 11, 21, 13, 0, 0, 1, tzinfo=dt.UTC)
SECOND = AT.replace(microsecond=0)

# A type, and values of it that all differ from each other.
DISTINCT: list[tuple[pa.DataType, list]] = [
    (pa.bool_(), [True, False, None]),
    (pa.int8(), [1, -1, None]),
    (pa.int64(), [0, 1, -(2**63), 2**63 - 1, None]),
    (pa.float32(), [0.0, -0.0, 0.1, math.nan, math.inf, -math.inf, None]),
    (pa.float64(), [0.0, -0.0, 0.1, 0.1 + 2**-56, math.nan, math.inf, None]),
    (pa.string(), ["", "a", "A", "é", "null", None]),
    (pa.binary(), [b"", b"\x00", b"\x00\x00", None]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(2026, 11, 21), None]),
    (pa.timestamp("us"), [dt.datetime(1, 1, 1), dt.datetime(2026, 11, 21, 0, 0, 0, 1), None]),
    (pa.timestamp("us", "UTC"), [AT, AT + dt.timedelta(microseconds=1), None]),
    (pa.decimal128(20, 2), [Decimal("0.00"), Decimal("0.01"), Decimal("-123456789012345678.90"), None]),
    (pa.list_(pa.int32()), [[], [None], [1], [1, 2], [2, 1], [1, None], [0], None]),
    (NESTED, [[], [[]], [["a"], []], [[], ["a"]], [["a", ""]], [[None]], [None], None]),
    (POINT, [{"x": 1, "y": 0.5}, {"x": 1, "y": math.nan}, {"x": None, "y": None}, None]),
    (pa.map_(pa.string(), pa.int64()), [{}, {"a": 1}, {"a": None}, {"b": 1}, {"a": 1, "b": 2}, None]),
    (pa.list_(POINT), [[], [{"x": 1, "y": 2.0}], [{"x": 1, "y": 2.0}, None], [None, {"x": 1, "y": 2.0}]]),
    (POINTS, [{"a": []}, {"a": [None]}, {"a": [{"x": 1, "y": 1.0}]}, {"a": None}]),
]  # fmt: skip


def one_column(kind: pa.DataType, values: list) -> pa.Table:
    return pa.table({"value": pa.array(values, kind)})


@pytest.mark.parametrize("kind,values", DISTINCT, ids=lambda case: str(case)[:30])
def test_each_value_equals_itself_and_no_other(kind: pa.DataType, values: list) -> None:
    for value in values:
        for other in values:
            actual, expected = one_column(kind, [value]), one_column(kind, [other])
            if value is other:
                assert_same_rows(actual, expected)
            else:
                with pytest.raises(AssertionError, match="rows differ"):
                    assert_same_rows(actual, expected)


@pytest.mark.parametrize("kind,values", DISTINCT, ids=lambda case: str(case)[:30])
@pytest.mark.parametrize("number", ["n", "id"])  # "id" is taken for a key
def test_rows_in_any_order_and_chunks_are_the_same_and_a_changed_or_missing_row_is_not(
    kind: pa.DataType, values: list, number: str
) -> None:
    rows = pa.table({number: range(len(values) * 3), "value": pa.array(values * 3, kind)})
    order = random.Random(3).sample(range(rows.num_rows), rows.num_rows)
    shuffled = rows.take(order)
    pieces = pa.concat_tables([shuffled.slice(0, 2), shuffled.slice(2, 0), shuffled.slice(2)])
    assert_same_rows(pieces.select(["value", number]), rows)
    for i, other in enumerate(values[1:]):
        changed = rows.set_column(1, "value", pa.array([*values[:i], other, *values[i + 1 :], *values * 2], kind))
        with pytest.raises(AssertionError, match="1 only in actual, 1 only in expected"):
            assert_same_rows(changed, rows)
    for lost in (0, rows.num_rows - 1):
        with pytest.raises(AssertionError, match="0 only in actual, 1 only in expected"):
            assert_same_rows(rows.filter(pa.array([n != lost for n in range(rows.num_rows)])), rows)


def test_how_often_a_row_is_there_counts() -> None:
    with pytest.raises(AssertionError, match="1 only in actual, 1 only in expected"):
        assert_same_rows(one_column(pa.int64(), [1, 1, 2]), one_column(pa.int64(), [1, 2, 2]))
    assert_same_rows(one_column(pa.int64(), [2, 1, 2]), one_column(pa.int64(), [1, 2, 2]))


def test_any_nan_is_the_same_nan() -> None:
    assert_same_rows(one_column(pa.float64(), [NAN_WITH_PAYLOAD]), one_column(pa.float64(), [math.nan]))


def test_entries_of_a_map_have_no_order() -> None:
    kind = pa.map_(pa.string(), pa.int32())
    actual = one_column(kind, [[("a", 1), ("b", 2)], [("c", None), ("a", 0), ("b", 0)]])
    expected = one_column(kind, [[("b", 2), ("a", 1)], [("a", 0), ("b", 0), ("c", None)]])
    assert_same_rows(actual, expected)
    crossed = one_column(kind, [[("b", 1), ("a", 2)], [("a", 0), ("b", 0), ("c", None)]])
    with pytest.raises(AssertionError):
        assert_same_rows(actual, crossed)


@pytest.mark.parametrize(
    "actual,expected",
    [
        (pa.array(["a", None], pa.large_string()), pa.array(["a", None])),
        (pa.array(["a", None, "a"]).dictionary_encode(), pa.array(["a", None, "a"])),
        (pa.array([b"ab"], pa.binary(2)), pa.array([b"ab"])),
        (pa.array([SECOND], pa.timestamp("s", "Europe/Oslo")), pa.array([SECOND])),
        (pa.array([[1], None], pa.large_list(pa.int8())), pa.array([[1], None], pa.list_(pa.int8()))),
        (
            pa.array([[("a", ["b"])]], pa.map_(pa.large_string(), pa.large_list(pa.large_string()))),
            pa.array([[("a", ["b"])]], pa.map_(pa.string(), pa.list_(pa.string()))),
        ),
    ],
    ids=["large", "dictionary", "fixed", "zone-and-unit", "list", "map"],
)  # fmt: skip
def test_layout_and_unit_do_not_matter(actual: pa.Array, expected: pa.Array) -> None:
    assert_same_rows(pa.table({"value": actual}), pa.table({"value": expected}))


@pytest.mark.parametrize(
    "actual,expected",
    [
        (pa.int32(), pa.int64()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.decimal128(10, 2), pa.decimal128(12, 2)),
        (pa.list_(pa.float32()), pa.list_(pa.float64())),
        (pa.string(), pa.binary()),
    ],
    ids=str,
)
def test_types_matter_unless_told_otherwise(actual: pa.DataType, expected: pa.DataType) -> None:
    with pytest.raises(AssertionError, match="types differ"):
        assert_same_rows(one_column(actual, [None]), one_column(expected, [None]))
    assert_same_rows(one_column(actual, [None]), one_column(expected, [None]), same_types=False)


def test_columns_are_named_when_they_differ_and_may_be_ignored() -> None:
    rows = pa.table({"id": [1], "left": [1]})
    with pytest.raises(AssertionError, match=r"missing: right; not expected: left"):
        assert_same_rows(rows, pa.table({"id": [1], "right": [1]}))
    assert_same_rows(rows, pa.table({"id": [1], "right": [1]}), ignore_columns={"left", "right"})
    with pytest.raises(AssertionError, match="twice in actual: id"):
        assert_same_rows(pa.table([[1], [1]], names=["id", "id"]), pa.table({"id": [1]}))


def test_empty_tables_and_tables_without_columns() -> None:
    empty = one_column(pa.map_(pa.string(), pa.int32()), [])
    assert_same_rows(empty, empty)
    with pytest.raises(AssertionError, match="0 rows, expected 1"):
        assert_same_rows(empty, one_column(pa.map_(pa.string(), pa.int32()), [{}]))
    with pytest.raises(AssertionError, match="2 rows, expected 1; there are no columns"):
        assert_same_rows(pa.table({"value": [1, 2]}), pa.table({"value": [1]}), ignore_columns=["value"])


def test_the_message_shows_both_values_of_a_row_and_rows_that_one_side_lacks() -> None:
    actual = pa.table({"id": ["a", "b", "x"], "fare": [1.5, 2.0, 9.0], "city": ["oslo", "rome", "lima"]})
    expected = pa.table({"id": ["a", "b", "y"], "fare": [1.0, 2.0, 8.0], "city": ["oslo", "rome", "bern"]})
    with pytest.raises(AssertionError) as caught:
        assert_same_rows(actual, expected)
    assert str(caught.value).splitlines() == [
        "rows differ: 3 rows, expected 3; 2 only in actual, 2 only in expected",
        "1 pairs of like rows looked at; they differ in fare in 1",
        "row 0 of actual, row 0 of expected: id = 'a'",
        "  fare: 1.5, expected 1.0",
        "only in actual, row 2: {id: 'x', fare: 9.0, city: 'lima'}",
        "only in expected, row 2: {id: 'y', fare: 8.0, city: 'bern'}",
    ]
