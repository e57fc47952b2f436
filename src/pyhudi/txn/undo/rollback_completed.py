"""Taking back a write that has completed.

Once the write's completed file is deleted, the write looks like one that died. Before that moment no other file of the
write is touched. After that moment any writer can finish the rollback by its plan. Spec: format/actions.md section 5.
"""

import logging
from datetime import tzinfo

from pyhudi.errors import Conflict
from pyhudi.format.timeline.action_files import encode_rollback_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import TableConfig
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.txn.action.run import ActionTable, delete_pending_states
from pyhudi.txn.locks.heartbeat import has_own_heartbeat, put_heartbeat, remove_heartbeat
from pyhudi.txn.locks.life import LifeTerms
from pyhudi.txn.undo.restore_plan import plan_undo
from pyhudi.txn.undo.rollback import RolledBack, run_rollback
from pyhudi.txn.undo.rollback_plan import list_pending_plans

log = logging.getLogger("pyhudi")


def roll_back_completed(
    table: ActionTable, config: TableConfig, timeline: Timeline, target: Instant, *, zone: tzinfo
) -> RolledBack:
    """Take a completed write back. The caller holds the guard, and knows that no later write builds upon this one.

    Order: participants give up what they cannot undo; the plan, which reads the completed file; the heartbeat, by which
    the next writer knows that the rollback is pyhudi's; the completed file is deleted; then the steps of
    `run_rollback`. The heartbeat comes right before the plan's file: whoever takes the table from a writer that stands
    still removes heartbeats of instants that are not on the timeline. Plans of other tools for the same write go first:
    while the write is complete, nothing of them has been done.
    """
    assert target.is_completed
    storage, requested = table.storage, table.issue_instant()
    table.confirm()
    for participant in table.participants:
        participant.before_rollback(target.requested, requested)

    plan = plan_undo(storage, timeline, config, target, {target.requested})
    table.confirm()
    for other, planned, _ in list_pending_plans(storage, timeline):
        if other == target.requested:
            delete_pending_states(storage, table.layout, Instant(planned, "rollback", "REQUESTED"))
    put_heartbeat(storage, requested)
    table.request(Instant(requested, "rollback", "REQUESTED"), encode_rollback_plan(plan))
    table.confirm()
    storage.delete(table.layout.path(target))

    now = read_timeline(storage, table.layout, zone)
    pending = next((i for i in now.pending if i.requested == target.requested), None)
    if pending is None:
        table.confirm()
        raise Conflict(f"{target.action} '{target.requested}': another writer rolled it back meanwhile")
    return run_rollback(table, now, pending)


def end_rollbacks(table: ActionTable, timeline: Timeline, life: LifeTerms) -> tuple[tuple[RolledBack, ...], bool]:
    """End the pending rollbacks that no pending write stands for. Returns those that were done, and whether any ended.

    pyhudi's plans for writes that are still complete, or gone, are dropped. The writer of a plan for a complete write
    died before it took anything back. The writer of a plan for a write that is gone stood still for longer than its
    lease, while another writer rolled the same write back.

    Another tool's rollback of a write that is gone is finished by its plan. Seen: Apache Hudi deletes the write's
    instant before it completes the rollback, and once others have written, it can neither finish the rollback nor begin
    a write ("Found commits after time"; 0.15.0, 1.0.2, 1.2.0).

    The rollbacks of a restore that died right after it had completed are left to `remove_leftovers`.
    The caller holds the guard. Requests: two gets and a head per pending rollback, and a get for each restore.
    Raises: Conflict for such a rollback that another tool may be about to complete.
    """
    storage = table.storage
    plans = list_pending_plans(storage, timeline)
    if plans and any(i.action == "restore" and has_own_heartbeat(storage, i.requested) for i in timeline):
        return (), False

    completed = {i.requested for i in timeline.completed_writes}
    known = {i.requested for i in timeline}
    done: list[RolledBack] = []
    has_dropped = False

    for target, requested, plan in plans:
        if target in known and target not in completed:
            continue
        if has_own_heartbeat(storage, requested):
            log.info("%s: the rollback '%s' has nothing to do, and is dropped", storage.location.uri, requested)
            table.confirm()
            delete_pending_states(storage, table.layout, Instant(requested, "rollback", "REQUESTED"))
            remove_heartbeat(storage, requested)
            has_dropped = True
        elif target not in known and not timeline.is_committed(target):
            _refuse_ending(table, requested, life)
            log.info("%s: finishing rollback '%s', which was left pending", storage.location.uri, requested)
            assert plan.instant_to_rollback is not None
            gone = Instant(target, plan.instant_to_rollback.action, "INFLIGHT")
            done.append(run_rollback(table, timeline, gone))
    return tuple(done), has_dropped or bool(done)


def _refuse_ending(table: ActionTable, requested: str, life: LifeTerms) -> None:
    """Refuse to finish a rollback that another tool may complete at this moment.

    Under a lock that is shared with that tool nobody does. Otherwise the age of its files decides, as that of a
    heartbeat does.
    """
    if life.shares_lock:
        return
    for state in ("INFLIGHT", "REQUESTED"):
        info = table.storage.head(table.layout.path(Instant(requested, "rollback", state)))
        if info is not None and life.now_ms - info.modified_ms <= life.expires_ms:
            raise Conflict(
                f"rollback '{requested}' of another writer is pending, and may be running: retry when it is done, or "
                f"in {life.expires_ms:,} ms, when it counts as dead"
            )


def refuse_planned_rollbacks(storage: Storage, timeline: Timeline) -> None:
    """Refuse to write while another tool is about to take back the newest write.

    Seen: Apache Hudi executes every pending rollback before its next write, and refuses where others have written since
    (`validateRollbackCommitSequence`). Where its policy for failed writes is lazy, 0.15.0 and 1.0.2 take the files away
    from under the later writes. Requests: a get per pending rollback. Raises: Conflict.
    """
    newest = timeline.completed_writes[-1].requested if timeline.completed_writes else None
    for target, requested, _ in list_pending_plans(storage, timeline):
        if target == newest:
            raise Conflict(
                f"rollback '{requested}' of another writer is about to take '{target}' back, and may be running: let "
                f"it finish; where it died, rollback('{target}') brings it to its end"
            )
