"""Restores that are under way: readers see the table as a restore will leave it from the moment it is requested."""

from collections.abc import Iterator
from dataclasses import replace

from pyhudi.errors import NotFound
from pyhudi.format.commit import decode_restore_plan
from pyhudi.model.commit import RestorePlan
from pyhudi.model.instant import Instant
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import Timeline


def read_restore_plan(storage: Storage, timeline: Timeline, restore: Instant) -> RestorePlan:
    """What a restore was to roll back. One get. Raises: NotFound where it left no plan."""
    path = timeline.layout.path(Instant(restore.requested, "restore", "REQUESTED"))
    return decode_restore_plan(storage.get(path), path=path)


def hide_undone(storage: Storage, timeline: Timeline) -> Timeline:
    """A timeline without the writes that pending restores roll back; the same one where none is pending.

    Between its first step and its last a restore has rolled back some of them and not others: no moment of the table
    was ever like that. One get a pending restore.
    """
    undone: set[str] = set()
    for restore in timeline.pending_restores:
        try:
            plan = read_restore_plan(storage, timeline, restore)
        except NotFound:  # completed meanwhile, or given up
            continue
        undone.update(info.requested for info in plan.instants_to_rollback)
    return replace(timeline, undone=frozenset(undone)) if undone else timeline


def read_restores(storage: Storage, timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Of each completed restore the commit that it went back to, and its own requested time; of those that left their
    plan, which says so. One get each.
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
