"""PySpark's calls that take a table's name could write another table, other rows, or plain Parquet."""

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, Invalid, NotFound, Unsupported
from tests.spark.test_sql_statements import TABLE_TYPES, Sql
from tests.spark.test_sql_statements import sql as _sql

pytestmark = pytest.mark.spark
sql = _sql

OPTIONS = {
    "hoodie.table.name": "elsewhere",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
}


def frame(sql: Sql, *rows: tuple[int, str, int, str]) -> Any:
    return sql.spark.createDataFrame(list(rows), "id int, name string, ts long, dt string")


def test_save_as_table_makes_and_changes_a_table(sql: Sql) -> None:
    rows = frame(sql, (1, "a", 10, "x"), (2, "b", 10, "y"))
    rows.write.format("hudi").options(**OPTIONS).partitionBy("dt").saveAsTable("t")

    table = sql.table("t")
    assert (table.name, table.record_key, table.ordering, table.partition_by) == ("t", ("id",), ("ts",), ("dt",))
    turned = frame(sql, (1, "late", 9, "x"), (3, "c", 10, "x")).select("dt", "ts", "name", "id")
    turned.write.mode("append").saveAsTable("t")
    assert sql.rows("t") == [(1, "a", 10, "x"), (2, "b", 10, "y"), (3, "c", 10, "x")]
    with pytest.raises(Invalid, match="is there already"):
        rows.write.format("hudi").saveAsTable("t")
    rows.limit(0).write.format("hudi").mode("ignore").saveAsTable("t")
    with pytest.raises(Invalid, match="is not written as 'parquet'"):
        rows.write.format("parquet").mode("overwrite").saveAsTable("t")
    rows.where("id = 1").write.format("org.apache.hudi").mode("overwrite").saveAsTable("t")
    assert sql.rows("t") == [(1, "a", 10, "x")]
    assert sql.table("t").partition_by == ("dt",)


def test_save_as_table_takes_a_path(sql: Sql, tmp_path: Path) -> None:
    frame(sql, (1, "a", 10, "x")).write.format("HUDI").option("path", str(tmp_path / "p")).saveAsTable("t")

    assert HudiTable.exists(tmp_path / "p")
    assert sql.rows("t") == [(1, "a", 10, "x")]


def test_a_script_runs_a_second_time_with_its_own_name_of_the_table(sql: Sql, tmp_path: Path) -> None:
    """Options name another table than the catalog does."""
    options = {"hoodie.table.name": "other", "hoodie.datasource.write.recordkey.field": "id"}
    rows = frame(sql, (1, "a", 10, "x"))
    for mode in ("append", "append", "overwrite"):
        rows.write.format("hudi").options(**options).mode(mode).saveAsTable("t")
        assert sql.spark.table("t").count() == 1 or mode == "append"
    rows.write.options(**options).insertInto("t", overwrite=True)
    rows.writeTo("t").options(**options).append()
    assert sql.table("t").name == "t"


def test_options_of_a_reader_count_for_a_name(sql: Sql) -> None:
    """Spark passes over them, and would show the newest rows."""
    sql("CREATE TABLE t (id INT) USING hudi")
    sql("INSERT INTO t VALUES (1)")
    first = sql("SELECT max(_hoodie_commit_time) FROM t")[0][0]
    sql("INSERT INTO t VALUES (2)")

    read = sql.spark.read.option("as.of.instant", first)
    assert [row.id for row in read.table("t").collect()] == [1]
    assert [row.id for row in read.format("hudi").table(f"{sql.database}.t").collect()] == [1]
    assert sql.spark.read.table("t").count() == 2


def test_insert_into_goes_by_the_names_that_a_query_shows(sql: Sql) -> None:
    """A query shows columns as they are stored; places count partition columns last."""
    sql("CREATE TABLE t (id INT, dt STRING) USING hudi PARTITIONED BY (dt)")
    sql("ALTER TABLE t ADD COLUMNS (x STRING)")
    sql("INSERT INTO t VALUES (1, 'of x', 'of dt')")
    sql("CREATE TABLE u LIKE t")
    assert sql.spark.table("t").columns[-3:] == ["id", "dt", "x"]

    sql.spark.table("t").write.insertInto("u")
    sql.spark.table("t").write.insertInto("u", overwrite=True)
    assert sql.rows("u", "id, x, dt") == [(1, "of x", "of dt")]


def test_insert_into_goes_by_places(sql: Sql) -> None:
    sql("CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt)")
    rows = frame(sql, (1, "a", 10, "x")).selectExpr("id", "dt AS other", "ts", "name AS dt")

    rows.write.insertInto("t")
    assert sql.rows("t") == [(1, "x", 10, "a")]
    rows.write.insertInto("t", overwrite=True)
    rows.write.mode("append").insertInto(f"{sql.database}.t")
    assert len(sql.rows("t")) == 2


