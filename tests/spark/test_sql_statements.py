"""SQL about Hudi tables could change other rows than it says, in several commits, or write plain Parquet into a table.

After each statement the table is read by name, and, where it matters, by pyhudi in this process; commits are counted.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi.spark
from pyhudi import HudiTable, Invalid, NotFound, Unsupported
from pyhudi.engine.spark.session import is_classic

pytestmark = pytest.mark.spark


class Sql:
    """A database of its own, by name: what a statement answers, and what tables hold."""

    def __init__(self, spark: Any, database: str, root: Path) -> None:
        self.spark, self.database, self.root = spark, database, root

    def __call__(self, text: str, **given: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(text, **given).collect()]

    def rows(self, name: str, columns: str = "id, name, ts, dt") -> list[tuple[Any, ...]]:
        return sorted(self(f"SELECT {columns} FROM {name}"), key=repr)

    def table(self, name: str) -> HudiTable:
        found = {row[0]: row[1] for row in self(f"DESCRIBE EXTENDED {name}")}
        return HudiTable.open(found["Location"].removeprefix("file:"))

    def commits(self, name: str) -> int:
        return sum(instant.completed is not None for instant in self.table(name).timeline())


@pytest.fixture
def sql(spark: Any, tmp_path: Path) -> Iterator[Sql]:
    with own_database(spark, tmp_path) as sql, used(sql):
        yield sql


@contextmanager
def own_database(spark: Any, folder: Path) -> Iterator[Sql]:
    """A database in a folder, which goes in the end."""
    pyhudi.spark.register(spark)
    database = f"db_{folder.name.lower().replace('-', '_')}"
    spark.sql(f"CREATE DATABASE {database} LOCATION '{folder}/{database}'")
    yield Sql(spark, database, folder)
    spark.sql(f"DROP DATABASE {database} CASCADE")


@contextmanager
def settings(sql: Sql, said: dict[str, str]) -> Iterator[None]:
    """The session has these settings."""
    before = {name: sql.spark.conf.get(name) for name in said}
    for name, text in said.items():
        sql.spark.conf.set(name, text)
    try:
        yield
    finally:
        for name, text in before.items():
            sql.spark.conf.set(name, text)


@contextmanager
def used(sql: Sql) -> Iterator[None]:
    """The session's names are those of the database."""
    sql(f"USE {sql.database}")
    for _, view, is_temporary in sql("SHOW TABLES"):  # the session's other tests leave their views
        if is_temporary:
            sql.spark.catalog.dropTempView(view)
    yield
    sql("USE default")


CREATE = "CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES "
FIRST = "INSERT INTO t VALUES (1, 'a', 10, 'x'), (2, 'b', 10, 'x'), (3, 'c', 10, 'y')"
A, B, C = (1, "a", 10, "x"), (2, "b", 10, "x"), (3, "c", 10, "y")


TABLE_TYPES = [pytest.param("cow", marks=pytest.mark.long), "mor"]
"""Statements know no types: the tests of every change take tables with logs, in which more can go wrong."""


@pytest.fixture(params=TABLE_TYPES)
def filled(request: pytest.FixtureRequest, sql: Sql) -> Sql:
    sql(f"{CREATE} (type = '{request.param}', primaryKey = 'id', preCombineField = 'ts')")
    sql(FIRST)
    return sql


