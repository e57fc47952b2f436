"""Tables of versions 5 and 7 could be written otherwise by Spark than by this process: with files, logs or deletes that
the version has not, or with a metadata table that is not true.

Each write is done twice, on Spark and with the same rows as Arrow; rows and statements must be equal.
"""

from pathlib import Path
from typing import Any

import pytest

import pyhudi.spark
from pyhudi import HudiTable
from tests.spark.handovers import handed
from tests.spark.test_mor_writes import assert_read_alike
from tests.spark.test_writes import Twins, rows_of_all_types
from tests.support.compare import assert_same_rows
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


@handed(
    "version, table_type, properties",
    [(version, kind, of) for version in (5, 7) for kind in (COW, MOR) for of in ({}, BUCKETS)],
    [
        ("shuffle", (5, MOR, {})),
        ("gathered", (7, COW, BUCKETS)),
        ("files", (7, MOR, {})),
    ],
)
def test_operations_on_spark_are_those_in_this_process(
    spark: Any, tmp_path: Path, handover: str, version: int, table_type: str, properties: dict[str, str]
) -> None:
    facts = {"record_key": "id", "partition_by": "part", "ordering": "ts", "table_type": table_type}
    twins = Twins(spark, tmp_path, **facts, table_version=version, properties=properties)

    twins.write("insert" if properties else "bulk_insert", rows_of_all_types(0, 60, version=2))
    twins.write("upsert", rows_of_all_types(40, 80, version=3))
    twins.write("upsert", rows_of_all_types(0, 20, version=1))  # late
    twins.write("delete", rows_of_all_types(35, 45, version=4))
    if table_type == MOR:
        for table in (twins.on_spark, twins.here):
            table.compact(spark=spark if table is twins.on_spark else None)
    twins.write("upsert", rows_of_all_types(30, 50, version=5))
    twins.write("insert_overwrite", rows_of_all_types(0, 10, version=6))

    assert_read_alike(spark, twins)
    for table in (twins.on_spark, twins.here):
        assert table.table_version == version
        assert table.metadata.validate().is_valid


@pytest.mark.parametrize("version", [5, 7])
def test_statements_and_frames_make_and_change_such_a_table(spark: Any, tmp_path: Path, version: int) -> None:
    pyhudi.spark.register(spark)
    name = f"of_version_{version}"
    spark.sql(
        f"CREATE TABLE {name} (id INT, p STRING, v LONG, ts LONG) USING hudi PARTITIONED BY (p) "
        f"LOCATION '{tmp_path}/t' TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts', "
        f"'hoodie.write.table.version' = '{version}')"
    )
    try:
        spark.sql(f"INSERT INTO {name} VALUES (1, 10, 1, 'a'), (2, 20, 1, 'b'), (3, 30, 1, 'a')".replace(
            "VALUES", "(id, v, ts, p) VALUES"
        ))  # fmt: skip
        spark.sql(f"UPDATE {name} SET v = v + 1 WHERE id = 1")
        spark.sql(f"DELETE FROM {name} WHERE id = 2")
        spark.sql(
            f"MERGE INTO {name} t USING (SELECT 3 AS id, 'a' AS p, 33L AS v, 2L AS ts UNION ALL "
            "SELECT 4, 'b', 40L, 2L) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        spark.createDataFrame([(5, "c", 50, 1)], "id INT, p STRING, v LONG, ts LONG").write.format("hudi").mode(
            "append"
        ).save(f"{tmp_path}/t")

        table = HudiTable.open(tmp_path / "t")
        assert table.table_version == version
        found = {row.id: row.v for row in spark.sql(f"SELECT id, v FROM {name}").collect()}
        assert found == {1: 11, 3: 33, 4: 40, 5: 50}
        assert_same_rows(collected(spark.table(name)), table.scan().to_arrow())
        assert table.metadata.validate().is_valid

        spark.sql(f"CALL upgrade_table(table => '{name}', to_version => 'NINE')")  # TBLPROPERTIES say another version
        spark.sql(f"UPDATE {name} SET v = 0, ts = 9 WHERE id = 1")
        assert HudiTable.open(tmp_path / "t").table_version == 9
        assert spark.sql(f"SELECT v FROM {name} WHERE id = 1").collect() == [(0,)]
    finally:
        spark.sql(f"DROP TABLE {name}")
