"""Taking back a write that has completed: from the moment its completed file is gone it is a write that died.

Before that moment nothing of it is touched, after it any writer brings the rollback to its end, under its plan.
Spec: format/actions.md section 5.
"""

import logging
from datetime import tzinfo

from pyhudi.format.commit import encode_rollback_plan
from pyhudi.model.instant import Instant
from pyhudi.table.config import TableConfig
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.txn.action.run import ActionTable, delete_pending_states
from pyhudi.txn.heartbeat import has_own_heartbeat, put_heartbeat, remove_heartbeat
from pyhudi.txn.undo.restore_plan import plan_undo
from pyhudi.txn.undo.rollback import RolledBack, run_rollback
from pyhudi.txn.undo.rollback_plan import read_pending_plans

log = logging.getLogger("pyhudi")


def roll_back_completed(
    table: ActionTable, config: TableConfig, timeline: Timeline, target: Instant, *, zone: tzinfo
) -> RolledBack:
    """Take a completed write back. The caller holds the guard, and knows that nothing was built upon it.

    Order: heartbeat, by which the next writer knows whose rollback this is; what participants cannot undo; the plan,
    which reads the completed file; the end of that file; then as for a write that died.
    """
    assert target.is_completed
    storage, requested = table.storage, table.issue_instant()
    table.confirm()
    put_heartbeat(storage, requested)
    for participant in table.participants:
        participant.before_rollback(target.requested, requested)

    plan = plan_undo(storage, timeline, config, target, {target.requested})
    table.request(Instant(requested, "rollback", "REQUESTED"), encode_rollback_plan(plan))
    table.confirm()
    storage.delete(table.layout.path(target))

    now = read_timeline(storage, table.layout, zone)
    pending = next(i for i in now.pending if i.requested == target.requested)
    done = run_rollback(table, now, pending)
    remove_heartbeat(storage, requested)
    return done


def drop_unbegun_rollbacks(table: ActionTable, timeline: Timeline) -> bool:
    """Drop plans of ours for writes that are still complete: whoever made them died before anything was taken back.

    Whether there were any. The caller holds the guard. Two gets a pending rollback.
    """
    storage = table.storage
    completed = {i.requested for i in timeline.completed_writes}
    unbegun = [
        requested
        for target, (requested, _) in read_pending_plans(storage, timeline).items()
        if target in completed and has_own_heartbeat(storage, requested)
    ]
    for requested in unbegun:
        log.info("%s: the rollback '%s' died before it began, and is dropped", storage.location.uri, requested)
        table.confirm()
        delete_pending_states(storage, table.layout, Instant(requested, "rollback", "REQUESTED"))
        remove_heartbeat(storage, requested)
    return bool(unbegun)
