"""Taking back a write that has completed.

Once the write's completed file is deleted, the write looks like one that died. Before that moment no other file of the
write is touched. After that moment any writer can finish the rollback by its plan. Spec: format/actions.md section 5.
"""

import logging
from datetime import tzinfo

from pyhudi.errors import Conflict
from pyhudi.format.timeline.action_files import encode_rollback_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.table.facts.config import TableConfig
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.txn.action.run import ActionTable, delete_pending_states
from pyhudi.txn.locks.heartbeat import has_own_heartbeat, put_heartbeat, remove_heartbeat
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
    still removes heartbeats of instants that are not on the timeline.
    """
    assert target.is_completed
    storage, requested = table.storage, table.issue_instant()
    table.confirm()
    for participant in table.participants:
        participant.before_rollback(target.requested, requested)

    plan = plan_undo(storage, timeline, config, target, {target.requested})
    table.confirm()
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


def drop_unbegun_rollbacks(table: ActionTable, timeline: Timeline) -> bool:
    """Drop pyhudi's rollback plans for writes that are still complete, or gone. Returns whether there were any.

    The writer of a plan for a complete write died before it took anything back. The writer of a plan for a write that
    is gone stood still for longer than its lease, while another writer rolled the same write back. The caller holds the
    guard. Requests: two gets per pending rollback.
    """
    storage = table.storage
    completed = {i.requested for i in timeline.completed_writes}
    known = {i.requested for i in timeline}
    unbegun = [
        requested
        for target, requested in list_pending_plans(storage, timeline)
        if (target in completed or target not in known) and has_own_heartbeat(storage, requested)
    ]

    for requested in unbegun:
        log.info("%s: the rollback '%s' has nothing to do, and is dropped", storage.location.uri, requested)
        table.confirm()
        delete_pending_states(storage, table.layout, Instant(requested, "rollback", "REQUESTED"))
        remove_heartbeat(storage, requested)
    return bool(unbegun)
