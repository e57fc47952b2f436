"""A field of a struct that rows are keyed, placed or ordered by could be another column to Spark than to this process.

Each write is done twice, on Spark and with the same rows as Arrow; rows, meta fields and counts must be equal.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi.spark
from pyhudi import HudiTable, Invalid, Unsupported
from tests.spark.handovers import handed
from tests.spark.test_sql_statements import Sql, own_database, used
from tests.spark.test_writes import Twins
from tests.support.compare import assert_same_rows
from tests.support.spark_frames import on_spark
from tests.unit.api.test_fields_of_structs import OPTIONS

pytestmark = pytest.mark.spark

ST = pa.struct([("x", pa.string()), ("p", pa.string()), ("ts", pa.float64())])
SCHEMA = pa.schema([("st", ST), ("v", pa.int64()), ("said", pa.string())])
CHOSEN = ("simple", "global", "records", "no meta fields")


def rows(numbers: range, ts: int, said: str, *, moved: int = 0) -> pa.Table:
    inner = [{"x": f"k{n}", "p": f"p{(n + moved) % 3}", "ts": ts + n % 2} for n in numbers]
    return pa.table([pa.array(inner, ST), pa.array(numbers, pa.int64()), pa.array([said] * len(numbers))], SCHEMA)


class OfShownRows(Twins):
    def compare(self) -> None:
        assert_same_rows(self.on_spark.scan().to_arrow(), self.here.scan().to_arrow())


CASES = [(table_type, options) for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ") for options in CHOSEN]


@handed(
    "table_type, options",
    CASES,
    [("shuffle", ("COPY_ON_WRITE", "global")), ("shuffle", ("MERGE_ON_READ", "no meta fields"))],
)  # fmt: skip
def test_spark_goes_by_fields_as_this_process_does(
    spark: Any, tmp_path: Path, handover: str, table_type: str, options: str
) -> None:
    twins = (OfShownRows if options == "no meta fields" else Twins)(
        spark, tmp_path, record_key=("st.x", "v"), partition_by="st.p", ordering="st.ts", table_type=table_type,
        properties=OPTIONS[options],
    )  # fmt: skip
    twins.write("upsert", rows(range(20), 10, "first"))
    twins.write("upsert", rows(range(10, 30), 9, "less, of half of the stored ones"))
    if options in ("global", "records"):
        twins.write("upsert", rows(range(4), 12, "moved", moved=1))
        twins.write("upsert", rows(range(4), 5, "less, and moved", moved=2))
    assert twins.write("delete", rows(range(5, 7), 20, "")).deleted == 2
    twins.write("bulk_insert", rows(range(50, 60), 1, "new"))
    found = twins.here.scan(["v", "said"]).to_arrow()
    assert found.num_rows == 38
    assert set(found["said"].to_pylist()) >= {"first", "less, of half of the stored ones", "new"}
    assert ("moved" in found["said"].to_pylist()) == (options in ("global", "records"))
    assert "less, and moved" not in found["said"].to_pylist()


@pytest.fixture
def sql(spark: Any, tmp_path: Path) -> Iterator[Sql]:
    with own_database(spark, tmp_path) as made, used(made):
        yield made


def test_statements_go_by_fields(spark: Any, tmp_path: Path, sql: Sql) -> None:
    sql(
        "CREATE TABLE t (st STRUCT<x: STRING, p: STRING, ts: DOUBLE>, v BIGINT, said STRING) USING hudi "
        "TBLPROPERTIES (primaryKey = 'st.x', preCombineField = 'st.ts', type = 'mor')"
    )
    sql("INSERT INTO t SELECT named_struct('x', 'k' || id, 'p', 'p', 'ts', 1), id, 'first' FROM range(5)")
    sql("INSERT INTO t SELECT named_struct('x', 'k' || id, 'p', 'p', 'ts', id), id, 'second' FROM range(3)")
    sql("UPDATE t SET said = 'changed' WHERE st.x = 'k3'")
    sql("DELETE FROM t WHERE st.x = 'k4'")
    found = [(0, "first"), (1, "second"), (2, "second"), (3, "changed")]
    assert sql.rows("t", "v, said") == found
    with pytest.raises(
        Unsupported, match=r"MERGE in table .*: expected key, partition and ordering columns of their own"
    ):
        sql("MERGE INTO t USING (SELECT * FROM t) s ON t.v = s.v WHEN MATCHED THEN UPDATE SET said = 'merged'")
    with pytest.raises(Invalid, match="column 'st' is a record key column"):
        sql("UPDATE t SET st = named_struct('x', 'z', 'p', 'p', 'ts', 1)")
    assert sql.rows("t", "v, said") == found


def test_a_table_is_made_anew_by_an_overwrite(spark: Any, tmp_path: Path) -> None:
    pyhudi.spark.register(spark)
    path = str(tmp_path / "t")
    options = {"hoodie.datasource.write.recordkey.field": "st.x", "hoodie.datasource.write.precombine.field": "st.ts"}
    for partition, said in (("", "first"), ("st.p", "second"), ("st.p", "third")):
        given = on_spark(spark, rows(range(6), 1, said), tmp_path)
        facts = {**options, "hoodie.table.name": "t", "hoodie.datasource.write.partitionpath.field": partition}
        given.write.format("hudi").options(**facts).mode("overwrite").save(path)
        table = HudiTable.open(path)
        assert table.scan(["said"]).to_arrow()["said"].to_pylist() == [said] * 6
        assert table.partition_by == ((partition,) if partition else ())
    facts = {**options, "hoodie.table.name": "t", "hoodie.datasource.write.partitionpath.field": "st.q"}
    with pytest.raises(Invalid, match=r"column 'st\.q': expected among the rows' columns"):
        given.write.format("hudi").options(**facts).mode("overwrite").save(path)
    assert table.scan(["said"]).to_arrow()["said"].to_pylist() == ["third"] * 6
