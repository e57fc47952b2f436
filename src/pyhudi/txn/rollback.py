"""Rolling back writes that died: their files go, then their instants. Every step can be repeated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyhudi.errors import Conflict
from pyhudi.format.commit import (
    decode_rollback_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from pyhudi.format.names import BaseFileName, LogFileName, join
from pyhudi.model.commit import (
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
)
from pyhudi.model.instant import WRITE_ACTIONS, Instant
from pyhudi.storage.protocol import Storage
from pyhudi.table.listing import StorageListing
from pyhudi.table.pending import is_clustering
from pyhudi.timeline.active import Timeline
from pyhudi.txn.heartbeat import find_own_heartbeats, is_alive_elsewhere, remove_heartbeat
from pyhudi.txn.markers import read_markers, remove_markers
from pyhudi.txn.participants import CommitParticipant
from pyhudi.txn.rollback_blocks import partition_logs, put_command_blocks, requests_by_blocks


def find_dead_writes(storage: Storage, timeline: Timeline, *, now_ms: int, heartbeat_expires_ms: int) -> list[Instant]:
    """Pending writes that nobody will complete, newest first. The caller holds the guard.

    Raises: Conflict for one that another writer keeps alive, and for a pending rollback or restore of
    another writer that only it can finish.
    """
    dead = []
    for instant in timeline.pending:
        if instant.action == "restore":
            raise Conflict(
                f"restore '{instant.requested}' is pending: expected none; let its writer finish it, then retry"
            )
        if instant.action not in WRITE_ACTIONS or is_clustering(storage, timeline, instant):
            continue
        if is_alive_elsewhere(storage, instant.requested, now_ms=now_ms, expires_ms=heartbeat_expires_ms):
            raise Conflict(
                f"{instant.action} '{instant.requested}' of another writer is running (its heartbeat is alive); "
                "retry when it is done"
            )
        dead.append(instant)
    return sorted(dead, key=lambda instant: instant.requested, reverse=True)


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A rollback that has completed: its requested time, and the partitions that its target had files in."""

    requested: str
    partitions: tuple[str, ...]


def run_rollback(
    storage: Storage,
    timeline: Timeline,
    target: Instant,
    *,
    issue_instant: Callable[[], str],
    participants: Sequence[CommitParticipant],
    confirm: Callable[[], None],
) -> RolledBack:
    """Roll a pending write back.

    A rollback of this target that is pending already is finished under its own plan and time.
    Order: heartbeat, plan, markers, files, participants, completion, then the target's own instant files. A crash at
    any step leaves either a pending target (rolled back again) or none. Spec: format/actions.md section 5.

    `confirm` raises where the table is no longer ours: asked before each run of deletions and before the completed
    file. Whoever has the table then rolls this target back as well, and a second completion, or a plan that nobody
    finishes, would stay on its timeline.
    """
    assert not target.is_completed
    confirm()
    remove_heartbeat(storage, target.requested)  # before the plan: who puts a marker later finds the write ended
    requested, plan = _pending_plan(storage, timeline, target) or (None, None)
    layout = timeline.layout
    if requested is None or plan is None:
        plan = _plan(storage, timeline, target)
        requested = issue_instant()
        storage.put_new(layout.path(Instant(requested, "rollback", "REQUESTED")), encode_rollback_plan(plan))
    storage.put_new(layout.path(Instant(requested, "rollback", "INFLIGHT")), b"")
    confirm()
    # The plan holds what the markers said. They go before the files: a task of the target that still runs takes
    # its own file back when its marker is gone, and what it showed before that is deleted here.
    remove_markers(storage, target.requested)
    for request in plan.rollback_requests or ():
        storage.delete_many(join(request.partition_path, _name(path)) for path in request.files_to_be_deleted)
    voided = put_command_blocks(storage, plan.rollback_requests or (), rollback=requested, target=target.requested)
    metadata = _metadata(plan, target, requested, voided)
    for participant in participants:
        participant.roll_back(target.requested, requested, metadata)
    completed = Instant(requested, "rollback", "COMPLETED", issue_instant())
    confirm()
    storage.put_new(layout.path(completed), encode_rollback_metadata(metadata))
    remove_pending_instant(storage, timeline, target)
    return RolledBack(requested, tuple(metadata.partition_metadata))


