"""A value could be stored as another one than Spark's UPDATE stores: cut, wrapped around, or NULL without a word.

Each value is computed over the same small rows, and compared with what Spark gives for it, or with its refusal.
"""

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import Invalid, Unsupported
from pyhudi.predicate.assignments import parse_assignment

ROWS = pa.RecordBatch.from_pydict(
    {
        "i": pa.array([1, None, 300], pa.int32()),
        "l": pa.array([2**40, 5, None], pa.int64()),
        "d": pa.array([1.9, -1.9, None], pa.float64()),
        "t": pa.array(["a", None, "ß"]),
        "b": pa.array([True, False, None]),
        "m": pa.array([Decimal("1.25"), Decimal("-9.99"), None], pa.decimal128(3, 2)),
        "day": pa.array([date(2026, 11, 25), None, date(1969, 12, 31)]),
        "at": pa.array([datetime(2026, 11, 25, 12, tzinfo=UTC), None, None], pa.timestamp("us", tz="UTC")),
        "s": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": None}]),
        "ls": pa.array([["a", None], None, []]),
        "ns": pa.array([[1, None], None, [300]]),
        "ed": pa.array([[], None, []], pa.list_(pa.float64())),
        "gm": pa.MapArray.from_arrays(
            pa.array([0, 1, 2, 2], pa.int32()),
            pa.array(["a", "b"]),
            pa.array([1, 2**40]),
            mask=pa.array([False, True, False]),
        ),  # a null over what does not fit
        "ms": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    }
)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def stored(value: Any, kind: pa.DataType, rows: pa.RecordBatch = ROWS) -> list[Any]:
    return parse_assignment(value, pa.field("c", kind), ROWS.schema, what="set['c']").values(rows).to_pylist()


