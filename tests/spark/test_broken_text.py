"""Spark takes any bytes for text, as in `CAST(x'ff' AS STRING)`. A log with such text could be read by nobody any more:
one row would take the whole table away.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

import pyhudi.spark
from pyhudi import HudiTable, Invalid
from tests.spark.handovers import handed

pytestmark = pytest.mark.spark

COLUMNS = ("id", "part", "ts", "v", "nested")
QUICK = [("files", "nested"), ("shuffle", "part"), ("Parquet", "v")]
BROKEN = "decode(x'', 'utf-8') || cast(x'ff' as string)"
GOOD = "select 'b' id, 'p' part, '1' ts, 'ö' v, named_struct('a', array(map('k', 'x'))) nested union all "


def stored(path: Path, table_type: str) -> HudiTable:
    nested = [{"a": [[("k", "x")]]}]
    kind = pa.struct([("a", pa.list_(pa.map_(pa.string(), pa.string())))])
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="part", ordering="ts", table_type=table_type,
        properties={"hoodie.metadata.index.column.stats.enable": "true"},
    )  # fmt: skip
    table.insert(pa.table({"id": ["a"], "part": ["p"], "ts": ["0"], "v": ["v"], "nested": pa.array(nested, kind)}))
    return table


def rows(spark: Any, column: str) -> Any:
    """A good row and a broken one."""
    good = spark.sql(GOOD + GOOD.removesuffix("union all ").replace("'b'", "'a'"))
    broken = f.expr(BROKEN)
    if column == "nested":
        broken = f.struct(f.array(f.create_map(f.lit("k"), broken)).alias("a"))
    return good.withColumn(column, f.when(f.col("id") == "a", broken).otherwise(f.col(column)))


@handed("column", COLUMNS, QUICK)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_text_that_is_not_utf_8_is_refused(
    spark: Any, tmp_path: Path, handover: str, column: str, table_type: str
) -> None:
    table = stored(tmp_path / "t", table_type)
    before = table.scan().to_arrow().to_pylist()

    for operation in ("insert", "upsert", "bulk_insert"):
        with pytest.raises(Invalid, match=f"(?s)column '{column}'.*UTF-?8.*mend the values"):
            getattr(table, operation)(rows(spark, column))
        assert table.scan().to_arrow().to_pylist() == before

    table.upsert(rows(spark, column).where("id = 'b'"))
    assert table.metadata.validate().differences == ()
    assert {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()} == {"a": "v", "b": "ö"}


def test_statements_refuse_it_too(spark: Any, tmp_path: Path) -> None:
    """Spark's store assignment makes text of bytes."""
    pyhudi.spark.register(spark)
    table = stored(tmp_path / "t", "MERGE_ON_READ")
    before = table.scan().to_arrow().to_pylist()
    spark.sql(f"CREATE TABLE broken_text USING hudi LOCATION '{tmp_path / 't'}'")
    try:
        for statement in (
            "INSERT INTO broken_text SELECT 'c', '1', x'ff', null, 'p'",
            "UPDATE broken_text SET v = x'ff'",
            "MERGE INTO broken_text t USING (SELECT 'a' id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = x'ff'",
        ):
            with pytest.raises(Invalid, match="UTF8"):
                spark.sql(statement)
            assert table.scan().to_arrow().to_pylist() == before
    finally:
        spark.sql("DROP TABLE broken_text")
