"""The plan of a rollback and its metadata. The plan is on the timeline before anything is deleted."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from pyhudi.errors import CorruptFile, NotFound
from pyhudi.format.keys.bucket_counts import counts_path
from pyhudi.format.keys.hashing_metadata import HashingFileName, ring_folder
from pyhudi.format.names import HOODIE, BaseFileName, LogFileName, join
from pyhudi.format.timeline.action_files import decode_rollback_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import (
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
)
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.undoings import read_rollback
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.markers import read_markers
from pyhudi.txn.undo.data_files import only_data_files
from pyhudi.txn.undo.rollback_blocks import partition_logs, requests_by_blocks
from pyhudi.versions import Rollback


def read_pending_plans(storage: Storage, timeline: Timeline) -> dict[str, tuple[str, RollbackPlan]]:
    """The pending rollbacks: requested time of the target -> requested time of its rollback, and the rollback's plan.

    Of two rollbacks of one target, the earlier one. One get per pending rollback. Raises: CorruptFile for a plan that
    cannot be carried out.
    """
    found: dict[str, tuple[str, RollbackPlan]] = {}
    for target, requested, plan in list_pending_plans(storage, timeline):
        found.setdefault(target, (requested, plan))
    return found


def list_pending_plans(storage: Storage, timeline: Timeline) -> list[tuple[str, str, RollbackPlan]]:
    """The targets of all pending rollbacks, with the time and plan of each rollback. As `read_pending_plans`."""
    found: list[tuple[str, str, RollbackPlan]] = []
    for instant in timeline.pending:
        if instant.action != "rollback":
            continue

        path = timeline.layout.path(Instant(instant.requested, "rollback", "REQUESTED"))
        try:
            plan = decode_rollback_plan(storage.get(path), path=path)
        except NotFound:  # the rollback is half removed, and nobody can carry it out any more
            continue

        _refuse_nameless_logs(plan, path)
        if plan.instant_to_rollback is not None:
            found.append((plan.instant_to_rollback.requested, instant.requested, plan))
    return found


def read_rolled_back(storage: Storage, timeline: Timeline, *, since: str) -> set[str]:
    """The requested times of writes that a rollback on the timeline takes back, pending or completed.

    `since`: rollbacks before this time are not looked at. One get per rollback.
    """
    found = set(read_pending_plans(storage, timeline))
    for instant in timeline:
        if instant.action == "rollback" and instant.is_completed and instant.requested > since:
            with suppress(NotFound):  # archived since the timeline was listed, so it has long been finished
                found.update(read_rollback(storage, timeline, instant).commits_rollback)
    return found


def _refuse_nameless_logs(plan: RollbackPlan, path: str) -> None:
    """Refuse a plan whose command blocks would go to anything but logs of data.

    The name of a command block's log is made from the file group that the plan states.
    """
    for request in plan.rollback_requests or ():
        if request.log_blocks_to_be_deleted:
            file_id, base_instant = request.file_id or "", request.latest_base_instant or ""
            name = LogFileName(file_id, base_instant, 1, "1-0-1")
            if LogFileName.parse(name.format()) != name or request.partition_path.split("/")[0] == HOODIE:
                raise CorruptFile(
                    path, 0, expected="a rollback of logs that names their file group, and the time of its base file",
                    found=f"{file_id!r:.60} and {base_instant!r:.60} in partition {request.partition_path!r:.60}",
                    hint="Remove the rollback's files from the timeline: the next write makes a plan of its own.",
                )  # fmt: skip


def plan_rollback(storage: Storage, timeline: Timeline, target: Instant) -> RollbackPlan:
    """The plan that deletes the files of a pending write.

    Its markers name the files. For a write without markers, these are the files whose names carry its time.
    """
    markers = read_markers(storage, target.requested)
    info = InstantInfo(target.requested, target.action)
    if timeline.layout.kind.rollback is Rollback.COMMAND_BLOCKS:
        return RollbackPlan(info, requests_by_blocks(storage, target.requested, markers))

    by_partition: dict[str, list[str]] = {}
    if markers is not None:
        for marker in markers:
            partition, _, name = marker.data_path.rpartition("/")
            by_partition.setdefault(partition, []).append(name)
    else:
        listing = StorageListing(storage)
        for partition in listing.partitions():
            names = [file.name for file in listing.files(partition) if written_at(file.name) == target.requested]
            if names:
                by_partition[partition] = names

    return RollbackPlan(info, deletions(storage, by_partition))


def deletions(storage: Storage, by_partition: Mapping[str, Iterable[str]]) -> tuple[RollbackRequest, ...]:
    """Requests to delete files, one request per partition. `by_partition`: partition -> bare file names."""
    root = storage.location.uri.rstrip("/")
    return tuple(
        RollbackRequest(partition, files_to_be_deleted=tuple(f"{root}/{join(partition, name)}" for name in names))
        for partition, names in sorted(by_partition.items())
    )


def delete_files(storage: Storage, plan: RollbackPlan) -> None:
    """Delete the files that a plan names. Can be repeated.

    Only the bare names of the plan's absolute paths are used, so the table may have moved since the plan was made.
    """
    for request in plan.rollback_requests or ():
        paths = [join(request.partition_path, bare_name(path)) for path in request.files_to_be_deleted]
        storage.delete_many(only_data_files(paths, named_by="the plan of a rollback"))


def delete_rings(storage: Storage, plan: RollbackPlan, requested: str) -> None:
    """Delete the rings of buckets that a resizing at `requested` wrote. Can be repeated.

    The marker goes first: with it the resizing would count, although its file groups are gone.
    """
    for partition in {request.partition_path for request in plan.rollback_requests or ()}:
        for is_marker in (True, False):
            storage.delete(f"{ring_folder(partition)}/{HashingFileName(requested, is_marker=is_marker).format()}")


def delete_counts(storage: Storage, requested: str) -> None:
    """Delete the rules for bucket counts that a rescaling at `requested` wrote. Can be repeated."""
    storage.delete(counts_path(requested))


def written_at(name: str) -> str | None:
    """The instant that the name of a data file carries; None for any other file."""
    if base := BaseFileName.parse(name):
        return base.requested
    log = LogFileName.parse(name)
    return log.instant if log else None


def rollback_metadata(plan: RollbackPlan, requested: str, voided: Mapping[str, dict[str, int]]) -> RollbackMetadata:
    """The metadata of the rollback at `requested`, from its plan. `voided`: partition -> logs with command blocks."""
    info = plan.instant_to_rollback
    assert info is not None
    requests = plan.rollback_requests or ()

    deleted: dict[str, list[str]] = {request.partition_path: [] for request in requests}
    for request in requests:
        deleted[request.partition_path] += request.files_to_be_deleted

    failed = partition_logs(requests)
    partitions = {
        partition: RollbackPartitionMetadata(
            partition, tuple(paths), rollback_log_files=voided.get(partition, {}),
            log_files_from_failed_commit=failed.get(partition, {}),
        )
        for partition, paths in deleted.items()
    }  # fmt: skip

    return RollbackMetadata(
        start_rollback_time=requested,
        time_taken_in_millis=0,
        total_files_deleted=sum(len(p.success_delete_files) for p in partitions.values()),
        commits_rollback=(info.requested,),
        partition_metadata=partitions,
        instants_rollback=(info,),
    )


def bare_name(path: str) -> str:
    return path.rpartition("/")[2]
