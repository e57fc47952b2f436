"""A delete that comes late, behind a row of the log with a greater ordering value, loses to it.

For us it does so whatever the type of the ordering column is and whatever blocks the log has. In Apache Hudi it hangs
on both: where the delete and the row hold their values as objects of two classes, as texts often are, it takes them for
not comparable, and the delete wins.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.interop.mor_tables import BLOCK_FORMAT, BY_ID_AND_TS
from tests.support.reference.client import ReferenceHudi

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "long": (pa.int64(), [1, 5, 9]),
    "string": (pa.string(), ["a", "m", "z"]),
    "date": (pa.date32(), [dt.date(2020, 1, day) for day in (1, 5, 9)]),
    "timestamp": (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, day, tzinfo=dt.UTC) for day in (1, 5, 9)]),
    "decimal": (pa.decimal128(10, 2), [Decimal(f"{n}.50") for n in (1, 5, 9)]),
}
"""Of each type a low value, one between and a high one."""

LATE = "row high, delete between"
WRITES = {
    LATE: [("row", 2), ("delete", 1)],
    "row between, delete high": [("row", 1), ("delete", 2)],
    "delete between, row high": [("delete", 1), ("row", 2)],
    "row between, delete between": [("row", 1), ("delete", 1)],
    "delete between, row between": [("delete", 1), ("row", 1)],
}
"""What is written upon the low row of each key, one after the other."""

CASES = [
    ("hudi_0150", 6, "long", "avro", False),
    ("hudi_0150", 6, "timestamp", "avro", False),
    ("hudi_0150", 6, "string", "avro", True),
    ("hudi_0150", 6, "date", "avro", True),
    ("hudi_0150", 6, "decimal", "parquet", True),
    ("hudi_102", 8, "long", "parquet", False),
    ("hudi_102", 8, "timestamp", "avro", False),
    ("hudi_102", 8, "string", "avro", True),
    ("hudi_120", 9, "long", "parquet", False),
    ("hudi_120", 9, "timestamp", "parquet", False),
    ("hudi_120", 9, "decimal", "avro", False),
    ("hudi_120", 9, "decimal", "parquet", False),
    ("hudi_120", 9, "string", "avro", False),
    ("hudi_120", 9, "string", "parquet", True),
]


@pytest.mark.parametrize("name, version, kind, blocks, hudi_deletes", CASES)
def test_a_late_delete_loses_for_us_whatever_the_type_is(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, kind: str, blocks: str, hudi_deletes: bool
) -> None:
    """`hudi_deletes`: Seen: Apache Hudi takes the row for deleted, in its own tables."""
    hudi: ReferenceHudi = request.getfixturevalue(name)
    path = tmp_path / "t"
    options = BY_ID_AND_TS | {BLOCK_FORMAT: blocks}
    if version > 6:
        options |= {"hoodie.write.table.version": version, "hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}

    hudi.write(
        path, rows(kind, dict.fromkeys(WRITES, ("row", 0))), operation="bulk_insert", mode="overwrite", **options
    )
    for step in (0, 1):
        for what in ("row", "delete"):
            now = {key: writes[step] for key, writes in WRITES.items() if writes[step][0] == what}
            hudi.write(path, rows(kind, now), operation="upsert", **options)

    left = {LATE, "delete between, row high", "delete between, row between"}
    read = HudiTable.open(path).scan().to_arrow()
    assert set(read["id"].to_pylist()) == left
    assert set(hudi.read(path)["id"].to_pylist()) == (left - {LATE} if hudi_deletes else left)


def rows(kind: str, writes: dict[str, tuple[str, int]]) -> pa.Table:
    """A row a key, with a value of the ordering column and whether it deletes."""
    arrow, values = VALUES[kind]
    return pa.table(
        {
            "id": list(writes),
            "ts": pa.array([values[level] for _, level in writes.values()], arrow),
            "_hoodie_is_deleted": [what == "delete" for what, _ in writes.values()],
        }
    )
