"""A query for record keys by name could be answered with other rows than its condition has, with those of another
moment or table, or by a job of Spark after all.

Each text is also asked of the same rows as a temporary view, of which Spark knows no key.
"""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest

import pyhudi.spark
from pyhudi import HudiTable, Invalid
from pyhudi.spark import key_queries
from tests.support.compare import assert_same_rows
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark

KEYED, WHOLE = "LocalTableScan", "FileScan"
BY_NAME = "keyed"
SETTINGS = ("spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers")
"""With these, `"a"` is a name."""

KINDS: dict[str, dict[str, Any]] = {
    "copy on write": {"record_key": "id"},
    "merge on read": {"record_key": "id", "table_type": "MERGE_ON_READ", "table_version": 9},
    "by partition": {"record_key": "id", "table_version": 9},
    "of two columns": {"record_key": ["id", "n"]},
    "of a number": {"record_key": "n"},
    "of version 6": {"record_key": "id", "table_version": 6},
}

NEWER = pytest.mark.skipif(pyspark.__version__ < "4.2", reason="_metadata is known by path only")

LIKE_OTHERS = ("of a number", "of version 6")
"""Kinds that plan a query as others do: for the long run."""

ASKED = (
    "SELECT * FROM {t} WHERE id = 'k7' AND n = 7",
    "SELECT x, n FROM {t} AS one WHERE one.id = 'k7' AND n IN (7, 8)",
    "SELECT count(*) AS c FROM {t} WHERE id IN ('k1', 'k2', 'none') AND n < 3 AND n IN (1, 2, 3)",
    "SELECT p, sum(x) AS s FROM {t} WHERE id IN ('k1', 'k4') AND n IN (1, 4) GROUP BY p ORDER BY s DESC LIMIT 1",
    "SELECT upper(id) AS u FROM {t} WHERE id = 'none' AND n = -7",
    "WITH few AS (SELECT * FROM {t} WHERE id = 'k3' AND n = 3) SELECT x + n AS y FROM few",
    "SELECT o.x FROM (SELECT x, id FROM {t} WHERE id = 'k3' AND n = 3) o JOIN (SELECT 'k3' AS id) USING (id)",
    "SELECT `x` FROM {t} WHERE `id` = 'k5' AND rand() < 2 AND n = 5",
    "SELECT _hoodie_record_key FROM {t} WHERE _hoodie_record_key IN ('k5', 'id:k5,n:5', '5')",
)
"""Texts that a record index answers, of whichever columns the key is."""

PLAIN = (
    "SELECT * FROM {t} WHERE id = 'k7' AND n = 7",
    "SELECT x, n FROM {t} AS one WHERE one.id = 'k7' AND n IN (7, 8)",
    "SELECT `x`, p FROM {t} WHERE id IN ('k1', 'k2', 'none') AND n < 3 AND n IN (1, 2, 3) AND p >= 'p1'",
    "SELECT _hoodie_record_key, ts FROM {t} WHERE id = 'k3' AND n = 3 AND _hoodie_partition_path != 'none' -- all",
    "SELECT id FROM {t} WHERE id = 'k4' AND n = 4",
)
"""Texts that are answered without Spark, but for the fourth, which Spark must compare."""

NOT_OF_KEYS = (
    "SELECT x FROM {t} WHERE (id = 'k7' AND n = 7) OR x = 3",
    "SELECT x FROM {t} WHERE NOT (id = 'k7' AND n = 7) AND x < 5",
    "SELECT x FROM {t} WHERE id = '7' OR n = 7",
    "SELECT x FROM {t} WHERE id > 'k3' AND n > 3",
    "SELECT x FROM {t} WHERE id LIKE 'k3%' AND n BETWEEN 3 AND 5",
    "SELECT x FROM {t} WHERE trim(id) = 'k3'",
    "SELECT x FROM {t} WHERE id = 'k7' AND n = 7 AND CASE WHEN x > 0 THEN true END OR x = 3",
)


def rows(numbers: range, x: int = 0) -> pa.Table:
    return pa.table({
        "id": [f"k{n}" for n in numbers],
        "n": pa.array(numbers, pa.int32()),
        "p": [f"p{n % 3}" for n in numbers],
        "ts": [x] * len(numbers),
        "x": [x * 100 + n for n in numbers],
    })  # fmt: skip