@pytest.mark.parametrize(
    "value,kind,expected",
    [
        ("i + 1", pa.int32(), [2, None, 301]),
        ("i + 1", pa.int64(), [2, None, 301]),
        ("l - l + i", pa.int32(), [1, None, None]),
        ("d", pa.int32(), [1, -1, None]),
        ("i / 2", pa.float64(), [0.5, None, 150.0]),
        ("m * 2", pa.decimal128(10, 3), [Decimal("2.500"), Decimal("-19.980"), None]),
        ("m", pa.decimal128(10, 1), [Decimal("1.3"), Decimal("-10.0"), None]),
        ("i", pa.string(), ["1", None, "300"]),
        ("b", pa.string(), ["true", "false", None]),
        ("concat(t, '-', t)", pa.string(), ["a-a", None, "ß-ß"]),
        ("coalesce(t, 'none')", pa.string(), ["a", "none", "ß"]),
        ("upper(t)", pa.string(), ["A", None, "SS"]),
        ("day", pa.timestamp("us", tz="UTC"), [utc(2026, 11, 25), None, utc(1969, 12, 31)]),
        ("at", pa.date32(), [date(2026, 11, 25), None, None]),
        ("CASE WHEN i > 100 THEN 'big' WHEN i IS NULL THEN 'none' ELSE t END", pa.string(), ["a", "none", "big"]),
        ("CASE i WHEN 1 THEN 10 END", pa.int64(), [10, None, None]),
        ("if(b, i, l)", pa.int64(), [1, 5, None]),
        ("nullif(i, 300)", pa.int32(), [1, None, None]),
        ("greatest(i, 5, l)", pa.int64(), [2**40, 5, 300]),
        ("least(t, 'b')", pa.string(), ["a", "b", "b"]),
        ("NULL", pa.int32(), [None, None, None]),
        ("b AND i = 1", pa.bool_(), [True, False, False]),
        (5, pa.int32(), [5, 5, 5]),
        (None, pa.string(), [None, None, None]),
        (pa.scalar("i"), pa.string(), ["i", "i", "i"]),
        (date(2026, 1, 1), pa.date32(), [date(2026, 1, 1)] * 3),
        ([1, 2], pa.list_(pa.int32()), [[1, 2]] * 3),
        (1.25, pa.decimal128(5, 2), [Decimal("1.25")] * 3),
        (Decimal("1.5"), pa.float64(), [1.5] * 3),
        (3.0, pa.int32(), [3] * 3),
        (Decimal("3.00"), pa.int8(), [3] * 3),
        (np.float32(0.1), pa.decimal128(5, 2), [Decimal("0.10")] * 3),
        (np.int64(7), pa.decimal128(5, 2), [Decimal(7)] * 3),
        (0.1, pa.float32(), [float(np.float32(0.1))] * 3),
        (float("inf"), pa.float32(), [math.inf] * 3),
        (10**15 + 0.5, pa.decimal128(20, 1), [Decimal("1000000000000000.5")] * 3),
        (date(2026, 1, 1), pa.timestamp("us", tz="UTC"), [utc(2026, 1, 1)] * 3),
        (utc(2026, 1, 1, 12), pa.timestamp("ms", tz="UTC"), [utc(2026, 1, 1, 12)] * 3),
        (datetime(2026, 1, 1, 12), pa.timestamp("us", tz="UTC"), [utc(2026, 1, 1, 12)] * 3),
        (utc(9999, 12, 31), pa.timestamp("us"), [datetime(9999, 12, 31)] * 3),
        (np.datetime64("9999-12-31"), pa.timestamp("us"), [datetime(9999, 12, 31)] * 3),
        (np.datetime64("2026-01-01T12:00:00.000001000"), pa.timestamp("us"), [datetime(2026, 1, 1, 12, 0, 0, 1)] * 3),
        (np.datetime64("2026-01-01T12:00:00.000000000"), pa.date32(), [date(2026, 1, 1)] * 3),
        (pd.NaT, pa.timestamp("us"), [None] * 3),
        (pd.NaT, pa.date32(), [None] * 3),
        (pa.scalar(None, pa.float64()), pa.float32(), [None] * 3),
        ([datetime(2026, 1, 1)], pa.list_(pa.timestamp("ms")), [[datetime(2026, 1, 1)]] * 3),
        ({"a": datetime(9999, 1, 1)}, pa.struct([("a", pa.timestamp("us"))]), [{"a": datetime(9999, 1, 1)}] * 3),
        ([pd.NaT, date(2026, 1, 1)], pa.list_(pa.date32()), [[None, date(2026, 1, 1)]] * 3),
        ([np.datetime64("2026-01-01T12:00", "ns")], pa.list_(pa.date32()), [[date(2026, 1, 1)]] * 3),
        ({"a": time(1, 2)}, pa.struct([("a", pa.time64("us"))]), [{"a": time(1, 2)}] * 3),
        ({"k": [1, None]}, pa.map_(pa.string(), pa.list_(pa.int32())), [[("k", [1, None])]] * 3),
        ([("k", utc(2026, 1, 1))], pa.map_(pa.string(), pa.timestamp("ms")), [[("k", datetime(2026, 1, 1))]] * 3),
        (np.array([1, 2]), pa.list_(pa.int64()), [[1, 2]] * 3),
        (25, pa.string(), ["25"] * 3),
        (date(2026, 1, 1), pa.string(), ["2026-01-01"] * 3),
        ([{"a": 1}], pa.list_(pa.struct([("a", pa.int32())])), [[{"a": 1}]] * 3),
        ("s", pa.struct([("y", pa.string()), ("x", pa.int8())]),
         [{"y": "a", "x": 1}, None, {"y": None, "x": None}]),
        ("ns", pa.list_(pa.decimal128(5, 1)), [[Decimal(1), None], None, [Decimal(300)]]),
        ("ns", pa.list_(pa.string()), [["1", None], None, ["300"]]),
        ("ed", pa.list_(pa.decimal128(10, 2)), [[], None, []]),
        ("gm", pa.map_(pa.string(), pa.int32()), [[("a", 1)], None, []]),
        ("ms", pa.map_(pa.string(), pa.float64()), [[("k", 1.0)], None, []]),
        (pc.field("ns").cast(pa.large_list(pa.int64())), pa.list_(pa.int32()), [[1, None], None, [300]]),
        (pa.scalar([1, None]), pa.list_(pa.int8()), [[1, None]] * 3),
        (pa.scalar({"x": 1}), pa.struct([("x", pa.decimal128(5, 2))]), [{"x": Decimal(1)}] * 3),
        (pc.field("i") + 1, pa.int64(), [2, None, 301]),
        (pc.utf8_upper(pc.field("t")), pa.string(), ["A", None, "ẞ"]),
    ],
    ids=lambda value: str(value),
)  # fmt: skip
def test_values_are_stored_in_the_columns_type(value: Any, kind: pa.DataType, expected: list[Any]) -> None:
    assert stored(value, kind) == expected


