"""A compaction could die at any step and leave readers without rows or with rows twice, the table blocked, or a file
that nobody knows. It is stopped at every change of the storage, both ways.

After each crash every reader finds the rows of before, however the files are listed; nobody else's work is in the way,
and the next run does the compaction anew under the same instant, with the files of one that was never stopped.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.faults.test_clean_crashes import by_storage
from tests.support.compare import assert_same_rows
from tests.support.crashes import crash_points, distinct
from tests.support.golden_tables import GoldenTables
from tests.support.merge_on_read import handle, in_memory, without_file_names
from tests.support.model import problems_on, without_metadata_table

TABLES = ("mor_event_time_v8_h102", "mor_logonly_v9_h120")
MINUTE_MS = 60_000
DEAD_MS = 10 * MINUTE_MS
"""After so long a heartbeat is nobody's any more."""


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTables:
    return GoldenTables(tmp_path_factory.mktemp("golden"))


def compact(storage: Storage) -> None:
    handle(storage).compact()


def log_compact(storage: Storage) -> None:
    handle(storage).log_compact(options={"hoodie.log.compaction.blocks.threshold": "2"})


RUNS: dict[str, Callable[[Storage], None]] = {"compaction": compact, "logcompaction": log_compact}


def snapshot_rows(storage: Storage, *, later_ms: int) -> pa.Table:
    return without_file_names(handle(storage, later_ms=later_ms).scan().to_arrow())


def check_readers(disk: MemoryStorage, rows: pa.Table, past: dict[str, pa.Table]) -> None:
    for storage in (disk, by_storage(disk)):
        assert_same_rows(snapshot_rows(storage, later_ms=MINUTE_MS), rows)
    for requested, then in past.items():
        seen = handle(disk, later_ms=MINUTE_MS).scan(as_of=requested).to_arrow()
        assert_same_rows(without_file_names(seen), then)


def names(disk: Storage) -> list[tuple[str, str, str]]:
    """Of each file of the partitions its folder, group and instant."""
    found = []
    for path in without_metadata_table(disk):
        folder, _, text = path.rpartition("/")
        base, log = BaseFileName.parse(text), LogFileName.parse(text)
        if base is not None:
            found.append((folder, base.file_id, base.requested))
        elif log is not None:
            found.append((folder, log.file_id, log.instant))
    return sorted(found)


def pending(table: HudiTable, action: str) -> list[str]:
    return [i.requested for i in table.timeline() if i.action == action and i.state != "COMPLETED"]


@pytest.mark.parametrize(
    "name,action",
    [
        (TABLES[0], "compaction"),
        (TABLES[0], "logcompaction"),
        *(pytest.param(TABLES[1], action, marks=pytest.mark.long) for action in RUNS),
    ],
)
def test_a_compaction_that_dies_changes_no_answer_and_is_done_anew(
    golden: GoldenTables, name: str, action: str
) -> None:
    disk = in_memory(golden.get(name))
    rows, past = snapshot_rows(disk, later_ms=0), dict(past_of(disk))
    done = disk.copy()
    RUNS[action](done)
    groups = len(names(done)) - len(names(disk))
    assert groups > 0
    states: set[tuple[str, ...]] = set()
    for what, after in distinct(crash_points(RUNS[action], disk.copy)):
        try:
            check_readers(after, rows, past)
            table = handle(after, later_ms=DEAD_MS)
            left = pending(table, action)
            states |= {tuple(i.state for i in table.timeline() if i.requested in left)}
            result = table.compact() if action == "compaction" else table.log_compact(options=THRESHOLD)
            assert not left or result.requested == left[0]
            check_readers(after, rows, past)
            assert len(names(after)) == len(names(done))
            assert problems_on(after) == []
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise
    assert states == {(), ("REQUESTED",), ("INFLIGHT",)}


THRESHOLD = {"hoodie.log.compaction.blocks.threshold": "2"}


def past_of(disk: MemoryStorage) -> Iterator[tuple[str, pa.Table]]:
    """The rows as of the newest commit but one: the last that a compaction's slice does not serve."""
    table = handle(disk)
    commits = [i.requested for i in table.timeline() if i.completed and i.action in ("commit", "deltacommit")]
    yield commits[-2], without_file_names(table.scan(as_of=commits[-2]).to_arrow())


def test_a_second_run_waits_for_the_heartbeat_of_the_first(golden: GoldenTables) -> None:
    disk = in_memory(golden.get(TABLES[0]))
    refused = 0
    for _, after in distinct(crash_points(compact, disk.copy)):
        table = handle(after.copy(), later_ms=MINUTE_MS)  # as on another machine, which cannot ask the process
        if any("/.heartbeat/" in file.path for file in after.list("", recursive=True)) and pending(table, "compaction"):
            with pytest.raises(Conflict, match="another thread of this process runs it"):
                table.compact()
            refused += 1
    assert refused > 5


@pytest.mark.long
def test_a_compaction_that_dies_twice_is_done_anew_all_the_same(golden: GoldenTables) -> None:
    disk = in_memory(golden.get(TABLES[0]))
    rows, past = snapshot_rows(disk, later_ms=0), dict(past_of(disk))

    def again(storage: Storage) -> None:
        handle(storage, later_ms=DEAD_MS).compact()

    for number, (first, once) in enumerate(distinct(crash_points(compact, disk.copy))):
        if number % 7:
            continue
        for second, twice in list(crash_points(again, once.copy))[number % 9 :: 9]:
            try:
                check_readers(twice, rows, past)
                handle(twice, later_ms=2 * DEAD_MS).compact()
                check_readers(twice, rows, past)
                assert problems_on(twice) == []
            except Exception as error:
                error.add_note(f"crash at {first}, then at {second}")
                raise