def make(path: Path, kind: str) -> HudiTable:
    table = HudiTable.create(path, name="t", partition_by="p", ordering="ts", **KINDS[kind])
    table.bulk_insert(rows(range(40)))
    table.build_index("partitioned_record_index" if kind == "by partition" else "record_index")
    table.upsert(rows(range(5), 1))
    table.delete(where="id = 'k4' AND n = 4")
    return table


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    pyhudi.spark.register(spark)
    return spark


@pytest.fixture(params=[pytest.param(kind, marks=[pytest.mark.long] if kind in LIKE_OTHERS else []) for kind in KINDS])
def named(request: pytest.FixtureRequest, session: Any, tmp_path: Path) -> Iterator[HudiTable]:
    table = make(tmp_path / "t", request.param)
    session.sql(f"CREATE TABLE {BY_NAME} USING hudi LOCATION '{tmp_path}/t'")
    table.scan().to_spark(session).createOrReplaceTempView("plain")
    yield table
    session.sql(f"DROP TABLE {BY_NAME}")
    session.catalog.dropTempView("plain")


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_queries_for_keys_have_the_rows_of_any_query(session: Any, named: HudiTable) -> None:
    for text in ASKED:
        frame = session.sql(text.format(t=BY_NAME))
        assert_same_rows(collected(frame), collected(session.sql(text.format(t="plain"))))
        plan = plan_of(frame)
        assert KEYED in plan, text
        assert WHOLE not in plan, text
    for text in NOT_OF_KEYS:
        assert_same_rows(collected(session.sql(text.format(t=BY_NAME))), collected(session.sql(text.format(t="plain"))))
    assert not key_queries._found


def is_told(frame: Any) -> bool:
    """Whether Spark has not heard of the rows yet."""
    return "_jdf" in type(frame).__dict__ and frame.__dict__.get("_jdf") is None


def test_plain_queries_for_keys_are_told_as_spark_tells_them(session: Any, named: HudiTable) -> None:
    for text in PLAIN:
        frame = session.sql(text.format(t=BY_NAME))
        assert is_told(frame) == ("!=" not in text), text
        told = frame.collect()
        assert (frame.count(), frame.isEmpty(), frame.first()) == (len(told), not told, told[0] if told else None)
        assert (frame.take(1), frame.head(5)) == (told[:1], told[:5])
        assert is_told(frame) == ("!=" not in text), text
        assert_same_rows(collected(frame), collected(session.sql(text.format(t="plain"))))
        assert not is_told(frame)
        assert repr(frame.limit(10).collect()) == repr(told)
        assert frame.filter("1 = 1").columns == [*told[0].__fields__] if told else True


def test_values_of_told_rows_are_those_of_spark(session: Any, tmp_path: Path) -> None:
    moments = [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2026, 7, 1), None]
    given = pa.table({
        "id": ["a", "b", "c"],
        "yes": [True, False, None],
        "small": pa.array([-1, 2, None], pa.int32()),
        "half": pa.array([0.1, float("nan"), None], pa.float32()),
        "real": [-0.0, float("inf"), None],
        "fine": pa.array([Decimal("0E-10"), Decimal("-1.5000000000"), None], pa.decimal128(30, 10)),
        "day": [date(1, 1, 1), date(9999, 12, 31), None],
        "at": pa.array(moments, pa.timestamp("us", "UTC")),
        "local": pa.array(moments, pa.timestamp("us")),
        "text": ["", "ä\\'\0", None],
    })  # fmt: skip
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", table_version=9)
    table.upsert(given)
    table.build_index("record_index")
    session.sql(f"CREATE TABLE {BY_NAME} USING hudi LOCATION '{tmp_path}/t'")
    try:
        frame = session.sql(f"SELECT * FROM {BY_NAME} WHERE id IN ('a', 'b', 'c')")
        assert is_told(frame)
        told = frame.collect()
        assert repr(told) == repr(frame.filter("id > ''").collect())
        assert [type(one) for row in told for one in row] == [type(one) for row in frame.tail(9) for one in row]
    finally:
        session.sql(f"DROP TABLE {BY_NAME}")


