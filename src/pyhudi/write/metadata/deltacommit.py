"""A deltacommit of the metadata table: the changes of an action in each of its partitions, or their undoing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.errors import Conflict
from pyhudi.executor import Executor
from pyhudi.format.metadata.groups import MetadataGroupId
from pyhudi.format.metadata.keys import KeyHashing
from pyhudi.format.names import LogFileName
from pyhudi.format.schema.conversion import without_meta_fields
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CommitMetadata, WriteStat
from pyhudi.metadata.derive.changes import PartitionChange
from pyhudi.metadata.store.groups import group_ids, list_groups, list_groups_of, rows_by_group
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.run import ActionRun, ActionTable, Ending, delete_pending_states
from pyhudi.versions import LogNaming, Rollback
from pyhudi.write.metadata import by_name
from pyhudi.write.metadata.group_files import GroupTarget, write_group_log


@dataclass(frozen=True, slots=True)
class Spreading:
    """How changes reach their file groups.

    `hashings`: partition -> how its keys are spread; a partition without an entry spreads whole keys. `new_groups`: in
    a partitioned record index, how many file groups a data partition gets that has none yet.
    """

    executor: Executor
    hashings: Mapping[str, KeyHashing] = field(default_factory=dict)
    new_groups: int = 1

    def hashing(self, partition: str) -> KeyHashing:
        return self.hashings.get(partition, KeyHashing.WHOLE)


@dataclass(frozen=True, slots=True)
class _LogTask:
    target: GroupTarget
    cells: pa.Table
    deletes: pa.Array


class GroupsGone(Conflict):
    """A partition of the metadata table is named but has no file groups. `partition`: its name."""

    def __init__(self, table: str, partition: str) -> None:
        self.partition = partition
        super().__init__(
            f"{table}/{partition}: expected file groups, found none: another writer is about to build this index; "
            f"retry in a moment, or drop_index('{partition}') if its builder is dead"
        )


def write_deltacommit(
    table: MetadataTable,
    requested: str,
    changes: Iterable[PartitionChange],
    spreading: Spreading,
    *,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> None:
    """Write one log file for each file group that a change touches, between requested and completed.

    `changes`: taken one after the other. An empty change writes nothing.
    `confirm` raises if the table is no longer ours. The write may be rolled back by then, and a deltacommit that
    completes afterwards would name files that are gone.
    Cost: a put for each file group; a list request for each partition except `files`; up to version 6 two more.
    Memory: one change and its files.
    """

    actions = ActionTable(table.storage, table.timeline.layout, issue_instant, confirm)
    run = actions.begin(requested, "deltacommit", request=b"")
    stats: dict[str, list[WriteStat]] = {}
    for change in changes:
        if not change.is_empty:
            tasks = _spread(table, requested, change, spreading)
            stats.setdefault(change.partition, []).extend(spreading.executor.run(_write_log, tasks))
    complete_deltacommit(table, run, stats, "UPSERT_PREPPED")


def _spread(table: MetadataTable, requested: str, change: PartitionChange, spreading: Spreading) -> list[_LogTask]:
    """What each file group gets. A data partition without file groups gets new ones, even if they stay empty.

    So it does where all file groups are of deltacommits that are not complete. They may be rolled back, or be some of
    those that a dead writer was about to make. Keys are spread over as many groups as there are: none of them must go.
    """
    owner, unsure = change.data_partition, set[str]()
    if owner is None:
        groups = list_groups(table, change.partition)
    else:
        groups, unsure = list_groups_of(table, change.partition, owner)
        if len(unsure) == len(groups) and table.has_partition(change.partition):
            found = [MetadataGroupId.parse(one, partition=change.partition) for one in groups]
            count = max([spreading.new_groups, *(one.index + 1 for one in found if one is not None)])
            groups = group_ids(table.config.version, change.partition, count, owner)
            unsure = set(groups)
    if not groups:
        raise GroupsGone(table.storage.location.uri, change.partition)

    is_after_slice = table.config.version.log_naming is LogNaming.AFTER_SLICE
    logs = by_name.new_logs(table, change.partition) if is_after_slice else {}

    hashing = spreading.hashing(change.partition)
    cells = rows_by_group(change.cells.column("key").combine_chunks(), len(groups), hashing)
    deletes = rows_by_group(change.deletes, len(groups), hashing)

    return [
        _LogTask(
            GroupTarget(
                table.storage,
                change.partition,
                file_id,
                requested,
                table.record_schema,
                table.config.version.log_content,
                *logs.get(file_id, ()),
            ),
            change.cells.take(cells[number]),
            change.deletes.take(pa.array(deletes[number])),
        )
        for number, file_id in enumerate(groups)
        if file_id in unsure or len(cells[number]) or len(deletes[number])
    ]


def _write_log(task: _LogTask) -> WriteStat:
    return write_group_log(task.target, task.cells, task.deletes)


def complete_deltacommit(
    table: MetadataTable,
    run: ActionRun,
    stats: dict[str, list[WriteStat]],
    operation: str,
    *,
    is_compaction: bool = False,
) -> None:
    """Complete a deltacommit, or a compaction, of the metadata table."""
    metadata = CommitMetadata(
        {partition: tuple(written) for partition, written in stats.items()},
        operation,
        {"schema": without_meta_fields(table.record_schema)},
        compacted=is_compaction,
    )
    run.complete(Ending(table.timeline.layout.encode_commit(metadata)))


def undo_deltacommit(table: MetadataTable, requested: str, *, confirm: Callable[[], None]) -> None:
    """Take a deltacommit of a pending action back to inflight, and delete its log files. Does nothing to other
    instants.

    Order: the completed file goes first, so that no reader misses a log file of a deltacommit that looks whole.
    """
    theirs = next((i for i in table.timeline if i.requested == requested and i.action == "deltacommit"), None)
    if theirs is None:
        return
    confirm()
    if theirs.is_completed:
        table.storage.delete(table.timeline.layout.path(theirs))
    remove_logs(table, requested)


def remove_logs(table: MetadataTable, requested: str) -> None:
    """Take away what a pending action has logged, so that it can be logged anew under the action's time."""
    if table.timeline.layout.kind.rollback is Rollback.COMMAND_BLOCKS:
        by_name.remove_blocks(table, requested, rollback=requested)
        return
    for _, paths in written_logs(table, requested):
        table.storage.delete_many(paths)


