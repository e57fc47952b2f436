"""Bounds in a file could pass over NaN, which Spark looks for behind every number."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from pyhudi.format.leaf_bounds import leaves_with_bounds

NAN = float("nan")


@pytest.mark.parametrize(
    "values, expected",
    [([1.0, None, 2.0], ["id", "x"]), ([1.0, NAN], ["id"]), ([None, NAN], ["id"]), ([], ["id", "x"])],
)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_floats_have_bounds_where_none_is_nan(
    values: list[float | None], expected: list[str], kind: pa.DataType
) -> None:
    rows = pa.table({"id": pa.array(range(len(values)), pa.int64()), "x": pa.array(values, kind)})

    assert leaves_with_bounds(rows, is_whole=True) == expected
    assert leaves_with_bounds(rows, is_whole=False) == ["id"]


def test_nested_floats_have_no_bounds() -> None:
    place = pa.struct([("x", pa.float64()), ("names", pa.list_(pa.string()))])
    schema = pa.schema([("place", place), ("m", pa.map_(pa.string(), pa.float32())), ("l", pa.list_(pa.float64()))])

    assert leaves_with_bounds(schema.empty_table(), is_whole=True) == ["place.names.list.element", "m.key_value.key"]


def test_the_footer_of_a_base_file_tells_no_bounds_of_nan(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    table.bulk_insert(pa.table({"id": ["a", "b"], "x": [1.0, NAN], "y": [1.0, 2.0], "n": [1, None]}))

    (path,) = table.scan().files()
    group = pq.ParquetFile(tmp_path / "t" / path).metadata.row_group(0)
    found = {(leaf := group.column(at)).path_in_schema: leaf.statistics for at in range(group.num_columns)}
    assert found["x"] is None or not found["x"].has_min_max
    assert (found["y"].min, found["y"].max, found["n"].null_count) == (1.0, 2.0, 1)
    assert found["_hoodie_record_key"].max == "b"
