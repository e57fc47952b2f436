"""Which writes a restore rolls back, and which files of each write are deleted.

`plan_restore` is pure. `plan_undo` reads the write's commit metadata and lists partitions.
Spec: format/actions.md section 6.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from pyhudi.format.names import LogFileName
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import InstantInfo, RestorePlan, RollbackPlan, RollbackRequest, WriteStat
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.listing import StorageListing
from pyhudi.timeline.active import Timeline
from pyhudi.txn.undo.rollback_plan import deletions, plan_rollback, written_at
from pyhudi.versions import LogNaming

_BY_REQUEST = ("commit", "compaction")


def plan_restore(
    timeline: Timeline, to: Instant, *, is_merge_on_read: bool, is_clustering: Callable[[Instant], bool]
) -> RestorePlan:
    """The plan to roll back every write that came after the completed write `to`, in whatever state.

    "After" is decided by completion times. Compactions of a merge-on-read table, and every write on timeline layout 1,
    are compared by requested times. Order of the plan: pending clusterings, the newest first; then other pending
    writes; then completed writes, the last completed first.
    Seen: 0.15.0, 1.0.2 and 1.2.0.
    """
    assert to.is_completed
    has_times = timeline.layout.has_completion_times
    is_after = _comes_after(timeline, to, is_merge_on_read=is_merge_on_read)
    writes = [i for i in timeline.instants if i.comparable_action in WRITE_ACTIONS]
    first = [i for i in writes if not i.is_completed and i.requested > to.requested and is_clustering(i)]
    others = [i for i in writes if i not in first and is_after(i)]
    if has_times:
        others.sort(key=lambda i: (not i.is_completed, *(_completion(i) if i.is_completed else ("", i.requested))))

    ordered = (*sorted(first, key=lambda i: i.requested, reverse=True), *reversed(others))
    return RestorePlan(tuple(InstantInfo(i.requested, i.action) for i in ordered), savepoint_to_restore=to.requested)


def _comes_after(timeline: Timeline, to: Instant, *, is_merge_on_read: bool) -> Callable[[Instant], bool]:
    has_times = timeline.layout.has_completion_times

    def is_after(instant: Instant) -> bool:
        if not has_times or (is_merge_on_read and instant.action in _BY_REQUEST):
            return instant.requested > to.requested
        return not instant.is_completed or _completion(instant) > _completion(to)

    return is_after


def archived_after(timeline: Timeline, to: Instant, *, is_merge_on_read: bool) -> list[Instant]:
    """The archived writes that a restore to `to` would have to take back. Requests: reads of the history."""
    if timeline.layout.has_completion_times:
        found = timeline.archived_writes(completed_after=to.completed)
    else:
        found = timeline.archived_writes(requested_from=to.requested)
    return list(filter(_comes_after(timeline, to, is_merge_on_read=is_merge_on_read), found))


def taken_back(timeline: Timeline, to: Instant, *, is_merge_on_read: bool) -> frozenset[str]:
    """The requested times of the completed writes that a restore to `to` takes back: those that completed after it.

    Time travel to `to`, and cleans, go by requested times. So a write that the restore takes back may be older to them,
    and one that stays may be newer.
    """
    plan = plan_restore(timeline, to, is_merge_on_read=is_merge_on_read, is_clustering=lambda instant: False)
    return timeline.completed_requested_times & {info.requested for info in plan.instants_to_rollback}


def _completion(instant: Instant) -> tuple[str, str]:
    assert instant.completed is not None
    return instant.completed, instant.requested


def plan_undo(
    storage: Storage, timeline: Timeline, config: TableConfig, target: Instant, undone: Collection[str]
) -> RollbackPlan:
    """How to roll back a completed or pending write of a table that is being restored.

    `undone`: requested times of all writes that the restore rolls back. A completed write's metadata names the files
    that it wrote. Up to table version 6 a log is named after its file slice. Files named after the target are deleted
    with it. A log of a slice that stays gets a command block. A log named after another write in `undone` is left to
    the plan of that write. A table that was upgraded since the write has its logs still: those of slices that stay get
    command blocks, too, and those named after another write in `undone` are deleted at once.
    Requests: one get and, up to version 6 or for a pending write without markers, one list per partition.
    """
    info = InstantInfo(target.requested, target.action)
    logs_after_slice = config.version.log_naming is LogNaming.AFTER_SLICE and config.is_merge_on_read

    if not target.is_completed:
        if logs_after_slice and target.action == "compaction":
            partitions = StorageListing(storage).partitions()
            return RollbackPlan(info, _called_after(storage, target.requested, partitions))
        return plan_rollback(storage, timeline, target)

    stats = read_commit(storage, timeline, target).partition_to_write_stats
    taken_back = {*undone, target.requested}
    if logs_after_slice:
        gone = _called_after(storage, target.requested, stats)
    else:
        gone = _deletions_of_any(
            storage,
            {
                partition: [name for stat in partition_stats for name in _written(stat, target.requested, taken_back)]
                for partition, partition_stats in stats.items()
            },
        )
    return RollbackPlan(info, (*gone, *_voided(storage, stats, taken_back)))


def _names(stat: WriteStat) -> Iterator[str]:
    for path in (stat.path or "", *(stat.cdc_stats or {})):
        yield path.rpartition("/")[2]


def _written(stat: WriteStat, requested: str, undone: Collection[str]) -> Iterator[str]:
    """The names of files that the write at `requested` made, and that no write outside `undone` has a share in.

    Before an upgrade a write named its logs after their slice. Such a slice may be of a compaction in `undone`.
    """
    names = list(_names(stat))
    yield from (name for name in names if written_at(name) == requested)

    log = LogFileName.parse(names[0])
    if log is not None and log.instant != requested and log.instant in undone:
        logs = {names[0], *(path.rpartition("/")[2] for path in stat.log_files or ())}
        yield from sorted(name for name in logs if written_at(name) == log.instant)


def _called_after(storage: Storage, requested: str, partitions: Collection[str]) -> tuple[RollbackRequest, ...]:
    listing = StorageListing(storage)
    return _deletions_of_any(
        storage,
        {
            partition: [file.name for file in listing.files(partition) if written_at(file.name) == requested]
            for partition in partitions
        },
    )


def _deletions_of_any(storage: Storage, names: Mapping[str, Sequence[str]]) -> tuple[RollbackRequest, ...]:
    """As `deletions`, without the partitions that have no file."""
    return deletions(storage, {partition: found for partition, found in names.items() if found})


def _voided(
    storage: Storage, stats: Mapping[str, Sequence[WriteStat]], undone: Collection[str]
) -> Iterator[RollbackRequest]:
    """Requests for command blocks, one for each slice that stays and that the write has logged to."""
    root = storage.location.uri.rstrip("/")
    logs: dict[tuple[str, str, str], dict[str, int]] = {}

    for partition, partition_stats in sorted(stats.items()):
        for stat in partition_stats:
            log = LogFileName.parse((stat.path or "").rpartition("/")[2])
            if log is not None and log.suffix != ".cdc" and log.instant not in undone:
                size_bytes = stat.file_size_in_bytes or stat.total_write_bytes or 1
                logs.setdefault((partition, log.file_id, log.instant), {})[f"{root}/{stat.path}"] = size_bytes

    for (partition, file_id, base_instant), blocks in logs.items():
        yield RollbackRequest(partition, file_id, base_instant, log_blocks_to_be_deleted=blocks)
