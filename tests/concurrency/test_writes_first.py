"""`PreferWriterConflictResolutionStrategy`: a write could still be stopped by a clustering that is only planned, or go
past a plan that would bring back or lose rows even though nobody gives way.
"""

from collections.abc import Callable

import pytest

from pyhudi import Conflict, HudiTable
from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.format.names import BaseFileName
from pyhudi.format.timeline.action_files import encode_compaction_plan, encode_requested_replace
from pyhudi.format.timeline.records import (
    ClusteringGroup,
    ClusteringPlan,
    CompactionOperation,
    CompactionPlan,
    RequestedReplaceMetadata,
    SliceInfo,
)
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.view.file_system_view import FileSlice
from tests.concurrency.test_second_writer import watched
from tests.support.model import Row, StepClock, arrow, read_rows, seeded_uuids

PREFER = {
    "hoodie.write.lock.conflict.resolution.strategy":
        "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy"
}  # fmt: skip
PLANNED = "20300101000000000"
UUIDS = seeded_uuids(3)


class Bed:
    """A table of two rows in Oslo, of one file group, and its clustering or compaction that somebody plans."""

    def __init__(self, *, version: int = 9, table_type: str = "COPY_ON_WRITE", bucket: bool = False) -> None:
        self.storage, self.clock = MemoryStorage(), StepClock(1_893_456_000_000)  # 2030-01-01
        self.version = version
        properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"} if bucket else {}
        HudiTable.create(
            "", name="t", record_key="id", partition_by="city", ordering="ts", table_type=table_type,
            table_version=version, storage=self.storage, clock=self.clock, random=UUIDS, properties=properties,
        ).upsert(arrow([Row("a", "oslo", 1, 1), Row("b", "oslo", 1, 1)]))  # fmt: skip

    def open(self, options: dict[str, str], before_change: Callable[[str], None] | None = None) -> HudiTable:
        storage = self.storage if before_change is None else watched(self.storage, before_change)
        return HudiTable.open(
            "", storage=storage, clock=self.clock, random=UUIDS, options=options, executor=SerialExecutor()
        )

    @property
    def piece(self) -> FileSlice:
        (piece,) = self.open({})._access.snapshot().slices("oslo")
        return piece

    def plan_clustering(self) -> None:
        """Version 8 named the action anew."""
        slices = (SliceInfo(None, (), self.piece.file_id, "oslo"),)
        plan = RequestedReplaceMetadata("CLUSTER", ClusteringPlan((ClusteringGroup(slices),)), {}, version=1)
        name = "timeline/{}.clustering" if self.version >= 8 else "{}.replacecommit"
        self.storage.put(f".hoodie/{name.format(PLANNED)}.requested", encode_requested_replace(plan))

    def plan_compaction(self) -> None:
        piece = self.piece
        plan = CompactionPlan((CompactionOperation(piece.base_instant, (), None, piece.file_id, "oslo"),))
        self.storage.put(f".hoodie/timeline/{PLANNED}.compaction.requested", encode_compaction_plan(plan))

    def values(self) -> dict[str, int]:
        return {key[1]: of.row.v for key, of in read_rows(self.open({}).scan().to_arrow()).items()}

    def pending(self) -> list[str]:
        return [i.requested for i in self.open({}).timeline() if not i.is_completed]


CHANGE = [Row("a", "oslo", 2, 2)]
WRITES: dict[str, tuple[Callable[[HudiTable], object], dict[str, int]]] = {
    "upsert": (lambda table: table.upsert(arrow(CHANGE)), {"a": 2, "b": 1}),
    "delete": (lambda table: table.delete(arrow(CHANGE)), {"b": 1}),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(
    "bed",
    [{"version": 9}, {"version": 8}, {"version": 6}, {"table_type": "MERGE_ON_READ"}, {"bucket": True}],
    ids=["version 9", "version 8", "version 6", "merge on read", "bucket"],
)
def test_a_write_goes_past_the_plan_of_a_clustering(bed: dict[str, object], name: str) -> None:
    made = Bed(**bed)  # type: ignore[arg-type]
    made.plan_clustering()
    write, after = WRITES[name]

    with pytest.raises(Conflict, match=f"is being clustered by '{PLANNED}'"):
        write(made.open({}))
    assert made.values() == {"a": 1, "b": 1}

    write(made.open(PREFER))
    assert made.values() == after
    assert made.pending() == [PLANNED], "the clustering itself finds that it must give way"


@pytest.mark.parametrize("options", [{}, PREFER], ids=["without", "with"])
def test_a_clustering_that_is_planned_while_a_write_runs(options: dict[str, str]) -> None:
    made, planned = Bed(), list[str]()

    def plan(what: str) -> None:
        if "oslo" in what and not planned:
            planned.append(what)
            made.plan_clustering()

    table = made.open(options, plan)
    if options:
        table.upsert(arrow(CHANGE))
        assert made.values() == {"a": 2, "b": 1}
    else:
        with pytest.raises(Conflict, match=f"clustering '{PLANNED}', which was planned while this write"):
            table.upsert(arrow(CHANGE))
    assert planned
    assert PLANNED in made.pending()


def test_new_rows_go_to_no_file_that_a_clustering_is_about_to_take() -> None:
    made = Bed()
    made.plan_clustering()
    taken = made.piece.file_id
    result = made.open(PREFER).insert(arrow([Row("new", "oslo", 1, 7)]))
    named = (BaseFileName.parse(file.path.rpartition("/")[2]) for file in made.storage.list("oslo"))
    new = [name.file_id for name in named if name is not None and name.requested == result.requested]
    assert len(new) == 1
    assert new != [taken]


def test_a_replacement_goes_past_no_plan_that_is_there() -> None:
    """As Apache Hudi refuses to delete partitions with plans of services, whatever the strategy."""
    made = Bed()
    made.plan_clustering()
    with pytest.raises(Conflict, match=f"clustering '{PLANNED}' is pending"):
        made.open(PREFER).delete_partitions(["oslo"])


def test_a_compaction_that_is_planned_meanwhile_stops_a_replacement_all_the_same() -> None:
    """It brings back the rows that are replaced, and looks at nothing that writes have done."""
    made, planned = Bed(table_type="MERGE_ON_READ"), list[str]()

    def plan(what: str) -> None:
        if "inflight" in what and ".hoodie/metadata" not in what and not planned:
            planned.append(what)
            made.plan_compaction()

    with pytest.raises(Conflict, match=f"compaction '{PLANNED}', which was planned while this write"):
        made.open(PREFER, plan).delete_partitions(["oslo"])
    assert planned
    assert made.values() == {"a": 1, "b": 1}
