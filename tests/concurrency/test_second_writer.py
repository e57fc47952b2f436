"""Two writers could both write, a killed one could block the others, a reader could see half of a write.

Writers are handles, threads and processes. Readers look on at every change that a write makes, and a whole
write runs between any two requests of a reader.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import TypeVar

import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import Conflict
from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.testing.crashing import CrashingStorage
from tests.support.model import (
    SMALL_FILES,
    Handles,
    Row,
    StepClock,
    arrow,
    dump,
    problems_on,
    read_rows,
    seeded_uuids,
)

T = TypeVar("T")
SOURCE_DIR = Path(pyhudi.__file__).parents[1]
AT_ONCE = {"hoodie.write.lock.wait_time_ms": 0}
STORED = [Row(f"k{n}", ("oslo", "rome")[n % 2], 5, n) for n in range(8)]
CHANGES = [Row("k0", "oslo", 6, 100), Row("new", "bonn", 6, 101)]


@dataclass
class WatchedStorage(CrashingStorage):
    """Calls back before each change, and before each read."""

    before_change: Callable[[str], None] = field(default=lambda what: None)

    def change(self, what: str, apply: Callable[[], T]) -> T:
        self.before_change(what)
        return apply()


def watched(storage: Storage, before_change: Callable[[str], None]) -> WatchedStorage:
    return WatchedStorage(storage, survives=0, lands=True, before_change=before_change)


@dataclass
class ReadHook:
    """`inner`, with a call before the n-th read."""

    inner: Storage
    at: int
    then: Callable[[], None]
    reads: int = 0

    def __getattr__(self, name: str) -> object:
        if name in ("get", "open_input", "head", "list", "list_folders"):
            number, self.reads = self.reads, self.reads + 1
            if number == self.at:
                self.then()
        return getattr(self.inner, name)


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return MemoryStorage() if request.param == "memory" else LocalStorage(str(tmp_path / "a table"))


def a_table(storage: Storage) -> HudiTable:
    table = HudiTable.create(
        "", name="t", record_key="id", partition_by="city", ordering="ts", properties=SMALL_FILES,
        storage=storage,
    )  # fmt: skip
    table.upsert(arrow(STORED))
    return table


def test_a_second_writer_writes_beside_the_first_or_learns_who_holds_the_table(storage: Storage) -> None:
    """At every change of the first write another handle writes, in another thread. No row of either is lost."""
    a_table(storage)
    second = HudiTable.open("", storage=storage, options=AT_ONCE, executor=SerialExecutor())
    refused, written = list[str](), list[Row]()

    def try_to_write(what: str) -> None:
        row = Row(f"second{len(refused) + len(written)}", "rome", 1, 1)
        before = dump(storage)
        try:
            second.upsert(arrow([row]))
            written.append(row)
        except Conflict as error:
            refused.append(str(error))
            assert dump(storage) == before

    def in_a_thread(what: str) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(try_to_write, what).result()

    first = HudiTable.open("", storage=watched(storage, in_a_thread), executor=SerialExecutor())
    first.upsert(arrow(CHANGES))

    assert len(written) > 5
    assert len(refused) > 5
    assert all(f"held by process {os.getpid()} on " in text for text in refused)
    assert all("(upsert of table 't', since 20" in text for text in refused)
    found = read_rows(HudiTable.open("", storage=storage).scan().to_arrow())
    assert {key for _, key in found} == {row.id for row in (*STORED, *CHANGES, *written)}
    assert found["oslo", "k0"].row.v == 100
    assert problems_on(storage) == []


def test_without_retries_the_later_of_two_writes_to_one_file_group_fails(storage: Storage) -> None:
    a_table(storage)
    options = {"hoodie.write.num.retries.on.conflict.failures": 0}
    second = HudiTable.open("", storage=storage, options=options)
    begun = list[str]()

    def once_while_it_works(what: str) -> None:
        if ".inflight" in what and not begun:
            begun.append(what)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(second.upsert, arrow([Row("k2", "oslo", 6, 7)])).result()

    first = HudiTable.open("", storage=watched(storage, once_while_it_works), options=options)
    with pytest.raises(Conflict, match=r"another writer's UPSERT '.+' changed file group '.+' in partition 'oslo'"):
        first.upsert(arrow(CHANGES))

    found = read_rows(HudiTable.open("", storage=storage).scan().to_arrow())
    assert (found["oslo", "k2"].row.v, found["oslo", "k0"].row.v, len(found)) == (7, 0, len(STORED))
    assert first.upsert(arrow(CHANGES)).updated == 1
    assert problems_on(storage) == []


def test_of_many_threads_one_writes_at_a_time_and_none_is_lost(storage: Storage) -> None:
    a_table(storage)
    conflicts = 0

    def write(number: int) -> None:
        nonlocal conflicts
        table = HudiTable.open("", storage=storage, options=AT_ONCE)
        while True:
            try:
                table.upsert(arrow([Row(f"t{number}", "oslo", 1, number), Row("k0", "oslo", 9, number)]))
                return
            except Conflict:
                conflicts += 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))

    found = read_rows(HudiTable.open("", storage=storage).scan().to_arrow())
    assert {f"t{n}" for n in range(4)} <= {key for _, key in found}
    assert problems_on(storage) == []


WRITE_AND_WAIT = """
import sys
sys.path[:0] = sys.argv[2:4]
from tests.concurrency.test_second_writer import CHANGES, LocalStorage, HudiTable, SerialExecutor, arrow, watched
stop_at = int(sys.argv[4])
seen = []
def wait(what):
    seen.append(what)
    if len(seen) > stop_at:
        print("waiting", flush=True)
        sys.stdin.read()
