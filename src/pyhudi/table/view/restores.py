"""Restores: while one is pending, readers see the table as the restore will leave it."""

from collections.abc import Iterator
from dataclasses import replace

from pyhudi.errors import NotFound
from pyhudi.format.timeline.action_files import decode_restore_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import RestorePlan
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import Timeline


def read_restore_plan(storage: Storage, timeline: Timeline, restore: Instant) -> RestorePlan:
    """The plan of a restore. One get. Raises: NotFound if the restore left no plan."""
    path = timeline.layout.path(Instant(restore.requested, "restore", "REQUESTED"))
    return decode_restore_plan(storage.get(path), path=path)


def hide_undone(storage: Storage, timeline: Timeline) -> Timeline:
    """The timeline without the writes that pending restores roll back. The same timeline if no restore is pending.

    A restore rolls back one write after the other. In between, the table is in a state that it never had.
    One get for each pending restore.
    """
    undone: set[str] = set()
    for restore in timeline.pending_restores:
        try:
            plan = read_restore_plan(storage, timeline, restore)
        except NotFound:  # the restore was completed or given up meanwhile
            continue
        undone.update(info.requested for info in plan.instants_to_rollback)
    return replace(timeline, undone=frozenset(undone)) if undone else timeline


def read_restores(storage: Storage, timeline: Timeline) -> Iterator[tuple[str, str]]:
    """For each completed restore, the commit that it went back to, and its own requested time.

    Restores that left no plan are skipped: only the plan names the commit. One get for each.
    """
    for restore in timeline:
        if restore.action != "restore" or not restore.is_completed:
            continue
        try:
            to = read_restore_plan(storage, timeline, restore).savepoint_to_restore
        except NotFound:
            continue
        if to is not None:
            yield to, restore.requested
