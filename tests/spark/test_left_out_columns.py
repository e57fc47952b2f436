"""Spark could read partition columns from files that lack them, or write files that hold them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from tests.support.compare import assert_same_rows
from tests.support.spark_frames import on_spark

pytestmark = pytest.mark.spark


def rows(ids: range, ts: int, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{n}" for n in ids],
            "day": pa.array([n % 2 for n in ids], pa.int32()).cast(kind or pa.string()),
            "ts": pa.array([ts] * len(ids), pa.int64()),
        }
    )


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
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
        assert_same_rows(table.scan(meta_fields=False).to_spark(spark).toArrow(), expected)
        assert table.compact().file_groups
    assert_same_rows(table.scan(meta_fields=False).to_spark(spark).toArrow(), expected)
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), expected)
    for path in table.scan().files():
        if path.endswith(".parquet"):
            assert "day" not in pq.read_schema(tmp_path / "t" / path).names
