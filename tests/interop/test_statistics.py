"""Apache Hudi passes over files and partitions by the statistics that pyhudi writes. It would lose rows by one that
says too little: of files with NaN, and of files that are older than a column.
"""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.interop.indexed_tables import SKIPPING
from tests.support.reference.client import ReferenceHudi

STATS = {
    "hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
}  # fmt: skip
PAIRS = pytest.mark.parametrize("name, version", [("hudi_102", 8), ("hudi_120", 9)], ids=["1.0.2 on 8", "1.2.0 on 9"])


@PAIRS
def test_hudi_finds_rows_beside_nan_and_in_files_older_than_a_column(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    HudiTable.create(tmp_path, name="t", record_key="id", partition_by="p", table_version=version)
    parts = [
        pa.table({"id": ["a", "b"], "p": ["x", "x"], "f": [math.nan, 1.0]}),
        pa.table({"id": ["c"], "p": ["x"], "f": [5.0], "c": [7]}),
        pa.table({"id": ["d"], "p": ["y"], "f": [9.0], "c": [8]}),
    ]
    for number, rows in enumerate(parts):
        HudiTable.open(tmp_path, options=STATS if number == 2 else {"hoodie.parquet.small.file.limit": "0"}).insert(
            rows
        )

    asked = {"f = 1.0": "b", "f > 6": "ad", "f != 5.0": "abd", "c IS NULL AND f < 3": "b", "c = 7": "c"}
    for where, ids in asked.items():
        found = hudi.read(tmp_path, where, **SKIPPING)
        assert sorted(found["id"].to_pylist()) == sorted(ids), where


@PAIRS
def test_we_find_rows_of_hudi_beside_nan(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    """Seen: of a file with NaN, Apache Hudi states both bounds as 0.0: Parquet's reader for Java gives no others."""
    hudi: ReferenceHudi = request.getfixturevalue(name)
    rows = pa.table({
        "id": list("abcdefgh"), "p": list("uuvvwwxx"), "ts": [1] * 8,
        "f": [-7.0, math.nan, 7.0, math.nan, math.nan, None, -1.0, 9.0],
        "g": pa.array([-7.0, math.nan, 7.0, math.nan, math.nan, None, -1.0, 9.0], pa.float32()),
    })  # fmt: skip
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p", "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.write.table.version": str(version), "hoodie.metadata.index.column.stats.enable": "true",
    }  # fmt: skip
    hudi.write(tmp_path / "t", rows, **options)
    table = HudiTable.open(tmp_path / "t")
    assert table.metadata.validate().differences == ()
    asked = {"< -1": "a", "< 0": "ag", "> 6": "bcdeh", "= 7": "c", "= double('NaN')": "bde", "= 0": "", "<= 8": "acg"}
    for column in "fg":
        for condition, ids in asked.items():
            found = table.scan(where=f"{column} {condition}").to_arrow()
            assert sorted(found["id"].to_pylist()) == sorted(ids), (column, condition)