def test_write_to_makes_and_changes_a_table(sql: Sql) -> None:
    rows = frame(sql, (1, "a", 10, "x"), (2, "b", 10, "y"))
    rows.writeTo("t").using("hudi").tableProperty("primaryKey", "id").partitionedBy(rows.dt).create()

    assert (sql.table("t").record_key, sql.table("t").partition_by) == (("id",), ("dt",))
    frame(sql, (3, "c", 10, "y")).writeTo("t").append()
    assert len(sql.rows("t")) == 3
    frame(sql, (4, "d", 10, "y")).writeTo("t").overwritePartitions()
    assert sql.rows("t") == [(1, "a", 10, "x"), (4, "d", 10, "y")]
    rows.where("id = 2").writeTo("t").using("hudi").createOrReplace()
    assert sql.rows("t") == [(2, "b", 10, "y")]
    with pytest.raises(Invalid, match="is there already"):
        rows.writeTo("t").using("hudi").create()


@pytest.mark.parametrize("kind", TABLE_TYPES)
def test_write_to_overwrites_the_partitions_that_a_condition_names(sql: Sql, kind: str) -> None:
    from pyspark.sql import functions as f

    sql(
        "CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) "
        f"TBLPROPERTIES (type = '{kind}', primaryKey = 'id')"
    )
    frame(sql, (1, "a", 10, "x"), (2, "b", 10, "y"), (3, "c", 10, "z")).writeTo("t").append()
    commits = sql.commits("t")

    rows = frame(sql, (4, "d", 10, "x"), (5, "e", 10, "w"))
    rows.writeTo("t").overwrite(f.col("dt").isin("w", "x") | (f.col("dt") == "y"))
    assert sql.rows("t") == [(3, "c", 10, "z"), (4, "d", 10, "x"), (5, "e", 10, "w")]
    assert sql.commits("t") == commits + 1
    for condition, error in (
        (f.col("dt") == "x", Invalid),  # a row is of w
        (f.col("id") == 4, Unsupported),
        (f.expr("no_such = 1"), Unsupported),
        (f.lit(None), Invalid),
    ):
        with pytest.raises(error, match="overwrite"):
            rows.writeTo("t").overwrite(condition)
    frame(sql).writeTo("t").overwrite(f.col("dt") == "z")
    assert sql.rows("t") == [(4, "d", 10, "x"), (5, "e", 10, "w")]
    frame(sql, (9, "i", 10, "q")).writeTo("t").overwrite(f.lit(True))
    assert sql.rows("t") == [(9, "i", 10, "q")]


def test_write_to_overwrites_a_table_without_partitions(sql: Sql) -> None:
    from pyspark.sql import functions as f

    sql("CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi")
    frame(sql, (1, "a", 10, "x")).writeTo("t").overwrite(f.lit(True))
    frame(sql).writeTo("t").overwrite(f.lit(False))
    assert sql.rows("t") == [(1, "a", 10, "x")]
    with pytest.raises(Unsupported, match="MERGE INTO"):
        frame(sql).writeTo("t").overwrite(f.col("id") == 1)
    frame(sql).writeTo("t").overwrite(f.lit(True))
    assert sql.rows("t") == []


def test_a_condition_is_refused_for_a_table_without_meta_columns(sql: Sql) -> None:
    from pyspark.sql import functions as f

    columns, facts = (
        "id INT, name STRING, ts BIGINT, dt STRING",
        "primaryKey = 'id', hoodie.populate.meta.fields = 'false'",
    )
    sql(f"CREATE TABLE t ({columns}) USING hudi PARTITIONED BY (dt) TBLPROPERTIES ({facts})")
    frame(sql, (1, "a", 10, "x")).writeTo("t").append()
    with pytest.raises(Unsupported, match="no meta columns"):
        frame(sql).writeTo("t").overwrite(f.col("dt") == "x")
    assert sql.rows("t") == [(1, "a", 10, "x")]


def test_create_table_makes_one(sql: Sql, tmp_path: Path) -> None:
    made = sql.spark.catalog.createTable("t", schema=frame(sql).schema, source="hudi", primaryKey="id")
    assert made.columns[-4:] == ["id", "name", "ts", "dt"]
    assert sql.table("t").record_key == ("id",)
    sql.spark.catalog.createTable("again", path=sql.table("t").path, source="hudi")
    assert sql.table("again").path == sql.table("t").path


