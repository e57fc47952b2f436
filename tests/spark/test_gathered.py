"""Few rows that a cluster's driver writes could be too many for it after all, and be lost, doubled or refused."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import CorruptFile, HudiTable, Invalid
from pyhudi.engine.spark.slice_work import SparkSliceWork
from pyhudi.engine.spark.write import gathered_source, shuffle, source, staging
from tests.support.spark_cluster import send_all, shuffle_all, writes_as_on_cluster

pytestmark = pytest.mark.spark

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


HERE, TASKS, SHUFFLE = "here", "tasks", "shuffle"


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The way of each write whose rows left this process: as tasks of Spark, or through its shuffle."""
    writes_as_on_cluster(monkeypatch, gathers=True)
    to_tasks, send, seen = shuffle.to_tasks, SparkSliceWork.run, list[str]()

    def noting_shuffle(*arguments: Any) -> Any:
        seen.append(SHUFFLE)
        return to_tasks(*arguments)

    def noting_tasks(*arguments: Any) -> Any:
        seen.append(TASKS)
        return send(*arguments)

    monkeypatch.setattr(source, "to_tasks", noting_shuffle)
    monkeypatch.setattr(SparkSliceWork, "run", noting_tasks)
    return seen


@pytest.mark.parametrize(
    "limits, properties, expected",
    [
        ({}, {}, [HERE, HERE]),
        ({"GATHERED_ROWS_MAX": 30}, {}, [SHUFFLE, HERE]),
        pytest.param({"GATHERED_ROWS_MAX": 30, "GATHERED_BYTES_MAX": 0}, {}, [SHUFFLE, HERE], marks=pytest.mark.long),
        pytest.param({"GATHERED_BYTES_MAX": 0}, {}, [HERE, HERE], marks=pytest.mark.long),
        ({"SENT_BYTES_MAX": 10}, {}, [SHUFFLE, SHUFFLE]),
        pytest.param({"HELD_BYTES_MAX": 10}, {}, [SHUFFLE, SHUFFLE], marks=pytest.mark.long),
        ({"SEARCHED_BYTES_MAX": 0}, {}, [HERE, SHUFFLE]),
        pytest.param({"REWRITES_MAX": 0}, {}, [HERE, TASKS], marks=pytest.mark.long),
        ({"REWRITES_MAX": 0}, BUCKETS, [HERE, TASKS]),
    ],
)
def test_what_is_too_much_for_the_driver_goes_to_the_cluster(
    spark: Any,
    tmp_path: Path,
    ways: list[str],
    monkeypatch: pytest.MonkeyPatch,
    limits: dict[str, int],
    properties: dict[str, str],
    expected: list[str],
) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(staging if name == "SENT_BYTES_MAX" else gathered_source, name, limit)
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="p", properties=properties)
    rows = spark.range(40).selectExpr("id", "concat('p', id % 2) p", "id n")

    went = []
    for write in (lambda: table.insert(rows), lambda: table.upsert(rows.where("id < 9").withColumn("n", -rows.n))):
        before = len(ways)
        write()
        went.append(ways[-1] if len(ways) > before else HERE)

    assert went == expected
    found = {row["id"]: row["n"] for row in table.scan(["id", "n"]).to_arrow().to_pylist()}
    assert found == {n: -n if n < 9 else n for n in range(40)}
    assert table.scan().to_arrow().num_rows == 40


@pytest.mark.parametrize("way", [TASKS, SHUFFLE])
def test_an_error_in_a_task_reaches_the_caller_as_it_is(
    spark: Any, tmp_path: Path, ways: list[str], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    (send_all if way == TASKS else shuffle_all)(monkeypatch)
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    table.insert(pa.table({"id": ["a", "b"], "n": [1, 2]}))
    (file,) = (tmp_path / "t").glob("*.parquet")
    metadata = pq.read_metadata(file)
    at = metadata.schema.names.index("n")
    with open(file, "r+b") as stream:
        stream.seek(metadata.row_group(0).column(at).data_page_offset)
        stream.write(b"\xff" * 8)

    with pytest.raises(CorruptFile, match=file.name):
        table.upsert(spark.sql("select 'a' id, 7L n"))
    assert ways == [way]
    assert [one.action for one in table.timeline()] == ["commit", "rollback"]


def test_bad_rows_are_refused_before_a_table_is_touched(spark: Any, tmp_path: Path, ways: list[str]) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="p")

    with pytest.raises(Invalid, match="record key"):
        table.upsert(spark.sql("select cast(null as string) id, 'p1' p"))
    with pytest.raises(Invalid, match="partition"):
        table.upsert(spark.sql("select 'k' id, '../x' p"))

    assert (len(table.timeline()), ways) == (0, [])
    assert table.upsert(spark.sql("select 'k' id, 'x' p where false")).inserted == 0
