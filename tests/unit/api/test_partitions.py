"""A partition whose rows were all deleted could count as one with rows, since its files are there."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.api.partitions import has_rows, living_partitions


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_partition_without_rows_has_none(tmp_path: Path, table_type: str) -> None:
    table = HudiTable.create(tmp_path, name="t", record_key="id", partition_by="day", table_type=table_type)
    table.insert(pa.table({"id": [1, 2, 3], "day": ["x", "x", "y"]}))
    table.delete(where="id = 1")
    assert has_rows(table, ["x"])

    table.delete(where="day = 'x'")

    assert living_partitions(table) == ("x", "y")
    assert [has_rows(table, paths) for paths in (["x"], ["y"], ["x", "y"], ["nowhere"], [])] == [
        False, True, True, False, False,
    ]  # fmt: skip
