"""Rollbacks and restores that are completed: what they did."""

from contextlib import suppress

from pyhudi.errors import NotFound
from pyhudi.format.timeline.action_files import decode_restore_metadata, decode_rollback_metadata
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import RollbackMetadata
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import Timeline


def read_rollback(storage: Storage, timeline: Timeline, rollback: Instant) -> RollbackMetadata:
    """What a completed rollback did. One get. Raises: NotFound if it was archived since the timeline was listed."""
    path = timeline.layout.path(rollback)
    return decode_rollback_metadata(storage.get(path), path=path)


def read_restore(storage: Storage, timeline: Timeline, restore: Instant) -> tuple[RollbackMetadata, ...]:
    """What the rollbacks of a completed restore did. As `read_rollback`."""
    path = timeline.layout.path(restore)
    of_writes = decode_restore_metadata(storage.get(path), path=path).rollbacks.values()
    return tuple(done for of_write in of_writes for done in of_write if done is not None)


def newest_undoings(storage: Storage, timeline: Timeline) -> dict[str, str]:
    """Partition -> requested time of the newest completed rollback or restore on the timeline that touched it.

    One get for each rollback and restore. One that is archived meanwhile is left out.
    """
    found: dict[str, str] = {}
    for instant in timeline:
        if instant.is_completed and instant.action in ("rollback", "restore"):
            with suppress(NotFound):
                found |= dict.fromkeys(_touched(storage, timeline, instant), instant.requested)
    return found


def _touched(storage: Storage, timeline: Timeline, undoing: Instant) -> set[str]:
    """The partitions that a completed rollback or restore touched. As `read_rollback`."""
    if undoing.action == "rollback":
        return {*read_rollback(storage, timeline, undoing).partition_metadata}
    return {partition for done in read_restore(storage, timeline, undoing) for partition in done.partition_metadata}
