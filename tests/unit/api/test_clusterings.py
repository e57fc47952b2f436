"""A clustering could come when none is due, take partitions that nobody asked for, lose rows where they do not fit into
memory, or bring down a write that succeeded."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from pyhudi import CorruptFile, HudiTable, Invalid, NotFound, Unsupported
from pyhudi.engine.local.executors import LocalExecutor, SerialExecutor
from pyhudi.format.timeline.action_files import encode_requested_replace
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import RequestedReplaceMetadata, ServiceStrategy
from pyhudi.services.clustering import inputs
from pyhudi.services.clustering.inputs import read_plan
from pyhudi.services.clustering.trigger import pending_clusterings
from pyhudi.storage.memory import MemoryStorage
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.base_files.opening import open_base_file
from pyhudi.write.clustering import groups as handle
from pyhudi.write.clustering.target import ClusteringTarget, GroupTask
from tests.support.model import Handles, Row, StepClock, arrow, problems_on, read_rows, seeded_uuids
from tests.support.versions import EVERY_VERSION

PLAN = "hoodie.clustering.plan.strategy"
BY_VALUE = {f"{PLAN}.sort.columns": "v"}
NO_FILLING = {"hoodie.parquet.small.file.limit": "0"}
VERSIONS = pytest.mark.parametrize("version", EVERY_VERSION)


def a_table(
    version: int = 8, *, table_type: str = "COPY_ON_WRITE", **properties: object
) -> tuple[HudiTable, MemoryStorage]:
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    handles = Handles(storage, clock, seeded_uuids(1), SerialExecutor())
    table = handles.create(table_version=version, table_type=table_type, properties={**NO_FILLING, **properties})
    return table, storage


def rows(start: int, stop: int, *, v: int = 7) -> pa.Table:
    return arrow([Row(f"k{n:03}", ("oslo", "rome")[n % 2], 1, n * v % 31) for n in range(start, stop)])


def clusterings(table: HudiTable) -> list[str]:
    return [i.requested for i in table.timeline() if i.action == "replacecommit" and i.is_completed]


def plan_in(table: HudiTable) -> tuple[str, RequestedReplaceMetadata]:
    """The path of the one pending plan, and what it holds."""
    snapshot = table._access.snapshot()
    (planned,) = pending_clusterings(snapshot)
    path = snapshot.timeline.layout.path(Instant(planned.requested, planned.action, "REQUESTED"))
    return path, RequestedReplaceMetadata("CLUSTER", read_plan(snapshot, planned), {}, version=1)


@VERSIONS
def test_a_clustering_follows_writes_once_so_many_have_come(version: int) -> None:
    table, storage = a_table(version)
    options = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3"}
    done = []
    for turn in range(7):
        table.insert(rows(10 * turn, 10 * turn + 10), options=options)
        done.append(len(clusterings(table)))
    assert done == [0, 0, 1, 1, 1, 2, 2]
    table.insert_overwrite(rows(0, 10))  # names file groups as a clustering does, and is none
    table.insert(rows(100, 110), options=options)
    assert len(clusterings(table)) == 4  # the overwrite and a clustering
    assert problems_on(storage) == []


@VERSIONS
def test_a_plan_follows_writes_once_so_many_have_come_and_none_is_pending(version: int) -> None:
    table, storage = a_table(version)
    options = {"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.inline.max.commits": "2"}
    planned = []
    for turn in range(5):
        table.insert(rows(10 * turn, 10 * turn + 10), options=options)
        planned.append(len(pending_clusterings(table._access.snapshot())))
    assert planned == [0, 1, 1, 1, 1]
    table.insert(rows(90, 95), options={**options, "hoodie.clustering.inline": "true"})
    assert len(clusterings(table)) == 2  # what was pending, and what was due since
    assert problems_on(storage) == []


def test_services_that_are_switched_off_stay_off() -> None:
    table, _ = a_table()
    options = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    table.insert(rows(0, 10), options={**options, "hoodie.table.services.enabled": "false"})
    table.insert(rows(10, 20))
    assert clusterings(table) == []


def test_a_clustering_that_fails_after_a_write_fails_no_write(caplog: pytest.LogCaptureFixture) -> None:
    table, storage = a_table()
    options = {
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "1",
        f"{PLAN}.sort.columns": "x",
    }
    with caplog.at_level(logging.WARNING, "pyhudi"):
        assert table.insert(rows(0, 10), options=options).inserted == 10
    assert "the clustering after it failed" in caplog.text
    assert "there is no column 'x'" in caplog.text
    assert problems_on(storage) == []


def test_only_the_partitions_that_are_asked_for_are_planned() -> None:
    table, _ = a_table()
    for turn in range(2):
        table.insert(rows(10 * turn, 10 * turn + 10))
    result = table.cluster(partitions=["rome"])
    assert (result.file_groups, result.files, result.rows) == (2, 1, 10)
    assert table.cluster(partitions=["rome"]).reason == "no file slice qualifies in 1 partitions"
    assert table.cluster(options={f"{PLAN}.partition.selected": "rome"}).requested is None
    with pytest.raises(NotFound, match="'rom'"):
        table.cluster(partitions=["rom"])
    with pytest.raises(Invalid, match="a sequence of paths"):
        table.cluster(partitions="rome")
    assert table.cluster().file_groups == 2


def test_nothing_to_do_is_told() -> None:
    table, _ = a_table()
    assert table.run_clusterings().reason == "no clustering is pending"
    assert table.cluster().reason == "no file slice qualifies in 0 partitions"
    table.insert(rows(0, 4))
    table.schedule_clustering(options=BY_VALUE)
    assert table.schedule_clustering(options=BY_VALUE).reason == (
        "no file slice qualifies: 2 file groups are in pending services already"
    )


def hold(monkeypatch: pytest.MonkeyPatch, size_bytes: int) -> None:
    """Let tasks hold so many bytes of rows."""
    monkeypatch.setattr(inputs, "ClusteringTarget", partial(ClusteringTarget, held_bytes_max=size_bytes))


@pytest.mark.parametrize("held_bytes_max", [1 << 30, 6_000])
@pytest.mark.parametrize("curve", ["linear", "hilbert"])
def test_rows_that_do_not_fit_into_memory_are_sorted_in_shares(
    monkeypatch: pytest.MonkeyPatch, held_bytes_max: int, curve: str
) -> None:
    table, storage = a_table(table_type="MERGE_ON_READ")
    for turn in range(2):
        table.bulk_insert(rows(50 * turn, 50 * turn + 50), options={"hoodie.parquet.max.file.size": "50000"})
    table.upsert(arrow([Row(f"k{n:03}", ("oslo", "rome")[n % 2], 2, -n) for n in range(0, 100, 9)]))
    table.delete(rows(5, 8))
    before = read_rows(table.scan().to_arrow())
    hold(monkeypatch, held_bytes_max)

    result = table.cluster(
        options={**BY_VALUE, "hoodie.layout.optimize.strategy": curve, f"{PLAN}.target.file.max.bytes": "6000"}
    )

    assert result.rows == len(before) == 97
    assert read_rows(table.scan().to_arrow()) == before
    assert problems_on(storage) == []
    for partition in ("oslo", "rome"):
        files = sorted(f.path for f in storage.list(partition) if f"_{result.requested}" in f.path)
        counts = [open_base_file(storage, path).row_count for path in files]
        assert len(counts) > 1
        assert max(counts) - min(counts) <= len(counts)
        if curve == "linear":
            values = [v for path in files for v in open_base_file(storage, path).read(["v"]).column("v").to_pylist()]
            assert values == sorted(values)


def test_a_task_reads_the_slices_once_for_each_share(monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = a_table()
    table.bulk_insert(rows(0, 100))
    reads: list[tuple[str, ...]] = []
    stored = handle.rows_of_slices

    def counted(
        store: Storage, target: ClusteringTarget, task: GroupTask, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        reads.append(tuple(columns))
        return stored(store, target, task, columns)

    monkeypatch.setattr(handle, "rows_of_slices", counted)
    table.cluster(options=BY_VALUE, partitions=["oslo"])
    assert len(reads) == 1
    hold(monkeypatch, 1_000)
    reads.clear()
    table.cluster(options=BY_VALUE, partitions=["rome"])
    assert reads[0] == ("v",)
    assert len(reads) > 3


def test_large_files_are_split_and_rows_keep_their_order_without_a_sort() -> None:
    table, storage = a_table(8, **{"hoodie.parquet.bloom.filter.enabled": "false"})
    long = arrow([Row(f"k{n:04}", "oslo", 1, n % 13, note="é" * (n % 50)) for n in range(20_000)])
    table.bulk_insert(long, options={"hoodie.parquet.max.file.size": "100000000"})
    size = next(f.size_bytes for f in storage.list("oslo") if f.path.endswith(".parquet"))
    before = read_rows(table.scan().to_arrow())

    result = table.cluster(
        options={f"{PLAN}.target.file.max.bytes": str(size // 3), "hoodie.parquet.block.size": "10000"}
    )

    assert result.file_groups == 1
    assert 3 <= result.files <= 5
    assert read_rows(table.scan().to_arrow()) == before
    assert problems_on(storage) == []


def test_a_group_whose_rows_are_all_deleted_becomes_no_file() -> None:
    table, storage = a_table(table_type="MERGE_ON_READ")
    table.bulk_insert(rows(0, 10))
    table.delete(arrow([Row(f"k{n:03}", "oslo", 2, 0) for n in range(0, 10, 2)]))
    result = table.cluster(partitions=["oslo"])
    assert (result.file_groups, result.files, result.rows) == (1, 0, 0)
    assert sorted(table.scan(["city"]).to_arrow().column("city").unique().to_pylist()) == ["rome"]
    assert table.insert(rows(0, 10)).inserted == 10
    assert problems_on(storage) == []


@pytest.mark.parametrize("executor", [SerialExecutor(), LocalExecutor(2)])
def test_indexes_stay_true(executor: SerialExecutor | LocalExecutor) -> None:
    clock = StepClock()
    storage = MemoryStorage(clock_ms=lambda: clock.ms)
    table = Handles(storage, clock, seeded_uuids(1), executor).create(table_version=9, properties=NO_FILLING)
    for turn in range(2):
        table.insert(rows(10 * turn, 10 * turn + 10))
    for kind in ("column_stats", "partition_stats", "bloom_filters", "record_index"):
        table.build_index(kind)
    table.build_index("secondary_index", columns="v")
    table.build_index("expr_index", columns="note", expression="upper(note)")
    assert table.cluster(options=BY_VALUE).files == 2
    assert table.metadata.validate().differences == ()
    assert table.lookup(["k003"]).column("id").to_pylist() == ["k003"]
    by_record_index = {"hoodie.index.type": "RECORD_INDEX"}
    assert table.upsert(rows(0, 30, v=3), options=by_record_index).updated == 20
    assert table.metadata.validate().differences == ()


def test_a_table_of_buckets_is_refused() -> None:
    by_bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table, storage = a_table(8, **by_bucket)
    table.upsert(rows(0, 10))
    for call in (table.cluster, table.schedule_clustering, table.run_clusterings):
        with pytest.raises(Unsupported, match=r"hoodie.index.type=BUCKET"):
            call(options=BY_VALUE)
    assert problems_on(storage) == []


def test_a_resizing_is_asked_for_where_there_are_rings_only() -> None:
    table, storage = a_table()
    table.insert(rows(0, 10))
    strategy = "org.apache.hudi.client.clustering.plan.strategy.SparkConsistentBucketClusteringPlanStrategy"

    with pytest.raises(Invalid, match=r"expected a table with .*CONSISTENT_HASHING, found 't' with another index"):
        table.cluster(options={"hoodie.clustering.plan.strategy.class": strategy})

    assert problems_on(storage) == []


def test_a_plan_that_cannot_be_carried_out_stays_and_is_told() -> None:
    table, storage = a_table()
    table.insert(rows(0, 10))
    table.schedule_clustering(options=BY_VALUE)
    path, requested = plan_in(table)
    assert requested.clustering_plan is not None
    name = "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
    changed = replace(requested.clustering_plan, strategy=ServiceStrategy(name, {}))
    storage.put(path, encode_requested_replace(replace(requested, clustering_plan=changed)))
    files = sorted(file.path for file in storage.list("", recursive=True))

    with pytest.raises(CorruptFile, match=r"expected a group with 'clustering.group.partition'"):
        table.cluster()

    assert sorted(file.path for file in storage.list("", recursive=True)) == files
