"""Of two rows of one key the wrong one could survive; a plain dict, row by row, says which is right."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyhudi.merge.latest import encode_keys, incoming_wins, latest_per_key, match_all, match_rows

NUMBERS = st.none() | st.integers(-3, 3)
FLOATS = st.none() | st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan])
ROWS = st.lists(st.tuples(st.sampled_from("abc"), NUMBERS, FLOATS), max_size=12)


def rank(value: float | None) -> tuple[int, float, int]:
    """The order of Java's comparators: null, numbers, NaN; -0.0 before 0.0."""
    if value is None:
        return 0, 0.0, 0
    if math.isnan(value):
        return 2, 0.0, 0
    return 1, value, 0 if math.copysign(1, value) < 0 else 1


def table_of(rows: list[tuple[Any, ...]], chunks: int = 1) -> pa.Table:
    kinds = {"k": pa.string(), "n": pa.int64(), "x": pa.float64(), "row": pa.int64()}
    columns = [[*row, at] for at, row in enumerate(rows)]
    size = max(1, math.ceil(len(rows) / chunks))
    parts = [columns[at : at + size] for at in range(0, len(columns), size)] or [[]]
    tables = [
        pa.table({name: pa.array([row[i] for row in part], kind) for i, (name, kind) in enumerate(kinds.items())})
        for part in parts
    ]
    return pa.concat_tables(tables)


@given(ROWS, st.sampled_from([(), ("n",), ("x",), ("n", "x"), ("x", "n")]), st.integers(1, 3))
def test_latest_per_key_keeps_what_a_dict_keeps(rows: list[Any], order: tuple[str, ...], chunks: int) -> None:
    kept: dict[str, int] = {}
    for at, row in enumerate(rows):
        values = {"n": row[1], "x": row[2]}
        best = kept.get(row[0])
        if best is None or [rank(values[c]) for c in order] >= [rank(rows[best][1 + "nx".index(c)]) for c in order]:
            kept[row[0]] = at

    found = latest_per_key(table_of(rows, chunks), key="k", order=order)

    assert found.column("row").to_pylist() == sorted(kept.values())


def test_rows_without_repeated_keys_are_given_back_as_they_are() -> None:
    rows = table_of([("b", 1, None), ("a", 1, None)])

    assert latest_per_key(rows, key="k", order=["n"]) is rows


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"a", b"b"]),
        pa.array(["a", "b"]),
        pa.array([1, 2], pa.timestamp("us", "UTC")),
        pa.array([1, 2], pa.date32()),
        pa.array([False, True]),
        pa.array([1, 2], pa.decimal128(10, 2)),
        pa.array([1.0, 2.0], pa.float32()),
    ],
    ids=lambda values: str(values.type),
)
def test_any_ordered_type_may_order(values: pa.Array) -> None:
    rows = pa.table({"k": ["a", "a"], "o": values.take([1, 0]), "row": [0, 1]})

    assert latest_per_key(rows, key="k", order=["o"]).column("row").to_pylist() == [0]
    assert incoming_wins([values.take([1, 0, 1])], [values.take([0, 1, 1])]).tolist() == [True, False, True]


@given(st.lists(st.tuples(NUMBERS, NUMBERS, FLOATS, FLOATS), max_size=12), st.booleans())
def test_incoming_wins_unless_it_is_less(rows: list[Any], is_numbers_first: bool) -> None:
    new_n, old_n, new_x, old_x = ([row[at] for row in rows] for at in range(4))
    incoming = [pa.array(new_n, pa.int64()), pa.array(new_x, pa.float64())]
    stored = [pa.array(old_n, pa.int64()), pa.array(old_x, pa.float64())]
    step = 1 if is_numbers_first else -1

    wins = incoming_wins(incoming[::step], stored[::step])

    assert wins.dtype == bool
    assert wins.tolist() == [[rank(a), rank(c)][::step] >= [rank(b), rank(d)][::step] for a, b, c, d in rows]


@given(NUMBERS, NUMBERS)
def test_one_batch_and_two_commits_keep_the_same_row(first: int | None, second: int | None) -> None:
    """A row that wins over the one before it in a batch wins over it when it is stored, too."""
    batch = latest_per_key(table_of([("a", first, None), ("a", second, None)]), key="k", order=["n"])

    wins = incoming_wins([pa.array([second], pa.int64())], [pa.array([first], pa.int64())])

    assert batch.column("row").to_pylist() == [int(wins[0])]


@given(st.lists(st.integers(-3, 3), max_size=6))
@example([-1, 0, 3])
@example([1, 1, 2])
def test_numbers_are_told_apart_in_whatever_order_they_come(keys: list[int]) -> None:
    codes, distinct = encode_keys(pa.array(keys, pa.int64()))

    assert codes.dtype == np.int32
    assert distinct.to_pylist() == list(dict.fromkeys(keys))
    assert distinct.take(pa.array(codes)).to_pylist() == keys


@pytest.mark.parametrize("keys", [["b", "a"], [], ["a"]])
def test_stored_rows_of_the_same_keys_in_the_same_order_match_one_to_one(keys: list[str]) -> None:
    chunks = pa.chunked_array([[key] for key in keys], pa.string())

    found = match_rows(chunks, pa.array(keys, pa.string()))

    assert found.dtype == np.int32
    assert found.tolist() == list(range(len(keys)))


@given(st.lists(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdefgh")))
def test_match_rows_is_a_look_up(stored: list[str], incoming: set[str]) -> None:
    keys = sorted(incoming, reverse=True)

    found = match_rows(pa.array(stored, pa.string()), pa.chunked_array([keys], pa.string()))

    assert found.dtype == np.int32
    assert found.tolist() == [keys.index(key) if key in incoming else -1 for key in stored]


@given(st.lists(st.sampled_from("abcdef")), st.lists(st.sampled_from("abcdefgh")))
def test_match_all_finds_every_pair_of_equal_keys(keys: list[str], other: list[str]) -> None:
    found = match_all(pa.array(keys, pa.string()), pa.chunked_array([other], pa.string()))

    pairs = [(at, to) for at, key in enumerate(keys) for to, other_key in enumerate(other) if key == other_key]
    assert list(zip(*(one.tolist() for one in found), strict=True)) == pairs
