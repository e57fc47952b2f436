"""What a clean reads before it plans: which files others still need, and which partitions have changed."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyhudi.errors import NotFound
from pyhudi.format.timeline.action_files import (
    decode_compaction_plan,
    decode_index_plan,
    decode_requested_replace,
    decode_savepoint,
)
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CleanMetadata
from pyhudi.services.clean.plan import Protected
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.commits import read_commit
from pyhudi.timeline.active import Timeline

SAVEPOINTED = "savepointed_timestamps"
"""The entry of a clean's extra metadata that names the savepoints that existed when the clean ran."""

HELD = "pyhudi.held.partitions"
"""The entry that names the partitions, in JSON, where replaced file groups stay for a pending action.

The write that replaced them lies before what the clean retains, so that the next one would not look there again.
"""

_PLANNED = frozenset({"compaction", "logcompaction", "clustering", "replacecommit", "indexing"})


@dataclass(frozen=True, slots=True)
class Savepoints:
    """`requested`: requested times of the savepointed commits. `files`: partition and name of each file they keep."""

    requested: tuple[str, ...]
    files: frozenset[tuple[str, str]]


def read_savepoints(storage: Storage, timeline: Timeline) -> Savepoints:
    """The completed savepoints and their files. One get per savepoint."""
    completed = [i for i in timeline if i.action == "savepoint" and i.is_completed]
    files: set[tuple[str, str]] = set()
    for instant in completed:
        path = timeline.layout.path(instant)
        metadata = decode_savepoint(storage.get(path), path=path)
        for partition, saved in metadata.partition_metadata.items():
            files |= {(partition, name.rpartition("/")[2]) for name in saved.savepoint_data_file}
    return Savepoints(tuple(i.requested for i in completed), frozenset(files))


def read_protected(storage: Storage, timeline: Timeline, savepoints: Savepoints) -> Protected:
    """The files that savepoints and pending actions need. One get per pending compaction, clustering and indexing."""
    clustered: set[tuple[str, str]] = set()
    compacted_from: dict[tuple[str, str], str] = {}
    readers: list[str] = []

    for instant in timeline.pending:
        if instant.action == "savepoint":
            readers.append(instant.requested)
        if instant.action not in _PLANNED:
            continue

        path = timeline.layout.path(Instant(instant.requested, instant.action, "REQUESTED"))
        try:
            content = storage.get(path)
        except NotFound:  # the action is half rolled back, and nobody can carry it out any more
            continue

        match instant.action:
            case "compaction" | "logcompaction":
                for operation in decode_compaction_plan(content, path=path).operations or ():
                    group = operation.partition_path or "", operation.file_id or ""
                    start = operation.base_instant_time or ""
                    compacted_from[group] = min(start, compacted_from.get(group, start))
            case "clustering" | "replacecommit":
                plan = decode_requested_replace(content, path=path)
                for slice_info in (slice_info for group in plan.input_groups for slice_info in group.slices):
                    paths = (slice_info.data_file_path or "", *(slice_info.delta_file_paths or ()))
                    clustered |= {(slice_info.partition_path or "", name.rpartition("/")[2]) for name in paths}
            case "indexing":
                infos = decode_index_plan(content, path=path).index_partition_infos or ()
                readers += [info.index_upto_instant for info in infos if info.index_upto_instant]

    return Protected(savepoints.files, compacted_from, tuple(readers), frozenset(clustered))


def partitions_to_examine(
    storage: Storage,
    timeline: Timeline,
    *,
    last: CleanMetadata | None,
    earliest: str | None,
    is_incremental: bool,
    savepoints: Savepoints,
    every_partition: Callable[[], list[str]],
) -> list[str]:
    """The partitions where files may have become superfluous since the last clean, sorted.

    These are the partitions that completed writes have changed, from the last clean's earliest retained commit up to
    but without `earliest`, and those where it left replaced file groups to a pending action. All partitions are
    examined when there was no such clean, its commit has left the timeline, one of its savepoints was deleted since,
    or cleaning is not incremental. `earliest`: None when the policy counts versions; then all partitions are examined,
    too. Cost: one get per commit in the range.
    Spec: format/actions.md section 7.3.
    """
    since = last.earliest_commit_to_retain if last is not None else ""
    start = timeline.start
    if earliest is None or not is_incremental or not since or (start is not None and since < start):
        return every_partition()

    # A savepoint that was deleted since then may leave superfluous files in any partition.
    noted = (last.extra_metadata or {}) if last is not None else {}
    if {name for name in noted.get(SAVEPOINTED, "").split(",") if name} - set(savepoints.requested):
        return every_partition()

    return sorted({*_changed_partitions(storage, timeline, since, earliest), *json.loads(noted.get(HELD, "[]"))})


def _changed_partitions(storage: Storage, timeline: Timeline, since: str, until: str) -> Iterator[str]:
    for instant in timeline.completed_writes:
        if since <= instant.requested < until:
            metadata = read_commit(storage, timeline, instant)
            yield from metadata.partition_to_write_stats
            yield from metadata.partition_to_replace_file_ids or ()
