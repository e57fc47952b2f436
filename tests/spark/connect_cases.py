"""What a client of Spark Connect sees. `test_connect.py` runs these on a server, in a process of their own.

For classic and Connect sessions do not mix in one process. Those of `test_sql_*.py` run on the server, too.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

import pyhudi.spark
from pyhudi import HudiTable, Invalid, NotFound, Unsupported
from pyhudi.engine.spark.connect import server
from tests.spark.test_sql_statements import CREATE, FIRST, A, B, C, Sql
from tests.spark.test_sql_statements import sql as _sql
from tests.support.connect_server import ROOT
from tests.support.streams import Feed, ids_in, run, stored_batches, writer

pytestmark = pytest.mark.spark
sql = _sql


def test_statements_by_name(sql: Sql) -> None:
    """One table through the statements that another test file takes one by one."""
    sql(f"{CREATE} (type = 'mor', primaryKey = 'id', preCombineField = 'ts')")
    sql(FIRST)
    first = sql.table("t").timeline()[-1].completed
    sql("UPDATE t SET name = concat(name, '!'), ts = ts + 1 WHERE dt = 'x'")
    sql("DELETE FROM t WHERE id IN (SELECT max(id) FROM t)")
    sql("MERGE INTO t USING (SELECT 1 id, 'm' name, 20L ts, 'x' dt UNION ALL SELECT 9, 'n', 20L, 'y') s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")  # fmt: skip

    assert sql.rows("t") == [(1, "m", 20, "x"), (2, "b!", 11, "x"), (9, "n", 20, "y")]
    assert sql.commits("t") == 4
    assert sql.rows(f"t TIMESTAMP AS OF '{first}'") == [A, B, C]
    assert sql("SELECT count(*) FROM hudi_table_changes('t', 'latest_state', 'earliest')") == [(3,)]
    assert sql("SELECT a.id FROM t a, (SELECT * FROM t) b WHERE a.id = b.id AND a.dt = 'y'") == [(9,)]
    assert len(sql("CALL show_commits(table => 't')")) == 4
    ((plan,),) = sql("EXPLAIN SELECT name FROM t WHERE ts > 5")
    assert "GreaterThan(ts,5)" in plan
    assert sql("SELECT name FROM IDENTIFIER(:name) WHERE id = 9", args={"name": "t"}) == [("n",)]

    path = sql.table("t").path
    sql(f"CREATE TABLE base USING hudi OPTIONS ('hoodie.query.as.ro.table' = 'true') LOCATION '{path}'")
    assert (2, "b", 10, "x") in sql.rows("base")


def test_the_rows_are_those_of_one_process_and_of_spark(sql: Sql, tmp_path: Path) -> None:
    """Through tasks, with random rows that are evaluated once, and back."""
    rows = sql.spark.range(200).selectExpr("id", "concat('p', id % 3) part", "id n")
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part")
    random = rows.withColumn("n", f.floor(f.rand() * 10) * 0 + f.col("n"))

    assert table.bulk_insert(random).inserted == 200
    assert table.upsert(rows.where("id < 50").withColumn("n", -f.col("n"))).updated == 50
    assert table.delete(rows.where("id >= 190").select("id", "part")).deleted == 10
    found = table.scan(where="part = 'p1' and n < 0").to_spark(sql.spark).collect()
    assert sorted(row["id"] for row in found) == [n for n in range(1, 50) if n % 3 == 1]
    assert table.update({"n": "n + 1000"}, where="id = 3").updated == 1
    assert sql.spark.read.format("hudi").load(table.path).where("n > 500").count() == 1


def test_what_cannot_be_is_said(sql: Sql, tmp_path: Path) -> None:
    sql(f"{CREATE} (primaryKey = 'id')")
    sql("CREATE VIEW around AS SELECT * FROM t")
    assert sql("SELECT count(*) FROM around") == [(0,)]

    with pytest.raises(Exception, match="pyhudi plans and commits in the client"):
        sql.spark.sql("TABLE t").collect()
    with pytest.raises(Unsupported, match="createOrReplaceTempView"):
        sql("CREATE VIEW then AS SELECT * FROM t TIMESTAMP AS OF '2026-01-01'")
    with pytest.raises(Unsupported, match="EXPLAIN its query"):
        sql("EXPLAIN DELETE FROM t")
    sql.spark.conf.set("spark.sql.storeAssignmentPolicy", "LEGACY")
    try:
        with pytest.raises(Unsupported, match="expected ANSI under Spark Connect"):
            sql(FIRST)
    finally:
        sql.spark.conf.unset("spark.sql.storeAssignmentPolicy")
    with pytest.raises(Invalid, match="checkpointLocation"):
        sql.spark.readStream.format("rate").load().writeStream.format("hudi").start(str(tmp_path / "s"))
    assert sql.table("t").timeline() == ()


@pytest.mark.parametrize("there,found", [(None, "found nothing"), ("hoodie.table.name=other", "found another table")])
def test_a_folder_that_only_the_client_sees_is_refused(
    sql: Sql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str | None, found: str
) -> None:
    """Else reads would fail deep in Spark, or show another table's rows."""
    monkeypatch.setattr(server, "_text_at_server", lambda spark, uri: there)
    table = HudiTable.create(tmp_path / "alone", name="alone", record_key="id")
    table.insert(pa.table({"id": [1]}))

    for call in (
        lambda: sql.spark.read.format("hudi").load(table.path),
        lambda: table.upsert(sql.spark.range(3)),
        lambda: sql(f"CREATE TABLE made (id INT) USING hudi LOCATION '{tmp_path}/made'"),
    ):
        with pytest.raises(Invalid, match=found):
            call()
    assert len(table.timeline()) == 1
    assert not HudiTable.exists(tmp_path / "made")


