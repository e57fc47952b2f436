"""MERGE INTO could change, delete or insert other rows than its clauses say, or in more than one commit."""

from pathlib import Path
from typing import Any

import pytest

from pyhudi import Invalid, Unsupported
from pyhudi.engine.spark.session import is_classic
from tests.spark.test_sql_statements import CREATE, FIRST, TABLE_TYPES, A, B, C, Sql, used
from tests.spark.test_sql_statements import sql as _sql
from tests.spark.test_sql_statements import standing as _standing

pytestmark = pytest.mark.spark
sql, standing = _sql, _standing

SOURCE = "(SELECT * FROM VALUES {} AS s(id, name, ts, dt, op)) s"


@pytest.fixture(params=TABLE_TYPES)
def filled(request: pytest.FixtureRequest, sql: Sql) -> Sql:
    sql(f"{CREATE} (type = '{request.param}', primaryKey = 'id', preCombineField = 'ts')")
    sql(FIRST)
    return sql


def merge(sql: Sql, rows: str, clauses: str, on: str = "t.id = s.id") -> None:
    sql(f"MERGE INTO t USING {SOURCE.format(rows)} ON {on} {clauses}")


ALL = (
    "WHEN MATCHED AND s.op = 'u' THEN UPDATE SET * "
    "WHEN MATCHED AND op = 'd' THEN DELETE "
    "WHEN MATCHED AND op = 'n' THEN UPDATE SET name = concat(t.name, s.name), ts = t.ts + 1 "
    "WHEN NOT MATCHED AND op = 'i' THEN INSERT * "
    "WHEN NOT MATCHED AND op = 'p' THEN INSERT (id, t.ts, dt) VALUES (s.id + 100, 1, 'p') "
    "WHEN NOT MATCHED BY SOURCE AND t.ts < 0 THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = 'alone'"
)


def test_each_row_goes_to_its_clause_in_one_commit(filled: Sql) -> None:
    sql = filled
    sql("INSERT INTO t VALUES (4, 'd', 10, 'y'), (5, 'e', -1, 'y')")
    commits = sql.commits("t")

    merge(sql, "(1, 'new', 11L, 'x', 'u'), (2, 'gone', 11L, 'x', 'd'), (3, '+', 0L, 'y', 'n'), (6, 'f', 1L, 'z', 'i'), "
               "(7, 'g', 1L, 'z', 'p'), (8, 'h', 1L, 'z', 'nothing')", ALL)  # fmt: skip

    assert sql.rows("t") == [
        (1, "new", 11, "x"), (107, None, 1, "p"), (3, "c+", 11, "y"), (4, "alone", 10, "y"), (6, "f", 1, "z"),
    ]  # fmt: skip
    assert sql.commits("t") == commits + 1
    merge(sql, "(99, 'x', 1L, 'x', 'nothing')", "WHEN MATCHED THEN DELETE")
    assert sql.commits("t") == commits + 1


def test_a_source_may_be_a_table_a_query_or_a_cte(filled: Sql) -> None:
    sql = filled
    sql("CREATE TABLE more USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 'one' AS name")
    sql("MERGE INTO t USING more ON t.id = more.id WHEN MATCHED THEN UPDATE SET name = more.name")
    assert sql.rows("t") == [(1, "one", 10, "x"), B, C]
    sql("WITH s AS (SELECT 2 AS id) MERGE INTO t AS x USING s ON x.id = s.id WHEN MATCHED THEN DELETE")
    assert sql.rows("t") == [(1, "one", 10, "x"), C]
    sql(f"MERGE INTO {sql.database}.t USING (SELECT max(id) AS id FROM t) m ON t.id = m.id "
        "WHEN MATCHED THEN UPDATE SET ts = (SELECT 1 + sum(ts) FROM t)")  # fmt: skip
    assert sql.rows("t") == [(1, "one", 10, "x"), (3, "c", 21, "y")]


