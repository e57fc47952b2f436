"""The records of the metadata table are those that Apache Hudi's `hudi_metadata` shows, in its columns.

Seen: 1.2.0 writes no metadata table any more in a JVM whose first use of one was this query (`HoodieMetadataPayload`
compares schemas by their identity), and the query fails; so a write comes first. 1.0.2 cannot show statistics that
it has to merge: those of partitions, and of files that are cleaned.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.support.reference.client import ReferenceHudi

INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.clean.commits.retained": "1",
}  # fmt: skip
FIRST = {
    "hoodie.table.name": "first", "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p", "hoodie.datasource.write.precombine.field": "ts",
}  # fmt: skip
PAIRS = pytest.mark.parametrize("name, version", [("hudi_102", 8), ("hudi_120", 9)], ids=["1.0.2 on 8", "1.2.0 on 9"])


def rows(*keys: str, ts: int) -> pa.Table:
    count = len(keys)
    return pa.table({
        "id": list(keys), "ts": [ts] * count, "n": pa.array([None, *range(1, count)], pa.int32()),
        "price": pa.array([1.25 * ts] * count).cast(pa.decimal128(10, 2)), "ratio": [0.5] * count,
        "at": pa.array([1_704_067_200_123_456] * count, pa.timestamp("us", "UTC")),
        "day": pa.array([19_724] * count, pa.date32()), "flag": [True] * count,
        "p": ["x" if key < "c" else "y" for key in keys],
    })  # fmt: skip


@PAIRS
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_shows_the_records_that_we_read(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, table_type: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    hudi.write(tmp_path / "first", rows("a", ts=1), **FIRST)
    merges = name == "hudi_120"
    merging = ["hoodie.metadata.index.partition.stats.enable", "hoodie.clean.automatic"]
    options = INDEXES | dict.fromkeys(merging, str(merges).lower())
    path = tmp_path / "t"
    HudiTable.create(
        path, name="t", record_key="id", partition_by="p", ordering="ts", table_version=version, table_type=table_type
    )
    table = HudiTable.open(path, options=options)
    table.insert(rows("a", "b", "c", "d", ts=1))
    table.build_index("secondary_index", columns=["n"])
    for ts in (2, 3, 4):
        HudiTable.open(path, options=options).upsert(rows("a", "e", ts=ts))
    HudiTable.open(path, options=options).delete(rows("c", ts=5))
    shown = hudi.sql(f"SELECT * FROM hudi_metadata('{path}')")
    assert shown is not None

    read = HudiTable.open(path).metadata.read_records().read_all()
    assert read.schema.names == shown.schema.names
    assert by_key(read) == by_key(shown)
    assert {one["type"] for one in read.to_pylist()} == {1, 2, 3, 4, 5, 7} | ({6} if merges else set())


def by_key(records: pa.Table) -> dict[tuple[int, str], Any]:
    assert len(records) > 10
    found = {}
    for one in records.to_pylist():
        if one["filesystemMetadata"] is not None:
            one["filesystemMetadata"] = dict(one["filesystemMetadata"])
        found[one["type"], one["key"]] = one
    assert len(found) == len(records)
    return found
