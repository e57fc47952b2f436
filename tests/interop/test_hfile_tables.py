"""Data tables of HFiles: Apache Hudi could write upon ours what it did not find there, or we upon its.

Apache Hudi writes such tables, and reads their files to merge. Its queries do not read them: `Unsupported file format:
HFILE` (1.2.0), `MatchError: HFILE` (0.15.0); nor do the compactions of 1.2.0: `is not a Parquet file`. So both write in
turns, and we read.
"""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

HFILE = {"hoodie.table.base.file.format": "HFILE"}


def rows(ids: range, ts: int) -> pa.Table:
    moments = [dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=n * 7_000_001) for n in ids]
    kinds = {"ts": pa.int64(), "at": pa.timestamp("us", "UTC"), "price": pa.decimal128(12, 2)}
    values = {
        "id": [f"k{n:04d}" for n in ids],
        "part": [f"p{n % 2}" for n in ids],
        "ts": [ts] * len(ids),
        "at": [moment if n % 5 else None for n, moment in zip(ids, moments, strict=True)],
        "price": [Decimal(n) / 100 for n in ids],
        "inner": [{"a": n, "all": [float(n)]} if n % 3 else None for n in ids],
    }
    return pa.table({name: pa.array(found, kinds.get(name)) for name, found in values.items()})


@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize(
    "name, version, table_type, index",
    [
        ("hudi_120", 9, "COPY_ON_WRITE", "BLOOM"),
        ("hudi_120", 9, "MERGE_ON_READ", "BLOOM"),
        ("hudi_120", 9, "COPY_ON_WRITE", "BUCKET"),
        ("hudi_0150", 6, "COPY_ON_WRITE", "BUCKET"),
    ],
)
def test_both_write_to_a_table_of_hfiles(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    name: str,
    version: int,
    table_type: str,
    index: str,
    first: str,
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    path, model = tmp_path / "t", rows(range(120), 1)
    by_index = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.base.file.format": "HFILE",
        "hoodie.datasource.write.row.writer.enable": "false",
        "hoodie.index.bloom.num_entries": "200",
        "hoodie.compact.inline": "false",  # 1.2.0 takes the files for Parquet files when it compacts
        **by_index,
        **HFILE,
    }

    def put(new: pa.Table) -> None:
        nonlocal model
        kept = pc.invert(pc.is_in(model.column("id"), value_set=new.column("id").combine_chunks()))
        model = pa.concat_tables([model.filter(kept), new])

    if first == "ours":
        ours = {"table_type": table_type, "table_version": version, "properties": {**HFILE, **by_index}}
        table = HudiTable.create(path, name="t", record_key="id", partition_by="part", ordering="ts", **ours)  # type: ignore[arg-type]
        table.insert(model)
    else:
        hudi.write(path, model, operation="insert", **options)
        table = HudiTable.open(path, options=by_index)
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), model, same_types=False)

    hudi.write(path, rows(range(110, 130), 2), operation="upsert", **options)
    put(rows(range(110, 130), 2))
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), model, same_types=False)

    table.upsert(rows(range(125, 140), 3))
    put(rows(range(125, 140), 3))
    hudi.write(path, rows(range(100, 105), 4), operation="upsert", **options)
    put(rows(range(100, 105), 4))
    hudi.write(path, rows(range(3), 5), operation="delete", **options)
    table.delete(rows(range(3, 6), 5))
    model = model.filter(pc.greater_equal(model.column("id"), "k0006"))
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), model, same_types=False)
    if table_type == "MERGE_ON_READ":
        assert table.compact().file_groups
        assert_same_rows(table.scan(query="read_optimized", meta_fields=False).to_arrow(), model, same_types=False)
    assert all(file.endswith(".hfile") for file in table.scan().files())

    with pytest.raises(ReferenceFailed, match="HFILE"):
        hudi.read(path)
