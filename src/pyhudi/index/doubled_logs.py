"""The logs that writers put beside a pending resizing, for the file groups that it is about to make."""

from pyhudi.errors import Conflict
from pyhudi.format.names import LogFileName, join
from pyhudi.index.planned_rings import becoming
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.slice_log import log_source, slice_blocks
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.pending import read_clustering_plans
from pyhudi.timeline.active import Timeline


def find_doubled_logs(storage: Storage, timeline: Timeline, requested: str) -> list[str]:
    """The paths of such logs, in the table. `requested`: of a pending clustering, which may resize no ring.

    Requests: a get, and a listing of each partition in the plan of a resizing; before version 8 those of `tells_rows`.
    """
    plan = read_clustering_plans(storage, timeline, {requested}).get(requested)
    groups = {} if plan is None else becoming(plan, path=f"the plan of clustering '{requested}'")
    made = frozenset().union(*groups.values())
    listing = StorageListing(storage)
    logs = [
        (join(partition, file.name), file.size_bytes)
        for partition in sorted({partition for partition, _ in made})
        for file in listing.files(partition)
        if (log := LogFileName.parse(file.name)) is not None and (partition, log.file_id) in made
    ]
    return [path for path, size_bytes in logs if tells_rows(storage, timeline, path, size_bytes)]


def tells_rows(storage: Storage, timeline: Timeline, path: str, size_bytes: int) -> bool:
    """Whether a log may hold anything that counts. Before version 8 a write that died leaves logs that hold nothing.

    Requests: none from version 8 on, where the rollback of a write deletes its logs; otherwise those that the headers
    of a log's blocks take.
    """
    if timeline.layout.has_completion_times:
        return True
    return bool(slice_blocks([log_source(storage, path, size_bytes)], timeline.is_committed))


def refuse_to_end_doubled(storage: Storage, timeline: Timeline, requested: str) -> None:
    """Refuse to end a resizing, for which rows have been logged, without carrying it out.

    Nobody would see these rows, until the timeline begins after the resizing: from then on readers would take them for
    rows of the table. Requests: as `find_doubled_logs`. Raises: Conflict.
    """
    if logs := find_doubled_logs(storage, timeline, requested):
        raise Conflict(
            f"clustering '{requested}' resizes buckets, and writes have logged their rows for what it makes, as in "
            f"{logs[0]}; carry it out: run_clusterings(); or restore the table to a commit before it"
        )
