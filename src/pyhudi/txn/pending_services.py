"""Taking a pending compaction, log compaction or clustering off the timeline.

A pending service is not dead because nobody runs it: its plan may wait for whoever runs services next. Dead is one of
pyhudi's own that was begun by a process that has ended. It may be done anew, or taken off.
"""

import logging
from collections.abc import Collection

from pyhudi.errors import Invalid
from pyhudi.format.names import LogFileName, heartbeat_path
from pyhudi.model.instant import Instant
from pyhudi.model.versions import LogNaming
from pyhudi.table.pending import FileGroup, read_pending_groups
from pyhudi.table.snapshot import Snapshot
from pyhudi.txn.guard import forget_running, is_surely_dead
from pyhudi.txn.heartbeat import has_own_heartbeat
from pyhudi.txn.service_action import refuse_running
from pyhudi.txn.session import WriteSession
from pyhudi.txn.undo.rollback import RolledBack, run_rollback

log = logging.getLogger("pyhudi")


def take_off(session: WriteSession, instant: Instant) -> RolledBack:
    """Roll a pending service back: what it wrote goes, then its plan.

    Raises: Conflict while another process runs it; Invalid where rows hang on its plan.
    """
    refuse_running(session, instant)
    if _has_logs_upon(session.snapshot, instant):
        raise Invalid(
            f"rollback of '{instant.requested}': expected no rows that were written upon the plan of this "
            f"{instant.action}, found logs that bear its time; compact() carries it out"
        )
    done = run_rollback(session.table, session.snapshot.timeline, instant)
    forget_running(session.access.guard, instant.requested)
    return done


def take_off_dead(session: WriteSession, partitions: Collection[str] | None) -> bool:
    """Roll back the dead services that would rewrite file groups of these partitions (None: of any). Whether there
    were any. One upon which rows were written stays, for only its next run can end it.

    Requests: a get each pending service, and one or two for each of these.
    """
    snapshot = session.snapshot
    found = {of for group, of in read_pending_groups(snapshot.storage, snapshot.timeline).items()
             if partitions is None or group[0] in partitions}  # fmt: skip
    dead = [of for of in found if _is_dead(session, of) and not _has_logs_upon(snapshot, of)]
    for instant in sorted(dead, key=lambda of: of.requested, reverse=True):
        log.info("%s: %s '%s' died and is rolled back", session.access.location.uri, instant.action, instant.requested)
        take_off(session, instant)
    return bool(dead)


def _is_dead(session: WriteSession, instant: Instant) -> bool:
    """Whether pyhudi began it and nobody runs it: by its process or, where nobody knows of that, by its heartbeat."""
    access = session.access
    if is_surely_dead(access.guard, instant.requested):
        return True
    beat = access.storage.head(heartbeat_path(instant.requested)) if instant.state == "INFLIGHT" else None
    if beat is None or access.clock.now_ms() - beat.modified_ms <= session.heartbeat.expires_ms:
        return False
    return has_own_heartbeat(access.storage, instant.requested)


def _has_logs_upon(snapshot: Snapshot, instant: Instant) -> bool:
    """Whether logs are called after a compaction that is pending: up to version 6 they belong to its slice, and
    without it to none. One listing a partition of its plan.
    """
    if instant.action != "compaction" or snapshot.config.version.log_naming is not LogNaming.AFTER_SLICE:
        return False
    pending = read_pending_groups(snapshot.storage, snapshot.timeline)
    groups: set[FileGroup] = {group for group, of in pending.items() if of.requested == instant.requested}
    for partition in {partition for partition, _ in groups}:
        for file in snapshot.listing.files(partition):
            name = LogFileName.parse(file.name)
            if name is not None and name.instant == instant.requested and (partition, name.file_id) in groups:
                return True
    return False
