"""A compaction that died could block the calls that replace its file groups, for ever.

A compaction is stopped at every change of the storage; then comes a call that replaces what it was about to rewrite.
Either that call goes through, or it names a call that ends the compaction, and after that one it goes through.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import Conflict, HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Invalid
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.support.crashes import crash_points, distinct
from tests.support.model import Handles, StepClock, problems_on, seeded_uuids
from tests.support.versions import EVERY_VERSION

START, DEAD_MS = 1_780_000_000_000, 600_000
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ROWS = pa.table({"id": ["a", "b"], "city": ["oslo", "rome"], "ts": [1, 1], "v": [1, 2]})
NEW = pa.table({"id": ["c"], "city": ["oslo"], "ts": [1], "v": [3]})

CALLS: dict[str, tuple[Callable[[HudiTable], object], set[str]]] = {
    "insert_overwrite": (lambda table: table.insert_overwrite(NEW), {"b", "c"}),
    "insert_overwrite_table": (lambda table: table.insert_overwrite_table(NEW), {"c"}),
    "delete_partitions": (lambda table: table.delete_partitions(["city=oslo"]), {"b"}),
}


def opened(storage: Storage, *, later_ms: int) -> HudiTable:
    return Handles(storage, StepClock(START + later_ms), seeded_uuids(later_ms), SerialExecutor()).open()


def with_logs(version: int) -> MemoryStorage:
    on = MemoryStorage(clock_ms=lambda: START + 60_000)
    table = Handles(on, StepClock(START), seeded_uuids(1), SerialExecutor()).create(
        table_version=version, table_type="MERGE_ON_READ", properties=HIVE_STYLE
    )  # fmt: skip
    table.upsert(ROWS)
    table.upsert(ROWS)
    return on


def keys(storage: Storage, *, later_ms: int) -> set[str]:
    return set(opened(storage, later_ms=later_ms).scan().to_arrow().column("id").to_pylist())


def compact(storage: Storage) -> None:
    opened(storage, later_ms=60_000).compact()


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_a_compaction_that_died_blocks_no_replacement_for_ever(version: int) -> None:
    disk = with_logs(version)
    refused = 0
    points = distinct(crash_points(compact, disk.copy))
    for number, (what, after) in enumerate(points):
        call, left = list(CALLS.values())[number % len(CALLS)]
        table = opened(after, later_ms=60_000 + DEAD_MS)
        try:
            call(table)
        except Conflict as error:
            refused += 1
            named = re.search(r"compact\(\) carries it out, rollback\('(\d+)'\)", str(error))
            assert named is not None, what
            if refused % 2:
                table.rollback(named[1])
            else:
                table.compact()
            call(table)
        assert keys(after, later_ms=60_000 + 2 * DEAD_MS) == left, what
        assert problems_on(after) == [], what
    assert refused < 4


def test_rows_written_upon_the_plan_of_a_dead_compaction_stay() -> None:
    """Up to version 6 logs are called after the plan's slice: only the compaction ends it then."""
    for version in (6, 8):
        storage = with_logs(version)
        table = opened(storage, later_ms=DEAD_MS)
        plan = table.schedule_compaction().requested
        assert plan is not None
        table.upsert(ROWS.set_column(3, "v", pa.array([7, 8])))
        if version == 6:
            with pytest.raises(Invalid, match=r"compact\(\) carries it out"):
                table.rollback(plan)
            table.compact()
        else:
            table.rollback(plan)
        assert sorted(table.scan().to_arrow().column("v").to_pylist()) == [7, 8]
        assert problems_on(storage) == []


COMPACT_AND_WAIT = """
import sys
sys.path[:0] = sys.argv[2:4]
from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
class Waits(SerialExecutor):
    def run(self, function, tasks):
        print("waiting", flush=True)
        sys.stdin.read()
        return super().run(function, tasks)
HudiTable.open(sys.argv[1], executor=Waits()).compact()
"""


@pytest.mark.parametrize("call", ["insert_overwrite", "compact"])
def test_a_compaction_whose_process_was_killed_is_known_to_be_dead_at_once(tmp_path: Path, call: str) -> None:
    root = str(tmp_path / "a table")
    HudiTable.create(root, name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
                     properties=HIVE_STYLE)  # fmt: skip
    table = HudiTable.open(root)
    table.upsert(ROWS)
    table.upsert(ROWS)
    folders = str(Path(pyhudi.__file__).parents[1]), str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", COMPACT_AND_WAIT, root, *folders],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        with pytest.raises(Conflict, match="another process runs it"):
            table.compact()
        process.send_signal(signal.SIGKILL)

    if call == "compact":
        assert table.compact().rows == 2
    else:
        run, left = CALLS[call]
        run(table)
        assert set(table.scan().to_arrow().column("id").to_pylist()) == left
    assert not [i for i in table.timeline() if i.state != "COMPLETED"]
    assert problems_on(LocalStorage(root)) == []
