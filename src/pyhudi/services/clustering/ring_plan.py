"""Which buckets of a ring are split, and which are merged with their neighbours. Pure rules over a partition's slices.

Spec: format/indexes.md section 5; format/actions.md section 9.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyhudi.format.keys.hashing_metadata import RING_HASH_MAX, HashingMetadata, PlannedNode
from pyhudi.format.names import file_group_id
from pyhudi.format.timeline.records import ClusteringGroup, ClusteringPlan, ServiceStrategy
from pyhudi.index.planned_rings import group_entries
from pyhudi.services.clustering.plan import Sizing, costs, slice_info
from pyhudi.services.clustering.settings import ClusteringSettings
from pyhudi.table.view.file_system_view import FileSlice

_RESIZING_CLASS: Final = (
    "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
)


@dataclass(frozen=True, slots=True)
class RingSizes:
    """What a ring shall look like. Units: bytes of a file slice, its logs included.

    A slice of more than `split_bytes` is split while the ring has less than `most` buckets. Slices of at most
    `merge_bytes` are merged while it has more than `least`.
    """

    split_bytes: int
    merge_bytes: int
    least: int
    most: int

    @classmethod
    def of_ring(cls, ring: HashingMetadata, settings: ClusteringSettings, file_size_max_bytes: int) -> "RingSizes":
        """A ring keeps the count that it began with, unless the options say otherwise. Seen: 1.0.2, 1.2.0."""
        began = ring.initial_count
        return cls(
            split_bytes=int(file_size_max_bytes * settings.split_factor),
            merge_bytes=int(file_size_max_bytes * settings.merge_factor),
            least=min(settings.buckets_min or began, began),
            most=max(settings.buckets_max or began, began),
        )


def plan_resizing(
    rings: Mapping[str, HashingMetadata],
    slices: Mapping[str, Sequence[FileSlice]],
    sizes: Callable[[HashingMetadata], RingSizes],
    sizing: Sizing,
    *,
    groups_max: int,
    new_uuid: Callable[[], str],
) -> ClusteringPlan:
    """The plan that resizes rings. It has no groups where every bucket has its size.

    `rings`: of each partition that is looked into. `slices`: the newest slices of its buckets that no service is about
    to rewrite. A bucket without a slice stays as it is, and is no neighbour that could be merged.
    The plan names the partitions with changes that were left for later because `groups_max` was reached.

    Cost: no request. Spec: format/indexes.md section 5. Seen: 1.0.2, 1.2.0
    (`BaseConsistentHashingBucketClusteringPlanStrategy`).
    """
    groups: list[ClusteringGroup] = []
    missing: list[str] = []
    for partition, ring in sorted(rings.items()):
        found = list(_changes(ring, slices.get(partition, ()), sizes(ring), new_uuid))
        room = groups_max - len(groups)
        groups += [_group(ring, nodes, held, sizing) for nodes, held in found[:room]]
        missing += [partition] if len(found) > room else []

    return ClusteringPlan(
        tuple(groups),
        strategy=ServiceStrategy(_RESIZING_CLASS, {}),
        extra_metadata={},
        preserve_hoodie_metadata=True,
        missing_schedule_partitions=tuple(missing),
    )


_Change = tuple[list[PlannedNode], list[FileSlice]]
"""The nodes that change, and the slices whose rows go to the new ones."""


def _changes(
    ring: HashingMetadata, slices: Sequence[FileSlice], sizes: RingSizes, new_uuid: Callable[[], str]
) -> Iterator[_Change]:
    numbers = {file_group_id(node.file_id_prefix, 0): number for number, node in enumerate(ring.nodes)}
    held = {numbers[one.file_id]: one for one in slices if one.file_id in numbers}

    splits = 0
    for number, one in sorted(held.items()):
        if len(ring.nodes) + splits >= sizes.most:
            break
        halves = _halves(ring, number, new_uuid) if _bytes(one) > sizes.split_bytes else None
        if halves is not None:
            splits += 1
            del held[number]
            yield halves, [one]

    yield from _merges(ring, held, sizes, room=len(ring.nodes) + splits - sizes.least, new_uuid=new_uuid)


def _halves(ring: HashingMetadata, number: int, new_uuid: Callable[[], str]) -> list[PlannedNode] | None:
    """The two nodes that a bucket is split into; None for a bucket of a single hash."""
    before, last = ring.nodes[number - 1].last_hash, ring.nodes[number].last_hash
    around = RING_HASH_MAX + 1 if before >= last else 0
    if last + around - before < 2:
        return None
    middle = ((before + last + around) >> 1) & RING_HASH_MAX
    return [PlannedNode(middle, new_uuid()), PlannedNode(last, new_uuid())]


def _merges(
    ring: HashingMetadata,
    held: Mapping[int, FileSlice],
    sizes: RingSizes,
    *,
    room: int,
    new_uuid: Callable[[], str],
) -> Iterator[_Change]:
    """Runs of small neighbours. From each bucket a run grows backwards, then forwards, while it is small and there is
    `room` for one bucket less.
    """
    count = len(ring.nodes)
    small = {number: _bytes(one) for number, one in held.items() if _bytes(one) <= sizes.merge_bytes}

    for start in sorted(small):
        if start not in small:
            continue
        run, total = [start], small.pop(start)
        for step in (-1, 1):
            while room > 0 and total <= sizes.merge_bytes:
                neighbour = (run[0 if step < 0 else -1] + step) % count
                if neighbour not in small:
                    break
                total += small.pop(neighbour)
                run = [neighbour, *run] if step < 0 else [*run, neighbour]
                room -= 1
        if len(run) > 1:
            gone = [PlannedNode(ring.nodes[number].last_hash, None) for number in run[:-1]]
            kept = PlannedNode(ring.nodes[run[-1]].last_hash, new_uuid())
            yield [*gone, kept], [held[number] for number in run]


def _group(
    ring: HashingMetadata, nodes: Iterable[PlannedNode], held: Sequence[FileSlice], sizing: Sizing
) -> ClusteringGroup:
    planned = list(nodes)
    return ClusteringGroup(
        tuple(slice_info(one, sizing) for one in held),
        metrics=costs(held, sizing),
        num_output_file_groups=sum(node.file_id_prefix is not None for node in planned),
        extra_metadata=group_entries(ring, planned),
    )


def _bytes(one: FileSlice) -> int:
    return one.base_bytes + one.log_bytes
