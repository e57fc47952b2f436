"""A clustering could die at any step and leave readers without rows or with rows twice, the table blocked, or a file
that nobody knows. It is stopped at every change of the storage, both ways.

After each crash every reader finds the rows of before, however the files are listed. The next run does the clustering
anew under the same instant, with the files of one that was never stopped; or it is rolled back.
"""

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.timeline.instant import Instant
from pyhudi.services.clustering.trigger import pending_clusterings
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.faults.test_clean_crashes import by_storage
from tests.faults.test_compaction_crashes import DEAD_MS, MINUTE_MS, names
from tests.support.compare import assert_same_rows
from tests.support.crashes import crash_points, distinct
from tests.support.merge_on_read import without_file_names
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, seeded_uuids, without_metadata_table

BY_VALUE = {"hoodie.clustering.plan.strategy.sort.columns": "v"}
KINDS = [
    (8, "COPY_ON_WRITE"),
    (6, "MERGE_ON_READ"),
    pytest.param(9, "MERGE_ON_READ", marks=pytest.mark.long),
    pytest.param(6, "COPY_ON_WRITE", marks=pytest.mark.long),
]
BEGUN_MS = 1_790_000_000_000


def handle(storage: Storage, *, later_ms: int = 0) -> HudiTable:
    """A handle whose clock stands so much later, with randomness of its own, in one thread."""
    return Handles(storage, StepClock(BEGUN_MS + later_ms), seeded_uuids(later_ms), SerialExecutor()).open()


def a_table(version: int, table_type: str) -> MemoryStorage:
    """Two partitions of two small file groups each, one of them changed since."""
    disk = MemoryStorage(clock_ms=lambda: BEGUN_MS)
    table = Handles(disk, StepClock(BEGUN_MS - MINUTE_MS), seeded_uuids(9), SerialExecutor()).create(
        table_version=version, table_type=table_type, properties={"hoodie.parquet.small.file.limit": "0"}
    )
    for start in (0, 4):
        table.bulk_insert(arrow([Row(f"k{n}", ("oslo", "rome")[n % 2], 1, -n) for n in range(start, start + 4)]))
    table.upsert(arrow([Row("k0", "oslo", 2, 9)]))
    return disk


def cluster(storage: Storage) -> None:
    handle(storage).cluster(options=BY_VALUE)


def rows_of(storage: Storage, *, later_ms: int) -> pa.Table:
    return without_file_names(handle(storage, later_ms=later_ms).scan().to_arrow())


def check_readers(disk: MemoryStorage, rows: pa.Table, newest: str) -> None:
    for storage in (disk, by_storage(disk)):
        assert_same_rows(rows_of(storage, later_ms=MINUTE_MS), rows)
    table = handle(disk, later_ms=MINUTE_MS)
    assert_same_rows(without_file_names(table.scan(as_of=newest).to_arrow()), rows)
    assert_same_rows(without_file_names(table.incremental().to_arrow()), rows)


def pending(disk: Storage) -> list[Instant]:
    return pending_clusterings(handle(disk)._access.snapshot())


def newest_write(disk: Storage) -> str:
    return max(i.requested for i in handle(disk).timeline() if i.is_completed)


@pytest.mark.parametrize("version,table_type", KINDS)
def test_a_clustering_that_dies_changes_no_answer_and_is_done_anew(version: int, table_type: str) -> None:
    disk = a_table(version, table_type)
    rows, newest = rows_of(disk, later_ms=0), newest_write(disk)
    done = disk.copy()
    cluster(done)
    states: set[tuple[str, ...]] = set()
    for what, after in distinct(crash_points(cluster, disk.copy)):
        try:
            check_readers(after, rows, newest)
            left = pending(after)
            states |= {tuple(i.state for i in left)}
            result = handle(after, later_ms=DEAD_MS).run_clusterings()
            assert not left or (result.requested, result.given_up) == (left[0].requested, ())
            check_readers(after, rows, newest)
            if left:
                assert len(names(after)) == len(names(done))
            assert problems_on(after) == []
            assert handle(after, later_ms=DEAD_MS).metadata.validate().differences == ()
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise
    assert states == {(), ("REQUESTED",), ("INFLIGHT",)}


@pytest.mark.parametrize("version,table_type", KINDS)
def test_a_clustering_that_dies_is_rolled_back_and_writers_go_on(version: int, table_type: str) -> None:
    disk = a_table(version, table_type)
    rows, newest, files = rows_of(disk, later_ms=0), newest_write(disk), names(disk)
    for what, after in distinct(crash_points(cluster, disk.copy)):
        left = pending(after)
        if not left:
            continue
        try:
            table = handle(after, later_ms=DEAD_MS)
            with pytest.raises(Conflict, match="is being clustered"):
                table.upsert(arrow([Row("k0", "oslo", 3, 0)]))
            check_readers(after, rows, newest)
            table.rollback(left[0].requested)
            check_readers(after, rows, newest)
            assert names(after) == files
            assert table.upsert(arrow([Row("k0", "oslo", 3, 0)])).updated == 1
            assert problems_on(after) == []
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise


def test_a_clustering_that_dies_is_given_up_once_a_write_was_let_pass() -> None:
    disk = a_table(8, "MERGE_ON_READ")
    allow = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
    ends = {**allow, "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true"}
    for number, (what, after) in enumerate(distinct(crash_points(cluster, disk.copy))):
        left = [instant.requested for instant in pending(after)]
        if not left:
            continue
        try:
            table = handle(after, later_ms=DEAD_MS)
            table.upsert(arrow([Row("k0", "oslo", 3, 77)]), options=ends if number % 2 else allow)
            rows = rows_of(after, later_ms=2 * DEAD_MS)
            result = handle(after, later_ms=2 * DEAD_MS).run_clusterings()
            assert result.given_up == (() if number % 2 else tuple(left))
            assert result.requested is None
            assert_same_rows(rows_of(after, later_ms=2 * DEAD_MS), rows)
            assert {row["v"] for row in rows.to_pylist() if row["id"] == "k0"} == {77}
            assert problems_on(after) == []
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise


@pytest.mark.long
def test_a_clustering_that_dies_twice_is_done_anew_all_the_same() -> None:
    disk = a_table(8, "COPY_ON_WRITE")
    rows, newest = rows_of(disk, later_ms=0), newest_write(disk)

    def again(storage: Storage) -> None:
        handle(storage, later_ms=DEAD_MS).cluster(options=BY_VALUE)

    for number, (first, once) in enumerate(distinct(crash_points(cluster, disk.copy))):
        if number % 7:
            continue
        for second, twice in list(crash_points(again, once.copy))[number % 9 :: 9]:
            try:
                check_readers(twice, rows, newest)
                handle(twice, later_ms=2 * DEAD_MS).run_clusterings()
                check_readers(twice, rows, newest)
                assert problems_on(twice) == []
                assert len(list(without_metadata_table(twice))) > 0
            except Exception as error:
                error.add_note(f"crash at {first}, then at {second}")
                raise
