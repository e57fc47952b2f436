"""Apache Hudi's quick start could fail after `register(spark)`, or leave other rows than Apache Hudi leaves.

The statements are those of its documentation, 1.0 and 1.1, Spark SQL tab and Python tab, unchanged.
"""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.functions import col

from pyhudi import HudiTable
from tests.spark.test_sql_statements import Sql
from tests.spark.test_sql_statements import sql as _sql

pytestmark = pytest.mark.spark
sql = _sql

TRIPS = """
(1695159649087,'334e26e9-8355-45cc-97c6-c31daf0df330','rider-A','driver-K',19.10,'san_francisco'),
(1695091554788,'e96c4396-3fad-413a-a942-4cb36106d721','rider-C','driver-M',27.70 ,'san_francisco'),
(1695046462179,'9909a8b1-2d15-4d3d-8ec9-efc48c536a00','rider-D','driver-L',33.90 ,'san_francisco'),
(1695332066204,'1dced545-862b-4ceb-8b43-d2a568f6616b','rider-E','driver-O',93.50,'san_francisco'),
(1695516137016,'e3cf430c-889d-4015-bc98-59bdce1e530c','rider-F','driver-P',34.15,'sao_paulo'    ),
(1695376420876,'7a84095f-737f-40bc-b62f-6b69664712d2','rider-G','driver-Q',43.40 ,'sao_paulo'    ),
(1695173887231,'3eeb61f7-c2b0-4636-99bd-5d7a5a1d2c04','rider-I','driver-S',41.06 ,'chennai'      ),
(1695115999911,'c8abbe79-8d89-47ea-b4ce-4d224bae5bfa','rider-J','driver-T',17.85,'chennai');
"""

CREATE = """
CREATE TABLE hudi_table (
    ts BIGINT,
    uuid STRING,
    rider STRING,
    driver STRING,
    fare DOUBLE,
    city STRING
) USING HUDI
PARTITIONED BY (city);
"""

MERGE = (
    """
CREATE TABLE fare_adjustment (ts BIGINT, uuid STRING, rider STRING, driver STRING, fare DOUBLE, city STRING)
USING HUDI;
""",
    """
INSERT INTO fare_adjustment VALUES
(1695091554788,'e96c4396-3fad-413a-a942-4cb36106d721','rider-C','driver-M',-2.70 ,'san_francisco'),
(1695530237068,'3f3d9565-7261-40e6-9b39-b8aa784f95e2','rider-K','driver-U',64.20 ,'san_francisco'),
(1695241330902,'ea4c36ff-2069-4148-9927-ef8c1a5abd24','rider-H','driver-R',66.60 ,'sao_paulo'    ),
(1695115999911,'c8abbe79-8d89-47ea-b4ce-4d224bae5bfa','rider-J','driver-T',1.85,'chennai'      );
""",
    """
MERGE INTO hudi_table AS target
USING fare_adjustment AS source
ON target.uuid = source.uuid
WHEN MATCHED THEN UPDATE SET target.fare = target.fare + source.fare
WHEN NOT MATCHED THEN INSERT *
;
""",
)


def fares(sql: Sql, table: str = "hudi_table") -> dict[str, float]:
    return {rider: round(fare, 2) for rider, fare in sql(f"SELECT rider, fare FROM {table}")}


