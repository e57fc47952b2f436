"""A Polars predicate could be taken for a node that is true for fewer rows: rows would be lost without an error.

Random predicates are put to Polars and, as nodes, to pyhudi. The truth of each row must be the same.
"""

import json
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.api.neighbours.polars_frame import _taken_apart, _value
from pyhudi.predicate.evaluate import evaluate
from pyhudi.predicate.foreign.polars import PolarsPredicates, without_hints
from tests.support.odd_values import VALUES, odd_rows

pl = pytest.importorskip("polars")
ROWS = odd_rows(140)
BATCH = ROWS.combine_chunks().to_batches()[0]
FRAME = pl.from_arrow(ROWS)


def optimized(predicate: Any) -> Any:
    """The predicate with the casts that Polars' planner writes into it, as a source of rows is given it."""
    seen: list[Any] = []

    def source(columns: Any, given: Any, rows: Any, size: Any) -> Any:
        seen.append(given)
        frame = FRAME if given is None else FRAME.filter(given)
        yield frame if columns is None else frame.select(columns)

    pl.io.plugins.register_io_source(source, schema=FRAME.schema).filter(predicate).select("id").collect()
    return seen[0]


def condition_of(predicate: Any) -> Any:
    _, tree = _taken_apart(pl, predicate)
    return PolarsPredicates(ROWS.schema, lambda literal: _value(pl, literal)).condition(tree)


def leaf(draw: random.Random) -> Any:
    name = draw.choice(list(VALUES))
    values = VALUES[name][1]
    column, value = pl.col(name), draw.choice([one for one in values if one is not None])
    typed = pl.lit(value, dtype=FRAME.schema[name])
    match draw.randrange(12):
        case 0:
            return column.is_null()
        case 1:
            return column.is_not_null()
        case 2:
            return column.is_in(draw.sample(values, draw.randint(1, len(values))), nulls_equal=draw.random() < 0.3)
        case 3:
            return column.is_between(typed, pl.lit(draw.choice(values), dtype=FRAME.schema[name]),
                                     closed=draw.choice(["both", "left", "right", "none"]))  # fmt: skip
        case 4:
            return draw.choice([pl.col("f32").is_nan(), pl.col("f64").is_not_nan(), pl.col("bo"), pl.lit(True)])
        case 5:
            return pl.col("st").struct.field("x") >= draw.randint(0, 2)
        case 6:
            return pl.col("s").str.starts_with(draw.choice(["a", "a%", "", "é"]))
        case 7:
            left, right = draw.choice([("i32", "i64"), ("f32", "f64"), ("i64", "f64"), ("d", "ntz")])
            return pl.col(left) <= pl.col(right)
        case 8:
            return column.eq_missing(typed) if draw.random() < 0.5 else column.ne_missing(typed)
        case _:
            return draw.choice([column == typed, column != typed, column < typed, column <= typed, typed < column,
                                column >= typed])  # fmt: skip


def tree(draw: random.Random, depth: int) -> Any:
    if depth == 0 or draw.random() < 0.2:
        return leaf(draw)
    match draw.randrange(4):
        case 0:
            return ~tree(draw, depth - 1)
        case 1:
            return pl.any_horizontal(tree(draw, depth - 1), tree(draw, depth - 1))
        case 2:
            return tree(draw, depth - 1) | tree(draw, depth - 1)
        case _:
            return tree(draw, depth - 1) & tree(draw, depth - 1)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_node_is_true_false_or_null_where_polars_says_so(depth: int) -> None:
    known = 0
    for seed in range(120):
        predicate = tree(random.Random(seed), depth)
        given = optimized(predicate)
        node = None if given is None else condition_of(given)
        if node is not None:
            known += 1
            expected = FRAME.select(predicate.alias("is")).to_arrow().column("is")
            expected = pa.repeat(expected[0], len(FRAME)) if len(expected) == 1 else expected
            assert evaluate(node, BATCH).to_pylist() == expected.to_pylist(), (seed, str(predicate), node)
    assert known > 90  # most are nodes, or this test shows little


@pytest.mark.parametrize(
    "make",
    [
        lambda: pl.col("i64") + 1 > 2,
        lambda: pl.col("s").str.contains("a"),
        lambda: pl.col("i64").cast(pl.String, strict=False) == "1",
        lambda: pl.col("ts").dt.convert_time_zone("Asia/Tokyo") > pl.datetime(2026, 1, 1, time_zone="Asia/Tokyo"),
        lambda: pl.col("dec") > Decimal("1.111"),
        lambda: pl.col("s").map_batches(lambda texts: texts == "a", return_dtype=pl.Boolean),
    ],
)
def test_what_has_no_node_is_left_to_polars_and_the_rest_still_prunes(make: Any) -> None:
    predicates = PolarsPredicates(ROWS.schema, lambda literal: _value(pl, literal))
    given = optimized((pl.col("city") == "oslo") & make())
    _, tree = _taken_apart(pl, given)
    assert predicates.condition(tree) is None
    if tree is not None:  # None: the predicate holds a Python function, and cannot be written down
        assert "oslo" in str(predicates.implied_by(tree))


def test_a_hint_of_the_optimiser_is_no_part_of_a_predicate() -> None:
    hint = {"Display": {"inputs": [], "fmt_str": "dynamic_pred: 7"}}
    real = json.loads((pl.col("i64") > 1).meta.serialize(format="json"))
    both = {"BinaryExpr": {"left": real, "op": "And", "right": hint}}
    assert without_hints(hint) is None
    assert without_hints(both) == real == without_hints(real)