def remove_pending_instant(storage: Storage, timeline: Timeline, target: Instant) -> None:
    """Delete an instant's markers and heartbeat, then its inflight, then its requested file.

    The requested file goes last: the instant stays known while anything of it is there.
    """
    remove_markers(storage, target.requested)
    remove_heartbeat(storage, target.requested)
    storage.delete(timeline.layout.path(Instant(target.requested, target.action, "INFLIGHT")))
    storage.delete(timeline.layout.path(Instant(target.requested, target.action, "REQUESTED")))


def remove_leftovers(storage: Storage, timeline: Timeline, *, confirm: Callable[[], None]) -> bool:
    """Remove markers and heartbeats of our writes that are not pending (any more): their writer died right before its
    instant was requested, or right after it was completed. Whether there were any. The caller holds the guard. One
    list request.

    `confirm`: asked once they are found. A writer that took the table since has a heartbeat that `timeline` does not
    know, and would lose its markers.
    """
    pending = {instant.requested for instant in timeline.pending}
    left = [requested for requested in find_own_heartbeats(storage) if requested not in pending]
    if left:
        confirm()
    for requested in left:
        remove_markers(storage, requested)
        remove_heartbeat(storage, requested)
    return bool(left)


def _pending_plan(storage: Storage, timeline: Timeline, target: Instant) -> tuple[str, RollbackPlan] | None:
    for instant in timeline.pending:
        if instant.action != "rollback":
            continue
        path = timeline.layout.path(Instant(instant.requested, "rollback", "REQUESTED"))
        plan = decode_rollback_plan(storage.get(path), path=path)
        if plan.instant_to_rollback is not None and plan.instant_to_rollback.requested == target.requested:
            return instant.requested, plan
    return None


def _plan(storage: Storage, timeline: Timeline, target: Instant) -> RollbackPlan:
    """The target's files: those that its markers name or, where it left none, those that carry its time."""
    markers = read_markers(storage, target.requested)
    info = InstantInfo(target.requested, target.action)
    if not timeline.layout.has_completion_times:
        return RollbackPlan(info, requests_by_blocks(storage, target.requested, markers))
    by_partition: dict[str, list[str]] = {}
    if markers is not None:
        for marker in markers:
            partition, _, name = marker.data_path.rpartition("/")
            by_partition.setdefault(partition, []).append(name)
    else:
        listing = StorageListing(storage)
        for partition in listing.partitions():
            names = [file.name for file in listing.files(partition) if _written_at(file.name) == target.requested]
            if names:
                by_partition[partition] = names
    root = storage.location.uri.rstrip("/")
    requests = tuple(
        RollbackRequest(partition, files_to_be_deleted=tuple(f"{root}/{join(partition, name)}" for name in names))
        for partition, names in sorted(by_partition.items())
    )
    return RollbackPlan(info, requests)


def _written_at(name: str) -> str | None:
    if base := BaseFileName.parse(name):
        return base.requested
    log = LogFileName.parse(name)
    return log.instant if log else None


def _metadata(
    plan: RollbackPlan, target: Instant, requested: str, voided: Mapping[str, dict[str, int]]
) -> RollbackMetadata:
    """What a rollback did. `voided`: the logs with its command blocks, by partition."""
    requests = plan.rollback_requests or ()
    deleted: dict[str, list[str]] = {request.partition_path: [] for request in requests}
    for request in requests:
        deleted[request.partition_path] += request.files_to_be_deleted
    failed = partition_logs(requests)
    partitions = {
        partition: RollbackPartitionMetadata(
            partition, tuple(of), rollback_log_files=voided.get(partition, {}),
            log_files_from_failed_commit=failed.get(partition, {}),
        )
        for partition, of in deleted.items()
    }  # fmt: skip
    return RollbackMetadata(
        start_rollback_time=requested,
        time_taken_in_millis=0,
        total_files_deleted=sum(len(p.success_delete_files) for p in partitions.values()),
        commits_rollback=(target.requested,),
        partition_metadata=partitions,
        instants_rollback=(InstantInfo(target.requested, target.action),),
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2]