def test_the_sql_tab_runs(sql: Sql) -> None:
    sql(CREATE)
    sql(f"INSERT INTO hudi_table\nVALUES{TRIPS}")
    first = sql.table("hudi_table").timeline()[-1].requested
    assert len(sql("SELECT ts, fare, rider, driver, city FROM  hudi_table WHERE fare > 20.0;")) == 6

    sql("UPDATE hudi_table SET fare = 25.0 WHERE rider = 'rider-D';")
    assert fares(sql)["rider-D"] == 25.0
    for statement in MERGE:
        sql(statement)
    assert fares(sql) == {
        "rider-A": 19.1, "rider-C": 25.0, "rider-D": 25.0, "rider-E": 93.5, "rider-F": 34.15, "rider-G": 43.4,
        "rider-I": 41.06, "rider-J": 19.7, "rider-K": 64.2, "rider-H": 66.6,
    }  # fmt: skip
    sql("DELETE FROM hudi_table WHERE uuid = '3f3d9565-7261-40e6-9b39-b8aa784f95e2';")
    assert "rider-K" not in fares(sql)

    assert sql("SELECT * FROM hudi_table TIMESTAMP AS OF '20220307091628793' WHERE ts = 1;") == []
    assert sql("SELECT * FROM hudi_table TIMESTAMP AS OF '2022-03-07 09:16:28.100' WHERE ts = 1;") == []
    assert sql("SELECT * FROM hudi_table TIMESTAMP AS OF '2022-03-08' WHERE ts = 1;") == []
    assert len(fares(sql, f"hudi_table TIMESTAMP AS OF '{first}'")) == 8
    assert len(sql(f"SELECT * FROM hudi_table_changes('{sql.database}.hudi_table', 'latest_state', 'earliest');")) == 9
    until = "SELECT * FROM hudi_table_changes('hudi_table', 'latest_state', 'earliest', '202305160000');"
    assert sql(until) == []


INDEXED = """
CREATE TABLE hudi_indexed_table (
    ts BIGINT,
    uuid STRING,
    rider STRING,
    driver STRING,
    fare DOUBLE,
    city STRING
) USING HUDI
options(
    primaryKey ='uuid',
    hoodie.write.record.merge.mode = "COMMIT_TIME_ORDERING"
)
PARTITIONED BY (city);
"""


def test_the_index_part_of_the_sql_tab_runs(sql: Sql) -> None:
    options = ("hoodie.write.lock.provider", "hoodie.metadata.record.index.enable")
    try:
        sql(INDEXED)
        sql(f"INSERT INTO hudi_indexed_table VALUES{TRIPS.replace('087,', ',', 1)}")
        sql.spark.sql("SET hoodie.write.lock.provider = org.apache.hudi.client.transaction.lock.InProcessLockProvider;")
        sql("CREATE INDEX idx_bloom_driver ON hudi_indexed_table USING bloom_filters(driver) OPTIONS(expr='identity');")
        shown = {row[0] for row in sql("SHOW INDEXES FROM hudi_indexed_table;")}
        assert "expr_index_idx_bloom_driver" in shown
        named = "SELECT uuid, rider FROM hudi_indexed_table WHERE driver = 'driver-S';"
        assert sql(named) == [("3eeb61f7-c2b0-4636-99bd-5d7a5a1d2c04", "rider-I")]
        sql("CREATE INDEX idx_column_ts ON hudi_indexed_table USING column_stats(ts) "
            "OPTIONS(expr='from_unixtime', format = 'yyyy-MM-dd');")  # fmt: skip
        sql("SELECT * FROM hudi_indexed_table WHERE from_unixtime(ts, 'yyyy-MM-dd') = '2023-09-24';")
        sql.spark.sql("SET hoodie.metadata.record.index.enable=true;")
        sql("CREATE INDEX record_index ON hudi_indexed_table (uuid);")
        sql("CREATE INDEX idx_rider ON hudi_indexed_table (rider);")
        indexes = {row[0]: row[1:] for row in sql("SHOW INDEXES FROM hudi_indexed_table;")}
        assert indexes["secondary_index_idx_rider"] == ("secondary_index", "rider")
        assert indexes["expr_index_idx_column_ts"] == ("column_stats", "ts")
        assert len(sql("SELECT * FROM hudi_indexed_table WHERE rider = 'rider-E';")) == 1
        sql("UPDATE hudi_indexed_table SET rider = 'rider-B', driver = 'driver-N', ts = '1697516137' "
            "WHERE rider = 'rider-A';")  # fmt: skip
        moved = "SELECT uuid, rider FROM hudi_indexed_table WHERE from_unixtime(ts, 'yyyy-MM-dd') = '2023-10-17';"
        assert sql(moved) == [("334e26e9-8355-45cc-97c6-c31daf0df330", "rider-B")]
        assert len(sql("SELECT * FROM hudi_indexed_table WHERE driver = 'driver-N';")) == 1
        assert len(sql("SELECT * FROM hudi_indexed_table WHERE rider = 'rider-B';")) == 1
        for name in ("record_index", "secondary_index_idx_rider", "expr_index_idx_bloom_driver",
                     "expr_index_idx_column_ts"):  # fmt: skip
            sql(f"DROP INDEX {name} on hudi_indexed_table;")
        left = {row[0] for row in sql("SHOW INDEXES FROM hudi_indexed_table;")}
        assert not {name for name in left if name.startswith(("expr_index", "secondary_index", "record_index"))}
    finally:
        for option in options:
            sql.spark.conf.unset(option)


