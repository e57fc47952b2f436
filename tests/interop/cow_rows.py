"""Rows of every column type, made from their key and a turn: whoever knows these two knows the row."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]

COMMIT_TIME = "_hoodie_commit_time"
META_BUT_TIME = (
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)

REGIONS = ("north", "south/west & so")
CITIES = ("oslo", "rome")
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


def row(key: str, *, turn: int, ts: int, holes: bool = False) -> Row:
    """The row that `turn` gives the key, nulls among its values; region and city depend on the key alone.

    `holes`: lists have null elements too.
    """
    draw = random.Random(f"{key}/{turn}")

    def none(otherwise: Any) -> Any:
        return None if holes else otherwise

    whole = draw.randrange(-(10**9), 10**9)
    at = EPOCH + dt.timedelta(microseconds=draw.randrange(-(10**14), 4 * 10**15))
    values: Row = {
        "id": key,
        "region": REGIONS[int(key[-1]) % len(REGIONS)],
        "city": CITIES[int(key[-2:]) % len(CITIES)],
        "ts": ts,
        "number": whole,
        "long": whole * 9_000_000_007,
        "double": draw.choice([draw.gauss(0, 1e9), 0.0, -0.0, float("inf"), float("nan")]),
        "float": draw.choice([1.5, -2.25, 3.0e38, 0.0]),
        "flag": draw.random() < 0.5,
        "day": at.date(),
        "at": at.replace(tzinfo=dt.UTC),
        "price": Decimal(draw.randrange(-(10**10) + 1, 10**10)).scaleb(-2),
        "exact": Decimal(draw.randrange(-(10**29), 10**29)).scaleb(-5),
        "raw": draw.randbytes(draw.randrange(9)),
        "tags": [draw.choice(["", "a", "zwölf", none("b")]) for _ in range(draw.randrange(4))],
        "stops": [
            draw.choice(
                [{"place": f"stop {n}", "minutes": draw.choice([None, n])}, none({"place": None, "minutes": n})]
            )
            for n in range(draw.randrange(4))
        ],
        "counts": [(f"k{n}", draw.choice([None, n, -n])) for n in range(draw.randrange(4))],
        "driver": {
            "name": draw.choice([None, "Kari"]),
            "age": turn,
            "marks": draw.choice([None, [], [0.5, none(0.25)]]),
        },
    }
    for name in values:
        if name not in _ALWAYS and draw.random() < 0.15:
            values[name] = None
    return values


def rows(keys: Iterable[str], *, turn: int, ts: int | None = None, holes: bool = False) -> list[Row]:
    return [row(key, turn=turn, ts=turn if ts is None else ts, holes=holes) for key in keys]


def key_range(start: int, stop: int, step: int = 1) -> list[str]:
    return [f"key-{n:05}" for n in range(start, stop, step)]


def table_of(of: Iterable[Row], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(list(of), schema=schema)


@dataclass
class Model:
    """What a table must hold: a dict, and a copy of it for every commit.

    `keeps_greater`: event-time ordering, a stored row with a greater `ts` stays.
    """

    keeps_greater: bool
    rows: dict[str, Row] = field(default_factory=dict)
    past: dict[str, dict[str, Row]] = field(default_factory=dict)
    """Requested time -> the rows after that commit."""

    def upsert(self, requested: str, new: Iterable[Row]) -> None:
        for one in new:
            old = self.rows.get(one["id"])
            if not (self.keeps_greater and old is not None and old["ts"] > one["ts"]):
                self.rows[one["id"]] = {COMMIT_TIME: requested, **one}
        self.past[requested] = dict(self.rows)

    def delete(self, requested: str, keys: Iterable[str]) -> None:
        for key in keys:
            self.rows.pop(key, None)
        self.past[requested] = dict(self.rows)

    def replace(self, requested: str, gone: Callable[[Row], bool], new: Iterable[Row] = ()) -> None:
        """Rows go whatever they hold, others come."""
        self.rows = {key: one for key, one in self.rows.items() if not gone(one)}
        self.rows |= {one["id"]: {COMMIT_TIME: requested, **one} for one in new}
        self.past[requested] = dict(self.rows)

    def table(self, as_of: str | None = None, where: Callable[[Row], bool] = lambda row: True) -> pa.Table:
        of = self.rows if as_of is None else self.past[as_of]
        schema = pa.schema([(COMMIT_TIME, pa.string()), *SCHEMA])
        return table_of((one for one in of.values() if where(one)), schema)

    def changed(self, requested: Collection[str]) -> pa.Table:
        """The rows that these commits wrote last, as they stood after the newest of them."""
        return self.table(as_of=max(requested), where=lambda one: one[COMMIT_TIME] in requested)
