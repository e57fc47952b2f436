"""A query by name could read files that the table's indexes rule out, or leave out files that hold rows of it."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.spark.read.pruned_index import PrunedIndex
from tests.spark.test_sql_statements import Sql, own_database, used

pytestmark = pytest.mark.spark

INDEXES = (
    "'hoodie.metadata.record.index.enable' = 'true', 'hoodie.metadata.index.column.stats.enable' = 'true', "
    "'hoodie.metadata.index.column.stats.column.list' = 'n,d,place'"
)


def rows(batch: int) -> pa.Table:
    numbers = range(batch * 10, batch * 10 + 10)
    return pa.table({
        "id": [f"k{n}" for n in numbers], "n": list(numbers), "d": [dt.date(2024, 1, 1 + batch)] * 10,
        "place": [{"n": batch} for _ in numbers], "ts": [1] * 10,
    })  # fmt: skip


@pytest.fixture(scope="module", params=["cow", "mor"])
def table(request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    """Three files of ten rows; where logs can be, one of them has a log."""
    with own_database(spark, tmp_path_factory.mktemp("narrowed")) as sql:
        with used(sql):
            sql(
                "CREATE TABLE t (id STRING, n BIGINT, d DATE, place STRUCT<n: BIGINT>, ts BIGINT) USING hudi "
                f"TBLPROPERTIES (type = '{request.param}', primaryKey = 'id', preCombineField = 'ts', {INDEXES})"
            )
            for batch in range(3):
                sql.table("t").bulk_insert(rows(batch))
            if request.param == "mor":
                sql("UPDATE t SET n = 333, ts = 2 WHERE id = 'k3'")
            sql(f"CREATE VIEW {sql.database}.v AS SELECT id AS k, n FROM {sql.database}.t")
        yield sql


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pieces each scan was given."""
    counts: list[int] = []
    original = PrunedIndex._get_files

    def get(self: PrunedIndex, numbers: Any) -> Any:
        counts.append(len(numbers))
        return original(self, numbers)

    monkeypatch.setattr(PrunedIndex, "_get_files", get)
    return counts


@pytest.mark.parametrize(
    "text,expected",
    [
        ("SELECT id FROM (SELECT * FROM {t}) WHERE id = 'k13'", {"k13"}),
        ("SELECT a.id FROM (SELECT * FROM {t}) a WHERE a.id IN ('k13', 'none') AND n > rand() - 1", {"k13"}),
        ("SELECT k FROM {v} WHERE k = 'k13' AND n = 13", {"k13"}),
        ("SELECT id FROM {t} WHERE d >= DATE '2024-01-03' AND n < 21", {"k20"}),
        ("SELECT id FROM {t} WHERE n = 13 OR n = 14", {"k13", "k14"}),
        ("SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id WHERE b.id = 'k13'", {"k13"}),
    ],
)
def test_files_are_chosen_by_indexes(table: Sql, read: list[int], text: str, expected: set[str]) -> None:
    named = text.format(t=f"{table.database}.t", v=f"{table.database}.v")

    assert {row[0] for row in table(named)} == expected
    assert read
    assert max(read) <= 1


@pytest.mark.parametrize(
    "where,expected",
    [
        ("place.n = 1 AND n > 18", {"k19"}),  # a field by the name of a column
        ("lower(id) = 'k13'", {"k13"}),
        ("n IN (3, 333) OR id = 'k4'", {"k3", "k4"}),
        ("id = 'k3'", {"k3"}),
        ("n > 18 AND id LIKE '%9'", {"k19", "k29"}),
    ],
)
def test_no_row_is_left_out(table: Sql, where: str, expected: set[str]) -> None:
    assert {row[0] for row in table(f"SELECT id FROM {table.database}.t WHERE {where}")} == expected


def test_a_frame_shows_the_table_as_it_was_when_the_frame_was_made(sql_alone: Sql) -> None:
    """The record index tells where keys are now."""
    sql = sql_alone
    frame = sql.spark.table(f"{sql.database}.u").where("id = 'a'")
    sql(f"DELETE FROM {sql.database}.u WHERE id = 'a'")

    assert [(row.id, row.v) for row in frame.collect()] == [("a", 1)]
    assert sql(f"SELECT * FROM {sql.database}.u WHERE id = 'a'") == []


@pytest.fixture
def sql_alone(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    with own_database(spark, tmp_path_factory.mktemp("alone")) as sql:
        sql(
            f"CREATE TABLE {sql.database}.u (id STRING, v INT) USING hudi "
            "TBLPROPERTIES (primaryKey = 'id', 'hoodie.metadata.record.index.enable' = 'true')"
        )
        table = sql.table(f"{sql.database}.u")
        for key in ("a", "b"):
            table.bulk_insert(pa.table({"id": [key], "v": pa.array([1], pa.int32())}))
        yield sql
