"""Spark could look for record keys in a column that is null in every file."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.spark.handovers import handed
from tests.support.compare import assert_same_rows
from tests.support.spark_frames import collected, on_spark

pytestmark = pytest.mark.spark


def rows(ids: range, ts: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "code": [f"c{n % 3}" for n in ids],
            "day": [f"d{n % 2}" for n in ids],
            "ts": pa.array([ts] * len(ids), pa.int64()),
        }
    )


@handed(
    "table_type, index",
    [(kind, index) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for index in ("SIMPLE", "GLOBAL_BLOOM")],
    [("shuffle", ("COPY_ON_WRITE", "GLOBAL_BLOOM")), ("files", ("MERGE_ON_READ", "SIMPLE"))],
)
def test_rows_find_their_keys_without_meta_fields(
    spark: Any, tmp_path: Path, handover: str, index: str, table_type: str
) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key=["id", "code"], partition_by="day", ordering="ts", table_type=table_type,
        properties={"hoodie.populate.meta.fields": "false", "hoodie.index.type": index},
    )  # fmt: skip
    table.bulk_insert(on_spark(spark, rows(range(60), 1), tmp_path))
    result = table.upsert(on_spark(spark, rows(range(50, 70), 2), tmp_path))
    assert (result.updated, result.inserted) == (10, 10)
    table.delete(on_spark(spark, rows(range(5), 3), tmp_path))

    expected = pa.concat_tables([rows(range(5, 50), 1), rows(range(50, 70), 2)])
    assert_same_rows(table.scan().to_arrow(), expected)
    assert_same_rows(collected(table.scan().to_spark(spark)), expected)

    if table_type == "MERGE_ON_READ":
        table.upsert(on_spark(spark, rows(range(3, 8), 4), tmp_path))  # two of them were deleted in a log
        table.upsert(on_spark(spark, rows(range(60, 70), 5), tmp_path))
        expected = pa.concat_tables([rows(range(3, 8), 4), rows(range(8, 50), 1), rows(range(50, 60), 2)])
        expected = pa.concat_tables([expected, rows(range(60, 70), 5)])
        assert_same_rows(collected(table.scan().to_spark(spark)), expected)
        assert table.compact().file_groups
        assert_same_rows(collected(table.scan(query="read_optimized").to_spark(spark)), expected)
