"""When a clustering is due."""

from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import MOVES
from pyhudi.services.clustering.settings import ClusteringSettings
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.pending import CLUSTERINGS, is_clustering
from pyhudi.table.view.snapshot import Snapshot


def pending_clusterings(snapshot: Snapshot) -> list[Instant]:
    """The pending clusterings, oldest first. One get for each pending replacecommit."""
    found = (instant for instant in snapshot.timeline.pending if instant.action in CLUSTERINGS)
    return [instant for instant in found if is_clustering(snapshot.storage, snapshot.timeline, instant)]


def plan_path(snapshot: Snapshot, instant: Instant) -> str:
    """Where the plan of a clustering lies, whatever its state is."""
    return snapshot.timeline.layout.path(Instant(instant.requested, instant.action, "REQUESTED"))


def why_not_due(snapshot: Snapshot, settings: ClusteringSettings) -> str:
    """Why no clustering is due, for people; empty when one is due.

    Counts the completed writes that were requested after the newest clustering, pending or completed. Requests: a get
    for each replacecommit among the newest `commits_max` writes. Seen: 1.0.2, 1.2.0 (`ClusteringPlanActionExecutor`).
    """
    commits = 0
    for instant in reversed(snapshot.timeline.instants):
        if commits >= settings.commits_max or _is_clustering(snapshot, instant):
            break
        commits += instant.is_completed and instant.action in WRITE_ACTIONS

    if commits >= settings.commits_max:
        return ""
    return (
        f"{commits:,} commits since the last clustering: expected {settings.commits_max:,} "
        "(hoodie.clustering.inline.max.commits)"
    )


def _is_clustering(snapshot: Snapshot, instant: Instant) -> bool:
    if instant.action not in CLUSTERINGS:
        return False
    if not instant.is_completed:
        return is_clustering(snapshot.storage, snapshot.timeline, instant)
    return read_commit(snapshot.storage, snapshot.timeline, instant).operation_type in MOVES
