"""A table of version 6 is there for those who stay with Apache Hudi 0.14 and 0.15: a file of ours that such a release
takes otherwise than we do, or an instant that it trips over, would lose their rows. It and 1.2.0, kept from upgrading,
read and write the same tables as we do, in turns, and each rolls back what the other left when it died."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.log.headers import instant_time
from pyhudi.format.log.reader import scan_log
from pyhudi.format.log.source import MemoryLog
from pyhudi.storage.local import LocalStorage
from pyhudi.testing.crashing import Crash
from tests.interop.cow_rows import key_range, rows
from tests.interop.cow_tables import PLAIN, SHAPES, Shape, Shared
from tests.interop.mor_tables import BLOCK_FORMAT, SharedLogs
from tests.interop.test_log_turns import DyingAt
from tests.interop.test_ten_turns import FEW, STAYS
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

EVENT_TIME = {
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}
"""What a writer of 0.15 says anew each time, or it settles rows another way than the table's properties state."""

RELEASES = pytest.mark.parametrize(
    "name, options",
    [("hudi_0150", {}), ("hudi_120", {**STAYS, "hoodie.write.table.version": 6})],
    ids=["0.15.0", "1.2.0"],
)


def options_of(shape: Shape, options: dict[str, Any]) -> dict[str, Any]:
    return {**options, **(EVENT_TIME if shape.ordering is not None else {})}