@pytest.fixture(scope="module", params=TABLE_TYPES)
def standing(request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    """A table of the module's, for statements that change nothing."""
    with own_database(spark, tmp_path_factory.mktemp("standing")) as sql:
        with used(sql):
            sql(f"{CREATE} (type = '{request.param}', primaryKey = 'id', preCombineField = 'ts')")
            sql(FIRST)
        yield sql


def test_a_table_is_made_as_the_statement_says(sql: Sql) -> None:
    place = f"{sql.root}/its own place"
    sql(f"{CREATE} (type = 'mor', primaryKey = 'id', orderingFields = 'ts', 'hoodie.keep.max.commits' = '40')")
    sql(
        f"CREATE TABLE IF NOT EXISTS u (Id INT COMMENT 'key', v DECIMAL(5,2)) USING hudi LOCATION 'file:{place}' "
        "TBLPROPERTIES (PrimaryKey = 'ID')"
    )

    table = sql.table("t")
    assert (table.name, table.table_type, table.record_key) == ("t", "MERGE_ON_READ", ("id",))
    assert (table.ordering, table.partition_by) == (("ts",), ("dt",))
    assert table.properties["hoodie.keep.max.commits"] == "40"
    assert table.properties["hoodie.datasource.write.hive_style_partitioning"] == "true"
    assert table.schema().names == ["id", "name", "ts", "dt"]
    assert (sql.table("u").path, sql.table("u").record_key) == (place, ("Id",))
    assert ("Id", "int", "key") in sql("DESCRIBE u")
    assert {row[1] for row in sql("SHOW TABLES")} == {"t", "u"}
    assert dict(sql("SHOW TBLPROPERTIES t"))["primaryKey"] == "id"
    assert "USING hudi" in sql("SHOW CREATE TABLE t")[0][0]

    sql("CREATE TABLE IF NOT EXISTS t (other INT) USING hudi")
    with pytest.raises(Invalid, match="is there already"):
        sql("CREATE TABLE t (other INT) USING hudi")


@pytest.mark.parametrize(
    "text,error,expected",
    [
        ("CREATE TABLE n (a INT) USING hudi TBLPROPERTIES (primaryKey = 'b')", Invalid, "no column 'b'"),
        ("CREATE TABLE n (a INT) USING hudi TBLPROPERTIES (type = 'cov')", Invalid, "'cow' or 'mor'"),
        ("CREATE TABLE n (a INT) USING hudi TBLPROPERTIES ('hoodie.nonsense' = '1')", Invalid, "hoodie.nonsense"),
        ("CREATE TABLE n (a INT) USING hudi PARTITIONED BY (b)", Invalid, "no column 'b'"),
        ("CREATE TABLE n (a INT DEFAULT 1) USING hudi", Exception, "DEFAULT"),
        ("CREATE TABLE n (a INT, b INT GENERATED ALWAYS AS (a)) USING hudi", Exception, "GENERATED"),
        ("CREATE TABLE n (a ARRAY<STRING COLLATE UTF8_LCASE>) USING hudi", Exception, "COLLATE|no collations"),
        ("CREATE TABLE n USING hudi", Invalid, "expected columns, a query"),
        ("CREATE TABLE other.db.n (a INT) USING hudi", Unsupported, "spark_catalog"),
        ("CREATE TABLE n USING hudi TBLPROPERTIES (primaryKey = 'a') AS SELECT 1 b", Invalid, "no column 'a'"),
    ],
)
def test_a_table_that_cannot_be_leaves_nothing(sql: Sql, text: str, error: type, expected: str) -> None:
    with pytest.raises(error, match=expected):
        sql(text)

    assert sql("SHOW TABLES") == []
    assert not (sql.root / sql.database / "n").exists()


def test_a_query_makes_a_table_or_nothing(sql: Sql) -> None:
    sql("CREATE TABLE t USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id') AS "
        "SELECT 'x' AS dt, id AS id, CAST(id AS STRING) AS name FROM range(3)")  # fmt: skip

    assert sql("SELECT id, name, dt FROM t WHERE id > 0 ORDER BY id") == [(1, "1", "x"), (2, "2", "x")]
    assert sql.table("t").schema().names == ["id", "name", "dt"]
    with pytest.raises(Exception, match=r"(?i)no luck"):
        sql("CREATE TABLE u USING hudi AS SELECT id, CAST(raise_error('no luck') AS INT) AS e FROM range(3)")
    assert not (sql.root / sql.database / "u").exists()
    assert [row[1] for row in sql("SHOW TABLES")] == ["t"]


def test_a_table_that_is_there_gets_a_name(filled: Sql) -> None:
    path = filled.table("t").path
    filled(f"CREATE TABLE again USING hudi LOCATION '{path}'")

    assert filled.rows("again") == [A, B, C]
    filled("DELETE FROM again WHERE id = 1")
    assert filled.rows("t") == [B, C]
    with pytest.raises(Invalid, match="primaryKey: expected 'id'"):
        filled(f"CREATE TABLE other USING hudi TBLPROPERTIES (primaryKey = 'name') LOCATION '{path}'")
    with pytest.raises(Invalid, match=r"column 'ts': expected bigint.*found string"):
        filled(f"CREATE TABLE other (name VARCHAR(9), ts STRING) USING hudi LOCATION '{path}'")
    filled("DROP TABLE again")
    assert filled.rows("t") == [B, C]


def test_a_name_is_the_newest_commit_wherever_a_table_may_stand(filled: Sql) -> None:
    sql, spark = filled, filled.spark
    sql("CREATE VIEW v AS SELECT id, dt FROM t WHERE ts >= 10")
    before = spark.table("t").count(), sql("SELECT count(*) FROM v")
    HudiTable.open(sql.table("t").path).delete(where="id = 2")

    assert (before, spark.table("t").count(), spark.read.table("t").count()) == ((3, [(3,)]), 2, 2)
    assert sql("SELECT count(*) FROM v") == [(2,)]
    assert sql("WITH c AS (SELECT * FROM t) SELECT a.id FROM c a JOIN t b ON a.id = b.id ORDER BY 1") == [(1,), (3,)]
    assert sql("SELECT id FROM range(5) WHERE id IN (SELECT id FROM t)") == [(1,), (3,)]
    assert sql(f"SELECT count(*) FROM {sql.database}.t, spark_catalog.{sql.database}.t x") == [(4,)]
    assert sql("SELECT name FROM t WHERE id = :id", args={"id": 3}) == [("c",)]
    assert sql("SELECT count(*) FROM {rows} JOIN t USING (id)", rows=spark.range(2)) == [(1,)]
    assert sql(f"SELECT count(*) FROM hudi.`{sql.table('t').path}`") == [(2,)]
    spark.newSession().sql(f"SELECT * FROM {sql.database}.v").collect()
    spark.catalog.refreshTable("t")
    assert sql("SELECT count(*) FROM t") == [(2,)]


def test_a_scan_by_name_is_native(sql: Sql) -> None:
    sql(f"{CREATE} (primaryKey = 'id')")
    sql(FIRST)

    ((plan,),) = sql("EXPLAIN SELECT name FROM t WHERE ts > 5")

    assert "FileScan parquet" in plan
    assert "PushedFilters: [IsNotNull(ts), GreaterThan(ts,5)]" in plan


def test_moments_are_asked_for(filled: Sql) -> None:
    requested = filled.table("t").timeline()[-1].requested
    filled("DELETE FROM t WHERE id = 1")

    assert len(filled.rows(f"t TIMESTAMP AS OF '{requested}'")) == 3
    joined = f"SELECT count(*) FROM t VERSION AS OF '{requested}' a LEFT ANTI JOIN t b ON a.id = b.id"
    assert filled(joined) == [(1,)]
    assert filled("SELECT t.id FROM t TIMESTAMP AS OF :when WHERE t.id = 1", args={"when": requested}) == [(1,)]
    assert filled("SELECT * FROM t TIMESTAMP AS OF '2001-01-01'") == []
    assert filled("SELECT * FROM t TIMESTAMP AS OF DATE '2001-01-01'") == []
    with settings(filled, {"spark.sql.session.timeZone": "America/New_York"}):
        assert len(filled.rows("t TIMESTAMP AS OF current_timestamp()")) == 2
        assert filled.rows("t TIMESTAMP AS OF current_timestamp() - INTERVAL 1 HOUR") == []
        changes = "SELECT id FROM hudi_table_changes('t', 'latest_state', current_timestamp() - INTERVAL {} HOUR)"
        assert (len(filled(changes.format(0))), len(filled(changes.format(1)))) == (0, 2)
    if is_classic(filled.spark):
        with pytest.raises(Invalid, match="known before the query runs, such as a literal"):
            filled("SELECT * FROM t TIMESTAMP AS OF (SELECT current_timestamp())")


def test_inserts_find_their_columns(sql: Sql) -> None:
    sql(f"{CREATE} (primaryKey = 'id')")

    sql("INSERT INTO t (dt, id) VALUES ('x', 1)")
    sql("INSERT INTO t SELECT 2 AS id, 'y' AS dt, 20 AS ts, 'b' AS name")  # by their names
    sql("INSERT INTO t PARTITION (dt = 'z') SELECT 3, 'c', 30")
    sql("INSERT INTO t PARTITION (dt) SELECT 4, 'd', 40, 'w'")
    sql("INSERT INTO t BY NAME SELECT 'v' AS dt, 5 AS id")
    sql("WITH s AS (SELECT 6 AS n) INSERT INTO t SELECT n, 'f', n * 10, 'u' FROM s")
    sql("INSERT INTO t SELECT * FROM t WHERE id = 99")  # meta fields are passed over

    assert sql.rows("t") == [
        (1, None, None, "x"), (2, "b", 20, "y"), (3, "c", 30, "z"), (4, "d", 40, "w"), (5, None, None, "v"),
        (6, "f", 60, "u"),
    ]  # fmt: skip
    assert sql("SHOW PARTITIONS t")[:2] == [("dt=u",), ("dt=v",)]
    assert sql("SHOW PARTITIONS t PARTITION (dt = 'z')") == [("dt=z",)]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("INSERT INTO t VALUES (1, 'a', 10)", "NOT_ENOUGH_DATA_COLUMNS|enough data columns"),
        ("INSERT INTO t VALUES (1, 'a', 10, 'x', 5)", "TOO_MANY_DATA_COLUMNS|too many data columns"),
        ("INSERT INTO t VALUES ('one', 'a', 10, 'x')", "CANNOT_SAFELY_CAST|cannot safely cast"),
        ("INSERT INTO t VALUES (3000000000, 'a', 10, 'x')", "(?i)overflow"),
        ("INSERT INTO t (id, nonsense) VALUES (1, 2)", "no column 'nonsense'"),
        ("INSERT INTO t (id, id) VALUES (1, 2)", "each column once"),
        ("INSERT INTO t PARTITION (name = 'a') SELECT 1, 2, 'x'", "no partition column"),
        ("INSERT INTO t VALUES (NULL, 'a', 10, 'x')", "null"),
    ],
)
def test_rows_that_do_not_fit_are_refused_whole(standing: Sql, text: str, expected: str) -> None:
    with used(standing):
        with pytest.raises(Exception, match=expected):
            standing(text)

        assert (standing.rows("t"), standing.commits("t")) == ([A, B, C], 1)