storage = watched(LocalStorage(sys.argv[1]), wait)
HudiTable.open("", storage=storage, executor=SerialExecutor()).upsert(arrow(CHANGES))
print("done", flush=True)
"""


def other_writer(root: Path, stop_at: int) -> "subprocess.Popen[str]":
    """A process that upserts and stops right before change `stop_at`; a killed one stays there."""
    folders = str(SOURCE_DIR), str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE_AND_WAIT, str(root), *folders, str(stop_at)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    return process


def error_of(call: Callable[[], object]) -> Conflict | None:
    try:
        call()
    except Conflict as error:
        return error
    return None


@pytest.mark.parametrize("stop_at", [0, *range(1, 12, 2)])
def test_a_writer_in_another_process_is_respected_until_it_is_killed(tmp_path: Path, stop_at: int) -> None:
    """While it stands still, the table is either held by it, or others write beside it. Once killed it is nobody."""
    root = tmp_path / "a table"
    storage = LocalStorage(str(root))
    table = a_table(storage)
    added = 0
    with other_writer(root, stop_at) as process:
        before = dump(storage)
        error = error_of(lambda: table.upsert(arrow([Row("beside", "rome", 1, 1)]), options=AT_ONCE))
        if error is None:
            added = 1
        else:
            assert f"held by process {process.pid} on " in str(error)
            assert "(upsert of table 't'" in str(error)
            assert dump(storage) == before
        assert len(read_rows(table.scan().to_arrow())) == len(STORED) + added
        process.send_signal(signal.SIGKILL)

    assert len(read_rows(table.scan().to_arrow())) == len(STORED) + added
    result = table.upsert(arrow([Row("k1", "rome", 9, 7)]), options=AT_ONCE)

    assert (result.inserted, result.updated) == (0, 1)
    found = read_rows(table.scan().to_arrow())
    assert len(found) == len(STORED) + added
    assert found["oslo", "k0"].row.v == 0
    assert problems_on(storage) == []
    assert os.listdir(root / ".hoodie" / ".pyhudi_running") == []


def test_a_writer_that_ends_leaves_the_table_to_the_next(tmp_path: Path) -> None:
    root = tmp_path / "a table"
    table = a_table(LocalStorage(str(root)))
    with other_writer(root, 3) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        assert process.stdout.read().endswith("done\n")
    assert table.upsert(arrow(CHANGES)).updated == 2
    assert problems_on(LocalStorage(str(root))) == []


def foreign_write(storage: Storage, at_ms: int, clock: StepClock) -> str:
    """What Apache Hudi leaves while it writes: a heartbeat without content, instants, a marker and a file."""
    requested = format_instant(at_ms, UTC)
    name = f"11111111-2222-3333-4444-555555555555-0_0-1-2_{requested}.parquet"
    clock.ms, now = at_ms, clock.ms
    storage.put(f".hoodie/.heartbeat/{requested}", b"")
    clock.ms = now
    storage.put(f".hoodie/timeline/{requested}.commit.requested", b"")
    storage.put(f".hoodie/timeline/{requested}.inflight", b"")
    storage.put(f".hoodie/.temp/{requested}/oslo/{name}.marker.CREATE", b"")
    storage.put(f"oslo/{name}", b"not even Parquet")
    return requested


@pytest.fixture
def handles() -> Handles:
    clock = StepClock()
    made = Handles(MemoryStorage(clock_ms=lambda: clock.ms), clock, seeded_uuids(1), SerialExecutor())
    made.create().upsert(arrow(STORED))
    return made


def test_a_foreign_writer_that_is_alive_conflicts_and_nothing_is_touched(handles: Handles) -> None:
    requested = foreign_write(handles.storage, handles.clock.now_ms(), handles.clock)
    before = dump(handles.storage)
    handles.clock.ms += 179_000  # beats of 60 s, two may be missed

    with pytest.raises(Conflict, match=f"commit '{requested}' of another writer is running"):
        handles.open().upsert(arrow(CHANGES))

    assert dump(handles.storage) == before
    assert len(read_rows(handles.open().scan().to_arrow())) == len(STORED)


def test_a_lock_of_this_process_alone_keeps_no_foreign_writer_out(handles: Handles) -> None:
    """Apache Hudi's lock of that name lives in its own process: a writer of it that is alive is a conflict still."""
    requested = foreign_write(handles.storage, handles.clock.now_ms(), handles.clock)
    before = dump(handles.storage)
    lock = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}

    with pytest.raises(Conflict, match=f"commit '{requested}' of another writer is running"):
        handles.open().upsert(arrow(CHANGES), options=lock)

    assert dump(handles.storage) == before


