"""New rows that are written where Spark reads them could be lost, doubled, or make many small files."""

from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.engine.spark.write import parts
from pyhudi.engine.spark.write.parts import Parts, PartWriter, plan_parts
from pyhudi.write.place.plan import FileGroupTask, TaskKind, WritePlan
from tests.support.spark_cluster import writes_as_on_cluster

pytestmark = pytest.mark.spark

U, V = "0" * 36, "1" * 36


def whole_plan(*bins: tuple[str, str, int]) -> WritePlan:
    return WritePlan(
        tuple(
            FileGroupTask(number=at, kind=TaskKind.CREATE, partition=path, file_id=f"{uuid}-0", inserts=rows)
            for at, (path, uuid, rows) in enumerate(bins)
        )
    )


def shares(counted: Parts, *bins: tuple[str, str, int], cores: int = 2) -> dict[int, list[tuple[str, str, int]]] | None:
    found = plan_parts(whole_plan(*bins), counted, cores=cores)
    if found is None:
        return None
    numbers = [task.number for plan in found.values() for task in plan.tasks]
    assert sorted(numbers) == list(range(len(numbers)))
    return {part: [(t.partition, t.file_id, t.inserts) for t in plan.tasks] for part, plan in found.items()}


def test_each_part_has_file_groups_of_its_own() -> None:
    counted = {"p": [(0, 40), (3, 60)], "q": [(0, 50)]}
    assert shares(counted, ("p", U, 100), ("q", V, 50)) == {
        0: [("p", f"{U}-0", 40), ("q", f"{V}-0", 50)],
        3: [("p", f"{U}-1", 60)],
    }


def test_files_are_not_larger_than_planned() -> None:
    counted = {"p": [(0, 110), (1, 90)]}
    assert shares(counted, ("p", U, 100), ("p", V, 100)) == {
        0: [("p", f"{U}-0", 55), ("p", f"{V}-0", 55)],
        1: [("p", f"{U}-1", 90)],
    }


@pytest.mark.parametrize(
    "counted",
    [
        {"p": [(0, 30), (1, 40), (2, 30)]},  # three files instead of one
        {"p": [(0, 90), (1, 9)]},  # a row is missing
        {},
    ],
)
def test_other_parts_and_small_ones_are_shuffled(counted: Parts) -> None:
    assert shares(counted, ("p", U, 100)) is None


def test_uneven_parts_are_shuffled() -> None:
    assert shares({"p": [(0, 190), (1, 10)]}, ("p", U, 100), ("p", V, 100)) is None
    assert shares({"p": [(0, 200)]}, ("p", U, 100), ("p", V, 100)) is None
    assert shares({"p": [(0, 200)]}, ("p", U, 100), ("p", V, 100), cores=1) is not None


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each write whether it went without a shuffle."""
    writes_as_on_cluster(monkeypatch, gathers=False)
    monkeypatch.setattr(parts, "ROWS_MIN", 10)
    write, seen = PartWriter.write, list[bool]()

    def noting(*arguments: Any) -> Any:
        statuses = write(*arguments)
        seen.append(statuses is not None)
        return statuses

    monkeypatch.setattr(PartWriter, "write", noting)
    return seen


def a_table(path: Path, **options: Any) -> HudiTable:
    return HudiTable.create(path, name="t", record_key="id", partition_by="p", **options)


def rows_of(spark: Any, *, parts: int) -> Any:
    return spark.range(0, 600, 1, parts).selectExpr("concat('k', id) id", "concat('p', id % 3) p", "id n")


def check(table: HudiTable, *, files: int) -> None:
    found = table.scan(["id", "n", "p", "_hoodie_file_name"]).to_arrow().to_pylist()
    assert sorted(row["n"] for row in found) == list(range(600))
    assert all((row["id"], row["p"]) == (f"k{row['n']}", f"p{row['n'] % 3}") for row in found)
    assert len({row["_hoodie_file_name"] for row in found}) == files
    stored = {path.name for path in Path(table.path.removeprefix("file://")).rglob("*.parquet")}
    assert {row["_hoodie_file_name"] for row in found} == {name for name in stored if not name.startswith(".")}
    assert table.metadata.validate().differences == ()


@pytest.mark.parametrize(
    "operation, table_type",
    [
        ("bulk_insert", "COPY_ON_WRITE"),
        ("insert", "MERGE_ON_READ"),
        pytest.param("insert_overwrite", "COPY_ON_WRITE", marks=pytest.mark.long),
        pytest.param("bulk_insert", "MERGE_ON_READ", marks=pytest.mark.long),
    ],
)
def test_two_parts_write_two_files_a_partition(
    spark: Any, tmp_path: Path, written: list[bool], operation: str, table_type: str
) -> None:
    table = a_table(tmp_path / "t", table_type=table_type)
    result = getattr(table, operation)(rows_of(spark, parts=2))
    assert (result.inserted, written) == (600, [True])
    check(table, files=6)


def test_made_up_keys_stay_distinct(spark: Any, tmp_path: Path, written: list[bool]) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", partition_by="p")
    table.bulk_insert(rows_of(spark, parts=2))
    keys = table.scan(["_hoodie_record_key"]).to_arrow()[0].to_pylist()
    assert (len(set(keys)), written) == (600, [True])


@pytest.mark.parametrize("record_key", ["id", None])
def test_rows_that_are_to_lie_together_are_shuffled(
    spark: Any, tmp_path: Path, written: list[bool], record_key: str | None
) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key=record_key, partition_by="p")
    table.bulk_insert(rows_of(spark, parts=2), options={"hoodie.bulkinsert.sort.mode": "PARTITION_PATH_REPARTITION"})
    assert not any(written)
    check(table, files=3)


def test_many_parts_are_shuffled(spark: Any, tmp_path: Path, written: list[bool]) -> None:
    table = a_table(tmp_path / "t")
    table.bulk_insert(rows_of(spark, parts=5))
    assert written == [False]
    check(table, files=3)


def test_parts_that_have_become_others_are_shuffled(
    spark: Any, tmp_path: Path, written: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first job wrote is gone."""
    table, plan = a_table(tmp_path / "t"), parts.plan_parts

    def the_other_way_round(*arguments: Any, cores: int) -> Any:
        found = plan(*arguments, cores=cores)
        assert found is not None
        return {0: found[0], 1: WritePlan(tuple(task for task in found[1].tasks if task.partition != "p2"))}

    monkeypatch.setattr(parts, "plan_parts", the_other_way_round)
    table.bulk_insert(rows_of(spark, parts=2))
    assert written == [False]
    check(table, files=3)


def test_an_upsert_of_new_rows_keeps_one_row_a_key(spark: Any, tmp_path: Path, written: list[bool]) -> None:
    rows = rows_of(spark, parts=2)
    table = a_table(tmp_path / "t")
    table.upsert(rows.unionByName(rows))
    assert not any(written)
    check(table, files=3)
