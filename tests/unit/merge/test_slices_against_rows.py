"""Merged by columns, a slice could differ from what Apache Hudi makes of it row by row, in some order of records.

Random logs over random base rows, for the rules of every mode and payload class: batches, reductions on the way,
positions and blocks of some columns must change nothing. `rows_model` says what is right, with dicts.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.merge.base import BaseMerge
from pyhudi.merge.fold import LogFold
from pyhudi.merge.rules import DeleteMark, DeleteRule, Fill, MergeRules, commit_time, custom, event_time
from tests.unit.merge.rows_model import Facts, Record, Row, merge

KEY = "_hoodie_record_key"
FIELDS = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        (KEY, pa.string()),
        ("a", pa.int64()),
        ("d", pa.int64()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("l", pa.list_(pa.int64())),
        ("op", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
NAMES = (*FIELDS.names, "o", "p")
MARKS = (DeleteMark("op", "D"),)
DEFAULTS = {"d": 7}
MARKER = "__gone__"
KINDS: dict[str, Any] = {
    "int64": (pa.int64(), st.none() | st.integers(-2, 3)),
    "int32": (pa.int32(), st.none() | st.integers(-2, 3)),
    "float": (pa.float64(), st.none() | st.sampled_from([-math.inf, -0.0, 0.0, 1.5, math.nan])),
    "text": (pa.string(), st.none() | st.sampled_from(["", "a", "b"])),
}
ORDERINGS: list[tuple[tuple[str, ...], str, str]] = [
    ((), "int64", "int64"),
    (("o",), "int64", "int64"),
    (("o",), "int32", "int64"),
    (("o",), "float", "int64"),
    (("o",), "text", "int64"),
    (("o", "p"), "int64", "text"),
    (("p", "o"), "int32", "int64"),
]


class SumMerger:
    """Adds `a`; where the sum is over 3 the row goes. A null row of `a` counts as 0."""

    def merge(self, older: pa.RecordBatch, newer: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.BooleanArray]:
        total = pc.add(pc.fill_null(older.column("a"), 0), pc.fill_null(newer.column("a"), 0))
        rows = newer.set_column(2, newer.schema.field(2), total)
        return rows, pc.greater(total, 3)


def sum_rows(older: Row, newer: Row) -> Row | None:
    total = (older["a"] or 0) + (newer["a"] or 0)
    return None if total > 3 else {**newer, "a": total}


def rules_of(ordering: tuple[str, ...]) -> dict[str, MergeRules]:
    by_time, latest = event_time(ordering=ordering, marks=MARKS), commit_time(marks=MARKS)
    greatest_of_log = replace(by_time, base_by_ordering=False)
    partial = replace(by_time, fill=Fill.NULLS, fills_log=True, newer_meta_fields=True)
    return {
        "commit time": latest,
        "event time": by_time,
        "custom": custom(SumMerger(), ordering=ordering, marks=MARKS),
        "commit time, defaults": replace(latest, fill=Fill.DEFAULTS, fills_log=True),
        "event time, defaults": replace(by_time, fill=Fill.DEFAULTS, fills_log=True),
        "event time, marker": replace(by_time, fill=Fill.UNAVAILABLE, fills_log=True, unavailable=MARKER),
        "greatest of the log": greatest_of_log,
        "greatest of the log, defaults": replace(greatest_of_log, fill=Fill.DEFAULTS),
        "partial payload": partial,
        "0.x overwrite": replace(greatest_of_log, deletes=DeleteRule.ARRIVAL),
        "0.x event time": replace(by_time, deletes=DeleteRule.ARRIVAL),
        "0.x event time, deletes win": replace(by_time, deletes=DeleteRule.ARRIVAL, row_deletes_win=True),
        "0.x partial payload": replace(partial, deletes=DeleteRule.ARRIVAL, row_deletes_win=True),
    }


@dataclass
class Block:
    """`columns`: those of a partial block. `cuts`: where its batches end."""

    keys: list[str]
    rows: list[Row] | None
    orders: list[tuple[Any, ...]]
    columns: tuple[str, ...] | None
    has_positions: bool
    cut: int


@st.composite
def slices(draw: Any, ordering: tuple[str, ...], kinds: dict[str, str], *, may_be_partial: bool) -> Any:
    tags = iter(f"{number:04d}" for number in range(1000))
    values = st.fixed_dictionaries(
        {
            "a": st.none() | st.integers(0, 2),
            "d": st.sampled_from([None, 7, 8]),
            "s": st.sampled_from([None, "x", MARKER]),
            "b": st.sampled_from([None, b"y", MARKER.encode()]),
            "l": st.sampled_from([None, [], [1, None]]),
            "op": st.sampled_from([None, "U", "U", "U", "D"]),
            "_hoodie_is_deleted": st.sampled_from([None, False, False, False, True]),
            **{name: KINDS[kind][1] for name, kind in kinds.items()},
        }
    )

    def row(key: str) -> Row:
        return {"_hoodie_commit_time": next(tags), KEY: key, **draw(values)}

    base = [row(key) for key in draw(st.lists(st.sampled_from("abcd"), max_size=4, unique=True))]
    present = [one[KEY] for one in base]
    blocks = []
    for _ in range(draw(st.integers(0, 7))):
        keys = draw(st.lists(st.sampled_from("abcdef"), max_size=4))
        has_positions = draw(st.booleans()) and all(key in present for key in keys)
        cut = draw(st.integers(0, 4))
        if draw(st.integers(0, 2)) == 0:
            orders = [tuple(draw(KINDS[kinds[name]][1]) for name in ordering) for _ in keys]
            blocks.append(Block(keys, None, orders, None, has_positions, cut))
            continue
        columns = None
        if may_be_partial and draw(st.booleans()):
            chosen = draw(st.sets(st.sampled_from(NAMES[2:]), max_size=6))
            columns = tuple(name for name in NAMES if name in chosen or name in NAMES[:2])
        rows = [row(key) for key in keys]
        if columns is not None:
            rows = [{name: one[name] for name in columns} for one in rows]
        orders = [tuple(one.get(name) for name in ordering) for one in rows]
        blocks.append(Block(keys, rows, orders, columns, has_positions, cut))
    return base, blocks, draw(st.integers(1, 9)), draw(st.integers(1, 4))


def log_of(blocks: list[Block]) -> list[tuple[str, Record]]:
    log = []
    for block in blocks:
        for at, key in enumerate(block.keys):
            one = None if block.rows is None else block.rows[at]
            is_delete = one is None or one.get("op") == "D" or one.get("_hoodie_is_deleted") is True
            log.append((key, Record(block.orders[at], one, is_delete)))
    return log


def merged_by_columns(
    rules: MergeRules, schema: pa.Schema, base: list[Row], blocks: list[Block], reduce_rows: int, base_batch: int
) -> tuple[list[Row], BaseMerge]:
    rules = replace(rules, defaults=tuple((name, pa.scalar(value)) for name, value in DEFAULTS.items()))
    fold = LogFold(rules, schema, path="slice", reduce_rows=reduce_rows)
    place = {one[KEY]: at for at, one in enumerate(base)}
    for block in blocks:
        for span in (slice(0, block.cut), slice(block.cut, None)):
            keys = block.keys[span]
            positions = np.array([place[key] for key in keys], np.int64) if block.has_positions else None
            if block.rows is None:
                columns = list(zip(*block.orders[span], strict=True)) or [()] * len(rules.ordering)
                ordering = [pa.array(list(c), k) for c, k in zip(columns, fold.ordering_types, strict=False)]
                fold.add_deletes(pa.array(keys, pa.string()), ordering, positions=positions)
            else:
                own = schema if block.columns is None else pa.schema([schema.field(name) for name in block.columns])
                batch = pa.RecordBatch.from_pylist(block.rows[span], schema=own)
                fold.add_rows(batch, is_partial=block.columns is not None, positions=positions)
    merging = BaseMerge(fold.finish())
    rows: list[Row] = []
    for start in range(0, len(base), base_batch):
        batch = pa.RecordBatch.from_pylist(base[start : start + base_batch], schema=schema)
        rows.extend(merging.merge(batch, start).to_pylist())
    rows.extend(row for batch in merging.remaining(2) for row in batch.to_pylist())
    return rows, merging


def same(found: list[Row], expected: list[Row]) -> bool:
    """Equal, NaN to NaN, and a value that no block had to null."""
    return repr(found) == repr([{name: one.get(name) for name in NAMES} for one in expected])


@pytest.mark.parametrize("name", rules_of(()))
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_a_slice_is_merged_as_row_by_row(name: str, data: st.DataObject) -> None:
    ordering, first, second = data.draw(st.sampled_from(ORDERINGS))
    rules = rules_of(ordering)[name]
    ordering = rules.ordering
    kinds = {"o": first, "p": second}
    base, blocks, reduce_rows, base_batch = data.draw(slices(ordering, kinds, may_be_partial=rules.merger is None))
    schema = pa.schema([*FIELDS, *(pa.field(column, KINDS[kind][0]) for column, kind in kinds.items())])
    is_int = tuple(kinds[column] == "int32" for column in ordering)
    facts = Facts(rules, is_int, DEFAULTS, sum_rows if rules.merger is not None else None)
    stored = [(one[KEY], one, tuple(one[column] for column in ordering)) for one in base]
    expected = merge(facts, stored, log_of(blocks))

    found, merging = merged_by_columns(rules, schema, base, blocks, reduce_rows, base_batch)

    assert same(found, expected)
    counts = merging.counts
    assert len(base) - counts.deleted + counts.inserted == len(expected)
