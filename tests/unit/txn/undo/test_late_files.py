"""A writer stands still, is rolled back, and goes on. Its heartbeat came back, and it left files of no commit."""

import time

import pytest

from pyhudi.format.names import MarkerName, heartbeat_path, marker_folder
from pyhudi.storage.memory import MemoryStorage
from pyhudi.txn.locks.heartbeat import beating, put_heartbeat
from tests.support.model import Handles, Row, arrow, problems_on
from tests.support.versions import EVERY_VERSION

LATE = "29990101000000001"
DATA = f"oslo/f-0_0-0-0_{LATE}.parquet"


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_files_of_an_action_that_the_timeline_does_not_know_go_with_its_markers(version: int) -> None:
    storage = MemoryStorage()
    Handles(storage).create(table_version=version).upsert(arrow([Row("a", "oslo", 1, 1)]))
    put_heartbeat(storage, LATE)
    marker = f"{marker_folder(LATE)}/{MarkerName(DATA, 'CREATE').format()}"
    storage.put(marker, b"")
    storage.put(DATA, b"rows")

    Handles(storage).open().upsert(arrow([Row("b", "oslo", 1, 2)]))

    assert [storage.head(path) for path in (DATA, marker, heartbeat_path(LATE))] == [None, None, None]
    assert problems_on(storage) == []


def test_files_of_a_completed_action_stay() -> None:
    """Its writer died right after it had completed."""
    storage = MemoryStorage()
    table = Handles(storage).create()
    requested = table.upsert(arrow([Row("a", "oslo", 1, 1)])).requested
    assert requested is not None
    (data,) = (file.path for file in storage.list("oslo") if requested in file.path)
    put_heartbeat(storage, requested)
    storage.put(f"{marker_folder(requested)}/{MarkerName(data, 'CREATE').format()}", b"")

    Handles(storage).open().upsert(arrow([Row("b", "oslo", 1, 2)]))

    assert storage.head(data) is not None
    assert problems_on(storage) == []


def test_a_heartbeat_that_was_removed_does_not_come_back() -> None:
    storage = MemoryStorage()
    with beating(storage, LATE, interval_ms=5):
        storage.delete(heartbeat_path(LATE))
        time.sleep(0.2)
        assert storage.head(heartbeat_path(LATE)) is None
