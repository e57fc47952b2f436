"""`df.mergeInto` could take a column of one side for one of the other, or change other rows than `MERGE INTO`."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pyhudi import Invalid, Unsupported
from pyhudi.engine.spark.session import is_classic
from tests.spark.test_sql_merge import filled as _filled
from tests.spark.test_sql_statements import Sql
from tests.spark.test_sql_statements import sql as _sql

pytest.importorskip("pyspark.sql.merge", reason="PySpark 3.5 has no mergeInto")
f = pytest.importorskip("pyspark.sql.functions")

pytestmark = pytest.mark.spark
sql, filled = _sql, _filled

COLUMNS = "id int, name string, ts bigint, dt string, op string"


def source(sql: Sql, *rows: tuple[Any, ...]) -> Any:
    return sql.spark.createDataFrame(list(rows), COLUMNS)


def test_each_row_goes_to_its_clause_in_one_commit(filled: Sql) -> None:
    sql = filled
    sql("INSERT INTO t VALUES (4, 'd', 10, 'y'), (5, 'e', -1, 'y')")
    commits = sql.commits("t")
    rows = source(
        sql, (1, "new", 11, "x", "u"), (2, "gone", 11, "x", "d"), (3, "+", 0, "y", "n"), (6, "f", 1, "z", "i"),
        (7, "g", 1, "z", "p"), (8, "h", 1, "z", "nothing"),
    )  # fmt: skip

    merging = rows.mergeInto("t", f.col("t.id") == rows.id)
    merging = merging.whenMatched(rows.op == "u").updateAll()
    merging = merging.whenMatched(f.col("op") == "d").delete()
    added = {"name": f.concat(f.col("t.name"), rows["name"]), "t.ts": f.col("t.ts") + 1}
    merging = merging.whenMatched(f.expr("op = 'n'")).update(added)
    merging = merging.whenNotMatched(rows.op.isin("i", "j")).insertAll()
    merging = merging.whenNotMatched(rows.op == "p").insert({"id": rows.id + 100, "ts": f.lit(1), "dt": f.lit("p")})
    merging = merging.whenNotMatchedBySource(f.col("t.ts") < 0).delete()
    merging = merging.whenNotMatchedBySource().update({"name": f.lit("alone")})
    assert sql.commits("t") == commits
    merging.merge()

    assert sql.rows("t") == [
        (1, "new", 11, "x"), (107, None, 1, "p"), (3, "c+", 11, "y"), (4, "alone", 10, "y"), (6, "f", 1, "z"),
    ]  # fmt: skip
    assert sql.commits("t") == commits + 1


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: (rows.alias("source"), f.expr("source.id = t.id")),
        lambda rows: (rows.alias("t"), rows.id == f.col("t.id")),
    ],
    ids=["alias", "alias of the table"],
)
def test_the_source_is_told_by_its_alias_or_its_columns(filled: Sql, make: Callable[[Any], Any]) -> None:
    sql = filled
    rows, condition = make(source(sql, (1, "new", 11, "x", "u"), (9, "i", 11, "x", "u")))
    rows.mergeInto("t", condition).whenMatched().updateAll().whenNotMatched().insertAll().merge()
    assert sql.rows("t") == [(1, "new", 11, "x"), (2, "b", 10, "x"), (3, "c", 10, "y"), (9, "i", 11, "x")]


def test_values_of_every_kind_are_those_that_spark_computes(sql: Sql) -> None:
    types = "id int, text string, amount decimal(10, 2), day date, at timestamp, d double, s struct<a: int, b: string>"
    sql(f"CREATE TABLE t ({types}) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    rows = sql.spark.range(3).select(f.col("id").cast("int").alias("id"), f.struct(f.lit(7).alias("a")).alias("of"))
    day, at = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 0, 123456)
    values = {
        "id": rows.id,
        "text": f.when(rows.id == 0, "it's ${x} \\ $1").when(rows.id.isNull(), "none").otherwise(f.upper(f.lit("é"))),
        "amount": f.lit(Decimal("1.25")) + rows.id,
        "day": f.lit(day),
        "at": f.lit(at),
        "d": -rows.id.cast("double") / 2,
        "s": f.struct(rows["of"]["a"].alias("a"), rows.of.getField("a").cast("string").alias("b")),
    }
    expected = sorted(
        tuple(row) for row in rows.select(*(value.alias(name) for name, value in values.items())).collect()
    )

    rows.mergeInto("t", f.col("t.id") == rows.id).whenNotMatched(~(rows.id > 5)).insert(values).merge()

    found = sql("SELECT id, text, amount, day, at, d, s FROM t")
    assert sorted(tuple(row) for row in found) == expected


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.sql.parser.escapedStringLiterals": "true"},
        {"spark.sql.session.timeZone": "America/New_York"},
        {"spark.sql.session.timeZone": "America/New_York", "spark.sql.timestampType": "TIMESTAMP_NTZ"},
    ],
    ids=["texts as written", "an hour twice", "no zone"],
)
@pytest.mark.filterwarnings("ignore:The SQL config")
def test_settings_of_the_session_change_no_value(sql: Sql, settings: dict[str, str]) -> None:
    sql("CREATE TABLE t (id int, text string, at timestamp) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    rows, noon = sql.spark.range(2), dt.datetime(2024, 11, 3, 5, 30, tzinfo=dt.UTC)
    texts, hours = ("it's ${x} \\ $1 \n", "\\u0041é\\"), (noon, noon + dt.timedelta(hours=1))
    values = {
        "id": rows.id.alias("key").cast("int"),
        "text": f.when(rows.id.alias("key") == 0, texts[0]).otherwise(f.expr("concat('', x) -- c").alias("y")),
        "at": f.when(rows.id == 0, f.lit(hours[0])).otherwise(f.lit(hours[1])),
    }
    rows = rows.withColumn("x", f.lit(texts[1]))
    before = {name: sql.spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            sql.spark.conf.set(name, value)
        rows.mergeInto("t", f.col("t.id") == rows.id).whenNotMatched().insert(values).merge()
        found = sql("SELECT text, unix_seconds(at) FROM t ORDER BY id")
    finally:
        for name, value in before.items():
            sql.spark.conf.set(name, value)

    assert found == [(text, int(at.timestamp())) for text, at in zip(texts, hours, strict=True)]


def test_columns_of_a_source_that_differ_by_case_are_told_apart(filled: Sql) -> None:
    sql = filled
    sql.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        rows = source(sql, (1, "new", 11, "x", "u")).withColumn("NAME", f.lit("other"))
        rows.mergeInto("t", f.col("t.id") == rows.id).whenMatched().updateAll().merge()
    finally:
        sql.spark.conf.set("spark.sql.caseSensitive", "false")
    assert sql.rows("t") == [(1, "new", 11, "x"), (2, "b", 10, "x"), (3, "c", 10, "y")]


def test_values_are_refused_that_would_go_elsewhere(filled: Sql) -> None:
    rows, text = source(filled, (1, "new", 11, "x", "u")), f.lit("q")
    matched = rows.mergeInto("t", f.col("t.id") == rows.id).whenMatched()
    wrong: list[dict[str, Any]] = [
        {"name x": text}, {"name": text, "`name`": text}, {}, {"name": "q"},
        *([{"name": f.expr("op AS name")}] if is_classic(filled.spark) else []),  # Connect has no parser
    ]  # fmt: skip
    for values in wrong:
        with pytest.raises((Invalid, Unsupported), match="expected"):
            matched.update(values)


def test_what_cannot_be_is_refused(filled: Sql) -> None:
    sql = filled
    rows, others = source(sql, (1, "new", 11, "x", "u")), sql.spark.range(2)
    on = f.col("t.id") == rows.id
    python = f.udf(lambda x: x, "int")
    with pytest.raises(Unsupported, match="a column that has no SQL text"):
        rows.mergeInto("t", on).whenMatched(python(rows.id) == 1).delete()
    with pytest.raises(Unsupported, match="a column that has no SQL text"):
        rows.mergeInto("t", f.col("t.id") == others.id)
    with pytest.raises(Unsupported, match="ALTER TABLE"):
        rows.mergeInto("t", on).withSchemaEvolution()
    with pytest.raises(Exception, match=r"(?i)ambiguous"):
        rows.mergeInto("t", f.col("id") == rows.id).whenMatched().delete().merge()
    with pytest.raises(Invalid, match="expected whenMatched"):
        rows.mergeInto("t", on).merge()
    assert sql.rows("t") == [(1, "a", 10, "x"), (2, "b", 10, "x"), (3, "c", 10, "y")]
