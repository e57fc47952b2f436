"""Few rows that a cluster's driver writes could be too many for it after all, and be lost, doubled or refused."""

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable, Invalid
from pyhudi.engine.spark.write import gathered_source, shuffle, source, staging
from tests.support.spark_cluster import writes_as_on_cluster

pytestmark = pytest.mark.spark

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


@pytest.fixture
def shuffles(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks each shuffle of rows went to."""
    writes_as_on_cluster(monkeypatch, gathers=True)
    to_tasks, seen = shuffle.to_tasks, list[int]()

    def noting(rows: Any, task_number: str, task_count: int) -> Any:
        seen.append(task_count)
        return to_tasks(rows, task_number, task_count)

    monkeypatch.setattr(source, "to_tasks", noting)
    return seen


@pytest.mark.parametrize(
    "limits, properties, expected",
    [
        ({}, {}, [False, False]),
        ({"GATHERED_ROWS_MAX": 30}, {}, [True, False]),
        ({"GATHERED_ROWS_MAX": 30, "GATHERED_BYTES_MAX": 0}, {}, [True, False]),
        ({"GATHERED_BYTES_MAX": 0}, {}, [False, False]),
        ({"SENT_BYTES_MAX": 10}, {}, [True, True]),
        ({"SEARCHED_BYTES_MAX": 0}, {}, [False, True]),
        ({"REWRITES_MAX": 0}, {}, [False, True]),
        ({"REWRITES_MAX": 0}, BUCKETS, [False, True]),
    ],
)
def test_what_is_too_much_for_the_driver_goes_through_the_shuffle(
    spark: Any,
    tmp_path: Path,
    shuffles: list[int],
    monkeypatch: pytest.MonkeyPatch,
    limits: dict[str, int],
    properties: dict[str, str],
    expected: list[bool],
) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(staging if name == "SENT_BYTES_MAX" else gathered_source, name, limit)
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="p", properties=properties)
    rows = spark.range(40).selectExpr("id", "concat('p', id % 2) p", "id n")

    went = []
    for write in (lambda: table.insert(rows), lambda: table.upsert(rows.where("id < 9").withColumn("n", -rows.n))):
        before = len(shuffles)
        write()
        went.append(len(shuffles) > before)

    assert went == expected
    found = {row["id"]: row["n"] for row in table.scan(["id", "n"]).to_arrow().to_pylist()}
    assert found == {n: -n if n < 9 else n for n in range(40)}
    assert table.scan().to_arrow().num_rows == 40


def test_bad_rows_are_refused_before_a_table_is_touched(spark: Any, tmp_path: Path, shuffles: list[int]) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="p")

    with pytest.raises(Invalid, match="record key"):
        table.upsert(spark.sql("select cast(null as string) id, 'p1' p"))
    with pytest.raises(Invalid, match="partition"):
        table.upsert(spark.sql("select 'k' id, '../x' p"))

    assert (len(table.timeline()), shuffles) == (0, [])
    assert table.upsert(spark.sql("select 'k' id, 'x' p where false")).inserted == 0
