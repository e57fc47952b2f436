"""A restore goes by when writes completed, a savepoint's files and cleans by when they were requested. A write that was
requested before the savepoint's commit and completed after it is taken back by the restore. The slice below it could be
gone by then.
"""

import pytest

from pyhudi import NotFound
from tests.concurrency.test_clean_beside_others import Disk
from tests.concurrency.test_second_writer import watched
from tests.support.model import Row, arrow

BESIDE = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}


def written(version: int) -> tuple[Disk, str]:
    """A table to whose partition `oslo` a write went that began before one to `rome`, and completed after it. And the
    requested time of the latter.
    """
    disk = Disk(version=version)
    disk.create(1)
    within: list[str] = []

    def before(what: str) -> None:
        if not within and "oslo/" in what and ".parquet" in what and ".hoodie" not in what:
            within.append("")
            within[0] = disk.open().upsert(arrow([Row("k-rome", "rome", 5, 5)]), options=BESIDE).requested or ""

    late = disk.open(watched(disk.storage, before)).upsert(arrow([Row("k-oslo", "oslo", 4, 4)]), options=BESIDE)
    assert late.requested is not None
    assert late.requested < within[0]
    return disk, within[0]


def write_on_and_clean(disk: Disk, retained: int) -> None:
    for turn in (6, 7):
        disk.open().upsert(arrow([Row("k-oslo", "oslo", turn, turn), Row("k-rome", "rome", turn, turn)]))
    assert disk.open().clean(options={"hoodie.clean.commits.retained": retained}).files_deleted > 0


@pytest.mark.parametrize("version", [8, 9])
def test_a_savepoint_keeps_what_lies_below_writes_that_completed_later(version: int) -> None:
    disk, saved = written(version)
    disk.open().savepoint(saved)
    write_on_and_clean(disk, retained=1)
    assert len(disk.open().restore(saved).rolled_back) == 3
    disk.check({"k-oslo": 0, "k-rome": 5})


@pytest.mark.parametrize("version", [8, 9])
def test_a_restore_is_refused_where_a_clean_took_what_lies_below_a_late_write(version: int) -> None:
    disk, to = written(version)
    write_on_and_clean(disk, retained=3)
    with pytest.raises(NotFound, match=f"restore to .{to}.: its files were cleaned away: of file group"):
        disk.open().restore(to)
    disk.check({"k-oslo": 7, "k-rome": 7})
