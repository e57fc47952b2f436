"""A table that is written for years could grow without end: in files, in instants, in its metadata table, or in what a
write asks of its store. Two hundred commits, with the settings that a table has by default."""

from collections.abc import Iterator
from datetime import UTC

import pytest

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.names import METADATA_TABLE
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.snapshot import read_snapshot
from pyhudi.testing.counting import CountingStorage
from tests.support.model import Handles, Row, StepClock, arrow, read_rows, seeded_uuids

COMMITS = 200
FOLDERS = ("oslo", "rome", ".hoodie/timeline", f"{METADATA_TABLE}/files", f"{METADATA_TABLE}/.hoodie/timeline")


def change(turn: int) -> list[Row]:
    return [Row("a", "oslo", turn, turn), Row("b", "rome", turn, turn)]


@pytest.mark.long
def test_two_hundred_commits_leave_as_much_as_fifty() -> None:
    clock = StepClock()
    disk = MemoryStorage(clock_ms=lambda: clock.ms)
    storage = CountingStorage(disk)
    table = Handles(storage, clock, seeded_uuids(1), SerialExecutor()).create()
    sizes: list[tuple[int, ...]] = []
    requests: list[int] = []
    for turn in range(COMMITS):
        storage.reset()
        table.upsert(arrow(change(turn)))
        requests.append(sum(storage.counts.values()))
        sizes.append(tuple(sum(1 for _ in disk.list(folder)) for folder in FOLDERS))

    for folder, early, late in zip(FOLDERS, peaks(sizes[50:100]), peaks(sizes[150:]), strict=True):
        assert late <= early, f"{folder} grows: {early} files at most, then {late}"
    assert max(requests[150:]) <= max(requests[50:100]) * 1.05
    # A base file of each of ten retained commits, the one that readers of the first saw, the partition's metadata.
    assert sizes[-1][:2] == (12, 12)

    snapshot = read_snapshot(disk, UTC, open_listing)
    by_storage = StorageListing(disk)
    assert [snapshot.listing.files(p) for p in ("oslo", "rome")] == [by_storage.files(p) for p in ("oslo", "rome")]
    assert {of.row for of in read_rows(table.scan().to_arrow()).values()} == set(change(COMMITS - 1))
    assert sum(1 for i in table.timeline(history=True) if i.action == "commit") == COMMITS


def peaks(sizes: list[tuple[int, ...]]) -> Iterator[int]:
    return (max(of) for of in zip(*sizes, strict=True))
