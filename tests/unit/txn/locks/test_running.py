"""A service whose process died on this machine could block others where the guard knows no processes, as on a store."""

import subprocess
import sys

import pytest

from pyhudi.format.names import heartbeat_path
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.processes import process_mark
from pyhudi.storage.uris import OtherUri
from pyhudi.txn.locks.guard import Guard, Lives, MemoryGuard, NoGuard
from pyhudi.txn.locks.heartbeat import OURS, put_heartbeat
from pyhudi.txn.locks.running import is_surely_dead

NOW = "20260101000000000"


@pytest.fixture
def guard() -> Guard:
    """One that knows no processes."""
    guard = NoGuard(OtherUri("other", "other://table"))
    assert not isinstance(guard, Lives)
    return guard


@pytest.mark.skipif(sys.platform != "linux", reason="marks are read from /proc")
def test_the_mark_in_the_heartbeat_says_that_the_process_has_ended(guard: Guard) -> None:
    code = "from pyhudi.storage.processes import process_mark; print(process_mark())"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    storage = MemoryStorage()
    storage.put(heartbeat_path(NOW), OURS + b" " + ended.encode())

    assert is_surely_dead(guard, storage, NOW)
    assert not is_surely_dead(MemoryGuard("t"), storage, NOW), "a guard that knows processes says it itself"


def test_nothing_else_says_so(guard: Guard) -> None:
    storage = MemoryStorage()
    assert not is_surely_dead(guard, storage, NOW), "without a heartbeat"
    put_heartbeat(storage, NOW)
    assert not is_surely_dead(guard, storage, NOW), "of this process, which lives"
    for content in (OURS, b"", b"pyhudi of another machine", OURS + b" " + process_mark().encode() + b":1"):
        storage.put(heartbeat_path(NOW), content)
        assert not is_surely_dead(guard, storage, NOW)
