"""A compaction works without the table's guard: it could meet another attempt, a writer, or a service, and lose rows,
block them, or leave files that nobody knows. Each meeting is played here, at the moment between work and commit.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable, Invalid, NotFound, Unavailable
from pyhudi.api.service_calls.jobs import asked_job
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.executor import Executor
from pyhudi.format.timeline.action_files import decode_compaction_plan, encode_compaction_plan
from pyhudi.services.compaction.inputs import CompactionKind
from pyhudi.services.compaction.run import schedule_compaction
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTables
from tests.support.merge_on_read import AFTER_ALL_MS, handle, in_memory, without_file_names
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, seeded_uuids

T = TypeVar("T")
R = TypeVar("R")

DEAD_MS = 10 * 60_000
LOGS = {"hoodie.log.compaction.blocks.threshold": "2"}


@dataclass
class Meeting:
    """An executor that lets something happen when the work on slices is done: not that on the metadata table."""

    happens: Callable[[], object]
    inner: SerialExecutor = field(default_factory=SerialExecutor)

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        done = self.inner.run(function, tasks)
        if "metadata" not in function.__module__:
            self.happens()
        return done


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTables:
    return GoldenTables(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def disk(golden: GoldenTables) -> MemoryStorage:
    return in_memory(golden.get("mor_event_time_v9_h120"))


def meeting(storage: Storage, happens: Callable[[], object]) -> HudiTable:
    return Handles(storage, StepClock(AFTER_ALL_MS), seeded_uuids(1), Meeting(happens)).open()


def rows(storage: Storage, *, query: str = "snapshot") -> pa.Table:
    return without_file_names(handle(storage, later_ms=3 * DEAD_MS).scan(query=query).to_arrow())


def fail() -> None:
    raise Unavailable("the disk is full")


def check_whole(disk: MemoryStorage, before: pa.Table) -> None:
    assert_same_rows(rows(disk), before)
    assert_same_rows(rows(disk, query="read_optimized"), before)
    assert problems_on(disk) == []


def test_an_attempt_that_was_taken_for_dead_ends_and_leaves_the_other_ones_files(disk: MemoryStorage) -> None:
    before, others = rows(disk), []
    first = meeting(disk, lambda: others.append(handle(disk, later_ms=DEAD_MS).compact()))

    with pytest.raises(Conflict, match="another writer completed it"):
        first.compact()

    assert others[0].completed is not None
    check_whole(disk, before)


def test_an_attempt_whose_successor_still_works_does_not_complete(disk: MemoryStorage) -> None:
    before = rows(disk)

    def begin_anew() -> None:
        with pytest.raises(Conflict, match="took it for dead"):
            meeting_later(disk, fail_with_conflict).compact()

    def fail_with_conflict() -> None:
        raise Conflict("another process took it for dead, says the test")

    first = meeting(disk, begin_anew)
    with pytest.raises(Conflict, match="another run took it for dead"):
        first.compact()
    assert_same_rows(rows(disk), before)

    handle(disk, later_ms=2 * DEAD_MS).compact()
    check_whole(disk, before)


def meeting_later(storage: Storage, happens: Callable[[], object]) -> HudiTable:
    return Handles(storage, StepClock(AFTER_ALL_MS + DEAD_MS), seeded_uuids(2), Meeting(happens)).open()


def test_what_a_lost_task_attempt_wrote_goes_before_the_commit(disk: MemoryStorage) -> None:
    before, lost = rows(disk), []

    def lose_an_attempt() -> None:
        for file in list(disk.list(".hoodie/.temp", recursive=True)):
            marker = file.path.replace("-0_2", "-77_2")
            data = marker.partition("/.temp/")[2].partition("/")[2].partition(".marker.")[0]
            assert marker != file.path
            disk.put(marker, b"")
            disk.put(data, b"half a file")
            lost.append(data)

    meeting(disk, lose_an_attempt).compact()

    assert lost
    assert [path for path in lost if disk.head(path) is not None] == []
    check_whole(disk, before)


def test_services_of_others_go_on_and_leave_a_compaction_its_files(disk: MemoryStorage) -> None:
    before = rows(disk)

    def others() -> None:
        other = handle(disk, later_ms=DEAD_MS)
        other.clean(
            options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
        )
        other.archive(options={"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3})
        assert_same_rows(rows(disk), before)

    meeting(disk, others).compact()

    check_whole(disk, before)


def test_work_that_waits_in_vain_for_the_table_stays_pending(disk: MemoryStorage) -> None:
    before = rows(disk)
    with ExitStack() as held:
        other = handle(disk, later_ms=1)
        job = asked_job(other._handle, CompactionKind.BASE, None, None)
        first = meeting(disk, lambda: held.enter_context(job.open_session()))
        with pytest.raises(Conflict, match="waited 600 seconds"):
            first.compact()
    assert_same_rows(rows(disk), before)

    handle(disk, later_ms=2 * DEAD_MS).compact()
    check_whole(disk, before)


def test_work_that_fails_can_be_done_anew_at_once(disk: MemoryStorage) -> None:
    before = rows(disk)
    with pytest.raises(Unavailable, match="disk is full"):
        meeting(disk, fail).compact()
    left = [i for i in handle(disk).timeline() if i.action == "compaction"]

    result = handle(disk, later_ms=1_000).compact()

    assert result.requested == left[0].requested
    check_whole(disk, before)


def test_a_compaction_that_was_scheduled_is_done_under_its_instant(disk: MemoryStorage) -> None:
    before = rows(disk)
    scheduled = handle(disk).schedule_compaction()
    assert scheduled.requested is not None
    assert scheduled.completed is None
    assert_same_rows(rows(disk), before)

    again = handle(disk, later_ms=1_000).schedule_compaction()
    assert again.requested is None
    assert "pending services" in again.reason
    done = handle(disk, later_ms=2_000).compact()

    assert done.requested == scheduled.requested
    assert (done.file_groups, done.rows) == (scheduled.file_groups, before.num_rows)
    check_whole(disk, before)
    assert handle(disk, later_ms=3_000).compact().reason == "no slice has logs that qualify"


def test_a_plan_of_whole_paths_of_another_place_is_carried_out(disk: MemoryStorage) -> None:
    """Version 1 of plans, of a table that was moved."""
    before = rows(disk)
    change_plan(disk, lambda name: f"file:/elsewhere/table/{name}")

    handle(disk, later_ms=1_000).compact()

    check_whole(disk, before)


def test_a_plan_whose_file_is_gone_is_refused_by_its_name(disk: MemoryStorage) -> None:
    change_plan(disk, lambda name: name.replace("log.1", "log.7"))
    with pytest.raises(NotFound, match=r"its plan names '.*log\.7.*', which is gone"):
        handle(disk, later_ms=1_000).compact()


def change_plan(disk: MemoryStorage, renamed: Callable[[str], str]) -> None:
    scheduled = handle(disk).schedule_compaction()
    path = f".hoodie/timeline/{scheduled.requested}.compaction.requested"
    plan = decode_compaction_plan(disk.get(path), path=path)
    operations = tuple(
        replace(
            one,
            delta_file_paths=tuple(map(renamed, one.delta_file_paths or ())),
            data_file_path=renamed(one.data_file_path) if one.data_file_path else None,
        )
        for one in plan.operations or ()
    )
    disk.put(path, encode_compaction_plan(replace(plan, operations=operations, version=1)))


def test_a_log_compaction_that_a_compaction_has_overtaken_is_given_up(disk: MemoryStorage) -> None:
    """Apache Hudi plans compactions of file groups that are in a pending log compaction."""
    before = rows(disk)
    copy = disk.copy()
    plan = handle(copy, later_ms=5_000).schedule_compaction()
    name = f".hoodie/timeline/{plan.requested}.compaction.requested"
    with pytest.raises(Unavailable):
        meeting(disk, fail).log_compact(options=LOGS)
    disk.put(name, copy.get(name))

    with pytest.raises(Conflict, match="took file groups"):
        # it began before the compaction was planned, and would complete after that
        meeting_late_plan(copy=in_memory_of(disk, without=name), plan=(name, copy.get(name))).log_compact(options=LOGS)
    given_up = handle(disk, later_ms=10_000).log_compact(options=LOGS)

    assert given_up.completed is None
    assert [i.action for i in handle(disk).timeline() if i.state != "COMPLETED"] == ["compaction"]
    handle(disk, later_ms=20_000).compact()
    check_whole(disk, before)


def in_memory_of(disk: MemoryStorage, *, without: str) -> MemoryStorage:
    copy = disk.copy()
    copy.delete(without)
    return copy


def meeting_late_plan(copy: MemoryStorage, plan: tuple[str, bytes]) -> HudiTable:
    return Handles(
        copy, StepClock(AFTER_ALL_MS + 1_000), seeded_uuids(4), Meeting(lambda: copy.put(*plan))
    ).open()  # fmt: skip


def test_a_copy_on_write_table_has_nothing_to_compact() -> None:
    table = Handles(MemoryStorage()).create()
    for call in (table.compact, table.schedule_compaction, table.log_compact):
        with pytest.raises(Invalid, match="expected a merge-on-read table"):
            call()


# Tables whose delta commits are ours.


def another(table: HudiTable) -> HudiTable:
    """A handle of another process on the same table."""
    return HudiTable.open(
        "", storage=table._access.storage, clock=table._access.clock, random=seeded_uuids(7), executor=SerialExecutor()
    )


def with_logs(executor: Executor | None = None, options: dict[str, str] | None = None, version: int = 9) -> HudiTable:
    """A new merge-on-read table with rows in base files, `options` for all its writes."""
    table = HudiTable.create(
        "", name="t", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ",
        storage=MemoryStorage(), clock=StepClock(), random=seeded_uuids(1), executor=executor or SerialExecutor(),
        table_version=version, properties={"hoodie.clean.automatic": "false", **(options or {})},
    )  # fmt: skip
    table.bulk_insert(arrow([Row(f"k{n}", "rome", 1, n) for n in range(6)]))
    return table


def values(table: HudiTable, query: str = "snapshot") -> dict[str, int]:
    found = table.scan(["id", "v"], query=query).to_arrow()
    return dict(zip(found.column("id").to_pylist(), found.column("v").to_pylist(), strict=True))


def pending(table: HudiTable) -> list[tuple[str, str]]:
    return [(i.action, i.state) for i in table.timeline() if i.state != "COMPLETED"]


def compactions(table: HudiTable) -> int:
    return sum(1 for i in table.timeline() if i.action == "commit" and i.completed)


def test_writes_between_the_plan_and_the_commit_of_a_compaction_stay() -> None:
    """The logs of such a write come to lie upon the new base file, though the compaction completed after it."""
    writes: list[Callable[[], object]] = []
    table = with_logs(Meeting(lambda: writes and writes.pop()()))
    expected = {f"k{n}": n for n in range(6)}

    def others() -> None:
        other = another(table)
        other.upsert(arrow([Row("k1", "rome", 3, 31), Row("new", "rome", 3, 32)]))
        other.delete(arrow([Row("k2", "rome", 4, 0)]))
        assert values(other) == expected | {"k1": 31, "new": 32}

    table.upsert(arrow([Row("k0", "rome", 2, 20), Row("k1", "rome", 2, 21), Row("k2", "rome", 2, 22)]))
    expected |= {"k0": 20, "k1": 21, "k2": 22}
    at_plan = dict(expected)
    expected.pop("k2")
    writes.append(others)
    table.compact()

    assert values(table) == expected | {"k1": 31, "new": 32}
    read_optimized = values(table, "read_optimized")
    assert {key: value for key, value in read_optimized.items() if key != "new"} == at_plan
    assert problems_on(table._access.storage) == []
    table.compact()
    assert values(table, "read_optimized") == values(table) == expected | {"k1": 31, "new": 32}


def test_a_compaction_that_is_planned_while_a_base_file_is_written_anew_takes_none_of_its_rows() -> None:
    """The row of `k1` comes back with a smaller ordering value, so that the write makes the next base file."""
    schedules: list[Callable[[], object]] = []
    table = with_logs(Meeting(lambda: schedules and schedules.pop()()))
    table.upsert(arrow([Row("k0", "rome", 2, 20)]))
    table.delete(arrow([Row("k1", "rome", 0, 0)]).drop_columns(["ts"]))
    schedules.append(lambda: another(table).schedule_compaction())

    table.upsert(arrow([Row("k1", "rome", 0, 31), Row("k0", "rome", 3, 30)]))

    expected = {f"k{n}": n for n in range(6)} | {"k0": 30, "k1": 31}
    assert values(table) == expected
    table.compact()
    assert values(table) == values(table, "read_optimized") == expected


def test_a_deleted_row_of_version_6_comes_back_when_the_pending_compaction_is_done() -> None:
    """It needs a new base file, and the logs of after the plan are named after the compaction: they would lie below."""
    table = with_logs(version=6)
    table.upsert(arrow([Row("k0", "rome", 2, 20)]))
    table.schedule_compaction()
    table.delete(arrow([Row("k1", "rome", 0, 0)]).drop_columns(["ts"]))

    with pytest.raises(Conflict, match=r"the pending compaction '.*' forbids; call compact\(\)"):
        table.upsert(arrow([Row("k1", "rome", 0, 31)]))

    table.compact()
    table.upsert(arrow([Row("k1", "rome", 0, 31)]))
    table.upsert(arrow([Row("k0", "rome", 3, 30)]))
    assert (values(table)["k0"], values(table)["k1"]) == (30, 31)


@pytest.mark.parametrize(
    "options,expected",
    [
        ({"hoodie.compact.inline": "true"}, []),
        ({"hoodie.compact.schedule.inline": "true"}, [("compaction", "REQUESTED")]),
    ],
    ids=["inline", "scheduled inline"],
)
def test_a_compaction_follows_the_write_that_makes_it_due(
    options: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    table = with_logs(options={**options, "hoodie.compact.inline.max.delta.commits": "3"})
    for turn in (2, 3, 4):
        assert (compactions(table), pending(table)) == (0, [])
        table.upsert(arrow([Row("k0", "rome", turn, turn)]))
        if turn == 3:
            assert (compactions(table), pending(table)) == (int(expected == []), expected)
            break
    assert values(table)["k0"] == 3
    assert values(table, "read_optimized")["k0"] == (3 if not expected else 0)


def test_log_compactions_follow_writes() -> None:
    table = with_logs(
        options={
            "hoodie.log.compaction.enable": "true",
            "hoodie.log.compaction.inline": "true",
            "hoodie.log.compaction.blocks.threshold": "3",
        }
    )
    for turn in range(2, 9):
        table.upsert(arrow([Row("k0", "rome", turn, turn), Row(f"k{turn % 6}", "rome", turn, turn)]))
        table.delete(arrow([Row("k5", "rome", turn, 0)]))
        assert values(table)["k0"] == turn
        assert "k5" not in values(table)
    storage = table._access.storage
    done = [f.path for f in storage.list(".hoodie/timeline") if f.path.endswith(".logcompaction.requested")]
    assert len(done) > 2
    assert problems_on(storage) == []
    before = values(table)
    table.compact()
    assert values(table, "read_optimized") == before == values(table)


def test_a_compaction_after_a_write_fails_no_write(caplog: pytest.LogCaptureFixture) -> None:
    due = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    failures: list[str] = []

    def fail_once_in_a_compaction() -> None:
        if not failures and ("compaction", "INFLIGHT") in pending(table):
            failures.append("now")
            fail()

    executor = Meeting(lambda: None)
    table = with_logs(executor)
    executor.happens = fail_once_in_a_compaction
    with caplog.at_level(logging.WARNING, "pyhudi"):
        result = table.upsert(arrow([Row("k0", "rome", 2, 20)]), options=due)
    assert result.completed is not None
    assert "compaction after it failed" in caplog.text
    assert pending(table) == [("compaction", "INFLIGHT")]

    table.upsert(arrow([Row("k1", "rome", 3, 31)]), options=due)

    assert pending(table) == []
    assert values(table, "read_optimized") == values(table)
    assert (values(table)["k0"], values(table)["k1"]) == (20, 31)


def test_a_schedule_that_nobody_asked_for_waits_for_the_pending_one(disk: MemoryStorage) -> None:
    first = handle(disk).schedule_compaction()
    job = asked_job(handle(disk, later_ms=1_000)._handle, CompactionKind.BASE, None, None)
    assert f"'{first.requested}' is pending" in schedule_compaction(job, is_asked=False).reason
