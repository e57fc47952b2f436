"""A table in an object store could differ from one on disk: listings, ranges, two writers, a writer that died, a lease
that ran out.

From `create` to `incremental` against servers behind doors of this process; a writer that dies is a process of its own.
"""

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import Conflict, Invalid, LockLost, NotFound, OutcomeUnknown, Unsupported
from pyhudi.format.names import heartbeat_path
from pyhudi.services.metadata import compaction as metadata_compaction
from pyhudi.services.metadata.upkeep import MetadataTableUpkeep
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.protocol import StorageLocation
from pyhudi.txn.locks.guard import Guard, open_guard
from pyhudi.txn.locks.heartbeat import OURS
from pyhudi.txn.locks.lease import LEASE_FILE, LeaseRecord
from pyhudi.txn.undo import rollback
from tests.support.model import Row, StepClock, arrow, problems_on
from tests.support.store_server import StoreServer

SOURCE_DIR = Path(pyhudi.__file__).parents[1]


@pytest.fixture
def location(store_server: StoreServer) -> StorageLocation:
    return parse_location(store_server.new_path(), store_server.options)


@pytest.fixture
def clock() -> StepClock:
    return StepClock()


def opened(location: StorageLocation, clock: StepClock) -> HudiTable:
    return HudiTable.open(location.uri, storage_options=dict(location.options), clock=clock)


@pytest.fixture
def table(location: StorageLocation, clock: StepClock) -> HudiTable:
    return HudiTable.create(
        location.uri, name="t", record_key="id", partition_by="city", ordering="ts",
        storage_options=dict(location.options), clock=clock,
    )  # fmt: skip


def rows(table: HudiTable, *, where: str | None = None, as_of: str | None = None) -> dict[str, int]:
    found = table.scan(columns=["id", "v"], where=where, as_of=as_of).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def base_files(location: StorageLocation) -> int:
    """How many lie in the partition `x`."""
    return sum(file.path.endswith(".parquet") for file in open_storage(location).list("x"))


def after_heartbeats_ms() -> int:
    """A time at which no heartbeat is alive that was put by now. Its file bears the time of the store's own clock."""
    return int(time.time() * 1_000) + 400_000


def lease_of(location: StorageLocation) -> LeaseRecord:
    return LeaseRecord.decode(open_storage(location).get(LEASE_FILE), path=LEASE_FILE)


def test_a_table_from_its_creation_to_an_incremental_query(
    table: HudiTable, location: StorageLocation, clock: StepClock
) -> None:
    first = table.bulk_insert(arrow(Row(f"k{n}", f"c/{n % 2} ö%", 1, n) for n in range(10)))
    second = opened(location, clock).upsert(arrow([Row("k1", "c/1 ö%", 2, 100), Row("new", "c/2", 1, 200)]))
    table.delete(arrow([Row("k0", "c/0 ö%", 9, 0)]))

    again = opened(location, clock)
    expected = {**{f"k{n}": n for n in range(1, 10)}, "k1": 100, "new": 200}
    assert rows(again) == expected
    assert rows(again, where="city = 'c/2'") == {"new": 200}
    assert rows(again, as_of=first.requested) == {f"k{n}": n for n in range(10)}
    changed = again.incremental(start=first.completed, end=second.completed, columns=["id"]).to_arrow()
    assert sorted(changed["id"].to_pylist()) == ["k1", "new"]
    assert again.lookup(["new"])["v"].to_pylist() == [200]
    assert HudiTable.exists(location.uri, storage_options=dict(location.options))
    assert lease_of(location).expired


def test_a_merge_on_read_table_is_written_compacted_and_read(location: StorageLocation, clock: StepClock) -> None:
    options = dict(location.options)
    table = HudiTable.create(
        location.uri, name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        storage_options=options, clock=clock,
    )  # fmt: skip
    table.bulk_insert(arrow(Row(f"k{n}", f"c{n % 2}", 1, n) for n in range(10)))
    table.upsert(arrow([Row("k1", "c1", 2, 100), Row("new", "c0", 1, 200)]))
    table.delete(arrow([Row("k0", "c0", 9, 0)]))
    expected = {**{f"k{n}": n for n in range(1, 10)}, "k1": 100, "new": 200}
    assert any(".log." in file.path for file in open_storage(location).list("c1"))
    assert rows(opened(location, clock)) == expected

    compacted = opened(location, clock).compact()
    again = opened(location, clock)

    assert compacted.completed is not None
    assert {instant.action for instant in again.timeline()} == {"deltacommit", "commit"}
    assert rows(again) == expected
    found = again.scan(columns=["id", "v"], query="read_optimized").to_arrow()
    assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == expected
    again.upsert(arrow([Row("k2", "c0", 3, 300)]))
    assert rows(again) == {**expected, "k2": 300}
    assert problems_on(open_storage(location)) == []


