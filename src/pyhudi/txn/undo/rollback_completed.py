"""Taking back a write that has completed.

Once the write's completed file is deleted, the write looks like one that died. Before that moment no other file of the
write is touched. After that moment any writer can finish the rollback by its plan. Spec: format/actions.md section 5.
"""

import logging
from datetime import tzinfo

from pyhudi.format.timeline.action_files import encode_rollback_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.table.facts.config import TableConfig
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.txn.action.run import ActionTable, delete_pending_states
from pyhudi.txn.locks.heartbeat import has_own_heartbeat, put_heartbeat, remove_heartbeat
from pyhudi.txn.undo.restore_plan import plan_undo
from pyhudi.txn.undo.rollback import RolledBack, run_rollback
from pyhudi.txn.undo.rollback_plan import read_pending_plans

log = logging.getLogger("pyhudi")


def roll_back_completed(
    table: ActionTable, config: TableConfig, timeline: Timeline, target: Instant, *, zone: tzinfo
) -> RolledBack:
    """Take a completed write back. The caller holds the guard, and knows that no later write builds upon this one.

    Order: the heartbeat, by which the next writer knows that the rollback is pyhudi's; participants give up what they
    cannot undo; the plan, which reads the completed file; the completed file is deleted; then the steps of
    `run_rollback`.
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
    """Drop pyhudi's rollback plans for writes that are still complete. Returns whether there were any.

    The writer of such a plan died before it took anything back. The caller holds the guard. Requests: two gets per
    pending rollback.
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