def test_values_mean_what_conditions_mean(filled: Sql) -> None:
    sql = filled
    sql("CREATE TABLE c USING hudi TBLPROPERTIES (primaryKey = 'x') AS SELECT 1000 AS x")
    source, matched = "USING (SELECT 1 AS id) s ON t.id = s.id", "WHEN MATCHED AND (SELECT max(x) FROM {0}) = {1} "
    takes = f"MERGE INTO t {source} {matched}THEN UPDATE SET ts = (SELECT max(x) FROM {{0}} WHERE x > s.id)"
    for name, value in ("c", 71), ("nowhere", 72):  # a WITH clause hides a table, or names what is none
        sql(f"WITH {name} AS (SELECT {value} AS x) {takes.format(name, value)}")
        assert sql.rows("t", "id, ts") == [(1, value), (2, 10), (3, 10)]
    moment = f"c TIMESTAMP AS OF '{sql.table('c').timeline()[-1].requested}'"
    sql("INSERT INTO c VALUES (2000)")
    sql(takes.format(moment, 1000))
    assert sql.rows("t", "id, ts") == [(1, 1000), (2, 10), (3, 10)]
    if not is_classic(sql.spark):
        return
    another = sql.spark.newSession()  # which has read neither table yet
    another.sql(f"USE {sql.database}")
    another.sql(f"MERGE INTO t {source} WHEN MATCHED THEN UPDATE SET ts = (SELECT max(x) FROM c)")
    assert sql.rows("t", "id, ts") == [(1, 2000), (2, 10), (3, 10)]

    another.conf.set("spark.sql.lateralColumnAlias.enableImplicitResolution", "false")
    with pytest.raises(Unsupported, match=r"lateralColumnAlias\.enableImplicitResolution=false"):
        another.sql(f"MERGE INTO t {source} WHEN MATCHED THEN DELETE")


def test_clauses_of_one_side_name_its_columns_without_saying_which(filled: Sql) -> None:
    sql = filled
    rows = "(1, 'one', 11L, 'x', 'u'), (7, 'seven', 7L, 'x', 'i'), (8, 'none', 0L, 'x', 'i')"
    merge(
        sql, rows,
        "WHEN MATCHED THEN UPDATE SET name = s.name, ts = s.ts "
        "WHEN NOT MATCHED AND ts > 0 AND name <> 'none' "
        "THEN INSERT (id, name, ts, dt) VALUES (id, upper(name), ts, dt) "
        "WHEN NOT MATCHED BY SOURCE AND name = 'b' THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND id IN (SELECT max(id) FROM t) THEN UPDATE SET name = concat(name, '-', ts)",
    )  # fmt: skip
    assert sql.rows("t") == [(1, "one", 11, "x"), (3, "c-10", 10, "y"), (7, "SEVEN", 7, "x")]


@pytest.mark.parametrize(
    "clause, found",
    [
        ("WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, t.name)", "'t.name' of the table 't'"),
        ("WHEN NOT MATCHED BY SOURCE AND op = 'd' THEN DELETE", "'op' of the source 's'"),
    ],
)
def test_a_clause_of_one_side_has_no_columns_of_the_other(filled: Sql, clause: str, found: str) -> None:
    with pytest.raises(Invalid, match=f"found {found}, which has no row there"):
        merge(filled, "(1, 'one', 11L, 'x', 'u')", clause)
    assert filled.rows("t") == [A, B, C]


def test_a_row_that_was_stored_without_an_ordering_value_is_deleted(filled: Sql) -> None:
    filled("SET hoodie.spark.sql.insert.into.operation = bulk_insert")
    filled("INSERT INTO t SELECT 4, 'd', CAST(NULL AS BIGINT), 'y'")
    filled("RESET hoodie.spark.sql.insert.into.operation")
    merge(filled, "(4, '', 1L, 'y', 'd'), (1, 'one', 11L, 'x', 'u')", ALL.partition("WHEN NOT")[0])
    assert filled.rows("t") == [(1, "one", 11, "x"), B, C]


def test_event_time_ordering_keeps_the_greater_row(filled: Sql) -> None:
    rows = "(1, 'late', 5L, 'x', ''), (2, 'next', 11L, 'x', ''), (9, 'less', 1L, 'z', ''), (9, 'most', 2L, 'z', '')"
    merge(filled, rows, "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")  # fmt: skip

    assert filled.rows("t") == [A, (2, "next", 11, "x"), C, (9, "most", 2, "z")]


def test_rows_move_to_another_partition_by_a_global_index(filled: Sql) -> None:
    sql = filled
    stays = "column 'dt' .*; (leave|delete) .* hoodie.index.type=GLOBAL_SIMPLE"
    with pytest.raises(Invalid, match=stays):
        merge(sql, "(1, 'moved', 11L, 'z', '')", "WHEN MATCHED THEN UPDATE SET *")
    with pytest.raises(Invalid, match=stays):
        sql("UPDATE t SET dt = 'z' WHERE id = 3")
    assert sql.rows("t") == [A, B, C]

    sql("SET hoodie.index.type = GLOBAL_SIMPLE")
    try:
        merge(sql, "(1, 'moved', 11L, 'z', ''), (2, 'late', 1L, 'z', '')", "WHEN MATCHED THEN UPDATE SET *")
        sql("UPDATE t SET dt = concat(dt, '2') WHERE id = 3")
    finally:
        sql("RESET hoodie.index.type")
    assert sql.rows("t") == [(1, "moved", 11, "z"), B, (*C[:3], f"{C[3]}2")]
    assert sql("SELECT id FROM t WHERE dt = 'z'") == [(1,)]


