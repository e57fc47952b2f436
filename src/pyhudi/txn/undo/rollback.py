"""Rolling back writes that died: first their files are deleted, then their instants. Every step can be repeated."""

from dataclasses import dataclass

from pyhudi.errors import Conflict
from pyhudi.format.timeline.action_files import encode_rollback_metadata, encode_rollback_plan
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import RollbackMetadata
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.pending import CLUSTERINGS, is_clustering
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.markers import remove_markers
from pyhudi.txn.action.run import ActionTable, Ending, delete_pending_states
from pyhudi.txn.locks.heartbeat import put_heartbeat, remove_heartbeat
from pyhudi.txn.locks.life import LifeTerms
from pyhudi.txn.undo.partition_marks import remove_marks_above_rows
from pyhudi.txn.undo.rollback_blocks import put_command_blocks
from pyhudi.txn.undo.rollback_plan import (
    delete_counts,
    delete_files,
    delete_rings,
    plan_rollback,
    read_pending_plans,
    rollback_metadata,
)


def find_dead_writes(storage: Storage, timeline: Timeline, life: LifeTerms) -> list[Instant]:
    """Pending writes that nobody will complete, newest first. The caller holds the guard.

    Raises: Conflict for a pending write of another tool that is alive, unless that tool heeds a lock which we hold.
    """
    dead = []
    for instant in timeline.pending:
        if instant.action not in WRITE_ACTIONS or is_clustering(storage, timeline, instant):
            continue

        beat = life.living(storage, instant.requested)
        if beat is None:
            dead.append(instant)
        elif not beat.is_ours and not life.shares_lock:
            raise Conflict(
                f"{instant.action} '{instant.requested}' of another writer is running (its heartbeat is alive); "
                "retry when it is done, or let both hold one lock (hoodie.write.lock.provider)"
            )
    return sorted(dead, key=lambda instant: instant.requested, reverse=True)


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A rollback that has completed: its times, the write that it undid (`target`), and what it did to files."""

    requested: str
    completed: str
    target: str
    metadata: RollbackMetadata

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions that had files of the target."""
        return tuple(self.metadata.partition_metadata)


def run_rollback(table: ActionTable, timeline: Timeline, target: Instant) -> RolledBack:
    """Roll a pending write back.

    If a rollback of this target is pending already, that rollback is finished, under its own plan and time.
    Order: heartbeat, plan, markers, files, participants, completion, then the target's own instant files. A crash at
    any step leaves either a pending target, which is rolled back again, or no target.
    Spec: format/actions.md section 5.

    The hold is confirmed before each run of deletions and before the completed file. If another writer has taken the
    table, that writer rolls this target back as well. Going on here would then leave a second completed rollback on
    the timeline, or a plan that nobody finishes.
    """
    assert not target.is_completed
    storage = table.storage
    table.confirm()
    remove_heartbeat(storage, target.requested)  # before the plan: a task that puts a marker later sees the write ended

    requested, plan = read_pending_plans(storage, timeline).get(target.requested, (None, None))
    request = None
    if requested is None or plan is None:
        plan = plan_rollback(storage, timeline, target)
        requested, request = table.issue_instant(), encode_rollback_plan(plan)
        put_heartbeat(storage, requested)  # if another writer rolls back this target first, the plan is known as ours
    rollback = table.begin(requested, "rollback", request=request)

    table.confirm()
    # The plan holds what the markers said. The markers go before the files: a task of the target that still runs
    # deletes its own file when its marker is gone, and a file that it showed before that is deleted here.
    remove_markers(storage, target.requested)
    delete_files(storage, plan)
    if target.action in WRITE_ACTIONS:
        remove_marks_above_rows(storage, timeline, target, plan)
    if target.action in CLUSTERINGS:
        delete_rings(storage, plan, target.requested)
        delete_counts(storage, target.requested)
    voided = put_command_blocks(storage, plan.rollback_requests or (), rollback=requested, target=target.requested)

    metadata = rollback_metadata(plan, requested, voided)
    completed = rollback.complete(
        Ending(
            encode_rollback_metadata(metadata),
            tell=lambda participant: participant.roll_back(target.requested, requested, metadata),
        )
    )
    remove_pending_instant(table, target)
    remove_heartbeat(storage, requested)
    assert completed.completed is not None
    return RolledBack(requested, completed.completed, target.requested, metadata)


def remove_pending_instant(table: ActionTable, target: Instant) -> None:
    """Delete an instant's markers and heartbeat, then its inflight, then its requested file."""
    remove_markers(table.storage, target.requested)
    remove_heartbeat(table.storage, target.requested)
    delete_pending_states(table.storage, table.layout, target)
