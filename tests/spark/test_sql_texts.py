"""A statement could mean another table, another value or another partition than Spark would read in its text."""

from pathlib import Path

import pytest

from pyhudi import Invalid, Unsupported
from tests.spark.test_sql_statements import CREATE, FIRST, A, B, C, Sql
from tests.spark.test_sql_statements import sql as _sql

pytestmark = pytest.mark.spark
sql = _sql


@pytest.fixture
def mor(sql: Sql) -> Sql:
    sql(f"{CREATE} (type = 'mor', primaryKey = 'id', preCombineField = 'ts')")
    sql(FIRST)
    return sql


def test_names_of_a_statement_are_those_that_spark_would_find(mor: Sql) -> None:
    sql = mor
    sql("UPDATE t SET name = 'p' WHERE id IN (WITH t AS (SELECT 1 AS id) SELECT id FROM t)")
    sql("WITH t AS (SELECT 2 AS id) UPDATE t SET name = 'q' WHERE id IN (SELECT id FROM t)")
    sql("MERGE INTO t USING (WITH t AS (SELECT 3 AS id) SELECT * FROM t) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'r'")  # fmt: skip
    assert sql.rows("t", "id, name") == [(1, "p"), (2, "q"), (3, "r")]

    sql.spark.range(2, 3).createOrReplaceTempView("t")
    sql(f"DELETE FROM {sql.database}.t WHERE id IN (SELECT id FROM t)")
    assert sql.rows(f"{sql.database}.t", "id, name") == [(1, "p"), (3, "r")]


def test_parameters_and_variables_are_values_in_each_statement(mor: Sql) -> None:
    sql, odd = mor, 'it\'s\\ a \n"${env:HOME}" :b ? --'
    sql.spark.conf.set("pyhudi.test.name", "t")
    sql("INSERT INTO ${pyhudi.test.name} VALUES (4, ?, 1, ?)", args=[odd, "y"])
    sql("UPDATE t SET name = :name, ts = ts + :more WHERE id = :id", args={"name": odd, "more": 1, "id": 1})
    sql("MERGE INTO t USING (SELECT :id AS id) s ON t.id = s.id WHEN MATCHED AND t.ts < :ts THEN UPDATE SET name = :n",
        args={"id": 2, "ts": 1.5e9, "n": odd})  # fmt: skip
    sql("DELETE FROM t WHERE id = :id AND :is_old", args={"id": 3, "is_old": True})
    sql("UPDATE IDENTIFIER(:t) SET ts = 99 WHERE id = 4", args={"t": f"{sql.database}.t"})
    sql("EXECUTE IMMEDIATE 'UPDATE t SET ts = ts + 1 WHERE id = 4'")

    assert sql.rows("t", "id, name, ts") == [(1, odd, 11), (2, odd, 10), (4, odd, 100)]


def test_partition_values_are_those_of_the_columns_type(sql: Sql) -> None:
    """A partition that a statement names otherwise than its path would keep its rows."""
    sql("CREATE TABLE t (id INT, d DATE, at TIMESTAMP) USING hudi PARTITIONED BY (d, at)")
    sql("CREATE TABLE u (id INT, p STRING) USING hudi PARTITIONED BY (p)")
    both = "d = '2024-02-01', at = '2024-02-01 10:00:00'"
    sql(f"INSERT INTO t PARTITION ({both}) VALUES (1)")
    sql("INSERT INTO u PARTITION (p = '') VALUES (1)")

    assert len(sql(f"SHOW PARTITIONS t PARTITION ({both})")) == len(sql("SHOW PARTITIONS u PARTITION (p = '')")) == 1
    sql(f"INSERT OVERWRITE t PARTITION ({both}) SELECT 2 WHERE false")
    sql("TRUNCATE TABLE u PARTITION (p = NULL)")
    assert sql("SELECT id FROM t") == sql("SELECT id FROM u") == []
    with pytest.raises(Invalid, match=r"d = 'never'.*expected date"):
        sql("INSERT INTO t PARTITION (d = 'never', at) SELECT 1, now()")


def test_comments_stand_anywhere(mor: Sql) -> None:
    sql = mor
    sql(
        "MERGE INTO t USING (SELECT 4 AS id /* a, b */) s ON t.id = s.id -- WHEN MATCHED THEN DELETE\n"
        "WHEN NOT MATCHED THEN INSERT (id -- the key\n, ts, dt) VALUES (s.id -- , 1\n, 7 /* , /* 8 */ */, 'y' -- )\n)"
    )
    sql("UPDATE t SET name = 'd' -- , ts = 0\n, ts = ts + 1 -- WHERE\nWHERE /* id = 1 AND */ id = 4 -- ;")

    assert sql.rows("t") == [A, B, C, (4, "d", 8, "y")]


