"""A key generator of the user's could make other keys in Spark's tasks than in this process, or get other columns.

Each write is done twice, on Spark and with the same rows as Arrow; rows, meta fields and counts must be equal.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import Invalid, register_key_generator
from tests.spark.handovers import handed
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
