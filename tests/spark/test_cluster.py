"""What works in one machine's session could fail where workers are processes: pickling, paths, interpreters.

A standalone cluster, one master and two workers, started from PySpark's own package.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.compare import assert_same_rows
from tests.support.spark_cluster import shuffle_all

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROOT = Path(__file__).parents[2]
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
    if way == "shuffle":
        shuffle_all(pytest.MonkeyPatch())
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    from pyhudi import HudiTable

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.executor.memory", "900m").getOrCreate()
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


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(log: Path, text: str, *, count: int = 1) -> None:
    ends = time.monotonic() + 120
    while not log.exists() or log.read_text().count(text) < count:
        assert time.monotonic() < ends, f"no '{text}' in {log}: {log.read_text()[-2_000:]}"
        time.sleep(0.3)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    pyspark = pytest.importorskip("pyspark")
    home, port = Path(pyspark.__file__).parent, free_port()
    url = f"spark://127.0.0.1:{port}"
    settings = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    environment = os.environ | settings | {"PYTHONPATH": str(ROOT / "src")}
    package, web = "org.apache.spark.deploy", ["--webui-port", "0"]
    commands = [[f"{package}.master.Master", "--host", "127.0.0.1", "--port", str(port), *web]]
    for at in (1, 2):
        place = ["--work-dir", str(tmp_path / f"work{at}"), "--host", "127.0.0.1", *web]
        commands.append([f"{package}.worker.Worker", "--cores", "1", "--memory", "1500M", *place, url])
    with ExitStack() as stack:
        for at, command in enumerate(commands):
            log = stack.enter_context(open(tmp_path / f"log{at}", "w"))
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), *command], env=environment, stdout=log, stderr=subprocess.STDOUT
            )
            stack.callback(stop, process)
            if at == 0:
                wait_for(tmp_path / "log0", "New state: ALIVE")
        wait_for(tmp_path / "log0", "Registering worker", count=2)
        yield url


def stop(process: "subprocess.Popen[Any]") -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.mark.parametrize("way", ["gathered", "shuffle"])
def test_a_cluster_writes_and_reads_what_this_process_does(master: str, tmp_path: Path, way: str) -> None:
    import pyarrow.parquet as pq

    from pyhudi import HudiTable

    here = HudiTable.create(tmp_path / "here", name="t", record_key="id", partition_by="part")
    for operation, ids, shift, options in OPERATIONS:
        getattr(here, operation)(rows_of(ids, shift), options=options)
    here.delete_partitions(["p1"])
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }

    done = subprocess.run(
        [sys.executable, __file__, master, str(tmp_path), way],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-4_000:]
    expected = here.scan().to_arrow().drop_columns(META)
    assert_same_rows(HudiTable.open(tmp_path / "t").scan().to_arrow().drop_columns(META), expected)
    assert_same_rows(pq.read_table(tmp_path / "read.parquet").drop_columns(META), expected)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
