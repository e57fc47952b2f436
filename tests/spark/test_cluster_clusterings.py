"""A clustering on a cluster could lose rows or block the table when its driver dies, or when two of them run at once.

A standalone cluster, one master and two workers. The drivers are processes of their own; the tasks of a dead driver
write on for a moment.
"""

import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.storage.local import LocalStorage
from tests.support.model import problems_on
from tests.support.standalone_cluster import StandaloneCluster, driver_environment

pytestmark = [pytest.mark.spark, pytest.mark.long]

SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "x"}
WAYS = SORTED, {"hoodie.clustering.plan.strategy.target.file.max.bytes": "300000"}
"""Rows are sorted and written anew; files are split."""
FIRST = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
"""A write goes before a clustering that is not complete."""
KILLS, LATE_S = 6, 3.0


def main(master: str, path: str, turns: int) -> None:
    """Cluster the table again and again, in a driver of its own."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.cores.max", "1")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.executor.memory", "500m").getOrCreate()
    spark.range(10).count()
    table = HudiTable.open(path)
    print("ready", flush=True)
    done = 0
    for turn in range(turns):
        try:
            done += table.cluster(spark=spark, options=WAYS[turn % 2]).files > 0
        except Conflict as conflict:
            print(str(conflict), file=sys.stderr, flush=True)
    print(f"done {done}", flush=True)
    spark.stop()


def a_table(path: Path, table_type: str) -> HudiTable:
    properties = {"hoodie.parquet.small.file.limit": "0"}
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="city", table_type=table_type, properties=properties
    )
    choose = random.Random(3)
    for turn in range(4):
        table.insert(rows(turn, range(4_000), choose))
    table.upsert(rows(1, range(0, 4_000, 7), choose))
    return table


def rows(turn: int, numbers: range, choose: random.Random) -> pa.Table:
    return pa.table(
        {
            "id": [f"{turn}-{n:06}" for n in numbers],
            "city": [("oslo", "rome", "bern")[n % 3] for n in numbers],
            "x": [choose.random() for _ in numbers],
            "text": [choose.randbytes(50).hex() for _ in numbers],
        }
    )


def read(table: HudiTable) -> pa.Table:
    return table.scan().to_arrow().drop_columns("_hoodie_file_name").sort_by("id")


def driver(cluster: StandaloneCluster, table: HudiTable, turns: int) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__, cluster.master, str(table.path), str(turns)]
    return subprocess.Popen(
        command, env=driver_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_driver_that_is_killed_in_a_clustering_changes_no_row(
    cluster: StandaloneCluster, tmp_path: Path, table_type: str
) -> None:
    table = a_table(tmp_path / "t", table_type)
    before = read(table)
    choose = random.Random(11)

    for turn in range(KILLS):
        victim = driver(cluster, table, 20)
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        time.sleep(choose.random() * 4)
        victim.kill()
        victim.communicate()
        assert read(table).equals(before)
        time.sleep(LATE_S)  # tasks that the dead driver sent go on for a moment
        assert read(table).equals(before)
        if turn % 2:
            table.run_clusterings()

    table.cluster(options=SORTED)
    assert read(table).equals(before)
    table.upsert(rows(9, range(10), choose))
    table.clean()
    assert [instant for instant in table.timeline() if instant.completed is None] == []
    assert table.scan().to_arrow().num_rows == before.num_rows + 10
    assert problems_on(LocalStorage(str(tmp_path / "t"))) == []


def test_two_drivers_cluster_one_table_at_once_beside_a_writer(cluster: StandaloneCluster, tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", "COPY_ON_WRITE")
    expected = {row["id"]: row["x"] for row in table.scan(columns=["id", "x"]).to_arrow().to_pylist()}
    choose = random.Random(5)

    both = [driver(cluster, table, 6) for _ in range(2)]
    while any(process.poll() is None for process in both):
        more = rows(choose.randrange(4), range(choose.randrange(50), 4_000, 97), choose)
        try:
            table.upsert(more, options=FIRST if choose.random() < 0.1 else {})
        except Conflict:
            continue  # a clustering is about to replace these file groups
        expected |= dict(zip(more["id"].to_pylist(), more["x"].to_pylist(), strict=True))
    told = [process.communicate(timeout=60) for process in both]

    assert [process.returncode for process in both] == [0, 0], told
    assert sum(int(out.split()[-1]) for out, _ in told) > 0, told
    stored = table.scan(columns=["id", "x"]).to_arrow()
    assert stored.num_rows == len(expected)
    assert dict(zip(stored["id"].to_pylist(), stored["x"].to_pylist(), strict=True)) == expected
    table.clean()
    assert problems_on(LocalStorage(str(tmp_path / "t"))) == []


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
