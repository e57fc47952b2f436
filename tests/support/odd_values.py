"""Rows whose values libraries compare differently: nulls, NaN, both zeros, times with and without zones."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = dt.UTC
NAN = float("nan")
DAYS = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 2, 28), None]
TIMES = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2026, 2, 28), dt.datetime(2026, 2, 28, 12, 0, 0, 1)]
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "i32": (pa.int32(), [0, 1, -7, 2**31 - 1, None]),
    "i64": (pa.int64(), [0, 1, -7, 2**53 + 1, 2**63 - 1, None]),
    "f32": (pa.float32(), [0.0, -0.0, 0.1, 1.5, NAN, float("inf"), None]),
    "f64": (pa.float64(), [0.0, -0.0, 0.1, 1.5, NAN, float("-inf"), 2.0**53, None]),
    "s": (pa.string(), ["", "a", "ab", "a%", "é", "\U0001f600", "ａ", None]),
    "bo": (pa.bool_(), [True, False, None]),
    "d": (pa.date32(), DAYS),
    "ts": (pa.timestamp("us", "UTC"), [*(time.replace(tzinfo=UTC) for time in TIMES), None]),
    "ntz": (pa.timestamp("us"), [*TIMES, None]),
    "dec": (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("1.10"), Decimal("-99999999.99"), None]),
}
SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), *((name, kind) for name, (kind, _) in VALUES.items()),
     ("st", pa.struct([("x", pa.int64())]))]
)  # fmt: skip


def odd_rows(count: int) -> pa.Table:
    """`count` rows with every value of each column, in combinations that do not repeat soon."""
    columns = {
        name: pa.array([values[(row * step + row // 7) % len(values)] for row in range(count)], kind)
        for step, (name, (kind, values)) in enumerate(VALUES.items(), start=1)
    }
    structs = [None if row % 5 == 4 else {"x": None if row % 5 == 3 else row % 3} for row in range(count)]
    return pa.table(
        {"id": [f"k{row:03d}" for row in range(count)], "city": ["oslo" if row % 3 else "rome" for row in range(count)],
         **columns, "st": pa.array(structs, SCHEMA.field("st").type)},
        schema=SCHEMA,
    )  # fmt: skip