@pytest.mark.parametrize(
    "value,kind,told",
    [
        ("t", pa.int32(), "found string; write a CAST"),
        ("b", pa.int32(), "found bool; write a CAST"),
        ("i", pa.bool_(), "found int32; write a CAST"),
        ("at", pa.int64(), "write a CAST"),
        ("nun + 1", pa.int32(), "no column 'nun'"),
        ("uper(t)", pa.string(), "no function 'uper' here; the nearest is 'upper'"),
        ("i +", pa.int32(), "line 1"),
        ("", pa.int32(), "found none"),
        ("l", pa.int32(), f"found {2**40}"),
        ("i", pa.int8(), "found 300"),
        ("d * 1e300", pa.int64(), "found 1.9e+300"),
        ("m", pa.decimal128(2, 2), "found 1.25"),
        ("x", pa.int32(), "no column 'x'"),
        ("oslo", pa.string(), "the text itself is \"'oslo'\", or pyarrow.scalar('oslo')"),
        ({"a": 1}, pa.int32(), "found {'a': 1}"),
        (2**40, pa.int32(), f"found {2**40}"),
        ({"aa": 1}, pa.struct([("a", pa.int32())]), "no field 'aa'"),
        ([{"a": 1}, {"aa": 1}], pa.list_(pa.struct([("a", pa.int32())])), "no field 'aa'"),
        (1e9, pa.decimal128(5, 2), "found 1000000000.0"),
        (float("nan"), pa.int32(), "found nan"),
        (True, pa.int32(), "found True"),
        (5, pa.timestamp("us"), "found 5"),
        (5, pa.date32(), "found 5"),
        ([5_000], pa.list_(pa.timestamp("us")), "found [5000]"),
        (datetime(2026, 1, 1, 0, 0, 0, 123_456), pa.timestamp("ms"), "would lose data"),
        ([datetime(1969, 1, 1, 0, 0, 0, 999_500)], pa.list_(pa.timestamp("ms")), "would lose data"),
        (pd.Timestamp(123_456_789), pa.timestamp("us"), "would lose data"),
        (pd.Timestamp(123_456_789), pa.string(), "Timestamp('1970-01-01 00:00:00.123456789')"),
        (np.datetime64(1, "ns"), pa.timestamp("us"), "would lose data"),
        ({"a": pd.Timestamp(1)}, pa.struct([("a", pa.timestamp("us"))]), "would lose data"),
        ([datetime(9999, 1, 1), pd.Timestamp(999)], pa.list_(pa.timestamp("us")), "would lose data"),
        ([5], pa.list_(pa.date32()), "found [5]"),
        ({"a": 5}, pa.map_(pa.string(), pa.date32()), "found {'a': 5}"),
        (b"abc", pa.list_(pa.int32()), "expected a list"),
        ([None], pa.map_(pa.string(), pa.int32()), "expected a dict"),
        ({None: 1}, pa.map_(pa.string(), pa.int32()), "expected keys"),
        ([{"a": {None: 1}}], pa.list_(pa.struct([("a", pa.map_(pa.string(), pa.int32()))])), "expected keys"),
        ([1], pa.struct([("a", pa.int32())]), "expected a dict"),
        ({"a": {"b": 1}}, pa.struct([("a", pa.int32())]), "found {'a': {'b': 1}}"),
        (np.True_, pa.int32(), "found np.True_"),
        (True, pa.float64(), "found True"),
        ([("a", 1), ("a", 2)], pa.struct([("a", pa.int32())]), "'a' twice"),
        ({1: 2, "1": 3}, pa.map_(pa.string(), pa.int32()), "'1' twice"),
        (pa.scalar({"b": 1}), pa.struct([("a", pa.int32())]), "found struct<b: int64>"),
        (pa.scalar([5]), pa.list_(pa.timestamp("us")), "found list<item: int64>"),
        (pa.scalar(["5"]), pa.list_(pa.int32()), "found list<item: string>"),
        (pa.scalar([1.5]), pa.list_(pa.int32()), "it would become 1 in 'c.element'"),
        ("s", pa.struct([("x", pa.int32()), ("z", pa.string())]), "found struct<x: int64, y: string>; write a CAST"),
        ("ls", pa.list_(pa.int32()), "found list<item: string>; write a CAST"),
        ("ns", pa.list_(pa.timestamp("us")), "found list<item: int64>; write a CAST"),
        ("ns", pa.list_(pa.int8()), "column 'c.element' of type int8, found 300"),
        (2.99, pa.int32(), "found 2.99: it would become 2 in 'c' of int32"),
        (pa.scalar(2.99), pa.int32(), "found <pyarrow.DoubleScalar: 2.99>"),
        (Decimal("1.5"), pa.int64(), "it would become 1"),
        (Decimal("1.239"), pa.decimal128(5, 2), "it would become 1.24"),
        (1.239, pa.decimal128(5, 2), "it would become 1.24"),
        (np.float32(0.25), pa.decimal128(5, 1), "it would become 0.3"),
        (1e300, pa.float32(), "it would become inf"),
        (-1e300, pa.float32(), "it would become -inf"),
        (pa.scalar(1e300), pa.float32(), "found <pyarrow.DoubleScalar: 1e+300>"),
        (Decimal("1e400"), pa.float64(), "found Decimal('1E+400')"),
        ([1.5], pa.list_(pa.int64()), "it would become 1 in 'c.element' of int64"),
        (
            [{"a": {"k": 10**6}}],
            pa.list_(pa.struct([("a", pa.map_(pa.string(), pa.decimal128(3, 1)))])),
            "fit column 'c.element.a.value' of type decimal128(3, 1)",
        ),
        (pa.scalar(5), pa.timestamp("us"), "found int64"),
        (pa.scalar(1.7), pa.bool_(), "found double"),
        (pa.scalar(9 * 10**18, pa.timestamp("s")), pa.string(), "out of bounds"),
        (np.datetime64(7, "ps"), pa.int64(), "found np.datetime64"),
        (np.datetime64("30000-01-01"), pa.int64(), "found np.datetime64"),
        ([np.timedelta64(5, "s")], pa.list_(pa.int32()), "np.timedelta64"),
        (pc.field("x"), pa.int32(), "x"),
        (pc.field("t"), pa.int32(), "found string; write a CAST"),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_refused_and_named(value: Any, kind: pa.DataType, told: str) -> None:
    with pytest.raises(Invalid) as error:
        stored(value, kind)
    assert str(error.value).startswith("set['c']: ")
    assert told in str(error.value)


def test_sql_that_only_spark_knows_is_unsupported() -> None:
    with pytest.raises(Unsupported, match=r"set\['c'\]: 'round"):
        stored("round(d, 1)", pa.float64())


def test_an_assignment_names_the_columns_that_it_reads() -> None:
    field = pa.field("c", pa.int64())
    assert parse_assignment("i + l", field, ROWS.schema, what="c").columns == {"i", "l"}
    assert parse_assignment(pc.field("i") + pc.field("l"), field, ROWS.schema, what="c").columns == {"i", "l"}
    assert parse_assignment(5, field, ROWS.schema, what="c").columns == frozenset()


def test_no_rows_give_no_values() -> None:
    none = ROWS.slice(0, 0)
    assert stored("i + 1", pa.int64(), none) == []
    assert stored(pc.field("i"), pa.int64(), none) == []
    assert stored(7, pa.int64(), none) == []


def test_an_arrow_expression_of_positions_is_invalid() -> None:
    with pytest.raises(Invalid, match=r"set\['c'\].*: expected columns by their names"):
        stored(pc.field(0) + 1, pa.int64())
