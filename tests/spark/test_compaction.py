"""A compaction on Spark could leave other files than one in this process, or none that the commit knows.

The same table is compacted both ways; each task runs what a thread of this process would, so that the rest is tested
without Spark. Or it could start tasks where all that they have is this machine, which its own threads use better.
"""

import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pyhudi import HudiTable, Invalid
from pyhudi.engine.spark.slice_work import SparkSliceWork
from pyhudi.storage.local import LocalStorage
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables
from tests.support.merge_on_read import handle, in_memory, without_file_names
from tests.support.model import problems_on
from tests.support.spark_frames import collected

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["mor_event_time_v6_h0150", "mor_event_time_v8_h102", "mor_logonly_v9_h120"])
def test_a_compaction_on_a_cluster_leaves_the_rows_of_one_in_this_process(
    spark: Any, golden: GoldenTables, tmp_path: Path, on_cluster: None, name: str
) -> None:
    here, there = (HudiTable.open(shutil.copytree(golden.get(name).path, tmp_path / where)) for where in "ab")
    before = without_file_names(there.scan().to_arrow())

    logs = there.log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"}, spark=spark)
    assert logs.file_groups > 0
    assert_same_rows(without_file_names(there.scan().to_arrow()), before)
    on_spark, in_process = there.compact(spark=spark), here.compact()

    assert (on_spark.file_groups, on_spark.rows) == (in_process.file_groups, in_process.rows)
    assert_same_rows(without_file_names(there.scan(query="read_optimized").to_arrow()), before)
    assert_same_rows(without_file_names(here.scan().to_arrow()), before)
    assert_same_rows(without_file_names(collected(there.scan().to_spark(spark))), before)
    assert problems_on(LocalStorage(str(tmp_path / "b"))) == []


def test_on_this_machine_no_task_of_spark_compacts(
    spark: Any, golden: GoldenTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("a compaction went to Spark's tasks")

    monkeypatch.setattr(SparkSliceWork, "run", refuse)
    table = HudiTable.open(shutil.copytree(golden.get("mor_event_time_v8_h102").path, tmp_path / "table"))
    before = without_file_names(table.scan().to_arrow())
    assert table.compact(spark=spark).file_groups > 0
    assert_same_rows(without_file_names(table.scan(query="read_optimized").to_arrow()), before)


def test_a_table_in_memory_is_not_compacted_on_spark(spark: Any, golden: GoldenTables) -> None:
    with pytest.raises(Invalid, match="memory"):
        handle(in_memory(golden.get("mor_nonpart_v9_h120"))).compact(spark=spark)
