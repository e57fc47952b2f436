"""A resizing of rings could lose a row, put it where no writer looks for it, or plan otherwise than Apache Hudi does.

Every table of rings that Apache Hudi wrote is resized here both ways. What Apache Hudi planned is planned again, and
what it left planned is carried out.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import Conflict, HudiTable, Invalid
from pyhudi.format.keys.hashing_metadata import HashingMetadata
from pyhudi.format.schema.conversion import PARTITION_PATH, RECORD_KEY
from pyhudi.format.timeline.action_files import decode_requested_replace
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import ClusteringPlan
from pyhudi.index.consistent_buckets import RingBuckets
from pyhudi.index.planned_rings import nodes_of_group
from pyhudi.services.clustering.plan import Sizing
from pyhudi.services.clustering.resizing import ring_in_force
from pyhudi.services.clustering.ring_plan import RingSizes, plan_resizing
from pyhudi.services.clustering.settings import ClusteringSettings
from pyhudi.table.view.snapshot import Snapshot
from tests.golden.test_buckets import bucket_options
from tests.support.compare import assert_same_rows
from tests.support.golden_tables import GoldenTable, GoldenTables
from tests.support.merge_on_read import rows, without_file_names

TABLES = (
    "mor_consistent_bucket_v9_h120",
    pytest.param("mor_consistent_merge_v8_h102", marks=pytest.mark.long),
    "mor_consistent_merge_v9_h120",
    "mor_consistent_split_v8_h102",
    pytest.param("mor_consistent_split_v9_h120", marks=pytest.mark.long),
)
RESIZED = ("mor_consistent_merge_v9_h120", "mor_consistent_split_v8_h102")
SPLIT = {"hoodie.parquet.max.file.size": "1", "hoodie.bucket.index.max.num.buckets": "16"}
MERGE = {"hoodie.bucket.index.min.num.buckets": "1", "hoodie.bucket.index.split.threshold": "1000"}


def ring_of(snapshot: Snapshot, partition: str) -> HashingMetadata:
    ring = ring_in_force(snapshot, partition)
    assert ring is not None
    return ring


def check_places(table: HudiTable, hash_field: str) -> None:
    """Every row lies in the file group that the ring of its partition says."""
    snapshot = table._access.snapshot()
    stored = table.scan(columns=[RECORD_KEY, PARTITION_PATH, "_hoodie_file_name"]).to_arrow()
    for partition in snapshot.listing.partitions():
        rule = RingBuckets(ring_of(snapshot, partition), (hash_field,))
        part = stored.filter(pa.compute.equal(stored.column(PARTITION_PATH), partition))
        for bucket, name in zip(
            rule.bucket_of(part.column(RECORD_KEY)).tolist(), part.column("_hoodie_file_name").to_pylist(), strict=True
        ):
            assert name.startswith(rule.ring.nodes[bucket].file_id_prefix)


def opened(path: Path, golden: GoldenTable) -> HudiTable:
    options = bucket_options(golden)
    kept = {name: options[name] for name in options if "threshold" not in name and "num.buckets" not in name}
    return HudiTable.open(path, options={**kept, "hoodie.bucket.index.num.buckets": "8"})


@pytest.mark.parametrize("change", [SPLIT, MERGE], ids=["split", "merge"])
@pytest.mark.parametrize("name", TABLES)
def test_a_resizing_changes_no_answer(
    unpacked: Callable[[str], Path], golden: GoldenTables, name: str, change: dict[str, str]
) -> None:
    table = opened(unpacked(name), golden.get(name))
    before, changes = rows(table), without_file_names(table.incremental().to_arrow())
    newest = max(i.requested for i in table.timeline() if i.completed and i.action == "deltacommit")
    counts = [len(ring_of(table._access.snapshot(), path).nodes) for path in ("p1", "p2")]

    result = table.cluster(options=change)

    now = [len(ring_of(table._access.snapshot(), path).nodes) for path in ("p1", "p2")]
    assert result.completed is not None
    assert now == [1, 1] if change is MERGE else sum(now) > sum(counts)
    for query in ({}, {"as_of": newest}):
        assert_same_rows(rows(table, **query), before)
    assert_same_rows(rows(table, query="read_optimized"), before)
    assert_same_rows(without_file_names(table.incremental().to_arrow()), changes)
    assert table.incremental(start=result.completed).to_arrow().num_rows == 0
    check_places(table, "id")
    assert table.metadata.validate().differences == ()

    stored = table.scan(meta_fields=False).to_arrow()
    table.upsert(stored)
    table.delete(stored.slice(0, 3))
    assert table.scan().to_arrow().num_rows == len(stored) - 3
    check_places(table, "id")

    table.restore(newest)
    assert_same_rows(rows(table), before)
    table.upsert(stored)  # by the rings of before
    assert table.scan().to_arrow().num_rows == len(stored)
    check_places(table, "id")


def planned_by_hudi(golden: GoldenTable) -> tuple[Instant, bytes, ClusteringPlan]:
    snapshot = HudiTable.open(golden.path)._access.snapshot()
    (done,) = [i for i in snapshot.timeline if i.action == "replacecommit"]
    action = snapshot.config.layout.kind.clustering
    path = snapshot.timeline.layout.path(Instant(done.requested, action, "REQUESTED"))
    content = snapshot.storage.get(path)
    plan = decode_requested_replace(content, path=path).clustering_plan
    assert plan is not None
    return Instant(done.requested, action, "REQUESTED"), content, plan


@pytest.mark.parametrize("name", RESIZED)
def test_plans_are_those_of_hudi(golden: GoldenTables, name: str) -> None:
    """But for the new UUIDs, and for a bucket that Apache Hudi writes anew though it neither splits nor merges it."""
    table = golden.get(name)
    instant, _, theirs = planned_by_hudi(table)
    snapshot = HudiTable.open(table.path)._access.snapshot()
    options = {o: str(text) for o, text in table.manifest["operations"][0]["options"].items()}
    newest = max(i.requested for i in snapshot.timeline if i.requested < instant.requested)
    settings, then = ClusteringSettings.from_options(options), snapshot.at(newest)
    count = int(options["hoodie.bucket.index.num.buckets"])

    ours = plan_resizing(
        {path: HashingMetadata.initial(path, count) for path in ("p1", "p2")},
        {path: then.slices(path) for path in ("p1", "p2")},
        lambda ring: RingSizes.of_ring(ring, settings, int(options["hoodie.parquet.max.file.size"])),
        Sizing("file:/table", new_base_size_bytes=1), groups_max=99, new_uuid=lambda: f"{0:08}-0000-0000-0000-{0:012}",
    )  # fmt: skip

    assert ours.strategy == theirs.strategy
    assert described(ours) == [one for one in described(theirs) if len(one[1]) > 1]


def described(plan: ClusteringPlan) -> list[tuple[list[str | None], list[tuple[int, bool]], set[str]]]:
    return sorted(
        (
            [one.file_id for one in group.slices],
            [(node.last_hash, node.file_id_prefix is None) for node in nodes_of_group(group, path="x")],
            set(group.extra_metadata or {}),
        )
        for group in plan.input_groups or ()
    )


@pytest.mark.parametrize("name", RESIZED)
def test_a_plan_that_hudi_left_is_carried_out(unpacked: Callable[[str], Path], golden: GoldenTables, name: str) -> None:
    """The table is taken back to the moment of the plan, which then is put again."""
    instant, content, plan = planned_by_hudi(golden.get(name))
    table = opened(unpacked(name), golden.get(name))
    before = max(i.requested for i in table.timeline() if i.completed and i.requested < instant.requested)
    table.restore(before)
    stored, kept = table.scan(meta_fields=False).to_arrow(), rows(table)
    snapshot = table._access.snapshot()
    snapshot.storage.put(snapshot.timeline.layout.path(instant), content)

    with pytest.raises(Conflict, match="is being clustered"):
        table.upsert(stored)
    with pytest.raises(Invalid, match="its properties do not say so"):
        HudiTable.open(table._access.location.uri, options={"hoodie.index.type": "SIMPLE"}).run_clusterings()
    result = table.run_clusterings()

    assert (result.requested, result.given_up) == (instant.requested, ())
    wanted = [n for group in plan.input_groups or () for n in nodes_of_group(group, path="x") if n.file_id_prefix]
    assert result.files == len(wanted)
    assert_same_rows(rows(table), kept)
    check_places(table, "id")
    made = {node.file_id_prefix for path in ("p1", "p2") for node in ring_of(table._access.snapshot(), path).nodes}
    assert {node.file_id_prefix for node in wanted} <= made
    table.upsert(stored)
    assert_same_rows(table.scan(meta_fields=False).to_arrow(), stored)


@pytest.mark.parametrize("name", RESIZED[:1])
def test_the_wrong_hash_field_is_noticed_before_rows_move(
    unpacked: Callable[[str], Path], golden: GoldenTables, name: str
) -> None:
    table = opened(unpacked(name), golden.get(name))
    before = rows(table)
    snapshot = table._access.snapshot()
    assert replace(snapshot.config) == snapshot.config

    with pytest.raises(Invalid, match="hash"):
        table.cluster(options={**SPLIT, "hoodie.bucket.index.hash.field": "name"})

    assert_same_rows(rows(table), before)
