"""Writers that wait for each other could lose a row, plan on a table that was, or never get their turn.

Threads and processes write in loops to the same keys. Each key counts how often it was written: a lost update, or one
that was made twice, shows in the table. One writer that never pauses must leave the others their share.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.api.clock import SYSTEM_CLOCK
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Conflict
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.txn.locks.guard import Guard, LocalGuard
from pyhudi.txn.locks.hold import CertainHold, Held, Hold
from pyhudi.txn.locks.waiting import awaited_hold
from tests.support.model import StepClock

SOURCE_DIR = Path(pyhudi.__file__).parents[1]
PATIENT = {"hoodie.write.lock.wait_time_ms": 120_000}


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path)) if request.param == "local" else MemoryStorage()


def a_table(storage: Storage, table_type: str = "COPY_ON_WRITE") -> HudiTable:
    return HudiTable.create(
        "", name="t", record_key="id", table_type=table_type, storage=storage, executor=SerialExecutor()
    )  # fmt: skip


def opened(storage: Storage) -> HudiTable:
    return HudiTable.open("", storage=storage, options=PATIENT, executor=SerialExecutor())


def write_in_turn(storage: Storage, writer: int, rounds: int) -> None:
    """Upsert a key that all writers share, and a key of this round."""
    for number in range(rounds):
        ids, marks = ["shared", f"{writer}-{number}"], [f"{writer}:{number}", "own"]
        opened(storage).upsert(pa.table({"id": ids, "mark": marks}))


def check(storage: Storage, writers: int, rounds: int) -> None:
    table = opened(storage)
    rows = table.scan(columns=["id", "mark"]).to_arrow().to_pylist()
    found = {row["id"]: row["mark"] for row in rows}
    commits = [i for i in table.timeline(history=True) if i.action in ("commit", "deltacommit")]

    assert len(rows) == len(found)
    assert found.keys() == {"shared", *(f"{w}-{n}" for w in range(writers) for n in range(rounds))}
    assert found["shared"] in {f"{writer}:{rounds - 1}" for writer in range(writers)}
    assert len(commits) == writers * rounds
    assert all(i.completed for i in commits)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_four_threads_in_loops_lose_nothing_and_never_conflict(storage: Storage, table_type: str) -> None:
    """The first writes race for the table's schema as well."""
    a_table(storage, table_type)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda writer: write_in_turn(storage, writer, 3), range(4)))

    check(storage, 4, 3)


PROCESS = """
import sys
sys.path[:0] = sys.argv[2:4]
from tests.concurrency.test_waiting_writers import LocalStorage, write_in_turn
print("ready", flush=True)
sys.stdin.readline()
write_in_turn(LocalStorage(sys.argv[1]), int(sys.argv[4]), 4)
"""


def test_two_processes_in_loops_lose_nothing_and_never_conflict(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path / "a table"))
    a_table(storage)
    folders = str(SOURCE_DIR), str(Path(__file__).parents[2])
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path / "a table"), *folders, str(number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(2)
    ]  # fmt: skip
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.communicate("go\n")

    assert [writer.returncode for writer in writers] == [0, 0]
    check(storage, 2, 4)


@dataclass
class SlowGuard:
    """A guard that is waited for: `meanwhile` somebody else writes."""

    inner: Guard
    meanwhile: Callable[[], object]

    @contextmanager
    def acquire(self, purpose: str, now: str) -> Iterator[Hold]:
        self.meanwhile()
        with self.inner.acquire(purpose, now) as hold:
            yield hold


def test_a_write_that_waited_is_prepared_anew_for_the_schema_that_others_made_meanwhile(storage: Storage) -> None:
    first = a_table(storage)
    first.upsert(pa.table({"id": ["a"], "v": [1]}))
    slow = SlowGuard(first._access.guard, lambda: first.upsert(pa.table({"id": ["b"], "v": [2], "yours": [2]})))
    second = HudiTable.open("", storage=storage, lock=slow, executor=SerialExecutor())

    fills = {"hoodie.write.set.null.for.missing.columns": "true"}
    second.upsert(pa.table({"id": ["c"], "v": [3], "mine": [3]}), options=fills)

    rows = first.scan(meta_fields=False).to_arrow().sort_by("id").to_pylist()
    assert rows == [
        {"id": "a", "v": 1, "yours": None, "mine": None},
        {"id": "b", "v": 2, "yours": 2, "mine": None},
        {"id": "c", "v": 3, "yours": None, "mine": 3},
    ]


