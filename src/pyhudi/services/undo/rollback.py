"""Taking back the newest write of a table, or a pending service: the checks before it, and the result.

The rollback itself, and how it goes on after a crash: `txn/undo/rollback_completed.py`.
Spec: format/actions.md section 5.
"""

from dataclasses import dataclass

from pyhudi.errors import Invalid, NotFound
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import MOVES, REWRITES
from pyhudi.index.doubled_logs import refuse_to_end_doubled
from pyhudi.services.undo.restore import clear_the_way, make_metadata_table, refuse_busy
from pyhudi.table.view.cleaned import refuse_cleaned, refuse_cleaned_below
from pyhudi.table.view.commits import read_commit
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.undo.pending_services import take_off
from pyhudi.txn.undo.rollback import RolledBack
from pyhudi.txn.undo.rollback_completed import roll_back_completed


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackResult:
    """What a rollback did.

    `requested`, `completed`: times of the rollback. `rolled_back`: requested time of the write that is gone. `dropped`:
    partitions of the metadata table that were deleted, because the write could not be undone in them.
    """

    requested: str
    completed: str
    rolled_back: str
    files_deleted: int
    dropped: tuple[str, ...] = ()


def roll_back_write(session: WriteSession, requested: str) -> RollbackResult:
    """Take back the newest write, or a pending service, under the guard.

    If the write had died, it was rolled back when the session began; the result then tells of that rollback.
    """
    died = [rolled_back for rolled_back in session.rolled_back if rolled_back.target == requested]
    if died:
        return _result(died[0], ())

    snapshot = session.snapshot
    target = _find(snapshot.timeline, requested)
    if not target.is_completed:
        refuse_to_end_doubled(session.access.storage, snapshot.timeline, requested)
        return _result(take_off(session, target), ())

    _refuse(session, target)
    before = snapshot.config.metadata_partitions_named
    now = clear_the_way(session)
    done = roll_back_completed(session.table, now.config, now.timeline, target, zone=snapshot.zone)
    make_metadata_table(session)
    after = session.access.snapshot().config.metadata_partitions_named
    return _result(done, tuple(sorted(before - after)))


def _find(timeline: Timeline, requested: str) -> Instant:
    found = next((i for i in timeline if i.requested == requested and i.comparable_action in WRITE_ACTIONS), None)
    if found is None:
        raise NotFound(f"rollback of '{requested}': expected a write on the active timeline, found none")
    return found


def _refuse(session: WriteSession, target: Instant) -> None:
    snapshot, requested = session.snapshot, target.requested
    timeline = snapshot.timeline
    refuse_busy(session)

    when = timeline.effective_time
    earlier = sorted((i for i in timeline.completed_writes if when(i) < when(target)), key=when)
    before = earlier[-1].requested if earlier else None
    instead = f"; restore('{before}') takes back all that came after it" if before else ""

    newer = [i.requested for i in timeline.completed_writes if when(i) > when(target)]
    if newer:
        raise Invalid(
            f"rollback of '{requested}': expected the newest commit, found that '{newer[-1]}' came after it{instead}"
        )

    # A plan made since then may name files of the write.
    planned = [i for i in timeline.pending_services if i.requested > requested]
    if planned:
        raise Invalid(
            f"rollback of '{requested}': expected no plan made since then, found "
            f"{planned[0].action} '{planned[0].requested}'; rollback('{planned[0].requested}') takes it off the "
            f"timeline{instead}"
        )

    metadata = read_commit(session.access.storage, timeline, target)
    operation = metadata.operation_type
    if operation in REWRITES | MOVES:
        raise Invalid(
            f"rollback of '{requested}': expected a write of rows, found {operation}, which changed none{instead}"
        )
    if any(i.action == "savepoint" and i.requested == requested for i in timeline):
        raise Invalid(f"rollback of '{requested}': it has a savepoint; delete_savepoint('{requested}') first")

    # The table goes back to the commit before, whose files must all be there.
    refuse_cleaned_below(snapshot, target, metadata, asked=f"rollback of '{requested}'")
    if before is not None:
        refuse_cleaned(snapshot, before, asked=f"rollback of '{requested}' to the state of '{before}'")
    elif timeline.archived_writes():
        raise Invalid(f"rollback of '{requested}': expected the commit before it on the active timeline, where none is")


def _result(done: RolledBack, dropped: tuple[str, ...]) -> RollbackResult:
    return RollbackResult(
        requested=done.requested,
        completed=done.completed,
        rolled_back=done.target,
        files_deleted=done.metadata.total_files_deleted,
        dropped=dropped,
    )
