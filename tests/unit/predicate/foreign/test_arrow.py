"""An Arrow filter could be taken for a node that is true for fewer rows: rows would be lost without an error.

Random filters are put to Arrow and, as nodes, to pyhudi. A node must keep every row that Arrow keeps; where the whole
filter has a node, the same rows.
"""

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.predicate.evaluate import evaluate
from pyhudi.predicate.foreign.arrow import _equal_node, node_implied_by
from pyhudi.predicate.foreign.arrow_tree import Called, Field, Value, tree_of
from tests.support.odd_values import VALUES, odd_rows

ROWS = odd_rows(140)
BATCH = ROWS.combine_chunks().to_batches()[0]


def leaf(draw: random.Random) -> Any:
    name = draw.choice(list(VALUES))
    kind, values = VALUES[name]
    field, given = pc.field(name), [one for one in values if one is not None]
    value = pa.scalar(draw.choice(given), kind)
    match draw.randrange(9):
        case 0:
            return field.is_null(nan_is_null=draw.random() < 0.2)
        case 1:
            return field.is_valid()
        case 2:
            return field.isin(pa.array(draw.sample(values, 2), kind))
        case 3:  # as DuckDB writes IN
            found = field.isin(pa.array(draw.sample(given, 2), kind))
            return pc.if_else(field.is_valid(), found, pa.scalar(None, pa.bool_()))
        case 4:
            return draw.choice([pc.field("bo"), pc.field("st", "x") > 1, pc.field("f64") >= pc.field("f64")])
        case _:
            return draw.choice([field == value, field != value, field < value, field <= value, field > value,
                                pc.scalar(value) >= field])  # fmt: skip


def tree(draw: random.Random, depth: int) -> Any:
    if depth == 0 or draw.random() < 0.2:
        return leaf(draw)
    match draw.randrange(4):
        case 0:
            return ~tree(draw, depth - 1)
        case 1:
            return tree(draw, depth - 1) | tree(draw, depth - 1)
        case _:
            return tree(draw, depth - 1) & tree(draw, depth - 1)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_node_keeps_the_rows_that_arrow_keeps(depth: int) -> None:
    implied = same = 0
    for seed in range(300):
        expression = tree(random.Random(seed), depth)
        kept = set(ROWS.filter(expression)["id"].to_pylist())
        node = node_implied_by(expression, ROWS.schema)
        if node is not None:
            implied += 1
            assert kept <= set(ROWS.filter(evaluate(node, BATCH))["id"].to_pylist()), (seed, str(expression))
        parsed = tree_of(expression)
        assert parsed is not None
        exact = _equal_node(parsed, ROWS.schema)
        if exact is not None:
            same += 1
            assert kept == set(ROWS.filter(evaluate(exact, BATCH))["id"].to_pylist()), (seed, str(expression))
    assert implied > 200
    assert same > 140


def test_a_part_without_a_node_leaves_the_others() -> None:
    node = node_implied_by((pc.field("city") == "oslo") & (pc.utf8_lower(pc.field("s")) == "a"), ROWS.schema)
    assert "oslo" in str(node)
    assert node_implied_by((pc.field("city") == "oslo") | (pc.utf8_lower(pc.field("s")) == "a"), ROWS.schema) is None


def test_an_expression_is_taken_apart_with_its_repeats_and_odd_names() -> None:
    name = 'a "b" == c.d'
    twice = (pc.field(name) == 1) & (pc.field(name) == 1)
    one = Called("equal", (Field((name,)), Value(pa.scalar(1))), {})
    assert tree_of(twice) == Called("and_kleene", (one, one), {})
    assert tree_of(pc.field("st", "x")) == Field(("st", "x"))


@pytest.mark.parametrize("expression", [pc.field(0) == 1, pc.field("none") == 1, pc.field("i32") == 1.5])
def test_what_is_not_known_for_sure_is_no_node(expression: Any) -> None:
    assert node_implied_by(expression, ROWS.schema) is None
