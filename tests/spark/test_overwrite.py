"""`mode("overwrite")` could lose the old rows before it has the new ones: whatever they are, it is all or nothing."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

import pyhudi.spark
from pyhudi import Conflict, HudiError, HudiTable, Invalid
from pyhudi.txn.locks.guard import LocalGuard
from pyhudi.txn.locks.waiting import WAIT_OPTION
from tests.spark.handovers import handed

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
MERGE_ON_READ = {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
OF_VERSION_6 = {**MERGE_ON_READ, "hoodie.write.table.version": "6"}
OTHER_FACTS = {**OPTIONS, "hoodie.datasource.write.hive_style_partitioning": "true"}


@pytest.fixture
def registered(spark: Any) -> Any:
    pyhudi.spark.register(spark)
    return spark


def rows(spark: Any, *values: tuple[int, Any, float, str]) -> Any:
    return spark.createDataFrame(list(values), "ts int, uuid string, fare double, city string")


def save(frame: Any, path: str, options: dict[str, str], mode: str = "overwrite") -> None:
    frame.write.format("hudi").options(**options).mode(mode).save(path)


def fares(path: str, **arguments: Any) -> dict[str, Any]:
    found = HudiTable.open(path).scan(columns=["uuid", "fare"], **arguments).to_arrow().to_pylist()
    assert len({row["uuid"] for row in found}) == len(found)
    return {row["uuid"]: row["fare"] for row in found}


def made(spark: Any, path: str, options: dict[str, str]) -> str:
    """A table with a log, where its type has logs."""
    save(rows(spark, (1, "a", 1.0, "oslo"), (1, "b", 2.0, "rome")), path, options)
    save(rows(spark, (2, "a", 10.0, "oslo")), path, options, "append")
    return path


@handed(
    "options",
    [OPTIONS, MERGE_ON_READ, OF_VERSION_6],
    [("files", OF_VERSION_6), ("shuffle", MERGE_ON_READ)],
)
def test_a_table_is_overwritten_by_a_query_of_itself(
    registered: Any, tmp_path: Path, handover: str, options: dict[str, str]
) -> None:
    path = made(registered, str(tmp_path / "t"), options)
    itself = registered.read.format("hudi").load(path)

    save(itself.where("fare > 5").withColumn("fare", f.col("fare") + 1), path, options)

    assert fares(path) == {"a": 11.0}
    timeline = HudiTable.open(path).timeline()
    assert [i.action for i in timeline][-1] == "replacecommit"
    assert fares(path, as_of=timeline[1].requested) == {"a": 10.0, "b": 2.0}


@handed(
    "options",
    [OTHER_FACTS, {**OTHER_FACTS, **MERGE_ON_READ}],
    [("files", OTHER_FACTS), ("shuffle", {**OTHER_FACTS, **MERGE_ON_READ})],
)
def test_a_table_with_other_facts_is_made_of_a_query_of_the_old_one(
    registered: Any, tmp_path: Path, handover: str, options: dict[str, str]
) -> None:
    path = made(registered, str(tmp_path / "t"), MERGE_ON_READ)
    itself = registered.read.format("hudi").load(path)

    save(itself, path, options)

    assert fares(path) == {"a": 10.0, "b": 2.0}
    assert HudiTable.open(path).properties["hoodie.datasource.write.hive_style_partitioning"] == "true"
    assert len(HudiTable.open(path).timeline()) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["t"]
    save(rows(registered, (3, "c", 3.0, "oslo")), path, options, "append")
    assert set(fares(path)) == {"a", "b", "c"}


@pytest.mark.parametrize("version", ["9", pytest.param("6", marks=pytest.mark.long)])
def test_an_overwrite_that_says_no_version_keeps_that_of_the_table(
    registered: Any, tmp_path: Path, version: str
) -> None:
    """Options say a version once, if at all. By that of new tables the history would end, and time travel with it."""
    path = made(registered, str(tmp_path / "t"), {**OPTIONS, "hoodie.write.table.version": version})

    save(rows(registered, (3, "c", 3.0, "oslo")), path, OPTIONS)
    table = HudiTable.open(path)
    assert (table.table_version, len(table.timeline())) == (int(version), 3)
    assert fares(path, as_of=table.timeline()[1].requested) == {"a": 10.0, "b": 2.0}

    save(rows(registered, (4, "d", 4.0, "oslo")), path, OTHER_FACTS)
    assert HudiTable.open(path).table_version == int(version)
    assert fares(path) == {"d": 4.0}


def test_other_columns_make_another_table(registered: Any, tmp_path: Path) -> None:
    path = made(registered, str(tmp_path / "t"), OPTIONS)

    save(rows(registered, (1, "z", 1.0, "oslo")).withColumn("fare", f.lit("free")), path, OPTIONS)

    assert fares(path) == {"z": "free"}
    save(rows(registered, (1, "y", 1.0, "oslo")), path, OPTIONS)
    assert fares(path) == {"y": 1.0}


@handed("options", [MERGE_ON_READ, OTHER_FACTS], [("files", MERGE_ON_READ), ("shuffle", OTHER_FACTS)])
def test_rows_that_cannot_be_written_leave_the_old_ones(
    registered: Any, tmp_path: Path, handover: str, options: dict[str, str]
) -> None:
    path = made(registered, str(tmp_path / "t"), MERGE_ON_READ)
    good = rows(registered, (1, "x", 1.0, "oslo"), (1, "y", 1.0, "oslo"))
    fails = f.udf(lambda key: 1 / (key != "y"), "double")

    for bad in (
        rows(registered, (1, "x", 1.0, "oslo"), (1, None, 1.0, "oslo")),
        good.withColumn("extra", f.create_map(f.lit(1), f.col("uuid"))),
        good.withColumn("fare", fails("uuid")),
    ):
        with pytest.raises((HudiError, PySparkException), match=r"uuid|extra|ZeroDivisionError"):
            save(bad, path, options)

        assert fares(path) == {"a": 10.0, "b": 2.0}
        assert (
            sum(instant.is_completed for instant in HudiTable.open(path).timeline() if instant.action != "rollback")
            == 2
        )


@pytest.mark.parametrize("options", [MERGE_ON_READ, OTHER_FACTS])
def test_beside_a_writer_the_old_rows_stay(registered: Any, tmp_path: Path, options: dict[str, str]) -> None:
    path = made(registered, str(tmp_path / "t"), MERGE_ON_READ)

    with LocalGuard(path).acquire("upsert", "20261121093000000"), pytest.raises(Conflict):
        save(rows(registered, (1, "z", 1.0, "oslo")), path, {**options, WAIT_OPTION: "0"})

    assert fares(path) == {"a": 10.0, "b": 2.0}


@pytest.mark.parametrize("operation,expected", [("upsert", ["x", "y"]), ("insert", ["x", "x", "y"])])
def test_an_overwrite_stores_what_a_first_write_would(
    registered: Any, tmp_path: Path, operation: str, expected: list[str]
) -> None:
    options = {**MERGE_ON_READ, "hoodie.datasource.write.operation": operation}
    doubled = rows(registered, (1, "x", 1.0, "oslo"), (2, "x", 2.0, "oslo"), (1, "y", 1.0, "rome"))
    path = made(registered, str(tmp_path / "t"), MERGE_ON_READ)

    save(doubled, path, options)

    found = HudiTable.open(path).scan(columns=["uuid"]).to_arrow()
    assert sorted(found["uuid"].to_pylist()) == expected


@pytest.mark.parametrize("options", [OPTIONS, OTHER_FACTS, {k: v for k, v in OPTIONS.items() if "key" not in k}])
def test_no_rows_make_an_empty_table(registered: Any, tmp_path: Path, options: dict[str, str]) -> None:
    path = made(registered, str(tmp_path / "t"), OPTIONS)

    save(rows(registered), path, options)

    assert HudiTable.open(path).scan().to_arrow().num_rows == 0


@pytest.mark.parametrize("options", [OPTIONS, MERGE_ON_READ])
def test_a_table_without_keys_is_overwritten_in_a_commit(
    registered: Any, tmp_path: Path, options: dict[str, str]
) -> None:
    """Rows of other sources first, then rows of the table itself, which carry the keys that were made up."""
    keyless = {name: text for name, text in options.items() if "recordkey" not in name}
    path = made(registered, str(tmp_path / "t"), keyless)

    save(rows(registered, (1, "x", 1.0, "oslo"), (1, "x", 1.0, "oslo")), path, keyless)
    save(registered.read.format("hudi").load(path), path, keyless)

    assert HudiTable.open(path).scan(columns=["uuid"]).to_arrow()["uuid"].to_pylist() == ["x", "x"]
    assert [i.action for i in HudiTable.open(path).timeline()][-2:] == ["replacecommit", "replacecommit"]
    with pytest.raises(Invalid, match="_hoodie_record_key"):
        save(rows(registered), path, {**keyless, "hoodie.datasource.write.operation": "upsert"})


def test_a_reader_under_way_reads_on(registered: Any, tmp_path: Path) -> None:
    path = made(registered, str(tmp_path / "t"), MERGE_ON_READ)
    scan = HudiTable.open(path).scan(columns=["uuid"])

    save(rows(registered, (1, "z", 1.0, "oslo")), path, MERGE_ON_READ)

    assert sorted(pa.table(scan)["uuid"].to_pylist()) == ["a", "b"]
