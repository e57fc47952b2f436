"""A task that fails after it wrote a file could leave the file in the table, or its rows twice.

A session of its own (three attempts a task) runs in a process of its own for each type of table. A `sitecustomize`
module on the workers' path makes `run_file_group` fail after it has done its work: once, or always, as files say.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark_cluster import send_all, write_parts, writes_as_on_cluster
from tests.support.spark_jvm import SHORT_LIVED

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

HOOK = """
import functools, os
import pyhudi.write.handles.file_group as handle

_real = handle.run_file_group

@functools.wraps(_real)
def _faulty(*args, **kwargs):
    statuses = _real(*args, **kwargs)
    faults = os.environ["PYHUDI_TEST_FAULTS"]
    try:
        os.unlink(f"{faults}/once")
        fails = True
    except FileNotFoundError:
        fails = os.path.exists(f"{faults}/always")
    if fails:
        with open(f"{faults}/lost", "a") as log:
            log.writelines(f"{status.partition}/{status.file_name}\\n" for status in statuses)
        raise RuntimeError("the worker was lost after it wrote")
    return statuses

handle.run_file_group = _faulty
"""


def is_data(name: str) -> bool:
    return name.endswith(".parquet") or (".log." in name and not name.endswith(".crc"))


def files_of(table: Any) -> dict[str, list[str]]:
    """Data files, as the storage, the metadata table and the newest commit's statements name them."""
    from pyhudi.table.view.commits import read_commit

    root, snapshot = Path(table.path.removeprefix("file://")), table._access.snapshot()
    commits = [read_commit(snapshot.storage, snapshot.timeline, one) for one in snapshot.timeline.completed_writes]
    of, listing = (
        [stat for one in commits for of in one.partition_to_write_stats.values() for stat in of],
        snapshot.listing,
    )
    return {
        "storage": sorted(
            path.relative_to(root).as_posix()
            for path in root.rglob("*")
            if ".hoodie" not in path.parts and is_data(path.name)
        ),
        "metadata": sorted(
            f"{path}/{file.name}" for path in listing.partitions() for file in listing.files(path) if is_data(file.name)
        ),
        "commits": sorted(stat.path or "" for stat in of),
    }


def main(folder: Path, way: str, table_type: str) -> None:
    """The writes, in a process whose workers have the hook; notes what became of them."""
    from pyspark.sql import SparkSession

    patch = pytest.MonkeyPatch()
    writes_as_on_cluster(patch, gathers=way == "sent")
    if way == "sent":
        send_all(patch)
    if way == "parts":
        write_parts(patch)
    settings: dict[str, Any] = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", **SHORT_LIVED}
    spark = SparkSession.builder.master("local[2,3]").config(map=settings).getOrCreate()
    seen = write_with_faults(spark, folder / "t", folder / "faults", table_type)
    spark.stop()
    (folder / "seen.json").write_text(json.dumps(seen))


def write_with_faults(spark: Any, path: Path, faults: Path, table_type: str) -> dict[str, Any]:
    from pyhudi import HudiTable

    rows = spark.range(300).selectExpr("id", "concat('p', id % 3) part", "id n")
    table = HudiTable.create(path, name="t", record_key="id", partition_by="part", table_type=table_type)
    seen: dict[str, Any] = {"type": table_type}

    (faults / "once").touch()
    seen["bulk"] = table.bulk_insert(rows).inserted
    (faults / "once").touch()
    seen["updated"] = table.upsert(rows.where("id < 100").withColumn("n", -rows.n)).updated
    seen["lost"] = (faults / "lost").read_text().split()
    seen["after retries"] = files_of(table)

    (faults / "always").touch()
    try:
        table.upsert(rows.withColumn("n", rows.n + 1))
    except Exception as error:
        seen["error"] = f"{type(error).__name__}: {error}"
    (faults / "always").unlink()
    seen["after failure"] = files_of(table)
    seen["timeline"] = [(one.action, one.state) for one in table.timeline()]
    seen["markers"] = [str(path) for path in (path / ".hoodie" / ".temp").iterdir()]
    seen["sum"] = table.scan().to_spark(spark).selectExpr("sum(n) s").collect()[0]["s"]

    seen["again"] = table.upsert(rows).updated
    seen["rows"] = table.scan().to_spark(spark).count()
    seen["at the end"] = files_of(table)
    return seen


CASES = [
    pytest.param(("shuffle", "COPY_ON_WRITE"), marks=pytest.mark.long),
    ("shuffle", "MERGE_ON_READ"),
    pytest.param(("sent", "COPY_ON_WRITE"), marks=pytest.mark.long),
    pytest.param(("sent", "MERGE_ON_READ"), marks=pytest.mark.long),
    pytest.param(("parts", "COPY_ON_WRITE"), marks=pytest.mark.long),
]
"""The way of rows to the tasks that write them, and the type of the table."""


@pytest.fixture(scope="module", params=CASES, ids=" ".join)
def seen(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, Any]:
    pytest.importorskip("pyspark")
    folder = tmp_path_factory.mktemp("failures")
    (folder / "faults").mkdir()
    (folder / "hook").mkdir()
    (folder / "hook" / "sitecustomize.py").write_text(HOOK)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder / "hook"), str(ROOT / "src"), str(ROOT)]),
        "PYHUDI_TEST_FAULTS": str(folder / "faults"),
    }
    done = subprocess.run(
        [sys.executable, __file__, str(folder), *request.param],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    found: dict[str, Any] = json.loads((folder / "seen.json").read_text())
    return found


def test_a_retried_task_counts_once(seen: dict[str, Any]) -> None:
    assert (seen["bulk"], seen["updated"]) == (300, 100)
    assert seen["sum"] == sum(range(300)) - 2 * sum(range(100))


def test_files_of_lost_attempts_are_gone(seen: dict[str, Any]) -> None:
    files = seen["after retries"]

    assert len(seen["lost"]) == 2
    assert files["storage"] == files["metadata"] == files["commits"]
    assert not set(seen["lost"]) & set(files["storage"])


def test_a_write_that_fails_leaves_the_table_as_it_was(seen: dict[str, Any]) -> None:
    assert "the worker was lost after it wrote" in seen["error"]
    assert seen["after failure"] == seen["after retries"]
    assert {state for _, state in seen["timeline"]} == {"COMPLETED"}
    action = "deltacommit" if seen["type"] == "MERGE_ON_READ" else "commit"
    assert [one for one, _ in seen["timeline"]].count(action) == 2
    assert seen["markers"] == []


def test_the_next_write_works(seen: dict[str, Any]) -> None:
    files = seen["at the end"]

    assert (seen["again"], seen["rows"]) == (300, 300)
    assert files["storage"] == files["metadata"] == files["commits"]


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