def test_a_loop_without_a_pause_leaves_others_their_share(tmp_path: Path) -> None:
    """One takes the table again as soon as it lets go of it; the other asks for it ten times meanwhile."""
    guard, clock, stop, turns = LocalGuard(str(tmp_path)), SYSTEM_CLOCK, threading.Event(), [0]

    def take_again_and_again() -> None:
        while not stop.is_set():
            with awaited_hold(guard, "a loop", clock=clock, wait_ms=10_000):
                turns[0] += 1
                time.sleep(0.005)

    with ThreadPoolExecutor(1) as pool:
        loop = pool.submit(take_again_and_again)
        while not turns[0]:
            time.sleep(0.001)
        begun = turns[0]
        for _ in range(10):
            with awaited_hold(guard, "another", clock=clock, wait_ms=10_000):
                pass
        taken = turns[0] - begun
        stop.set()
        loop.result()

    assert taken < 60


def test_a_wait_ends_by_the_clock_and_names_the_holder(tmp_path: Path) -> None:
    guard, clock = LocalGuard(str(tmp_path)), StepClock()
    with guard.acquire("the long one", "yesterday"):
        begun = clock.ms
        with (
            pytest.raises(Conflict, match=r"the long one, since yesterday.*waited 10,000 ms.*wait_time_ms"),
            awaited_hold(guard, "another", clock=clock, wait_ms=10_000),
        ):
            pass
        assert clock.ms - begun >= 10_000
        with (
            pytest.raises(Conflict, match=r"retry from the new snapshot$"),
            awaited_hold(guard, "a third", clock=clock, wait_ms=0),
        ):
            pass


@dataclass
class BusyGuard:
    """A guard that is never free. Each of its holders keeps it for `turn_ms`."""

    clock: StepClock
    turn_ms: int
    free_at_ms: int

    @contextmanager
    def acquire(self, purpose: str, now: str) -> Iterator[Hold]:
        if self.clock.ms < self.free_at_ms:
            number = self.clock.ms // self.turn_ms
            raise Held(f"held by writer {number}", holder=f"writer {number}")
        yield CertainHold()


def test_a_wait_goes_on_while_the_table_changes_hands() -> None:
    """Ten writers in a line wait for longer than ten seconds, though each has the table for a moment only."""
    clock = StepClock()
    busy = BusyGuard(clock, turn_ms=2_000, free_at_ms=clock.ms + 60_000)
    with awaited_hold(busy, "the last", clock=clock, wait_ms=10_000):
        assert clock.ms >= busy.free_at_ms

    stuck = BusyGuard(clock, turn_ms=20_000, free_at_ms=clock.ms + 60_000)
    with pytest.raises(Conflict, match="waited 10,000 ms"), awaited_hold(stuck, "one", clock=clock, wait_ms=10_000):
        pass


def test_a_line_goes_on_while_the_table_changes_hands(tmp_path: Path) -> None:
    """Another writer stays first in the line for longer than the wait; the table's holders come and go meanwhile."""
    guard, clock = LocalGuard(str(tmp_path)), SYSTEM_CLOCK
    begun = threading.Event()

    def come_and_go() -> None:
        with guard.first_in_line():
            for number in range(12):
                with guard.acquire(f"turn {number}", f"since {number}"):
                    begun.set()
                    time.sleep(0.1)

    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(come_and_go)
        begun.wait()
        started = time.monotonic()
        with awaited_hold(guard, "the last", clock=clock, wait_ms=600):
            assert time.monotonic() - started > 0.7
        others.result()