def test_the_operation_of_an_insert_is_as_options_say(sql: Sql) -> None:
    sql(f"{CREATE} (primaryKey = 'id', preCombineField = 'ts')")
    option = "hoodie.spark.sql.insert.into.operation"
    try:
        sql(FIRST)
        sql("INSERT INTO t VALUES (1, 'new', 11, 'x'), (2, 'old', 9, 'x')")  # an upsert, as it has an ordering column
        assert sql.rows("t") == [(1, "new", 11, "x"), B, C]
        sql.spark.sql(f"SET {option} = bulk_insert")
        sql("INSERT INTO t VALUES (1, 'twice', 1, 'x')")
        assert len(sql.rows("t")) == 4
        sql.spark.sql(f"SET {option} = insert")
        sql.spark.sql("SET hoodie.datasource.insert.dup.policy = fail")
        with pytest.raises(Invalid, match="'3'"):
            sql("INSERT INTO t VALUES (3, 'again', 20, 'y')")
    finally:
        sql.spark.conf.unset(option)
        sql.spark.conf.unset("hoodie.datasource.insert.dup.policy")


def test_the_operation_of_every_write_counts_before_those_of_sql(sql: Sql) -> None:
    """Seen: 1.2.0 obeys it in both kinds of INSERT."""
    sql(
        "CREATE TABLE t (id INT, name STRING, dt STRING) USING hudi PARTITIONED BY (dt) "
        "TBLPROPERTIES (primaryKey = 'id')"
    )
    operation = "hoodie.datasource.write.operation"

    def stored(insert: str, asked: str) -> list[Any]:
        sql("INSERT OVERWRITE t VALUES (8, 'a', 'x'), (9, 'b', 'y')")
        sql.spark.conf.set(operation, asked)
        try:
            sql(f"{insert} t VALUES (9, 'c', 'y')")
        finally:
            sql.spark.conf.unset(operation)
        return [(one, name) for one, name, _ in sql("SELECT id, name, dt FROM t ORDER BY id, name")]

    for insert in ("INSERT INTO", "INSERT OVERWRITE"):
        assert stored(insert, "insert_overwrite") == [(8, "a"), (9, "c")]
        assert stored(insert, "insert_overwrite_table") == [(9, "c")]
    assert stored("INSERT INTO", "upsert") == [(8, "a"), (9, "c")]
    assert stored("INSERT INTO", "bulk_insert") == [(8, "a"), (9, "b"), (9, "c")]
    assert stored("INSERT OVERWRITE", "upsert") == [(9, "c")]
    with pytest.raises(Invalid, match="for an INSERT: expected one of insert"):
        stored("INSERT INTO", "delete")
    sql(f"ALTER TABLE t SET TBLPROPERTIES ('{operation}' = 'insert_overwrite_table')")
    sql("INSERT INTO t VALUES (7, 'd', 'x')")
    assert sql("SELECT id FROM t ORDER BY id") == [(7,), (8,), (9,)]


def test_a_new_table_is_as_the_options_of_the_session_say(sql: Sql) -> None:
    told = {
        "hoodie.database.name": "elsewhere", "hoodie.write.table.version": "6",
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "3", "hoodie.datasource.write.recordkey.field": "elsewhere",
    }  # fmt: skip
    for name, text in told.items():
        sql(f"SET {name} = {text}")
    try:
        sql(f"{CREATE} (primaryKey = 'id', preCombineField = 'ts')")
        for name in ("hoodie.database.name", "hoodie.datasource.write.recordkey.field"):
            sql(f"RESET {name}")
        sql(FIRST)
        sql("INSERT INTO t VALUES (1, 'again', 11, 'x')")
    finally:
        for name in told:
            sql(f"RESET {name}")
    table = sql.table("t")
    assert (table.table_version, table.table_type, table.record_key) == (6, "MERGE_ON_READ", ("id",))
    assert table.properties["hoodie.bucket.index.num.buckets"] == "3"
    assert table.properties["hoodie.database.name"] == sql.database
    assert {row[0] for row in sql("SELECT _hoodie_partition_path FROM t")} == {"x", "y"}
    assert sql.rows("t") == [(1, "again", 11, "x"), B, C]


