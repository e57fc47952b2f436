"""Compacting the metadata table: of each file group the base file and the logs become one new base file."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from pyhudi.executor import Executor
from pyhudi.format.commit import encode_compaction_plan
from pyhudi.format.metadata_record import FilesRecord, FileState
from pyhudi.metadata.changes_files import files_change
from pyhudi.metadata.current_cells import read_current_cells
from pyhudi.metadata.files_partition import read_files_partition
from pyhudi.metadata.table import FILES, MetadataTable
from pyhudi.model.commit import CompactionPlan, WriteStat
from pyhudi.model.instant import Instant
from pyhudi.services.compaction_plan import operation
from pyhudi.services.slice_costs import slice_costs
from pyhudi.table.file_system_view import FileSlice
from pyhudi.timeline.active import Timeline
from pyhudi.write.metadata import by_name
from pyhudi.write.metadata.deltacommit import complete_deltacommit
from pyhudi.write.metadata.group_files import GroupTarget, base_file_name, write_group_base


def remove_pending_compactions(table: MetadataTable, *, confirm: Callable[[], None]) -> None:
    """Undo compactions of the metadata table that died: whoever holds the guard knows that none runs.

    Their base files are deleted before their instants; logs written since stay with the slice before,
    whose completion rule finds them. Nothing is lost: the next compaction plans anew.

    `confirm` raises where the table is no longer ours: the compaction may be running by now, or have completed, and
    its base file may hold all that the metadata table knows.
    """
    layout = table.timeline.layout
    for instant in table.timeline.pending:
        if instant.action != "compaction" or by_name.has_logs_upon(table, instant):
            continue
        confirm()
        for folder in table.storage.list_folders(""):
            stale = [f.path for f in table.storage.list(folder) if f"_{instant.requested}.hfile" in f.path]
            table.storage.delete_many(stale)
        table.storage.delete(layout.path(Instant(instant.requested, "compaction", "INFLIGHT")))
        table.storage.delete(layout.path(Instant(instant.requested, "compaction", "REQUESTED")))


def compact_when_due(
    table: MetadataTable,
    data_timeline: Timeline,
    partitions: Collection[str],
    *,
    deltacommits_max: int,
    executor: Executor,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> bool:
    """Compact these partitions, all file groups with logs, once `deltacommits_max` deltacommits came since the last.

    Runs before a commit's own change to the metadata table, under the guard, when no data action is
    half done: every log that it takes is of a completed one. Spec: format/metadata-table.md section 11.

    `confirm` raises where the table is no longer ours: whoever has it then deletes the base file of what it finds
    pending, and completing that would leave a table without its records.
    Memory: as many file groups at a time as the executor has workers.
    """
    if table.deltacommits_since_compaction < deltacommits_max:
        return False
    if any(i.action == "compaction" for i in table.timeline.pending):
        return False  # one with logs upon it, which only its writer can carry out
    # An index that is complete here is so whether or not its builder got to say that on the data table's timeline.
    unfinished = {i.requested for i in data_timeline.pending if i.action != "indexing"}
    if any(i.requested in unfinished for i in table.timeline.completed_writes):
        return False
    requested = by_name.compaction_instant(table) if by_name.names_slices(table.config) else issue_instant()
    layout, storage = table.timeline.layout, table.storage
    chosen = [piece for partition in sorted(partitions) for piece in _compactable(table, partition)]
    plan = CompactionPlan(tuple(operation(piece, slice_costs(piece)) for piece in chosen))
    storage.put_new(layout.path(Instant(requested, "compaction", "REQUESTED")), encode_compaction_plan(plan))
    storage.put_new(layout.path(Instant(requested, "compaction", "INFLIGHT")), b"")
    tasks = [_CompactionTask(table, data_timeline, piece, requested) for piece in chosen]
    stats: dict[str, list[WriteStat]] = {}
    for stat in executor.run(_compact, tasks):
        if stat is not None:
            stats.setdefault(stat.partition_path or "", []).append(stat)
    completed = Instant(requested, "compaction", "COMPLETED", issue_instant())
    complete_deltacommit(table, completed, stats, "COMPACT", confirm, is_compaction=True)
    return True


@dataclass(frozen=True, slots=True)
class _CompactionTask:
    table: MetadataTable
    data_timeline: Timeline
    piece: FileSlice
    requested: str


def _compact(task: _CompactionTask) -> WriteStat | None:
    """None where nothing is to be written. Seen: 0.15.0 makes no base file for a group that never had a record."""
    table, piece = task.table, task.piece
    if piece.partition == FILES:
        records = dict(read_files_partition(table, task.data_timeline).records())
        live = {key: _without_tombstones(record) for key, record in records.items()}
        base_file = base_file_name(piece.file_id, task.requested)
        cells = files_change(live, schema_text=table.record_schema, base_file=base_file).cells
    else:
        cells = read_current_cells(table, piece, task.data_timeline)
    if not len(cells) and piece.base_file is None and by_name.names_slices(table.config):
        return None
    target = GroupTarget(table.storage, piece.partition, piece.file_id, task.requested, table.record_schema)
    return write_group_base(target, cells)


def _compactable(table: MetadataTable, partition: str) -> Iterator[FileSlice]:
    """The slices with logs beside the one that opened the group, and those without a base file."""
    is_by_name = by_name.names_slices(table.config)
    for piece in table.slices(partition):
        is_logged = any(is_by_name or log.name.instant != piece.base_instant for log in piece.log_files)
        if piece.base_file is None or is_logged:
            yield piece


def _without_tombstones(record: FilesRecord) -> FilesRecord:
    return FilesRecord(record.type, {name: FileState(size, False) for name, size in record.live.items()})
