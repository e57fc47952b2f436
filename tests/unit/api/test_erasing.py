"""A deleted row could live on in a file of the table after the calls that `docs/deleting.md` names."""

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable

CLUSTERED = {"hoodie.clustering.plan.strategy.sort.columns": "id"}
INDEXED = {
    "hoodie.parquet.compression.codec": "uncompressed",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}


@pytest.mark.parametrize("with_changes", [False, True], ids=["rows", "change-logs"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_erased_rows_are_in_no_file(tmp_path: Path, table_type: str, with_changes: bool) -> None:
    properties = {**INDEXED, "hoodie.table.cdc.enabled": str(with_changes).lower()}
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", ordering="ts", table_type=table_type, properties=properties
    )
    for ts in (1, 2):
        table.upsert(pa.table({"id": ["key to go", "b"], "ts": [ts, ts], "v": ["value to go", "x"]}))
    assert holding(tmp_path) != []

    table.delete(pa.table({"id": ["key to go"]}))
    if table_type == "MERGE_ON_READ":
        table.compact()
    elif with_changes:
        table.cluster(options=CLUSTERED)
    table.clean(options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})
    table.metadata.create()

    assert holding(tmp_path) == []
    assert table.scan().to_arrow().column("id").to_pylist() == ["b"]


def holding(folder: Path) -> list[str]:
    return [file.name for file in folder.rglob("*") if file.is_file() and b" to go" in file.read_bytes()]