def test_one_that_is_alive_keeps_a_dead_one_from_being_rolled_back(handles: Handles) -> None:
    """Nothing at all is touched: not even what could be."""
    foreign_write(handles.storage, handles.clock.ms - 999_000, handles.clock)
    foreign_write(handles.storage, handles.clock.now_ms(), handles.clock)
    before = dump(handles.storage)

    with pytest.raises(Conflict):
        handles.open().upsert(arrow(CHANGES))

    assert dump(handles.storage) == before


def test_a_foreign_writer_whose_heartbeat_expired_is_rolled_back(handles: Handles) -> None:
    requested = foreign_write(handles.storage, handles.clock.now_ms(), handles.clock)
    handles.clock.ms += 181_000

    handles.open().upsert(arrow(CHANGES))

    assert [path for path in dump(handles.storage) if requested in path] == []
    assert [i.action for i in handles.open().timeline()] == ["commit", "rollback", "commit"]
    assert problems_on(handles.storage) == []


def test_a_foreign_heartbeat_without_an_instant_is_left_alone(handles: Handles) -> None:
    """Apache Hudi beats before it puts its requested file."""
    handles.storage.put(".hoodie/.heartbeat/20990101000000000", b"")

    handles.open().upsert(arrow(CHANGES))

    assert [f.path for f in handles.storage.list(".hoodie/.heartbeat")] == [".hoodie/.heartbeat/20990101000000000"]


def test_readers_see_the_old_state_until_the_commit(handles: Handles) -> None:
    """At every change of a write: snapshot, increment, time travel, lookup."""
    old = read_rows(handles.open().scan().to_arrow())
    looks: list[tuple[str, bool]] = []

    def look(what: str) -> None:
        table = handles.open()
        found = read_rows(table.scan().to_arrow())
        assert read_rows(table.incremental().to_arrow()) == found
        assert read_rows(table.lookup(["k0", "new"])) == {k: of for k, of in found.items() if k[1] in ("k0", "new")}
        looks.append((what, found == old))

    writer = HudiTable.open("", storage=watched(handles.storage, look), clock=handles.clock, random=handles.random)
    writer.upsert(arrow(CHANGES))

    turned = [what for what, is_old in looks if not is_old]
    assert len(looks) > 15
    assert looks[0][1]
    # What follows the commit itself: markers and heartbeat go.
    assert turned
    assert all(what.startswith("delete") for what in turned), turned


def reads(query: str) -> Callable[[HudiTable], object]:
    def run(table: HudiTable) -> object:
        scan = table.scan() if query == "scan" else table.incremental()
        return read_rows(scan.to_arrow())

    return run


@pytest.mark.parametrize("query", ["scan", "incremental"])
@pytest.mark.parametrize("compacts", [False, True])
def test_a_write_between_any_two_requests_of_a_reader(query: str, compacts: bool) -> None:
    """The reader's answer is that from before the write or that from after it."""
    for at in range(1_000):
        clock = StepClock()
        made = Handles(MemoryStorage(clock_ms=lambda c=clock: c.ms), clock, seeded_uuids(1), SerialExecutor())  # type: ignore[misc]
        made.create(properties={"hoodie.metadata.compact.max.delta.commits": "1" if compacts else "10"})
        made.open().upsert(arrow(STORED))
        before = reads(query)(made.open())
        hook = ReadHook(made.storage, at, lambda m=made: m.open().upsert(arrow(CHANGES)))  # type: ignore[misc]

        answer = reads(query)(HudiTable.open("", storage=hook))  # type: ignore[arg-type]

        if hook.reads <= at:
            assert at > 8
            return
        assert answer in (before, reads(query)(made.open())), f"a write before read {at}"
    raise AssertionError("the reader never came to an end")


def test_the_guard_is_free_after_an_error(storage: Storage) -> None:
    table = a_table(storage)

    def fail(what: str) -> None:
        raise RuntimeError("a bug in the storage")

    with pytest.raises(RuntimeError):
        HudiTable.open("", storage=watched(storage, fail)).upsert(arrow(CHANGES))
    assert table.upsert(arrow(CHANGES)).updated == 1
