"""Validating could call true indexes of Apache Hudi wrong, or not see that one lies."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from tests.support.golden_tables import GoldenTables, golden_names

TABLES = [
    "mor_mdt_all_v6_h0150", "mor_mdt_all_v8_h102", "cow_mdt_all_v9_h120", "mor_mdt_all_v9_h120",
    "mor_secondary_index_v9_h120", "cow_expr_index_v8_h102",
]  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_indexes_of_apache_hudi_agree_with_its_data(golden: GoldenTables, name: str) -> None:
    found = HudiTable.open(golden.get(name).path).metadata.validate()
    assert found.differences == ()
    assert found.not_checked == ()
    assert len(found.checked) > 2


def test_values_that_the_indexes_do_not_know_are_told(golden: GoldenTables, tmp_path: Path) -> None:
    shutil.copytree(golden.get("cow_mdt_all_v9_h120").path, tmp_path / "table")
    path = sorted((tmp_path / "table").rglob("*.parquet"))[-1]
    for name in HudiTable.open(tmp_path / "table").scan().files():
        file = pq.ParquetFile(tmp_path / "table" / name)
        rows, metadata = file.read(), file.schema_arrow.metadata
        file.close()
        path = tmp_path / "table" / name
        at = rows.column_names.index("_hoodie_commit_time")
        changed = rows.set_column(at, rows.schema.field(at), [["9" * 17] * len(rows)])
        pq.write_table(changed.replace_schema_metadata(metadata), path)
    found = HudiTable.open(tmp_path / "table").metadata.validate()
    told = {one.metadata_partition for one in found.differences}
    assert {"column_stats", "partition_stats"} <= told


def test_every_record_of_apache_hudi_is_read_once(golden: GoldenTables) -> None:
    seen = 0
    for name in golden_names():
        metadata = HudiTable.open(golden.get(name).path).metadata
        if not metadata.partitions_in_use:
            continue
        for partition in metadata.partitions_in_use:
            records = metadata.read_records([partition]).read_all()
            keys = records["key"].to_pylist()
            assert len({*keys, None}) == len(keys) + 1, (name, partition)
        listed = [
            dict(files) for files in metadata.read_records(["files"]).read_all()["filesystemMetadata"].to_pylist()
        ]
        files = metadata.list_files()
        assert sum(map(len, listed)) == len(files) + len(metadata.list_partitions()), name
        seen += 1
    assert seen > 50
