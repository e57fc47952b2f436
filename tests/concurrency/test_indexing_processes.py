"""Locks and heartbeats could hold on paper only: here one process writes as fast as it can while this one builds.

Nothing of what the writer committed may be missing from an index, and neither may keep the other from its work.
"""

import multiprocessing
import time
from pathlib import Path

from pyhudi import Conflict, HudiTable
from pyhudi.storage.local import LocalStorage
from tests.support.metadata_indexes import index_problems
from tests.support.model import Row, arrow

KINDS = ("record_index", "column_stats", "bloom_filters")
WAIT_S = 120.0


def write_until(path: str, stop: Path) -> None:
    """Upserts and deletes until the file `stop` appears; a table that is held is tried again."""
    turn = 0
    while not stop.exists():
        turn += 1
        rows = [Row(f"k{n}", ("oslo", "rome", "bonn")[n % 3], turn, turn) for n in range(turn, turn + 4)]
        try:
            table = HudiTable.open(path)
            table.upsert(arrow(rows))
            table.delete(arrow(rows[:1]))
        except Conflict:
            time.sleep(0.02)


def build(path: str, kind: str) -> None:
    end = time.monotonic() + WAIT_S
    while True:
        try:
            result = HudiTable.open(path).build_index(kind)
            assert result.completed is not None
            return
        except Conflict:
            assert time.monotonic() < end, f"{kind}: the writer never let it begin"
            time.sleep(0.02)


def test_indexes_are_built_while_another_process_writes(tmp_path: Path) -> None:
    path, stop = str(tmp_path / "t"), tmp_path / "stop"
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        table_version=9, properties={"hoodie.metadata.global.record.level.index.min.filegroup.count": "2"},
    )  # fmt: skip
    table.upsert(arrow([Row(f"k{n}", ("oslo", "rome", "bonn")[n % 3], 0, n) for n in range(12)]))
    writer = multiprocessing.get_context("spawn").Process(target=write_until, args=(path, stop))
    writer.start()
    try:
        for kind in KINDS:
            build(path, kind)
        commits = len(table.timeline())
        end = time.monotonic() + WAIT_S
        while len(table.timeline()) < commits + 2 and time.monotonic() < end:
            time.sleep(0.1)
    finally:
        stop.touch()
        writer.join(WAIT_S)
    assert writer.exitcode == 0
    assert set(KINDS) <= set(table.properties["hoodie.table.metadata.partitions"].split(","))
    assert index_problems(LocalStorage(path)) == []
