"""Files that stand for rows of the driver could go while a DataFrame needs them, stay for ever, or hold other rows."""

import gc
import time
from pathlib import Path
from typing import Any

import pytest

from pyhudi import Invalid
from pyhudi.engine.spark.read import local_rows, merge_design
from pyhudi.engine.spark.session import with_settings
from tests.spark.test_merge_designs import assert_reads_apart, random_table
from tests.spark.test_writes import rows_of_all_types
from tests.support.compare import assert_same_rows
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that files are written to: rows are, however few, and none is kept for a while."""
    monkeypatch.setattr(merge_design, "FILE_ROWS_BYTES_MIN", 0)
    monkeypatch.setattr(local_rows, "KEPT_S", 0.0)
    folder = tmp_path / "put *[aside] %20"
    folder.mkdir()
    monkeypatch.setattr(local_rows, "scratch_folder", lambda spark: str(folder))
    return folder


def test_values_of_all_types_come_back(spark: Any, scratch: Path) -> None:
    rows = rows_of_all_types(0, 60, version=2)

    assert_same_rows(collected(local_rows.file_dataframe(spark, rows, {})), rows)


def test_files_stay_as_long_as_a_plan_needs_them(spark: Any, scratch: Path) -> None:
    frame = local_rows.file_dataframe(spark, rows_of_all_types(0, 60, version=2), {}).select("id")
    (folder,) = scratch.iterdir()

    sweep(spark)
    assert frame.count() == 60
    del frame
    until = time.monotonic() + 30
    while folder.exists() and time.monotonic() < until:
        spark.range(1).count()  # Spark's threads may still hold what they ran last
        sweep(spark)
    assert not folder.exists()


def sweep(spark: Any) -> None:
    gc.collect()
    spark._jvm.System.gc()
    local_rows.takes_files(spark, 1)


def test_rows_beyond_the_bound_take_the_other_way(spark: Any, monkeypatch: pytest.MonkeyPatch, scratch: Path) -> None:
    rows = rows_of_all_types(0, 60, version=2)
    assert local_rows.takes_files(spark, rows.nbytes)
    monkeypatch.setattr(local_rows, "FILES_BYTES_MAX", 1)
    assert not local_rows.takes_files(spark, rows.nbytes)


@pytest.mark.parametrize("by_size", [True, False], ids=["by size", "by name"])
def test_scans_that_read_apart_have_the_same_rows(
    spark: Any, tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, by_size: bool
) -> None:
    monkeypatch.setattr(merge_design, "NATIVE_BYTES_MIN", 0)
    monkeypatch.setattr(merge_design, "LOG_SHARE_MAX", 1_000)
    monkeypatch.setattr("pyhudi.engine.spark.read.native_merge.go_by_size", lambda files: by_size)
    table = random_table(tmp_path / "t", 7, "ts")

    assert_reads_apart(spark, table.scan())
    assert_reads_apart(spark, table.scan(columns=["n"], where="n > 50 and part = 'p1'"))
    assert list(scratch.glob("pyhudi-rows-*"))


def test_a_cluster_that_shares_a_folder_reads_as_one_machine_does(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_cluster: None
) -> None:
    monkeypatch.setattr(local_rows, "runs_on_this_machine", lambda spark: False)
    monkeypatch.setattr(merge_design, "NATIVE_BYTES_MIN", 0)
    monkeypatch.setattr(merge_design, "LOG_SHARE_MAX", 1_000)
    monkeypatch.setattr(merge_design, "BASE_BYTES_A_BLOCK", 1)
    monkeypatch.setattr(local_rows, "KEPT_S", 0.0)
    table, shared = random_table(tmp_path / "t", 7, "ts"), tmp_path / "shared"
    assert_reads_apart(spark, table.scan())
    shared.mkdir()

    with with_settings(spark, {local_rows.SHARED_FOLDER: str(shared)}):
        assert_reads_apart(spark, table.scan())
        ((folder,),) = [list(host.iterdir()) for host in shared.iterdir()]
        assert list(folder.glob("*.parquet"))
        until = time.monotonic() + 30
        while folder.exists() and time.monotonic() < until:
            sweep(spark)
        assert not folder.exists()


@pytest.mark.parametrize("named, message", [
    ("shared", "'shared', which is relative"),
    ("/none/such", "'/none/such', which is no folder here"),
    ("/proc/1", "none can be made in '/proc/1'"),
])  # fmt: skip
def test_a_folder_that_cannot_be_shared_is_told(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_cluster: None, named: str, message: str
) -> None:
    monkeypatch.setattr(local_rows, "runs_on_this_machine", lambda spark: False)
    table = random_table(tmp_path / "t", 7, "ts")
    with with_settings(spark, {local_rows.SHARED_FOLDER: named}), pytest.raises(Invalid, match=message):
        table.scan().to_spark(spark)
    assert not Path("/none").exists()
