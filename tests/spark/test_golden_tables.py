"""On Spark we could read a table that Apache Hudi wrote other than Apache Hudi reads it.

The answers of golden tables, read by `Scan.to_spark` and by `spark.read.format("hudi")` of a registered
session, must have the rows that Apache Hudi gave.
"""

from typing import Any

import pytest

import pyhudi.spark
from pyhudi import HudiTable
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenAnswer, GoldenTable, GoldenTables, golden_answers, golden_names
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark

FAMILIES = (
    *("nonpart", "part", "hive", "complex", "bulk_insert", "small_files", "event_time", "commit_time"),
    *("urlenc", "schema_promote", "list3", "no_meta", "insert_overwrite", "inflight"),
)
LOGGED = ("avro", "parquet_log", "logonly", "delete_field", "partial_update", "compact_scheduled", "replace", "no_meta")
"""Families of merge-on-read tables: what they share with the others is the same code in process."""
NAMES = tuple(
    name
    for name in golden_names()
    for kind, _, rest in [name.partition("_")]
    if rest[: rest.rindex("_v")] in {"cow": FAMILIES, "mor": LOGGED}.get(kind, ())
)
EVOLVED = ("cow_evo_columns_v9_h120", "mor_evo_nested_v9_h120")
OLD = ("cow_part_v2_h090", "mor_part_v2_h090")
ANSWERS = tuple(answer for name in (*NAMES, *EVOLVED, *OLD) for answer in golden_answers(name))
BY_FORMAT = tuple(
    answer
    for answer in ANSWERS
    if answer.table.startswith(("cow_part_", "cow_nonpart_", "cow_hive_", "mor_parquet_log_"))
)


@pytest.fixture(scope="module")
def registered(spark: Any) -> Any:
    pyhudi.spark.register(spark)
    return spark


def scanned(spark: Any, table: GoldenTable, answer: GoldenAnswer) -> Any:
    opened = HudiTable.open(table.path)
    match answer.query:
        case "snapshot":
            return opened.scan().to_spark(spark)
        case "read_optimized":
            return opened.scan(query="read_optimized").to_spark(spark)
        case "time_travel":
            return opened.scan(as_of=answer.times[0]).to_spark(spark)
        case "incremental":
            return opened.incremental(*table.range_bounds(answer)).to_spark(spark)
    raise AssertionError(answer.query)


def loaded(spark: Any, table: GoldenTable, answer: GoldenAnswer) -> Any:
    reader = spark.read.format("hudi")
    match answer.query:
        case "read_optimized":
            reader = reader.option("hoodie.datasource.query.type", "read_optimized")
        case "time_travel":
            reader = reader.option("as.of.instant", answer.times[0])
        case "incremental":
            start, end = table.range_bounds(answer)
            reader = reader.options(
                **{
                    "hoodie.datasource.query.type": "incremental",
                    "hoodie.datasource.read.begin.instanttime": start,
                    "hoodie.datasource.read.end.instanttime": end,
                }
            )
    return reader.load(str(table.path))


@pytest.mark.parametrize(
    "answer",
    [
        # Time travel is planned in process, and some of it is read here by the format.
        pytest.param(answer, marks=[pytest.mark.long] if answer.query == "time_travel" else [])
        for answer in ANSWERS
    ],
    ids=str,
)
def test_a_scan_on_spark_has_the_rows_of_apache_hudi(spark: Any, golden: GoldenTables, answer: GoldenAnswer) -> None:
    table = golden.get(answer.table)

    assert_same_rows(collected(scanned(spark, table, answer)), table.expected(answer))


@pytest.mark.parametrize("answer", BY_FORMAT, ids=str)
def test_the_format_hudi_has_the_rows_of_apache_hudi(
    registered: Any, golden: GoldenTables, answer: GoldenAnswer
) -> None:
    table = golden.get(answer.table)

    assert_same_rows(collected(loaded(registered, table, answer)), table.expected(answer))