def test_a_table_like_another_has_its_facts(sql: Sql) -> None:
    facts = (
        "'hoodie.write.table.version' = '6', 'hoodie.index.type' = 'BUCKET', 'hoodie.bucket.index.num.buckets' = '3'"
    )
    sql(f"{CREATE} (type = 'mor', primaryKey = 'id', preCombineField = 'ts', {facts})")
    sql("CREATE TABLE same LIKE t")
    sql("SET hoodie.datasource.write.table.type = COPY_ON_WRITE")
    try:
        sql("CREATE TABLE other LIKE t TBLPROPERTIES ('hoodie.write.table.version' = '9')")
    finally:
        sql("RESET hoodie.datasource.write.table.type")

    for name, version in (("same", 6), ("other", 9)):
        made = sql.table(name)
        assert (made.table_version, made.table_type, made.ordering) == (version, "MERGE_ON_READ", ("ts",))
        assert made.properties["hoodie.bucket.index.num.buckets"] == "3"
        sql(FIRST.replace(" t ", f" {name} "))
        sql(f"INSERT INTO {name} VALUES (1, 'again', 11, 'x')")
        assert sql.rows(name) == [(1, "again", 11, "x"), B, C]


def test_what_the_session_says_of_buckets_counts_where_the_table_has_buckets(sql: Sql) -> None:
    sql("SET hoodie.bucket.index.num.buckets = 4")
    try:
        sql(f"{CREATE} (primaryKey = 'id', 'hoodie.index.type' = 'BUCKET')")
        sql(FIRST)
    finally:
        sql("RESET hoodie.bucket.index.num.buckets")
    assert sql.table("t").properties["hoodie.bucket.index.num.buckets"] == "4"


def test_partitions_of_which_none_tells_all_its_values_are_filtered(sql: Sql) -> None:
    """A text that is null or empty and a time are not told by a path, so that each partition lacks one of the two."""
    sql("CREATE TABLE t (id STRING, n INT, a STRING, b TIMESTAMP) USING hudi PARTITIONED BY (a, b) "
        "TBLPROPERTIES (primaryKey = 'id')")  # fmt: skip
    sql("INSERT INTO t VALUES ('k1', 1, NULL, NULL), ('k2', 2, 'y', TIMESTAMP'2024-01-01 00:00:00')")

    assert sql("SELECT id FROM t WHERE n = 1") == [("k1",)]
    assert sql("SELECT id FROM t WHERE a = 'y' AND n > 0") == [("k2",)]
    assert sql("SELECT id FROM t WHERE b IS NULL") == [("k1",)]


def test_overwrites_replace_what_they_name(filled: Sql) -> None:
    sql = filled
    sql("INSERT OVERWRITE t PARTITION (dt = 'x') SELECT 7, 'g', 1")
    assert sql.rows("t") == [C, (7, "g", 1, "x")]
    sql("INSERT OVERWRITE TABLE t PARTITION (dt) SELECT 8, 'h', 1, 'y'")
    assert sql.rows("t") == [(8, "h", 1, "y")]
    sql("INSERT INTO t VALUES (7, 'g', 1, 'x')")
    sql("INSERT OVERWRITE t PARTITION (dt = 'x') SELECT 7, 'g', 1 WHERE false")
    assert sql.rows("t") == [(8, "h", 1, "y")]
    sql("INSERT OVERWRITE t SELECT id + 1, name, ts, 'z' FROM t")
    assert sql.rows("t") == [(9, "h", 1, "z")]
    try:
        sql.spark.sql("SET hoodie.datasource.overwrite.mode = dynamic")
        sql("INSERT OVERWRITE t VALUES (1, 'i', 1, 'w')")
    finally:
        sql.spark.conf.unset("hoodie.datasource.overwrite.mode")
    assert sql.rows("t") == [(1, "i", 1, "w"), (9, "h", 1, "z")]


def test_an_overwrite_of_some_partition_values_goes_by_the_mode(sql: Sql) -> None:
    sql(
        "CREATE TABLE h (id INT, d STRING, h STRING) USING hudi PARTITIONED BY (d, h) TBLPROPERTIES (primaryKey = 'id')"
    )
    full = "INSERT OVERWRITE h VALUES (1, 'x', '0'), (2, 'x', '1'), (3, 'y', '0')"
    one, mixed = "INSERT OVERWRITE h PARTITION (d, h) SELECT 9, 'y', '0'", "PARTITION (d = 'x', h) SELECT 9, '0'"

    def after(text: str, mode: str) -> list[int]:
        sql(full)
        sql.spark.conf.set("hoodie.datasource.overwrite.mode", mode)
        commits = sql.commits("h")
        try:
            sql(text)
        finally:
            sql.spark.conf.unset("hoodie.datasource.overwrite.mode")
        assert sql.commits("h") == commits + 1
        return sorted(row[0] for row in sql("SELECT id FROM h"))

    assert after(one, "static") == [9]
    assert after(one, "dynamic") == [1, 2, 9]
    assert after(f"INSERT OVERWRITE h {mixed}", "static") == [3, 9]
    assert after(f"INSERT OVERWRITE h {mixed}", "dynamic") == [2, 3, 9]
    assert after(f"INSERT OVERWRITE h {mixed} WHERE false", "static") == [3]


def test_an_overwrite_leaves_a_partition_that_is_there_where_it_is_told_to(filled: Sql) -> None:
    filled("INSERT OVERWRITE t PARTITION (dt = 'x') IF NOT EXISTS VALUES (8, 'h', 11)")
    filled("INSERT OVERWRITE t PARTITION (dt = 'new') IF NOT EXISTS VALUES (9, 'i', 11)")

    assert filled.rows("t") == [A, B, C, (9, "i", 11, "new")]
    filled("DELETE FROM t WHERE dt = 'x'")
    filled("INSERT OVERWRITE t PARTITION (dt = 'x') IF NOT EXISTS VALUES (8, 'h', 11)")
    assert filled.rows("t") == [C, (8, "h", 11, "x"), (9, "i", 11, "new")]


