"""A slice or partition that may hold a matching row and is left out makes an answer wrong without a trace.

Random small files, their statistics as an index would have them (some unknown), random predicates: the rows of what is
kept must be the rows of a full scan. Slices of several files stand for base file and logs: a merged row takes each
column from any of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.predicate import parse_predicate
from pyhudi.predicate.evaluate import evaluate
from pyhudi.table.prune.pruning import match_partitions, match_slices

SCHEMA = pa.schema([("n", pa.int64()), ("x", pa.float64()), ("t", pa.string()), ("b", pa.bool_())])


@dataclass
class FakeStatistics:
    """Statistics of Arrow tables by path. `silent`: (path, column) of which nothing is known."""

    tables: dict[str, pa.Table]
    silent: frozenset[tuple[str, str]] = frozenset()
    asked: list[str] = field(default_factory=list)

    def of_files(self, column: pa.Field, files: pa.Table) -> pa.Table | None:
        rows = [self._row(column, f"{one['partition']}/{one['name']}".lstrip("/"), one) for one in files.to_pylist()]
        return self._table(column, rows)

    def of_partitions(self, column: pa.Field, partitions: Sequence[str]) -> pa.Table | None:
        return self._table(column, [self._row(column, one, {"partition": one, "name": ""}) for one in partitions])

    def _row(self, column: pa.Field, path: str, one: dict[str, str]) -> dict[str, object] | None:
        self.asked.append(column.name)
        if (path, column.name) in self.silent or path not in self.tables:
            return None
        values = self.tables[path].column(column.name)
        kept = values.filter(pc.invert(pc.is_nan(values))) if pa.types.is_floating(column.type) else values
        ends = pc.min_max(kept).as_py()
        known = ends["min"] is not None
        return {
            "partition": one["partition"], "file": one["name"], **ends, "is_known": known,
            "null_count": values.null_count, "value_count": len(values),
        }  # fmt: skip

    def _table(self, column: pa.Field, rows: list[dict[str, object] | None]) -> pa.Table | None:
        schema = pa.schema(
            [
                ("partition", pa.string()), ("file", pa.string()), ("min", column.type), ("max", column.type),
                ("is_known", pa.bool_()), ("null_count", pa.int64()), ("value_count", pa.int64()),
            ]
        )  # fmt: skip
        return pa.Table.from_pylist([row for row in rows if row is not None][::-1], schema)


def table(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    return pa.table([pa.array([row[at] for row in rows], f.type) for at, f in enumerate(SCHEMA)], schema=SCHEMA)


def matches(where: str, rows: pa.Table) -> bool:
    condition = parse_predicate(where, SCHEMA).condition
    assert condition is not None
    batches = rows.combine_chunks().to_batches()
    return any(pc.any(pc.fill_null(evaluate(condition, batch), False)).as_py() for batch in batches)


NUMBERS = st.none() | st.integers(-4, 4)
FLOATS = st.none() | st.sampled_from([-0.0, 0.0, 1.5, -2.0, math.nan, math.inf, -math.inf])
TEXTS = st.none() | st.sampled_from(["", "a", "ab", "abc", "b", "\U0001f600", "\uffff"])
ROWS = st.lists(st.tuples(NUMBERS, FLOATS, TEXTS, st.none() | st.booleans()), max_size=4)
OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "<=>"])
LEAVES = st.one_of(
    st.builds("n {} {}".format, OPERATORS, st.integers(-5, 5)),
    st.builds("n {} {}".format, OPERATORS, st.sampled_from(["0.5", "null", "x", "'3'"])),
    st.builds("x {} {}".format, OPERATORS, st.sampled_from(["0.0", "-0.0", "1.5", "double('NaN')", "n"])),
    st.builds("t {} '{}'".format, OPERATORS, st.sampled_from(["a", "ab", "", "\U0001f600"])),
    st.builds("t like '{}'".format, st.sampled_from(["a%", "ab%", "b%", "%", "_b"])),
    st.builds("n in ({})".format, st.sampled_from(["1", "1, 4", "null", "2, null", "3, -4, 0"])),
    st.builds("t in ({})".format, st.sampled_from(["'ab'", "'b', 'a'", "'\uffff', null", "'\U0001f600', ''"])),
    st.builds("n between {} and {}".format, st.integers(-5, 5), st.integers(-5, 5)),
    st.builds("{} is {}".format, st.sampled_from("nxtb"), st.sampled_from(["null", "not null"])),
    st.sampled_from(["b", "not b", "lower(t) = 'a'", "n + 1 = 2", "cast(n as double) > 2.5", "(n > 1) is null"]),
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds("not ({})".format, inner),
        st.builds("({}) {} ({})".format, inner, st.sampled_from(["and", "or"]), inner),
    ),
    max_leaves=4,
)


@given(st.lists(ROWS, min_size=1, max_size=5), PREDICATES, st.data())
def test_files_left_out_hold_no_matching_row(
    files: list[list[tuple[object, ...]]], where: str, data: st.DataObject
) -> None:
    tables = {f"p/{number}": table(rows) for number, rows in enumerate(files)}
    silent = data.draw(st.frozensets(st.sampled_from([(path, c) for path in tables for c in SCHEMA.names]), max_size=3))
    statistics, predicate = FakeStatistics(tables, silent), parse_predicate(where, SCHEMA)
    kept = match_slices(statistics, predicate, [("p", [path]) for path in tables], besides=())
    as_partitions = match_partitions(statistics, predicate, list(tables), besides=())
    assert kept.tolist() == as_partitions.tolist()
    for is_kept, rows in zip(kept, tables.values(), strict=True):
        assert is_kept or not matches(where, rows)


@given(ROWS, ROWS, PREDICATES, st.data())
def test_a_slice_left_out_holds_no_matching_row_however_its_files_are_merged(
    base: list[tuple[object, ...]], log: list[tuple[object, ...]], where: str, data: st.DataObject
) -> None:
    statistics = FakeStatistics({"base": table(base), "log": table(log)})
    kept = match_slices(statistics, parse_predicate(where, SCHEMA), [("", ["base", "log"])], besides=())
    if base and log:
        pair = data.draw(st.sampled_from(base)), data.draw(st.sampled_from(log))
        mixed = tuple(data.draw(st.sampled_from(values)) for values in zip(*pair, strict=True))
        assert kept[0] or not matches(where, table([*base, *log, mixed]))


ONE_TO_THREE = FakeStatistics({"p/low": table([(1, 1.0, "a", True), (3, 2.0, "abz", True)])})


@pytest.mark.parametrize(
    "where, is_kept",
    [
        ("n = 2", True), ("n = 4", False), ("n in (0, 4)", False), ("n between 4 and 9", False), ("n < 1", False),
        ("n <= 1", True), ("n is null", False), ("t like 'ab%'", True), ("t like 'b%'", False), ("not (n <= 3)", False),
        ("n = 4 or t = 'a'", True), ("n = 2 and t = 'c'", False), ("x < 1.0", False), ("x > 9.0", True),
        ("not b", False),
    ],
)  # fmt: skip
def test_what_bounds_rule_out_is_left_out(where: str, is_kept: bool) -> None:
    """`x > 9.0` is kept: no statistics speak of NaN, which is greater."""
    kept = match_slices(ONE_TO_THREE, parse_predicate(where, SCHEMA), [("p", ["p/low"])], besides=())
    assert kept.tolist() == [is_kept]


def test_arrow_expressions_prune_too() -> None:
    predicate = parse_predicate(pc.field("n") == 4, SCHEMA)
    assert not match_slices(ONE_TO_THREE, predicate, [("p", ["p/low"])], besides=()).any()


def test_a_file_without_statistics_keeps_its_slice() -> None:
    kept = match_slices(ONE_TO_THREE, parse_predicate("n = 4", SCHEMA), [("p", ["p/low", "p/log"])], besides=())
    assert kept.tolist() == [True]


def test_columns_that_are_shown_otherwise_are_not_asked_for() -> None:
    statistics = FakeStatistics(ONE_TO_THREE.tables)
    assert np.all(match_slices(statistics, parse_predicate("n = 4", SCHEMA), [("p", ["p/low"])], besides={"n"}))
    assert statistics.asked == []
