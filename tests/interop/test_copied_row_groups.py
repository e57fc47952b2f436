"""Row groups that a clustering copies could be read by nobody but us: offsets, page indexes, bounds and key filters of
the new files are written by pyhudi alone. Apache Hudi reads them by every query and writes on upon them. And plans that
copy, or sort each file in itself, go both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pyhudi.services.clustering.plan import EXECUTION_CLASSES
from tests.interop.cow_rows import key_range, rows
from tests.interop.cow_tables import Shared
from tests.interop.test_clusterings import both_write_on, clusterings, pending, plan_of
from tests.interop.test_version_6 import EVENT_TIME
from tests.support.reference.client import ReferenceHudi

PLANS = "org.apache.hudi.client.clustering.plan.strategy"
PLAN_CLASS, EXECUTION = "hoodie.clustering.plan.strategy.class", "hoodie.clustering.execution.strategy.class"
SORT = "hoodie.clustering.plan.strategy.sort.columns"
SINGLE_FILES = {
    PLAN_CLASS: f"{PLANS}.SparkSingleFileSortPlanStrategy",
    EXECUTION: f"{EXECUTION_CLASSES}.SparkSingleFileSortExecutionStrategy",
    SORT: "number",
}
COPIES = {PLAN_CLASS: f"{PLANS}.SparkStreamCopyClusteringPlanStrategy"}
BY_RECORDS = {"hoodie.datasource.write.row.writer.enable": False}
RELEASES = pytest.mark.parametrize(
    "name, version, options",
    [("hudi_120", 9, {}), ("hudi_102", 8, {}), ("hudi_0150", 6, EVENT_TIME)],
    ids=["1.2.0 on version 9", "1.0.2 on version 8", "0.15.0 on version 6"],
)


def call(hudi: ReferenceHudi, shared: Shared, operation: str, **options: Any) -> None:
    texts = ",".join(f"{key}={value}" for key, value in options.items())
    with_options = f", options => '{texts}'" if texts else ""
    hudi.sql(f"CALL run_clustering(op => '{operation}', path => '{shared.path}'{with_options})")


def new_files(shared: Shared, requested: str | None) -> list[Path]:
    assert requested is not None
    return [file for file in shared.base_files() if requested in file.name]


def is_copied(file: Path) -> bool:
    footer = pq.read_metadata(file)
    return footer.num_row_groups > 1 and b"original.created.by" in footer.metadata


@pytest.mark.parametrize("writer", ["theirs", "ours"])
@RELEASES
def test_hudi_reads_row_groups_that_we_copied_and_writes_on(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any], writer: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = Shared(tmp_path / "rides", version=version)
    for turn, keys in enumerate([key_range(0, 120), key_range(120, 200)]):
        if writer == "ours":
            shared.bulk_insert(rows(keys, turn=turn))
        else:
            shared.hudi_write(hudi, "bulk_insert", rows(keys, turn=turn), **BY_RECORDS, **options)

    result = shared.ours.cluster()

    assert result.rows == 200
    assert all(is_copied(file) for file in new_files(shared, result.requested))
    shared.check(hudi)
    assert shared.ours.metadata.validate().differences == ()
    both_write_on(shared, hudi, 10, options)


def test_plans_that_copy_go_both_ways(hudi_120: ReferenceHudi, tmp_path: Path) -> None:
    shared = Shared(tmp_path / "rides", version=9)
    for turn in range(2):
        shared.bulk_insert(rows(key_range(100 * turn, 100 * turn + 100), turn=turn))
    ours = shared.ours.schedule_clustering(options=COPIES).requested
    call(hudi_120, shared, "execute")
    assert clusterings(shared) == [ours]
    shared.check(hudi_120)

    shared.bulk_insert(rows(key_range(200, 250), turn=3))
    call(hudi_120, shared, "schedule", **COPIES)
    (theirs,) = pending(shared)
    plan = plan_of(shared, theirs).clustering_plan
    assert plan is not None
    assert plan.strategy is not None
    assert plan.strategy.class_name == f"{EXECUTION_CLASSES}.SparkStreamCopyClusteringExecutionStrategy"
    assert shared.ours.run_clusterings().requested == theirs
    shared.check(hudi_120)
    both_write_on(shared, hudi_120, 10, {})


def test_plans_that_sort_each_file_in_itself_go_both_ways(hudi_120: ReferenceHudi, tmp_path: Path) -> None:
    shared = Shared(tmp_path / "rides", version=9)
    for turn in range(2):
        shared.bulk_insert(rows(key_range(100 * turn, 100 * turn + 100), turn=turn))
    count = len(shared.file_groups())
    assert count > 2

    ours = shared.ours.schedule_clustering(options=SINGLE_FILES).requested
    call(hudi_120, shared, "execute", **SINGLE_FILES)
    assert clusterings(shared) == [ours]
    assert len(new_files(shared, ours)) == count
    shared.check(hudi_120)

    shared.bulk_insert(rows(key_range(200, 250), turn=3))  # 1.2.0 plans partitions that were written to since
    call(hudi_120, shared, "schedule", **SINGLE_FILES)
    (theirs,) = pending(shared)
    count = len(list(shared.ours.scan().files()))
    assert shared.ours.run_clusterings().requested == theirs
    files = new_files(shared, theirs)
    assert len(files) == count
    for file in files:
        numbers = [n for n in pq.read_table(file, columns=["number"]).column(0).to_pylist() if n is not None]
        assert numbers == sorted(numbers)
    shared.check(hudi_120)
    both_write_on(shared, hudi_120, 10, {})