def test_updates_and_deletes_are_one_commit_each(filled: Sql) -> None:
    sql, commits = filled, filled.commits("t")

    sql("UPDATE t SET name = concat(name, ts), ts = ts + 1 WHERE id IN (SELECT id FROM t WHERE dt = 'x') AND id < 3")
    assert sql.rows("t") == [(1, "a10", 11, "x"), (2, "b10", 11, "x"), C]
    sql("UPDATE t AS x SET x.name = NULL, ts = '12' WHERE x.id = 1")
    assert sql.rows("t") == [(1, None, 12, "x"), (2, "b10", 11, "x"), C]
    sql("DELETE FROM t WHERE name IS NULL OR dt = (SELECT max(dt) FROM t)")
    assert sql.rows("t") == [(2, "b10", 11, "x")]
    sql("DELETE FROM t WHERE id = 99")
    sql("UPDATE t SET name = 'none' WHERE id = 99")
    assert sql.commits("t") == commits + 3
    assert sql.table("t").scan(meta_fields=False).to_arrow().to_pylist() == [
        {"id": 2, "name": "b10", "ts": 11, "dt": "x"}
    ]
    sql("DELETE FROM t")
    assert sql.rows("t") == []


def test_columns_may_have_the_database_in_front_of_their_table(filled: Sql) -> None:
    sql, t = filled, f"{filled.database}.t"

    sql(f"UPDATE {t} SET {t}.name = concat({t}.name, '!'), ts = spark_catalog.{t}.ts + 1 "
        f"WHERE {t}.id = (SELECT min({t}.id) FROM {t})")  # fmt: skip
    sql(f"DELETE FROM t WHERE {t}.id = 3")
    sql(f"MERGE INTO {t} USING (SELECT 2 id, 'm' name, 20L ts) s ON {t}.id = s.id "
        f"WHEN MATCHED AND {t}.ts < 20 THEN UPDATE SET {t}.name = s.name, ts = s.ts")  # fmt: skip
    assert sql(f"SELECT {t}.id, {t}.name, spark_catalog.{t}.ts FROM {t} ORDER BY {t}.id") == [
        (1, "a!", 11), (2, "m", 20),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text,expected",
    [
        ("UPDATE t SET id = 5", "record key column"),
        ("UPDATE t SET dt = 'z'", "partition column"),
        ("UPDATE t SET nonsense = 1", "no column 'nonsense'"),
        ("UPDATE t SET name = 'a', NAME = 'b'", "each column once"),
        ("UPDATE t SET ts = 1 WHERE id = 1", "event-time ordering"),
        ("UPDATE t SET ts = 'many' WHERE id = 1", "expected bigint, found 'many'"),
        ("UPDATE t SET name = nonsense", "UNRESOLVED_COLUMN|nonsense"),
        ("UPDATE t SET ts = array(1)", "CANNOT_SAFELY_CAST|cannot safely cast"),
        ("DELETE FROM t WHERE nonsense = 1", "UNRESOLVED_COLUMN|nonsense"),
    ],
)
def test_a_change_that_cannot_be_changes_nothing(standing: Sql, text: str, expected: str) -> None:
    with used(standing):
        with pytest.raises(Exception, match=expected):
            standing(text)

        assert (standing.rows("t"), standing.commits("t")) == ([A, B, C], 1)


def test_tables_go_and_are_emptied(filled: Sql) -> None:
    sql, path, requested = filled, filled.table("t").path, filled.table("t").timeline()[-1].requested

    sql("TRUNCATE TABLE t PARTITION (dt = 'y')")
    assert sql.rows("t") == [A, B]
    sql("ALTER TABLE t DROP PARTITION (dt = 'x')")
    assert (sql.rows("t"), sql("SHOW PARTITIONS t")) == ([], [])
    sql(FIRST)
    sql("TRUNCATE TABLE t")
    assert sql.rows("t") == []
    assert len(sql.rows(f"t TIMESTAMP AS OF '{requested}'")) == 3
    sql("DROP TABLE t")
    assert not Path(path).exists()
    with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND|not found"):
        sql("SELECT * FROM t")
    sql("DROP TABLE IF EXISTS t")


def test_a_star_stands_for_any_text_in_partitions_that_go(sql: Sql) -> None:
    sql("CREATE TABLE t (id INT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id')")
    sql("INSERT INTO t VALUES (1, '2021-10-01'), (2, '2021-10-02'), (3, '2021-11-01'), (4, 'a*'), (5, 'ab')")
    assert len(sql("SELECT * FROM hudi_filesystem_view('t', 'dt=2021-10*')")) == 2
    assert len(sql("SELECT * FROM hudi_filesystem_view('t', '/dt=ab/*')")) == 1
    assert len(sql("SELECT * FROM hudi_filesystem_view('t', '*')")) == 5

    sql("ALTER TABLE t DROP PARTITION (dt = '2021-10-*')")
    assert sql("SELECT id FROM t ORDER BY id") == [(3,), (4,), (5,)]
    sql("ALTER TABLE t DROP PARTITION (dt = 'a*')")  # which is the value of one
    assert sql("SELECT id FROM t ORDER BY id") == [(3,), (5,)]
    with pytest.raises(Invalid, match="found none"):
        sql("ALTER TABLE t DROP PARTITION (dt = 'b*')")
    sql("INSERT OVERWRITE t PARTITION (dt = '2021*') VALUES (6)")  # a value as any other
    assert sql("SELECT id, dt FROM t ORDER BY id") == [(3, "2021-11-01"), (5, "ab"), (6, "2021*")]
    sql("TRUNCATE TABLE t PARTITION (dt = '2021-*')")
    assert sql("SELECT id FROM t ORDER BY id") == [(5,), (6,)]


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t DROP PARTITION (dt = 'x', dt = 'y')",
        "TRUNCATE TABLE t PARTITION (dt = 'x', DT = 'y')",
        "INSERT OVERWRITE t PARTITION (dt = 'x', dt = 'y') SELECT 1, 'a', 1.0, 1",
        "SHOW PARTITIONS t PARTITION (dt = 'x', dt = 'y')",
    ],
)
def test_a_partition_names_each_column_once(standing: Sql, text: str) -> None:
    with used(standing):
        with pytest.raises(Invalid, match="each column once"):
            standing(text)
        assert standing.rows("t") == [A, B, C]


def test_the_comment_of_a_table_is_a_property(filled: Sql) -> None:
    def comment() -> list[str]:
        return [text for name, text, _ in filled("DESCRIBE TABLE EXTENDED t") if name == "Comment"]

    filled("ALTER TABLE t SET TBLPROPERTIES (comment = 'rides', key1 = 'a')")
    assert comment() == ["rides"]
    filled("ALTER TABLE t UNSET TBLPROPERTIES (comment, key1)")
    assert comment() == []