def test_new_names_are_not_those_of_another_catalog(sql: Sql, tmp_path: Path) -> None:
    """The table would have a name in `spark_catalog`, and none where it was asked for."""
    other = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    settings = {
        "": other,
        ".url": "jdbc:derby:memory:names;create=true",
        ".driver": "org.apache.derby.jdbc.EmbeddedDriver",
    }
    for name, value in settings.items():
        sql.spark.conf.set(f"spark.sql.catalog.others{name}", value)
    rows, create = frame(sql, (1, "a", 10, "x")), "CREATE TABLE IF NOT EXISTS"
    calls = [
        lambda: sql(f"{create} others.t (id INT) USING hudi"),
        lambda: sql("USE others"),
        lambda: sql(f"{create} t (id INT) USING hudi LOCATION '{tmp_path}/t'"),
        lambda: rows.write.format("hudi").options(**OPTIONS).saveAsTable("t"),
        lambda: rows.writeTo("t").using("hudi").options(**OPTIONS).create(),
        lambda: sql.spark.catalog.createTable("t", source="hudi", schema=rows.schema),
    ]
    try:
        for at, call in enumerate(calls):
            if at == 1:
                call()
                continue
            with pytest.raises(Unsupported, match="expected a name of spark_catalog"):
                call()
        sql(f"{create} spark_catalog.{sql.database}.t (id INT) USING hudi")
    finally:
        sql("USE spark_catalog")
        sql(f"USE {sql.database}")

    assert [row[1] for row in sql("SHOW TABLES")] == ["t"]
    assert not (tmp_path / "t").exists()


def test_other_formats_do_not_notice(sql: Sql) -> None:
    rows = frame(sql, (1, "a", 10, "x"))
    rows.write.saveAsTable("p")
    rows.write.insertInto("p")
    rows.write.mode("append").format("parquet").saveAsTable("p")
    assert sql("SELECT count(*) FROM p") == [(3,)]
    with pytest.raises(Invalid, match="of another format"):
        rows.write.format("hudi").mode("append").saveAsTable("p")


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_no_other_format_is_written_into_a_table(sql: Sql, tmp_path: Path, mode: str) -> None:
    sql(f"CREATE TABLE t (id INT, dt STRING) USING hudi PARTITIONED BY (dt) LOCATION '{tmp_path}/t'")
    sql("INSERT INTO t VALUES (1, 'x')")
    rows = sql.spark.range(1)
    for folder in (f"{tmp_path}/t", f"{tmp_path}/t/dt=x", f"file:{tmp_path}/t/x"):
        for write in (
            lambda path: rows.write.mode(mode).parquet(path),
            lambda path: rows.write.mode(mode).json(path=path),
            lambda path: rows.write.format("orc").mode(mode).save(path),
            lambda path: rows.write.mode(mode).option("path", path).save(),
        ):
            with pytest.raises(Unsupported, match="lies there"):
                write(folder)
    rows.write.mode(mode).parquet(f"{tmp_path}/other")
    assert [tuple(row) for row in sql("SELECT id, dt FROM t")] == [(1, "x")]


TIMES = (
    "'hoodie.keygen.timebased.timestamp.type' = 'DATE_STRING', 'hoodie.keygen.timebased.timezone' = 'UTC', "
    "'hoodie.keygen.timebased.input.dateformat' = 'yyyy-MM-dd', "
    "'hoodie.keygen.timebased.output.dateformat' = 'yyyyMM'"
)


def test_an_overwrite_by_a_value_loses_no_other_rows_of_its_month(sql: Sql) -> None:
    """Partitions of times hold many values: to replace one of them is to lose the others."""
    from pyspark.sql import functions as f

    sql(
        "CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (name, dt) TBLPROPERTIES "
        f"(primaryKey = 'id', 'hoodie.datasource.write.partitionpath.field' = 'name:simple,dt:timestamp', {TIMES})"
    )
    stored = [(1, "a", 10, "2024-01-01"), (2, "a", 10, "2024-01-15"), (3, "a", 10, "2024-02-01")]
    frame(sql, *stored).select("id", "ts", "name", "dt").writeTo("t").append()
    rows = frame(sql, (4, "a", 10, "2024-01-20"))
    for condition in (f.col("dt") == "2024-01-20", f.col("dt") > "2024-01-10"):
        with pytest.raises(Unsupported, match="name=a/dt=202401"):
            rows.writeTo("t").overwrite(condition)
    for said in ("PARTITION (name, dt = '2024-01-20')", "PARTITION (DT = '2024-01-01', name = 'a') IF NOT EXISTS"):
        with pytest.raises(Unsupported, match="many values of 'dt'"):
            sql(f"INSERT OVERWRITE t {said} SELECT 4, 10L{', ' + repr('a') if 'IF' not in said else ''}")
    assert sql("SELECT id, name, ts, dt FROM t ORDER BY id") == stored

    rows.writeTo("t").overwrite((f.col("name") == "a") & (f.col("dt") < "2024-02"))
    assert sql("SELECT id, name, ts, dt FROM t ORDER BY id") == [(3, "a", 10, "2024-02-01"), (4, "a", 10, "2024-01-20")]
    sql("INSERT OVERWRITE t PARTITION (name = 'a', dt) SELECT 5, 10L, '2024-03-01'")
    assert sql("SELECT id, name, ts, dt FROM t") == [(5, "a", 10, "2024-03-01")]


