"""Two writers of a table in an object store could both believe that they hold it; a dead one could hold it for ever;
a put without an answer could be taken for one that failed, or that landed.

The store is obstore's own in memory, with answers lost and conditions ignored where a test says so.
"""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from pyhudi.api.clock import SYSTEM_CLOCK, random_uuid
from pyhudi.errors import Conflict, CorruptFile, LockLost, Unavailable, Unsupported
from pyhudi.storage.object_client import Clients
from pyhudi.storage.object_store import ObjectStorage
from pyhudi.storage.protocol import FileVersion, StorageLocation
from pyhudi.txn.locks.lease import DRIFT_MS, LEASE_FILE, LeaseGuard, LeaseRecord, LeaseTerms

NOW = "2026-01-01T00:00:00Z"
TERMS = LeaseTerms(validity_ms=1_000_000, renewal_ms=100_000)  # the thread sleeps through every test but one


@dataclass(eq=False)
class HandClock:
    """A clock that a test moves."""

    ms: int = 1_780_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def sleep_ms(self, wait_ms: int) -> None:
        raise AssertionError("nothing here waits")


@dataclass
class Store:
    """A versioned storage whose next puts fail, before or after they land."""

    inner: ObjectStorage = field(default_factory=lambda: objects())
    failures: list[str] = field(default_factory=list)
    """For each put to come: `refused`, `lost` (it lands, unanswered), `ignores` (its condition is) or `fine`."""
    is_down: bool = False

    def get_versioned(self, path: str) -> tuple[bytes, FileVersion] | None:
        if self.is_down:
            raise Unavailable("down")
        return self.inner.get_versioned(path)

    def put_if(self, path: str, content: bytes, expected: FileVersion | None) -> FileVersion | None:
        failure = self.failures.pop(0) if self.failures else "fine"
        if self.is_down or failure == "refused":
            raise Unavailable("refused")
        if failure == "ignores":
            self.inner.put(path, content)
            return FileVersion("any", None)
        version = self.inner.put_if(path, content, expected)
        if failure == "lost":
            raise Unavailable("lost")
        return version

    def record(self) -> LeaseRecord:
        return LeaseRecord.decode(self.inner.get(LEASE_FILE), path=LEASE_FILE)


def objects() -> ObjectStorage:
    store = MemoryStore()
    return ObjectStorage(Clients(store, store), StorageLocation("s3://bucket/table"), "table")


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def new_guard(store: Store, clock: HandClock) -> Callable[[], LeaseGuard]:
    return lambda: LeaseGuard(store, table="s3://bucket/table", clock=clock, new_uuid=random_uuid, terms=TERMS)


def test_the_file_is_as_apache_hudi_keeps_it(
    store: Store, clock: HandClock, new_guard: Callable[[], LeaseGuard]
) -> None:
    with new_guard().acquire("upsert", NOW):
        held = json.loads(store.inner.get(".hoodie/.locks/table_lock.json"))
    released = json.loads(store.inner.get(".hoodie/.locks/table_lock.json"))

    assert list(held) == ["expired", "validUntil", "owner"]
    assert held["expired"] is False
    assert held["validUntil"] == clock.ms + 1_000_000
    assert released == {**held, "expired": True}


@given(st.builds(LeaseRecord, st.booleans(), st.integers(0, 2**63 - 1), st.text()))
def test_a_record_comes_back(record: LeaseRecord) -> None:
    assert LeaseRecord.decode(record.encode(), path="f") == record


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"expired":1,"validUntil":1,"owner":"x"}', b"\xff"])
def test_what_is_no_lease_is_not_taken_over(store: Store, new_guard: Callable[[], LeaseGuard], content: bytes) -> None:
    store.inner.put(LEASE_FILE, content)

    with pytest.raises(CorruptFile, match="expected a lease"):
        new_guard().acquire("upsert", NOW).__enter__()
    assert store.inner.get(LEASE_FILE) == content


def test_a_second_writer_conflicts_and_learns_who_holds_it(new_guard: Callable[[], LeaseGuard]) -> None:
    holder = r"held by process \d+ on .+ \(upsert, since 2026-01-01T00:00:00Z\) [0-9a-f-]{36}"
    text = rf"{holder}, which is this process: another of its threads; its lease ends in 1,000,000 ms"
    with new_guard().acquire("upsert", NOW):
        for _ in range(2):
            with pytest.raises(Conflict, match=text):
                new_guard().acquire("clean", NOW).__enter__()
    with new_guard().acquire("clean", NOW):
        pass


