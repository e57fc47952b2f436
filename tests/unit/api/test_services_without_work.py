"""A service could count as due, round after round, though its plan would be empty, or say nothing of why it idles."""

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import pyhudi.services
from pyhudi import HudiTable
from pyhudi.api.service_calls import process
from pyhudi.cli.app import app
from pyhudi.format.timeline.action_files import encode_index_plan
from pyhudi.format.timeline.records import IndexPartitionInfo, IndexPlan
from pyhudi.services import ServiceReport
from pyhudi.storage.local import LocalStorage
from pyhudi.testing.crashing import Crash, CrashingStorage

ALL_ON: dict[str, object] = {
    "hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": 2,
    "hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": 2,
}  # fmt: skip
QUIET = {"hoodie.table.services.enabled": "false"}


def a_table_without_logs(path: Path, *, version: int = 8) -> HudiTable:
    """A merge-on-read table of six writes of new keys, each in a file group of its own."""
    properties = {"hoodie.parquet.small.file.limit": "0"}
    table = HudiTable.create(
        path, name="t", record_key="id", table_type="MERGE_ON_READ", table_version=version, properties=properties
    )
    for key in range(6):
        table.insert(pa.table({"id": [f"k{key}"], "v": [key]}), options=QUIET)
    return table


def found(report: ServiceReport) -> dict[str, tuple[str, str]]:
    (services,) = report.tables.values()
    return {one.service.value: (one.state.value, one.reason) for one in services}


class Rounds:
    """Ends a run after so many rounds."""

    def __init__(self, count: int) -> None:
        self.left = count

    def is_set(self) -> bool:
        return self.left <= 0

    def wait(self, timeout: float) -> bool:
        self.left -= 1
        return self.is_set()


@pytest.mark.parametrize("version", [6, 8, 9])
def test_compactions_without_logs_are_not_due(tmp_path: Path, version: int) -> None:
    table = a_table_without_logs(tmp_path / "t", version=version)
    looked = found(pyhudi.services.run(table, options=ALL_ON, dry_run=True))
    assert looked["compaction"] == ("idle", "no slice has logs that qualify")
    assert looked["log_compaction"] == ("idle", "no slice has logs that qualify")


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_is_due_does_something_and_the_rest_nothing(tmp_path: Path, version: int, table_type: str) -> None:
    few: dict[str, object] = {
        **ALL_ON, "hoodie.clean.commits.retained": 1, "hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3,
        "hoodie.compact.inline.max.delta.commits": 2,
    }  # fmt: skip
    table = HudiTable.create(
        tmp_path / "t", name="t", record_key="id", partition_by="city", table_type=table_type, table_version=version,
        properties={"hoodie.parquet.small.file.limit": "0"},
    )  # fmt: skip
    done: set[str] = set()
    for turn in range(9):
        keys = ["a"] if turn % 3 else ["a", f"k{turn}"]
        table.upsert(pa.table({"id": keys, "city": ["oslo"] * len(keys), "v": [turn] * len(keys)}), options=QUIET)
        for service in ("compaction", "log_compaction", "clustering", "clean", "archive"):
            due, why = found(pyhudi.services.run(table, services=[service], options=few, dry_run=True))[service]
            before = [(instant.requested, instant.state) for instant in table.timeline()]
            state, reason = found(pyhudi.services.run(table, services=[service], options=few, once=True))[service]
            assert state == ("done" if due == "due" else "idle"), (turn, service, why, reason)
            assert (before != [(i.requested, i.state) for i in table.timeline()]) == (due == "due"), (turn, service)
            done |= {service} if due == "due" else set()
    of_logs = set() if table_type == "COPY_ON_WRITE" else {"compaction"}
    assert done >= {"clustering", "clean", "archive"} | of_logs


def test_a_clustering_without_candidates_is_not_due(tmp_path: Path) -> None:
    table = a_table_without_logs(tmp_path / "t")
    options = ALL_ON | {"hoodie.clustering.plan.strategy.small.file.limit": 1}
    looked = found(pyhudi.services.run(table, options=options, dry_run=True))
    assert looked["clustering"] == ("idle", "no file slice qualifies in 1 partitions")


def test_changes_are_told_and_rounds_without_any_are_not(tmp_path: Path) -> None:
    table = a_table_without_logs(tmp_path / "t")
    changes: list[ServiceReport] = []
    rounds: list[ServiceReport] = []

    report = pyhudi.services.run(
        table, options=ALL_ON, services=["compaction", "log_compaction", "clean"], stop=Rounds(4),
        on_change=changes.append, on_round=rounds.append,
    )  # fmt: skip

    assert [one.rounds for one in rounds] == [1, 2, 3, 4]
    assert report == rounds[-1]
    assert [found(one) for one in changes[-1:]] == [found(rounds[0])]
    assert len(changes) == 3, "each service was looked at for the first time, and nothing has changed since"