def test_values_are_cast_as_they_are_stored(filled: Sql) -> None:
    merge(filled, "(1, 5, '11', 'x', ''), (4, 6, '12', 'z', '')",
          "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")  # fmt: skip

    assert filled.rows("t") == [(1, "5", 11, "x"), B, C, (4, "6", 12, "z")]


TWICE = "(1, 'p', 11L, 'x', 'u'), (1, 'q', 12L, 'x', 'n')"


@pytest.mark.parametrize(
    "rows,clauses,expected",
    [
        (TWICE, "WHEN MATCHED THEN UPDATE SET *", "at most one row of the source.*id=1, dt=x"),
        (TWICE, "WHEN MATCHED AND s.op = 'u' THEN UPDATE SET *", "at most one row of the source"),
        (TWICE, "WHEN MATCHED AND s.op = 'u' THEN DELETE", "at most one row of the source"),
        ("(1, 'p', 11L, 'moved', '')", "WHEN MATCHED THEN UPDATE SET *", "column 'dt'.*stays; expected x, found moved"),
        ("(1, 'p', 11L, 'x', '')", "WHEN MATCHED THEN UPDATE SET id = s.id + 1", "column 'id'.*stays"),
        ("(1, 'p', 'many', 'x', '')", "WHEN MATCHED THEN UPDATE SET *", "ts.*expected bigint, found 'many'"),
        ("(9, 'p', 11L, 'x', '')", "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)", "value for column 'ts'"),
        ("(9, 'p', 11L, 'x', '')", "WHEN NOT MATCHED THEN INSERT (id, z) VALUES (1, 2)", "no column 'z'"),
        ("(1, 'p', 11L, 'x', '')", "WHEN MATCHED THEN UPDATE SET name = s.nothing", "(?i)nothing"),
    ],
)
def test_a_merge_that_cannot_be_changes_nothing(standing: Sql, rows: str, clauses: str, expected: str) -> None:
    with used(standing):
        with pytest.raises(Exception, match=expected):
            merge(standing, rows, clauses)

        assert (standing.rows("t"), standing.commits("t")) == ([A, B, C], 1)


def test_a_delete_of_all_that_matches_may_match_twice(filled: Sql) -> None:
    merge(filled, TWICE, "WHEN MATCHED THEN DELETE")

    assert filled.rows("t") == [B, C]


def test_new_rows_have_new_keys(sql: Sql) -> None:
    sql(f"{CREATE} (primaryKey = 'id')")
    sql(FIRST)

    merge(sql, "(4, 'a', 1L, 'x', ''), (1, 'z', 1L, 'x', '')", "WHEN NOT MATCHED AND s.id = 4 THEN INSERT *",
          on="t.name = s.name AND t.id = -1")  # fmt: skip
    assert len(sql.rows("t")) == 4
    with pytest.raises(Invalid, match=r"found id=1, dt='x'|found id=1"):
        merge(sql, "(1, 'z', 1L, 'x', '')", "WHEN NOT MATCHED THEN INSERT *", on="t.name = s.name")
    with pytest.raises(Invalid, match="each new record key, found several for id=9"):
        merge(sql, "(9, 'p', 1L, 'x', ''), (9, 'q', 1L, 'x', '')", "WHEN NOT MATCHED THEN INSERT *")
    with pytest.raises(Invalid, match="found id=1, dt='x'"):  # 1.4 is no INT, and would be stored as 1
        merge(sql, "(1.4, 'z', 1L, 'x', '')", "WHEN NOT MATCHED THEN INSERT *")
    assert len(sql.rows("t")) == 4


