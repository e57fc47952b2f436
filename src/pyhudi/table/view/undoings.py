"""What rollbacks and restores on the timeline touched."""

from collections.abc import Iterable
from contextlib import suppress

from pyhudi.errors import NotFound
from pyhudi.format.timeline.action_files import decode_restore_metadata, decode_rollback_metadata
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import RollbackMetadata
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import Timeline


def newest_undoings(storage: Storage, timeline: Timeline) -> dict[str, str]:
    """Partition -> requested time of the newest completed rollback or restore on the timeline that touched it.

    One get for each rollback and restore. One that is archived meanwhile is left out.
    """
    found: dict[str, str] = {}
    for instant in timeline:
        if instant.is_completed and instant.action in ("rollback", "restore"):
            with suppress(NotFound):
                found |= {
                    partition: instant.requested
                    for done in _read(storage, timeline, instant)
                    for partition in done.partition_metadata
                }
    return found


def _read(storage: Storage, timeline: Timeline, instant: Instant) -> Iterable[RollbackMetadata]:
    path = timeline.layout.path(instant)
    content = storage.get(path)
    if instant.action == "rollback":
        return [decode_rollback_metadata(content, path=path)]
    of_writes = decode_restore_metadata(content, path=path).rollbacks.values()
    return [done for of_write in of_writes for done in of_write if done is not None]
