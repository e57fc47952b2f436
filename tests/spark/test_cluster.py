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

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROOT = Path(__file__).parents[2]
OPERATIONS = (("bulk_insert", 0, 400), ("upsert", 300, 500), ("delete", 0, 50), ("insert", 500, 520))
META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]


def rows_of(start: int, end: int) -> pa.Table:
    numbers = list(range(start, end))
    return pa.table({"id": numbers, "part": [f"p{n % 3}" for n in numbers], "name": [f"n{n}" for n in numbers]})


def main(master: str, folder: Path) -> None:
    """The operations on the cluster, in a driver of their own."""
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    from pyhudi import HudiTable

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.executor.memory", "900m").getOrCreate()
    assert spark.sparkContext.defaultParallelism == 2
    table = HudiTable.create(folder / "t", name="t", record_key="id", partition_by="part")
    for operation, start, end in OPERATIONS:
        frame = spark.range(start, end).selectExpr("id", "concat('p', id % 3) part", "concat('n', id) name")
        getattr(table, operation)(frame)
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


def test_a_cluster_writes_and_reads_what_this_process_does(master: str, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from pyhudi import HudiTable

    here = HudiTable.create(tmp_path / "here", name="t", record_key="id", partition_by="part")
    for operation, start, end in OPERATIONS:
        getattr(here, operation)(rows_of(start, end))
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }

    done = subprocess.run(
        [sys.executable, __file__, master, str(tmp_path)],
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
    main(sys.argv[1], Path(sys.argv[2]))
