"""Clearing up after dead writers, at the beginning of a writer's turn.

The writer holds the guard, so nobody else begins or completes an action. Writes and services that are pending may be
running without the guard; those that give a sign of life are left alone. Every step can be repeated. After a crash
between two steps the next writer clears up what is left.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from pyhudi.errors import Conflict
from pyhudi.table.view.restores import read_restore_plan
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.markers import read_markers, remove_lost_files, remove_markers
from pyhudi.txn.action.run import ActionTable
from pyhudi.txn.locks.heartbeat import find_own_heartbeats, has_own_heartbeat, remove_heartbeat
from pyhudi.txn.locks.life import LifeTerms
from pyhudi.txn.locks.running import forget_dead
from pyhudi.txn.undo.leftovers import sweep_leftovers
from pyhudi.txn.undo.restore import RestoreDone, RestoreRun, carry_out_restore, forget_rollbacks
from pyhudi.txn.undo.rollback import RolledBack, find_dead_writes, run_rollback
from pyhudi.txn.undo.rollback_completed import end_rollbacks
from pyhudi.txn.undo.rollback_plan import read_rolled_back

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class ClearedUp:
    """What clearing up did. `snapshot`: the table afterwards."""

    snapshot: Snapshot
    restored: tuple[RestoreDone, ...]
    rolled_back: tuple[RolledBack, ...]


def clear_up(
    table: ActionTable,
    snapshot: Snapshot,
    read_snapshot: Callable[[], Snapshot],
    life: LifeTerms,
    *,
    takes_over: str | None,
    undoes_dead: bool = True,
) -> ClearedUp:
    """Finish or undo what dead writers left. The caller holds the guard.

    `takes_over`: a restore to this instant is finished even if another tool left it pending. `undoes_dead`: dead writes
    are rolled back; if not, they stay pending, as those do that live, except those whose rollback has begun.

    Raises: Conflict for an action that another writer may be running.
    """
    restored: tuple[RestoreDone, ...] = ()
    undone: tuple[RolledBack, ...] = ()

    if snapshot.timeline.pending:
        # Restores go first: a write that a restore has half rolled back looks like a write that died halfway.
        restored = _finish_restores(table, snapshot, takes_over)
        if restored:
            snapshot = read_snapshot()
        ended, has_ended = end_rollbacks(table, snapshot.timeline, life)
        if has_ended:
            snapshot = read_snapshot()

        undone = roll_back_dead(table, snapshot.timeline, life, only_begun=not undoes_dead)
        if undone:
            snapshot = read_snapshot()
        undone = (*ended, *undone)

    if remove_leftovers(table, snapshot.timeline) or undone:
        partitions = (name for done in undone for name in done.partitions)
        sweep_leftovers(
            table.storage, snapshot.config, partitions, now_ms=life.now_ms, heartbeat_expires_ms=life.expires_ms
        )
    forget_dead(life.guard, {instant.requested for instant in snapshot.timeline.pending})
    return ClearedUp(snapshot, restored, undone)


def roll_back_dead(
    table: ActionTable, timeline: Timeline, life: LifeTerms, *, only_begun: bool = False
) -> tuple[RolledBack, ...]:
    """Roll dead writes back, newest first. The caller holds the guard.

    `only_begun`: only those with a rollback on the timeline, since some of their files may be gone.
    Raises: Conflict for a write of another tool that is alive, as `find_dead_writes`.
    """
    dead = find_dead_writes(table.storage, timeline, life)
    if dead and only_begun:
        begun = read_rolled_back(table.storage, timeline, since=dead[-1].requested)
        dead = [instant for instant in dead if instant.requested in begun]
    return tuple(run_rollback(table, timeline, instant) for instant in dead)


def _finish_restores(table: ActionTable, snapshot: Snapshot, takes_over: str | None) -> tuple[RestoreDone, ...]:
    """Finish restores that died. Raises: Conflict for a restore of another writer, which may be running."""
    storage, timeline = table.storage, snapshot.timeline
    run = RestoreRun(table, snapshot.config, timeline)
    done = []

    for restore in timeline.pending_restores:
        if not has_own_heartbeat(storage, restore.requested):
            to = read_restore_plan(storage, timeline, restore).savepoint_to_restore
            if to is None or to != takes_over:
                raise Conflict(
                    f"restore '{restore.requested}' of another writer is pending, and may be running: let it finish; "
                    f'where it died, restore("{to}") brings it to its end'
                )

        log.info("%s: finishing restore '%s', which was left pending", storage.location.uri, restore.requested)
        done.append(carry_out_restore(run, restore))
    return tuple(done)


def remove_leftovers(table: ActionTable, timeline: Timeline) -> bool:
    """Remove markers and heartbeats of our actions that are not pending. Returns whether there were any. One list.

    Such a heartbeat is left when a writer died right before its instant was requested, or right after it completed.
    A completed restore is also finished: the rollbacks that it replaces are deleted. A savepoint in the making is
    deleted as well, because a pending savepoint would hold its files for good.

    Files that markers name go too where the timeline knows no such action: it was rolled back while its writer stood
    still, and its writer then went on for a while. Markers are looked for once more after the heartbeat went, as such a
    writer begins no file without it.

    The hold is confirmed once heartbeats are found. If another writer has taken the table meanwhile, its heartbeat is
    not known to `timeline`, and its markers would be deleted here.
    """
    storage = table.storage
    making = {instant.requested: instant for instant in timeline.pending if instant.action == "savepoint"}
    restores = {instant.requested: instant for instant in timeline if instant.action == "restore"}
    pending = {instant.requested for instant in timeline.pending} - making.keys()
    known = {instant.requested for instant in timeline}

    left = find_own_heartbeats(storage, other_than=pending)
    if left:
        table.confirm()

    for requested in left:
        if requested in making:
            storage.delete(table.layout.path(making[requested]))
        if requested in restores:
            forget_rollbacks(storage, timeline, restores[requested])
        is_unknown = requested not in known and not timeline.is_committed(requested)
        if is_unknown:
            remove_lost_files(storage, requested, read_markers(storage, requested) or ())
        remove_markers(storage, requested)
        remove_heartbeat(storage, requested)
        if is_unknown:
            remove_lost_files(storage, requested, read_markers(storage, requested) or ())
    return bool(left)
