"""A first write that failed could leave a table with wrong facts, which then refused the call that was put right."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

import pyhudi.spark
from pyhudi import HudiError, HudiTable, NotFound
from pyhudi.api import writes
from pyhudi.txn.locks.guard import LocalGuard
from pyhudi.write.input.source import Operation
from tests.spark.handovers import handed

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
}
MISSPELLED = {**OPTIONS, "hoodie.datasource.write.recordkey.field": "uid"}


@pytest.fixture
def trips(spark: Any) -> Any:
    pyhudi.spark.register(spark)
    return spark.createDataFrame([("a", "oslo"), ("b", "rome")], "uuid string, city string")


def save(frame: Any, path: Path, options: dict[str, str], mode: str = "append") -> None:
    frame.write.format("hudi").options(**options).mode(mode).save(str(path))


@handed(
    "mode",
    ["append", "overwrite", "errorifexists", "ignore"],
    [("shuffle", "append"), ("files", "overwrite")],
)
def test_a_first_write_that_fails_leaves_no_table(trips: Any, tmp_path: Path, handover: str, mode: str) -> None:
    fails = f.udf(lambda key: f"{1 / (key != 'b')}", "string")
    for frame, options in (
        (trips, MISSPELLED),
        (trips.withColumn("uuid", f.lit(None).cast("string")), OPTIONS),
        (trips.withColumn("city", fails("uuid")), OPTIONS),
    ):
        with pytest.raises((HudiError, PySparkException)):
            save(frame, tmp_path / "t", options, mode)
        assert not (tmp_path / "t").exists() or not any((tmp_path / "t").iterdir())

    save(trips, tmp_path / "t", OPTIONS, mode)

    assert HudiTable.open(tmp_path / "t").scan().to_arrow().num_rows == 2


def test_what_others_have_of_a_new_table_stays(trips: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer holds the table, or wrote to it, before the first write fails."""
    first = tmp_path / "held"
    make = HudiTable.create
    write = writes.write

    def failing(handle: Any, operation: Operation, data: Any, call: Any) -> Any:
        return write(handle, operation, 1 if operation is Operation.BULK_INSERT else data, call)

    monkeypatch.setattr(writes, "write", failing)
    bulk = {**OPTIONS, "hoodie.datasource.write.operation": "bulk_insert"}
    held = LocalGuard(str(first)).acquire("upsert", "20261121093000000")
    with held, pytest.raises(HudiError, match="__arrow_c_stream__"):
        save(trips, first, bulk)
    assert HudiTable.exists(first)

    def create_and_upsert(path: Any, **facts: Any) -> HudiTable:
        table = make(path, **facts)
        table.upsert(trips)
        return table

    monkeypatch.setattr(HudiTable, "create", create_and_upsert)
    with pytest.raises(HudiError, match="__arrow_c_stream__"):
        save(trips, tmp_path / "written", bulk)
    assert HudiTable.open(tmp_path / "written").scan().to_arrow().num_rows == 2


def test_a_delete_makes_no_table(trips: Any, tmp_path: Path) -> None:
    for operation in ("delete", "delete_partition"):
        with pytest.raises(NotFound, match="found none"):
            save(trips, tmp_path / "t", {**OPTIONS, "hoodie.datasource.write.operation": operation})
        assert not (tmp_path / "t").exists()
