"""Spark finds columns without regard to case: a projection by other letters must not store nulls in their place."""

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
def test_a_column_selected_by_other_letters_keeps_its_values(
    spark: Any, tmp_path: Path, handover: str, operation: str
) -> None:
    path = str(tmp_path / "rows")
    spark.range(0, 50, 1, 2).selectExpr("cast(id AS string) Id", "'p' Part", "id V").write.parquet(path)
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part")
    rows = spark.read.parquet(path)

    table.bulk_insert(rows.where("v < 20").select("id", "part", "v"))
    getattr(table, operation)(rows.where("v >= 20").select("id", "part", "v"))

    stored = table.scan(meta_fields=False).to_arrow()
    assert stored.column_names == ["id", "part", "v"]
    assert sorted(stored["v"].to_pylist()) == list(range(50))
    assert sorted(stored["id"].to_pylist()) == sorted(map(str, range(50)))
