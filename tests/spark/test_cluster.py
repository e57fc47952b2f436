"""What works in one machine's session could fail where workers are processes: pickling, paths, interpreters.

A standalone cluster, one master and two workers, started from PySpark's own package.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.compare import assert_same_rows
from tests.support.spark_cluster import send_all, shuffle_all
from tests.support.standalone_cluster import StandaloneCluster, run_driver

pytestmark = [pytest.mark.spark, pytest.mark.long]

MOVES = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
OPERATIONS: tuple[tuple[str, range, int, dict[str, str]], ...] = (
    ("bulk_insert", range(400), 0, {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}),
    ("upsert", range(300, 500), 0, {}),
    ("upsert", range(350, 450), 1, MOVES),
    ("upsert", range(200, 520), 0, {"hoodie.index.type": "BLOOM"}),
    ("delete", range(50), 0, {}),
    ("insert", range(520, 540), 0, {"hoodie.datasource.insert.dup.policy": "drop"}),
    ("insert_overwrite", range(600, 660, 3), 2, {}),
    ("upsert", range(590, 640), 2, {}),
)
"""Operation, ids, by how much their partitions are shifted, options."""
META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]


def rows_of(ids: range, shift: int) -> pa.Table:
    parts = [f"p{(n + shift) % 3}" for n in ids]
    return pa.table({"id": list(ids), "part": parts, "name": [f"n{n} {shift}" for n in ids]})


def main(master: str, folder: Path, way: str) -> None:
    """The operations on the cluster, in a driver of their own."""
    warm: dict[str, bool | float | int | str | None] = {}
    if way == "shuffle":
        shuffle_all(pytest.MonkeyPatch())
        warm = {"spark.python.daemon.module": "pyhudi.engine.spark.daemon"}
    if way == "sent":
        send_all(pytest.MonkeyPatch())
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    from pyhudi import HudiTable

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.executor.memory", "900m").config(map=warm).getOrCreate()
    assert spark.sparkContext.defaultParallelism == 2
    table = HudiTable.create(folder / "t", name="t", record_key="id", partition_by="part")
    for operation, ids, shift, options in OPERATIONS:
        columns = "id", f"concat('p', (id + {shift}) % 3) part", f"concat('n', id, ' {shift}') name"
        frame = spark.range(ids.start, ids.stop, ids.step).selectExpr(*columns)
        getattr(table, operation)(frame, options=options)
    table.delete_partitions(["p1"])
    read = table.scan().to_spark(spark)
    pq.write_table(
        read.toArrow() if hasattr(read, "toArrow") else pa.Table.from_pandas(read.toPandas()), folder / "read.parquet"
    )
    spark.stop()


@pytest.mark.parametrize("way", ["gathered", "sent", "shuffle"])
def test_a_cluster_writes_and_reads_what_this_process_does(
    cluster: StandaloneCluster, tmp_path: Path, way: str
) -> None:
    import pyarrow.parquet as pq

    from pyhudi import HudiTable

    here = HudiTable.create(tmp_path / "here", name="t", record_key="id", partition_by="part")
    for operation, ids, shift, options in OPERATIONS:
        getattr(here, operation)(rows_of(ids, shift), options=options)
    here.delete_partitions(["p1"])

    run_driver(__file__, cluster.master, str(tmp_path), way)
    expected = here.scan().to_arrow().drop_columns(META)
    assert_same_rows(HudiTable.open(tmp_path / "t").scan().to_arrow().drop_columns(META), expected)
    assert_same_rows(pq.read_table(tmp_path / "read.parquet").drop_columns(META), expected)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