@pytest.mark.parametrize("named", ["copy on write"], indirect=True)
def test_other_spellings_are_told_by_spark(session: Any, named: HudiTable) -> None:
    text = f"SELECT X FROM {BY_NAME} WHERE ID = 'k7'"
    assert session.sql(text).collect()[0].asDict() == {"X": 7}
    session.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
            session.sql(text)
        with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
            session.sql(f"SELECT x FROM {BY_NAME} WHERE ID = 'k7'")
    finally:
        session.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize("named", ["copy on write"], indirect=True)
def test_told_rows_go_wherever_rows_go(session: Any, named: HudiTable, tmp_path: Path) -> None:
    frame = session.sql(f"SELECT id, x FROM {BY_NAME} WHERE id IN ('k7', 'k8')")
    assert is_told(frame)
    frame.createOrReplaceTempView("told")
    try:
        assert [row.s for row in session.sql("SELECT sum(x) AS s FROM told").collect()] == [15]
    finally:
        session.catalog.dropTempView("told")
    again = session.sql(f"SELECT id, x FROM {BY_NAME} WHERE id IN ('k7', 'k8')")
    assert sorted(row.x for row in again.unionAll(frame).collect()) == [7, 7, 8, 8]
    assert sorted(row.x for row in again.join(frame, "id").select(again.x).collect()) == [7, 8]
    fresh = session.sql(f"SELECT id, x FROM {BY_NAME} WHERE id = 'k7'")
    fresh.write.parquet(str(tmp_path / "out"))
    assert session.read.parquet(str(tmp_path / "out")).collect() == [("k7", 7)]
    cached = session.sql(f"SELECT id, x FROM {BY_NAME} WHERE id = 'k7'").cache()
    assert cached.collect() == [("k7", 7)]
    cached.unpersist()


@pytest.mark.parametrize("named", ["copy on write"], indirect=True)
@pytest.mark.parametrize("text", ["id = 'k{n}'", "id = {key}", "id = {key} AND n = {n}"])
def test_texts_with_places_for_values(session: Any, named: HudiTable, text: str) -> None:
    found = session.sql(f"SELECT x FROM {BY_NAME} WHERE {text}", n=7, key="k7")
    assert [row.x for row in found.collect()] == [7]


@pytest.mark.parametrize("named", ["copy on write"], indirect=True)
def test_each_query_sees_the_newest_commit_and_a_frame_its_own(session: Any, named: HudiTable) -> None:
    text = f"SELECT x FROM {BY_NAME} WHERE id = 'k7'"
    before = session.sql(text)
    named.upsert(rows(range(7, 8), 5))
    assert [row.x for row in session.sql(text).collect()] == [507]
    assert [row.x for row in before.collect()] == [7]
    named.delete(where="id = 'k7'")
    assert session.sql(text).collect() == []


@pytest.mark.parametrize("named", ["copy on write"], indirect=True)
@pytest.mark.parametrize(
    "text,args",
    [
        (f"SELECT x FROM {BY_NAME} WHERE id = :key", {"key": "k7"}),
        (f"SELECT x FROM {BY_NAME} WHERE id = ?", ["k7"]),
        (f"SELECT {BY_NAME}.x FROM default.{BY_NAME} WHERE id = 'k7'", None),
        (f"SELECT default.{BY_NAME}.x FROM default.{BY_NAME} WHERE id = 'k7'", None),
        (f"SELECT x FROM spark_catalog.default.{BY_NAME} WHERE id = 'k7'", None),
        pytest.param(f"SELECT x FROM {BY_NAME} WHERE id = 'k7' AND _metadata.file_size > 0", None, marks=NEWER),
    ],
)
def test_parameters_and_long_names(session: Any, named: HudiTable, text: str, args: Any) -> None:
    assert [row.x for row in session.sql(text, args=args).collect()] == [7]


@pytest.mark.parametrize("named", ["copy on write"], indirect=True)
def test_an_unknown_column_is_told_by_spark(session: Any, named: HudiTable) -> None:
    with pytest.raises(Exception, match=r"UNRESOLVED_COLUMN.*nowhere.*`x`"):
        session.sql(f"SELECT nowhere FROM {BY_NAME} WHERE id = 'k7'")


@pytest.mark.parametrize("named", ["copy on write"], indirect=True)
def test_a_temporary_view_hides_the_table(session: Any, named: HudiTable) -> None:
    session.sql("SELECT 'k7' AS id, 1 AS x").createOrReplaceTempView(BY_NAME)
    try:
        assert [row.x for row in session.sql(f"SELECT x FROM {BY_NAME} WHERE id = 'k7'").collect()] == [1]
    finally:
        session.catalog.dropTempView(BY_NAME)


