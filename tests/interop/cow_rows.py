"""Rows of every column type, made from their key and a turn: whoever knows these two knows the row."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]

CITIES = ("oslo", "rome", "lima")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("region", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("number", pa.int32()),
        ("long", pa.int64()),
        ("double", pa.float64()),
        ("float", pa.float32()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local_at", pa.timestamp("us")),
        ("price", pa.decimal128(10, 2)),
        ("exact", pa.decimal128(30, 5)),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("stops", pa.list_(pa.struct([("place", pa.string()), ("minutes", pa.int32())]))),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ("driver", pa.struct([("name", pa.string()), ("age", pa.int32()), ("marks", pa.list_(pa.float64()))])),
    ]
)
"""Nothing but `id`, `region`, `city` and `ts` is never null."""

EPOCH = dt.datetime(1970, 1, 1)
_ALWAYS = ("id", "region", "city", "ts")


def row(key: str, *, turn: int, ts: int, region: str = "north", city: str | None = None) -> Row:
    """The row that `turn` gives the key, nulls among its values; its city depends on the key alone."""
    draw = random.Random(f"{key}/{turn}")
    whole = draw.randrange(-(10**9), 10**9)
    at = EPOCH + dt.timedelta(microseconds=draw.randrange(-(10**14), 4 * 10**15))
    values: Row = {
        "id": key,
        "region": region,
        "city": city if city is not None else CITIES[sum(key.encode()) % len(CITIES)],
        "ts": ts,
        "number": whole,
        "long": whole * 9_000_000_007,
        "double": draw.choice([draw.gauss(0, 1e9), 0.0, -0.0, float("inf"), float("nan")]),
        "float": draw.choice([1.5, -2.25, 3.0e38, 0.0]),
        "flag": draw.random() < 0.5,
        "day": at.date(),
        "at": at.replace(tzinfo=dt.UTC),
        "local_at": at + dt.timedelta(hours=5),
        "price": Decimal(draw.randrange(-(10**10) + 1, 10**10)).scaleb(-2),
        "exact": Decimal(draw.randrange(-(10**29), 10**29)).scaleb(-5),
        "raw": draw.randbytes(draw.randrange(9)),
        "tags": [draw.choice(["", "a", "zwölf", None]) for _ in range(draw.randrange(4))],
        "stops": [
            draw.choice([{"place": f"stop {n}", "minutes": draw.choice([None, n])}, None])
            for n in range(draw.randrange(4))
        ],
        "counts": [(f"k{n}", draw.choice([None, n, -n])) for n in range(draw.randrange(4))],
        "driver": {"name": draw.choice([None, "Kari"]), "age": turn, "marks": draw.choice([None, [], [0.5, None]])},
    }
    for name in values:
        if name not in _ALWAYS and draw.random() < 0.15:
            values[name] = None
    return values


def rows(keys: Iterable[str], *, turn: int, ts: int | None = None, region: str = "north") -> list[Row]:
    return [row(key, turn=turn, ts=turn if ts is None else ts, region=region) for key in keys]


def table_of(of: Sequence[Row], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(list(of), schema=schema)


def key_range(start: int, stop: int) -> list[str]:
    return [f"key-{n:05}" for n in range(start, stop)]
