"""A service process could do what nobody asked for, leave what is due, say the wrong reason, or end with an error."""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi.services
from pyhudi import HudiTable, Invalid, NotFound
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.timeline.action_files import encode_index_plan
from pyhudi.format.timeline.records import IndexPartitionInfo, IndexPlan
from pyhudi.metrics import subscribe
from pyhudi.metrics.events import Backlog, Event, ServiceDone
from pyhudi.services import ServiceReport
from pyhudi.storage.local import LocalStorage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.testing.crashing import Crash, CrashingStorage
from pyhudi.txn.locks.guard import MemoryGuard
from pyhudi.txn.locks.hold import Hold
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, seeded_uuids
from tests.support.odd_errors import ODD_ERRORS
from tests.support.versions import EVERY_VERSION

KEEPS_FEW: dict[str, object] = {
    "hoodie.clean.commits.retained": 1, "hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3,
    "hoodie.compact.inline.max.delta.commits": 2,
}  # fmt: skip
QUIET = {"hoodie.table.services.enabled": "false"}


def a_table(path: Path, *, table_type: str = "MERGE_ON_READ", version: int = 8, **properties: object) -> HudiTable:
    """A table of six writes after which no service ran."""
    table = HudiTable.create(
        path, name="t", record_key="id", partition_by="city", ordering="ts", table_type=table_type,
        table_version=version, properties={"hoodie.parquet.small.file.limit": "0", **properties},
    )  # fmt: skip
    for turn in range(6):
        table.upsert(arrow([Row(f"k{n}", ("oslo", "rome")[n % 2], turn, turn) for n in range(4)]), options=QUIET)
    return table


def states(report: ServiceReport) -> dict[str, str]:
    (found,) = report.tables.values()
    return {one.service.value: one.state.value for one in found}


def reasons(report: ServiceReport) -> dict[str, str]:
    (found,) = report.tables.values()
    return {one.service.value: one.reason for one in found}


def values(table: HudiTable) -> dict[str, int]:
    rows = table.scan(["id", "v"]).to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["v"] for row in rows}


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_one_round_does_what_is_due(tmp_path: Path, version: int) -> None:
    table = a_table(tmp_path / "t", version=version)
    before = values(table)

    first = pyhudi.services.run(table, options=KEEPS_FEW, once=True)
    again = pyhudi.services.run(table, options=KEEPS_FEW, once=True)

    assert not first.has_failed, reasons(first)
    assert states(first)["compaction"] == "done"
    assert states(again)["compaction"] == "idle"
    table.upsert(arrow([Row("k0", "oslo", 9, 0)]), options=QUIET)
    table.upsert(arrow([Row("k0", "oslo", 9, 0)]), options=QUIET)
    last = pyhudi.services.run(str(tmp_path / "t"), options=KEEPS_FEW, once=True)
    assert states(last) | {"clean": "done", "archive": "done", "compaction": "done"} == states(last), reasons(last)
    assert values(table) == before | {"k0": 0}
    assert problems_on(LocalStorage(str(tmp_path / "t"))) == []


