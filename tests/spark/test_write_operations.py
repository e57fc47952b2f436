"""Overwrites, inserts that drop what is stored and sorted bulk inserts could do other things on Spark than in this
process; scripts that were written for Apache Hudi could overwrite or delete more than they ask for.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

import pyhudi.spark
from pyhudi import HudiTable, Invalid, NotFound
from pyhudi.engine.spark.write.key_ranges import bounds_of
from pyhudi.format.names import BaseFileName
from tests.spark.handovers import handed
from tests.spark.test_writes import Twins, rows_of_all_types
from tests.support.spark_frames import on_spark

pytestmark = pytest.mark.spark

POLICY = "hoodie.datasource.insert.dup.policy"
SORT = "hoodie.bulkinsert.sort.mode"
COMBINE = "hoodie.combine.before.insert"
OPERATION = "hoodie.datasource.write.operation"
TO_DELETE = "hoodie.datasource.write.partitions.to.delete"
SMALL = {
    "hoodie.parquet.max.file.size": "6000",
    "hoodie.copyonwrite.record.size.estimate": "100",
    "hoodie.index.bloom.num_entries": "10",
}


def test_replacements_on_spark_are_those_in_this_process(spark: Any, tmp_path: Path, handover: str) -> None:
    twins = Twins(spark, tmp_path, record_key="id", partition_by="part", ordering="ts")
    twins.write("bulk_insert", rows_of_all_types(0, 60, version=2))

    overwritten = twins.write("insert_overwrite", rows_of_all_types(0, 20, version=1, parts=("p1", "p4")))
    for table in (twins.on_spark, twins.here):
        assert table.delete_partitions(["p2"]).replaced == 1
    twins.compare()
    twins.write("upsert", rows_of_all_types(0, 30, version=3))
    twins.write("insert_overwrite_table", rows_of_all_types(5, 15, version=1))
    emptied = twins.write("insert_overwrite_table", rows_of_all_types(0, 0, version=1))

    assert (overwritten.replaced, emptied.replaced) == (1, 3)
    assert twins.on_spark.scan().to_arrow().num_rows == 0


def test_inserts_on_spark_drop_and_refuse_what_they_do_in_this_process(
    spark: Any, tmp_path: Path, handover: str
) -> None:
    twins = Twins(spark, tmp_path, record_key="id", partition_by="part", ordering="ts")
    twins.write("bulk_insert", rows_of_all_types(0, 40, version=2))
    doubled = pa.concat_tables([rows_of_all_types(30, 60, version=3), rows_of_all_types(50, 60, version=9)])

    assert twins.write("insert", doubled, {POLICY: "drop"}).inserted == 20
    assert twins.write("insert", doubled, {POLICY: "drop"}).inserted == 0

    fresh = rows_of_all_types(59, 70, version=1)
    for table, data in ((twins.on_spark, on_spark(spark, fresh, tmp_path)), (twins.here, fresh)):
        with pytest.raises(Invalid, match="found 1 that are stored already, such as 'k0059'"):
            table.insert(data, options={POLICY: "fail"})
    assert len(twins.on_spark.timeline()) == len(twins.here.timeline()) == 3


def keys_by_file(table: HudiTable) -> dict[str, list[list[str]]]:
    """Keys by partition and file, in the order in which they lie; files by their first key."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in table.scan().to_arrow().to_pylist():
        name = BaseFileName.parse(row["_hoodie_file_name"])
        assert name is not None
        found.setdefault(row["part"], {}).setdefault(name.file_id, []).append(row["id"])
    return {part: sorted(of.values()) for part, of in found.items()}


UNTAGGED = pytest.mark.parametrize("handover", ["files", "shuffle"], indirect=True)
"""The ways of rows whose keys are not looked up."""


