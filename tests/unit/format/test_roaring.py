"""Positions that come back otherwise would merge a change into another row.

Real headers of Apache Hudi and the layout's three kinds of containers, back and forth; broken bytes must be ValueError,
and few bytes must not become many numbers.
"""

import base64
import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.format.roaring import decode_roaring, encode_roaring


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


@pytest.mark.parametrize(
    "stored, expected",
    [
        ("AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAEAEAAAAAMABAA=", [3, 4]),
        ("AQAAAAAAAAAAAAAAOzAAAAEAAAkAAQAAAAkA", list(range(10))),
        (base64.b64encode(bytes.fromhex("0100000000000000000000003b30000001000008000300020005000a0001000d000000")),
         [2, 3, 4, 5, 6, 7, 10, 11, 13]),
    ],
)  # fmt: skip
def test_positions_of_apache_hudi(stored, expected):
    content = base64.b64decode(stored)
    found = decode_roaring(content, count_max=100)
    assert found.dtype == np.uint64
    assert found.tolist() == expected
    assert encode_roaring(found) == content


sets = st.one_of(
    st.sets(st.integers(0, 2**64 - 1), max_size=30),
    st.sets(st.integers(0, 300_000), max_size=60),
    st.lists(st.tuples(st.integers(0, 2**34), st.integers(1, 9_000), st.integers(1, 3)), max_size=6).map(
        lambda runs: {first + step * every for first, count, every in runs for step in range(count)}
    ),
)


@given(sets)
def test_sets_come_back(values):
    positions = np.array(sorted(values), np.uint64)
    assert (decode_roaring(encode_roaring(positions), count_max=positions.size) == positions).all()


def test_each_kind_of_container_is_the_smallest():
    array = encode_roaring(numbers(*range(0, 8_000, 2)))
    bits = encode_roaring(numbers(*range(0, 20_000, 2)))
    runs = encode_roaring(np.arange(65_536 * 5, dtype=np.uint64))
    assert (len(array), len(bits)) == (28 + 2 * 4_000, 28 + 8_192)
    assert len(runs) == 8 + 4 + 4 + 1 + 5 * 4 + 5 * 4 + 5 * 6
    assert encode_roaring(numbers()) == bytes(8)
    assert decode_roaring(bytes(8), count_max=0).size == 0


def test_no_more_numbers_are_made_than_asked_for():
    content = encode_roaring(np.arange(1 << 20, dtype=np.uint64))
    assert len(content) < 300
    with pytest.raises(ValueError, match="at most 1,000 further numbers"):
        decode_roaring(content, count_max=1_000)


@pytest.mark.parametrize("values", [[3, 3], [4, 3]])
def test_numbers_that_do_not_ascend_are_refused(values):
    with pytest.raises(ValueError, match="ascending"):
        encode_roaring(numbers(*values))


@given(
    st.one_of(st.binary(max_size=60), sets.map(lambda one: encode_roaring(np.array(sorted(one), np.uint64)))), st.data()
)
def test_broken_bytes_are_value_errors(content, data):
    broken = bytearray(content[:400])
    for _ in range(3 if broken else 0):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        found = decode_roaring(bytes(broken), count_max=10**6)
        assert (found[1:] > found[:-1]).all()