@pytest.mark.parametrize("shape", [PLAIN, *SHAPES[1:4]], ids=lambda shape: shape.name)
@RELEASES
def test_turns_on_a_copy_on_write_table(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, options: dict[str, Any], shape: Shape
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    given = options_of(shape, options)
    shared = Shared(tmp_path / "rides", shape, version=6)
    shared.bulk_insert(rows(key_range(0, 120), turn=1))
    shared.upsert(rows(key_range(80, 140, 3), turn=2))
    shared.check(hudi)
    shared.hudi_write(hudi, "upsert", rows(key_range(3, 150, 5), turn=30), **given)
    shared.hudi_delete(hudi, key_range(83, 110, 3), **given)
    shared.check(hudi)
    shared.upsert(rows(key_range(3, 160, 4), turn=40))
    shared.delete(sorted(shared.model.rows)[3::17])
    shared.check(hudi)
    assert shared.ours.table_version == 6


@pytest.mark.parametrize("kind", ["parquet", "avro"])
@pytest.mark.parametrize("shape", [PLAIN, SHAPES[2]], ids=lambda shape: shape.name)
@RELEASES
def test_turns_on_a_merge_on_read_table(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, options: dict[str, Any], shape: Shape, kind: str
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    given = options_of(shape, options)
    shared = SharedLogs(tmp_path / "rides", shape, version=6, properties={BLOCK_FORMAT: kind})
    shared.bulk_insert(rows(key_range(0, 120), turn=1))
    shared.upsert(rows(key_range(60, 140, 3), turn=2))
    shared.delete(sorted(shared.model.rows)[3::17])
    shared.check(hudi)
    shared.hudi_write(hudi, "upsert", rows(key_range(3, 150, 5), turn=30), **given)
    shared.hudi_delete(hudi, sorted(shared.model.rows)[2::13], **given)
    shared.check(hudi)
    shared.upsert(rows(key_range(3, 160, 4), turn=40))
    shared.check(hudi)
    assert shared.ours.compact().requested is not None
    shared.model.graves.clear()
    shared.upsert(rows(key_range(3, 160, 6), turn=50))
    shared.check(hudi)
    shared.hudi_write(hudi, "upsert", rows(key_range(3, 170, 7), turn=60), **given)
    shared.check(hudi)
    assert shared.ours.table_version == 6


@pytest.mark.parametrize("kind", [Shared, SharedLogs], ids=["copy on write", "merge on read"])
@RELEASES
def test_ten_turns(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, options: dict[str, Any], kind: type[Shared]
) -> None:
    """Both clean, archive and, where there are logs, compact, on the table and its metadata table."""
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = kind(tmp_path / "rides", Shape("ten turns", properties=FEW), version=6)
    given = {**FEW, **options_of(PLAIN, options)}
    compacts = {"hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1}
    shared.bulk_insert(rows(key_range(0, 60), turn=1))
    for turn in range(2, 12):
        fresh = key_range(1_000 * turn, 1_000 * turn + 6)
        shared.upsert(rows([*key_range(turn, 60, 7), *fresh], turn=10 * turn))
        shared.delete(fresh[:2])
        if kind is SharedLogs and turn % 4 == 0:
            assert shared.ours.compact().requested is not None
        inline = compacts if kind is SharedLogs and turn % 3 == 0 else {}
        shared.hudi_write(hudi, "upsert", rows(key_range(turn + 2, 70, 9), turn=10 * turn + 2), **given, **inline)
        shared.check_ours()
    shared.check(hudi)
    whole = shared.ours.timeline(history=True)
    assert shared.archived()
    assert any(i.action == "clean" for i in whole)
    assert len([i for i in whole if i.action == shared.action]) == 31
    assert shared.ours.table_version == 6


FATAL = (
    (r"'\.hoodie/\d+\.deltacommit\.inflight'", True),
    (r"\.log\.\d+_[\d-]+\.marker\.APPEND'", True),
    (r"put_stream '\w+/\.\S+\.log\.\d+_", True),
    (r"'\.hoodie/\d+\.deltacommit'", False),
)


@RELEASES
def test_hudi_rolls_back_the_logs_that_we_left_when_we_died(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = SharedLogs(tmp_path / "rides", version=6)
    shared.bulk_insert(rows(key_range(0, 40), turn=1))
    shared.upsert(rows(key_range(20, 60), turn=2))
    for turn, (mark, lands) in enumerate(FATAL, 3):
        die(shared, mark, lands=lands)
        assert_same_rows(hudi.read(shared.path), shared.check_ours())
        given = options_of(PLAIN, options)
        shared.hudi_write(hudi, "upsert", rows(key_range(turn, turn + 50, 5), turn=turn), **given)
        shared.check_ours()
        if name == "hudi_0150":
            check_hidden(hudi, shared)
        shared.upsert(rows(key_range(1_000 + turn, 1_001 + turn), turn=turn))
        shared.check(hudi)
    shared.upsert(rows(key_range(0, 80, 3), turn=50))
    shared.check(hudi)


def check_hidden(hudi: ReferenceHudi, shared: SharedLogs) -> None:
    """Apache Hudi 0.15.0 gives a rollback a later time than the write that runs it, and stops reading a log at a block
    that is later than its newest commit: what that write logged behind its rollback block it shows from the next
    commit on.
    """
    timeline = shared.ours.timeline()
    newest = max(i.requested for i in timeline if i.action == "deltacommit")
    latest = max(i.requested for i in timeline if i.action in ("deltacommit", "commit"))
    ours, theirs = (commit_times(of) for of in (shared.ours.scan().to_arrow(), hudi.read(shared.path)))
    voided = {
        path.name.partition("_")[0][1:]
        for path in shared.path.rglob("*.log.*_1-0-1")
        if ".hoodie" not in path.parts and latest < block_instant(path.read_bytes())
    }
    assert ours.keys() == theirs.keys()
    for key, (time, file_id) in ours.items():
        is_hidden = time == newest and file_id in voided
        assert (theirs[key][0] != time) == is_hidden, key


def commit_times(table: pa.Table) -> dict[str, tuple[str, str]]:
    """Of each key the time of its row, and the file group that has it."""
    columns = ("_hoodie_record_key", "_hoodie_commit_time", "_hoodie_file_name")
    keys, times, names = (table.column(name).to_pylist() for name in columns)
    return {key: (time, name.partition("_")[0]) for key, time, name in zip(keys, times, names, strict=True)}


def block_instant(log: bytes) -> str:
    """The instant of the first block of a log."""
    (block, *_) = scan_log(MemoryLog(log), len(log), path="log")
    return instant_time(block)


@RELEASES
def test_hudi_reads_what_we_rolled_back(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = SharedLogs(tmp_path / "rides", version=6)
    shared.bulk_insert(rows(key_range(0, 40), turn=1))
    shared.upsert(rows(key_range(20, 60), turn=2))
    for turn, (mark, lands) in enumerate(FATAL, 3):
        die(shared, mark, lands=lands)
        shared.upsert(rows(key_range(turn, turn + 50, 5), turn=turn))
        shared.check(hudi)
    shared.hudi_write(hudi, "upsert", rows(key_range(0, 50, 5), turn=60), **options_of(PLAIN, options))
    shared.check(hudi)


def die(shared: SharedLogs, mark: str, *, lands: bool) -> None:
    """Leave a delta commit pending."""
    disk = DyingAt(LocalStorage(str(shared.path)), survives=1 << 30, lands=lands, mark=mark)
    seldom = {"hoodie.metadata.compact.max.delta.commits": 1_000}
    ours = HudiTable.open(shared.path, storage=disk, options=seldom, executor=SerialExecutor())
    with pytest.raises(Crash, match="lights out"):
        ours.upsert(shared._as_table(rows(key_range(0, 70), turn=99)))
    assert [i.action for i in shared.ours.timeline() if i.completed is None] == ["deltacommit"], disk.fatal
