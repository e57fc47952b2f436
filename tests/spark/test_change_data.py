"""A write of a Spark DataFrame could leave out change logs, or other ones than a write in this process keeps."""

from pathlib import Path
from typing import Any

import pytest

import pyhudi.spark
from pyhudi import HudiTable
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.cdc.enabled": "true",
}
CDC = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.begin.instanttime": "000",
}


@pytest.mark.parametrize("mode", ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"])
def test_writes_of_dataframes_keep_change_logs(spark: Any, tmp_path: Path, mode: str) -> None:
    pyhudi.spark.register(spark)
    path = str(tmp_path / "t")
    options = {**OPTIONS, "hoodie.table.cdc.supplemental.logging.mode": mode}

    def save(values: str, operation: str) -> None:
        frame = spark.sql(f"select * from values {values} as t(id, ts, v)")
        more = {"hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**options, **more).mode("append").save(path)

    save("('a', 1, 1.5), ('b', 1, 2.5)", "insert")
    save("('b', 2, 3.5), ('c', 2, 4.5)", "upsert")
    save("('a', 3, 0.0)", "delete")

    table = HudiTable.open(path)
    assert table.properties["hoodie.table.cdc.supplemental.logging.mode"] == mode
    assert len(list(Path(path).rglob("*.cdc"))) == 2
    told = [
        (row["op"], row["before"] and row["before"]["v"], row["after"] and row["after"]["v"])
        for row in table.cdc(columns=["v"]).to_arrow().to_pylist()
    ]
    assert [(op, *map(as_float, images)) for op, *images in sorted(told, key=repr)] == [
        ("d", 1.5, None),
        ("i", None, 1.5),
        ("i", None, 2.5),
        ("i", None, 4.5),
        ("u", 2.5, 3.5),
    ]
    loaded = collected(spark.read.format("hudi").options(**CDC).load(path))
    assert sorted(loaded.column("op").to_pylist()) == ["d", "i", "i", "i", "u"]


def as_float(value: object) -> float | None:
    return None if value is None else float(str(value))
