"""Up to version 6 nothing in a log's name tells who wrote it, and a completed instant is a file without a time of its
own: a writer that dies there could leave blocks that come back to life when its instant is archived, or logs that the
metadata table does not know. Every step of the writes and services that differ is stopped at.
"""

from collections.abc import Callable, Iterator

import pytest

from pyhudi import HudiTable
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.faults.test_crash_everywhere import (
    STORED,
    Scenario,
    check_crashes,
    delete_some,
    handles,
    leave_dead,
    snapshot,
    upsert_changes,
    values,
)
from tests.support.crashes import crash_points, distinct
from tests.support.model import arrow, problems_on

NO_METADATA = {"hoodie.metadata.enable": "false"}
_made = {"version": 6}


@pytest.fixture(autouse=True, params=[6, pytest.param(5, marks=pytest.mark.long)])
def version(request: pytest.FixtureRequest) -> Iterator[int]:
    """The version of the tables that a test makes."""
    _made["version"] = request.param
    yield request.param
    _made["version"] = 6


COMPACTS_METADATA = {"hoodie.metadata.compact.max.delta.commits": "1"}
ARCHIVES = {"hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2", "hoodie.clean.commits.retained": "1"}


def with_rows(storage: Storage, table_type: str = "COPY_ON_WRITE", **properties: str) -> None:
    handles(storage).create(properties=properties, table_type=table_type, table_version=_made["version"]).upsert(
        arrow(STORED[:6])
    )
    handles(storage, later_ms=1_000).open().upsert(arrow(STORED[6:]))


def with_logs(storage: Storage, **properties: str) -> None:
    with_rows(storage, "MERGE_ON_READ", **properties)
    handles(storage, later_ms=1_500).open().upsert(arrow(STORED[1:3]))


def with_a_dead_delta_commit(storage: Storage, **properties: str) -> None:
    def prepare(disk: Storage) -> None:
        with_logs(disk, **properties)

    leave_dead(storage, upsert_changes, ".deltacommit'", prepare)


def prepare(of: Callable[..., None], properties: dict[str, str]) -> Callable[[MemoryStorage], None]:
    return lambda storage: of(storage, **properties)


SCENARIOS = {
    "an upsert": Scenario(with_rows, upsert_changes),
    "an upsert to logs": Scenario(with_logs, upsert_changes),
    "an upsert to logs without a metadata table": Scenario(prepare(with_logs, NO_METADATA), upsert_changes),
    "a delete to logs": Scenario(with_logs, delete_some),
    "an upsert to logs that rolls a dead one back": Scenario(with_a_dead_delta_commit, upsert_changes),
    "the same without a metadata table": Scenario(prepare(with_a_dead_delta_commit, NO_METADATA), upsert_changes),
    "a write that compacts the metadata table": Scenario(prepare(with_logs, COMPACTS_METADATA), upsert_changes),
    "a write that makes the metadata table": Scenario(
        prepare(with_logs, NO_METADATA),
        lambda table: table.upsert(arrow(STORED[4:6]), options={"hoodie.metadata.enable": "true"}),
    ),
}
LIKE_OTHERS = (
    "an upsert",
    "an upsert to logs without a metadata table",
    "a delete to logs",
    "an upsert to logs that rolls a dead one back",
    "a write that compacts the metadata table",
    "a write that makes the metadata table",
)
"""Most of whose steps are those of others: for the long run."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in LIKE_OTHERS else []) for name in SCENARIOS]
)
def test_a_crash_leaves_the_table_before_or_after(name: str) -> None:
    check_crashes(SCENARIOS[name])


SERVICES: dict[str, Callable[[HudiTable], object]] = {
    "clean": lambda table: table.clean(options={"hoodie.clean.commits.retained": "1"}),
    "archive": lambda table: table.archive(options=ARCHIVES),
    "compact": lambda table: table.compact(),
    "log_compact": lambda table: table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "1"}),
}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_that_dies_changes_no_row_and_is_done_by_its_next_run(name: str) -> None:
    start = MemoryStorage(clock_ms=lambda: 1_780_000_000_000)
    with_logs(start, **COMPACTS_METADATA)
    for later_ms in (1_600, 1_700):
        handles(start, later_ms=later_ms).open().upsert(arrow(STORED[2:5]))
    if name == "clean":
        handles(start, later_ms=1_800).open().compact()
        handles(start, later_ms=1_900).open().upsert(arrow(STORED[2:3]))
    rows = values(snapshot(handles(start, later_ms=1_950).open()))
    run = SERVICES[name]
    done = 0

    def turn(storage: Storage) -> None:
        run(handles(storage, later_ms=2_000).open())

    for what, disk in distinct(crash_points(turn, start.copy)):
        done += 1
        try:
            assert values(snapshot(handles(disk, later_ms=3_000).open())) == rows
            # The next run comes after the dead one's heartbeat has expired.
            run(handles(disk, later_ms=900_000).open())
            assert values(snapshot(handles(disk, later_ms=901_000).open())) == rows
            handles(disk, later_ms=902_000).open().upsert(arrow(STORED[:1]))
            assert values(snapshot(handles(disk, later_ms=903_000).open())) == rows
        except Exception as error:
            error.add_note(f"crash at {what}")
            raise
        assert problems_on(disk) == []
    assert done > 5


@pytest.mark.parametrize("listed", [True, False])
def test_blocks_of_a_dead_write_stay_void_when_its_instant_is_archived(listed: bool) -> None:
    disk = MemoryStorage(clock_ms=lambda: 1_780_000_000_000)
    with_a_dead_delta_commit(disk, **({} if listed else NO_METADATA))
    before = values(snapshot(handles(disk, later_ms=3_000).open()))
    table = handles(disk, later_ms=4_000).open()
    for number in range(6):
        table.upsert(arrow(STORED[number : number + 1]))
    assert table.archive(options=ARCHIVES).archived or not listed
    assert all(i.action != "rollback" for i in table.timeline()) or not listed
    assert values(snapshot(handles(disk, later_ms=9_000).open())) == before