@pytest.mark.parametrize("named", ["copy on write"], indirect=True)
@pytest.mark.parametrize(
    "text", ['SELECT * FROM keyed WHERE id = "_hoodie_record_key"', 'DELETE FROM keyed WHERE id = "p"']
)
def test_names_in_double_quotes_are_columns(session: Any, named: HudiTable, text: str) -> None:
    named.upsert(pa.table({"id": ["p1"], "n": pa.array([1], pa.int32()), "p": ["p1"], "ts": [9], "x": [9]}))
    before = len(named.scan().to_arrow())
    for name in SETTINGS:
        session.conf.set(name, "true")
    try:
        assert len(session.sql(text).collect()) == (before if "SELECT" in text else 0)
    finally:
        for name in SETTINGS:
            session.conf.unset(name)
    assert len(named.scan().to_arrow()) == (before if "SELECT" in text else before - 1)


@pytest.mark.parametrize("named", ["copy on write"], indirect=True)
def test_names_of_another_catalog_are_not_of_this_one(session: Any, named: HudiTable) -> None:
    catalog = "spark.sql.catalog.elsewhere"
    session.sql("CREATE DATABASE elsewhere")
    session.sql(f"CREATE TABLE elsewhere.{BY_NAME} USING hudi LOCATION '{named.path}'")
    session.conf.set(catalog, "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog")
    session.conf.set(f"{catalog}.url", "jdbc:derby:memory:elsewhere;create=true")
    session.conf.set(f"{catalog}.driver", "org.apache.derby.jdbc.EmbeddedDriver")
    try:
        for name in (f"elsewhere.{BY_NAME}", BY_NAME):
            for text in (f"SELECT x FROM {name} WHERE id = 'k7'", f"DELETE FROM {name} WHERE id = 'k7'"):
                with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
                    session.sql(text).collect()
            session.catalog.setCurrentCatalog("elsewhere")
        long = f"spark_catalog.elsewhere.{BY_NAME}"
        assert [row.x for row in session.sql(f"SELECT x FROM {long} WHERE id = 'k7'").collect()] == [7]
    finally:
        session.catalog.setCurrentCatalog("spark_catalog")
        session.conf.unset(catalog)
        session.sql("DROP DATABASE spark_catalog.elsewhere CASCADE")


@pytest.mark.parametrize("named", ["copy on write"], indirect=True)
def test_a_view_keeps_its_text(session: Any, named: HudiTable) -> None:
    session.sql(f"CREATE OR REPLACE VIEW kept AS SELECT x FROM {BY_NAME} WHERE id = 'k7'")
    try:
        named.upsert(rows(range(7, 8), 5))
        assert [row.x for row in session.sql("SELECT x FROM kept").collect()] == [507]
    finally:
        session.sql("DROP VIEW kept")


@pytest.mark.parametrize("named", ["copy on write"], indirect=True)
def test_a_statement_behind_with_runs_once(session: Any, named: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(key_queries, "_rows", lambda *given: asked.append("rows"))
    session.sql("CREATE TABLE target (x LONG) USING parquet")
    try:
        session.sql(f"WITH few AS (SELECT x FROM {BY_NAME} WHERE id = 'k7') INSERT INTO target SELECT x FROM few")
        assert [row.x for row in session.sql("SELECT x FROM target").collect()] == [7]
    finally:
        session.sql("DROP TABLE target")
    assert asked == []


def test_the_function_of_found_rows_is_no_users(session: Any) -> None:
    with pytest.raises(Invalid, match="pyhudi itself calls this function; use the table's name"):
        session.sql("SELECT * FROM hudi_found_rows('query 0')")


def test_without_a_record_index_spark_scans(session: Any, tmp_path: Path) -> None:
    HudiTable.create(tmp_path / "t", name="t", record_key="id").upsert(rows(range(9)))
    session.sql(f"CREATE TABLE {BY_NAME} USING hudi LOCATION '{tmp_path}/t'")
    try:
        frame = session.sql(f"SELECT x FROM {BY_NAME} WHERE id = 'k7'")
        assert WHOLE in plan_of(frame)
        assert [row.x for row in frame.collect()] == [7]
    finally:
        session.sql(f"DROP TABLE {BY_NAME}")
