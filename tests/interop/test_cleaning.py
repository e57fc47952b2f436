"""A clean of ours could delete what Apache Hudi still needs, or leave a metadata table that lists files which are
gone; and the other way round. Both clean one table here in turns, and each finishes what the other left pending.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TypeVar

import pytest

from pyhudi import HudiTable
from pyhudi.errors import NotFound
from pyhudi.format.timeline.action_files import decode_clean_metadata
from pyhudi.format.timeline.instant import Instant
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.storage.local import LocalStorage
from pyhudi.table.view.snapshot import read_snapshot
from pyhudi.testing.crashing import Crash, CrashingStorage
from tests.interop.cow_rows import META_BUT_TIME, key_range, rows
from tests.interop.cow_tables import Shared
from tests.support.compare import assert_same_rows
from tests.support.model import cleaned_paths
from tests.support.reference.client import ReferenceFailed, ReferenceHudi

T = TypeVar("T")

RETAINED = 3
FEW: dict[str, object] = {"hoodie.clean.commits.retained": RETAINED}
OURS = {**FEW, "hoodie.metadata.compact.max.delta.commits": 3}


def cleans(shared: Shared, state: str = "COMPLETED") -> list[Instant]:
    return [i for i in shared.ours.timeline() if i.action == "clean" and i.state == state]


def still_there(shared: Shared) -> list[str]:
    """Files that completed cleans deleted, and that are there all the same."""
    names = {file.name for file in shared.base_files()}
    snapshot = read_snapshot(LocalStorage(str(shared.path)), UTC, open_listing)
    gone = {path.rpartition("/")[2] for path in cleaned_paths(snapshot)}
    assert gone
    return sorted(names & gone)


def options(shared: Shared, given: dict[str, object]) -> None:
    """Our handle with other defaults."""
    shared.ours = HudiTable.open(shared.path, options=given)


def shared_table(path: Path) -> Shared:
    shared = Shared(path)
    options(shared, OURS)
    return shared


def test_hudi_reads_what_our_cleans_leave_and_cleans_on(
    tmp_path: Path, hudi_102: ReferenceHudi, hudi_120: ReferenceHudi
) -> None:
    shared = shared_table(tmp_path / "rides")
    commits = [shared.bulk_insert(rows(key_range(0, 120), turn=1))]
    commits += [shared.upsert(rows(key_range(turn, 130, 4), turn=turn)) for turn in range(2, 16)]
    assert len(cleans(shared)) >= 8
    shared.check(hudi_102, hudi_120)

    for at in (-RETAINED, -2):  # retained by commits[-RETAINED] and later
        then = shared.ours.scan(as_of=commits[at]).to_arrow()
        assert_same_rows(then, shared.model.table(commits[at]), ignore_columns=META_BUT_TIME)
        for listing in (True, False):
            found = hudi_102.read(shared.path, **{"as.of.instant": commits[at], "hoodie.metadata.enable": listing})
            assert_same_rows(found, then)
    with pytest.raises(NotFound, match="cleaned away"):
        shared.ours.scan(as_of=commits[-RETAINED - 2])
    with pytest.raises(ReferenceFailed):
        hudi_102.read(shared.path, **{"as.of.instant": commits[-RETAINED - 2]})

    known = {i.requested for i in cleans(shared)}
    for turn in (16, 17):
        shared.hudi_write(hudi_102, "upsert", rows(key_range(turn, 140, 3), turn=turn), **FEW)
    theirs = {i.requested for i in cleans(shared)} - known
    assert theirs, "Apache Hudi found nothing to clean"
    assert not still_there(shared)
    shared.check(hudi_102)

    for turn in range(18, 23):
        shared.upsert(rows(key_range(turn, 140, 3), turn=turn))
    assert {i.requested for i in cleans(shared)} - known - theirs, "we found nothing to clean"
    shared.check(hudi_102, hudi_120)


def test_partitions_that_we_cleaned_away_are_gone_for_hudi_too(tmp_path: Path, hudi_102: ReferenceHudi) -> None:
    shared = shared_table(tmp_path / "rides")
    shared.bulk_insert(rows(key_range(0, 60), turn=1))
    gone = next(iter(sorted({row["city"] for row in shared.model.rows.values() if row["city"]})))
    shared.ours.delete_partitions([gone])
    keys = [key for key, row in shared.model.rows.items() if row["city"] == gone]
    deleted = shared.ours.timeline()[-1].requested
    shared.model.delete(deleted, keys)
    kept = [key for key in key_range(0, 60) if key not in keys]
    for turn in range(2, 8):
        shared.upsert([{**row, "city": shared.model.rows[row["id"]]["city"]} for row in rows(kept[turn::5], turn=turn)])

    assert not (shared.path / gone).exists()
    shared.check(hudi_102)
    shared.hudi_write(hudi_102, "upsert", rows(keys[:3], turn=9), **FEW)
    shared.check(hudi_102)
    shared.upsert(rows(keys[2:5], turn=10))
    shared.check(hudi_102)


@dataclass
class DyingAt(CrashingStorage):
    """Loses power at the first change whose words hold `mark`, after `spared` such changes."""

    mark: str = ""

    def change(self, what: str, apply: Callable[[], T]) -> T:
        if not self.dead and self.mark in what:
            self.survives = self.done
        return super().change(what, apply)


@pytest.mark.parametrize(
    "mark,lands",
    [(".clean.requested'", True), (".clean.inflight'", True), ("0-0-0_", True), (".clean'", False)],
    ids=["requested", "inflight", "a file deleted", "before completion"],
)
def test_hudi_finishes_a_clean_of_ours(tmp_path: Path, hudi_102: ReferenceHudi, mark: str, lands: bool) -> None:
    shared = shared_table(tmp_path / "rides")
    options(shared, {**OURS, "hoodie.clean.automatic": False})
    shared.bulk_insert(rows(key_range(0, 80), turn=1))
    for turn in range(2, 7):
        shared.upsert(rows(key_range(turn, 90, 3), turn=turn))
    dying = DyingAt(LocalStorage(str(shared.path)), survives=1_000_000, lands=lands, mark=mark)
    with pytest.raises(Crash):
        HudiTable.open(shared.path, options=OURS, storage=dying).clean()
    (pending,) = [i for i in shared.ours.timeline() if i.action == "clean"]
    assert pending.state != "COMPLETED"
    shared.check(hudi_102)

    shared.hudi_write(hudi_102, "upsert", rows(key_range(7, 90, 3), turn=7), **FEW)

    assert pending.requested in {i.requested for i in cleans(shared)}
    assert not still_there(shared)
    shared.check(hudi_102)
    shared.upsert(rows(key_range(8, 90, 3), turn=8))
    shared.check(hudi_102)


@pytest.mark.parametrize("name", ["hudi_102", "hudi_120"])
@pytest.mark.parametrize("told", [True, False], ids=["metadata table knows", "metadata table does not know"])
def test_we_finish_a_clean_of_hudi(request: pytest.FixtureRequest, tmp_path: Path, name: str, told: bool) -> None:
    hudi: ReferenceHudi = request.getfixturevalue(name)
    stay = {"hoodie.write.auto.upgrade": False, "hoodie.write.table.version": 8} if name == "hudi_120" else {}
    shared = shared_table(tmp_path / "rides")
    options(shared, {**OURS, "hoodie.clean.automatic": False})
    shared.bulk_insert(rows(key_range(0, 80), turn=1))
    for turn in range(2, 6):
        shared.upsert(rows(key_range(turn, 90, 3), turn=turn))
    shared.hudi_write(hudi, "upsert", rows(key_range(6, 90, 3), turn=6), **FEW, **stay)
    (clean,) = cleans(shared)
    take_back(shared, clean, told=told)
    assert [i.requested for i in cleans(shared, "INFLIGHT")] == [clean.requested]
    assert_same_rows(shared.check_ours(), hudi.read(shared.path))

    shared.upsert(rows(key_range(7, 90, 3), turn=7))
    result = shared.ours.clean()

    assert result.requested == clean.requested or result.files_deleted > 0
    assert clean.requested in {i.requested for i in cleans(shared)}
    assert cleans(shared, "INFLIGHT") == []
    assert not still_there(shared)
    shared.check(hudi)
    shared.hudi_write(hudi, "upsert", rows(key_range(8, 90, 3), turn=8), **FEW, **stay)
    shared.check(hudi)


def take_back(shared: Shared, clean: Instant, *, told: bool) -> None:
    """Turn a clean of Apache Hudi into what it leaves when it dies just before completing it."""
    timeline = shared.path / ".hoodie" / "timeline"
    (completed,) = timeline.glob(f"{clean.requested}_*.clean")
    metadata = decode_clean_metadata(completed.read_bytes(), path=str(completed))
    assert metadata.total_files_deleted > 0
    remove(completed)
    if not told:
        (deltacommit,) = (shared.path / ".hoodie/metadata/.hoodie/timeline").glob(f"{clean.requested}_*.deltacommit")
        remove(deltacommit)


def remove(file: Path) -> None:
    for path in (file, file.with_name(f".{file.name}.crc")):
        path.unlink(missing_ok=True)
