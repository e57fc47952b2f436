"""Writing beside a pending resizing of rings: rows go to their buckets of today, and to those that the resizing makes.

Readers see the logs of the second kind once the resizing has completed: they are named after it. So neither the write
nor the resizing must give way. Spec: format/indexes.md section 5.
Seen: 0.15.0, 1.0.2, 1.2.0 (`SparkConsistentBucketDuplicateUpdateStrategy`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count

from pyhudi.format.keys.hashing_metadata import HashingMetadata
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import ClusteringGroup, ClusteringPlan
from pyhudi.index.consistent_buckets import RingBuckets
from pyhudi.index.planned_rings import is_resizing, new_groups, planned_nodes
from pyhudi.table.view.file_system_view import NewLog
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.pending import FileGroup, read_clustering_plans
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.handles.log_names import next_log
from pyhudi.write.place.buckets import PartitionBuckets
from pyhudi.write.place.plan import DoubledRows, FileGroupTask, TaskKind, WritePlan


def double_rows(
    plan: WritePlan, snapshot: Snapshot, frozen: Mapping[FileGroup, Instant], buckets: Mapping[str, PartitionBuckets]
) -> WritePlan:
    """The plan, whose tasks of buckets that a pending resizing moves also log their rows for the buckets that it makes.

    `frozen`: the file groups of pending clusterings. A task stays as it is where the clustering resizes no ring, or a
    ring that is no longer there. Requests: a get for each such clustering, and a listing of each partition with such a
    bucket. The storage itself is listed, because a log of a dead writer takes a version, too.
    """
    touched = {(task.partition, task.file_id) for task in plan.tasks if task.kind is TaskKind.APPEND} & frozen.keys()
    plans = {
        requested: found
        for requested, found in read_clustering_plans(
            snapshot.storage, snapshot.timeline, {frozen[group].requested for group in touched}
        ).items()
        if is_resizing(found)
    }
    if not plans:
        return plan

    listing = StorageListing(snapshot.storage)
    numbers, versions = count(len(plan.tasks)), dict[FileGroup, NewLog]()
    rings = {requested: _new_rings(requested, found, buckets) for requested, found in plans.items()}
    names = {path: [file.name for file in listing.files(path)] for path in sorted({path for path, _ in touched})}

    def doubled(task: FileGroupTask) -> FileGroupTask:
        service = frozen.get((task.partition, task.file_id))
        ring = None if service is None else rings.get(service.requested, {}).get(task.partition)
        if service is None or ring is None:
            return task
        own = _group_of(plans[service.requested].input_groups or (), (task.partition, task.file_id))
        rule = RingBuckets(ring, _hash_fields(buckets[task.partition]))
        tasks = {}
        for partition, file_id in new_groups(own, path=service.requested):
            log = versions.get((partition, file_id)) or next_log(names[partition], file_id, service.requested)
            versions[partition, file_id] = replace(log, version=log.version + 1)
            bucket = rule.bucket_of_file(file_id)
            assert bucket is not None, "the ring is made of the plan's nodes"
            tasks[bucket] = FileGroupTask(
                number=next(numbers), kind=TaskKind.APPEND, partition=partition, file_id=file_id,
                base_instant=service.requested, updates=task.updates, log=log,
            )  # fmt: skip
        return replace(task, doubled=DoubledRows(rule, tasks))

    return WritePlan(tuple(map(doubled, plan.tasks)))


def _new_rings(
    requested: str, plan: ClusteringPlan, buckets: Mapping[str, PartitionBuckets]
) -> dict[str, HashingMetadata]:
    """The ring that a resizing makes in each partition whose ring is the one that it was planned from."""
    made = {}
    for partition, (resizings, nodes) in planned_nodes(plan, path=requested).items():
        rule = buckets[partition].rule if partition in buckets else None
        if isinstance(rule, RingBuckets) and rule.ring.resizings == resizings:
            made[partition] = rule.ring.resized(requested, nodes)
    return made


def _group_of(groups: Iterable[ClusteringGroup], wanted: FileGroup) -> ClusteringGroup:
    return next(one for one in groups if any((of.partition_path or "", of.file_id) == wanted for of in one.slices))


def _hash_fields(own: PartitionBuckets) -> tuple[str, ...]:
    assert isinstance(own.rule, RingBuckets)
    return own.rule.hash_fields
