"""A driver could die at any change to the storage, or be killed at any moment, and a row be missing or there twice.

Rows are inserted without a look at keys: what is stored twice shows.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pyhudi.spark
from pyhudi.api import access
from pyhudi.api.datasource import save_dataframe
from pyhudi.spark.streams import sink as sink_module
from pyhudi.spark.streams.sink import TableSink
from pyhudi.storage.open import open_storage
from pyhudi.testing.crashing import Crash, CrashingStorage
from tests.support.spark_frames import on_spark
from tests.support.streams import OPTIONS, Feed, ids_in, rows, stored_batches

pytestmark = pytest.mark.spark

INSERT = {**OPTIONS, "hoodie.datasource.write.operation": "insert"}
ROOT = Path(__file__).parents[2]
SHARED = "default_single_writer"
STEP = 5


def batches(spark: Any, folder: Path) -> list[Any]:
    return [on_spark(spark, rows(range(at * 10, at * 10 + 3)), folder) for at in range(3)]


def crashes(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], *, step: int, first: int
) -> int:
    """Crash in the second batch at every `step`-th change, and run it again as Spark does. Gives the crashes."""
    frames, start = batches(spark, tmp_path), tmp_path / "start"
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "q")
    TableSink(spark, str(start), options, "append")(frames[0], 0)
    save, count = save_dataframe, 0

    def dying(*args: Any, **kwargs: Any) -> None:
        try:
            save(*args, **kwargs)
        except Crash as error:
            raise RuntimeError("the driver died") from error

    for lands in (False, True):
        for survives in range(first, 1_000, step):
            table = tmp_path / f"{lands}-{survives}"
            shutil.copytree(start, table)
            disks: list[CrashingStorage] = []

            def opened(location: Any, *, lands: bool = lands, survives: int = survives) -> Any:
                if not disks:  # noqa: B023
                    disks.append(CrashingStorage(open_storage(location), survives, lands))  # noqa: B023
                return disks[0]  # noqa: B023

            with monkeypatch.context() as patched:
                patched.setattr(access, "open_storage", opened)
                patched.setattr(sink_module, "save_dataframe", dying)
                once = {**options, "hoodie.datasource.write.streaming.retry.count": "1"}
                try:
                    TableSink(spark, str(table), once, "append")(frames[1], 1)
                except Exception:  # of the driver's death, in the words of a stopped query
                    assert disks[0].dead
            if not disks[0].dead:
                break
            count += 1

            again = TableSink(spark, str(table), options, "append")
            again(frames[1], 1)
            again(frames[2], 2)
            where = f"change {survives}, {disks[0].fatal}, {'landed' if lands else 'did not land'}"
            assert ids_in(table) == [0, 1, 2, 10, 11, 12, 20, 21, 22], where
            assert stored_batches(table) == [(SHARED, 0), (SHARED, 1), (SHARED, 2)], where
            shutil.rmtree(table)
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", None)
    return count


def test_a_driver_that_dies_at_some_changes_stores_each_row_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyhudi.spark.register(spark)

    assert crashes(spark, tmp_path, monkeypatch, INSERT, step=STEP, first=1) >= 4


@pytest.mark.long
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["8", "6"])
def test_a_driver_that_dies_at_any_change_stores_each_row_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_type: str, version: str
) -> None:
    pyhudi.spark.register(spark)
    options = {
        **INSERT,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.streaming.disable.compaction": "true",
    }

    assert crashes(spark, tmp_path, monkeypatch, options, step=1, first=0) > 20


CHILD = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
import pyhudi.spark
from tests.support.streams import SCHEMA

source, table, checkpoint, table_type, ends = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
pyhudi.spark.register(spark)
options = {
    "hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts", "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.table.type": table_type, "hoodie.datasource.write.operation": "insert",
    "hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6", "hoodie.clean.commits.retained": "2",
    "hoodie.compact.inline.max.delta.commits": "2", "hoodie.metadata.compact.max.delta.commits": "3",
}
frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(source)
started = frame.writeStream.format("hudi").options(**options).option("checkpointLocation", checkpoint)
query = started.trigger(**({"availableNow": True} if ends == "1" else {"processingTime": "0 seconds"})).start(table)
print("started", flush=True)
query.awaitTermination()
"""


def end(child: "subprocess.Popen[str]") -> None:
    """Kill a driver with its JVM, which are a process group."""
    with child, contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_driver_that_is_killed_for_minutes_stores_each_row_once(spark: Any, tmp_path: Path, table_type: str) -> None:
    """SIGKILL of the driver, Python and JVM, at random moments. PYHUDI_KILL_SECONDS: for how long."""
    seed = random.randrange(10**6)
    print("seed", seed)
    moments = random.Random(seed)
    feed, table, checkpoint = Feed(spark, tmp_path / "source"), tmp_path / "t", tmp_path / "c"
    feed.add(range(0, 3))

    def start(*, ends: bool) -> "subprocess.Popen[str]":
        command = [
            sys.executable,
            "-c",
            CHILD,
            str(feed.folder),
            str(table),
            str(checkpoint),
            table_type,
            str(int(ends)),
        ]
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", str(ROOT / "src"))])
        return subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip

    kills, until = 0, time.monotonic() + float(os.environ.get("PYHUDI_KILL_SECONDS", "120"))
    while time.monotonic() < until:
        child = start(ends=False)
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "started\n"
            dies = time.monotonic() + moments.uniform(0.5, 9)
            while time.monotonic() < dies:
                feed.add(range(feed.count * 10, feed.count * 10 + 3))
                time.sleep(min(0.4, max(0.0, dies - time.monotonic())))
        finally:
            end(child)
            kills += 1

    last = start(ends=True)
    try:
        assert last.wait(300) == 0
    finally:
        end(last)
    assert ids_in(table) == [at * 10 + i for at in range(feed.count) for i in range(3)]
    assert [number for _, number in stored_batches(table, history=True)] == list(range(feed.count))
    print(f"{kills} kills, {feed.count} batches")
