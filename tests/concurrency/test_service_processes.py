"""Two service processes on one table, beside writers: they could do the same work twice, lose a row between them, make
a writer fail, or leave what a dead one had begun.
"""

import random
import time
from pathlib import Path

import pytest

import pyhudi.services
from tests.support.many_writers import KEEPING, Plan, check, finish, make_table, read, start, write

OPTIONS = {
    **KEEPING,
    "hoodie.clean.commits.retained": 12,
    "hoodie.keep.min.commits": 14,
    "hoodie.keep.max.commits": 16,
    "hoodie.compact.inline.max.delta.commits": 3,
    "hoodie.clustering.inline.max.commits": 3,
    "hoodie.clustering.plan.strategy.sort.columns": "v",
}
SERVICES = ("failed_writes", "compaction", "log_compaction", "clustering", "indexing", "clean", "archive")
WRITERS = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy", "hoodie.table.services.enabled": "false"}
"""What lets a write of a row go past a clustering, which then gives way."""


class StopFile:
    """Ends a run of services once there is a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_set(self) -> bool:
        return self._path.exists()

    def wait(self, timeout: float) -> bool:
        time.sleep(timeout)
        return self.is_set()


def look_after(plan: Plan, stop: Path, done: Path) -> None:
    """What a service process does. It leaves the names of the services that did something in a file."""
    services = [name for name in SERVICES if name != "clustering" or "bucket" not in plan.path]
    report = pyhudi.services.run(plan.path, services=services, options=OPTIONS, interval_s=0.05, stop=StopFile(stop))
    failed = [one for found in report.tables.values() for one in found if one.failures]
    assert not failed, failed
    names = [one.service.value for found in report.tables.values() for one in found if one.runs]
    done.write_text("\n".join(names))


@pytest.mark.parametrize(
    "table_type,version,index",
    [
        pytest.param("COPY_ON_WRITE", 9, "SIMPLE", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", 8, "SIMPLE", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", 9, "BUCKET", marks=pytest.mark.long),
    ],
    ids=lambda value: str(value),
)
def test_two_service_processes_beside_writers(tmp_path: Path, table_type: str, version: int, index: str) -> None:
    turns = 12  # so many commits of two writers are more than a clean retains
    plan = Plan(
        str(tmp_path / index.lower()), turns=turns, kinds=("upsert", "insert", "delete"), options=(*WRITERS.items(),)
    )
    make_table(plan.path, table_type=table_type, version=version, index=index)
    plan.journals.mkdir()
    stop, done = tmp_path / "stop", [tmp_path / "done0", tmp_path / "done1"]

    beside = [start(read, plan, stop), *(start(look_after, plan, stop, file) for file in done)]
    try:
        finish([start(write, plan, number) for number in range(2)])
    finally:
        stop.touch()
        finish(beside)

    check(plan)
    names = {name for file in done for name in file.read_text().split()}
    assert names >= {"clean"} | ({"compaction"} if table_type == "MERGE_ON_READ" else set()), names


@pytest.mark.parametrize(
    "table_type,version", [pytest.param("COPY_ON_WRITE", 8, marks=pytest.mark.long), ("MERGE_ON_READ", 9)]
)
def test_a_service_process_that_dies_is_replaced_by_the_other(tmp_path: Path, table_type: str, version: int) -> None:
    plan = Plan(str(tmp_path / "t"), turns=6, kinds=("upsert", "insert"), options=(*WRITERS.items(),))
    make_table(plan.path, table_type=table_type, version=version)
    plan.journals.mkdir()
    stop, done = tmp_path / "stop", tmp_path / "done"
    choose = random.Random(7)

    writers = [start(write, plan, number) for number in range(2)]
    living = start(look_after, plan, stop, done)
    try:
        for _ in range(2):
            victim = start(look_after, plan, stop, tmp_path / "victim")
            time.sleep(1.5 + choose.random())
            victim.kill()
            victim.join()
        finish(writers)
    finally:
        stop.touch()
        finish([living])

    last = pyhudi.services.run(plan.path, services=SERVICES, options=OPTIONS, once=True)
    assert not last.has_failed, last
    check(plan)
