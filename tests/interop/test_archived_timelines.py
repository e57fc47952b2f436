"""Apache Hudi could fail to read what pyhudi archived, or pyhudi what Apache Hudi did: an instant that only one of
the two finds makes rows of an incremental query appear or disappear. Here both archive one timeline in turns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import HudiTable
from pyhudi.format.timeline.lsm import HistoryFileName
from tests.interop.cow_rows import COMMIT_TIME, META_BUT_TIME, key_range, rows
from tests.interop.cow_tables import Shape, Shared, next_ms
from tests.support.compare import assert_same_rows
from tests.support.reference.client import ReferenceHudi

INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"

KEEP = {
    "hoodie.keep.min.commits": 4,
    "hoodie.keep.max.commits": 5,
    "hoodie.clean.automatic": False,
    "hoodie.clean.commits.retained": 3,
    "hoodie.timeline.compaction.batch.size": 3,
    "hoodie.metadata.compact.max.delta.commits": 2,
}
HUDI_KEEP = {**KEEP, "hoodie.write.auto.upgrade": False, "hoodie.write.table.version": 8}
HISTORY = ".hoodie/timeline/history"


def write_some(shared: Shared, hudi: ReferenceHudi | None, turn: int, count: int) -> list[str]:
    """That many commits, each with some keys of its own and some of the one before, by us or by Apache Hudi."""
    commits = []
    for n in range(turn, turn + count):
        new = rows(key_range(10 * n, 10 * n + 15), turn=n)
        commits.append(shared.upsert(new) if hudi is None else shared.hudi_write(hudi, "upsert", new, **HUDI_KEEP))
    return commits


def check_ranges(shared: Shared, hudi: ReferenceHudi, commits: list[str], *, counts_start_in: bool) -> None:
    """Incremental queries that start among archived commits. To the latest commit both answer as the model does.

    Where the end is archived too, we give the rows as they stood at that end. Apache Hudi filters those of now, so
    that rows which were written again after the end are missing.
    """
    gone = sorted(shared.archived())
    assert len(gone) >= 2
    completed = {i.requested: i.completed for i in shared.ours.timeline(history=True) if i.action == "commit"}
    assert sorted(completed) == commits
    now = shared.ours.scan().to_arrow()
    for first, last in ((gone[0], gone[-1]), (gone[1], commits[-1]), (commits[0], commits[-1])):
        start, end = completed[first], completed[last]
        assert start is not None
        expected = shared.model.changed(commits[commits.index(first) + 1 : commits.index(last) + 1])
        ours = shared.ours.incremental(start, end).to_arrow()
        assert_same_rows(ours, expected, ignore_columns=META_BUT_TIME)
        times = now[COMMIT_TIME]
        left = now.filter(pc.and_(pc.greater(times, first), pc.less_equal(times, last)))
        begin = next_ms(start) if counts_start_in else start
        theirs = hudi.read(shared.path, **INCREMENTAL, **{BEGIN: begin, END: end})
        assert_same_rows(theirs, left)
        if last == commits[-1]:
            assert_same_rows(theirs, ours)


@pytest.mark.parametrize("name,version", [("hudi_0150", 6), ("hudi_102", 8), ("hudi_120", 9)])
def test_apache_hudi_reads_what_was_written_behind_a_commit_with_a_savepoint(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, version: int
) -> None:
    """It reads no file of a write that is archived and later than that commit."""
    hudi: ReferenceHudi = request.getfixturevalue(name)
    beyond = {**KEEP, "hoodie.archive.beyond.savepoint": True, "hoodie.clean.automatic": True}
    table = HudiTable.create(
        tmp_path / "rides", name="rides", record_key="id", partition_by="city", table_version=version, properties=beyond
    )
    for number in range(12):
        again = ["again"] if number % 2 else []
        table.upsert(pa.table({"id": ["k"] * (1 + len(again)), "city": [f"city {number}", *again]}))
        if number == 0:
            table.savepoint()
    assert_same_rows(hudi.read(table.path), table.scan().to_arrow())


@pytest.mark.parametrize("name", ["hudi_102", "hudi_120"])
def test_both_archive_one_timeline_in_turns(request: pytest.FixtureRequest, tmp_path: Path, name: str) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    shared = Shared(tmp_path / "rides", Shape("archived", properties=KEEP))
    commits = write_some(shared, None, turn=1, count=10)
    ours_gone = shared.archived()
    assert ours_gone
    check_ranges(shared, hudi, commits, counts_start_in=name == "hudi_102")

    commits += write_some(shared, hudi, turn=11, count=4)
    assert shared.archived() > ours_gone, "Apache Hudi archived nothing"
    check_ranges(shared, hudi, commits, counts_start_in=name == "hudi_102")

    commits += write_some(shared, None, turn=15, count=6)
    names = [file.name for file in (shared.path / HISTORY).iterdir()]
    assert max(of.layer for of in map(HistoryFileName.parse, names) if of is not None) >= 1
    check_ranges(shared, hudi, commits, counts_start_in=name == "hudi_102")
    assert_same_rows(shared.check_ours(), hudi.read(shared.path))
    shared.check(hudi)
