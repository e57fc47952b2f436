"""Spark reads data files with a client of its own: a path that only pyhudi's client knows would fail there, and so
would a task that does not get the storage's options.

Hadoop's S3 client comes through Maven, in the version of PySpark's Hadoop. Its session is in a process of its own, for
jars cannot be added to one that runs; the S3 server is in this one.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from pyhudi.storage.protocol import StorageLocation
from tests.support.s3_server import S3Server

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

SDK_VERSIONS = {"3.5.0": "2.35.4"}
"""Amazon's SDK for each hadoop-aws. It asks for all of the SDK in one jar of 600 MB; three modules will do."""


def hadoop_version() -> str:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    jar = next((Path(spec.origin).parent / "jars").glob("hadoop-client-api-*.jar"))
    return jar.stem.removeprefix("hadoop-client-api-")


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.close()


def session(server_options: dict[str, str]):
    from pyspark.sql import SparkSession

    hadoop = hadoop_version()
    sdk = SDK_VERSIONS[hadoop]
    modules = ("s3", "s3-transfer-manager", "sts")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.jars.packages": ",".join(
            [f"org.apache.hadoop:hadoop-aws:{hadoop}", *(f"software.amazon.awssdk:{name}:{sdk}" for name in modules)]
        ),
        "spark.jars.excludes": "software.amazon.awssdk:bundle",
        "spark.hadoop.fs.s3a.endpoint": server_options["endpoint"],
        "spark.hadoop.fs.s3a.endpoint.region": server_options["region"],
        "spark.hadoop.fs.s3a.access.key": server_options["access_key_id"],
        "spark.hadoop.fs.s3a.secret.key": server_options["secret_access_key"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    builder = SparkSession.builder.master("local[2]").appName("pyhudi on s3a")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(uri: str, options: dict[str, str], answer: Path) -> None:
    from pyhudi import HudiTable

    spark = session(options)
    rows = spark.range(200).selectExpr("id", "concat('p ', id % 3, '%') part", "id n")
    table = HudiTable.create(
        uri, name="t", record_key="id", partition_by="part",
        properties={"hoodie.datasource.write.hive_style_partitioning": True}, storage_options=options,
    )  # fmt: skip
    seen: dict[str, object] = {"path": table.path}
    seen["inserted"] = table.bulk_insert(rows).inserted
    seen["updated"] = table.upsert(rows.where("id < 50").selectExpr("id", "part", "-n n")).updated
    seen["deleted"] = table.delete(rows.where("id >= 190").select("id", "part")).deleted
    again = HudiTable.open(uri.replace("s3://", "s3a://"), storage_options=options)
    found = again.scan(where="part = 'p 1%' and n < 0").to_spark(spark)
    seen["found"] = sorted(row["id"] for row in found.collect())
    seen["sum"] = table.scan(columns=["n"]).to_spark(spark).groupBy().sum("n").collect()[0][0]
    answer.write_text(json.dumps(seen))
    spark.stop()


@pytest.mark.parametrize(
    "uri,found",
    [
        ("s3://bucket/a b", "s3a://bucket/a b/x=1/f.parquet"),
        ("gs://bucket/t", "gs://bucket/t/x=1/f.parquet"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t/x=1/f.parquet"),
        ("/data/t", "file:///data/t/x=1/f.parquet"),
    ],
)
def test_files_are_called_as_hadoops_clients_call_them(uri: str, found: str) -> None:
    from pyhudi.engine.spark.read.base_files import spark_uri

    assert spark_uri(StorageLocation(uri), "x=1/f.parquet") == found


@pytest.mark.long
def test_spark_writes_and_reads_a_table_on_s3(tmp_path: Path, server: S3Server) -> None:
    if hadoop_version() not in SDK_VERSIONS:
        pytest.skip(f"tried with Hadoop {', '.join(SDK_VERSIONS)}, which the main PySpark has")
    uri = server.new_path()
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, __file__, uri, json.dumps(server.options), str(tmp_path / "seen.json")],
        env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-4_000:]
    assert json.loads((tmp_path / "seen.json").read_text()) == {
        "path": uri,
        "inserted": 200,
        "updated": 50,
        "deleted": 10,
        "found": [n for n in range(1, 50) if n % 3 == 1],
        "sum": sum(range(50, 190)) - sum(range(50)),
    }
    from pyhudi import HudiTable

    table = HudiTable.open(uri, storage_options=server.options)
    assert table.scan(columns=["n"]).to_arrow()["n"].to_numpy().sum() == sum(range(50, 190)) - sum(range(50))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3]))
