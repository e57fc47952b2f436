"""A statement could give another table than it does with Apache Hudi's own SQL. The same statements run on both, each
in its own tables, and each query must answer alike; where one refuses a statement the other must refuse it, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_sql_statements import Sql, own_database, used
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

COLUMNS = "id INT, name STRING, price DOUBLE, ts BIGINT"
PROPERTIES = "TBLPROPERTIES (type = '{type}', primaryKey = 'id', orderingFields = 'ts')"
KEYED = f"CREATE TABLE {{t}} ({COLUMNS}, dt STRING) USING hudi PARTITIONED BY (dt) LOCATION '{{place}}' {PROPERTIES}"
PLAIN = f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi LOCATION '{{place}}' {PROPERTIES}"
NO_KEY = f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi LOCATION '{{place}}' TBLPROPERTIES (type = '{{type}}')"
UPSERTS = "SET hoodie.spark.sql.insert.into.operation = upsert"
"""Without it 1.2.0 inserts, and 1.0.2 upserts into tables with key and ordering columns, as we do."""

ROWS = "INSERT INTO {t} VALUES (1, 'a', 1.5, 10, 'x'), (2, 'b', 2.5, 10, 'x'), (3, 'c', NULL, 10, 'y')"
PLAIN_ROWS = "INSERT INTO {t} VALUES (1, 'a', 1.5, 10), (2, 'b', 2.5, 10), (3, 'c', NULL, 10)"
ALL = "SELECT id, name, price, ts, dt FROM {t}"
PLAIN_ALL = "SELECT id, name, price, ts FROM {t}"

GROUPS: dict[str, list[str]] = {
    "inserts": [
        KEYED, UPSERTS, ROWS, ALL,
        "INSERT INTO {t} (id, name, ts, dt) VALUES (4, 'd', 11, 'y')", ALL,
        "INSERT INTO {t} PARTITION (dt = 'z') VALUES (5, 'e', 5.5, 12)", ALL,
        "INSERT INTO {t} PARTITION (dt) SELECT 6, 'f', 6.5, 13L, 'z'", ALL,
        "INSERT INTO {t} VALUES (1, 'again', 9.5, 20, 'x')", ALL,
        "INSERT INTO {t} VALUES (2, 'late', 9.5, 1, 'x')", ALL,
        "INSERT INTO {t} SELECT id + 100, name, price, ts, dt FROM {t}", ALL,
        "INSERT INTO {t} VALUES (7, 'g')",
        "INSERT INTO {t} VALUES ('seven', 'g', 1.0, 1, 'x')",
        "SELECT dt, count(*), sum(price) FROM {t} GROUP BY dt",
    ],
    "other inserts": [
        KEYED, UPSERTS, ROWS,
        "INSERT INTO {t} VALUES (1, 'again', 9.5, 20, 'x'), (2, 'late', 9.5, 1, 'x')", ALL,
        "SET hoodie.spark.sql.insert.into.operation = bulk_insert",
        "INSERT INTO {t} VALUES (1, 'twice', 9.5, 20, 'x')", ALL,
        "RESET hoodie.spark.sql.insert.into.operation",
    ],
    "overwrites": [
        KEYED, ROWS,
        "INSERT OVERWRITE {t} PARTITION (dt = 'x') VALUES (9, 'i', 1.0, 1)", ALL,
        "INSERT OVERWRITE {t} PARTITION (dt) SELECT 8, 'h', 1.0, 1L, 'y'", ALL,
        "INSERT OVERWRITE {t} SELECT 7, 'g', 1.0, 1L, 'z'", ALL,
        ROWS, ALL,
        "INSERT OVERWRITE TABLE {t} SELECT id, name, price, ts, dt FROM {t} WHERE id > 1", ALL,
    ],
    "updates": [
        KEYED, ROWS,
        "UPDATE {t} SET price = price * 2, ts = ts + 1 WHERE dt = 'x'", ALL,
        "UPDATE {t} SET name = upper(name) WHERE price IS NULL", ALL,
        "UPDATE {t} SET name = 'all'", ALL,
        "UPDATE {t} SET price = CASE WHEN id = 1 THEN 0 ELSE price END WHERE id IN (1, 2)", ALL,
        "UPDATE {t} SET name = 'sub' WHERE id = (SELECT max(id) FROM {t})", ALL,
        "UPDATE {t} AS u SET u.name = concat(u.name, '!') WHERE u.id = 1", ALL,
        "UPDATE {t} SET nothing = 1",
        "UPDATE {t} SET name = 'none' WHERE id = 99", ALL,
    ],
    "deletes": [
        KEYED, UPSERTS, ROWS,
        "DELETE FROM {t} WHERE id = 1", ALL,
        "DELETE FROM {t} WHERE price IS NULL AND dt = 'y'", ALL,
        "DELETE FROM {t} WHERE id = 99", ALL, ROWS,
        "DELETE FROM {t} WHERE id IN (SELECT id FROM {t} WHERE name = 'b')", ALL,
        "DELETE FROM {t} WHERE nothing = 1",
        "DELETE FROM {t}", ALL, "SELECT count(*) FROM {t}",
    ],
    "merges": [
        KEYED, ROWS, "SET hoodie.spark.sql.merge.into.partial.updates = false",
        "MERGE INTO {t} t USING (SELECT 1 AS id, 'm' AS name, 7.0D AS price, 20L AS ts, 'x' AS dt) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", ALL,
        "MERGE INTO {t} t USING (SELECT 4 AS id, 'n' AS name, 7.0D AS price, 20L AS ts, 'z' AS dt) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", ALL,
        "MERGE INTO {t} t USING (SELECT 2 AS id, 'gone' AS name, 1L AS flag, 'x' AS dt, 30L AS ts) s ON t.id = s.id "
        "WHEN MATCHED AND flag = 1 THEN DELETE", ALL,
        "MERGE INTO {t} t USING (SELECT 3 AS id, 'p' AS name, 30L AS ts, 'y' AS dt) s ON t.id = s.id "
        "WHEN MATCHED AND s.name = 'p' "
        "THEN UPDATE SET t.id = s.id, t.name = s.name, t.price = 3, t.ts = s.ts, t.dt = s.dt", ALL,
        "MERGE INTO {t} t USING (SELECT 3 AS id, 'q' AS name, 1L AS ts, 'y' AS dt) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET id = s.id, name = s.name, price = 4, ts = s.ts, dt = s.dt", ALL,
        "MERGE INTO {t} t USING (SELECT 5 AS id, 'r' AS name, 1L AS ts, 'x' AS dt, 2.0D AS price) s ON t.id = s.id "
        "WHEN NOT MATCHED AND s.price > 1 THEN INSERT (id, name, price, ts, dt) "
        "VALUES (s.id, s.name, s.price, s.ts, s.dt)", ALL,
        "MERGE INTO {t} t USING (SELECT 5 AS id, 9L AS ts, 'x' AS dt) s ON t.id = s.id WHEN MATCHED THEN DELETE", ALL,
    ],
    "moves": [
        KEYED, ROWS, "SET hoodie.spark.sql.merge.into.partial.updates = false", "SET hoodie.index.type = GLOBAL_SIMPLE",
        "MERGE INTO {t} t USING (SELECT 1 AS id, 'm' AS name, 7.0D AS price, 20L AS ts, 'z' AS dt) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", ALL,
        "MERGE INTO {t} t USING (SELECT 2 AS id, 'l' AS name, 7.0D AS price, 1L AS ts, 'z' AS dt) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET *", ALL,
        "SELECT id FROM {t} WHERE dt = 'x'", "SELECT id FROM {t} WHERE dt = 'z'",
        "DELETE FROM {t} WHERE dt = 'z'", ALL,
    ],
    "no partitions": [
        PLAIN, PLAIN_ROWS, PLAIN_ALL,
        "UPDATE {t} SET price = 0 WHERE id = 2", PLAIN_ALL,
        "DELETE FROM {t} WHERE id = 1", PLAIN_ALL,
        "INSERT OVERWRITE {t} VALUES (9, 'i', 1.0, 1)", PLAIN_ALL,
        "MERGE INTO {t} t USING (SELECT 9 AS id, 'j' AS name, 2.0D AS price, 5L AS ts) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", PLAIN_ALL,
        "TRUNCATE TABLE {t}", PLAIN_ALL, PLAIN_ROWS, PLAIN_ALL,
    ],
    "no key": [
        NO_KEY, PLAIN_ROWS, PLAIN_ROWS, PLAIN_ALL,
        "UPDATE {t} SET price = 0 WHERE id = 2", PLAIN_ALL,
        "DELETE FROM {t} WHERE id = 1", PLAIN_ALL,
        "MERGE INTO {t} t USING (SELECT 3 AS id, 'j' AS name) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name", PLAIN_ALL,
    ],
    "partitions": [
        KEYED, ROWS, "SHOW PARTITIONS {t}", "SHOW PARTITIONS {t} PARTITION (dt = 'x')",
        "ALTER TABLE {t} DROP PARTITION (dt = 'x')", ALL, "SHOW PARTITIONS {t}",
        "ALTER TABLE {t} ADD PARTITION (dt = 'w')", ALL,
        "TRUNCATE TABLE {t} PARTITION (dt = 'y')", ALL,
    ],
    "columns": [
        KEYED, ROWS,
        "ALTER TABLE {t} ADD COLUMNS (extra STRING)", "SELECT id, extra FROM {t}",
        "INSERT INTO {t} VALUES (4, 'd', 1.0, 11, 'new', 'y')",
        "SELECT id, name, price, ts, extra, dt FROM {t}",
        "DESCRIBE {t}",
    ],
    "CTAS and LIKE": [
        f"CREATE TABLE {{t}} USING hudi PARTITIONED BY (dt) LOCATION '{{place}}' {PROPERTIES} AS SELECT 1 AS id, "
        "'a' AS name, 1.5D AS price, 10L AS ts, 'x' AS dt UNION ALL SELECT 2, 'b', 2.5D, 10L, 'y'",
        ALL, "UPDATE {t} SET name = 'u', ts = 11 WHERE id = 1", ALL,
        "CREATE TABLE {t} USING hudi AS SELECT 1 AS id", ALL,
    ],
    "types": [
        "CREATE TABLE {t} (id BIGINT, b BOOLEAN, d DATE, m TIMESTAMP, x DECIMAL(10,2), bin BINARY, a ARRAY<INT>, "
        "mp MAP<STRING, INT>, s STRUCT<p: INT, q: STRING>, f FLOAT, sm INT) USING hudi LOCATION '{place}' "
        "TBLPROPERTIES (type = '{type}', primaryKey = 'id')",
        "INSERT INTO {t} VALUES (1, true, DATE'2026-01-02', TIMESTAMP'2026-01-02 03:04:05.678901', 12.34, X'00FF', "
        "array(1, 2), map('k', 1), named_struct('p', 1, 'q', 'z'), 1.25, 7), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "SELECT id, b, d, cast(m AS STRING), x, hex(bin), a, mp, s.p, s.q, f, sm FROM {t}",
        "UPDATE {t} SET x = x + 1, a = array(9), s = named_struct('p', 5, 'q', 'w') WHERE id = 1",
        "SELECT id, x, a, s.p, s.q FROM {t}",
        "INSERT INTO {t} (id, x) VALUES (3, 12345678901.5)",
        "INSERT INTO {t} (id, x) VALUES (4, 1.239)", "SELECT id, x FROM {t}",
        "SELECT id FROM {t} WHERE m > '2026-01-01' AND d = '2026-01-02'",
    ],
    "time travel": [
        KEYED, ROWS, "UPDATE {t} SET name = 'new', ts = 11",
        "SELECT count(DISTINCT _hoodie_commit_time) FROM {t}",
        "SELECT id, name FROM {t} TIMESTAMP AS OF '2999-01-01 00:00:00'",
        "SELECT id, op FROM (SELECT id, 'x' AS op FROM {t}) WHERE id < 3",
        "WITH c AS (SELECT * FROM {t} WHERE dt = 'x') SELECT count(*), max(name) FROM c",
        "SELECT a.id, b.name FROM {t} a JOIN {t} b ON a.id = b.id WHERE a.dt = 'y'",
    ],
}  # fmt: skip


pytestmark = [pytest.mark.interop, pytest.mark.spark]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Any:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "2")
    return builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))).getOrCreate()


@pytest.fixture
def ours(spark: Any, tmp_path: Path) -> Iterator[Sql]:
    with own_database(spark, tmp_path) as sql, used(sql):
        yield sql


def answer(rows: Any) -> list[tuple[Any, ...]]:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return tuple(sorted((key, plain(one)) for key, one in value.items()))
        if isinstance(value, list | tuple):
            return tuple(plain(one) for one in value)
        return value

    return sorted((tuple(plain(value) for value in row) for row in rows), key=repr)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("group", GROUPS)
def test_both_make_the_same_of_a_statement(
    ours: Sql, hudi_120: ReferenceHudi, tmp_path: Path, group: str, table_type: str
) -> None:
    name = f"t_{group.lower().replace(' ', '_')}_{table_type}"
    differences = []
    for text in GROUPS[group]:
        found: list[Any] = []
        for side in ("ours", "theirs"):
            statement = text.format(t=name, place=tmp_path / side, type=table_type)
            try:
                if side == "ours":
                    rows: Any = ours(statement)
                else:
                    table = hudi_120.sql(statement)
                    rows = [] if table is None else [tuple(row.values()) for row in table.to_pylist()]
                found.append(answer(rows) if statement.startswith(("SELECT", "SHOW", "WITH", "DESCRIBE")) else "done")
            except ReferenceFailed as error:
                found.append(f"refused: {str(error)[:300]}")
            except Exception as error:
                found.append(f"refused: {type(error).__name__} {str(error)[:300]}")
        refused = [isinstance(one, str) and one.startswith("refused") for one in found]
        if refused[0] != refused[1] or (not any(refused) and found[0] != found[1]):
            differences.append((text, *found))
    hudi_120.sql(f"DROP TABLE IF EXISTS {name}")
    for reset in (hudi_120.sql, ours):
        reset("RESET hoodie.spark.sql.insert.into.operation")
        reset("RESET hoodie.spark.sql.merge.into.partial.updates")
        reset("RESET hoodie.index.type")
    for one in differences:
        print("DIFF", group, table_type, *one, sep="\n   ")
    assert differences == []


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_condition_on_the_stored_row_counts(
    ours: Sql, hudi_120: ReferenceHudi, tmp_path: Path, table_type: str
) -> None:
    """Seen: Apache Hudi 1.2.0 passes over such a clause where the table is merge-on-read, without a word."""
    found: list[Any] = []
    sides: list[tuple[str, Any]] = [("ours", ours), ("theirs", hudi_120.sql)]
    for side, run in sides:
        name = f"t_stored_{table_type}"
        for text in (
            KEYED, ROWS,
            "MERGE INTO {t} t USING (SELECT 3 AS id, 'p' AS name, 30L AS ts, 'y' AS dt) s ON t.id = s.id WHEN MATCHED "
            "AND t.name = 'c' THEN UPDATE SET t.id = s.id, t.name = s.name, t.price = 3, t.ts = s.ts, t.dt = s.dt",
        ):  # fmt: skip
            run(text.format(t=name, place=tmp_path / side, type=table_type))
        rows = run(f"SELECT name FROM {name} WHERE id = 3")
        found.append(rows.to_pylist()[0]["name"] if side == "theirs" else rows[0][0])
        run(f"DROP TABLE {name}")
    assert found == ["p", "p" if table_type == "cow" else "c"]
