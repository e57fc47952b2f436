"""A layout could lose or repeat rows, leave its curve, or skip fewer files than it should.

Positions are held against a brute-force model: the Z curve by its definition, Hilbert's by the rule that it visits
each cell of the cube once, enters no cell but a neighbour, and does so within every sub-cube. Orders of rows are held
against Python's sort.
"""

import itertools
import math
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import Invalid
from pyhudi.write.place.curves import CURVES, Curve, curve_order, hilbert_positions, spread, z_positions

CUBES = [(1, 4), (2, 1), (2, 2), (2, 5), (3, 1), (3, 3), (4, 2), (5, 2), (8, 1)]


def cells(sides: int, bits: int) -> np.ndarray:
    """Every cell of a cube. Shape: (sides, cells)."""
    return np.array(list(itertools.product(range(1 << bits), repeat=sides)), np.uint64).T.copy()


@pytest.mark.parametrize("sides, bits", CUBES)
def test_z_positions_are_the_bits_in_turns(sides: int, bits: int) -> None:
    cube = cells(sides, bits)
    expected = [
        int("".join("".join(digits) for digits in zip(*(f"{int(c):0{bits}b}" for c in cell), strict=True)), 2)
        for cell in cube.T
    ]
    assert z_positions(cube, bits).tolist() == expected


