"""A name in a Hive metastore could be of use to one of pyhudi and Apache Hudi only, or tell other engines old things.

Both use one metastore server. After each statement of either, rows and entry must be what the other one needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.interop.test_sql_statements import GROUPS, answer
from tests.support.lock_servers import hive_metastore
from tests.support.named_tables import OwnSql, metastore_settings, refusal_of, rows_of
from tests.support.reference.client import ReferenceHudi

__all__ = ["hive_metastore"]

pytestmark = [pytest.mark.interop, pytest.mark.spark]

COLUMNS = "id INT, name STRING COMMENT 'who', price DOUBLE, ts BIGINT, dt STRING"
PROPERTIES = "TBLPROPERTIES (type = '{type}', primaryKey = 'id', preCombineField = 'ts')"
SYNC = {
    "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.datasource.write.precombine.field": "ts", "hoodie.datasource.hive_sync.enable": "true",
    "hoodie.datasource.hive_sync.mode": "hms", "hoodie.datasource.hive_sync.database": "d",
    "hoodie.datasource.hive_sync.partition_fields": "dt", "hoodie.write.table.version": "9",
}  # fmt: skip
INPUTS = {
    "cow": "org.apache.hudi.hadoop.HoodieParquetInputFormat",
    "mor": "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat",
}


class Sides:
    """Both engines on one metastore. `place`: a folder for tables."""

    def __init__(self, ours: OwnSql, theirs: ReferenceHudi, place: Path) -> None:
        self.ours, self.theirs, self.place = ours, theirs, place

    def both(self, text: str, name: str = "") -> list[tuple[Any, ...]]:
        """The answer of a query, which must be the same of both. `name`: a table that Apache Hudi is to look at anew,
        for a session of its keeps the files that it has once read by a name."""
        if name:
            self.theirs.sql(f"REFRESH TABLE {name}")
        found = answer(rows_of(self.ours, text))
        assert answer(rows_of(self.theirs, text)) == found, text
        return found

    def entry(self, name: str) -> dict[str, Any]:
        return self.ours.entry("d", name)

    def columns(self, name: str) -> list[str]:
        """The columns as Spark reads them out of the entry's properties."""
        properties = self.entry(name)["properties"]
        count = int(properties["spark.sql.sources.schema.numParts"])
        text = "".join(properties[f"spark.sql.sources.schema.part.{at}"] for at in range(count))
        assert "spark.sql.sources.schema" not in properties
        return [field["name"] for field in json.loads(text)["fields"] if not field["name"].startswith("_hoodie")]


