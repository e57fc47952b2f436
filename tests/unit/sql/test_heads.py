"""A statement could be taken for another, or a table's name be read wrongly, so that Spark writes where we should.

Texts as users type them, with comments, quotes and capitals, against the head that they have.
"""

import pytest

from pyhudi.sql.heads import Statement, find_head

HEADS = [
    ("insert into t values (1)", Statement.INSERT, ("t",)),
    ("INSERT INTO 2024_sales VALUES (1L)", Statement.INSERT, ("2024_sales",)),
    ("CREATE TABLE db.1e5x (1a INT) USING hudi", Statement.CREATE_TABLE, ("db", "1e5x")),
    ("INSERT INTO TABLE db.t SELECT 1", Statement.INSERT, ("db", "t")),
    ("-- first\nINSERT OVERWRITE TABLE `a b`.`t.x` /* c */ SELECT 1;", Statement.INSERT, ("a b", "t.x")),
    ("WITH a AS (SELECT 1 id) INSERT INTO t SELECT * FROM a", Statement.INSERT, ("t",)),
    ("update t set a = 1", Statement.UPDATE, ("t",)),
    ("DELETE FROM spark_catalog.db.t", Statement.DELETE, ("spark_catalog", "db", "t")),
    ("MERGE WITH SCHEMA EVOLUTION INTO t USING s ON 1=1", Statement.MERGE, ("t",)),
    ("CREATE TABLE IF NOT EXISTS t (a INT) USING hudi", Statement.CREATE_TABLE, ("t",)),
    ("CREATE OR REPLACE TABLE t USING hudi AS SELECT 1", Statement.REPLACE_TABLE, ("t",)),
    ("CREATE EXTERNAL TABLE t LIKE u", Statement.CREATE_TABLE, ("t",)),
    ("CREATE INDEX IF NOT EXISTS i ON TABLE t (a)", Statement.CREATE_INDEX, ("t",)),
    ("DROP INDEX i on t", Statement.DROP_INDEX, ("t",)),
    ("DROP TABLE IF EXISTS t PURGE", Statement.DROP_TABLE, ("t",)),
    ("TRUNCATE TABLE t PARTITION (a=1)", Statement.TRUNCATE, ("t",)),
    ("alter table db.t rename to u", Statement.ALTER_TABLE, ("db", "t")),
    ("SHOW PARTITIONS t", Statement.SHOW_PARTITIONS, ("t",)),
    ("SHOW INDEXES FROM t", Statement.SHOW_INDEXES, ("t",)),
    ("REFRESH TABLE t", Statement.REFRESH_TABLE, ("t",)),
    ("MSCK REPAIR TABLE t", Statement.REPAIR, ("t",)),
    ("ANALYZE TABLE t COMPUTE STATISTICS", Statement.ANALYZE, ("t",)),
    ("LOAD DATA INPATH 'x' INTO TABLE t", Statement.LOAD, ("t",)),
    ("CALL system.show_commits(table => 't')", Statement.CALL, ("system", "show_commits")),
    ("DESCRIBE t", Statement.DESCRIBE, ("t",)),
    ("DESC TABLE EXTENDED a.t", Statement.DESCRIBE, ("a", "t")),
    ("INSERT OVERWRITE LOCAL DIRECTORY '/x' SELECT 1", Statement.WRITE_FOLDER, ()),
    ("FROM a INSERT OVERWRITE DIRECTORY '/x' SELECT 1", Statement.WRITE_FOLDER, ()),
]


@pytest.mark.parametrize("text,statement,target", HEADS, ids=[text[:30] for text, *_ in HEADS])
def test_a_statement_is_told_by_its_head(text: str, statement: Statement, target: tuple[str, ...]) -> None:
    head = find_head(text)

    assert head is not None
    assert (head.statement, head.target) == (statement, target)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t", "WITH a AS (SELECT 1) SELECT * FROM a", "VALUES (1)", "SET hoodie.x = insert",
        "FROM a SELECT 'INSERT OVERWRITE DIRECTORY'", "CREATE VIEW v AS SELECT 1", "DROP VIEW v", "SHOW TABLES",
        "SELECT 'insert into t'", "INSERT INTO 2024 VALUES (1)", "", "not sql at all", "SELECT 'open",
    ],
)  # fmt: skip
def test_other_texts_are_left_to_spark(text: str) -> None:
    assert find_head(text) is None


@pytest.mark.parametrize(
    "text, procedure, arguments",
    [
        ("RUN COMPACTION ON d.t", "run_compaction", "(op => 'run', table => '`d`.`t`')"),
        ("run compaction on '/a b' AT 20261127000000000",
         "run_compaction", "(op => 'run', path => '/a b', timestamp => 20261127000000000)"),
        ("SCHEDULE COMPACTION ON t", "run_compaction", "(op => 'schedule', table => '`t`')"),
        ("SHOW COMPACTION ON t LIMIT 3", "show_compaction", "(table => '`t`', limit => 3)"),
    ],
)  # fmt: skip
def test_older_statements_are_calls(text: str, procedure: str, arguments: str) -> None:
    head = find_head(text)
    assert head is not None
    assert (head.statement, head.target, head.cursor.text) == (Statement.CALL, (procedure,), arguments)


@pytest.mark.parametrize("text", ["RUN COMPACTION", "RUN t", "SHOW COMPACTION", "RUN COMPACTION ON t NOW"])
def test_what_is_no_older_statement_is_left_to_spark(text: str) -> None:
    assert find_head(text) is None
