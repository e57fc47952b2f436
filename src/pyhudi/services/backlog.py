"""What services have before them: the planned actions that have not completed."""

from datetime import tzinfo

from pyhudi.format.timeline.instant_text import parse_instant_ms
from pyhudi.metrics.events import Backlog, Pending
from pyhudi.metrics.listeners import is_listening, tell
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.session import WriteSession

ACTIONS = ("compaction", "logcompaction", "clustering", "clean", "rollback", "indexing")


def pending_services(timeline: Timeline, *, now_ms: int, zone: tzinfo) -> dict[str, Pending]:
    """The pending actions of services, by action. Pure. An action without any is left out."""
    found: dict[str, Pending] = {}
    for action in ACTIONS:
        requested = [instant.requested for instant in timeline.pending if instant.action == action]
        if requested:
            earliest = min(requested)
            age_ms = max(0, now_ms - parse_instant_ms(earliest, zone))
            found[action] = Pending(len(requested), earliest, age_ms)
    return found


def tell_backlog(session: WriteSession) -> None:
    """Tell whoever listens what services have before them. No request: the turn's own view of the timeline counts."""
    if is_listening():
        snapshot, access = session.snapshot, session.access
        pending = pending_services(snapshot.timeline, now_ms=access.clock.now_ms(), zone=snapshot.zone)
        tell(Backlog(access.location.uri, pending))