def test_partition_values_with_slashes_are_found(sql: Sql) -> None:
    """Their rows stayed, or were lost: their paths have more folders than columns."""
    for name, facts in (("t", ""), ("u", ", 'hoodie.datasource.write.hive_style_partitioning' = 'false'")):
        sql(
            f"CREATE TABLE {name} (id INT, y INT, p STRING) USING hudi PARTITIONED BY (y, p) TBLPROPERTIES "
            f"(primaryKey = 'id'{facts})"
        )
        sql(f"INSERT INTO {name} VALUES (1, 2024, 'a/b'), (2, 2024, 'c'), (3, 2025, 'c')")
        assert len(sql(f"SHOW PARTITIONS {name} PARTITION (y = 2024)")) == 2
        sql(f"INSERT OVERWRITE {name} PARTITION (y = 2024, p = 'a/b') IF NOT EXISTS SELECT 9")
        assert sql.rows(name, "id") == [(1,), (2,), (3,)]
        sql(f"ALTER TABLE {name} DROP PARTITION (p = 'a/b')")
        assert sql.rows(name, "id") == [(2,), (3,)]
        sql(f"INSERT INTO {name} VALUES (1, 2024, 'a/b')")
        sql(f"INSERT OVERWRITE {name} PARTITION (y = 2024, p) SELECT 11, 'z'")
        assert sql.rows(name, "id") == [(11,), (3,)]

    sql("CREATE TABLE v (id INT, y STRING, p STRING) USING hudi PARTITIONED BY (y, p) TBLPROPERTIES "
        "(primaryKey = 'id', 'hoodie.datasource.write.hive_style_partitioning' = 'false')")  # fmt: skip
    sql("INSERT INTO v VALUES (1, 'a', 'b/c'), (2, 'a/b', 'c'), (3, 'd', 'e')")
    with pytest.raises(Unsupported, match=r"'a/b/c' .* has rows of these values and of others; use DELETE"):
        sql("TRUNCATE TABLE v PARTITION (y = 'a')")
    sql("TRUNCATE TABLE v PARTITION (y = 'd')")
    assert sql.rows("v", "id") == [(1,), (2,)]
    with pytest.raises(Unsupported, match=r"'a/b/c' has rows of several values; name the partitions"):
        sql("CALL run_clustering(table => 'v', op => 'schedule', predicate => \"y = 'a'\")")


def test_a_partition_clause_may_have_other_capitals_and_deletes_no_more_than_it_says(sql: Sql) -> None:
    sql("CREATE TABLE t (id INT, ts BIGINT, city STRING) USING hudi PARTITIONED BY (city) "
        "TBLPROPERTIES (primaryKey = 'id')")  # fmt: skip
    sql("INSERT INTO t PARTITION (CITY = 'oslo') SELECT 8L AS ts, 2 AS id")
    sql("INSERT INTO t PARTITION (City = 'oslo') (ts, ID) SELECT 9L, 3")
    sql("INSERT INTO t PARTITION (CITY = 'oslo') BY NAME SELECT 7L AS ts, 4 AS id")
    sql("INSERT OVERWRITE t PARTITION (CITY = 'rome') SELECT 6L AS ts, 5 AS id")
    stored = [(2, 8, "oslo"), (3, 9, "oslo"), (4, 7, "oslo"), (5, 6, "rome")]
    assert sql.rows("t", "id, ts, city") == stored

    for text in ("ALTER TABLE t DROP PARTITION (city)", "TRUNCATE TABLE t PARTITION (city)",
                 "TRUNCATE TABLE t PARTITION ()", "ALTER TABLE t DROP PARTITION ()"):  # fmt: skip
        with pytest.raises(Invalid, match=r"expected a (value of 'city'|partition column), found none"):
            sql(text)
    assert sql.rows("t", "id, ts, city") == stored
    assert sql("SHOW PARTITIONS t PARTITION (city)") == [("city=oslo",), ("city=rome",)]


