"""Spark Connect has no gateway to the JVM: whatever reaches for one would fail there.

A server that PySpark starts itself, in a process of its own, for classic and Connect sessions do not mix in one.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NEEDED = ("grpc", "grpc_status", "google.protobuf", "google.rpc", "zstandard")


def is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


MISSING = [module for module in NEEDED if not is_there(module)]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif(
        bool(MISSING), reason=f"Spark Connect needs {', '.join(MISSING)}: pip install 'pyspark[connect]'"
    ),
]

ROOT = Path(__file__).parents[2]


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    import pyhudi
    import pyhudi.spark
    from pyhudi import HudiTable

    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    pyhudi.spark.register(spark)
    rows = spark.range(200).selectExpr("id", "concat('p', id % 3) part", "id n")
    table = HudiTable.create(folder / "t", name="t", record_key="id", partition_by="part")
    seen: dict[str, object] = {}
    seen["inserted"] = table.bulk_insert(rows.withColumn("n", f.floor(f.rand() * 10) * 0 + f.col("n"))).inserted
    seen["updated"] = table.upsert(rows.where("id < 50").withColumn("n", -f.col("n"))).updated
    seen["deleted"] = table.delete(rows.where("id >= 190").select("id", "part")).deleted
    frame = table.scan(where="part = 'p1' and n < 0").to_spark(spark)
    seen["found"] = sorted(row["id"] for row in frame.collect())
    seen["pruned"] = count_one_partition_of_a_table_with_logs(spark, rows, folder / "mor")
    other = str(folder / "other")
    options = {
        "hoodie.table.name": "other",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
    }
    rows.write.format("hudi").options(**options).mode("overwrite").save(other)
    rows.limit(10).write.format("hudi").options(**options).mode("append").save(other)
    seen["loaded"] = spark.read.format("hudi").load(other).count()
    try:
        spark.sql("CREATE TABLE t (id INT) USING hudi")
    except pyhudi.Unsupported as error:
        seen["refused"] = "createOrReplaceTempView" in str(error)
    seen["streams refused"] = [refusal(spark.readStream), refusal(spark.readStream.format("rate").load().writeStream)]
    (folder / "seen.json").write_text(json.dumps(seen))
    spark.stop()


def refusal(stream: Any) -> str:
    """What the format's refusal says to use instead."""
    import pyhudi

    try:
        stream.format("hudi")
    except pyhudi.Unsupported as error:
        return "foreachBatch" if "foreachBatch" in str(error) else "incremental" if "incremental" in str(error) else ""
    return "not refused"


def count_one_partition_of_a_table_with_logs(spark: Any, rows: Any, path: Path) -> int:
    """Rows of a partition, whose filter is the DataFrame's: the files of the others are not there."""
    from pyhudi import HudiTable
    from pyhudi.engine.spark.read import merged

    merged.PARTITION_BYTES_MIN = 0  # each partition gets a plan of its own, as one that is large does
    table = HudiTable.create(path, name="t", record_key="id", partition_by="part", table_type="MERGE_ON_READ")
    table.bulk_insert(rows)
    table.upsert(rows.selectExpr("id", "part", "n + 1000 n"))
    frame = spark.read.format("hudi").load(str(path))
    for file in [*(path / "p0").iterdir(), *(path / "p2").iterdir()]:
        if ".parquet" in file.name or ".log." in file.name:
            file.unlink()
    found: int = frame.where("part = 'p1' and n > 1000").count()
    return found


def test_a_connect_session_writes_and_reads(tmp_path: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
    }

    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-4_000:]
    assert json.loads((tmp_path / "seen.json").read_text()) == {
        "inserted": 200,
        "updated": 50,
        "deleted": 10,
        "found": [n for n in range(1, 50) if n % 3 == 1],
        "pruned": 67,
        "loaded": 200,
        "refused": True,
        "streams refused": ["incremental", "foreachBatch"],
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
