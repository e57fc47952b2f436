"""A resizing of rings could die at any step and leave rows that no writer finds, or twice, or a ring that counts though
its files are gone. It is stopped at every change of the storage, both ways.

After each crash every reader finds the rows of before. The next run does the resizing anew, or it is rolled back; what
follows goes by the ring that counts.
"""

import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.keys.hashing_metadata import INITIAL_INSTANT, RINGS
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.concurrency.test_second_writer import watched
from tests.faults.test_clustering_crashes import BEGUN_MS, check_readers, handle, newest_write, pending, rows_of
from tests.faults.test_compaction_crashes import DEAD_MS, MINUTE_MS, names
from tests.support.crashes import crash_points, distinct
from tests.support.model import Handles, Key, Row, StepClock, Stored, arrow, problems_on, read_rows, seeded_uuids

RING = {
    "hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "4",
}  # fmt: skip
SPLIT_OR_MERGE = {
    "hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.max.num.buckets": "5",
    "hoodie.bucket.index.min.num.buckets": "1", "hoodie.bucket.index.merge.threshold": "1000",
}  # fmt: skip
"""One bucket of each partition is split, and the others are merged."""
DOUBLE = {"hoodie.clustering.updates.strategy": "SparkConsistentBucketDuplicateUpdateStrategy"}
ROWS = [Row(f"k{n}", ("oslo", "rome")[n % 2], 1, n) for n in range(40)]
VERSIONS = [pytest.param(6, marks=pytest.mark.long), pytest.param(8, marks=pytest.mark.long), 9]


def a_table(version: int) -> MemoryStorage:
    disk = MemoryStorage(clock_ms=lambda: BEGUN_MS)
    table = Handles(disk, StepClock(BEGUN_MS - MINUTE_MS), seeded_uuids(9), SerialExecutor()).create(
        table_version=version, table_type="MERGE_ON_READ", properties=RING
    )
    table.upsert(arrow(ROWS))
    table.upsert(arrow([Row("k0", "oslo", 2, 9)]))
    return disk


def resize(storage: Storage) -> None:
    handle(storage).cluster(options=SPLIT_OR_MERGE)


def rings(storage: Storage) -> set[str]:
    """The ring files but for the first ring of each partition."""
    return {f.path for f in storage.list(RINGS, recursive=True) if INITIAL_INSTANT not in f.path}


def held(disk: MemoryStorage, *, later_ms: int) -> dict[Key, Stored]:
    return read_rows(handle(disk, later_ms=later_ms).scan().to_arrow())


def check_writers(disk: MemoryStorage) -> None:
    """Every stored key is found by the ring that counts: none is there twice."""
    table = handle(disk, later_ms=2 * DEAD_MS)
    table.upsert(arrow([Row(row.id, row.city, 5, -1) for row in ROWS]))
    found = read_rows(table.scan().to_arrow())
    assert table.scan().count() == len(found) == len(ROWS)
    assert {one.row.v for one in found.values()} == {-1}
    assert problems_on(disk) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_resizing_that_dies_changes_no_answer_and_is_done_anew(version: int) -> None:
    disk = a_table(version)
    rows, newest = rows_of(disk, later_ms=0), newest_write(disk)
    done = disk.copy()
    resize(done)
    assert len(rings(done)) == 4
    states: set[tuple[str, ...]] = set()

    for what, after in distinct(crash_points(resize, disk.copy)):
        try:
            check_readers(after, rows, newest)
            left = pending(after)
            states |= {tuple(i.state for i in left)}
            result = handle(after, later_ms=DEAD_MS).run_clusterings()
            assert not left or (result.requested, result.given_up) == (left[0].requested, ())
            check_readers(after, rows, newest)
            if left:
                assert len(names(after)) == len(names(done))
            check_writers(after)
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise
    assert states == {(), ("REQUESTED",), ("INFLIGHT",)}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_resizing_that_dies_is_rolled_back_and_writers_go_on(version: int) -> None:
    disk = a_table(version)
    rows, newest, files = rows_of(disk, later_ms=0), newest_write(disk), names(disk)

    for what, after in distinct(crash_points(resize, disk.copy)):
        left = pending(after)
        if not left:
            continue
        try:
            table = handle(after, later_ms=DEAD_MS)
            with pytest.raises(Conflict, match="is being clustered"):
                table.upsert(arrow(ROWS))
            table.rollback(left[0].requested)
            check_readers(after, rows, newest)
            assert names(after) == files
            assert rings(after) == set()
            check_writers(after)
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise


@pytest.mark.parametrize("version", [8, pytest.param(6, marks=pytest.mark.long)])
def test_a_write_to_the_old_and_the_new_buckets_that_dies_leaves_no_row(version: int) -> None:
    disk = a_table(version)
    planned = handle(disk, later_ms=MINUTE_MS).schedule_clustering(options=SPLIT_OR_MERGE).requested
    before = held(disk, later_ms=2 * MINUTE_MS)
    changed = [Row(row.id, row.city, row.ts + 1, 99) for row in ROWS[::2]]

    def write(storage: Storage) -> None:
        handle(storage, later_ms=3 * MINUTE_MS).upsert(arrow(changed), options=DOUBLE)

    done = disk.copy()
    write(done)
    after_it = held(done, later_ms=4 * MINUTE_MS)
    for what, after in distinct(crash_points(write, disk.copy)):
        try:
            found = held(after, later_ms=DEAD_MS)
            assert found in (before, after_it)
            table = handle(after, later_ms=2 * DEAD_MS)
            assert table.run_clusterings().requested == planned
            assert held(after, later_ms=3 * DEAD_MS) == found
            check_writers(after)
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise


@pytest.mark.parametrize("version", [8, 9])
def test_a_write_that_began_before_a_resizing_ends_by_the_new_ring(version: int) -> None:
    """The resizing runs between two requests of the write. The write is planned anew, and no key is there twice."""
    disk = a_table(version)
    done: list[str] = []

    def interrupt(what: str) -> None:
        if not done and ".log." in what and what.startswith("put"):
            done.append(what)
            handle(disk, later_ms=500).cluster(options=SPLIT_OR_MERGE)

    writer = HudiTable.open(
        "", storage=watched(disk, interrupt), clock=StepClock(BEGUN_MS), random=seeded_uuids(5),
        executor=SerialExecutor(),
    )  # fmt: skip
    writer.upsert(arrow([Row("k1", "rome", 7, 70), Row("new", "rome", 7, 71)]))

    assert done
    found = read_rows(handle(disk, later_ms=MINUTE_MS).scan().to_arrow())
    assert len(found) == len(ROWS) + 1
    assert found["rome", "k1"].row.v == 70
    table = handle(disk, later_ms=MINUTE_MS)
    table.upsert(arrow([Row("new", "rome", 8, 72)]))
    assert table.scan().count() == len(ROWS) + 1