def test_names_that_spark_takes_are_taken(sql: Sql) -> None:
    sql("CREATE TABLE 2024_sales (id INT, a INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    sql("ALTER TABLE 2024_sales ADD COLUMNS (r STRUCT<comment: STRING, first: INT> AFTER id, then INT)")
    sql("INSERT INTO 2024_sales SELECT 1 AS id, named_struct('comment', 'a', 'first', 2) AS r, 2L AS a, 3 AS then")
    merge = "MERGE {} INTO 2024_sales t USING (SELECT 1 AS id, 3 AS then, 9 AS new) s ON t.id = s.id "
    merge += "WHEN MATCHED AND s.then = t.then THEN UPDATE SET a = 5"
    with pytest.raises(Unsupported, match="MERGE adds no columns"):
        sql(merge.format("WITH SCHEMA EVOLUTION"))
    sql(merge.format(""))

    assert sql("SELECT id, r.comment, r.first, a, then FROM 2024_sales WHERE a > 2") == [(1, "a", 2, 5, 3)]


def test_a_query_of_a_path_is_not_written_to(mor: Sql) -> None:
    """Spark would write the rows below a root that is made up, where nobody finds them."""
    sql = mor
    sql.spark.read.format("hudi").load(sql.table("t").path).createOrReplaceTempView("v")
    sql("CREATE TABLE cow USING hudi AS SELECT 1 AS id")
    sql.spark.read.format("hudi").load(sql.table("cow").path).createOrReplaceTempView("w")

    for view in ("v", "w"):
        with pytest.raises(Exception, match=r"(?i)RDD.based|not allowed"):
            sql(f"INSERT INTO {view} SELECT * FROM {view}")
        with pytest.raises(Exception, match=r"(?i)RDD.based|not allowed"):
            sql.spark.table(view).write.insertInto(view)
    assert not Path("/pyhudi-scan").exists()


def test_spark_writes_no_files_of_its_own_into_the_folder_of_a_table(mor: Sql) -> None:
    """INSERT OVERWRITE DIRECTORY deleted the table, with its history."""
    sql, path = mor, mor.table("t").path
    sql("CREATE TABLE p (a INT, dt STRING) USING parquet PARTITIONED BY (dt)")
    for text in (
        f"INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT 1",
        f"INSERT OVERWRITE LOCAL DIRECTORY 'file:{path}/dt=x' STORED AS PARQUET SELECT 1",
        f"INSERT OVERWRITE DIRECTORY USING parquet OPTIONS (compression 'gzip', path '{path}') SELECT 1",
        f"FROM t INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT id",
        f"CREATE TABLE plain (a INT) USING parquet LOCATION '{path}/dt=x'",
        "CREATE TABLE plain (a INT) USING parquet LOCATION 't'",
        f"CREATE TABLE plain (a INT) USING parquet OPTIONS ('Path' = '{path}')",
        f"CREATE TABLE plain USING parquet OPTIONS (path = '{sql.root}/' || '{sql.database}/t') AS SELECT 1",
        f"ALTER TABLE p SET LOCATION '{path}'",
        f"ALTER TABLE p ADD PARTITION (dt = 'x') LOCATION '{path}/dt=x'",
        f"EXECUTE IMMEDIATE \"ALTER TABLE p SET LOCATION '{path}'\"",
        f"BEGIN INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT 1; END",
    ):
        with pytest.raises(Unsupported, match=r"the Hudi table .*/t lies there.*choose another folder"):
            sql(text)
    sql(f"INSERT OVERWRITE DIRECTORY '{sql.root}/other' USING parquet SELECT 1")
    sql("ALTER TABLE p ADD PARTITION (dt = 'x') LOCATION 'elsewhere'")

    assert sql.rows("t") == [A, B, C]


def test_no_call_lets_spark_write_files_of_its_own_into_the_folder_of_a_table(mor: Sql) -> None:
    sql, path, rows, catalog = mor, mor.table("t").path, mor.spark.range(1), mor.spark.catalog
    stream = sql.spark.readStream.format("rate").load().writeStream.option("checkpointLocation", f"{sql.root}/ck")
    for call in (
        lambda: rows.write.format("parquet").option("path", path).mode("overwrite").saveAsTable("p"),
        lambda: rows.write.saveAsTable("p", path=path),
        lambda: rows.write.option("PATH", path).mode("overwrite").save(),
        lambda: rows.writeTo("p").using("parquet").option("path", path).create(),
        lambda: catalog.createTable("p", path=path, source="parquet", schema=rows.schema),
        lambda: catalog.createTable("p", source="parquet", schema=rows.schema, path=f"{path}/dt=x"),
        lambda: stream.format("parquet").start(path),
        lambda: stream.format("parquet").option("path", path).toTable("p"),
    ):
        with pytest.raises(Unsupported, match=r"the Hudi table .*/t lies there.*choose another folder"):
            call()

    assert sql.rows("t") == [A, B, C]
    rows.write.option("path", f"{sql.root}/other").saveAsTable("p")
    assert sql("SELECT * FROM p") == [(0,)]


def test_scripts_delete_no_files(mor: Sql) -> None:
    with pytest.raises(Unsupported, match="TRUNCATE TABLE t in a script"):
        mor("BEGIN TRUNCATE TABLE t; END")
    assert mor.rows("t") == [A, B, C]


def test_a_name_may_become_that_of_another_table(mor: Sql) -> None:
    sql, other = mor, mor.spark.newSession()
    other.sql(f"SELECT * FROM {sql.database}.t").collect()
    sql("DROP TABLE t")
    sql("CREATE TABLE t (id INT) USING parquet")
    sql("INSERT INTO t VALUES (5)")

    assert sql("SELECT * FROM t") == [(5,)]
    assert other.sql(f"SELECT * FROM {sql.database}.t").collect() == [(5,)]
    assert [tuple(row) for row in other.table(f"{sql.database}.t").collect()] == [(5,)]


def test_a_table_may_be_called_hudi(sql: Sql) -> None:
    sql("CREATE TABLE hudi (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    sql("INSERT INTO hudi (SELECT 1, 'a')")
    sql("UPDATE hudi SET name = 'b' WHERE hudi.`id` = 1")

    assert sql("SELECT `hudi`.`name` FROM hudi") == [("b",)]