def test_a_stream_stores_and_gives_each_row_once(sql: Sql, tmp_path: Path) -> None:
    feed = Feed(sql.spark, tmp_path / "in")
    feed.add(range(3))
    run(writer(feed.stream(), tmp_path / "into").start(str(tmp_path / "t")))
    feed.add(range(3, 4))
    run(writer(feed.stream(), tmp_path / "into").start(str(tmp_path / "t")))

    assert ids_in(tmp_path / "t") == [0, 1, 2, 3]
    assert [number for _, number in stored_batches(tmp_path / "t")] == [0, 1]
    read = sql.spark.readStream.format("hudi").load(str(tmp_path / "t"))
    run(writer(read.select("id", "part", "n", "ts"), tmp_path / "out").start(str(tmp_path / "copy")))
    assert ids_in(tmp_path / "copy") == [0, 1, 2, 3]
    sql(f"CREATE TABLE copied USING hudi LOCATION '{tmp_path}/copy'")
    assert sql("SELECT count(*) FROM copied") == [(4,)]


@pytest.mark.long
def test_one_partition_of_a_table_with_logs_is_read_alone(
    sql: Sql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of the other partitions are not there. The filter is the DataFrame's, or that of a text."""
    monkeypatch.setattr("pyhudi.engine.spark.read.merged.PARTITION_BYTES_MIN", 0)
    rows = sql.spark.range(200).selectExpr("id", "concat('p', id % 3) part", "id n")
    path = tmp_path / "mor"
    table = HudiTable.create(path, name="t", record_key="id", partition_by="part", table_type="MERGE_ON_READ")
    table.bulk_insert(rows)
    table.upsert(rows.selectExpr("id", "part", "n + 1000 n"))
    frame = sql.spark.read.format("hudi").load(str(path))
    sql(f"CREATE TABLE mor USING hudi LOCATION '{path}'")
    for file in [*(path / "p0").iterdir(), *(path / "p2").iterdir()]:
        if ".parquet" in file.name or ".log." in file.name:
            file.unlink()

    assert frame.where("part = 'p1' and n > 1000").count() == 67
    monkeypatch.setattr("pyhudi.engine.spark.read.merged.PARTITION_BYTES_MIN", 32 << 20)
    assert sql("SELECT count(*) FROM mor m WHERE m.part = 'p1' AND n > 1000") == [(67,)]


@pytest.mark.long
def test_two_clients_share_names_and_one_that_restarts_finds_them(sql: Sql) -> None:
    sql(f"{CREATE} (primaryKey = 'id', preCombineField = 'ts')")
    sql(FIRST)
    other = (
        "import os, pyhudi.spark; from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.remote(os.environ['PYHUDI_TEST_REMOTE']).getOrCreate()\n"
        "pyhudi.spark.register(spark)\n"
        f"spark.sql(\"INSERT INTO {sql.database}.t VALUES (7, 'z', 1, 'x')\")\n"
        f"print('count', spark.table('{sql.database}.t').count())\n"
    )

    for count in (4, 4):  # the same key
        done = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=False)
        assert f"count {count}" in done.stdout, done.stderr[-3_000:]
    assert len(sql.rows("t")) == 4
    unregistered = re.sub(r"pyhudi\.spark\.register.*\n", "", other)
    done = subprocess.run([sys.executable, "-c", unregistered], capture_output=True, text=True, check=False)
    assert "DATA_SOURCE_NOT_FOUND" in done.stderr or "Failed to find" in done.stderr
    assert len(sql.rows("t")) == 4


@pytest.mark.long
def test_for_each_batch_writes_in_the_servers_python(sql: Sql, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    HudiTable.create(path, name="t", record_key="id", schema=pa.schema([("id", pa.int64()), ("n", pa.int64())]))

    def store(rows: Any, number: int) -> None:
        from pyhudi import HudiTable

        HudiTable.open(path).upsert(rows.selectExpr("id", "id * 2 AS n"))

    feed = Feed(sql.spark, tmp_path / "in")
    feed.add(range(3))
    query = feed.stream().writeStream.foreachBatch(store).option("checkpointLocation", str(tmp_path / "c"))
    run(query.trigger(availableNow=True).start())
    assert HudiTable.open(path).scan(columns=["id", "n"]).to_arrow().sort_by("id")["n"].to_pylist() == [0, 2, 4]


@pytest.mark.long
def test_the_pages_examples_run(sql: Sql, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "spark-connect.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "1.json").write_text(json.dumps({"id": 4, "city": "oslo", "fare": 3.0, "ts": 2}))
    names: dict[str, object] = {"folder": str(tmp_path), "server": os.environ["PYHUDI_TEST_REMOTE"]}
    assert len(examples) >= 3
    for example in examples:
        exec(compile(example, "spark-connect.md", "exec"), names)


def test_errors_keep_their_class(sql: Sql) -> None:
    with pytest.raises(NotFound, match="/nowhere"):
        sql("SELECT * FROM hudi.`/nowhere`")
    pyhudi.spark.register(sql.spark)  # once more
    assert sql("SELECT 1 one") == [(1,)]
