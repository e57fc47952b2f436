"""Restoring a table: every write after a chosen commit is rolled back, newest first. Every step can be repeated.

A requested restore is always brought to its end, by the next writer or the next restore, because files that it takes
back may be gone already. From the moment the restore is requested, readers see the table as it will be at its end
(`table/view/restores.py`); nobody sees a state in between. Spec: format/actions.md section 6.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pyhudi.errors import Conflict
from pyhudi.format.timeline.action_files import encode_restore_metadata, encode_restore_plan, encode_rollback_plan
from pyhudi.format.timeline.instant import COMPLETED_ACTION, STATES, Instant
from pyhudi.format.timeline.records import InstantInfo, RestoreMetadata, RestorePlan, RollbackMetadata, RollbackPlan
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.view.restores import read_restore_plan
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import TimelineLayout
from pyhudi.txn.action.markers import remove_markers
from pyhudi.txn.action.run import ActionTable, Ending
from pyhudi.txn.locks.heartbeat import put_heartbeat, remove_heartbeat
from pyhudi.txn.undo.restore_plan import plan_undo
from pyhudi.txn.undo.rollback_blocks import put_command_blocks
from pyhudi.txn.undo.rollback_plan import (
    delete_counts,
    delete_files,
    delete_rings,
    read_pending_plans,
    rollback_metadata,
)

log = logging.getLogger("pyhudi")


@dataclass(frozen=True)
class RestoreRun:
    """What a restore needs. `timeline`: all stored instants, also those that readers no longer see."""

    table: ActionTable
    config: TableConfig
    timeline: Timeline


@dataclass(frozen=True, slots=True)
class RestoreDone:
    """A restore that has completed: its times, the commit that it went back to, and what it rolled back."""

    requested: str
    completed: str
    to: str
    metadata: RestoreMetadata


def request_restore(run: RestoreRun, plan: RestorePlan) -> Instant:
    """Put a restore on the timeline. From then on it will be carried out, even after a crash."""
    table, requested = run.table, run.table.issue_instant()
    table.confirm()
    put_heartbeat(table.storage, requested)
    return table.request(Instant(requested, "restore", "REQUESTED"), encode_restore_plan(plan))


def carry_out_restore(run: RestoreRun, restore: Instant) -> RestoreDone:
    """Carry out a restore that was requested, or continue one that stopped halfway.

    Order: the heartbeat, by which the next writer knows that the restore is pyhudi's; the rollback of each write, the
    newest first; the participants; completion. Last, rollback instants later than the commit are deleted, because they
    tell of writes that no longer exist.
    """
    table, storage, requested = run.table, run.table.storage, restore.requested
    plan = read_restore_plan(storage, run.timeline, restore)
    to = plan.savepoint_to_restore
    if to is None:
        raise Conflict(f"restore '{requested}' does not say to which instant it goes back; let its writer finish it")

    table.confirm()
    put_heartbeat(storage, requested)
    begun = table.begin(requested, "restore")

    undoing = _Undoing(run, restore, frozenset(info.requested for info in plan.instants_to_rollback))
    done = {info.requested: undoing.undo(info) for info in plan.instants_to_rollback}

    metadata = RestoreMetadata(
        start_restore_time=requested,
        time_taken_in_millis=0,
        instants_to_rollback=tuple(done),
        rollbacks={rolled_back: (one,) for rolled_back, one in done.items()},
        restore_instant_info=plan.instants_to_rollback,
    )
    ending = Ending(
        encode_restore_metadata(metadata), tell=lambda participant: participant.restore(to, requested)
    )  # fmt: skip
    completed = begun.complete(ending)

    _forget_rollbacks(storage, table.layout, (*run.timeline.instants, *undoing.made), to)
    remove_heartbeat(storage, requested)
    log.info("%s: restored to '%s'; %s writes were rolled back", storage.location.uri, to, len(done))
    assert completed.completed is not None
    return RestoreDone(requested, completed.completed, to, metadata)


def forget_rollbacks(storage: Storage, timeline: Timeline, restore: Instant) -> None:
    """Finish a restore of ours that died right after it had completed. One get.

    Deletes rollback instants later than the commit that it went back to. Completed rollbacks later than the restore
    itself stay, because they are not part of it.
    """
    to = read_restore_plan(storage, timeline, restore).savepoint_to_restore
    assert to is not None
    known = (i for i in timeline if i.requested < restore.requested or not i.is_completed)
    _forget_rollbacks(storage, timeline.layout, known, to)


def _forget_rollbacks(storage: Storage, layout: TimelineLayout, instants: Iterable[Instant], to: str) -> None:
    for instant in instants:
        if instant.action == "rollback" and instant.requested > to:
            _delete_states(storage, layout, instant, ("rollback",))


@dataclass
class _Undoing:
    """Rolls back the writes of one restore. `undone`: their requested times. `made`: rollbacks requested here."""

    run: RestoreRun
    restore: Instant
    undone: frozenset[str]
    made: list[Instant] = field(default_factory=list)
    pending: dict[str, tuple[str, RollbackPlan]] = field(init=False)

    def __post_init__(self) -> None:
        self.pending = read_pending_plans(self.run.table.storage, self.run.timeline)

    def undo(self, info: InstantInfo) -> RollbackMetadata:
        """Roll one write back. The rollback's plan stays on the timeline until the restore has rolled back every write.

        Order: the completed file goes before any other file, so that no reader takes the write for whole meanwhile.
        """
        storage, layout = self.run.table.storage, self.run.table.layout
        action = COMPLETED_ACTION.get(info.action, info.action)
        stored = (i for i in self.run.timeline.instants if i.requested == info.requested)
        target = next((i for i in stored if i.comparable_action == action), None)

        if info.requested in self.pending:
            requested, plan = self.pending[info.requested]
        elif target is not None:
            requested, plan = self._request(target)
        else:  # an earlier attempt has rolled this write back completely
            return rollback_metadata(RollbackPlan(info), self.restore.requested, {})

        self.run.table.begin(requested, "rollback")
        self.run.table.confirm()
        if target is not None and target.is_completed:
            storage.delete(layout.path(target))

        remove_heartbeat(storage, info.requested)
        remove_markers(storage, info.requested)
        delete_files(storage, plan)
        if action == "replacecommit":
            delete_rings(storage, plan, info.requested)
            delete_counts(storage, info.requested)
        voided = put_command_blocks(storage, plan.rollback_requests or (), rollback=requested, target=info.requested)

        if target is not None:
            self.run.table.confirm()
            services = (service for service, completes_as in COMPLETED_ACTION.items() if completes_as == action)
            _delete_states(storage, layout, Instant(info.requested, action, "INFLIGHT"), (action, *services))

        return rollback_metadata(plan, requested, voided)

    def _request(self, target: Instant) -> tuple[str, RollbackPlan]:
        run, table = self.run, self.run.table
        requested = table.issue_instant()
        plan = plan_undo(table.storage, run.timeline, run.config, target, self.undone)
        table.request(Instant(requested, "rollback", "REQUESTED"), encode_rollback_plan(plan))
        self.made.append(Instant(requested, "rollback", "INFLIGHT"))
        return requested, plan


def _delete_states(storage: Storage, layout: TimelineLayout, instant: Instant, actions: Sequence[str]) -> None:
    """Delete the files of an instant under each of these actions, the highest state first."""
    if instant.is_completed:
        storage.delete(layout.path(instant))
    for state in reversed(STATES[:-1]):
        for action in actions:
            storage.delete(layout.path(Instant(instant.requested, action, state)))