@pytest.mark.parametrize("found", ["none before", "one that was given back"])
def test_one_of_writers_that_start_at_once_gets_the_table(location: StorageLocation, found: str) -> None:
    """The lease is taken by a conditional put: a store that let two through would lose what one of them commits."""

    def guard() -> Guard:
        return open_guard(location, clock=StepClock(), new_uuid=lambda: str(uuid4()))

    if found != "none before":
        with guard().acquire("an upsert", "now"):
            pass
    start, tried = threading.Barrier(6), threading.Barrier(6)

    def write(writer: int) -> bool:
        start.wait()
        try:
            with guard().acquire("an upsert", "now") as hold:
                tried.wait()
                hold.confirm()
                return True
        except Conflict:
            tried.wait()
            return False

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(write, range(6))) == 1


def test_a_place_is_taken_once(table: HudiTable, location: StorageLocation) -> None:
    with pytest.raises(Invalid, match="found one; open it"):
        HudiTable.create(location.uri, name="t", record_key="id", storage_options=dict(location.options))


def test_where_nothing_is_nothing_is_found(location: StorageLocation) -> None:
    with pytest.raises(NotFound):
        HudiTable.open(location.uri, storage_options=dict(location.options))
    assert not HudiTable.exists(location.uri, storage_options=dict(location.options))


def test_a_second_writer_commits_meanwhile_and_the_first_is_planned_anew(
    table: HudiTable, location: StorageLocation, clock: StepClock
) -> None:
    table.bulk_insert(arrow([Row("a", "x", 1, 1)]))
    done: list[str] = []

    class Meanwhile:
        """An executor that lets a second writer write once the first one's files are there."""

        def run(self, function, tasks):
            found = [function(task) for task in tasks]
            if not done and base_files(location) == 2:
                done.append("begun")
                opened(location, clock).upsert(arrow([Row("a", "x", 3, 3)]), options=AT_ONCE)
            return found

    HudiTable.open(
        location.uri, storage_options=dict(location.options), clock=clock, executor=Meanwhile()
    ).upsert(arrow([Row("a", "x", 2, 2)]))  # fmt: skip

    assert done
    assert rows(table) == {"a": 3}, "the row with the greater ordering value"
    assert [i.action for i in table.timeline()].count("commit") == 3
    assert [i for i in table.timeline() if i.state != "COMPLETED"] == []
    assert base_files(location) == 2  # a row that loses changes no file