@handed(
    "mode, combines",
    [(mode, combines) for mode in ("GLOBAL_SORT", "PARTITION_SORT") for combines in ("false", "true")],
    [
        ("files", ("GLOBAL_SORT", "true")), ("files", ("PARTITION_SORT", "false")),
        ("shuffle", ("GLOBAL_SORT", "false")), ("shuffle", ("PARTITION_SORT", "true")),
        ("gathered", ("GLOBAL_SORT", "false")),
    ],
)  # fmt: skip
def test_a_sorted_bulk_insert_lays_keys_down_in_order(
    spark: Any, tmp_path: Path, handover: str, mode: str, combines: str
) -> None:
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="part", ordering="ts", properties=SMALL
    )
    rows = spark.range(0, 1200, 1, 5).selectExpr(
        "concat('k', lpad(id * 7919 % 600, 4, '0')) id", "concat('p', id * 7919 % 600 % 2) part", "id div 600 ts"
    )

    result = table.bulk_insert(rows, options={SORT: mode, COMBINE: combines})

    assert result.inserted == (600 if combines == "true" else 1200)
    if combines == "true":
        assert set(table.scan(columns=["ts"]).to_arrow()["ts"].to_pylist()) == {1}
    for part, files in keys_by_file(table).items():
        keys = [key for of in files for key in of]
        assert len(files) > 3
        assert all(of == sorted(of) for of in files)
        assert sorted(set(keys)) == [f"k{n:04}" for n in range(600) if f"p{n % 2}" == part]
        if mode == "GLOBAL_SORT":
            assert keys == sorted(keys), "two files share a range of keys"
            assert max(map(len, files)) < 3 * len(keys) / len(files), "one file got nearly everything"


