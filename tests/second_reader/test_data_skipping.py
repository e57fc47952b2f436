"""hudi-rs skips files by the statistics in their footers. Of the metadata table it reads the listing alone, so our
column statistics neither help nor mislead it; this says so when it changes."""

from pathlib import Path

import pyarrow as pa
import pytest
from hudi import HudiReadOptions
from hudi import HudiTable as HudiRsTable

from pyhudi import HudiTable
from tests.support.compare import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", pa.int64())])
OPTIONS = {
    "hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true", "hoodie.metadata.record.index.enable": "true",
}  # fmt: skip


def test_hudi_rs_reads_a_table_with_every_index_and_skips_by_footers_alone(tmp_path: Path) -> None:
    path = tmp_path / "rides"
    HudiTable.create(path, name="rides", record_key="id", partition_by="city")
    new = [{"id": f"k{n}", "city": f"city{n // 10}", "v": n} for n in range(30)]
    ours = HudiTable.open(path, options=OPTIONS)
    ours.upsert(pa.Table.from_pylist(new, SCHEMA))
    assert "column_stats" in ours.properties["hoodie.table.metadata.partitions"]

    wanted = HudiReadOptions().with_filters([("v", ">", "24")])
    theirs = HudiRsTable(str(path))
    assert [piece.partition_path for piece in theirs.get_file_slices(wanted)] == ["city2"]
    assert_same_rows(pa.Table.from_batches(theirs.read(wanted)), ours.scan(where="v > 24").to_arrow())

    for file in path.glob("city0/*.parquet"):
        file.rename(file.with_suffix(".away"))
    with pytest.raises(Exception, match="Failed to read base file footer"):
        HudiRsTable(str(path)).read(wanted)


def test_hudi_rs_reads_row_groups_that_a_clustering_copied_and_skips_by_their_bounds(tmp_path: Path) -> None:
    path = tmp_path / "rides"
    ours = HudiTable.create(
        path, name="rides", record_key="id", partition_by="city", properties={"hoodie.parquet.small.file.limit": "0"}
    )
    for start in (0, 300):
        new = [{"id": f"k{n:03}", "city": "oslo", "v": n} for n in range(start, start + 300)]
        ours.insert(pa.Table.from_pylist(new, SCHEMA))
    assert ours.cluster().files == 1

    theirs = HudiRsTable(str(path))
    assert_same_rows(pa.Table.from_batches(theirs.read()), ours.scan().to_arrow())
    found = pa.Table.from_batches(theirs.read(HudiReadOptions().with_filters([("v", ">", "590")])))
    assert sorted(v for v in found.column("v").to_pylist() if v > 590) == list(range(591, 600))