@pytest.fixture(scope="module")
def sides(hive_metastore: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    place = tmp_path_factory.mktemp("names")
    settings = metastore_settings(hive_metastore, place / "warehouse")
    with ReferenceHudi("1.2.0", spark_settings=settings) as theirs:
        ours = OwnSql(settings)
        ours.sql(f"CREATE DATABASE d LOCATION '{place}/warehouse/d.db'")
        for side in (ours, theirs):
            side.sql("USE d")
        yield Sides(ours, theirs, place)
        ours.close()


def made(sides: Sides, maker: Any, name: str, table_type: str, *, partitioned: bool, external: bool) -> None:
    partitions = "PARTITIONED BY (dt)" if partitioned else ""
    location = f"LOCATION '{sides.place}/{name}'" if external else ""
    properties = PROPERTIES.format(type=table_type)
    maker.sql(f"CREATE TABLE {name} ({COLUMNS}) USING hudi {partitions} {location} {properties}")


@pytest.mark.parametrize(
    "maker_name,table_type", [("ours", "cow"), ("ours", "mor"), ("theirs", "cow"), ("theirs", "mor")]
)
def test_a_name_serves_both(sides: Sides, maker_name: str, table_type: str) -> None:
    name, maker = f"t_{maker_name}_{table_type}", getattr(sides, maker_name)
    other = sides.theirs if maker is sides.ours else sides.ours
    external = table_type == "mor"
    made(sides, maker, name, table_type, partitioned=True, external=external)
    rows = f"SELECT id, name, price, ts, dt FROM {name}"

    first = sides.entry(name)
    folder = sides.place / name if external else sides.place / "warehouse/d.db" / name
    assert first["input"] == INPUTS[table_type]
    assert first["type"] == ("EXTERNAL_TABLE" if external else "MANAGED_TABLE")
    assert first["location"] == f"file:{folder}"
    assert first["partition_columns"] == [["dt", "string"]]
    assert [column for column, _ in first["columns"]][5:] == ["id", "name", "price", "ts"]
    assert first["properties"]["spark.sql.sources.provider"] == "hudi"

    other.sql(f"INSERT INTO {name} VALUES (1, 'a', 1.5, 10, 'x'), (2, 'b', 2.5, 10, 'y')")
    maker.sql(f"INSERT INTO {name} VALUES (3, 'c', NULL, 10, 'z')")
    other.sql(f"UPDATE {name} SET price = 9, ts = 11 WHERE id = 3")
    maker.sql(
        f"MERGE INTO {name} t USING (SELECT 1 AS id, 'm' AS name, 7.0D AS price, 20L AS ts, 'x' AS dt) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert sides.both(rows, name) == [(1, "m", 7.0, 20, "x"), (2, "b", 2.5, 10, "y"), (3, "c", 9.0, 11, "z")]
    assert sides.entry(name)["partitions"] == {dt: f"file:{folder}/dt={dt}" for dt in "xyz"}
    assert sides.both(f"SHOW PARTITIONS {name}") == [("dt=x",), ("dt=y",), ("dt=z",)]
    maker.sql(f"ALTER TABLE {name} DROP PARTITION (dt = 'x')")
    assert set(sides.entry(name)["partitions"]) == {"y", "z"}

    other.sql(f"ALTER TABLE {name} ADD COLUMNS (extra STRING)")
    maker.sql(f"INSERT INTO {name} (id, name, ts, extra, dt) VALUES (4, 'd', 1, 'new', 'y')")
    other.sql(f"DELETE FROM {name} WHERE id = 2")
    assert sides.both(f"SELECT id, extra FROM {name}", name) == [(3, None), (4, "new")]
    assert [column for column, _ in sides.entry(name)["columns"]][5:] == ["id", "name", "price", "ts", "extra"]
    assert [row[0] for row in rows_of(maker, f"DESCRIBE {name}")][5:11] == ["id", "name", "price", "ts", "extra", "dt"]
    sides.both(f"DESCRIBE {name}")

    maker.sql(f"ALTER TABLE {name} SET TBLPROPERTIES (note = 'of both')")
    assert ("note", "of both") in sides.both(f"SHOW TBLPROPERTIES {name} ('note')")
    other.sql(f"INSERT OVERWRITE {name} SELECT 5, 'e', 1.0, 1L, 'e', 'v'")
    assert set(sides.entry(name)["partitions"]) == {"v"}
    maker.sql(f"INSERT OVERWRITE {name} SELECT 6, 'f', 1.0, 1L, 'e', 'w'")
    assert set(sides.entry(name)["partitions"]) == {"w"}
    assert sides.both(rows, name) == [(6, "f", 1.0, 1, "w")]
    maker.sql(f"ALTER TABLE {name} RENAME TO {name}_2")
    name = f"{name}_2"
    if not external:
        folder = folder.with_name(name)
        assert sides.entry(name)["location"] == f"file:{folder}"
        assert sides.entry(name)["partitions"] == {"w": f"file:{folder}/dt=w"}
    assert HudiTable.open(str(folder)).name == name
    other.sql(f"INSERT INTO {name} VALUES (7, 'g', 1.0, 1, 'e', 'w')")
    assert len(sides.both(f"SELECT id FROM {name}", name)) == 2
    sides.ours.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS")
    assert sides.entry(name)["properties"]["spark.sql.statistics.numRows"] == "2"
    assert sides.both(f"SELECT count(*) FROM {name}", name) == [(2,)]
    sides.ours.sql(f"DELETE FROM {name} WHERE id = 7")
    assert "spark.sql.statistics.numRows" not in sides.entry(name)["properties"]
    other.sql(f"TRUNCATE TABLE {name}")
    assert sides.both(f"SELECT id FROM {name}", name) == []
    other.sql(f"DROP TABLE {name}")
    assert (name,) not in [row[1:2] for row in sides.both("SHOW TABLES")]
    assert folder.exists() == external


def test_names_for_base_files_alone_are_read_as_such(sides: Sides) -> None:
    """1.2.0 gives a merge-on-read table two names more: `_ro` and `_rt`."""
    made(sides, sides.theirs, "beside", "mor", partitioned=True, external=False)
    sides.theirs.sql("INSERT INTO beside VALUES (1, 'a', 1.5, 10, 'x')")
    sides.ours.sql("UPDATE beside SET name = 'new', ts = 11 WHERE id = 1")
    sides.ours.sql("INSERT INTO beside VALUES (2, 'b', 1.5, 10, 'y')")

    for name, shown in (("beside", "new"), ("beside_rt", "new"), ("beside_ro", "a")):
        assert sides.both(f"SELECT name FROM {name} WHERE id = 1", name) == [(shown,)]
        assert set(sides.entry(name)["partitions"]) == {"x", "y"}
    assert "own name" in refusal_of(sides.ours, "DELETE FROM beside_ro")
    assert "drop those names first" in refusal_of(sides.ours, "ALTER TABLE beside RENAME TO other")
    assert "drop it instead" in refusal_of(sides.ours, "ALTER TABLE beside_rt RENAME TO other")
    sides.ours.sql("DROP TABLE beside_ro")
    assert len(sides.both("SELECT id FROM beside", "beside")) == 2


def test_more_ways_to_make_a_name(sides: Sides) -> None:
    """By a query, without partitions, of types that Hive has or has not, and of many columns."""
    many = ", ".join(f"c{at} INT" for at in range(200))
    sides.ours.sql(f"CREATE TABLE many (id INT, {many}) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    sides.ours.sql("CREATE TABLE made USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id') AS "
                   "SELECT 1 AS id, 1.5D AS Price, array(1) AS a, named_struct('p', 1) AS s, 'x' AS dt")  # fmt: skip
    sides.theirs.sql("INSERT INTO many (id, c7) VALUES (1, 7)")
    sides.theirs.sql("INSERT INTO made SELECT 2, 2.5D, array(2), named_struct('p', 2), 'y'")

    assert sides.both("SELECT id, c7, c199 FROM many") == [(1, 7, None)]
    assert sides.both("SELECT id, Price, s.p, dt FROM made") == [(1, 1.5, 1, "x"), (2, 2.5, 2, "y")]
    assert set(sides.entry("made")["partitions"]) == {"x", "y"}
    assert int(sides.entry("many")["properties"]["spark.sql.sources.schema.numParts"]) > 1
    sides.ours.sql("CREATE TABLE local (id INT, m TIMESTAMP_NTZ) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    sides.ours.sql("INSERT INTO local VALUES (1, TIMESTAMP_NTZ'2026-01-02 03:04:05')")
    assert rows_of(sides.ours, "SELECT id, cast(m AS STRING) FROM local") == [(1, "2026-01-02 03:04:05")]


@pytest.mark.parametrize(
    "at,maker_name",
    [
        pytest.param(at, maker, marks=[pytest.mark.long] if at % 2 == turn else [], id=f"{group}-{maker}")
        for at, group in enumerate(GROUPS)
        for turn, maker in enumerate(("ours", "theirs"))
    ],
)
def test_statements_in_turns(sides: Sides, at: int, maker_name: str, tmp_path: Path) -> None:
    """A table made by one of both, every second change by the other; each query is asked of both."""
    group, table_type = list(GROUPS)[at], ["cow", "mor"][(at + (maker_name == "ours")) % 2]
    name = f"s_{at}_{maker_name}"
    order: list[Any] = [sides.ours, sides.theirs] if maker_name == "ours" else [sides.theirs, sides.ours]
    turns = 0
    for text in GROUPS[group]:
        statement = text.format(t=name, place=tmp_path / "t", type=table_type)
        if statement.startswith(("SET", "RESET")):
            for side in order:
                side.sql(statement)
        elif statement.startswith(("SELECT", "SHOW", "WITH", "DESCRIBE")):
            sides.both(statement, name)
        else:
            refused = refusal_of(order[turns % 2], statement)
            assert not refused or refusal_of(order[(turns + 1) % 2], statement), (statement, refused)
            turns += 1
    for side in order:
        side.sql("RESET hoodie.spark.sql.insert.into.operation")
        side.sql("RESET hoodie.spark.sql.merge.into.partial.updates")
    sides.theirs.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("maker_name", ["ours", "theirs"])
def test_a_sync_by_path_makes_the_names_of_hudi(sides: Sides, maker_name: str, table_type: str) -> None:
    """The entries that a write to a path makes are those of Apache Hudi's sync. Both write on, by path and by name."""
    name = f"synced_{maker_name}_{table_type[:3].lower()}"
    path = sides.place / name
    options = SYNC | {"hoodie.datasource.write.table.type": table_type, "hoodie.datasource.hive_sync.table": name}
    order: list[Any] = [sides.ours, sides.theirs] if maker_name == "ours" else [sides.theirs, sides.ours]

    def rows(*ids: int, ts: int) -> pa.Table:
        return pa.table({"id": list(ids), "ts": [ts] * len(ids), "dt": [f"d{one}" for one in ids]})

    order[0].write(path, rows(1, 2, ts=1), **options)
    order[1].write(path, rows(2, 3, ts=2), **options)
    of_name = [name, f"{name}_ro", f"{name}_rt"] if table_type == "MERGE_ON_READ" else [name]
    listed = rows_of(sides.ours, f"SHOW TABLES IN d LIKE '{name}*'")
    assert sorted(table for _, table, _ in listed) == sorted(of_name)
    for one in of_name:
        entry = sides.entry(one)
        has_logs = table_type == "MERGE_ON_READ" and not one.endswith("_ro")
        assert (entry["type"], entry["input"]) == ("EXTERNAL_TABLE", INPUTS["mor" if has_logs else "cow"])
        assert entry["partitions"] == {dt: f"file:{path}/{dt}" for dt in ("d1", "d2", "d3")}
        assert [column for column, _ in entry["columns"]][5:] == ["id", "ts"]
        assert entry["partition_columns"] == [["dt", "string"]]
        is_new = has_logs or table_type == "COPY_ON_WRITE"
        expected = [(1, 1, "d1"), (2, 2 if is_new else 1, "d2"), (3, 2, "d3")]
        assert sides.both(f"SELECT id, ts, dt FROM {one}", one) == expected, one

    order[1].sql(f"INSERT INTO {name} VALUES (4, 3, 'd4')")
    order[0].sql(f"UPDATE {name} SET ts = 9 WHERE id = 1")
    assert sides.both(f"SELECT id, ts, dt FROM {name}", name) == [
        (1, 9, "d1"),
        (2, 2, "d2"),
        (3, 2, "d3"),
        (4, 3, "d4"),
    ]


def test_a_metastore_of_the_session_in_turns(tmp_path: Path) -> None:
    """Derby in a folder serves one session after the other. One without `register` writes nothing into a table.

    Spark 3.5 must have made it: its Derby opens no database that a newer one has made.
    """
    settings = metastore_settings("", tmp_path / "warehouse")
    make = f"CREATE TABLE {{t}} ({COLUMNS}) USING hudi PARTITIONED BY (dt) {PROPERTIES.format(type='cow')}"
    with ReferenceHudi("1.2.0", spark_settings=settings) as theirs:
        theirs.sql(make.format(t="theirs"))
        theirs.sql("INSERT INTO theirs VALUES (1, 'a', 1.5, 10, 'x')")

    ours = OwnSql(settings)
    for text in (
        make.format(t="t"),
        "INSERT INTO t VALUES (1, 'a', 1.5, 10, 'x')",
        "INSERT INTO theirs VALUES (2, 'b', 1.5, 10, 'y')",
    ):
        ours.sql(text)
    ours.close()

    with ReferenceHudi("1.2.0", spark_settings=settings) as theirs:
        theirs.sql("INSERT INTO t VALUES (2, 'b', 1.5, 10, 'y')")
        for name in ("t", "theirs"):
            assert answer(rows_of(theirs, f"SELECT id, dt FROM {name}")) == [(1, "x"), (2, "y")]

    stock = OwnSql(settings, registers=False)
    before = sorted(str(file) for file in (tmp_path / "warehouse/t").rglob("*"))
    for text in (
        "INSERT INTO t VALUES (3, 'c', 1.5, 10, 'z')",
        "INSERT OVERWRITE t VALUES (3, 'c', 1.5, 10, 'z')",
        "DELETE FROM t",
        "TRUNCATE TABLE t",
        "SELECT * FROM t",
    ):
        assert "hudi" in refusal_of(stock, text), text
    assert sorted(str(file) for file in (tmp_path / "warehouse/t").rglob("*")) == before
    assert set(stock.entry("default", "t")["partitions"]) == {"x", "y"}
    stock.close()
