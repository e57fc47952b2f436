"""A message could blame another process for what a thread of this one does."""

from pyhudi.format.names import heartbeat_path
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.processes import process_mark
from pyhudi.txn.locks.heartbeat import put_heartbeat, runner

REQUESTED = "20260101000000000"


def test_who_runs_an_action_is_told_as_far_as_its_heartbeat_says() -> None:
    storage = MemoryStorage()
    assert runner(storage, REQUESTED) == "another writer"

    put_heartbeat(storage, REQUESTED)
    assert runner(storage, REQUESTED) == ("another thread of this process" if process_mark() else "another writer")

    storage.put(heartbeat_path(REQUESTED), b"pyhudi a:b:c:1:2")
    assert runner(storage, REQUESTED) == "another process"

    storage.put(heartbeat_path(REQUESTED), b"")
    assert runner(storage, REQUESTED) == "another writer", "Apache Hudi's heartbeat names nobody"