def test_a_lease_of_apache_hudi_is_heeded(store: Store, clock: HandClock, new_guard: Callable[[], LeaseGuard]) -> None:
    owner = "2f1f5ac4-9a75-4f3a-8a3e-1d5b4f0f6f10"
    store.inner.put(LEASE_FILE, b'{"expired":false,"validUntil":%d,"owner":"%s"}' % (clock.ms + 5, owner.encode()))

    with pytest.raises(Conflict, match=owner):
        new_guard().acquire("upsert", NOW).__enter__()
    store.inner.put(LEASE_FILE, b'{"expired":true,"validUntil":%d,"owner":"%s"}' % (clock.ms + 5, owner.encode()))
    with new_guard().acquire("upsert", NOW):
        pass


def test_a_lease_is_taken_over_once_it_ran_out_and_the_clocks_differ(
    clock: HandClock, new_guard: Callable[[], LeaseGuard]
) -> None:
    with new_guard().acquire("upsert", NOW) as first:
        clock.ms += 1_000_000 + DRIFT_MS
        with pytest.raises(Conflict):
            new_guard().acquire("clean", NOW).__enter__()
        clock.ms += 1
        with new_guard().acquire("clean", NOW) as second:
            second.confirm()
            for _ in range(2):
                with pytest.raises(
                    LockLost, match=r"ended before the commit, and process .* \(clean, .* took the table"
                ):
                    first.confirm()
    with new_guard().acquire("next", NOW):
        pass


def test_who_lost_it_does_not_release_what_is_another_s(
    store: Store, clock: HandClock, new_guard: Callable[[], LeaseGuard], caplog: pytest.LogCaptureFixture
) -> None:
    first = new_guard().acquire("upsert", NOW)
    first.__enter__()
    clock.ms += 2_000_000
    with new_guard().acquire("clean", NOW) as second:
        first.__exit__(None, None, None)
        assert not store.record().expired
        second.confirm()
    assert "could not be released" in caplog.text


def test_a_lease_that_ran_out_unseen_is_still_ours(clock: HandClock, new_guard: Callable[[], LeaseGuard]) -> None:
    """The put's condition shows that nobody had the table in between."""
    with new_guard().acquire("upsert", NOW) as lease:
        clock.ms += 5_000_000
        lease.confirm()
        with pytest.raises(Conflict):
            new_guard().acquire("clean", NOW).__enter__()


def test_confirming_renews(store: Store, clock: HandClock, new_guard: Callable[[], LeaseGuard]) -> None:
    with new_guard().acquire("upsert", NOW) as lease:
        clock.ms += 400_000
        lease.confirm()
        assert store.record().valid_until_ms == clock.ms + 1_000_000


def test_a_store_that_does_not_answer_leaves_half_of_the_lease_to_commit(
    store: Store, clock: HandClock, new_guard: Callable[[], LeaseGuard]
) -> None:
    with new_guard().acquire("upsert", NOW) as lease:
        store.is_down = True
        clock.ms += 500_000
        lease.confirm()
        clock.ms += 1
        with pytest.raises(LockLost, match="ends in 499,999 ms: expected at least 500,000 ms to commit"):
            lease.confirm()
        store.is_down = False
        lease.confirm()


@pytest.mark.parametrize(
    "failures",
    [
        *(["lost"], ["refused"], ["refused", "lost"], ["lost", "refused"], ["lost", "lost", "fine"]),
        *(["fine", "fine", "lost"], ["fine", "fine", "lost", "lost"], ["fine", "fine", "refused", "lost"]),
    ],
)
def test_an_answer_that_got_lost_is_looked_up(
    store: Store, clock: HandClock, new_guard: Callable[[], LeaseGuard], failures: list[str]
) -> None:
    """Of the taking, of a renewal, of two: the third put is the first renewal, after the trial of the store."""
    store.failures = failures
    with new_guard().acquire("upsert", NOW) as lease:
        for _ in range(3):
            clock.ms += 1
            lease.confirm()
        assert store.record().valid_until_ms == clock.ms + 1_000_000
    assert store.record().expired


def test_a_taking_that_failed_is_not_believed(store: Store, new_guard: Callable[[], LeaseGuard]) -> None:
    store.failures = ["refused"] * 3
    with pytest.raises(Unavailable):
        new_guard().acquire("upsert", NOW).__enter__()
    assert store.inner.head(LEASE_FILE) is None
    with new_guard().acquire("upsert", NOW):
        pass