def test_a_dry_run_changes_nothing_and_gives_every_reason(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    files = sorted(str(file) for file in tmp_path.rglob("*"))

    found = pyhudi.services.run(table, options=KEEPS_FEW, dry_run=True)

    assert sorted(str(file) for file in tmp_path.rglob("*")) == files
    assert states(found) == {
        "failed_writes": "idle", "compaction": "due", "log_compaction": "idle", "clustering": "idle",
        "indexing": "idle", "expiry": "idle", "clean": "idle", "archive": "idle",
    }  # fmt: skip
    said = reasons(found)
    assert said["log_compaction"] == "hoodie.log.compaction.enable is off, and the service was not asked for by name"
    assert said["expiry"] == "no partition expires: hoodie.partition.ttl.strategy.days.retain is not set"
    assert said["archive"] == "everything is held by " + said["archive"].partition("everything is held by ")[2]
    assert json.loads(json.dumps(found.document()))["tables"][str(tmp_path / "t")]["compaction"]["state"] == "due"


def test_services_that_options_have_off_run_when_named_only(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", table_type="COPY_ON_WRITE")
    off = {**KEEPS_FEW, "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}

    said = reasons(pyhudi.services.run(table, options=off, once=True))
    assert said["clean"] == "hoodie.clean.automatic is off, and the service was not asked for by name"
    assert said["clustering"] == "hoodie.clustering.inline is off, and the service was not asked for by name"
    assert said["compaction"] == said["log_compaction"] == "a copy-on-write table has no logs"

    assert states(pyhudi.services.run(table, services=["clean"], options=off, once=True)) == {"clean": "done"}
    sort = {"hoodie.clustering.plan.strategy.sort.columns": "v"}
    named = pyhudi.services.run(table, services=["clustering"], options={**off, **sort}, once=True)
    assert states(named) == {"clustering": "done"}
    assert [i.action for i in table.timeline() if i.action == "clean"] == ["clean"]


def test_what_is_pending_is_carried_out_although_it_is_off(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", table_type="COPY_ON_WRITE")
    planned = table.schedule_clustering(options={"hoodie.clustering.plan.strategy.sort.columns": "v"}).requested
    table.schedule_index("column_stats")

    report = pyhudi.services.run(table, once=True)

    (found,) = report.tables.values()
    assert {one.service.value: one.requested for one in found}["clustering"] == planned
    assert states(report) | {"clustering": "done", "indexing": "done"} == states(report), reasons(report)
    assert all(instant.is_completed for instant in table.timeline())
    assert pyhudi.services.run(table, once=True, services=["clustering"]).has_failed is False


def test_a_write_counts_as_dead_for_a_round_when_it_does_for_a_writer() -> None:
    """Two beats may be missed, so that a writer is alive until the third one is due."""
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    guard = MemoryGuard(storage.location.uri)

    class Unknowing:
        """A guard that does not know which actions run."""

        def acquire(self, purpose: str, now: str) -> AbstractContextManager[Hold]:
            return guard.acquire(purpose, now)

    Handles(storage, clock, seeded_uuids(1), SerialExecutor()).create().upsert(arrow([Row("k0", "oslo", 1, 1)]))

    def opened(through: Storage) -> HudiTable:
        return HudiTable.open("", storage=through, clock=clock, lock=Unknowing(), executor=SerialExecutor())

    with pytest.raises(Crash):
        opened(CrashingStorage(storage, survives=4, lands=True)).upsert(arrow([Row("k0", "oslo", 99, 99)]))
    clock.ms += 150_000
    report = pyhudi.services.run(opened(storage), services=["failed_writes"], dry_run=True)
    assert states(report) == {"failed_writes": "idle"}
    clock.ms += 60_000
    report = pyhudi.services.run(opened(storage), services=["failed_writes"], dry_run=True)
    assert states(report) == {"failed_writes": "due"}


def test_a_write_that_died_is_rolled_back(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = a_table(path)
    before = values(table)
    storage = CrashingStorage(LocalStorage(str(path)), survives=4, lands=True)
    with pytest.raises(Crash):
        HudiTable.open(path, storage=storage).upsert(arrow([Row("k0", "oslo", 99, 99)]))
    assert not all(instant.is_completed for instant in table.timeline())

    found = pyhudi.services.run(table, services=["failed_writes"], dry_run=True)
    assert states(found) == {"failed_writes": "due"}
    never = {"hoodie.clean.failed.writes.policy": "NEVER"}
    assert (
        "is NEVER"
        in reasons(pyhudi.services.run(table, services=["failed_writes"], options=never, once=True))["failed_writes"]
    )
    done = pyhudi.services.run(table, services=["failed_writes"], once=True)

    assert states(done) == {"failed_writes": "done"}
    assert all(instant.is_completed for instant in table.timeline())
    assert values(table) == before


def test_partitions_expire(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    days = {"hoodie.partition.ttl.strategy.days.retain": 1}
    assert reasons(pyhudi.services.run(table, options=days, once=True))["expiry"].startswith("no partition is older")


def test_an_empty_table_has_nothing_due(tmp_path: Path) -> None:
    table = HudiTable.create(tmp_path / "t", name="t", record_key="id", table_type="MERGE_ON_READ")
    report = pyhudi.services.run(table, once=True, services=None)
    assert set(states(report).values()) == {"idle"}
    table.upsert(pa.table({"id": ["a"]}))


def test_bad_arguments_are_refused_before_the_first_round(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    with pytest.raises(Invalid, match=r"services: expected some of failed_writes, .*; found 'vacuum'"):
        pyhudi.services.run(table, services=["vacuum"])
    with pytest.raises(Invalid, match=r"services='clean': expected a sequence of names, such as \['clean'\]"):
        pyhudi.services.run(table, services="clean")
    for interval_s in (0, float("nan"), float("inf"), "5", True, 1e10, 10**400):
        with pytest.raises(Invalid, match=r"interval_s=.*: expected a number of seconds above 0"):
            pyhudi.services.run(table, interval_s=interval_s, once=True)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match=r"on_change=5: expected a function, found int"):
        pyhudi.services.run(table, on_change=5, once=True)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match=r"stop=5: expected a threading\.Event, or what acts like one, found int"):
        pyhudi.services.run(table, stop=5, once=True)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match=r"hoodie\.clean\.commits\.retained"):
        pyhudi.services.run(table, options={"hoodie.clean.commits.retained": "many"}, once=True)
    with pytest.raises(NotFound):
        pyhudi.services.run([table, tmp_path / "none"], once=True)
    nothing: list[Any] = [[], None]
    for tables in nothing:
        with pytest.raises(Invalid, match="expected a table or a path, or several of them"):
            pyhudi.services.run(tables, once=True)


def test_it_runs_until_it_is_stopped_and_tells_of_each_change(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")

    class Stop:
        """Lets two rounds pass; a write comes between them."""

        waits = 0

        def is_set(self) -> bool:
            return self.waits > 1

        def wait(self, timeout: float) -> bool:
            assert timeout == 3
            self.waits += 1
            for ts in (10, 11):
                table.upsert(arrow([Row("k0", "oslo", ts, ts)]), options=QUIET)
            return self.is_set()

    told: list[ServiceReport] = []
    report = pyhudi.services.run(
        table, options=KEEPS_FEW, services=["compaction"], interval_s=3, stop=Stop(), on_change=told.append
    )
    (found,) = next(iter(report.tables.values()))
    assert (report.rounds, found.runs) == (2, 2)
    assert [states(one)["compaction"] for one in told] == ["running", "done", "running", "done"]


def test_an_error_of_on_change_ends_nothing_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = a_table(tmp_path / "t")
    heard: list[ServiceReport] = []

    def fail(report: ServiceReport) -> None:
        heard.append(report)
        raise OSError("disk full")

    report = pyhudi.services.run(table, options=KEEPS_FEW, once=True, on_change=fail)

    assert states(report)["compaction"] == "done"
    assert len(heard) > 1
    assert [one.getMessage() for one in caplog.records] == [
        "on_change failed, and is tried again the next time: OSError: disk full"
    ]


@pytest.mark.parametrize("error", ODD_ERRORS.values(), ids=ODD_ERRORS)
def test_an_odd_error_of_on_change_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: type[Exception]
) -> None:
    def fail(_: object) -> None:
        raise error

    pyhudi.services.run(a_table(tmp_path / "t"), options=KEEPS_FEW, once=True, on_change=fail)
    (line,) = [line for line in caplog.messages if "the next time" in line]
    assert error.__qualname__ in line


def test_listeners_hear_of_the_backlog_and_of_what_is_done(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    planned = table.schedule_compaction().requested
    heard: list[Event] = []
    end = subscribe(heard.append)
    try:
        pyhudi.services.run(table, once=True, services=["compaction"])
    finally:
        end()

    backlog = next(one for one in heard if isinstance(one, Backlog))
    assert backlog.pending["compaction"].earliest == planned
    assert [(one.service, one.requested) for one in heard if isinstance(one, ServiceDone)] == [("compaction", planned)]


def test_a_log_compaction_is_told_under_the_name_of_its_action(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t", version=9)
    heard: list[Event] = []
    end = subscribe(heard.append)
    try:
        report = pyhudi.services.run(
            table, services=["log_compaction"], options={"hoodie.log.compaction.blocks.threshold": 2}, once=True
        )
    finally:
        end()
    assert states(report) == {"log_compaction": "done"}, reasons(report)
    assert [one.service for one in heard if isinstance(one, ServiceDone)] == ["logcompaction"]


def test_a_plan_that_stays_is_not_told_as_done(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    wrote = table.timeline()[-1].requested
    plan = IndexPlan(1, (IndexPartitionInfo(1, "vector_index_x", wrote, {}),))
    path = tmp_path / ".hoodie" / "timeline" / f"{int(wrote) + 1}.indexing.requested"
    path.write_bytes(encode_index_plan(plan))

    report = pyhudi.services.run(table, once=True, services=["indexing"])
    assert states(report) == {"indexing": "idle"}
    assert "this release does not build indexes of this kind" in reasons(report)["indexing"]
