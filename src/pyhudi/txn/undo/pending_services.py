"""Taking a pending compaction, log compaction or clustering off the timeline.

A pending service that nobody runs is not dead yet: its plan may wait for whoever runs services next. A service is
dead when pyhudi began it in a process that has ended. A dead service may be done anew, or taken off the timeline.
"""

import logging
from collections.abc import Collection

from pyhudi.errors import Invalid
from pyhudi.format.names import LogFileName, heartbeat_path
from pyhudi.format.timeline.instant import Instant
from pyhudi.table.view.pending import FileGroup, read_pending_groups
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.service_action import refuse_running
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.locks.heartbeat import has_own_heartbeat
from pyhudi.txn.locks.running import forget_running, is_surely_dead
from pyhudi.txn.undo.rollback import RolledBack, run_rollback
from pyhudi.versions import LogNaming

log = logging.getLogger("pyhudi")


def take_off(session: WriteSession, instant: Instant) -> RolledBack:
    """Roll a pending service back: delete what it wrote, then its plan.

    Raises: Conflict while another process runs the service; Invalid when later rows were written to logs that belong
    to the slice of its plan.
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
    """Roll back the dead services whose plans name file groups of these partitions (None: of any partition).

    Returns whether there were any. A dead service stays if rows were written upon its plan: only its next run can
    end it. Requests: one get per pending service, and one or two more for each that the partitions select.
    """
    snapshot = session.snapshot
    found = {service for group, service in read_pending_groups(snapshot.storage, snapshot.timeline).items()
             if partitions is None or group[0] in partitions}  # fmt: skip
    dead = [service for service in found if _is_dead(session, service) and not _has_logs_upon(snapshot, service)]

    for instant in sorted(dead, key=lambda service: service.requested, reverse=True):
        log.info("%s: %s '%s' died and is rolled back", session.access.location.uri, instant.action, instant.requested)
        take_off(session, instant)
    return bool(dead)


def _is_dead(session: WriteSession, instant: Instant) -> bool:
    """Whether pyhudi began a service and nobody runs it.

    The guard may know that the service's process has ended. If it does not, the heartbeat decides.
    """
    access = session.access
    if is_surely_dead(access.guard, access.storage, instant.requested):
        return True

    beat = access.storage.head(heartbeat_path(instant.requested)) if instant.state == "INFLIGHT" else None
    if beat is None or access.clock.now_ms() - beat.modified_ms <= session.heartbeat.expires_ms:
        return False
    return has_own_heartbeat(access.storage, instant.requested)


def _has_logs_upon(snapshot: Snapshot, instant: Instant) -> bool:
    """Whether the name of a log file bears the time of a pending compaction. One listing per partition of its plan.

    Up to table version 6 a log is named after its file slice, and a pending compaction opens a new slice. Without the
    compaction such a log would belong to no slice.
    """
    if instant.action != "compaction" or snapshot.config.version.log_naming is not LogNaming.AFTER_SLICE:
        return False

    pending = read_pending_groups(snapshot.storage, snapshot.timeline)
    groups: set[FileGroup] = {group for group, service in pending.items() if service.requested == instant.requested}

    for partition in {partition for partition, _ in groups}:
        for file in snapshot.listing.files(partition):
            name = LogFileName.parse(file.name)
            if name is not None and name.instant == instant.requested and (partition, name.file_id) in groups:
                return True
    return False