def test_the_python_tab_runs(sql: Sql, tmp_path: Path) -> None:
    spark: Any = sql.spark
    tableName, basePath = "trips_table", f"file://{tmp_path}/trips_table"  # noqa: N806  # as in the guide
    columns = ["ts", "uuid", "rider", "driver", "fare", "city"]
    data = [
        (1695159649087, "334e26e9-8355-45cc-97c6-c31daf0df330", "rider-A", "driver-K", 19.10, "san_francisco"),
        (1695091554788, "e96c4396-3fad-413a-a942-4cb36106d721", "rider-C", "driver-M", 27.70, "san_francisco"),
        (1695046462179, "9909a8b1-2d15-4d3d-8ec9-efc48c536a00", "rider-D", "driver-L", 33.90, "san_francisco"),
        (1695516137016, "e3cf430c-889d-4015-bc98-59bdce1e530c", "rider-F", "driver-P", 34.15, "sao_paulo"),
        (1695115999911, "c8abbe79-8d89-47ea-b4ce-4d224bae5bfa", "rider-J", "driver-T", 17.85, "chennai"),
    ]
    inserts = spark.createDataFrame(data).toDF(*columns)
    hudi_options = {"hoodie.table.name": tableName, "hoodie.datasource.write.partitionpath.field": "city"}
    inserts.write.format("hudi").options(**hudi_options).mode("overwrite").save(basePath)

    tripsDF = spark.read.format("hudi").load(basePath)  # noqa: N806
    tripsDF.createOrReplaceTempView("trips_table")
    try:
        assert spark.sql("SELECT uuid, fare, ts, rider, driver, city FROM  trips_table WHERE fare > 20.0").count() == 3
        meta = "SELECT _hoodie_commit_time, _hoodie_record_key, _hoodie_partition_path, rider, driver, fare"
        assert spark.sql(f"{meta} FROM trips_table").count() == 5

        updatesDf = spark.read.format("hudi").load(basePath)  # noqa: N806
        updatesDf = updatesDf.filter("rider == 'rider-D'").withColumn("fare", col("fare") * 10)  # noqa: N806
        updatesDf.write.format("hudi").options(**hudi_options).mode("append").save(basePath)

        deletesDF = spark.read.format("hudi").load(basePath).filter("rider == 'rider-F'")  # noqa: N806
        hudi_hard_delete_options = {**hudi_options, "hoodie.datasource.write.operation": "delete"}
        deletesDF.write.format("hudi").options(**hudi_hard_delete_options).mode("append").save(basePath)

        spark.read.format("hudi").load(basePath).createOrReplaceTempView("trips_table")
        distinct = "SELECT DISTINCT(_hoodie_commit_time) AS commitTime FROM  trips_table ORDER BY commitTime"
        commits = [row[0] for row in spark.sql(distinct).limit(50).collect()]
        begin = HudiTable.open(f"{tmp_path}/trips_table").timeline()[0].completed
        incremental_read_options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": begin,
        }
        spark.read.format("hudi").options(**incremental_read_options).load(basePath).createOrReplaceTempView(
            "trips_incremental"
        )
        changed = (
            "SELECT `_hoodie_commit_time`, fare, rider, driver, uuid, ts FROM  trips_incremental WHERE fare > 20.0"
        )
        assert [row["rider"] for row in spark.sql(changed).collect()] == ["rider-D"]
        assert len(commits) == 2
        as_of = spark.read.format("hudi").option("as.of.instant", "2021-07-28").load(basePath)
        assert as_of.count() == 0
    finally:
        spark.catalog.dropTempView("trips_table")
        spark.catalog.dropTempView("trips_incremental")
    sql(f"CREATE TABLE named USING hudi LOCATION '{basePath}'")
    assert fares(sql, "named") == {"rider-A": 19.1, "rider-C": 27.7, "rider-D": 339.0, "rider-J": 17.85}
