"""A query for record keys asks the rows of a log's blocks for them, too: were they then counted as though all had been
read, Apache Hudi would give rows that are replaced or deleted. 1.2.0 does so with Parquet blocks whose positions it
uses.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.interop.mor_tables import BLOCK_FORMAT, BY_ID_AND_TS, POSITIONS
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

COUNT = 400_000
FILTERS = ["id = 'k0300000'", "id = 'k0300003'", "id IN ('k0100000', 'k0399998', 'nix')", "id > 'k0399990'"]
INCREMENTAL = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "0"}


def rows(numbers: range, *, ts: int) -> pa.Table:
    return pa.table({"id": [f"k{n:07}" for n in numbers], "ts": pa.array([ts] * len(numbers), pa.int64())})


@pytest.mark.parametrize("name, version", [("hudi_102", 8), ("hudi_120", 9)], ids=["1.0.2 on 8", "1.2.0 on 9"])
@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_hudi_finds_keys_in_our_logs(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, kind: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    path = tmp_path / "t"
    table = HudiTable.create(
        path, name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ", table_version=version,
        properties={"hoodie.compact.inline": "false", BLOCK_FORMAT: kind},
    )  # fmt: skip
    table.bulk_insert(rows(range(COUNT), ts=1))
    table.upsert(rows(range(0, COUNT, 2), ts=2))
    table.delete(rows(range(3, COUNT, 1_000), ts=3).select(["id"]))
    for where in FILTERS:
        assert_same_rows(hudi.read(path, where), table.scan(where=where).to_arrow())
    changed = hudi.read(path, **INCREMENTAL)  # from now on the session filters rows of Parquet files one by one
    assert len(changed) == COUNT - COUNT // 1_000
    for where in FILTERS:
        assert_same_rows(hudi.read(path, where), table.scan(where=where).to_arrow())


def test_hudi_120_finds_replaced_rows_in_its_own_parquet_blocks(hudi_120: ReferenceHudi, tmp_path: Path) -> None:
    """Seen: why Parquet blocks of ours do not offer their positions. It fails once a release no longer does so."""
    path = tmp_path / "t"
    options = BY_ID_AND_TS | {BLOCK_FORMAT: "parquet", "hoodie.bulkinsert.shuffle.parallelism": 1}
    hudi_120.write(path, rows(range(COUNT), ts=1), operation="bulk_insert", mode="overwrite", **options)
    hudi_120.write(path, rows(range(0, COUNT, 2), ts=2), **options)
    where = FILTERS[0]
    by_key = {POSITIONS: False}
    assert hudi_120.read(path, where, **by_key)["ts"].to_pylist() == [2]
    assert HudiTable.open(path).scan(where=where).to_arrow()["ts"].to_pylist() == [2]
    assert sorted(hudi_120.read(path, where)["ts"].to_pylist()) == [1, 2]
