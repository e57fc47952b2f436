"""Two writers of one log could undo each other: a base file or a log that one does not see, an attempt that is not
rolled back, an archived instant that its blocks need. Apache Hudi and pyhudi write, compact, archive and clean the same
merge-on-read tables, in turns; either's answer, and the model's, must be the same after each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.storage.local import LocalStorage
from pyhudi.testing.crashing import Crash, CrashingStorage
from tests.interop.cow_rows import META_BUT_TIME, key_range, rows
from tests.interop.cow_tables import Shape
from tests.interop.mor_tables import BLOCK_FORMAT, PARTIAL, SharedLogs
from tests.interop.test_cow_tables import FILTERS, SKIPPING, leftovers, leftovers_for_hudi, uncommit
from tests.interop.test_ten_turns import FEW, STAYS
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

T = TypeVar("T")

PAIRS = pytest.mark.parametrize(
    "name, version, options",
    [("hudi_102", 8, {}), ("hudi_120", 9, {}), ("hudi_120", 8, STAYS)],
    ids=["1.0.2 on version 8", "1.2.0 on version 9", "1.2.0 on version 8"],
)
COMPACTS: dict[str, object] = {"hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1}
BLOCKS = ("parquet", "avro")


@PAIRS
def test_ten_turns(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any]
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = SharedLogs(tmp_path / "rides", Shape("ten turns", properties=FEW), version=version)
    shared.bulk_insert(rows(key_range(0, 120), turn=1))
    done: dict[str, dict[str, set[str]]] = {
        what: {"pyhudi": set(), "hudi": set()} for what in ("archive", "metadata compaction", "clean", "compaction")
    }
    seen: dict[str, set[str]] = {what: set() for what in done}

    def note(who: str) -> None:
        whole = shared.ours.timeline(history=True)
        now = {
            "archive": shared.archived(),
            "metadata compaction": {of.format() for of in shared.metadata_compactions()},
            "clean": {i.requested for i in whole if i.action == "clean"},
            "compaction": {i.requested for i in whole if i.action == "commit" and i.completed is not None},
        }
        assert seen["archive"] <= now["archive"], "an archived instant is gone"
        for what, found in now.items():
            done[what][who] |= found - seen[what]
            seen[what] |= found

    for turn in range(2, 12):
        fresh = key_range(1_000 * turn, 1_000 * turn + 12)
        shared.upsert(rows([*key_range(turn, 120, 7), *fresh], turn=10 * turn), **{BLOCK_FORMAT: BLOCKS[turn % 2]})
        shared.delete(fresh[:3])
        shared.upsert_columns(rows(sorted(shared.model.rows)[turn::11], turn=10 * turn + 1), PARTIAL)
        if turn % 4 == 0:
            assert shared.ours.compact().requested is not None
        note("pyhudi")
        compacts = COMPACTS if turn % 3 == 0 else {}
        changed = rows(key_range(turn + 2, 140, 9), turn=10 * turn + 2)
        shared.hudi_write(hudi, "upsert", changed, **{**FEW, **options, **compacts})
        shared.hudi_delete(hudi, fresh[3:6], **FEW, **options)
        note("hudi")
        shared.check_ours()
        if turn % 3 == 1:
            shared.check(hudi)
    shared.check(hudi)
    for where, keeps in FILTERS:
        found = hudi.read(shared.path, where, **SKIPPING)
        assert_same_rows(found, shared.model.table(where=keeps), ignore_columns=META_BUT_TIME)
        assert_same_rows(shared.ours.scan(where=where).to_arrow(), found)
    assert shared.ours.table_version == version
    for what, of in done.items():
        assert all(of.values()), f"expected each of {what} by both, found {of}"


@PAIRS
def test_a_deleted_row_stays_deleted_when_we_write_an_older_one(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any]
) -> None:
    """Our upsert writes a base file instead of a log by which both would show the deleted row again."""
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = SharedLogs(tmp_path / "rides", version=version)
    keys = key_range(0, 40)
    shared.bulk_insert(rows(keys, turn=50))
    shared.delete(keys[:10])
    shared.upsert(rows(keys[5:15], turn=7))
    shared.check(hudi)
    shared.hudi_write(hudi, "upsert", rows(keys[3:20:2], turn=60), **options)
    shared.hudi_delete(hudi, keys[5:30:3], **options)
    shared.check(hudi)
    shared.upsert(rows(keys[4:40:2], turn=3))
    shared.check(hudi)
    shared.hudi_write(hudi, "upsert", rows(keys[::3], turn=70), **{**options, **COMPACTS})
    shared.check(hudi)
    shared.ours.compact()
    shared.check(hudi)


# Writers that died.


@dataclass
class DyingAt(CrashingStorage):
    """Loses power at the first change whose words match `mark`."""

    mark: str = ""

    def change(self, what: str, apply: Callable[[], T]) -> T:
        if not self.dead and re.search(self.mark, what):
            self.survives = self.done
        return super().change(what, apply)


FATAL = (
    (r"'\.hoodie/timeline/\d+\.deltacommit\.requested'", True),
    (r"'\.hoodie/timeline/\d+\.deltacommit\.inflight'", True),
    (r"\.log\.1_[\d-]+\.marker\.CREATE'", True),
    (r"put_stream '\w+/\.\S+\.log\.1_", True),
    (r"\.hoodie/metadata/files/", True),
    (r"'\.hoodie/metadata/\.hoodie/timeline/\S+\.deltacommit'", True),
    (r"'\.hoodie/timeline/\d+_\d+\.deltacommit'", False),
)


@PAIRS
def test_hudi_rolls_back_the_logs_that_we_left_when_we_died(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any]
) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = SharedLogs(tmp_path / "rides", version=version)
    shared.bulk_insert(rows(key_range(0, 40), turn=1))
    shared.upsert(rows(key_range(20, 60), turn=2))
    for turn, (mark, lands) in enumerate(FATAL, 3):
        disk = DyingAt(LocalStorage(str(shared.path)), survives=1 << 30, lands=lands, mark=mark)
        # What dies is the delta commit, no compaction of the metadata table before it.
        seldom = {"hoodie.metadata.compact.max.delta.commits": 1_000}
        ours = HudiTable.open(shared.path, storage=disk, options=seldom, executor=SerialExecutor())
        with pytest.raises(Crash, match="lights out"):
            ours.upsert(shared._as_table(rows(key_range(0, 70), turn=99)))
        dead = [i.requested for i in shared.ours.timeline() if i.completed is None]
        assert len(dead) == 1, disk.fatal
        assert_same_rows(hudi.read(shared.path), shared.check_ours())
        shared.hudi_write(hudi, "upsert", rows(key_range(turn, turn + 50, 5), turn=turn), **options)
        assert_same_rows(hudi.read(shared.path), shared.check_ours())
        assert [file for one in dead for file in leftovers_for_hudi(shared, one)] == []
    shared.check(hudi)
    shared.upsert(rows(key_range(0, 80, 3), turn=50))
    shared.check(hudi)


@pytest.mark.parametrize("leaves_markers", [True, False])
@pytest.mark.parametrize("listed", [True, False])
@PAIRS
def test_we_roll_back_the_logs_that_hudi_left_when_it_died(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int, options: dict[str, Any],
    leaves_markers: bool, listed: bool,
) -> None:  # fmt: skip
    """`listed`: it died after the metadata table took the delta commit in, otherwise while it did."""
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = SharedLogs(tmp_path / "rides", version=version)
    shared.bulk_insert(rows(key_range(0, 60), turn=1))
    shared.hudi_write(hudi, "upsert", rows(key_range(20, 80), turn=2), **options)
    before = dict(shared.model.rows)
    dead = shared.hudi_write(hudi, "upsert", rows(key_range(40, 120), turn=3), **options)
    assert any(dead in file.name for file in shared.logs())
    assert any(dead in file.name for file in shared.base_files())
    uncommit(shared, dead, leaves_markers=leaves_markers, listed=listed)
    shared.model.rows = before
    del shared.model.past[dead]
    assert_same_rows(hudi.read(shared.path), shared.check_ours())

    shared.upsert(rows(key_range(10, 50, 3), turn=4))
    assert leftovers(shared, dead) == []
    shared.check(hudi)
    shared.hudi_write(hudi, "upsert", rows(key_range(30, 100, 4), turn=5), **options)
    shared.check(hudi)
