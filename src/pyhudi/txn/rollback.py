"""Rolling back writes that died: their files go, then their instants. Every step can be repeated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyhudi.errors import Conflict
from pyhudi.format.commit import encode_rollback_metadata, encode_rollback_plan
from pyhudi.model.commit import RollbackMetadata
from pyhudi.model.instant import WRITE_ACTIONS, Instant
from pyhudi.storage.protocol import Storage
from pyhudi.table.pending import is_clustering
from pyhudi.timeline.active import Timeline
from pyhudi.txn.heartbeat import find_own_heartbeats, is_alive_elsewhere, remove_heartbeat
from pyhudi.txn.markers import remove_markers
from pyhudi.txn.participants import CommitParticipant
from pyhudi.txn.restore import forget_rollbacks
from pyhudi.txn.rollback_blocks import put_command_blocks
from pyhudi.txn.rollback_plan import delete_files, plan_rollback, read_pending_plans, rollback_metadata


def find_dead_writes(storage: Storage, timeline: Timeline, *, now_ms: int, heartbeat_expires_ms: int) -> list[Instant]:
    """Pending writes that nobody will complete, newest first. The caller holds the guard.

    Raises: Conflict for one that another writer keeps alive.
    """
    dead = []
    for instant in timeline.pending:
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
    """A rollback that has completed: its times, what it undid and how."""

    requested: str
    completed: str
    target: str
    metadata: RollbackMetadata

    @property
    def partitions(self) -> tuple[str, ...]:
        """Those that the target had files in."""
        return tuple(self.metadata.partition_metadata)


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
    requested, plan = read_pending_plans(storage, timeline).get(target.requested, (None, None))
    layout = timeline.layout
    if requested is None or plan is None:
        plan = plan_rollback(storage, timeline, target)
        requested = issue_instant()
        storage.put_new(layout.path(Instant(requested, "rollback", "REQUESTED")), encode_rollback_plan(plan))
    storage.put_new(layout.path(Instant(requested, "rollback", "INFLIGHT")), b"")
    confirm()
    # The plan holds what the markers said. They go before the files: a task of the target that still runs takes
    # its own file back when its marker is gone, and what it showed before that is deleted here.
    remove_markers(storage, target.requested)
    delete_files(storage, plan)
    voided = put_command_blocks(storage, plan.rollback_requests or (), rollback=requested, target=target.requested)
    metadata = rollback_metadata(plan, requested, voided)
    for participant in participants:
        participant.roll_back(target.requested, requested, metadata)
    completed = issue_instant()
    confirm()
    path = layout.path(Instant(requested, "rollback", "COMPLETED", completed))
    storage.put_new(path, encode_rollback_metadata(metadata))
    remove_pending_instant(storage, timeline, target)
    return RolledBack(requested, completed, target.requested, metadata)


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
    instant was requested, or right after it was completed; a restore is finished then. A savepoint in the making goes,
    too, which would hold its files for good. Whether there were any. The caller holds the guard. One list request.

    `confirm`: asked once they are found. A writer that took the table since has a heartbeat that `timeline` does not
    know, and would lose its markers.
    """
    making = {instant.requested: instant for instant in timeline.pending if instant.action == "savepoint"}
    restores = {instant.requested: instant for instant in timeline if instant.action == "restore"}
    pending = {instant.requested for instant in timeline.pending} - making.keys()
    left = [requested for requested in find_own_heartbeats(storage) if requested not in pending]
    if left:
        confirm()
    for requested in left:
        if requested in making:
            storage.delete(timeline.layout.path(making[requested]))
        if requested in restores:
            forget_rollbacks(storage, timeline, restores[requested])
        remove_markers(storage, requested)
        remove_heartbeat(storage, requested)
    return bool(left)
