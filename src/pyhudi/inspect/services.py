"""Plans of compactions and clusterings, what rollbacks and cleans did, as rows."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyhudi.api.table import HudiTable
from pyhudi.errors import NotFound
from pyhudi.format.timeline.action_files import (
    decode_compaction_plan,
    decode_requested_replace,
)
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CleanerPlan, CleanMetadata, RollbackMetadata
from pyhudi.table.view.cleaned import read_pending_plan
from pyhudi.table.view.commits import read_clean
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.table.view.undoings import read_rollback


@dataclass(frozen=True, slots=True)
class PlannedService:
    """A service with its plan. `groups`: how many it takes. `partitions`: those of the plan, sorted."""

    instant: Instant
    groups: int
    partitions: tuple[str, ...]


def read_compactions(table: HudiTable) -> list[PlannedService]:
    """Compactions on the active timeline, pending and completed, newest first. One get each."""
    snapshot = table._access.snapshot()
    found = []
    for instant in reversed(snapshot.timeline.instants):
        if instant.action == "compaction" or (instant.action == "commit" and instant.is_completed):
            content = _requested(snapshot, instant, "compaction")
            if content is None:
                continue
            groups = decode_compaction_plan(content[1], path=content[0]).file_groups
            found.append(PlannedService(instant, len(groups), tuple(sorted({partition for partition, _ in groups}))))
    return found


def read_clusterings(table: HudiTable) -> list[PlannedService]:
    """Clusterings on the active timeline, pending and completed, newest first. One get each."""
    snapshot = table._access.snapshot()
    found = []
    for instant in reversed(snapshot.timeline.instants):
        if instant.action not in ("clustering", "replacecommit"):
            continue
        for action in ("clustering", "replacecommit"):
            content = _requested(snapshot, instant, action)
            if content is None or not content[1]:
                continue
            plan = decode_requested_replace(content[1], path=content[0])
            if plan.clustering_plan is not None:
                partitions = tuple(sorted({partition for partition, _ in plan.file_groups}))
                found.append(PlannedService(instant, len(plan.input_groups), partitions))
                break
    return found


def read_rollbacks(table: HudiTable) -> Iterator[tuple[Instant, RollbackMetadata]]:
    """Completed rollbacks on the active timeline, newest first. One get each."""
    snapshot = table._access.snapshot()
    for instant in reversed(snapshot.timeline.instants):
        if instant.action == "rollback" and instant.is_completed:
            yield instant, read_rollback(snapshot.storage, snapshot.timeline, instant)


def read_cleans(table: HudiTable, *, archived: bool = False) -> Iterator[tuple[Instant, CleanMetadata]]:
    """Completed cleans on the active timeline, newest first; `archived`: those of the history, too. One get each."""
    snapshot = table._access.snapshot()
    timeline = snapshot.timeline
    for instant in reversed(timeline.with_archived() if archived else timeline.instants):
        if instant.action == "clean" and instant.is_completed:
            is_active = timeline.is_active(instant)
            metadata = (
                read_clean(snapshot.storage, timeline, instant) if is_active else timeline.history.read_clean(instant)
            )
            if metadata is not None:
                yield instant, metadata


def read_clean_plans(table: HudiTable) -> Iterator[tuple[Instant, CleanerPlan]]:
    """The plans of cleans on the active timeline, pending and completed, newest first. One get each, or two."""
    snapshot = table._access.snapshot()
    for instant in reversed(snapshot.timeline.instants):
        if instant.action == "clean":
            plan = read_pending_plan(snapshot.storage, snapshot.timeline, instant)
            if plan is not None:
                yield instant, plan


def _requested(snapshot: Snapshot, instant: Instant, action: str) -> tuple[str, bytes] | None:
    """Path and content of the requested file that an instant would have under an action, if it is there."""
    path = snapshot.timeline.layout.path(Instant(instant.requested, action, "REQUESTED"))
    try:
        return path, snapshot.storage.get(path)
    except NotFound:
        return None