def test_a_condition_is_refused_where_queries_show_other_values(sql: Sql) -> None:
    """A time is shown as text there: the same condition could mean other moments for stored rows and for new ones."""
    from pyspark.sql import functions as f

    generator = "'hoodie.datasource.write.keygenerator.class' = 'org.apache.hudi.keygen.TimestampBasedKeyGenerator'"
    sql(
        "CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) "
        f"TBLPROPERTIES (primaryKey = 'id', {generator}, {TIMES})"
    )
    frame(sql, (1, "a", 10, "2024-01-01")).writeTo("t").append()
    with pytest.raises(Unsupported, match="otherwise than they are stored"):
        frame(sql, (2, "b", 10, "2024-01-01")).writeTo("t").overwrite(f.col("dt") == "2024-01-01")
    with pytest.raises(Unsupported, match="many values of 'dt'"):
        sql("INSERT OVERWRITE t PARTITION (dt = '2024-01-01') SELECT 2, 'b', 10L WHERE false")
    assert sql.rows("t") == [(1, "a", 10, "2024-01-01")]


def test_a_table_that_is_not_there_is_not_replaced(sql: Sql) -> None:
    with pytest.raises(NotFound, match="no table of this name"):
        frame(sql, (1, "a", 10, "x")).writeTo("no_such").using("hudi").replace()


def test_partition_columns_are_named_once(sql: Sql) -> None:
    with pytest.raises(Invalid, match="leave one of the two out"):
        sql(
            "CREATE TABLE t (id INT, a STRING, b STRING) USING hudi PARTITIONED BY (a) "
            "TBLPROPERTIES ('hoodie.datasource.write.partitionpath.field' = 'b')"
        )
    assert sql("SHOW TABLES") == []


@pytest.mark.parametrize(
    "facts",
    [
        "'hoodie.datasource.write.partitionpath.urlencode' = 'true', 'hoodie.table.cdc.enabled' = 'true'",
        "preCombineField = 'ts', 'hoodie.record.merge.mode' = 'COMMIT_TIME_ORDERING'",
        pytest.param(
            f"'hoodie.datasource.write.partitionpath.field' = 'dt:timestamp', {TIMES}", marks=pytest.mark.long
        ),
        "'hoodie.populate.meta.fields' = 'false', 'hoodie.table.timeline.timezone' = 'LOCAL'",
        "'hoodie.datasource.write.drop.partition.columns' = 'true', 'hoodie.base.file.format' = 'ORC'",
        "preCombineField = 'ts', payloadClass = 'org.apache.hudi.common.model.PartialUpdateAvroPayload'",
        pytest.param(
            "preCombineField = 'ts', payloadClass = 'org.apache.hudi.common.model.OverwriteWithLatestAvroPayload'",
            marks=pytest.mark.long,
        ),
        "preCombineField = 'ts', payloadClass = 'org.apache.hudi.common.model.PartialUpdateAvroPayload', "
        "'hoodie.write.table.version' = '9'",
        pytest.param(
            "payloadClass = 'org.apache.hudi.common.model.AWSDmsAvroPayload', 'hoodie.write.table.version' = '9'",
            marks=pytest.mark.long,
        ),
        "preCombineField = 'ts', 'hoodie.payload.delete.field' = 'name', 'hoodie.payload.delete.marker' = 'D'",
    ],
)
def test_a_table_that_is_made_anew_keeps_what_is_not_said(sql: Sql, facts: str) -> None:
    """Otherwise partitions lie elsewhere, rows merge otherwise, and the history goes, though nobody asked for it."""
    columns = "id INT, name STRING, ts BIGINT, dt STRING"
    sql(f"CREATE TABLE t ({columns}) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', {facts})")
    frame(sql, (1, "a", 10, "2024-01-01")).writeTo("t").append()
    before, commits = sql.table("t").properties, sql.commits("t")
    frame(sql, (2, "b", 10, "2024-01-02")).writeTo("t").createOrReplace()

    assert sql.commits("t") == commits + 1
    assert sql.table("t").properties == before
    assert sql.rows("t") == [(2, "b", 10, "2024-01-02")]
