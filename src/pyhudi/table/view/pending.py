"""File groups that pending table services are about to rewrite."""

from collections.abc import Collection

from pyhudi.errors import NotFound
from pyhudi.format.timeline.action_files import decode_compaction_plan, decode_requested_replace
from pyhudi.format.timeline.instant import PENDING_SERVICE_ACTIONS, Instant
from pyhudi.format.timeline.records import ClusteringPlan, RequestedReplaceMetadata
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import Timeline

FileGroup = tuple[str, str]
"""Partition path and file id."""

CLUSTERINGS = ("clustering", "replacecommit")
"""The actions of clusterings. The second is that of other replacements, too, whose plans name no file groups."""


def read_pending_groups(storage: Storage, timeline: Timeline) -> dict[FileGroup, Instant]:
    """The file groups in the plans of pending compactions, log compactions and clusterings, each with its instant.

    One get for each pending service and each pending replacecommit, which may be a clustering before version 8.
    """
    return {group: instant for instant in timeline.pending for group in _groups_of(storage, timeline, instant)}


def read_planned_logs(storage: Storage, timeline: Timeline) -> dict[FileGroup, frozenset[str]]:
    """The names of the logs that pending compactions will merge into new base files, by file group.

    One get for each pending compaction.
    """
    planned: dict[FileGroup, frozenset[str]] = {}
    for instant in timeline.pending:
        if instant.action == "compaction":
            path = _plan_path(timeline, instant)
            for one in decode_compaction_plan(storage.get(path), path=path).operations or ():
                names = frozenset(log.rpartition("/")[2] for log in one.delta_file_paths or ())
                planned[one.partition_path or "", one.file_id or ""] = names
    return planned


def read_clustering_plans(storage: Storage, timeline: Timeline, wanted: Collection[str]) -> dict[str, ClusteringPlan]:
    """The plans of pending clusterings. `wanted`: their requested times. One get for each."""
    plans = {
        instant.requested: _replace_plan(storage, timeline, instant).clustering_plan
        for instant in timeline.pending
        if instant.requested in wanted and instant.action in CLUSTERINGS
    }
    return {requested: plan for requested, plan in plans.items() if plan is not None}


def is_clustering(storage: Storage, timeline: Timeline, instant: Instant) -> bool:
    """Whether a pending instant is a clustering, whatever its action is called. One get for a replacecommit.

    Spec: format/timeline.md section 2; format/actions.md sections 4 and 9.
    """
    if instant.action != "replacecommit":
        return instant.action == "clustering"
    return _replace_plan(storage, timeline, instant).clustering_plan is not None


def _groups_of(storage: Storage, timeline: Timeline, instant: Instant) -> tuple[FileGroup, ...]:
    if instant.action in CLUSTERINGS:
        return _replace_plan(storage, timeline, instant).file_groups
    if instant.action not in PENDING_SERVICE_ACTIONS:
        return ()
    path = _plan_path(timeline, instant)
    return decode_compaction_plan(storage.get(path), path=path).file_groups


def _replace_plan(storage: Storage, timeline: Timeline, instant: Instant) -> RequestedReplaceMetadata:
    path = _plan_path(timeline, instant)
    try:
        return decode_requested_replace(storage.get(path), path=path)
    except NotFound:  # a rollback has deleted the plan already, so nobody can carry it out
        return RequestedReplaceMetadata()


def _plan_path(timeline: Timeline, instant: Instant) -> str:
    return timeline.layout.path(Instant(instant.requested, instant.action, "REQUESTED"))
