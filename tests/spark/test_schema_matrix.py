"""A write on Spark could change a table's columns otherwise than the same write in this process, or fail when it has begun
to write. SQL could add columns, or make a column another type: its statements cast rows to the table's columns, or refuse.
"""

from pathlib import Path
from typing import Any

import pytest

import pyhudi.spark
from pyhudi import HudiTable
from tests.support.compare import assert_same_rows
from tests.support.schema_cells import NONE, REFUSED, SAME, found, outcome, schema_text
from tests.support.schema_changes import CHANGES, Change, by_key, conformed
from tests.support.schema_page import PAGE, seen_on
from tests.support.spark_frames import collected, on_spark

pytestmark = pytest.mark.spark

STATEMENTS = {
    "insert": "INSERT INTO {table} SELECT * FROM matrix_rows",
    "merge": "MERGE INTO {table} t USING matrix_rows s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
}
QUICK_FRAMES = {"a new column in the middle", "a missing column", "within a struct: int to long"}
QUICK_STATEMENTS = {"a new column at the end", "other order"}


def chosen(quick: set[str]) -> list[Any]:
    return [one if one.name in quick else pytest.param(one, marks=pytest.mark.long) for one in CHANGES]


def stored(path: Path, change: Change) -> HudiTable:
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="city", ordering="ts", schema=change.stored.schema
    )
    table.insert(change.stored)
    return table


def files(path: Path) -> dict[str, bytes]:
    listed = (file for file in path.rglob("*") if file.is_file() and not file.name.endswith("_guard"))
    return {str(file): file.read_bytes() for file in listed}


def looks_alike(spark: Any, table: HudiTable) -> None:
    assert_same_rows(collected(table.scan().to_spark(spark)), table.scan().to_arrow())


@pytest.mark.parametrize("change", chosen(QUICK_FRAMES), ids=str)
def test_a_frame_changes_the_columns_as_the_page_says(spark: Any, tmp_path: Path, change: Change) -> None:
    pyhudi.spark.register(spark)
    table, given = stored(tmp_path / "t", change), change.keyed(is_new=False)
    before, text = files(tmp_path / "t"), schema_text(table)
    expected = seen_on(PAGE.read_text(encoding="utf-8"))[change.name, NONE]
    write = on_spark(spark, given, tmp_path).write.format("hudi").mode("append")
    try:
        write.option("hoodie.datasource.write.operation", "upsert").save(str(tmp_path / "t"))
    except pyhudi.HudiError:
        assert expected == REFUSED
        assert files(tmp_path / "t") == before
        return
    if expected == REFUSED:  # what Spark's own types do not tell: its columns may all be null
        assert "never null" in change.name
        return
    assert outcome(text, schema_text(table)) == expected
    schema = table.schema()
    assert found(table) == {**by_key(conformed(change.stored, schema)), **by_key(conformed(given, schema))}
    looks_alike(spark, table)


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("change", chosen(QUICK_STATEMENTS), ids=str)
def test_sql_keeps_the_columns_or_leaves_the_table_as_it_was(
    spark: Any, tmp_path: Path, change: Change, statement: str
) -> None:
    pyhudi.spark.register(spark)
    path, name = tmp_path / "t", f"matrix_{statement}"
    table = stored(path, change)
    on_spark(spark, change.keyed(is_new=False), tmp_path).createOrReplaceTempView("matrix_rows")
    spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    try:
        before, text = files(path), schema_text(table)
        try:
            spark.sql(STATEMENTS[statement].format(table=name))
        except Exception:  # of Spark's analyzer, its casts, or of pyhudi
            assert files(path) == before
            return
        assert outcome(text, schema_text(table)) == SAME
        rows, kept = found(table), by_key(iter(change.stored.to_pylist()))
        assert rows.keys() == {*kept, "n1"}
        assert rows["k0"]["ts"] == 9
        assert {key: row for key, row in rows.items() if key not in ("k0", "n1")} == {
            key: row for key, row in kept.items() if key != "k0"
        }
        looks_alike(spark, table)
    finally:
        spark.sql(f"DROP TABLE {name}")
