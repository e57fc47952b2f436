"""An instant from the far future could stop every writer of a table, or take its place among the commits to come."""

import logging

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Unavailable
from pyhudi.storage.memory import MemoryStorage

ROWS = pa.table({"k": ["a"], "v": [1]})
FAR = ("99999999999999999", "20991231235959999")


def a_table(version: int) -> tuple[MemoryStorage, HudiTable, str]:
    storage = MemoryStorage()
    table = HudiTable.create(
        storage.location.uri, name="t", record_key="k", table_type="MERGE_ON_READ", table_version=version,
        storage=storage, executor=SerialExecutor(),
    )  # fmt: skip
    table.upsert(ROWS)
    return storage, table, ".hoodie" if version == 6 else ".hoodie/timeline"


@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize(
    "file", ["commit.requested", "deltacommit.requested", "deltacommit.inflight", "clean.inflight"]
)
def test_a_pending_instant_of_the_far_future_is_told_and_stepped_over(
    version: int, far: str, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage, table, timeline = a_table(version)
    storage.put(f"{timeline}/{far}.{file}", b"")

    with caplog.at_level(logging.WARNING, logger="pyhudi"):
        done = table.upsert(pa.table({"k": ["a", "b"], "v": [2, 3]}))

    assert (done.requested or far) < FAR[1]
    assert f"'{far}'" in caplog.text
    assert "lies in the future and is stepped over" in caplog.text
    assert table.upsert(ROWS).updated == 1
    assert sorted(table.scan().to_arrow().column("k").to_pylist()) == ["a", "b"]


@pytest.mark.parametrize("far", FAR)
def test_a_completed_write_of_the_far_future_is_an_error_that_names_the_way_out(far: str) -> None:
    storage, table, timeline = a_table(8)
    first = table.timeline()[0]
    content = storage.get(f"{timeline}/{first.requested}_{first.completed}.deltacommit")
    storage.put(f"{timeline}/{far}_{far}.deltacommit", content)

    with pytest.raises(Unavailable, match="`rollback` takes back the commit"):
        table.upsert(ROWS)


def test_a_plan_of_the_far_future_is_taken_off() -> None:
    """What such a plan leaves out would be older than its base file, and hidden by it, once it is carried out."""
    storage, table, timeline = a_table(8)
    table.upsert(ROWS)
    plan = table.schedule_compaction().requested
    content = storage.get(f"{timeline}/{plan}.compaction.requested")
    storage.delete(f"{timeline}/{plan}.compaction.requested")
    storage.put(f"{timeline}/{FAR[1]}.compaction.requested", content)

    with pytest.raises(Unavailable, match="or the compaction that it planned"):
        table.upsert(ROWS)
    table.rollback(FAR[1])
    assert table.upsert(ROWS).updated == 1