def test_a_state_lasts_since_it_began(tmp_path: Path) -> None:
    table = a_table_without_logs(tmp_path / "t")
    rounds: list[ServiceReport] = []
    pyhudi.services.run(table, services=["compaction"], stop=Rounds(3), on_round=rounds.append)
    assert len({one.since_ms for report in rounds for one in report.tables[str(tmp_path / "t")]}) == 1


def test_plans_of_indexes_that_nobody_here_builds_are_not_due(tmp_path: Path) -> None:
    table = a_table_without_logs(tmp_path / "t")
    wrote = table.timeline()[-1].requested
    plan = IndexPlan(1, (IndexPartitionInfo(1, "vector_index_x", wrote, {}),))
    path = tmp_path / "t" / ".hoodie" / "timeline" / f"{int(wrote) + 1}.indexing.requested"
    path.write_bytes(encode_index_plan(plan))

    state, reason = found(pyhudi.services.run(table, dry_run=True))["indexing"]
    assert (state, reason) == (
        "idle", "vector_index_x: this release does not build indexes of this kind; the plan stays"
    )  # fmt: skip

    path.with_name(path.name.replace("requested", "inflight")).write_bytes(b"")
    state, reason = found(pyhudi.services.run(table, dry_run=True))["indexing"]
    assert state == "idle"
    assert reason.endswith("was begun by another writer, which gives no sign of life")


@pytest.mark.parametrize("policy,state", [("EAGER", "due"), ("LAZY", "idle"), ("NEVER", "idle")])
def test_a_dead_write_is_in_the_way_unless_the_plan_undoes_it(tmp_path: Path, policy: str, state: str) -> None:
    """On version 6 no compaction is planned while a write is pending."""
    path = tmp_path / "t"
    table = a_table_without_logs(path, version=6)
    for value in range(6):
        table.upsert(pa.table({"id": ["k0"], "v": [value]}), options=QUIET)
    dying = HudiTable.open(path, storage=CrashingStorage(LocalStorage(str(path)), survives=4, lands=True))
    with pytest.raises(Crash):
        dying.upsert(pa.table({"id": ["k0"], "v": [99]}), options=QUIET)

    options = {"hoodie.clean.failed.writes.policy": policy}
    looked = found(pyhudi.services.run(table, services=["compaction"], options=options, dry_run=True))["compaction"]
    assert looked[0] == state, looked
    ran = found(pyhudi.services.run(table, services=["compaction"], options=options, once=True))["compaction"]
    assert (ran[0] == "done") == (state == "due"), ran


def test_a_clustering_that_is_given_up_is_told(tmp_path: Path) -> None:
    table = a_table_without_logs(tmp_path / "t")
    planned = table.schedule_clustering().requested
    allow = {**QUIET, "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
    table.upsert(pa.table({"id": ["k0"], "v": [9]}), options=allow)
    looked = found(pyhudi.services.run(table, once=True))["clustering"]
    assert looked == ("idle", f"{planned} was given up, as its file groups have changed; no clustering is pending")


def test_the_command_says_why_what_it_began_found_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer may be faster than a round."""
    table = a_table_without_logs(tmp_path / "t")
    table.upsert(pa.table({"id": ["k0"], "v": [7]}), options=QUIET)
    monkeypatch.setattr(process, "run_compactions", lambda *_, **__: table.compact() and table.compact())
    shown = CliRunner().invoke(
        app, ["service", str(tmp_path / "t"), "--once", "--only", "compaction"], env={"COLUMNS": "200"}
    )
    assert shown.exit_code == 0
    assert "compaction found nothing to do: no slice has logs that qualify" in shown.output


def test_what_cannot_be_planned_is_a_failure_and_not_idle(tmp_path: Path) -> None:
    """An idle service is looked at in each round without a pause, and nobody is told."""
    table = a_table_without_logs(tmp_path / "t")
    odd = {**ALL_ON, "hoodie.clustering.plan.strategy.sort.columns": "nosuch"}

    state, reason = found(pyhudi.services.run(table, options=odd, dry_run=True))["clustering"]
    assert (state, "nosuch" in reason) == ("due", True)
    assert reason.startswith("cannot be planned: ")
    state, reason = found(pyhudi.services.run(table, options=odd, once=True))["clustering"]
    assert (state, "nosuch" in reason) == ("failed", True)
