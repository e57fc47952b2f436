"""A key generator of the user's could make other keys in Spark's tasks than in this process, or get other columns.

Each write is done twice, on Spark and with the same rows as Arrow; rows, meta fields and counts must be equal.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi.spark
from pyhudi import HudiTable, Invalid, register_key_generator
from tests.spark.handovers import handed
from tests.spark.test_sql_statements import own_database, used
from tests.spark.test_writes import Twins
from tests.support.spark_frames import on_spark

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("v", pa.int64())])
NAME = "acme.ByHour"


def new_generator() -> Any:
    def by_hour(batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:  # travels to tasks by its code
        hours = pc.strftime(batch.column("at"), "%Y/%m/%d-%H")
        keys = pc.binary_join_element_wise("n", batch.column("id").cast(pa.string()), ":")
        return keys, hours

    return by_hour


register_key_generator(NAME, new_generator())


def rows(*values: tuple[int | None, int, int]) -> pa.Table:
    ids, hours, others = zip(*values, strict=True)
    at = pa.array([hour * 3_600_000_000 for hour in hours], pa.int64()).cast(SCHEMA.field("at").type)
    return pa.Table.from_arrays([pa.array(ids, pa.int64()), at, pa.array(others, pa.int64())], schema=SCHEMA)


@handed(
    "kind, version",
    [("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 6)],
    [("shuffle", ("COPY_ON_WRITE", 9))],
)
def test_a_key_generator_of_ones_own_makes_the_same_keys_on_spark(
    spark: Any, tmp_path: Path, handover: str, kind: str, version: int
) -> None:
    twins = Twins(
        spark, tmp_path, record_key="id", partition_by="at", table_type=kind, table_version=version,
        properties={"hoodie.datasource.write.keygenerator.class": NAME},
    )  # fmt: skip
    twins.write("upsert", rows(*((n, n % 3, n) for n in range(12))))
    twins.write("upsert", rows((1, 1, 100), (2, 2, 200), (50, 0, 1)))
    twins.write("bulk_insert", rows((60, 1, 1), (61, 4, 1)), {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"})
    assert twins.write("delete", rows((3, 0, 0), (4, 0, 0)).select(["id", "at"])).deleted == 1
    found = twins.on_spark.scan(columns=["_hoodie_record_key", "_hoodie_partition_path"]).to_arrow().to_pylist()
    assert {"_hoodie_record_key": "n:50", "_hoodie_partition_path": "1970/01/01-00"} in found
    with pytest.raises(Invalid, match="null or empty"):
        twins.on_spark.upsert(on_spark(spark, rows((None, 1, 1), (2, 1, 1)), tmp_path))


def test_a_row_with_a_key_of_ones_own_is_changed_by_sql(spark: Any, tmp_path: Path) -> None:
    pyhudi.spark.register(spark)
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="at", schema=SCHEMA,
        properties={"hoodie.datasource.write.keygenerator.class": NAME},
    )  # fmt: skip
    table.upsert(rows((1, 1, 1), (2, 2, 2), (3, 3, 3)))
    with own_database(spark, tmp_path) as sql, used(sql):
        sql(f"CREATE TABLE t USING hudi LOCATION '{table.path}'")
        sql("UPDATE t SET v = 10 WHERE id = 1")
        sql("MERGE INTO t USING (SELECT 2L AS id, 20L AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v")
        sql("DELETE FROM t WHERE id = 3")

        assert sql.rows("t", "id, v, _hoodie_partition_path") == [(1, 10, "1970/01/01-01"), (2, 20, "1970/01/01-02")]
