"""Apache Hudi could fail on Lance files of ours, or we lose what it writes upon them. Both write in turns."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi, hudi_settings
from tests.support.reference.environment import maven_jars

pytestmark = pytest.mark.skipif(find_spec("lance") is None, reason="the package pylance is not there")

LANCE = {"hoodie.table.base.file.format": "LANCE"}
OWN_JARS = ("lance-", "arrow-", "flatbuffers-", "jar-jni-")
"""Of what Lance depends on, what Spark 3.5 does not have, or has in an older version."""


@pytest.fixture(scope="module")
def hudi() -> Iterator[ReferenceHudi]:
    jars = [str(jar) for jar in sorted(maven_jars("lance").glob("*.jar")) if jar.name.startswith(OWN_JARS)]
    path = ":".join([hudi_settings("1.2.0")["spark.driver.extraClassPath"], *jars])
    with ReferenceHudi("1.2.0", spark_settings={"spark.driver.extraClassPath": path}) as hudi:
        yield hudi


def rows(ids: range, ts: int, *, nested: bool) -> pa.Table:
    """A struct is null in no row: 1.2.0 writes format 2.0, which stores it as a struct of nulls."""
    moments = [dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=n * 7_000_001) for n in ids]
    kinds = {"ts": pa.int64(), "at": pa.timestamp("us", "UTC"), "price": pa.decimal128(12, 2)}
    values = {
        "id": [f"k{n:04d}" for n in ids],
        "part": [f"p{n % 2}" for n in ids],
        "ts": [ts] * len(ids),
        "at": [moment if n % 5 else None for n, moment in zip(ids, moments, strict=True)],
        "price": [Decimal(n) / 100 for n in ids],
        "all": [[float(n)] if n % 3 else None for n in ids],
        **({"inner": [{"a": n, "b": str(n)} for n in ids]} if nested else {}),
    }
    return pa.table({name: pa.array(found, kinds.get(name)) for name, found in values.items()})


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("nested", [False, True], ids=["2.0", "2.1"])
def test_both_write_to_a_table_of_lance_files(
    hudi: ReferenceHudi, tmp_path: Path, table_type: str, nested: bool
) -> None:
    path, model = tmp_path / "t", rows(range(200), 1, nested=nested)
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="part", ordering="ts", table_type=table_type, table_version=9,
        properties=LANCE,
    )  # fmt: skip

    def check() -> None:
        assert_same_rows(table.scan(meta_fields=False).to_arrow(), model, same_types=False)
        assert_same_rows(hudi.read(path).select(model.column_names), model, same_types=False)

    def put(new: pa.Table) -> None:
        nonlocal model
        kept = pc.invert(pc.is_in(model.column("id"), value_set=new.column("id").combine_chunks()))
        model = pa.concat_tables([model.filter(kept), new])

    table.insert(model)
    check()
    table.upsert(rows(range(190, 210), 2, nested=nested))
    put(rows(range(190, 210), 2, nested=nested))
    check()

    theirs = rows(range(150, 160), 3, nested=nested)
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.write.record.merge.custom.implementation.classes": "org.apache.hudi.DefaultSparkRecordMerger",
        "hoodie.datasource.write.row.writer.enable": "false",
        "hoodie.base.file.format": "LANCE",
    }
    hudi.write(path, theirs, operation="upsert", **options)
    put(theirs)
    check()

    table.delete(rows(range(10), 9, nested=nested))
    model = model.filter(pc.greater_equal(model.column("id"), "k0010"))
    check()
    if table_type == "MERGE_ON_READ":
        assert table.compact().file_groups
        check()
    assert any(file.endswith(".lance") for file in table.scan().files())
