"""A marker of a log that is not there makes Apache Hudi 0.15 list that log for good, and fail on every read."""

from __future__ import annotations

import pytest

from pyhudi.errors import Conflict
from pyhudi.format.log.delete import read_deletes
from pyhudi.format.log.reader import read_blocks
from pyhudi.format.names import MarkerName, heartbeat_path
from pyhudi.format.timeline.action_files import encode_rollback_plan
from pyhudi.format.timeline.records import InstantInfo, RollbackPlan, RollbackRequest
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.txn.action.markers import empty_log, read_markers, remove_lost_files, remove_markers
from pyhudi.write.handles.attempt import AttemptedFile
from tests.support.crashes import crash_points
from tests.support.model import Handles

REQUESTED = "20260101000000001"
LOG = "p/.f-0_20260101000000000.log.1_0-0-0"


def alive() -> MemoryStorage:
    storage = MemoryStorage()
    Handles(storage).create(table_version=6, table_type="MERGE_ON_READ")
    storage.put(heartbeat_path(REQUESTED), b"")
    return storage


def put_rollback(storage: Storage, *, log_bytes: int) -> None:
    """Put the plan of a rollback that has seen the log with this size."""
    logs = {f"memory://t/{LOG}": log_bytes}
    request = RollbackRequest("p", "f-0", "20260101000000000", log_blocks_to_be_deleted=logs)
    plan = RollbackPlan(InstantInfo(REQUESTED, "deltacommit"), (request,))
    storage.put(".hoodie/20260101000000002.rollback.requested", encode_rollback_plan(plan))


def write(storage: Storage) -> None:
    file = AttemptedFile(storage, REQUESTED, LOG, "APPEND")
    file.begin()
    with storage.put_stream(LOG) as sink:
        sink.write(b"rows")
        file.refuse_when_given_up()
    assert file.shown_size() == 4


def test_a_marker_of_a_log_is_never_there_without_it() -> None:
    seen = set()
    for what, disk in crash_points(write, alive):
        markers, log = read_markers(disk, REQUESTED), disk.head(LOG)
        assert log is not None or not markers, what
        seen.add((bool(markers), None if log is None else log.size_bytes))
    empty = len(empty_log(REQUESTED))
    assert seen == {(False, None), (False, empty), (True, empty), (True, 4)}


def test_an_attempt_that_is_given_up_leaves_an_empty_log() -> None:
    storage = alive()
    file = AttemptedFile(storage, REQUESTED, LOG, "APPEND")
    file.begin()
    with storage.put_stream(LOG) as sink:
        sink.write(b"rows")
    remove_markers(storage, REQUESTED)  # another writer rolls it back, and lists the log
    with pytest.raises(Conflict, match="without this task attempt"):
        file.shown_size()
    assert storage.get(LOG) == empty_log(REQUESTED)
    (block,) = read_blocks(storage.get(LOG), path=LOG)
    assert len(read_deletes(block)) == 0


@pytest.mark.parametrize("seen_bytes, is_kept", [(4, True), (5, False)])
def test_a_log_that_its_rollback_has_seen_stays_as_it_was_seen(seen_bytes: int, is_kept: bool) -> None:
    """The metadata table lists it with the bytes that the rollback saw, and readers take as many."""
    storage = alive()
    file = AttemptedFile(storage, REQUESTED, LOG, "APPEND")
    file.begin()
    with storage.put_stream(LOG) as sink:
        sink.write(b"rows")
    put_rollback(storage, log_bytes=seen_bytes)
    remove_markers(storage, REQUESTED)
    with pytest.raises(Conflict, match="without this task attempt"):
        file.shown_size()
    assert storage.get(LOG) == (b"rows" if is_kept else empty_log(REQUESTED))


def test_a_lost_log_never_stands_without_its_marker_but_empty() -> None:
    def operation(storage: Storage) -> None:
        remove_lost_files(storage, REQUESTED, [MarkerName(LOG, "APPEND")])

    def written() -> MemoryStorage:
        storage = alive()
        write(storage)
        return storage

    for what, disk in crash_points(operation, written):
        is_marked = bool(read_markers(disk, REQUESTED))
        assert is_marked or disk.head(LOG) is None or disk.get(LOG) == empty_log(REQUESTED), what
    done = written()
    operation(done)
    assert done.head(LOG) is None
    assert not read_markers(done, REQUESTED)
