"""By an index of the user's, a write on Spark could find other keys than in this process, or answers of two states.

Each write is done twice, on Spark and with the same rows as Arrow; rows and counts must be equal, and the index must
hold what the table holds. On a cluster the tasks open the index themselves.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, register_index
from tests.spark.handovers import handed
from tests.spark.test_indexes import SMALL, first_rows, moving_rows, rows
from tests.spark.test_writes import Twins
from tests.support.own_index import assert_true
from tests.support.spark_frames import on_spark
from tests.support.sqlite_index import SqliteIndex

pytestmark = pytest.mark.spark


@handed(
    "table_type, version",
    [("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 9)],
    [("shuffle", ("COPY_ON_WRITE", 6))],
)
def test_an_index_of_ones_own_finds_on_spark_what_it_finds_in_this_process(
    spark: Any, tmp_path: Path, handover: str, monkeypatch: pytest.MonkeyPatch, table_type: str, version: int
) -> None:
    monkeypatch.setattr("pyhudi.engine.spark.write.record_lookup.KEYS_A_TASK", 10)
    path = str(tmp_path / "index.db")
    register_index(name := f"twins.{tmp_path.name}", partial(SqliteIndex, path))
    twins = Twins(
        spark, tmp_path, properties=SMALL, record_key="id",
        partition_by="part", ordering="rank", table_type=table_type, table_version=version,
    )  # fmt: skip
    by = {"hoodie.index.class": name}
    twins.write("upsert", first_rows(), by)
    twins.write("upsert", moving_rows(), by)
    twins.write("delete", rows(("k00", "", 0, 0), ("new", "", 0, 0), ("none", "", 0, 0)).select(["id"]), by)
    for table in (twins.here, twins.on_spark):
        assert_true(table, path)


@pytest.mark.long
def test_tasks_that_do_not_reach_the_index_fail_and_write_nothing(spark: Any, tmp_path: Path, by_shuffle: None) -> None:
    here = str(tmp_path / "here.db")

    def elsewhere(table: Any) -> Any:
        import os

        from pyspark import TaskContext

        return SqliteIndex(here if TaskContext.get() is None else f"{tmp_path}/{os.getpid()}.db", table)

    register_index("spark.elsewhere", elsewhere)
    HudiTable.create(tmp_path / "t", name="t", record_key="id")
    table = HudiTable.open(tmp_path / "t", options={"hoodie.index.class": "spark.elsewhere"})
    batch = pa.table({"id": [f"k{n}" for n in range(20)], "v": list(range(20))})
    table.upsert(batch)
    with pytest.raises(Exception, match="must reach the storage"):
        table.upsert(on_spark(spark, batch, tmp_path))
    assert table.scan().count() == 20
