"""What the plan of a resizing says of rings: which nodes of which partition change.

Spec: format/indexes.md section 5; format/actions.md section 9.
"""

from collections.abc import Sequence
from typing import Final

from pyhudi.errors import CorruptFile
from pyhudi.format.keys.hashing_metadata import (
    HashingMetadata,
    PlannedNode,
    decode_planned_nodes,
    encode_planned_nodes,
)
from pyhudi.format.names import file_group_id
from pyhudi.format.timeline.records import ClusteringGroup, ClusteringPlan
from pyhudi.table.view.pending import FileGroup

_RESIZING_ENDING: Final = "ConsistentBucketClusteringExecutionStrategy"
"""Ends the names of the classes that resize rings, of every engine."""

_PARTITION: Final = "clustering.group.partition"
_RESIZINGS: Final = "clustering.group.sequence.no"
_NODES: Final = "clustering.group.child.node"
"""The entries of a group of a plan: the partition, how many resizings its ring had, and the nodes that change."""


def group_entries(ring: HashingMetadata, nodes: Sequence[PlannedNode]) -> dict[str, str]:
    """What a group of a plan says of the ring that it changes, and of the nodes after it."""
    return {_RESIZINGS: str(ring.resizings), _NODES: encode_planned_nodes(nodes), _PARTITION: ring.partition}


def is_resizing(plan: ClusteringPlan) -> bool:
    """Whether a clustering plan resizes rings."""
    return plan.strategy is not None and (plan.strategy.class_name or "").endswith(_RESIZING_ENDING)


def planned_nodes(plan: ClusteringPlan, *, path: str) -> dict[str, tuple[int, list[PlannedNode]]]:
    """Partition -> how many resizings its ring had when it was planned, and the nodes that change.

    `path`: of the plan, for errors. Raises: CorruptFile for a plan that does not say so.
    """
    found: dict[str, tuple[int, list[PlannedNode]]] = {}
    for group in plan.input_groups or ():
        partition, resizings, nodes = _entries(group, path)
        known, changed = found.setdefault(partition, (resizings, []))
        if known != resizings:
            raise CorruptFile(
                path,
                0,
                expected=f"one number of resizings of partition '{partition}'",
                found=f"{known} and {resizings}",
            )
        changed += nodes
    return found


def nodes_of_group(group: ClusteringGroup, *, path: str) -> tuple[PlannedNode, ...]:
    """The nodes that a group of a resizing's plan changes. Raises: as `planned_nodes`."""
    return _entries(group, path)[2]


def _entries(group: ClusteringGroup, path: str) -> tuple[str, int, tuple[PlannedNode, ...]]:
    extra = group.extra_metadata or {}
    partition, resizings, nodes = (extra.get(name) for name in (_PARTITION, _RESIZINGS, _NODES))
    if partition is None or nodes is None or not (resizings or "").isdecimal():
        raise CorruptFile(
            path, 0, expected=f"a group with '{_PARTITION}', '{_RESIZINGS}' and '{_NODES}'", found=f"{sorted(extra)}"
        )
    assert resizings is not None
    return partition, int(resizings), decode_planned_nodes(nodes, path=path)


def becoming(plan: ClusteringPlan, *, path: str) -> dict[FileGroup, frozenset[FileGroup]]:
    """File group of the plan -> the file groups to which a resizing moves its rows. Empty for any other clustering.

    Raises: as `planned_nodes`.
    """
    if not is_resizing(plan):
        return {}
    return {
        (one.partition_path or "", one.file_id or ""): frozenset(new_groups(group, path=path))
        for group in plan.input_groups or ()
        for one in group.slices
    }


def new_groups(group: ClusteringGroup, *, path: str) -> dict[FileGroup, int]:
    """The file groups that a group of a resizing's plan makes, each with the last hash of its node.

    Raises: as `planned_nodes`.
    """
    partition, _, nodes = _entries(group, path)
    return {
        (partition, file_group_id(node.file_id_prefix, 0)): node.last_hash
        for node in nodes
        if node.file_id_prefix is not None
    }
