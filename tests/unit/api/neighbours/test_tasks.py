"""The pieces of a scan could be read in one process only, for all that they are meant to travel."""

from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, ScanTask


@pytest.fixture
def tasks(tmp_path: Any) -> list[ScanTask]:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", partition_by="city", table_type="MERGE_ON_READ")
    table.bulk_insert(pa.table({"id": ["a", "b", "c"], "city": ["oslo", "rome", "rome"], "n": [1, 2, 3]}))
    table.update({"n": "n + 10"}, where="id = 'c'")
    return table.scan(columns=["n"]).tasks()


def test_dask_reads_the_tasks_of_a_scan(tasks: list[ScanTask]) -> None:
    dask = pytest.importorskip("dask")
    read = dask.delayed(ScanTask.to_arrow)
    parts = dask.compute(*(read(task) for task in tasks), scheduler="processes", num_workers=1)
    assert sorted(pa.concat_tables(parts)["n"].to_pylist()) == [1, 2, 13]


@pytest.mark.long  # Ray starts a cluster of its own
def test_ray_reads_the_tasks_of_a_scan(tasks: list[ScanTask]) -> None:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=1, _node_ip_address="127.0.0.1", include_dashboard=False, log_to_driver=False)
    try:
        read = ray.remote(ScanTask.to_arrow)
        parts = ray.get([read.remote(task) for task in tasks])
    finally:
        ray.shutdown()
    assert sorted(pa.concat_tables(parts)["n"].to_pylist()) == [1, 2, 13]
