"""Apache Hudi could fail on files of ours that are no Parquet files, or that hold no record keys; and we on its.

Both write in turns to tables of ours with ORC files, and with Parquet files without meta fields.
"""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

ORC = {"hoodie.table.base.file.format": "ORC"}
WITHOUT_META = {"hoodie.populate.meta.fields": "false"}

LEFT_OUT = {
    "hoodie.datasource.write.drop.partition.columns": "true",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}


def rows(ids: range, ts: int) -> pa.Table:
    """What 1.2.0 can write when it rewrites an ORC file: no dates, and whole seconds (it drops the rest)."""
    moments = [dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=n * 7) for n in ids]
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


@pytest.mark.parametrize(
    "name, version, properties, table_type",
    [
        ("hudi_120", 9, ORC, "COPY_ON_WRITE"),
        ("hudi_120", 9, ORC, "MERGE_ON_READ"),
        ("hudi_120", 9, WITHOUT_META, "COPY_ON_WRITE"),
        ("hudi_0150", 6, WITHOUT_META, "COPY_ON_WRITE"),
        ("hudi_120", 9, WITHOUT_META, "MERGE_ON_READ"),
        ("hudi_120", 8, WITHOUT_META, "MERGE_ON_READ"),  # 1.0.2 cannot read its own: NullPointerException on its logs
        ("hudi_0150", 6, WITHOUT_META, "MERGE_ON_READ"),
        ("hudi_120", 9, LEFT_OUT, "COPY_ON_WRITE"),
        ("hudi_120", 9, LEFT_OUT, "MERGE_ON_READ"),
        ("hudi_102", 8, LEFT_OUT, "COPY_ON_WRITE"),
        ("hudi_102", 8, LEFT_OUT, "MERGE_ON_READ"),
        ("hudi_0150", 6, LEFT_OUT, "COPY_ON_WRITE"),
        ("hudi_0150", 6, LEFT_OUT, "MERGE_ON_READ"),
    ],
)
def test_both_write_to_a_table_of_ours(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    name: str,
    version: int,
    properties: dict[str, str],
    table_type: str,
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    path = tmp_path / "t"
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="part", ordering="ts", table_type=table_type,
        table_version=version, properties=properties,
    )  # fmt: skip
    model = rows(range(200), 1)

    def check() -> None:
        assert_same_rows(table.scan(meta_fields=False).to_arrow(), model, same_types=False)
        theirs = hudi.read(path)
        assert_same_rows(theirs.select(model.column_names), model, same_types=False)

    def put(new: pa.Table) -> None:
        nonlocal model
        kept = pc.invert(pc.is_in(model.column("id"), value_set=new.column("id").combine_chunks()))
        model = pa.concat_tables([model.filter(kept), new])

    if properties is ORC:  # 1.2.0 casts the batches of its own ORC files to another class
        hudi.sql("SET spark.sql.orc.enableVectorizedReader=false")
    table.insert(model)
    check()
    table.upsert(rows(range(190, 210), 2))
    put(rows(range(190, 210), 2))
    check()

    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": table_type,
        **properties,
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
    }
    hudi.write(path, rows(range(150, 160), 3), operation="upsert", **options)
    put(rows(range(150, 160), 3))
    check()

    table.delete(rows(range(10), 9))
    model = model.filter(pc.greater_equal(model.column("id"), "k0010"))
    check()
    if table_type == "MERGE_ON_READ":
        assert table.compact().file_groups
        check()
