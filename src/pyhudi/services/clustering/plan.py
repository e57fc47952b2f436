"""Which file slices are clustered together. Pure rules over the slices of a table."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pyhudi.format.names import join
from pyhudi.format.timeline.records import (
    ClusteringGroup,
    ClusteringPlan,
    RequestedReplaceMetadata,
    ServiceStrategy,
    SliceInfo,
)
from pyhudi.services.clustering.settings import SINGLE_FILE_SORT, SORT_COLUMNS, ClusteringSettings, SliceOrder
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.pending import FileGroup

OPERATION: Final = "CLUSTER"
EXECUTION_CLASSES: Final = "org.apache.hudi.client.clustering.run.strategy"
"""Where the classes are that plans name. Apache Hudi carries a plan out by its class."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """`root`: where the table lies, for the absolute paths in plans. `new_base_size_bytes`: what a slice without a base
    file is taken for.
    """

    root: str
    new_base_size_bytes: int


def plan_clustering(
    slices: Iterable[FileSlice], settings: ClusteringSettings, sizing: Sizing, *, taken: Collection[FileGroup]
) -> ClusteringPlan:
    """The clustering plan over slices with small base files that no pending service is about to rewrite.

    `slices`: the newest slice of each file group, by the order of the partitions. A group of slices lies in one
    partition. It is full when the next slice would make it larger than `group_size_bytes_max`. A slice by itself is
    left out if writing it anew would change nothing: no sort is asked, it has no log, and it is not split.
    The plan names the partitions of slices that were left for later because `groups_max` was reached.

    Cost: no request. Spec: format/actions.md section 9. Seen: 1.0.2, 1.2.0
    (`PartitionAwareClusteringPlanStrategy`; ties are broken by file id here, by arrival there. They plan slices whose
    clustering changes nothing, too).
    """
    by_partition: dict[str, list[FileSlice]] = {}
    for one in slices:
        is_small = one.base_file is None or one.base_bytes < settings.small_file_limit_bytes
        if is_small and (one.partition, one.file_id) not in taken:
            by_partition.setdefault(one.partition, []).append(one)

    groups: list[ClusteringGroup] = []
    missing: list[str] = []
    for partition, found in by_partition.items():
        bundles = [bundle for bundle in _bundles(found, settings, sizing) if _is_worth_it(bundle, settings, sizing)]
        room = settings.groups_max - len(groups)
        groups += [_group(bundle, settings, sizing) for bundle in bundles[:room]]
        missing += [partition] if len(bundles) > room else []

    params = {SORT_COLUMNS: ",".join(settings.sort_columns)} if settings.sort_columns else {}
    return ClusteringPlan(
        tuple(groups),
        strategy=ServiceStrategy(f"{EXECUTION_CLASSES}.{settings.execution}", params),
        extra_metadata={},
        preserve_hoodie_metadata=True,
        missing_schedule_partitions=tuple(missing),
    )


def is_by_single_files(plan: ClusteringPlan) -> bool:
    """Whether each slice of a plan is sorted in itself, and stays one file of whatever size."""
    named = "" if plan.strategy is None else plan.strategy.class_name or ""
    return named.rpartition(".")[2] == SINGLE_FILE_SORT


def requested(plan: ClusteringPlan) -> RequestedReplaceMetadata:
    """What the requested file of a clustering holds."""
    return RequestedReplaceMetadata(OPERATION, plan, extra_metadata={}, version=1)


def file_count(bundle: Sequence[FileSlice], settings: ClusteringSettings, sizing: Sizing) -> int:
    """How many files the slices are to become."""
    if settings.takes_slices_alone:
        return 1
    size_bytes = sum(size_of(one, sizing) for one in bundle)
    return max(1, -(-size_bytes // settings.file_size_bytes))


def _bundles(
    slices: Sequence[FileSlice], settings: ClusteringSettings, sizing: Sizing
) -> list[list[FileSlice]]:  # fmt: skip
    """The slices of a partition, those together that are clustered together."""
    bundles: list[list[FileSlice]] = []
    size_bytes = 0
    for one in _ordered(slices, settings.slice_orders, sizing):
        own = size_of(one, sizing)
        if not bundles or settings.takes_slices_alone or size_bytes + own > settings.group_size_bytes_max:
            bundles.append([])
            size_bytes = 0
        bundles[-1].append(one)
        size_bytes += own
    return bundles


def _ordered(slices: Sequence[FileSlice], orders: Sequence[SliceOrder], sizing: Sizing) -> list[FileSlice]:
    def place(one: FileSlice) -> tuple[object, ...]:
        return *(
            -size_of(one, sizing) if order is SliceOrder.SIZE else one.base_instant for order in orders
        ), one.file_id

    return sorted(slices, key=place)


def _is_worth_it(bundle: Sequence[FileSlice], settings: ClusteringSettings, sizing: Sizing) -> bool:
    if len(bundle) > 1:
        return True
    changes = bool(settings.sort_columns or bundle[0].log_files) or file_count(bundle, settings, sizing) > 1
    return changes and (settings.takes_single or settings.takes_slices_alone)


def _group(bundle: Sequence[FileSlice], settings: ClusteringSettings, sizing: Sizing) -> ClusteringGroup:
    return ClusteringGroup(
        tuple(slice_info(one, sizing) for one in bundle),
        metrics=costs(bundle, sizing),
        num_output_file_groups=file_count(bundle, settings, sizing),
    )


def slice_info(one: FileSlice, sizing: Sizing) -> SliceInfo:
    """A slice as plans name it.

    Logs stand in the order in which they are merged. Seen: 0.15.0, 1.0.2 and 1.2.0 name the newest first. But 0.15.0,
    and 1.0.2 without its row writer, merge them in the order of the plan: a row comes back that a later log deletes.
    """

    def path(name: str) -> str:
        return f"{sizing.root}/{join(one.partition, name)}"

    return SliceInfo(
        data_file_path=path(one.base_file.name.format()) if one.base_file is not None else "",
        delta_file_paths=tuple(path(log.name.format()) for log in one.log_files),
        file_id=one.file_id,
        partition_path=one.partition,
        bootstrap_file_path="" if one.source is None else one.source.uri,
    )


def costs(bundle: Sequence[FileSlice], sizing: Sizing) -> dict[str, float]:
    """What a clustering of these slices reads and writes, under the names and in the order that plans have.

    Costs named `_MB` are whole mebibytes. Seen: Apache Hudi states the reading and writing of the last slice only.
    """
    log_bytes = sum(one.log_bytes for one in bundle)
    base_bytes = sum(one.base_bytes for one in bundle)
    read_mb, write_mb = (base_bytes + log_bytes) >> 20, sum(size_of(one, sizing) for one in bundle) >> 20
    return {
        "TOTAL_LOG_FILES": float(sum(len(one.log_files) for one in bundle)),
        "TOTAL_IO_MB": float(read_mb + write_mb),
        "TOTAL_IO_READ_MB": float(read_mb),
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_IO_WRITE_MB": float(write_mb),
    }


def size_of(one: FileSlice, sizing: Sizing) -> int:
    return one.base_bytes if one.base_file is not None else sizing.new_base_size_bytes