@pytest.mark.parametrize("sides, bits", CUBES)
def test_hilberts_curve_visits_each_cell_once_and_enters_neighbours_only(sides: int, bits: int) -> None:
    cube = cells(sides, bits)
    positions = hilbert_positions(cube, bits)
    assert np.sort(positions).tolist() == list(range(1 << (sides * bits)))

    walk = cube.T[np.argsort(positions)].astype(np.int64)
    assert walk[0].tolist() == [0] * sides
    assert (np.abs(np.diff(walk, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("sides, bits", [(2, 4), (3, 3)])
@pytest.mark.parametrize("positions", CURVES.values(), ids=CURVES.keys())
def test_a_curve_leaves_a_sub_cube_only_when_all_its_cells_are_visited(positions, sides: int, bits: int) -> None:
    cube = cells(sides, bits)
    walk = cube.T[np.argsort(positions(cube, bits))]
    for level in range(1, bits):
        sub_cubes = walk >> np.uint64(bits - level)
        changes = (np.diff(sub_cubes.astype(np.int64), axis=0) != 0).any(axis=1).sum()
        assert changes == (1 << (sides * level)) - 1


def test_hilberts_curve_of_two_by_two() -> None:
    x, y = np.array([0, 0, 1, 1], np.uint64), np.array([0, 1, 1, 0], np.uint64)
    assert hilbert_positions(np.stack([x, y]), 1).tolist() in ([0, 1, 2, 3], [0, 3, 2, 1])


def test_positions_of_whole_64_bits_are_compiled_as_they_are_interpreted() -> None:
    random = np.random.default_rng(5)
    for sides in (2, 3, 5, 8):
        bits = 64 // sides
        points = random.integers(0, 1 << bits, (sides, 50), np.uint64)
        for positions in (z_positions, hilbert_positions):
            with np.errstate(over="ignore"):
                interpreted = positions.interpreted(points, bits)  # type: ignore[attr-defined]
            assert positions.compiled(points, bits).tolist() == interpreted.tolist()  # type: ignore[attr-defined]


VALUES = st.none() | st.integers(-3, 3)
ROWS = st.lists(st.tuples(VALUES, st.none() | st.text("ab", max_size=3), st.none() | st.booleans()), max_size=30)


@settings(deadline=None)
@given(rows=ROWS, curve=st.sampled_from(get_args(Curve)))
def test_every_layout_holds_each_row_once_and_equal_rows_stay_in_order(rows, curve: Curve) -> None:
    table = pa.table({name: list(column) for name, column in zip("xyz", zip(*rows, strict=True), strict=False)})
    if not rows:
        table = pa.table({name: pa.array([], pa.int64()) for name in "xyz"})
    order = curve_order(table, ["x", "y", "z"], curve)
    assert order.type == pa.int64()
    assert sorted(order.to_pylist()) == list(range(len(rows)))
    for one, other in itertools.pairwise(order.to_pylist()):
        assert rows[one] != rows[other] or one < other


@settings(deadline=None)
@given(rows=ROWS.filter(bool))
def test_the_linear_layout_is_the_order_of_spark(rows) -> None:
    table = pa.table({name: list(column) for name, column in zip("xyz", zip(*rows, strict=True), strict=True)})

    def key(row: int) -> list[tuple[bool, object]]:
        return [(value is not None, value if value is not None else 0) for value in rows[row]]

    assert curve_order(table, ["x", "y", "z"], "linear").to_pylist() == sorted(range(len(rows)), key=key)


def test_the_linear_layout_of_columns_with_more_values_than_one_number_tells() -> None:
    random = np.random.default_rng(3)
    columns = {f"c{at}": random.integers(0, 1 << 62, 1_000) for at in range(8)}
    columns["c0"] //= 1 << 61
    order = curve_order(pa.table(columns), list(columns), "linear")
    assert order.to_pylist() == np.lexsort([columns[f"c{at}"] for at in range(7, -1, -1)]).tolist()


def test_nan_is_last_and_null_first() -> None:
    table = pa.table({"x": pa.array([math.nan, 1.0, None, -math.inf], from_pandas=False)})
    assert curve_order(table, ["x"], "linear").to_pylist() == [2, 3, 1, 0]


@pytest.mark.parametrize("curve", CURVES)
def test_a_column_of_one_value_has_no_part(curve: Curve) -> None:
    random = np.random.default_rng(1)
    table = pa.table({"x": random.permutation(500), "one": np.zeros(500, np.int64), "none": pa.nulls(500)})
    assert curve_order(table, ["one", "x", "none"], curve) == curve_order(table, ["x"], "linear")
    assert curve_order(table, ["one", "none"], curve).to_pylist() == list(range(500))


def test_a_field_within_a_struct_is_named_by_its_path() -> None:
    table = pa.table({"s": [{"t": {"x": 2}}, None, {"t": {"x": 1}}], "a.b": [3, 1, 2]})
    assert curve_order(table, ["s.t.x"], "linear").to_pylist() == [1, 2, 0]
    assert curve_order(table, ["a.b"], "linear").to_pylist() == [1, 2, 0]


def test_values_fill_a_side_by_their_share_of_the_rows() -> None:
    codes = np.array([0] * 90 + [1] * 8 + [2] * 2)
    assert np.unique(spread(codes, 3, 10)).tolist() == [1024 * 45 // 100, 1024 * 94 // 100, 1024 * 99 // 100]


def test_values_stay_apart_with_as_many_places_as_rows() -> None:
    for rows in (2, 3, 255, 256, 257):
        places = spread(np.arange(rows), rows, (rows - 1).bit_length())
        assert np.unique(places).size == rows


@pytest.mark.parametrize(
    "columns, curve, text",
    [
        ([], "linear", "at least one column"),
        (["x", "nope"], "hilbert", "there is no column 'nope'.*The columns are x, s, l"),
        (["s.nope"], "linear", "there is no column 's.nope'.*'nope' is no field of a struct"),
        (["x", "x"], "z-order", "'x' is named twice"),
        (["l"], "linear", "column 'l'.*cannot be ordered.*list"),
        ([f"c{at}" for at in range(9)], "z-order", "at most 8 columns, found 9"),
    ],
)
def test_columns_without_an_order_are_refused(columns: list[str], curve: Curve, text: str) -> None:
    table = pa.table({"x": [1], "s": [{"y": 1}], "l": [[1]]})
    with pytest.raises(Invalid, match=text):
        curve_order(table, columns, curve)


def files_read(column: np.ndarray, order: pa.Array, low: float, high: float, files: int = 64) -> int:
    parts = np.array_split(column[order.to_numpy()], files)
    return sum(part.min() <= high and part.max() >= low for part in parts)


@pytest.mark.parametrize("skewed", [False, True])
def test_curves_skip_files_by_each_column_and_the_linear_layout_by_the_first_only(skewed: bool) -> None:
    random = np.random.default_rng(11)
    x, y = random.random(64_000), random.random(64_000)
    if skewed:
        y = np.exp(12 * y)
    table = pa.table({"x": x, "y": y})
    ranges = [np.quantile(column, (0.5, 0.53)) for column in (x, y)]

    def read(curve: Curve) -> list[int]:
        order = curve_order(table, ["x", "y"], curve)
        return [files_read(column, order, *ends) for column, ends in zip((x, y), ranges, strict=True)]

    by_first, by_second = read("linear")
    assert by_first <= 3
    assert by_second == 64
    assert max(read("z-order")) <= 20
    assert max(read("hilbert")) <= 14
