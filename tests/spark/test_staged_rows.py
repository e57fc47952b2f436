"""Rows that Spark hands over could stay on the disk: of writes that fail, and of drivers that were killed."""

from pathlib import Path
from typing import Any

import pytest

import pyhudi.spark
from pyhudi import HudiTable
from pyhudi.engine.local.staged_rows import StagedRows
from pyhudi.engine.spark.write import staged_source, staging
from pyhudi.errors import Invalid
from pyhudi.storage.scratch import LOCK_FILE
from pyhudi.write.memory_settings import MEMORY_MAX, SPILL_FOLDER

pytestmark = pytest.mark.spark


@pytest.fixture
def local_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Spark puts what it spills."""
    (folder := tmp_path / "local").mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(folder))
    return folder


def leave_dead(folder: Path) -> None:
    (dead := folder / "pyhudi-staged-dead").mkdir()
    (dead / LOCK_FILE).touch()
    (dead / "00000000-0.arrow").write_bytes(b"rows")


def test_what_a_killed_driver_left_is_swept_by_the_next_session_and_the_next_write(
    spark: Any, tmp_path: Path, local_folder: Path
) -> None:
    leave_dead(local_folder)
    pyhudi.spark.register(spark)
    assert list(local_folder.iterdir()) == []

    leave_dead(local_folder)
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")
    table.bulk_insert(spark.range(100))
    assert list(local_folder.iterdir()) == []


def test_a_write_stages_in_the_folder_that_is_named_within_the_bound_and_leaves_nothing(
    spark: Any, tmp_path: Path, local_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (named := tmp_path / "named").mkdir()
    seen: list[tuple[StagedRows, int]] = []
    stage = staging.stage

    def noted(rows: Any, spec: Any, parent: str | None) -> StagedRows:
        staged = stage(rows, spec, parent)
        seen.append((staged, len(list(named.iterdir()))))
        return staged

    monkeypatch.setattr(staged_source, "stage", noted)
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="part")
    rows = spark.range(0, 30_000, 1, 3).selectExpr("id", "id % 2 part", "repeat('x', 100) text")
    options = {MEMORY_MAX: 1_048_576, SPILL_FOLDER: str(named)}

    result = table.upsert(rows, options=options)

    ((staged, folders),) = seen
    assert folders == 1
    assert staged.folder.path.parent == named
    assert result.inserted == 30_000
    assert result.files > 4  # no more rows a file group than may be held
    assert table.scan(columns=["id"]).to_arrow().num_rows == 30_000
    assert [*named.iterdir(), *local_folder.iterdir()] == []


def test_a_write_that_is_refused_leaves_nothing(spark: Any, tmp_path: Path, local_folder: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id")

    with pytest.raises(Invalid, match=r"found 10 null or empty"):
        table.bulk_insert(spark.range(100).selectExpr("nullif(id % 10, 0) id"))

    assert list(local_folder.iterdir()) == []
