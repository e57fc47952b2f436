"""Healthy statistics of bytes could be reported: Apache Hudi orders bytes as signed, queries as unsigned."""

import pyarrow as pa

from pyhudi.metadata.check.bounds import beyond
from pyhudi.metadata.derive.column_bounds import IndexedColumn


def bounds(low: object, high: object, nulls: int, kind: pa.DataType) -> pa.Table:
    return pa.table({
        "file": ["f"], "min": pa.array([low], kind), "max": pa.array([high], kind), "null_count": [nulls],
        "is_known": [True],
    })  # fmt: skip


def test_bounds_of_bytes_may_be_those_of_either_order() -> None:
    for kind in (pa.binary(), pa.binary(1)):
        column = IndexedColumn("c", kind)
        stored, known = bounds(b"\x00", b"\xff", 0, kind), bounds(b"\xff", b"\x08", 0, kind)
        assert list(beyond("column_stats", "p", column, stored, known, "file")) == []
        with_null = bounds(b"\x00", b"\xff", 1, kind)
        assert len(list(beyond("column_stats", "p", column, with_null, known, "file"))) == 1


def test_bounds_of_numbers_are_looked_at() -> None:
    column = IndexedColumn("c", pa.int64())
    stored, known = bounds(1, 9, 0, pa.int64()), bounds(1, 8, 0, pa.int64())
    assert len(list(beyond("column_stats", "p", column, stored, known, "file"))) == 1
