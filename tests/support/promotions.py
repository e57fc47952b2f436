"""Every way in which a column may become of another type: what was stored, what comes in, what is read then."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

KEYS = ("k0", "k1", "k2", "k3")


@dataclass(frozen=True)
class Promotion:
    """`stored`: four values as `before`. `read`: the same once the column is of type `after`. `new`: two more."""

    name: str
    before: pa.DataType
    after: pa.DataType
    stored: tuple[Any, ...]
    read: tuple[Any, ...]
    new: tuple[Any, ...]

    def __str__(self) -> str:
        return self.name


def rows(kind: pa.DataType, values: tuple[Any, ...], keys: tuple[str, ...], city: str) -> pa.Table:
    """Rows of one partition whose column `c` has these values."""
    return pa.table(
        {"id": list(keys), "city": [city] * len(keys), "ts": pa.array([1] * len(keys), pa.int64()),
         "c": pa.array(list(values), kind)}
    )  # fmt: skip


def _struct(*members: tuple[str, pa.DataType]) -> pa.DataType:
    return pa.struct(list(members))


A_INT, A_LONG, A_DOUBLE, A_FLOAT = (("a", kind) for kind in (pa.int32(), pa.int64(), pa.float64(), pa.float32()))
_WHOLE = (1, -2, None, 2**31 - 1)
_LONG = (1, -2, None, 2**53 + 1)
_SINGLE = (0.1, -2.7, None, 3.0e38)

IN_COLUMNS = (
    Promotion("int to long", pa.int32(), pa.int64(), _WHOLE, _WHOLE, (2**40, None)),
    Promotion("int to float", pa.int32(), pa.float32(), _WHOLE, (1.0, -2.0, None, 2.0**31), (0.5, None)),
    Promotion("int to double", pa.int32(), pa.float64(), _WHOLE, (1.0, -2.0, None, 2147483647.0), (0.1, None)),
    Promotion("long to float", pa.int64(), pa.float32(), _LONG, (1.0, -2.0, None, 2.0**53), (0.5, None)),
    Promotion("long to double", pa.int64(), pa.float64(), _LONG, (1.0, -2.0, None, 2.0**53), (0.1, None)),
    Promotion("float to double", pa.float32(), pa.float64(), _SINGLE, _SINGLE, (0.3, None)),
    Promotion(
        "string to bytes", pa.string(), pa.binary(),
        ("a", "é", None, ""), (b"a", "é".encode(), None, b""), (b"\xff", None),
    ),
)  # fmt: skip

NEW_FIELDS = (
    Promotion(
        "a new field", _struct(A_INT), _struct(A_INT, ("b", pa.string())),
        ({"a": 1}, {"a": None}, None, {"a": 3}),
        ({"a": 1, "b": None}, {"a": None, "b": None}, None, {"a": 3, "b": None}),
        ({"a": 1, "b": "x"}, None),
    ),
    Promotion(
        "a new field of elements", pa.list_(_struct(A_INT)), pa.list_(_struct(A_INT, ("b", pa.string()))),
        ([{"a": 1}], [], None, [{"a": None}]),
        ([{"a": 1, "b": None}], [], None, [{"a": None, "b": None}]),
        ([{"a": 7, "b": "x"}], []),
    ),
)  # fmt: skip

WITHIN_OTHERS = (
    Promotion(
        "elements", pa.list_(pa.int32()), pa.list_(pa.int64()),
        ([1, 2], [], None, [3]), ([1, 2], [], None, [3]), ([2**40], []),
    ),
    Promotion(
        "float elements", pa.list_(pa.float32()), pa.list_(pa.float64()),
        ([0.1, 2.0], [], None, [3.0]), ([0.1, 2.0], [], None, [3.0]), ([0.3], []),
    ),
    Promotion(
        "values of maps", pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.float64()),
        ([("x", 1)], [], None, [("y", None)]), ([("x", 1.0)], [], None, [("y", None)]), ([("z", 0.5)], []),
    ),
    Promotion(
        "fields", _struct(A_INT), _struct(A_LONG),
        ({"a": 1}, {"a": None}, None, {"a": 3}), ({"a": 1}, {"a": None}, None, {"a": 3}), ({"a": 2**40}, None),
    ),
    Promotion(
        "float fields", _struct(A_FLOAT), _struct(A_DOUBLE),
        ({"a": 0.1}, {"a": None}, None, {"a": 3.0}), ({"a": 0.1}, {"a": None}, None, {"a": 3.0}), ({"a": 0.3}, None),
    ),
    Promotion(
        "whole fields to doubles", _struct(A_INT), _struct(A_DOUBLE),
        ({"a": 1}, {"a": None}, None, {"a": 3}), ({"a": 1.0}, {"a": None}, None, {"a": 3.0}), ({"a": 0.3}, None),
    ),
)  # fmt: skip
"""Apache Hudi takes these, and fails on the files of before unless a setting of Spark is changed."""

WRITABLE = (*IN_COLUMNS, *NEW_FIELDS)
PROMOTIONS = (*WRITABLE, *WITHIN_OTHERS)
