"""Spark could read columns from files that lack them, write files that hold what they should not, or find no
key in files that it has no reader for."""

import datetime as dt
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable, Invalid
from tests.support.compare import assert_same_rows
from tests.support.spark_frames import collected, on_spark

pytestmark = pytest.mark.spark


def rows(ids: range, ts: int, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{n}" for n in ids],
            "day": pa.array([n % 2 for n in ids], pa.int32()).cast(kind or pa.string()),
            "ts": pa.array([ts] * len(ids), pa.int64()),
        }
    )


@pytest.mark.parametrize("table_type", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.long), "MERGE_ON_READ"])
def test_a_column_that_no_file_holds_is_the_path_s(spark: Any, tmp_path: Path, handover: str, table_type: str) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="day", ordering="ts", table_type=table_type,
        properties={"hoodie.datasource.write.drop.partition.columns": "true", "hoodie.index.type": "GLOBAL_SIMPLE"},
    )  # fmt: skip
    table.bulk_insert(on_spark(spark, rows(range(60), 1, pa.int32()), tmp_path))
    result = table.upsert(on_spark(spark, rows(range(50, 70), 2), tmp_path))
    assert (result.updated, result.inserted) == (10, 10)
    table.delete(on_spark(spark, rows(range(5), 3), tmp_path))

    expected = pa.concat_tables([rows(range(5, 50), 1), rows(range(50, 70), 2)])
    if table_type == "MERGE_ON_READ":
        assert_same_rows(collected(table.scan(meta_fields=False).to_spark(spark)), expected)
        assert table.compact().file_groups
    assert_same_rows(collected(table.scan(meta_fields=False).to_spark(spark)), expected)
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), expected)
    for path in table.scan().files():
        if path.endswith(".parquet"):
            assert "day" not in pq.read_schema(tmp_path / "t" / path).names


def test_a_value_that_no_path_tells_is_refused(spark: Any, tmp_path: Path, handover: str) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by=["day", "kind"],
        properties={"hoodie.datasource.write.drop.partition.columns": "true"},
    )  # fmt: skip
    for value in ("a/b", "", "__HIVE_DEFAULT_PARTITION__"):
        given = pa.table({"id": ["x", "y"], "day": [None, value], "kind": ["k", "k"]})
        for write in (table.bulk_insert, table.upsert):
            with pytest.raises(Invalid, match=f"partition column 'day', value '{value}': expected a value that the"):
                write(on_spark(spark, given, tmp_path))
    assert len(table.timeline()) == 0


@pytest.mark.parametrize(
    "file_format, table_type, index",
    [
        pytest.param("HFILE", "COPY_ON_WRITE", "SIMPLE", marks=pytest.mark.long),
        ("HFILE", "MERGE_ON_READ", "GLOBAL_BLOOM"),
        pytest.param(
            *("LANCE", "COPY_ON_WRITE", "GLOBAL_SIMPLE"),
            marks=[
                pytest.mark.skipif(find_spec("lance") is None, reason="the package pylance is not there"),
                pytest.mark.long,
            ],
        ),
    ],
)
def test_tasks_read_files_that_spark_has_no_reader_for(
    spark: Any, tmp_path: Path, handover: str, file_format: str, table_type: str, index: str
) -> None:
    """Keys are looked up, rows are merged and shown."""
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="day", ordering="ts", table_type=table_type,
        properties={"hoodie.table.base.file.format": file_format, "hoodie.index.type": index},
    )  # fmt: skip
    table.bulk_insert(on_spark(spark, rows(range(60), 1), tmp_path))
    result = table.upsert(on_spark(spark, rows(range(50, 70), 2), tmp_path))
    assert (result.updated, result.inserted) == (10, 10)
    table.delete(on_spark(spark, rows(range(5), 3), tmp_path))

    expected = pa.concat_tables([rows(range(5, 50), 1), rows(range(50, 70), 2)])
    assert all(path.endswith(f".{file_format.lower()}") or ".log." in path for path in table.scan().files())
    assert_same_rows(collected(table.scan(meta_fields=False).to_spark(spark)), expected)
    assert table.scan(where="ts = 2").to_spark(spark).count() == 20


@pytest.mark.long
def test_a_global_index_compares_times_of_orc_files(spark: Any, tmp_path: Path, handover: str) -> None:
    """Spark's own reader would take them for readings in the zone of its JVM."""

    def timed(ids: range, hour: int) -> pa.Table:
        moment = dt.datetime(2026, 11, 26, hour, tzinfo=dt.UTC)
        at = pa.array([moment] * len(ids), pa.timestamp("us", "UTC"))
        return rows(ids, 1).set_column(2, "ts", at)

    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="day", ordering="ts",
        properties={"hoodie.table.base.file.format": "ORC", "hoodie.index.type": "GLOBAL_SIMPLE"},
    )  # fmt: skip
    table.bulk_insert(on_spark(spark, timed(range(20), 10), tmp_path))
    late, later = timed(range(5), 9), timed(range(5, 10), 11)
    moved = pa.concat_tables([late, later]).set_column(1, "day", pa.array(["far"] * 10))
    table.upsert(on_spark(spark, moved, tmp_path))

    expected = pa.concat_tables([timed(range(5), 10), moved.slice(5), timed(range(10, 20), 10)])
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), expected)
