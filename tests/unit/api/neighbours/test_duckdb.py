"""DuckDB could be given other rows than the scan has, or all of them where it asked for few."""

import random
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiError, HudiTable, Invalid
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.read import files
from tests.support.odd_values import VALUES
from tests.unit.api.neighbours.conftest import Read, torn

duckdb = pytest.importorskip("duckdb")


def sql_leaf(draw: random.Random) -> str:
    name = draw.choice([*VALUES, "city", "id"])
    match draw.randrange(6):
        case 0:
            return f"{name} IS {draw.choice(['', 'NOT '])}NULL"
        case 1:
            return draw.choice(["id IN ('k000', 'k021', 'none')", "i64 NOT IN (0, 1)", "s IN ('a', 'é', NULL)"])
        case 2:
            return f"{draw.choice(['f32', 'f64'])} {draw.choice(['<', '<=', '=', '>', '>=', '<>'])} 'nan'"
        case 3:
            return draw.choice(["st.x = 1", "bo", "NOT bo", "lower(s) = 'a'", "i32 = i64", "s LIKE 'a%'"])
        case _:
            _, values = VALUES.get(name, (pa.string(), ["rome", "oslo", "k007", "k030"]))
            value = str(draw.choice([one for one in values if one is not None]))
            return f"{name} {draw.choice(['=', '<>', '<', '<=', '>', '>='])} '{value}'"


def sql_tree(draw: random.Random, depth: int) -> str:
    if depth == 0:
        return sql_leaf(draw)
    joined = f"({sql_tree(draw, depth - 1)}) {draw.choice(['AND', 'AND', 'OR'])} ({sql_tree(draw, depth - 1)})"
    return f"NOT ({joined})" if draw.random() < 0.2 else joined


def test_a_view_answers_as_the_rows_in_memory(table: HudiTable) -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("rows", table.scan().to_arrow())
    table.scan().to_duckdb(connection, "view")
    for seed in range(60):
        where = sql_tree(random.Random(seed), seed % 3)
        queries = [f"SELECT id, i32, s FROM {name} WHERE {where} ORDER BY id" for name in ("view", "rows")]
        answers = [connection.sql(query).fetchall() for query in queries]
        assert answers[0] == answers[1], (seed, where)


@pytest.mark.parametrize(
    "query, partitions, columns",
    [
        ("SELECT id FROM t WHERE city = 'oslo'", ["oslo"], {"id", "city"}),
        ("SELECT sum(i32) FROM t WHERE id = 'k000'", ["rome"], {"id", "i32"}),
        ("SELECT i32 FROM t WHERE id IN ('k000', 'k003') AND lower(s) = 'x'", ["rome"], {"id", "i32", "s"}),
    ],
)
def test_filters_and_columns_of_duckdb_reach_the_scan(
    table: HudiTable, read: Read, query: str, partitions: list[str], columns: set[str]
) -> None:
    connection = duckdb.connect()
    relation = table.scan().to_duckdb(connection, "t")
    connection.sql(query).fetchall()
    assert read.partitions == partitions
    assert read.columns == columns
    assert relation.count("*").fetchall() == [(140,)]  # the view may be asked again


def test_a_relation_is_written_without_being_collected() -> None:
    table = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    relation: Any = duckdb.connect().sql("SELECT 'k' || i AS id, i AS n FROM range(1000) rows(i)")
    assert table.bulk_insert(relation).inserted == 1000
    assert table.scan(where="n >= 990").count() == 10


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert", "delete", "merge", "lookup"])
def test_a_relation_that_fails_at_once_is_told_as_one_that_fails_later(operation: str) -> None:
    table = HudiTable.create("unused", name="t", record_key="id", storage=MemoryStorage())
    table.insert(pa.table({"id": ["k"], "n": [1]}))
    relation: Any = duckdb.connect().sql("SELECT 'k' AS id, CAST('x' || i AS BIGINT) AS n FROM range(9) rows(i)")
    with pytest.raises(Invalid, match="could not be read to its end, and nothing was written: ConversionException"):
        getattr(table, operation)(relation, **({"when_matched_update": True} if operation == "merge" else {}))
    assert len(table.timeline()) == 1


def test_a_file_that_cannot_be_read_fails_the_query(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = duckdb.connect()
    table.scan().to_duckdb(connection, "t")
    monkeypatch.setattr(files, "read_planned", torn(files.read_planned))
    with pytest.raises((HudiError, duckdb.Error), match="torn"):
        connection.sql("SELECT id, s FROM t").fetchall()


def test_a_dataset_is_found_by_the_name_of_its_variable(table: HudiTable) -> None:
    rides = table.scan().to_dataset()
    assert duckdb.sql("SELECT count(*) FROM rides WHERE city = 'rome'").fetchall() == [(rides.count_rows() // 3 + 1,)]


def test_a_view_that_duckdb_does_not_take_is_invalid(table: HudiTable) -> None:
    connection = duckdb.connect()
    with pytest.raises(Invalid, match="takes no view named ''"):
        table.scan().to_duckdb(connection, "")
    connection.close()
    with pytest.raises(Invalid, match="closed"):
        table.scan().to_duckdb(connection, "t")
