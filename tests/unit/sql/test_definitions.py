"""A clause of CREATE or ALTER TABLE could be lost, and the table be another than was asked for."""

import pytest

from pyhudi.errors import Invalid
from pyhudi.sql.changes import PartitionValue
from pyhudi.sql.definitions import AlterTable, CreateTable, is_of_hudi, properties, read_alter, read_create
from pyhudi.sql.heads import Head, find_head


def head_of(text: str) -> Head:
    head = find_head(text)
    assert head is not None
    return head


def test_a_table_is_its_clauses() -> None:
    text = """CREATE TABLE IF NOT EXISTS db.t (id BIGINT, s STRUCT<a: INT, b: ARRAY<STRING>> COMMENT 'x, (y')
        USING Hudi COMMENT 'a table' OPTIONS (primaryKey ='id', hoodie.write.record.merge.mode = "COMMIT_TIME_ORDERING")
        PARTITIONED BY (dt, `h h`) LOCATION 'file:///x y' TBLPROPERTIES ('hoodie.index.type'='BUCKET', type = 'mor')"""
    expected = CreateTable(
        name=("db", "t"),
        is_lenient=True,
        replaces=False,
        columns="id BIGINT, s STRUCT<a: INT, b: ARRAY<STRING>> COMMENT 'x, (y'",
        partition_by=("dt", "h h"),
        location="file:///x y",
        comment="a table",
        properties={
            "primaryKey": "id",
            "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
            "hoodie.index.type": "BUCKET",
            "type": "mor",
        },
    )

    assert read_create(head_of(text)) == expected


def test_a_query_and_columns_of_partitions_are_taken() -> None:
    created = read_create(head_of("create table t using hudi partitioned by (dt) as select 1 id, 'using' dt"))
    assert (created.query, created.columns, created.partition_by) == ("select 1 id, 'using' dt", None, ("dt",))
    in_the_way_of_hive = read_create(head_of("create table t (id int) partitioned by (dt string) using hudi"))
    assert (in_the_way_of_hive.columns, in_the_way_of_hive.partition_by) == ("id int, dt string", ("dt",))


@pytest.mark.parametrize(
    "text,is_ours",
    [
        ("CREATE TABLE t (a INT) USING hudi", True),
        ("CREATE TABLE t (a INT) USING org.apache.hudi LOCATION 'x'", True),
        ("CREATE TABLE t (a INT) USING `hudi`", True),
        ("CREATE TABLE t (a INT) USING hudi_of_others", False),
        ("CREATE TABLE t USING parquet AS SELECT * FROM a JOIN b USING (hudi)", False),
        ("CREATE TABLE t AS SELECT 1", False),
    ],
)
def test_the_format_of_a_table_is_told(text: str, is_ours: bool) -> None:
    assert is_of_hudi(head_of(text)) is is_ours


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT) USING hudi CLUSTERED BY (a) INTO 2 BUCKETS",
        "CREATE TABLE t (a INT) USING hudi PARTITIONED BY (days(a))",
        "CREATE TABLE t (a STRUCT<b: INT>) USING hudi PARTITIONED BY (a.b)",
        "CREATE TABLE t (a INT) USING hudi LOCATION x",
        "CREATE TABLE t (a INT) USING hudi NONSENSE",
    ],
)
def test_a_clause_that_is_unknown_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="expected"):
        read_create(head_of(text))


def test_properties_are_read_with_and_without_quotes() -> None:
    assert properties("'a.b' = 'c', hoodie.keep.max.commits=10, d 'e', f = true") == {
        "a.b": "c", "hoodie.keep.max.commits": "10", "d": "e", "f": "true",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text,expected",
    [
        ("ALTER TABLE t RENAME TO db.u", AlterTable(("t",), "RENAME TO", name=("db", "u"))),
        ("ALTER TABLE t ADD COLUMNS (a INT)", AlterTable(("t",), "ADD COLUMNS", columns="a INT")),
        (
            "ALTER TABLE t SET TBLPROPERTIES (a = '1')",
            AlterTable(("t",), "SET TBLPROPERTIES", properties={"a": "1"}),
        ),
        (
            "ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a', b.c)",
            AlterTable(("t",), "UNSET TBLPROPERTIES", removed=("a", "b.c"), is_lenient=True),
        ),
        (
            "ALTER TABLE t DROP IF EXISTS PARTITION (a=1), PARTITION (a=2, b='x')",
            AlterTable(
                ("t",),
                "DROP PARTITION",
                partitions=(
                    (PartitionValue("a", "1"),),
                    (PartitionValue("a", "2"), PartitionValue("b", "'x'")),
                ),
                is_lenient=True,
            ),
        ),
    ],
)
def test_what_is_altered_is_told(text: str, expected: AlterTable) -> None:
    assert read_alter(head_of(text)) == expected