def test_rows_without_partition_value_keep_their_keys(sql: Sql) -> None:
    """A null equals nothing in ON. The partition of nulls is that of empty texts."""
    sql(f"{CREATE} (primaryKey = 'id')")
    sql("INSERT INTO t VALUES (1, 'a', 1, NULL)")

    for rows, expected in (
        ("(1, 'z', 1L, NULL, '')", "found id=1, dt=None"),
        ("(1, 'z', 1L, '', '')", "found id=1, dt=''|found id=1, dt=None"),
        ("(2, 'p', 1L, '', ''), (2, 'q', 1L, NULL, '')", "found several for id=2"),
    ):
        with pytest.raises(Invalid, match=expected):
            merge(sql, rows, "WHEN NOT MATCHED THEN INSERT *", on="t.id = s.id AND t.dt = s.dt")
    assert sql.rows("t") == [(1, "a", 1, None)]


def test_tables_without_keys_are_merged(sql: Sql) -> None:
    sql("CREATE TABLE t (id INT, name STRING, ts BIGINT, dt STRING) USING hudi PARTITIONED BY (dt)")
    sql(FIRST)
    merge(sql, "(1, 'u', 1L, 'x', ''), (4, 'i', 1L, 'z', ''), (4, 'j', 1L, 'z', '')",
          "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *")  # fmt: skip

    assert sql.rows("t") == [(1, "u", 10, "x"), B, C, (4, "i", 1, "z"), (4, "j", 1, "z")]
    keys = sql.table("t").scan(columns=["_hoodie_record_key"]).to_arrow()["_hoodie_record_key"].to_pylist()
    assert len(set(keys)) == 5
    sql("UPDATE t SET name = 'w' WHERE id = 4")
    sql("DELETE FROM t WHERE id = 1")
    assert sql.rows("t") == [B, C, (4, "w", 1, "z"), (4, "w", 1, "z")]


def test_a_source_is_evaluated_once(filled: Sql, tmp_path: Path) -> None:
    """Random rows would be others the second time."""
    spark: Any = filled.spark
    spark.range(3).selectExpr("CAST(id + 1 AS INT) id", "uuid() name", "99L ts").createOrReplaceTempView("random")
    filled("MERGE INTO t USING random s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name, ts = s.ts")

    names = [row[1] for row in filled.rows("t")]
    assert len(set(names)) == 3


def test_fields_of_a_struct_are_assigned_by_their_names(sql: Sql) -> None:
    """By places, each would silently get the value of the other."""
    sql("CREATE TABLE t (id INT, s STRUCT<a: INT, b: INT>, l ARRAY<STRUCT<a: INT, b: INT>>) USING hudi "
        "TBLPROPERTIES (primaryKey = 'id')")  # fmt: skip
    sql("INSERT INTO t VALUES (1, struct(1, 2), array(struct(1, 2))), (2, struct(1, 2), null), (3, null, null)")
    turned = "named_struct('B', 20, 'a', 10)"

    sql(f"MERGE INTO t USING (SELECT explode(array(1, 9)) id, {turned} s, array({turned}) l) n ON t.id = n.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")  # fmt: skip
    sql(f"UPDATE t SET s = {turned}, l = array({turned}) WHERE id = 2")
    sql("UPDATE t SET s = named_struct('x', 5, 'y', 6) WHERE id = 3")

    fields = "s.a, s.b, l[0].a, l[0].b"
    assert sql.rows("t", f"id, {fields}") == [(n, 10, 20, 10, 20) for n in (1, 2)] + [
        (3, 5, 6, None, None),
        (9, 10, 20, 10, 20),
    ]


def test_new_rows_whose_times_share_a_path_are_compared_by_the_path(sql: Sql) -> None:
    columns = "(id INT, ts BIGINT, at TIMESTAMP) USING hudi PARTITIONED BY (at)"
    sql(f"CREATE TABLE t {columns} TBLPROPERTIES (primaryKey = 'id')")
    sql("INSERT INTO t VALUES (1, 1, TIMESTAMP '2026-01-05 10:11:12')")
    merge = "MERGE INTO t USING (SELECT {} AS id, 5L AS ts, TIMESTAMP '{}' AS at) s ON t.id = s.id AND t.at = s.at "

    with pytest.raises(Invalid, match="whose row did not match"):
        sql(merge.format(1, "2026-01-05 10:11:12.5") + "WHEN NOT MATCHED THEN INSERT *")
    sql(merge.format(1, "2026-01-05 10:11:13") + "WHEN NOT MATCHED THEN INSERT *")

    assert sorted(sql("SELECT id, ts, _hoodie_partition_path FROM t")) == [
        (1, 1, "at=2026-01-05 10%3A11%3A12"), (1, 5, "at=2026-01-05 10%3A11%3A13"),
    ]  # fmt: skip