def undo_unknown_deltacommits(
    table: MetadataTable, read_data_timeline: Callable[[], Timeline], *, confirm: Callable[[], None]
) -> bool:
    """Take off pending deltacommits of actions that the data table does not know. Returns whether there were any.

    A writer stood still until another had taken its lease and rolled its action back. It logged here before it learnt
    that. No rollback of the data table finds its deltacommit any more.

    An index that is being built stays: the data table has its plan, or its instant here has a suffix. The data timeline
    is read after this one, so that an action that has begun meanwhile is known.
    Requests: none where no deltacommit is pending. Order: the instant goes last, so that a crash leaves it to be found.
    """
    pending = [i for i in table.timeline.pending if i.action == "deltacommit" and by_name.is_of_data(i.requested)]
    if not pending:
        return False

    data = read_data_timeline()
    archived = data.history.instants(requested_from=pending[0].requested, requested_until=pending[-1].requested)
    known = {i.requested for i in (*data, *archived)}

    unknown = [i for i in pending if i.requested not in known]
    for instant in unknown:
        confirm()
        remove_logs(table, instant.requested)
        delete_pending_states(table.storage, table.timeline.layout, instant)
    return bool(unknown)


def undo_log_compactions(table: MetadataTable, *, since: str, confirm: Callable[[], None]) -> bool:
    """Take back log compactions that came after a deltacommit: they may hold what it logged. Returns whether there
    were any.

    The blocks that they merged are still there, in the same slices, and count again.
    """
    later = [i for i in table.timeline if i.requested > since and i.requested in table.timeline.log_compactions]
    layout = table.timeline.layout
    for instant in later:
        confirm()
        if instant.is_completed:
            table.storage.delete(layout.path(instant))
        remove_logs(table, instant.requested)
        delete_pending_states(table.storage, layout, Instant(instant.requested, "logcompaction", "INFLIGHT"))
    return bool(later)


def written_logs(table: MetadataTable, requested: str) -> Sequence[tuple[str, list[str]]]:
    """Partition and paths of the log files that a deltacommit wrote, for the partitions that it wrote to.

    Cost: a list request for each partition.
    """
    found = []
    for partition in table.storage.list_folders(""):
        if not partition.startswith("."):
            paths = [f.path for f in table.storage.list(partition) if _log_instant(f.path) == requested]
            if paths:
                found.append((partition, paths))
    return found


def _log_instant(path: str) -> str | None:
    name = LogFileName.parse(path.rpartition("/")[2])
    return name.instant if name else None