def test_a_taking_that_failed_while_another_took_it_conflicts_or_fails(
    store: Store, new_guard: Callable[[], LeaseGuard]
) -> None:
    with new_guard().acquire("upsert", NOW):
        store.failures = ["lost"]
        with pytest.raises(Conflict):
            new_guard().acquire("clean", NOW).__enter__()


def test_a_store_that_ignores_conditions_is_refused(store: Store, new_guard: Callable[[], LeaseGuard]) -> None:
    store.failures = ["ignores", "ignores"]
    with pytest.raises(Unsupported, match="it ignores conditional puts"):
        new_guard().acquire("upsert", NOW).__enter__()


def test_a_failed_trial_of_the_store_gives_the_lease_back(store: Store, new_guard: Callable[[], LeaseGuard]) -> None:
    store.failures = ["fine", "refused"]
    with pytest.raises(Unavailable):
        new_guard().acquire("upsert", NOW).__enter__()
    with new_guard().acquire("upsert", NOW):
        pass


def test_a_table_that_was_deleted_takes_its_lease_along(
    store: Store, new_guard: Callable[[], LeaseGuard], caplog: pytest.LogCaptureFixture
) -> None:
    with new_guard().acquire("overwriting the table", NOW):
        store.inner.delete_prefix("")

    assert caplog.text == ""
    assert list(store.inner.list("", recursive=True)) == []


def test_the_deletion_of_a_lease_is_noticed(store: Store, new_guard: Callable[[], LeaseGuard]) -> None:
    with new_guard().acquire("upsert", NOW) as lease:
        store.inner.delete(LEASE_FILE)
        with pytest.raises(LockLost, match="nobody took the table"):
            lease.confirm()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_gives_it_back(new_guard: Callable[[], LeaseGuard], error: type[BaseException]) -> None:
    with pytest.raises(error), new_guard().acquire("upsert", NOW):
        raise error
    with new_guard().acquire("upsert", NOW):
        pass


def test_of_many_threads_one_holds_it_at_a_time(new_guard: Callable[[], LeaseGuard]) -> None:
    inside = 0
    most = 0
    acquired = 0
    changing = threading.Lock()

    @contextmanager
    def counted():
        nonlocal inside, most, acquired
        with changing:
            inside += 1
            acquired += 1
            most = max(most, inside)
        yield
        with changing:
            inside -= 1

    def write() -> None:
        turns = 0
        for _ in range(5_000):
            with suppress(Conflict), new_guard().acquire("upsert", NOW), counted():
                turns += 1
            if turns == 3:
                return

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(write) for _ in range(4)]:
            future.result()

    assert most == 1
    assert acquired == 12


def test_a_held_lease_is_renewed(store: Store) -> None:
    """In real time: it outlives its validity."""
    terms = LeaseTerms(validity_ms=300, renewal_ms=30)
    stopped = threading.Event()

    def new_guard() -> LeaseGuard:
        return LeaseGuard(store, table="t", clock=SYSTEM_CLOCK, new_uuid=random_uuid, terms=terms)

    with new_guard().acquire("upsert", NOW) as lease:
        first = store.record()
        stopped.wait(1.2)  # longer than the validity and the drift
        assert store.record().owner == first.owner
        assert store.record().valid_until_ms > first.valid_until_ms + 800
        with pytest.raises(Conflict):
            new_guard().acquire("clean", NOW).__enter__()
        lease.confirm()
    assert not [thread for thread in threading.enumerate() if thread.name == "pyhudi-lease"]


def test_a_renewal_that_landed_unknown_to_all_is_taken_up(
    store: Store, clock: HandClock, new_guard: Callable[[], LeaseGuard]
) -> None:
    with new_guard().acquire("upsert", NOW) as lease:
        clock.ms += 1
        store.failures = ["refused", "refused", "lost"]
        lease.confirm()  # unanswered, but most of the lease is left
        clock.ms += 1
        lease.confirm()
        assert store.record().valid_until_ms == clock.ms + 1_000_000


def test_a_forked_child_holds_nothing(new_guard: Callable[[], LeaseGuard], monkeypatch: pytest.MonkeyPatch) -> None:
    guard = new_guard().acquire("upsert", NOW)
    lease = guard.__enter__()
    with monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: 1)
        with pytest.raises(LockLost, match="by the process that was forked"):
            lease.confirm()
    lease.confirm()
    guard.__exit__(None, None, None)
