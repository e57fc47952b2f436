"""What a resizing of rings reads from the table and leaves there: rings for its plan, and the rings that it makes.

A new ring is put before the resizing completes. It counts from then on, since readers go by the timeline; the marker
that follows spares them that look. A crash in between, or a rollback, leaves a ring that does not count.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.keys.hashing_metadata import HashingFileName, HashingMetadata, ring_folder
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import ClusteringPlan
from pyhudi.index.consistent_buckets import find_ring
from pyhudi.index.planned_rings import nodes_of_group, planned_nodes
from pyhudi.services.clustering.plan import Sizing
from pyhudi.services.clustering.ring_plan import RingSizes, plan_resizing
from pyhudi.services.clustering.settings import RESIZING_STRATEGY, STRATEGY, ClusteringSettings
from pyhudi.services.clustering.trigger import plan_path
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.bucket_facts import BucketFacts, facts_of_table
from pyhudi.table.view.pending import CLUSTERINGS, FileGroup
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.clustering.resizing import ResizeTask
from pyhudi.write.clustering.target import GroupTask
from pyhudi.write.place.buckets import refuse_hidden_buckets


def rings_of_table(
    snapshot: Snapshot, bucket_options: Mapping[str, str], settings: ClusteringSettings
) -> BucketFacts | None:
    """The facts of a table whose partitions have rings, which a clustering resizes. None where rows may lie anywhere.

    `bucket_options`: what the options say of the index. Requests: as `refuse_hidden_buckets`.
    Raises: Unsupported for a table with a fixed number of buckets, in which the key of a row says its file group;
    Invalid where nothing states the buckets, and where rings are asked for and there are none.
    """
    facts = facts_of_table(snapshot.config, bucket_options)
    if facts is None:
        refuse_hidden_buckets(snapshot, {})
        if settings.asks_for_rings:
            raise Invalid(
                f"option '{STRATEGY}'='{RESIZING_STRATEGY}': expected a table with hoodie.index.type=BUCKET and "
                f"hoodie.index.bucket.engine=CONSISTENT_HASHING, found '{snapshot.config.name}' with another index"
            )
        return None

    if facts.engine == "SIMPLE":
        raise Unsupported(
            f"{snapshot.storage.location.uri}: expected a table whose rows may lie in any file group, or one with the "
            "engine CONSISTENT_HASHING, found hoodie.index.type=BUCKET with the engine SIMPLE, by which a row's key "
            "says its file group; bulk_insert with hoodie.bulkinsert.sort.mode sorts such tables"
        )
    return facts


def plan_rings(
    snapshot: Snapshot,
    partitions: Sequence[str],
    settings: ClusteringSettings,
    file_size_max_bytes: int,
    sizing: Sizing,
    *,
    taken: Mapping[FileGroup, Instant],
    new_uuid: Callable[[], str],
) -> ClusteringPlan:
    """The plan that resizes the rings of these partitions.

    A partition whose ring a pending clustering is about to change is left out. `taken`: the file groups in the plans of
    pending services. Requests: for each partition a listing of its rings, a get, and a listing of its files.
    """
    resizing = {group[0] for group, service in taken.items() if service.action in CLUSTERINGS}
    slices = {path: snapshot.slices(path) for path in partitions if path not in resizing}
    found = {path: ring_in_force(snapshot, path) for path in slices}

    return plan_resizing(
        {path: ring for path, ring in found.items() if ring is not None},
        {path: [one for one in held if (path, one.file_id) not in taken] for path, held in slices.items()},
        partial(RingSizes.of_ring, settings=settings, file_size_max_bytes=file_size_max_bytes),
        sizing,
        groups_max=settings.groups_max,
        new_uuid=new_uuid,
    )


def new_rings(snapshot: Snapshot, instant: Instant, plan: ClusteringPlan) -> dict[str, HashingMetadata] | None:
    """The ring of each partition after a resizing. None if a ring is no longer the one that the plan was made from.

    Requests: as `plan_rings`. Raises: CorruptFile for a plan that does not say how rings change.
    """
    made: dict[str, HashingMetadata] = {}
    for partition, (resizings, nodes) in planned_nodes(plan, path=plan_path(snapshot, instant)).items():
        ring = ring_in_force(snapshot, partition)
        if ring is None or ring.resizings != resizings:
            return None
        made[partition] = ring.resized(instant.requested, nodes)
    return made


def resize_tasks(
    snapshot: Snapshot,
    instant: Instant,
    plan: ClusteringPlan,
    groups: Collection[GroupTask],
    rings: Mapping[str, HashingMetadata],
    facts: BucketFacts,
) -> list[ResizeTask]:
    """A task for each group of a resizing's plan. `rings`: as `new_rings` has them."""
    path, planned = plan_path(snapshot, instant), plan.input_groups or ()
    return [
        ResizeTask(
            group,
            rings[group.partition],
            frozenset(
                node.file_id_prefix
                for node in nodes_of_group(planned[group.number], path=path)
                if node.file_id_prefix is not None
            ),
            facts.hash_fields,
        )
        for group in groups
    ]


def put_rings(storage: Storage, rings: Collection[HashingMetadata]) -> None:
    """Put the rings that a resizing makes. They count once it is completed."""
    for ring in rings:
        storage.put(ring.path, ring.encode())


def mark_rings(storage: Storage, rings: Collection[HashingMetadata]) -> None:
    """Put the markers by which the rings of a completed resizing count without a look at the timeline."""
    for ring in rings:
        marker = HashingFileName(ring.instant, is_marker=True).format()
        storage.put_new(f"{ring_folder(ring.partition)}/{marker}", b"")


def ring_in_force(snapshot: Snapshot, partition: str) -> HashingMetadata | None:
    """The ring of a partition; None if it has none yet. Requests: as `find_ring`."""
    return find_ring(
        snapshot.storage, partition, snapshot.timeline,
        lambda: [file_slice.file_id for file_slice in snapshot.slices(partition)],
    )  # fmt: skip