def test_a_writer_that_holds_the_table_is_named(
    table: HudiTable, location: StorageLocation, clock: StepClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.bulk_insert(arrow([Row("a", "x", 1, 1)]))
    before_completion, seen = MetadataTableUpkeep.before_completion, list[str]()

    def another_tries(self, *given, **named):
        if not seen:
            seen.append("")
            with pytest.raises(Conflict) as raised:
                opened(location, clock).upsert(arrow([Row("a", "x", 3, 3)]), options=AT_ONCE)
            seen.append(str(raised.value))
        before_completion(self, *given, **named)

    monkeypatch.setattr(MetadataTableUpkeep, "before_completion", another_tries)
    table.upsert(arrow([Row("a", "x", 2, 2)]))

    assert "held by process" in seen[1]
    assert "upsert of table 't'" in seen[1]
    assert rows(table) == {"a": 2}


AT_ONCE = {"hoodie.write.lock.wait_time_ms": 0}

DIES = """
import json, os, sys
from pyhudi import HudiTable
from pyhudi.storage.open import parse_location
from tests.conformance.test_object_tables import base_files
from tests.support.model import Row, StepClock, arrow

uri, options, ms = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])

class Dying:
    def run(self, function, tasks):
        done = [function(task) for task in tasks]
        if base_files(parse_location(uri, options)) == 2:
            os._exit(9)
        return done

table = HudiTable.open(uri, storage_options=options, clock=StepClock(ms), executor=Dying())
table.upsert(arrow([Row("a", "x", 2, 2)]))
"""


@pytest.mark.parametrize("is_here", [True, False], ids=["on this machine", "on another"])
def test_a_writer_that_died_blocks_nobody(
    table: HudiTable, location: StorageLocation, clock: StepClock, is_here: bool
) -> None:
    """A process of this machine is known to be dead. One of another machine counts as dead after its heartbeats."""
    table.bulk_insert(arrow([Row("a", "x", 1, 1)]))
    clock.ms += 10_000
    died = subprocess.run(
        [sys.executable, "-c", DIES, location.uri, json.dumps(dict(location.options)), str(clock.ms)],
        cwd=SOURCE_DIR.parent, env={**os.environ, "PYTHONPATH": f"{SOURCE_DIR}{os.pathsep}{SOURCE_DIR.parent}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert died.returncode == 9, died.stderr
    (dead,) = (instant for instant in table.timeline() if instant.state != "COMPLETED")
    if not is_here:
        open_storage(location).put(heartbeat_path(dead.requested), OURS)

    table.upsert(arrow([Row("a", "x", 3, 3)]), options=AT_ONCE)
    assert rows(table) == {"a": 3}
    assert base_files(location) == (2 if is_here else 3)
    clock.ms = after_heartbeats_ms()

    table.upsert(arrow([Row("a", "x", 4, 4)]))
    assert rows(table) == {"a": 4}
    assert [i for i in table.timeline() if i.state != "COMPLETED"] == []
    assert {i.action for i in table.timeline()} == {"commit", "rollback"}
    assert base_files(location) == 3  # the dead one's is gone


def test_a_writer_waits_for_whoever_holds_the_table_when_it_is_about_to_complete(
    table: HudiTable, location: StorageLocation, clock: StepClock
) -> None:
    table.bulk_insert(arrow([Row("a", "x", 1, 1)]))
    storage, taken = open_storage(location), list[int]()

    class Executor:
        def run(self, function, tasks):
            done = [function(task) for task in tasks]
            if base_files(location) == 2 and not taken:
                taken.append(clock.ms)
                storage.put(LEASE_FILE, LeaseRecord(False, clock.ms + 60_000, "another writer").encode())
            return done

    writer = HudiTable.open(location.uri, storage_options=dict(location.options), clock=clock, executor=Executor())
    writer.upsert(arrow([Row("a", "x", 2, 2)]))

    assert clock.ms - taken[0] > 60_000
    assert rows(table) == {"a": 2}


def test_a_writer_that_lost_its_lease_does_not_commit(
    table: HudiTable, location: StorageLocation, clock: StepClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one took the table over. What the first left is the other's to clear away: it touches nothing."""
    table.bulk_insert(arrow([Row("a", "x", 1, 1)]))
    storage = open_storage(location)
    taken: list[bytes] = []

    def take_over() -> None:
        other = LeaseRecord(False, clock.ms + 10_000_000, "another writer")
        storage.put(LEASE_FILE, other.encode())
        taken.append(other.encode())

    before_completion = MetadataTableUpkeep.before_completion

    def then_take_over(self, *given, **named):
        before_completion(self, *given, **named)
        take_over()

    monkeypatch.setattr(MetadataTableUpkeep, "before_completion", then_take_over)
    with pytest.raises(LockLost, match="another writer took the table"):
        opened(location, clock).upsert(arrow([Row("a", "x", 2, 2)]))
    monkeypatch.undo()

    assert storage.get(LEASE_FILE) == taken[-1]
    assert len([i for i in table.timeline() if i.state != "COMPLETED"]) == 1  # left for the holder
    assert rows(table) == {"a": 1}
    storage.put(LEASE_FILE, LeaseRecord(True, 0, "another writer").encode())
    table.upsert(arrow([Row("a", "x", 3, 3)]))
    assert rows(table) == {"a": 3}


def test_a_writer_that_failed_and_lost_its_lease_rolls_nothing_back(
    table: HudiTable, location: StorageLocation, clock: StepClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyhudi.api.writes.TURN_WAIT_MS", 1_000)
    table.bulk_insert(arrow([Row("a", "x", 1, 1)]))
    storage = open_storage(location)

    class Failing:
        def run(self, function, tasks):
            done = [function(task) for task in tasks]
            if base_files(location) == 2:
                storage.put(LEASE_FILE, LeaseRecord(False, clock.ms + 10_000_000, "another writer").encode())
                raise ValueError("no luck")
            return done

    writer = HudiTable.open(location.uri, storage_options=dict(location.options), clock=clock, executor=Failing())
    with pytest.raises(ValueError, match="no luck") as raised:
        writer.upsert(arrow([Row("a", "x", 2, 2)]), options=AT_ONCE)

    assert any("could not be rolled back yet" in note for note in raised.value.__notes__)
    assert base_files(location) == 2
    assert len([i for i in table.timeline() if i.state != "COMPLETED"]) == 1


@pytest.mark.parametrize("moment", ["a rollback", "a compaction of the metadata table"])
def test_a_writer_that_loses_its_lease_before_its_turn_leaves_all_as_it_is(
    table: HudiTable, location: StorageLocation, clock: StepClock, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """While it reads what a dead one left, or what it compacts: neither deletes nor completes it."""
    table.bulk_insert(arrow([Row("a", "x", 1, 1)]))
    table.upsert(arrow([Row("a", "x", 2, 2)]))
    storage = open_storage(location)

    class LightsOut(BaseException):
        pass

    class Dying:
        def run(self, function, tasks):
            done = [function(task) for task in tasks]
            if base_files(location) == 3:
                raise LightsOut
            return done

    if moment == "a rollback":
        with pytest.raises(LightsOut):
            HudiTable.open(
                location.uri, storage_options=dict(location.options), clock=clock, executor=Dying()
            ).upsert(arrow([Row("a", "x", 3, 3)]))  # fmt: skip
        clock.ms = after_heartbeats_ms()  # this process lives, so that only they can say that the write is dead
    module, name = {
        "a rollback": (rollback, "encode_rollback_plan"),
        "a compaction of the metadata table": (metadata_compaction, "write_group_base"),
    }[moment]
    step = getattr(module, name)

    def then_take_over(*given, **named):
        storage.put(LEASE_FILE, LeaseRecord(False, clock.ms + 10_000_000, "another writer").encode())
        return step(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(module, name, then_take_over)
        files = base_files(location)
        with pytest.raises(LockLost, match="another writer took the table"):
            table.upsert(
                arrow([Row("a", "x", 4, 4)]), options={"hoodie.metadata.compact.max.delta.commits": "1"}
            )  # fmt: skip
    assert base_files(location) == files
    assert rows(table) == {"a": 2}
    own = [file.path for file in storage.list(".hoodie/metadata/.hoodie/timeline")]
    assert [path for path in own if path.endswith(".commit")] == []  # as compactions of it complete
    assert {i.action for i in table.timeline() if i.state == "COMPLETED"} == {"commit"}

    storage.put(LEASE_FILE, LeaseRecord(True, 0, "another writer").encode())
    table.upsert(arrow([Row("a", "x", 5, 5)]))
    assert rows(table) == {"a": 5}
    assert problems_on(storage) == []


def test_a_commit_whose_answer_got_lost_landed(
    table: HudiTable, location: StorageLocation, clock: StepClock, store_server: StoreServer
) -> None:
    lost: list[str] = []

    def is_completion(request: str) -> bool:
        is_it = request.startswith("PUT") and request.endswith(".commit") and "/metadata/" not in request and not lost
        if is_it:
            lost.append(request)
        return is_it

    with store_server.failing(loses_answer_to=is_completion):
        result = table.bulk_insert(arrow([Row("a", "x", 1, 1)]))

    assert len(lost) == 1
    assert result.completed is not None
    assert rows(table) == {"a": 1}


def test_a_commit_that_nobody_can_tell_of_is_left_alone(
    table: HudiTable, store_server: StoreServer, clock: StepClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyhudi.storage.object_store._PAUSES_S", (0.0,))
    went_away: list[bool] = []

    def goes_away(request: str) -> bool:
        if request.startswith("PUT") and request.endswith(".commit") and "/metadata/" not in request:
            went_away.append(True)
        return False

    with (
        store_server.failing(
            loses_answer_to=lambda r: goes_away(r) or bool(went_away), refuses=lambda r: bool(went_away)
        ),
        pytest.raises(OutcomeUnknown),
    ):
        table.bulk_insert(arrow([Row("a", "x", 1, 1)]))

    assert rows(table) == {"a": 1}


def test_a_commit_of_a_row_has_a_budget(table: HudiTable, store_server: StoreServer) -> None:
    """Requests as the store sees them. A change of these counts is a decision."""
    table.bulk_insert(arrow([Row("a", "x", 1, 1)]))
    store_server.requests.clear()
    table.upsert(arrow([Row("a", "x", 2, 2)]))
    leased = [request for request in store_server.requests if request.endswith(LEASE_FILE)]
    # taken and released; taken, confirmed before the metadata table is told, before its deltacommit and the commit
    # complete, and released
    assert [request.partition(" ")[0] for request in leased] == [
        "GET",
        "PUT",
        "PUT",
        "GET",
        "PUT",
        "PUT",
        "PUT",
        "PUT",
        "PUT",
    ]
    assert len(store_server.requests) < 120


def test_a_table_behind_fsspec_is_read_and_not_written(tmp_path: Path, clock: StepClock) -> None:
    HudiTable.create(tmp_path, name="t", record_key="id", clock=clock).bulk_insert(arrow([Row("a", "x", 1, 1)]))

    table = HudiTable.open(f"local://{tmp_path}", clock=clock)
    assert rows(table) == {"a": 1}
    with pytest.raises(Unsupported, match=r"reads 'local' through fsspec and does not write .* as 'file:///\.\.\.'"):
        table.upsert(arrow([Row("a", "x", 2, 2)]))
    with pytest.raises(Unsupported, match="does not write to it"):
        HudiTable.create(f"local://{tmp_path}/other", name="t", record_key="id")
    assert not (tmp_path / "other").exists()
    assert rows(table) == {"a": 1}
