"""A script that was written for Apache Hudi could not run, or write another table, after `register(spark)`.

The steps of Apache Hudi's quick start, in its own option names; other formats must not notice anything.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as f

import pyhudi.spark
from pyhudi import HudiTable, Invalid, NotFound, Unsupported
from pyhudi.format.schema.conversion import META_FIELDS

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.name": "trips",
    "hoodie.upsert.shuffle.parallelism": 2,
    "hoodie.insert.shuffle.parallelism": 2,
}
OPERATION = "hoodie.datasource.write.operation"
BEGIN = "hoodie.datasource.read.begin.instanttime"
DDL = "ts long, uuid string, fare double, city string"


@pytest.fixture
def registered(spark: Any) -> Any:
    pyhudi.spark.register(spark)
    return spark


def trips(spark: Any, *rows: tuple[int, str, float, str]) -> Any:
    return spark.createDataFrame(list(rows), DDL)


def fares(frame: Any) -> dict[str, float]:
    return {row["uuid"]: row["fare"] for row in frame.select("uuid", "fare").collect()}


def test_the_quick_start_of_apache_hudi_runs(registered: Any, tmp_path: Path) -> None:
    spark, path = registered, str(tmp_path / "trips")
    inserts = trips(spark, (1, "a", 1.0, "oslo"), (1, "b", 2.0, "rome"), (1, "c", 3.0, "oslo"))
    inserts.write.format("hudi").options(**OPTIONS).mode("overwrite").save(path)
    first = spark.read.format("hudi").load(path).select("_hoodie_commit_time").first()[0]

    updates = trips(spark, (2, "a", 10.0, "oslo"), (0, "b", 20.0, "rome"), (2, "d", 4.0, "rome"))
    updates.write.format("hudi").options(**OPTIONS).option(OPERATION, "upsert").mode("append").save(path)
    frame = spark.read.format("hudi").load(path)
    frame.createOrReplaceTempView("trips_view")
    assert spark.sql("select count(*) n from trips_view where city = 'rome'").first()["n"] == 2
    assert fares(frame) == {"a": 10.0, "b": 2.0, "c": 3.0, "d": 4.0}
    assert frame.columns[:5] == list(META_FIELDS)

    gone = frame.where("city = 'oslo'").limit(1)
    gone.write.format("hudi").options(**OPTIONS).option(OPERATION, "delete").mode("append").save(path)
    assert spark.read.format("hudi").load(path).count() == 3

    past = spark.read.format("hudi").option("as.of.instant", first).load(path)
    assert fares(past) == {"a": 1.0, "b": 2.0, "c": 3.0}
    begin = HudiTable.open(path).timeline()[0].completed
    changes = (
        spark.read.format("hudi")
        .option("hoodie.datasource.query.type", "incremental")
        .option("hoodie.datasource.read.begin.instanttime", begin)
        .load(path)
    )
    assert {"d"} <= set(fares(changes)) <= {"a", "d", "c"}

    others = trips(spark, (9, "z", 9.0, "oslo"))
    others.write.format("hudi").options(**OPTIONS).option(OPERATION, "insert_overwrite").mode("append").save(path)
    assert set(fares(spark.read.format("hudi").load(path))) == {"b", "d", "z"}


def test_the_quick_start_without_a_key_runs_too(registered: Any, tmp_path: Path) -> None:
    """Keys are made up; updates and deletes are rows of a query, with their meta fields."""
    spark, path = registered, str(tmp_path / "trips")
    options = {"hoodie.table.name": "trips", "hoodie.datasource.write.partitionpath.field": "city"}
    inserts = trips(spark, (1, "a", 1.0, "oslo"), (1, "b", 2.0, "rome"), (1, "c", 3.0, "oslo"))
    inserts.write.format("hudi").options(**options).mode("overwrite").save(path)
    first = spark.read.format("hudi").load(path).select("_hoodie_commit_time").first()[0]

    updates = spark.read.format("hudi").load(path).filter("uuid == 'b'").withColumn("fare", f.col("fare") * 10)
    updates.write.format("hudi").option(OPERATION, "upsert").options(**options).mode("append").save(path)
    assert fares(spark.read.format("hudi").load(path)) == {"a": 1.0, "b": 20.0, "c": 3.0}

    again = spark.read.format("hudi").load(path).filter("uuid == 'c'").withColumn("fare", f.lit(30.0))
    again.write.format("hudi").options(**options).mode("append").save(path)
    assert fares(spark.read.format("hudi").load(path)) == {"a": 1.0, "b": 20.0, "c": 30.0}

    gone = spark.read.format("hudi").load(path).filter("uuid == 'a'")
    gone.write.format("hudi").options(**options).option(OPERATION, "delete").mode("append").save(path)
    assert fares(spark.read.format("hudi").load(path)) == {"b": 20.0, "c": 30.0}
    assert fares(spark.read.format("hudi").option("as.of.instant", first).load(path)) == {"a": 1.0, "b": 2.0, "c": 3.0}

    more = trips(spark, (2, "d", 4.0, "oslo"))
    more.write.format("hudi").options(**options).mode("append").save(path)
    assert fares(spark.read.format("hudi").load(path)) == {"b": 20.0, "c": 30.0, "d": 4.0}
    others = trips(spark, (9, "z", 9.0, "oslo"))
    others.write.format("hudi").options(**options).option(OPERATION, "insert_overwrite").mode("append").save(path)
    assert fares(spark.read.format("hudi").load(path)) == {"b": 20.0, "z": 9.0}


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert", "BULK_INSERT"])
def test_operations_are_those_of_the_table(registered: Any, tmp_path: Path, operation: str) -> None:
    path = str(tmp_path / "trips")

    for _ in range(2):
        rows = trips(registered, (1, "a", 1.0, "oslo"))
        rows.write.format("hudi").options(**OPTIONS).option(OPERATION, operation).mode("append").save(path)

    assert HudiTable.open(path).scan().to_arrow().num_rows == (1 if operation == "upsert" else 2)


def test_modes_are_those_of_spark(registered: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "trips")
    one, two = (trips(registered, (1, key, 1.0, "oslo")) for key in "ab")

    def save(rows: Any, mode: str | None) -> dict[str, float]:
        writer = rows.write.format("org.apache.hudi").options(**OPTIONS)
        (writer if mode is None else writer.mode(mode)).save(path)
        return fares(registered.read.format("hudi").load(path))

    assert set(save(one, None)) == {"a"}
    for mode in (None, "error", "errorifexists"):
        with pytest.raises(Invalid, match="a table is here already"):
            save(two, mode)
    assert set(save(two, "ignore")) == {"a"}
    assert set(save(two, "append")) == {"a", "b"}
    assert set(save(two, "Overwrite")) == {"b"}
    with pytest.raises(Exception, match=r"(?i)mode"):
        save(two, "sideways")


def test_options_may_come_from_anywhere(registered: Any, tmp_path: Path) -> None:
    rows = trips(registered, (1, "a", 1.0, "oslo"))
    base = {name: text for name, text in OPTIONS.items() if "partitionpath" not in name}
    flag = "hoodie.datasource.write.hive_style_partitioning"

    rows.write.options(**base).option(flag, True).format("hudi").partitionBy("city").save(str(tmp_path / "one"))
    rows.write.options(**base).option(flag, True).save(
        str(tmp_path / "two"), format="hudi", partitionBy="city", mode="append"
    )
    rows.write.format("parquet").options(**base).format("hudi").partitionBy(["city"]).save(
        path=str(tmp_path / "three"), **{flag: "true"}
    )
    rows.write.format("hudi").options(**base).partitionBy("city").option("path", str(tmp_path / "four")).option(
        flag, "true"
    ).save()

    for name in ("one", "two", "three", "four"):
        table = HudiTable.open(tmp_path / name)
        assert (table.name, table.partition_by, table.ordering) == ("trips", ("city",), ("ts",))
        assert [path.split("/")[0] for path in table.scan().files()] == ["city=oslo"]


PAYLOADS = "org.apache.hudi.common.model."
BUCKETED = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


@pytest.mark.parametrize("version", [8, *(pytest.param(version, marks=pytest.mark.long) for version in (6, 9))])
@pytest.mark.parametrize(
    "said, counts",
    [
        ({"hoodie.datasource.write.payload.class": f"{PAYLOADS}OverwriteWithLatestAvroPayload"}, "last"),
        ({"hoodie.compaction.payload.class": f"{PAYLOADS}OverwriteWithLatestAvroPayload"}, "last"),
        ({"hoodie.datasource.write.payload.class": f"{PAYLOADS}DefaultHoodieRecordPayload"}, "greatest"),
        ({"hoodie.datasource.write.payload.class": f"{PAYLOADS}EventTimeAvroPayload"}, "greatest"),
        ({"hoodie.datasource.write.payload.class": f"{PAYLOADS}PartialUpdateAvroPayload"}, "greatest"),
        ({"hoodie.datasource.write.payload.class": f"{PAYLOADS}OverwriteNonDefaultsWithLatestAvroPayload"}, "last"),
        ({"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}, "last"),
        ({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, "last"),
        ({"hoodie.populate.meta.fields": "false", **BUCKETED}, "greatest"),
        ({"hoodie.datasource.write.drop.partition.columns": "true"}, "greatest"),
        ({"hoodie.base.file.format": "ORC"}, "greatest"),
        ({"hoodie.partition.metafile.use.base.format": "true"}, "greatest"),
        ({"hoodie.bootstrap.index.enable": "false"}, "greatest"),
        ({"hoodie.table.timeline.timezone": "LOCAL"}, "greatest"),
    ],
    ids=lambda said: " ".join(said.values()) if isinstance(said, dict) else said,
)
def test_the_first_write_makes_a_table_of_the_facts_that_its_options_say(
    registered: Any, tmp_path: Path, said: dict[str, str], counts: str, version: int
) -> None:
    """Each later write says them again, as scripts do."""
    path, options = str(tmp_path / "t"), {**OPTIONS, **said, "hoodie.write.table.version": version}
    greater, smaller = (trips(registered, (ts, "a", float(ts), "oslo")) for ts in (5, 1))
    refused = ("PartialUpdate", "NonDefaults") if version == 6 else ()
    if any(word in text for word in refused for text in said.values()):
        with pytest.raises(Unsupported, match="table_version=9"):
            greater.write.format("hudi").options(**options).mode("append").save(path)
        assert not HudiTable.exists(path)
        return

    greater.write.format("hudi").options(**options).mode("append").save(path)
    smaller.write.format("hudi").options(**options).mode("append").save(path)

    rows = fares(registered.read.format("hudi").load(path))
    assert rows == {"last": {"a": 1.0}, "greatest": {"a": 5.0}}[counts]
    made = HudiTable.create(
        tmp_path / "made", name="trips", record_key="uuid", partition_by="city", ordering="ts", table_version=version,
        properties=said,
    )  # fmt: skip
    assert facts_of(HudiTable.open(path)) == facts_of(made)


def facts_of(table: HudiTable) -> dict[str, str]:
    """What the table stores, without what a write adds to it."""
    added = ("hoodie.table.metadata.", "hoodie.table.checksum", "hoodie.table.create.schema")
    return {name: text for name, text in table.properties.items() if not name.startswith(added)}


def test_an_overwrite_that_says_another_merge_mode_makes_another_table(registered: Any, tmp_path: Path) -> None:
    path, latest = str(tmp_path / "t"), f"{PAYLOADS}OverwriteWithLatestAvroPayload"
    said = {**OPTIONS, "hoodie.datasource.write.payload.class": latest}

    def save(mode: str, options: dict[str, object], ts: int) -> int:
        rows = trips(registered, (ts, "a", float(ts), "oslo"))
        rows.write.format("hudi").options(**options).mode(mode).save(path)
        return len(HudiTable.open(path).timeline())

    assert save("append", OPTIONS, 5) == 1
    with pytest.raises(Invalid, match="has 'EVENT_TIME_ORDERING' as its merge mode"):
        save("append", said, 6)
    assert save("overwrite", said, 7) == 1
    assert save("overwrite", said, 8) == 2  # the same facts: a commit, and history stays
    assert save("append", said, 3) == 3
    assert fares(registered.read.format("hudi").load(path)) == {"a": 3.0}


def test_an_unknown_option_names_the_nearest(registered: Any, tmp_path: Path) -> None:
    rows = trips(registered, (1, "a", 1.0, "oslo"))
    writer = rows.write.format("hudi").options(**OPTIONS)

    with pytest.raises(Invalid, match=r"hoodie\.datasource\.write\.operation"):
        writer.option("hoodie.datasource.write.operatoin", "upsert").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()
    rows.write.format("hudi").options(**OPTIONS).save(str(tmp_path / "t"))
    with pytest.raises(Invalid, match=r"hoodie\.datasource\.query\.type"):
        registered.read.format("hudi").option("hoodie.datasource.query.typ", "snapshot").load(str(tmp_path / "t"))


@pytest.mark.parametrize(
    "said, follow",
    [
        ({}, 1),
        ({"hoodie.datasource.compaction.async.enable": "false", "hoodie.compact.inline.max.delta.commits": "2"}, 3),
        ({"hoodie.datasource.compaction.async.enable": "true"}, 0),
        pytest.param({"hoodie.compact.inline.max.delta.commits": "2"}, 3, marks=pytest.mark.long),
        pytest.param({"hoodie.compact.inline": "false"}, 0, marks=pytest.mark.long),
        pytest.param({"hoodie.compact.schedule.inline": "true"}, 0, marks=pytest.mark.long),
    ],
    ids=str,
)
@pytest.mark.parametrize("by_sql", [False, pytest.param(True, marks=pytest.mark.long)], ids=["DataFrame", "SQL"])
def test_compactions_follow_batches_as_in_apache_hudi(
    registered: Any, tmp_path: Path, said: dict[str, str], follow: int, by_sql: bool
) -> None:
    """Seen: of seven upserts, 1.0.2 and 1.2.0 compact after the fifth; after each second one where told so."""
    path = str(tmp_path / "t")
    options = {**OPTIONS, **said, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    if by_sql:
        stated = ", ".join(f"'{name}' = '{text}'" for name, text in said.items())
        registered.sql(
            f"CREATE TABLE compacted ({DDL}) USING hudi LOCATION '{path}' TBLPROPERTIES "
            f"(type = 'mor', primaryKey = 'uuid', preCombineField = 'ts'{', ' + stated if stated else ''})"
        )

    for ts in range(7):
        if by_sql:
            registered.sql(f"INSERT INTO compacted VALUES ({ts}, 'a', {ts}.5, 'oslo')")
        else:
            rows = trips(registered, (ts, "a", ts + 0.5, "oslo"))
            rows.write.format("hudi").options(**options).mode("append").save(path)

    assert fares(registered.read.format("hudi").load(path)) == {"a": 6.5}
    assert [instant.action for instant in HudiTable.open(path).timeline()].count("commit") == follow
    if by_sql:
        registered.sql("DROP TABLE compacted")


def test_options_that_are_none_of_hudis_are_passed_over(registered: Any, tmp_path: Path) -> None:
    """Scripts of other services say them, and Spark hands on whatever is said."""
    others = {"className": "org.apache.hudi", "header": "true", "mergeSchema": "true"}
    rows, path = trips(registered, (1, "a", 1.0, "oslo")), str(tmp_path / "t")

    rows.write.format("hudi").options(**OPTIONS, **others).mode("append").save(path)
    rows.write.format("hudi").options(**OPTIONS, **others).mode("overwrite").save(path)

    named = rows.write.format("hudi").options(**OPTIONS, **others)
    for mode in ("append", "append", "overwrite"):
        named.mode(mode).saveAsTable("trips")
    rows.writeTo("trips").options(**others).append()
    rows.write.options(**others).insertInto("trips")
    assert fares(registered.table("trips")) == {"a": 1.0}
    registered.sql("DROP TABLE trips")

    assert fares(registered.read.format("hudi").options(**others).load(path)) == {"a": 1.0}
    with pytest.raises(Invalid, match=r"nearest known name is 'as\.of\.instant'"):
        registered.read.format("hudi").option("as.of.instnat", "2026-11-21").load(path)


def test_overwrite_keeps_the_old_table_when_the_new_one_cannot_be(registered: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "trips")
    rows = trips(registered, (1, "a", 1.0, "oslo"))
    rows.write.format("hudi").options(**OPTIONS).save(path)
    wrong: list[dict[str, object]] = [
        {**OPTIONS, "hoodie.datasource.write.recordkey.field": "no_such"},
        {**OPTIONS, "hoodie.parquet.max.file.size": "huge"},
        {name: text for name, text in OPTIONS.items() if "table.name" not in name and "write.table" not in name},
    ]

    for options in wrong:
        with pytest.raises(Invalid):
            rows.write.format("hudi").options(**options).mode("overwrite").save(path)

    assert fares(registered.read.format("hudi").load(path)) == {"a": 1.0}


def test_other_formats_do_not_notice(registered: Any, tmp_path: Path) -> None:
    pyhudi.spark.register(registered)
    pyhudi.spark.register(registered)
    rows = registered.range(6).selectExpr("id", "id % 2 part")
    root = str(tmp_path)

    rows.write.format("csv").option("header", True).option("sep", ";").mode("overwrite").save(f"{root}/csv")
    rows.write.csv(f"{root}/csv", header=True, sep=";", mode="overwrite")
    found = registered.read.format("csv").options(header=True, sep=";").schema("id long, part long").load(f"{root}/csv")
    assert sorted(found.collect()) == sorted(rows.collect())
    rows.write.json(f"{root}/json", mode="append")
    assert registered.read.json(f"{root}/json").count() == 6
    rows.write.mode("overwrite").partitionBy("part").parquet(f"{root}/parquet")
    rows.write.save(f"{root}/parquet", mode="overwrite", partitionBy="part")
    assert registered.read.load(f"{root}/parquet").where("part = 1").count() == 3
    assert registered.read.load([f"{root}/parquet/part=0", f"{root}/parquet/part=1"]).count() == 6
    assert registered.read.format("hudi").format("parquet").load(f"{root}/parquet").count() == 6
    with pytest.raises(Exception, match=r"already exists|PATH_ALREADY_EXISTS"):
        rows.write.parquet(f"{root}/parquet")


def sql_of(text: str) -> Callable[[Any, str], Any]:
    return lambda spark, path: spark.sql(text)


REFUSED = {
    **{
        statement: (sql_of(statement), "createOrReplaceTempView")
        for statement in (
            "CREATE TEMPORARY VIEW t USING hudi OPTIONS (path '/nowhere')",
            "CREATE OR REPLACE TEMP VIEW t USING org.apache.hudi OPTIONS (path '/nowhere')",
        )
    },
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_there_says_what_to_use(what: str, registered: Any, tmp_path: Path) -> None:
    call, text = REFUSED[what]

    with pytest.raises(Unsupported, match=re.escape(text)):
        call(registered, str(tmp_path))


def test_sql_of_other_formats_keeps_its_own_errors(registered: Any) -> None:
    with pytest.raises(Exception, match=r"DATA_SOURCE_NOT_FOUND|Failed to find") as error:
        registered.sql("CREATE TABLE t (id INT) USING hudi_of_others")
    assert not isinstance(error.value, Unsupported)
    assert registered.sql("SELECT 'DATA_SOURCE_NOT_FOUND: hudi' AS said").count() == 1


def test_the_name_of_the_format_is_taken_in_any_case_of_letters(registered: Any, tmp_path: Path) -> None:
    rows, path = trips(registered, (1, "a", 1.0, "oslo")), str(tmp_path / "trips")

    rows.write.format("HUDI").options(**OPTIONS).mode("append").save(path)

    assert fares(registered.read.format("Hudi").load(path)) == {"a": 1.0}


@pytest.mark.parametrize("has_logs", [False, True], ids=["base files", "logs"])
def test_a_path_below_a_table_is_that_of_its_partitions(registered: Any, tmp_path: Path, has_logs: bool) -> None:
    """Scripts of old releases load `path + "/*/*"`, or the folder of a partition."""
    path = str(tmp_path / "t")
    options = {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ" if has_logs else "COPY_ON_WRITE"}
    rows = [(1, "a", 1.0, "no/oslo"), (1, "b", 2.0, "no/bergen"), (1, "c", 3.0, "it's_%/rome"), (1, "d", 4.0, "no2")]
    for ts in (1, 2):
        frame = trips(registered, *((ts, *row[1:]) for row in rows))
        frame.write.format("hudi").options(**options).mode("append").save(path)

    def keys(below: str, **read: str) -> str:
        return "".join(sorted(fares(registered.read.format("hudi").options(**read).load(f"{path}{below}"))))

    for below in ("", "/", "/*", "/*/*", "/*/*/*/*"):
        assert keys(below) == "abcd"
    assert keys("/no") == keys("/no/*") == keys("/no/*/*") == "ab"
    assert keys("/no/oslo") == keys("/no/oslo/") == keys("/no/oslo/*") == "a"
    assert keys("/it's_%") == "c"
    assert keys("/no2/*") == "d"
    assert keys("/no", **{"pyhudi.where": "fare > 1.5"}) == "b"
    for below in ("/n", "/no/os*", "/*/oslo", "/no/oslo/x.parquet", "/{no,no2}"):
        with pytest.raises(NotFound, match=rf"below the table '{path}'; load that"):
            keys(below)
    with pytest.raises(NotFound, match="expected the path of a table, whose changes"):
        keys("/no", **{"hoodie.datasource.query.type": "incremental", BEGIN: "0"})
    with pytest.raises(NotFound, match="check the path, or create a table"):
        registered.read.format("hudi").load(f"{tmp_path}/x")


def test_calls_of_a_writer_that_would_be_ignored_are_refused(registered: Any, tmp_path: Path) -> None:
    rows, path = trips(registered, (1, "a", 1.0, "oslo")), str(tmp_path / "t")

    def writer() -> Any:
        return rows.write.format("hudi").options(**OPTIONS).mode("append")

    with pytest.raises(Invalid, match=r"partitionBy\(uuid\).*'city' there"):
        writer().partitionBy("uuid").save(path)
    with pytest.raises(Invalid, match=r"bucketBy.*hoodie\.index\.type=BUCKET"):
        writer().bucketBy(2, "uuid").save(path)
    with pytest.raises(Invalid, match=r"sortBy.*hoodie\.bulkinsert\.sort\.mode"):
        writer().sortBy("uuid").save(path)
    assert not HudiTable.exists(path)
    writer().partitionBy("city").save(path)


def test_a_sync_needs_a_session_with_a_metastore(registered: Any, tmp_path: Path) -> None:
    asked = OPTIONS | {"hoodie.datasource.hive_sync.enable": "true"}
    with pytest.raises(Unsupported, match="enableHiveSupport"):
        trips(registered, (1, "a", 1.0, "oslo")).write.format("hudi").options(**asked).save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_a_moment_before_the_first_write_has_the_columns_and_no_rows(registered: Any, tmp_path: Path) -> None:
    trips(registered, (1, "a", 1.0, "oslo")).write.format("hudi").options(**OPTIONS).save(str(tmp_path))
    then = registered.read.format("hudi").option("as.of.instant", "20200101000000000").load(str(tmp_path))
    assert then.columns == registered.read.format("hudi").load(str(tmp_path)).columns
    assert then.select("uuid", "fare").collect() == []
