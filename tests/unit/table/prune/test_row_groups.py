"""Statistics in footers could drop a row that a query keeps: every predicate's answer is that of a scan that skips
nothing. Or they could spare nothing: files and row groups that are read are counted."""

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.prune.row_groups import matching_row_groups
from pyhudi.table.slices.base_files.opening import open_base_file
from tests.support.compare import assert_same_rows

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def batch(start: int, count: int = 100) -> pa.Table:
    numbers = list(range(start, start + count))
    return pa.table(
        {
            "id": [f"k{n:05d}" for n in numbers],
            "n": pa.array(numbers, pa.int32()),
            "f": pa.array([math.nan if n % 50 == 7 else n / 10 for n in numbers], pa.float64()),
            "g": pa.array([n / 10 for n in numbers], pa.float64()),
            "text": pa.array([None if n % 3 == 0 else f"t{n:05d}" for n in numbers], pa.string()),
            "at": pa.array([EPOCH + timedelta(hours=n) for n in numbers], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(10, 2)),
            "only": pa.array([None if start < 200 else n for n in numbers], pa.int64()),
            "deep": pa.array([None if n % 10 == 0 else {"x": n} for n in numbers], pa.struct([("x", pa.int64())])),
        }
    )


@pytest.fixture(scope="module")
def table() -> HudiTable:
    """Four files of 100 rows each, in three commits."""
    options = {"hoodie.parquet.small.file.limit": "0"}
    made = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage(), properties=options)
    for start in (0, 100, 200):
        made.bulk_insert(batch(start))
    made.insert(batch(300))
    return made


CASES: list[tuple[Any, int]] = [
    ("n < 100", 1),
    ("n between 150 and 250", 2),
    ("n = 1000", 0),
    ("n in (5, 305)", 2),
    ("n < 50 or n > 350", 2),
    ("not n >= 100", 1),
    ("text = 't00101'", 1),
    ("text like 't002%'", 1),
    ("text is null and n >= 300", 1),
    ("f > 29.5", 4),  # NaN is greater than every number, and no footer says where it is
    ("f < 1.0", 4),  # for the same reason a file with a NaN has no bounds at all
    ("g < 1.0", 1),
    ("at >= '2026-01-13 12:00:00'", 1),
    ("price <= 0.5", 1),
    ("only is not null", 2),
    ("only is null", 2),
    ("deep.x > 250", 2),
    ("_hoodie_record_key = 'k00042'", 1),
    ("n % 2 = 0", 4),
    (pc.field("n") > 320, 1),
    (pc.field("text") == "t00205", 1),
    (pc.field("only").is_valid(), 2),
]


@pytest.mark.parametrize("where, files", CASES, ids=lambda case: str(case))
def test_files_without_a_match_are_skipped_and_no_row_is_lost(table: HudiTable, where: Any, files: int) -> None:
    scan = table.scan(where=where)
    whole = table.scan()

    explanation = scan.explain()

    assert (explanation.files, explanation.files_pruned) == (files, 4 - files)
    assert len(scan.files()) == files
    assert scan._plan.predicate is not None
    assert_same_rows(scan.to_arrow(), scan._plan.predicate.filter(whole.to_arrow()))
    assert pa.table(scan).num_rows == scan.to_arrow().num_rows


def test_incremental_queries_skip_files_by_the_commit_times_in_them(table: HudiTable) -> None:
    times = [instant.completed for instant in table.timeline() if instant.action == "commit"]
    scan = table.incremental(times[1])
    assert scan.to_arrow().num_rows == 200
    assert len(scan.files()) == 2


def test_row_groups_without_a_match_are_not_read() -> None:
    storage = MemoryStorage()
    with storage.put_stream("file.parquet") as sink:
        pq.write_table(batch(0, 1_000), sink, row_group_size=100)
    made = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    made.bulk_insert(batch(0, 2))
    plan = made.scan(where="n between 250 and 349")._plan

    assert matching_row_groups(open_base_file(storage, "file.parquet"), plan) == [2, 3]


def test_bounds_of_another_type_are_left_alone() -> None:
    """A float's bound is not that of the double that its text becomes."""
    storage = MemoryStorage()
    with storage.put_stream("file.parquet") as sink:
        pq.write_table(pa.table({"f": pa.array([0.1], pa.float32())}), sink)
    made = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    made.bulk_insert(batch(0, 2))
    plan = made.scan(where="f <= 0.1")._plan

    assert matching_row_groups(open_base_file(storage, "file.parquet"), plan) == [0]
