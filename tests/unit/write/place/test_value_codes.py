"""Codes could order values otherwise than Spark does, take two values for one, or tell equal ones apart.

Every type is held against Python's own order of its values; text also where its first bytes do not tell it apart.
"""

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import Invalid
from pyhudi.write.place.value_codes import shared_bytes, sorted_rows, value_codes, words_at


def codes(values: pa.Array | pa.ChunkedArray) -> list[int]:
    found, distinct = value_codes(values, name="c")
    assert distinct == len(set(found.tolist()))
    return found.tolist()


def expected(values: Sequence[Any]) -> list[int]:
    """The places of values among the distinct ones, by Python's order; nulls first."""
    in_order = sorted({value for value in values if value is not None})
    first = int(None in values)
    places = {value: place + first for place, value in enumerate(in_order)} | {None: 0}
    return [places[value] for value in values]


def day(number: int) -> datetime.date:
    return datetime.date(1969, 12, 25) + datetime.timedelta(days=number)


def moment(number: int) -> datetime.datetime:
    return datetime.datetime(1969, 12, 31, 23, 59, 59) + datetime.timedelta(microseconds=number * 333_333)


CASES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [3, -128, None, 127, 3]),
    "int16": (pa.int16(), [-1, 0, 1, -1]),
    "int32": (pa.int32(), [2**31 - 1, -(2**31), 0, None]),
    "int64": (pa.int64(), [2**63 - 1, -(2**63), 0, None, 0]),
    "uint64": (pa.uint64(), [2**64 - 1, 0, 2**63, None]),
    "float": (pa.float32(), [0.5, -0.5, None, math.inf, -math.inf]),
    "double": (pa.float64(), [1e300, -1e300, 5e-324, -5e-324, 0.0, None]),
    "short decimal": (pa.decimal128(18, 3), [Decimal("-1.5"), Decimal("1.25"), None, Decimal("-999999999999999.999")]),
    "long decimal": (pa.decimal128(38, 0), [Decimal(10**37), Decimal(-(10**37)), None, Decimal(5)]),
    "decimal256": (pa.decimal256(60, 0), [Decimal(10**50), Decimal(-(10**50)), None, Decimal(5)]),
    "decimal64": (pa.decimal64(10, 2), [Decimal("1.25"), Decimal("-3.50"), None, Decimal("1.25")]),
    "string": (pa.string(), ["b", "a", None, "", "é", "z", "a"]),
    "large string": (pa.large_string(), ["b", "a", None]),
    "string view": (pa.string_view(), ["b", "a", None, "a longer one than a view holds itself"]),
    "binary": (pa.binary(), [b"\xff", b"\x00", b"", None, b"\x00\x00"]),
    "fixed binary": (pa.binary(2), [b"\xff\x00", b"\x00\xff", None, b"\x00\x00"]),
    "boolean": (pa.bool_(), [True, None, False, True]),
    "date32": (pa.date32(), [day(20), day(0), None, day(6)]),
    "date64": (pa.date64(), [day(20), day(0), None, day(6)]),
    "timestamp": (pa.timestamp("us"), [moment(9), moment(0), None, moment(1)]),
    "timestamp in a zone": (pa.timestamp("us", "UTC"), [moment(9), moment(0), None, moment(1)]),
    "time": (pa.time64("us"), [datetime.time(9), datetime.time(0), None, datetime.time(23, 59)]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["b", "a", None, "b"]),
    "nothing": (pa.null(), [None, None]),
}


@pytest.mark.parametrize("case", CASES)
def test_values_of_every_type_have_the_order_of_their_type(case: str) -> None:
    kind, values = CASES[case]
    array = pa.array(values, kind)
    assert codes(array) == expected(values)
    assert codes(pa.concat_arrays([array, array]).slice(1, len(values))) == expected([*values[1:], values[0]])
    assert codes(pa.chunked_array([array, array])) == expected([*values, *values])
    assert codes(array.slice(0, 0)) == []


def test_floats_have_one_zero_and_one_nan_that_is_the_greatest() -> None:
    other_nan = np.array([0xFFF8_0000_0000_0001], np.uint64).view(np.float64)
    array = pa.array(np.concatenate([[math.nan, math.inf, -0.0, 0.0], other_nan]), mask=np.zeros(5, bool))
    assert codes(array) == [2, 1, 0, 0, 2]
    assert codes(pa.concat_arrays([array, pa.array([None], pa.float64())])) == [3, 2, 1, 1, 3, 0]


@settings(max_examples=200, deadline=None)
@given(
    start=st.sampled_from([b"", b"https://", b"https://www.example.org/"]),
    ends=st.lists(st.none() | st.binary(max_size=3) | st.text("ab\x00", max_size=12).map(str.encode), max_size=40),
)
def test_bytes_have_their_order_where_they_begin_alike(start: bytes, ends: list[bytes | None]) -> None:
    values = [None if end is None else start + end for end in ends]
    assert codes(pa.array(values, pa.binary())) == expected(values)


def test_a_value_and_the_same_with_a_zero_byte_are_two() -> None:
    assert codes(pa.array([b"a\x00", b"a", b"a\x00\x00", b"a"])) == [1, 0, 2, 0]


def test_nested_values_are_refused_by_name() -> None:
    with pytest.raises(Invalid, match=r"column 'tags': rows cannot be ordered by values of type list"):
        value_codes(pa.array([[1], [2]]), name="tags")


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3), max_size=30))
def test_rows_are_sorted_stably_with_and_without_room_for_their_numbers(keys: list[int]) -> None:
    order, in_order = sorted_rows(np.array(keys, np.uint64))
    assert order.tolist() == sorted(range(len(keys)), key=lambda row: keys[row])
    assert in_order.tolist() == sorted(keys)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=12), min_size=1, max_size=8))
def test_shared_bytes_and_words_are_those_of_the_values(values: list[bytes]) -> None:
    data = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *map(len, values)])
    shared = shared_bytes(data, offsets)
    assert shared_bytes.compiled(data, offsets) == shared  # type: ignore[attr-defined]
    first = values[0]
    assert all(value.startswith(first[:shared]) for value in values)
    assert shared == len(first) or not all(value.startswith(first[: shared + 1]) for value in values)

    expected_words = [int.from_bytes(value[shared : shared + 8].ljust(8, b"\0"), "big") for value in values]
    assert words_at(data, offsets, shared).tolist() == expected_words
    assert words_at.compiled(data, offsets, shared).tolist() == expected_words  # type: ignore[attr-defined]
