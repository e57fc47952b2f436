"""A write on Spark reads its input several times; one that is random or dear must be evaluated once all the same.

Plans are told apart that may be read again and that may not; a random column and a counter of evaluations hold the
rest. The plan of the write itself is looked at: one shuffle of the payload.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

from pyhudi import HudiTable
from pyhudi.engine.spark.write import shuffle
from pyhudi.engine.spark.write.kept import is_plain_scan
from tests.spark.handovers import handed

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def scan(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A plain scan of 300 rows."""
    path = str(tmp_path_factory.mktemp("scan") / "rows")
    spark.range(0, 300, 1, 2).selectExpr("id", "concat('p', id % 3) part", "id * 1.5 v").write.parquet(path)
    return spark.read.parquet(path)


def with_udf(scan: Any) -> Any:
    return scan.withColumn("u", f.udf(lambda value: value, "long")("id"))


PLANS: list[tuple[str, bool, Callable[[Any, Any], Any]]] = [
    ("parquet scan", True, lambda spark, scan: scan),
    ("filter and project", True, lambda spark, scan: scan.where("id > 7").selectExpr("id", "upper(part) p", "v + 1 w")),
    ("view", True, lambda spark, scan: spark.sql("select id from {t} where v > 3", t=scan)),
    ("lambda function", True, lambda spark, scan: scan.selectExpr("transform(array(id), x -> x + 1) a")),
    ("local relation", True, lambda spark, scan: spark.sql("select * from values (1, 2), (3, 4) t(a, b)")),
    ("range", True, lambda spark, scan: spark.range(9)),
    ("rows of this process", False, lambda spark, scan: spark.createDataFrame([(1,)], "a int")),
    ("python udf", False, lambda spark, scan: with_udf(scan)),
    ("map in arrow", False, lambda spark, scan: scan.mapInArrow(lambda batches: batches, scan.schema)),
    ("join", False, lambda spark, scan: scan.join(scan.select("id"), "id")),
    ("aggregate", False, lambda spark, scan: scan.groupBy("part").count()),
    ("subquery", False, lambda spark, scan: spark.sql("select *, (select max(id) from {t}) m from {t}", t=scan)),
    ("rand", False, lambda spark, scan: scan.withColumn("r", f.rand())),
    ("uuid", False, lambda spark, scan: scan.selectExpr("uuid() u", "id")),
    ("filter by rand", False, lambda spark, scan: scan.where("rand() > 0.5")),
    ("clock", False, lambda spark, scan: scan.withColumn("at", f.current_timestamp())),
    ("date", False, lambda spark, scan: scan.selectExpr("date_add(current_date(), 1) d", "id")),
    ("clock in a subquery", False, lambda spark, scan: spark.sql("select id, (select now()) n from {t}", t=scan)),
    (
        "clock over local rows",
        False,
        lambda spark, scan: spark.sql("select a, unix_timestamp() n from values (1) t(a)"),
    ),
    ("rand over local rows", False, lambda spark, scan: spark.sql("select a, rand() n from values (1) t(a)")),
    ("cached", False, lambda spark, scan: scan.withColumn("one", f.lit(1)).cache()),
    ("limit", False, lambda spark, scan: scan.limit(5)),
]


@pytest.mark.parametrize("expected, make", [plan[1:] for plan in PLANS], ids=[plan[0] for plan in PLANS])
def test_only_plain_scans_are_read_again(
    spark: Any, scan: Any, expected: bool, make: Callable[[Any, Any], Any]
) -> None:
    assert is_plain_scan(make(spark, scan)) is expected


@handed(
    "operation",
    ["bulk_insert", "upsert"],
    [(way, operation) for way in ("files", "shuffle", "gathered") for operation in ("bulk_insert", "upsert")][1:],
)
def test_random_columns_are_evaluated_once(
    spark: Any, scan: Any, tmp_path: Path, handover: str, operation: str
) -> None:
    """Keys, paths and values are drawn at random: a second draw would lose or double rows, or find no file group."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="key", partition_by="part")
    table.bulk_insert(scan.selectExpr("uuid() key", "part", "v", "now() at"))

    result = getattr(table, operation)(
        scan.selectExpr("uuid() key", "concat('p', floor(rand() * 5)) part", "v", "now() at")
    )

    rows = table.scan().to_arrow()
    assert result.inserted == 300
    assert rows.num_rows == 600 == len(set(rows["key"].to_pylist()))


@handed(
    "operation",
    ["bulk_insert", "insert", "upsert", "delete"],
    [(way, operation) for way in ("files", "shuffle", "gathered") for operation in ("insert", "upsert")],
)
def test_each_row_of_the_input_is_evaluated_once(
    spark: Any, scan: Any, tmp_path: Path, handover: str, operation: str
) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part")
    table.bulk_insert(scan)
    log = str(tmp_path / "evaluated")

    def noting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with open(log, "a") as file:
                file.writelines(f"{value}\n" for value in batch.column("id").to_pylist())
            yield batch

    getattr(table, operation)(scan.where("id < 120").mapInArrow(noting, scan.schema))

    assert sorted(int(line) for line in Path(log).read_text().split()) == list(range(120))


@pytest.mark.parametrize("operation", ["bulk_insert", "upsert", "delete"])
def test_the_payload_is_shuffled_once(
    spark: Any, scan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_shuffle: None, operation: str
) -> None:
    """Joins with tags and slots send the small side to all tasks; rows go from the scan to their task in one step."""
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part")
    table.bulk_insert(scan.where("id < 200"))
    plans = []
    to_tasks = shuffle.to_tasks

    def noting(rows: Any, task_number: str, task_count: int) -> Any:
        placed = to_tasks(rows, task_number, task_count)
        plans.append(placed._jdf.queryExecution().executedPlan().toString())
        return placed

    monkeypatch.setattr("pyhudi.engine.spark.write.source.to_tasks", noting)
    getattr(table, operation)(scan.where("id > 100"))

    assert len(plans) == 1
    payload, joins = plans[0], plans[0].count("Join")
    assert payload.count("BroadcastHashJoin") == joins
    assert payload.replace("BroadcastExchange", "").count("Exchange") == 1