@UNTAGGED
def test_a_sorted_input_is_evaluated_once(spark: Any, tmp_path: Path, handover: str) -> None:
    """Sorting by range samples its input first; a random one would be drawn anew."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part", properties=SMALL)
    log = str(tmp_path / "evaluated")
    rows = spark.range(0, 300, 1, 2).selectExpr("id", "concat('p', id % 3) part")

    def noting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with open(log, "a") as file:
                file.writelines(f"{value}\n" for value in batch.column("id").to_pylist())
            yield batch

    table.bulk_insert(rows.mapInArrow(noting, rows.schema), options={SORT: "GLOBAL_SORT"})

    assert sorted(int(line) for line in Path(log).read_text().split()) == list(range(300))
    assert table.scan().to_arrow().num_rows == 300


def test_bounds_of_ranges_follow_the_planned_rows() -> None:
    keys = [f"{n:02}" for n in range(100)]

    assert bounds_of(keys, [(7, 50), (8, 25), (9, 25)]) == ["50", "75"]
    assert bounds_of(["a"], [(1, 5), (2, 5)]) == ["a"]


# As scripts for Apache Hudi say it.

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
DDL = "ts long, uuid string, fare double, city string"
STORED = [(1, "a", 1.0, "oslo"), (1, "b", 2.0, "rome"), (1, "c", 3.0, "bonn"), (1, "d", 4.0, "oslo")]


class Script:
    """A table of `format("hudi")` and its rows."""

    def __init__(self, spark: Any, path: str) -> None:
        self.spark, self.path = spark, path
        self.save(STORED)

    def save(self, rows: list[tuple[Any, ...]], mode: str = "append", **options: str) -> None:
        asked = {name.replace("__", "."): of for name, of in options.items()}
        frame = self.spark.createDataFrame(rows, DDL)
        frame.write.format("hudi").options(**OPTIONS).options(**asked).mode(mode).save(self.path)

    def fares(self) -> dict[str, float]:
        rows = self.spark.read.format("hudi").load(self.path).select("uuid", "fare").collect()
        return {row["uuid"]: row["fare"] for row in rows}


@pytest.fixture
def script(spark: Any, tmp_path: Path) -> Script:
    pyhudi.spark.register(spark)
    return Script(spark, str(tmp_path / "trips"))


def test_a_script_overwrites_partitions_and_tables(script: Script) -> None:
    new = [(0, "x", 9.0, "oslo")]

    script.save(new, **{OPERATION: "insert_overwrite"})
    assert script.fares() == {"x": 9.0, "b": 2.0, "c": 3.0}
    script.save([(0, "y", 8.0, "rome")], mode="overwrite", **{OPERATION: "insert_overwrite"})
    assert script.fares() == {"x": 9.0, "y": 8.0, "c": 3.0}
    script.save(new, mode="overwrite", **{OPERATION: "insert_overwrite_table"})
    assert script.fares() == {"x": 9.0}
    table = HudiTable.open(script.path)
    assert [i.action for i in table.timeline()] == ["commit", *["replacecommit"] * 3], "the table was made anew"
    script.save(STORED, mode="overwrite")
    assert [i.action for i in HudiTable.open(script.path).timeline()] == ["commit", *["replacecommit"] * 4]
    assert len(script.fares()) == len({row[1] for row in STORED})


def test_a_script_overwrites_a_table_that_is_not_there_yet(spark: Any, tmp_path: Path) -> None:
    pyhudi.spark.register(spark)
    frame = spark.createDataFrame(STORED, DDL)
    for operation in ("insert_overwrite", "insert_overwrite_table"):
        path = str(tmp_path / operation)
        frame.write.format("hudi").options(**OPTIONS, **{OPERATION: operation}).mode("overwrite").save(path)
        assert spark.read.format("hudi").load(path).count() == 4


def test_a_script_deletes_partitions_by_names_patterns_and_rows(script: Script) -> None:
    delete = {OPERATION: "delete_partition"}

    with pytest.raises(NotFound, match="partition 'york'"):
        script.save(STORED, **delete, **{TO_DELETE: "rome,york"})
    for mode in ("overwrite", "ignore", "error"):
        with pytest.raises(Invalid, match="expected 'append'"):
            script.save(STORED, mode=mode, **delete)
        with pytest.raises(Invalid, match="expected 'append'"):
            script.save(STORED, mode=mode, **{OPERATION: "delete"})
    assert len(script.fares()) == 4

    script.save(STORED, **delete, **{TO_DELETE: "bon*"})
    assert script.fares() == {"a": 1.0, "b": 2.0, "d": 4.0}
    script.save([(9, "any", 0.0, "oslo")], **delete)
    assert script.fares() == {"b": 2.0}
    frame = script.spark.createDataFrame(STORED, DDL)
    with pytest.raises(NotFound, match="expected a table to delete partitions of"):
        frame.write.format("hudi").options(**OPTIONS, **delete).mode("append").save(script.path + "-other")


def test_a_script_that_drops_duplicates_inserts(script: Script) -> None:
    """Apache Hudi takes its default, an upsert, for an insert then: stored rows must stay as they are."""
    rows = [(9, "a", 99.0, "oslo"), (9, "new", 5.0, "oslo")]

    script.save(rows, **{"hoodie.datasource.write.insert.drop.duplicates": "true"})

    assert script.fares() == {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "new": 5.0}
    with pytest.raises(Invalid, match="stored already"):
        script.save(rows, **{OPERATION: "upsert", POLICY: "fail"})


def test_a_script_deletes_by_the_payload_of_deletes(script: Script) -> None:
    payload = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.EmptyHoodieRecordPayload"}

    script.save([(0, "a", 0.0, "oslo"), (9, "nobody", 0.0, "rome")], **payload)

    assert script.fares() == {"b": 2.0, "c": 3.0, "d": 4.0}


def test_a_script_deletes_by_a_column_that_marks_deletes(script: Script) -> None:
    """The table has no such column yet, and a literal of Spark is never null."""
    frame = script.spark.read.format("hudi").load(script.path).where("uuid = 'a'").select("ts", "uuid", "fare", "city")
    marked = frame.withColumn("_hoodie_is_deleted", f.lit(True))

    marked.write.format("hudi").options(**OPTIONS, **{OPERATION: "upsert"}).mode("append").save(script.path)

    assert script.fares() == {"b": 2.0, "c": 3.0, "d": 4.0}


def test_a_script_soft_deletes_with_nulls(script: Script) -> None:
    frame = script.spark.read.format("hudi").load(script.path).where("uuid = 'a'").select("ts", "uuid", "fare", "city")
    frame = frame.withColumn("fare", f.lit(None).cast("double")).withColumn("ts", f.col("ts") + 1)

    frame.write.format("hudi").options(**OPTIONS, **{OPERATION: "upsert"}).mode("append").save(script.path)

    assert script.fares() == {"a": None, "b": 2.0, "c": 3.0, "d": 4.0}