def test_an_option_that_the_table_itself_stores_is_not_one_of_the_name(filled: Sql) -> None:
    name = "hoodie.clean.commits.retained"
    filled.table("t").set_properties({name: 3})
    with pytest.raises(Invalid, match=re.escape(f"HudiTable.open(path).set_properties({{'{name}': None}})")):
        filled(f"ALTER TABLE t UNSET TBLPROPERTIES ('{name}')")
    filled(f"ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('{name}')")
    assert filled.table("t").set_properties({name: None}).get(name) is None


def test_names_keep_their_case_where_the_session_tells_it(filled: Sql) -> None:
    filled.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        filled("CREATE TABLE Big (id INT, v INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
        filled("INSERT INTO Big VALUES (1, 1)")
        filled("UPDATE Big SET v = 2 WHERE id = 1")
        assert filled("SELECT v FROM Big") == [(2,)]
        assert {"Big", "t"} <= {name for _, name, _ in filled("SHOW TABLES")}
        filled("DROP TABLE Big")
    finally:
        filled.spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize("where", ["TBLPROPERTIES", "OPTIONS"])
def test_a_name_may_stand_for_base_files_alone(sql: Sql, tmp_path: Path, where: str) -> None:
    facts = "TBLPROPERTIES (type = 'mor', primaryKey = 'id')"
    sql(f"CREATE TABLE t (id INT, v INT) USING hudi {facts} LOCATION '{tmp_path}/t'")
    sql("INSERT INTO t VALUES (1, 1)")
    sql("UPDATE t SET v = 2")
    sql(f"CREATE TABLE ro USING hudi {where} ('hoodie.query.as.ro.table' = 'true') LOCATION '{tmp_path}/t'")
    assert (sql("SELECT v FROM t"), sql("SELECT v FROM ro")) == ([(2,)], [(1,)])
    with pytest.raises(Unsupported, match="base files"):
        sql("INSERT INTO ro VALUES (2, 2)")


def test_entries_of_the_metadata_of_a_commit_have_the_prefix_that_is_said(filled: Sql, tmp_path: Path) -> None:
    sql, prefix = filled, "hoodie.datasource.write.commitmeta.key.prefix"
    told = {prefix: "by_", "by_whom": "me"}
    for name, text in told.items():
        sql(f"SET {name} = {text}")
    try:
        sql("INSERT INTO t VALUES (4, 'd', 1, 'y')")
    finally:
        for name in told:
            sql(f"RESET {name}")
    shown = "CALL show_commit_extra_metadata({} => '{}', metadata_key => 'by_whom')"
    assert [row[3] for row in sql(shown.format("table", "t"))] == ["me"]

    options = {**told, "hoodie.table.name": "u", "hoodie.datasource.write.recordkey.field": "id"}
    sql.spark.range(1).write.format("hudi").options(**options).save(str(tmp_path / "u"))
    assert [row[3] for row in sql(shown.format("path", tmp_path / "u"))] == ["me"]


@pytest.mark.parametrize(
    "text,error,expected",
    [
        ("SELECT * FROM t WITH ('as.of.instant' = '1')", Unsupported, "t WITH .*TIMESTAMP AS OF"),
        ("SELECT * FROM IDENTIFIER('t') WITH/**/('as.of.instant' = '1')", Unsupported, "t WITH .*TIMESTAMP AS OF"),
        ("EXECUTE IMMEDIATE \"SELECT * FROM t WITH ('a' = 'b')\"", Unsupported, "t WITH .*TIMESTAMP AS OF"),
        ("DELETE FROM t WHERE id IN (SELECT id FROM t WITH ('a' = 'b'))", Unsupported, "t WITH .*TIMESTAMP AS OF"),
        ("ALTER TABLE t ADD PARTITION (dt = 'z') LOCATION '/elsewhere'", Unsupported, "expected no LOCATION"),
        ("ALTER TABLE t ADD PARTITION (name = 'z')", Invalid, "'name' is no partition column"),
    ],
)
def test_what_would_do_nothing_is_refused(standing: Sql, text: str, error: type, expected: str) -> None:
    with used(standing), pytest.raises(error, match=expected):
        standing(text)


def test_a_table_that_a_parameter_names_is_known_beside_other_names(filled: Sql) -> None:
    rows = filled("WITH c AS (SELECT 1 AS one) SELECT id FROM IDENTIFIER(:name), c WHERE id = one", args={"name": "t"})
    assert rows == [(1,)]
    with pytest.raises(Unsupported, match=r"t WITH .*TIMESTAMP AS OF"):
        filled("SELECT * FROM IDENTIFIER(:name) WITH ('as.of.instant' = '1')", args={"name": "t"})


def test_an_index_on_an_expression_takes_its_options_by_name(filled: Sql) -> None:
    sql = filled
    sql("CREATE INDEX cut ON t USING column_stats(name) OPTIONS (expr = 'substring', len = '1', pos = '2')")
    sql("CREATE INDEX bloom ON t USING bloom_filters(name) OPTIONS (fpp = '0.01', expr = 'upper', numentries = '1000')")

    stored = json.loads(Path(sql.table("t").path, ".hoodie", ".index_defs", "index.json").read_text())
    cut, bloom = (stored["indexDefinitions"][f"expr_index_{name}"]["indexOptions"] for name in ("cut", "bloom"))
    assert (cut["pos"], cut["len"]) == ("2", "1")
    assert (bloom["fpp"], bloom["numentries"]) == ("0.01", "1000")
    with pytest.raises(Invalid, match="of column_stats with lower: expected expr, found fpp"):
        sql("CREATE INDEX no ON t USING column_stats(name) OPTIONS (expr = 'lower', fpp = '0.01')")
    assert sql("SELECT id FROM t WHERE upper(name) = 'B' AND substring(name, 2, 1) = ''") == [(2,)]

    for named in ("(name)", "USING column_stats(name) OPTIONS (expr = 'upper')"):
        with pytest.raises(Invalid, match=r"record key|another name"):
            sql(f"CREATE INDEX record_index ON t {named}")
    sql("CREATE INDEX record_index ON t (id) OPTIONS (isPartitioned = 'true')")
    assert "record_index" in [row[0] for row in sql("SHOW INDEXES FROM t")]
    stored = json.loads(Path(sql.table("t").path, ".hoodie", ".index_defs", "index.json").read_text())
    assert stored["indexDefinitions"]["record_index"]["indexOptions"]["isPartitioned"] == "true"


def test_columns_are_added(filled: Sql) -> None:
    filled("ALTER TABLE t ADD COLUMNS (note STRING COMMENT 'more', n INT)")
    filled("INSERT INTO t (id, note, ts, dt) VALUES (4, 'd', 1, 'z')")

    assert filled.rows("t", "id, note, n")[0] == (1, None, None)
    assert filled.rows("t", "id, note, n")[3] == (4, "d", None)
    assert {"note", "n"} <= {row[0] for row in filled("DESCRIBE t")}
    filled("UPDATE t SET n = id + 1, ts = 20")
    assert filled.rows("t", "id, n") == [(1, 2), (2, 3), (3, 4), (4, 5)]
    with pytest.raises(Invalid, match="'NOTE' is there already"):
        filled("ALTER TABLE t ADD COLUMNS (NOTE INT)")


def test_statistics_of_a_table_are_told_until_it_changes(filled: Sql) -> None:
    if not is_classic(filled.spark):
        with pytest.raises(Unsupported, match="analyze it in a classic session"):
            filled("ANALYZE TABLE t COMPUTE STATISTICS")
        return

    def told() -> str | None:
        return dict(row[:2] for row in filled("DESCRIBE EXTENDED t")).get("Statistics")

    def size() -> int:
        table = filled.table("t")
        return sum((Path(table.path) / one).stat().st_size for one in table.scan().files())

    assert told() is None
    filled("ANALYZE TABLE t COMPUTE STATISTICS")
    assert told() == f"{size()} bytes, 3 rows"
    filled("DELETE FROM t WHERE id = 2")
    assert told() is None
    filled("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
    assert str(told()).startswith(f"{size()} bytes")  # Spark 4.3 shows 0 for rows that are not known
    filled("TRUNCATE TABLE t")
    filled("ANALYZE TABLE t COMPUTE STATISTICS")
    assert told() == "0 bytes, 0 rows"
    with pytest.raises(Invalid, match="expected COMPUTE STATISTICS"):
        filled("ANALYZE TABLE t")


def test_a_table_gets_another_name_and_its_folder_moves_with_it(filled: Sql) -> None:
    before = Path(filled.table("t").path)
    if not is_classic(filled.spark):
        with pytest.raises(Unsupported, match="rename it in a classic session"):
            filled("ALTER TABLE t RENAME TO u")
        return
    filled("ALTER TABLE t RENAME TO u")

    assert filled.rows("u") == [A, B, C]
    assert not before.exists()
    assert (Path(filled.table("u").path), filled.table("u").name) == (before.with_name("u"), "u")
    filled("INSERT INTO u VALUES (9, 'z', 1, 'x')")
    filled("CREATE TABLE t (id INT) USING hudi")
    with pytest.raises(Invalid, match=r"RENAME TO: a table or view .*u' is there already"):
        filled("ALTER TABLE t RENAME TO u")
    assert (filled.table("t").name, len(filled.rows("u"))) == ("t", 4)
    taken = before.with_name("taken")
    (taken / "own").mkdir(parents=True)
    with pytest.raises(Invalid, match="where something lies; choose another name"):
        filled("ALTER TABLE u RENAME TO taken")
    assert (len(filled.rows("u")), [one.name for one in taken.iterdir()]) == (4, ["own"])


def test_a_folder_of_ones_own_stays_where_it_is(sql: Sql) -> None:
    place = f"{sql.root}/its own place"
    sql(f"CREATE TABLE a (id INT) USING hudi LOCATION '{place}'")
    sql("ALTER TABLE a RENAME TO b")
    assert (sql.table("b").path, sql.table("b").name) == (place, "b")


def test_columns_are_changed(filled: Sql) -> None:
    filled("ALTER TABLE t RENAME COLUMN NAME TO label")
    assert filled.rows("t", "id, label") == [(1, "a"), (2, "b"), (3, "c")]
    filled("ALTER TABLE t ADD COLUMNS (home STRUCT<street: STRING, no: INT> COMMENT 'where' AFTER id)")
    filled("ALTER TABLE t ADD COLUMNS (home.zip STRING FIRST)")
    filled("ALTER TABLE t ALTER COLUMN home.no TYPE BIGINT")
    filled("ALTER TABLE t CHANGE COLUMN label title STRING COMMENT 'of a book' AFTER home")
    filled("UPDATE t SET home = named_struct('zip', '1', 'street', 's', 'no', 5L), title = 'new' WHERE id = 1")

    assert filled.rows("t", "id, home.no, title") == [(1, 5, "new"), (2, None, "b"), (3, None, "c")]
    described = {row[0]: (row[1], row[2]) for row in filled("DESCRIBE t")}
    assert described["home"] == ("struct<zip:string,street:string,no:bigint>", "where")
    assert described["title"] == ("string", "of a book")
    assert filled.table("t").schema().names[:3] == ["id", "home", "title"]

    filled("ALTER TABLE t DROP COLUMNS (home.street, title)")
    filled("ALTER TABLE t ADD COLUMNS (title STRING)")
    assert filled.rows("t", "id, home.zip, title") == [(1, "1", None), (2, None, None), (3, None, None)]
    assert filled.rows("t WHERE title IS NULL", "id") == [(1,), (2,), (3,)]
    with pytest.raises(Invalid, match="column 'dt': cannot be dropped: it is a partition column"):
        filled("ALTER TABLE t DROP COLUMN dt")


def test_settings_for_the_jar_do_no_harm(filled: Sql) -> None:
    spark, name = filled.spark, "spark.sql.catalog.spark_catalog"
    spark.conf.set(name, "org.apache.spark.sql.hudi.catalog.HoodieCatalog")

    pyhudi.spark.register(spark)

    assert filled.rows("t") == [A, B, C]
    assert spark.conf.get(name, None) is None or "hudi" not in spark.conf.get(name)


def test_an_external_table_outlives_its_name_but_for_purge(sql: Sql) -> None:
    place = sql.root / "outside"
    create = f"CREATE TABLE u (id INT) USING hudi LOCATION '{place}'"
    sql(create)
    sql("DROP TABLE u")
    assert HudiTable.exists(place)
    sql(create)
    sql("DROP TABLE u PURGE")
    assert not HudiTable.exists(place)


@pytest.mark.parametrize(
    "text",
    [
        "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id",
        "ANALYZE TABLE t PARTITION (dt = 'x') COMPUTE STATISTICS",
        "LOAD DATA INPATH '/nowhere' INTO TABLE t",
        "ALTER TABLE t SET LOCATION '/nowhere'",
        "REPLACE TABLE t (id INT) USING hudi",
        "EXPLAIN UPDATE t SET name = 'x'",
        "INSERT INTO hudi.`/TABLE / t` VALUES (1)",
    ],
)
def test_what_is_not_there_says_what_to_do(filled: Sql, text: str) -> None:
    with pytest.raises(Unsupported, match=r"TABLE.* \(?t|\.t"):
        filled(text)

    assert filled.rows("t") == [A, B, C]


def test_nothing_writes_plain_files_into_a_table(filled: Sql) -> None:
    """What goes round the statements, such as a hint of a plan that Spark made before, fails instead."""
    sql, own = filled, filled.spark._pyhudi_sql
    stored = {path for path in Path(sql.table("t").path).rglob("*") if ".hoodie" not in path.parts}

    for text in ("INSERT INTO t VALUES (9, 'z', 1, 'x')", "INSERT OVERWRITE t VALUES (9, 'z', 1, 'x')",
                 "DELETE FROM t", "UPDATE t SET name = 'z'"):  # fmt: skip
        with pytest.raises(Exception, match=r"(?i)unsupported|not support|cannot|unexpected table relation|None.get"):
            own(sql.spark, text).collect()

    assert {path for path in Path(sql.table("t").path).rglob("*") if ".hoodie" not in path.parts} == stored
    assert sql.rows("t") == [A, B, C]


def test_statements_about_other_tables_go_to_spark(filled: Sql) -> None:
    sql = filled
    sql("CREATE TABLE p (id INT, name STRING) USING parquet")
    sql("INSERT INTO p SELECT id, name FROM t WHERE id < 3")
    assert sql("SELECT count(*) FROM p") == [(2,)]
    sql("CREATE TABLE q USING parquet AS SELECT p.id, ts FROM p JOIN t ON p.id = t.id")
    assert sql("SELECT sum(ts) FROM q") == [(20,)]
    sql("DROP TABLE p")
    with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND|not found"):
        sql("DELETE FROM nothing")


def test_a_temporary_view_hides_a_table(filled: Sql) -> None:
    filled.spark.range(1).createOrReplaceTempView("t")
    try:
        assert filled("SELECT * FROM t") == [(0,)]
        with pytest.raises(Exception, match=r"(?i)view|not support|cannot|unexpected table relation|None.get"):
            filled("DELETE FROM t")
    finally:
        filled.spark.catalog.dropTempView("t")
    assert filled.rows("t") == [A, B, C]


def calls_of(sql: Sql) -> list[Callable[[], object]]:
    return [lambda: sql("SELECT * FROM hudi_scan('/nowhere')"), lambda: sql("SELECT * FROM hudi.`/nowhere`")]


def test_errors_of_a_table_keep_their_class(sql: Sql) -> None:
    for call in calls_of(sql):
        with pytest.raises(NotFound, match="/nowhere"):
            call()


@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_a_row_is_changed_in_the_partition_that_it_lies_in(sql: Sql, table_type: str) -> None:
    sql(f"{CREATE} (type = '{table_type}', primaryKey = 'id', preCombineField = 'ts')")
    sql(FIRST)
    staying = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    moved = pa.table({"id": pa.array([1], pa.int32()), "name": ["A"], "ts": [11], "dt": ["y"]})
    sql.table("t").upsert(moved, options=staying)  # the row stays in the partition of x

    sql("UPDATE t SET name = 'B' WHERE id = 1")
    assert sql.rows("t", "id, name, dt, _hoodie_partition_path") == [
        (1, "B", "y", "dt=x"), (2, "b", "x", "dt=x"), (3, "c", "y", "dt=y"),
    ]  # fmt: skip
    source = "(SELECT 1 AS id, 'C' AS name, 12L AS ts, 'y' AS dt UNION ALL SELECT 4, 'd', 1L, 'z')"
    sql(f"MERGE INTO t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert sql.rows("t", "id, name, dt, _hoodie_partition_path") == [
        (1, "C", "y", "dt=x"), (2, "b", "x", "dt=x"), (3, "c", "y", "dt=y"), (4, "d", "z", "dt=z"),
    ]  # fmt: skip

    sql("DELETE FROM t WHERE id = 1")
    assert sql.rows("t", "id") == [(2,), (3,), (4,)]


@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_rows_without_meta_fields_are_changed_and_columns_have_their_own_case(sql: Sql, table_type: str) -> None:
    facts = (
        f"(type = '{table_type}', primaryKey = 'Id', preCombineField = 'ts', 'hoodie.populate.meta.fields' = 'false')"
    )
    sql(f"{CREATE.replace('(id', '(Id')} {facts}")
    sql(FIRST)
    with settings(sql, {"spark.sql.caseSensitive": "true"}):
        sql("UPDATE t SET name = 'A', ts = 11 WHERE Id = 1")
        sql("DELETE FROM t WHERE t.Id = 2")
        sql("MERGE INTO t USING (SELECT 3 AS Id, 'C' AS name, 12L AS ts, 'y' AS dt UNION ALL SELECT 4, 'd', 1L, 'z') s "
            "ON t.Id = s.Id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
        assert sql.rows("t", "Id, name, ts, dt") == [(1, "A", 11, "x"), (3, "C", 12, "y"), (4, "d", 1, "z")]


def test_an_option_that_is_unset_is_no_longer_stored(sql: Sql) -> None:
    option = "hoodie.metadata.record.index.enable"
    sql(f"{CREATE} (primaryKey = 'id', '{option}' = 'true')")
    sql(FIRST)
    with pytest.raises(Invalid, match="record"):
        sql("DROP INDEX record_index ON t")

    sql(f"ALTER TABLE t UNSET TBLPROPERTIES ('{option}')")
    sql("DROP INDEX record_index ON t")

    assert "record_index" not in [row[0] for row in sql("SHOW INDEXES FROM t")]
    sql("UPDATE t SET name = 'n' WHERE id = 1")
    assert "record_index" not in [row[0] for row in sql("SHOW INDEXES FROM t")]
