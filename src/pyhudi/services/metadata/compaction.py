"""Compacting the metadata table. A compaction makes a new base file of each file group's base file and logs. A log
compaction makes one log of a file group's logs.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import chain
from typing import Final

from pyhudi.executor import Executor
from pyhudi.format.log.headers import instant_time, merged_instants
from pyhudi.format.timeline.action_files import encode_compaction_plan
from pyhudi.format.timeline.records import CompactionPlan, WriteStat
from pyhudi.metadata.kinds.registry import get_kind
from pyhudi.metadata.store.slice_records import SliceReader, open_slice
from pyhudi.metadata.store.table import MetadataTable, open_metadata_table
from pyhudi.metadata.store.visibility import block_filter
from pyhudi.services.compaction.inputs import CompactionKind
from pyhudi.services.compaction.plan import operation, plan_log_compaction
from pyhudi.services.compaction.slice_costs import slice_costs
from pyhudi.services.compaction.trigger import why_logs_not_due
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.file_system_view import FileSlice, NewLog
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.run import ActionTable, delete_pending_states
from pyhudi.versions import LogNaming, TableVersion
from pyhudi.write.metadata import by_name
from pyhudi.write.metadata.deltacommit import complete_deltacommit, remove_logs
from pyhudi.write.metadata.group_files import GroupTarget, base_file_name, write_group_base, write_group_log

_KINDS: Final = frozenset(kind.value for kind in CompactionKind)

_QUIET_WRITES_MAX: Final = 200
"""A base file is written anew once so many writes came after it, logs or none."""


@dataclass(frozen=True, slots=True)
class MetadataCompactor:
    """Compacts the metadata table. `partitions`: the complete ones; all of their file groups are compacted together.

    It runs before a commit's own change to the metadata table, under the guard. `confirm` raises if the table is no
    longer ours. Whoever has it then deletes the files of every pending action, and completing such an action would
    leave a table without its records. Memory: as many file groups at a time as the executor has workers.
    """

    table: MetadataTable
    data_timeline: Timeline
    partitions: Collection[str]
    executor: Executor
    issue_instant: Callable[[], str]
    confirm: Callable[[], None]

    def compact_when_due(self, deltacommits_max: int) -> bool:
        """Write a new base file for each file group with logs, once so many deltacommits came since the last time."""
        table = self.table
        if table.deltacommits_since_compaction < deltacommits_max or not self._has_nothing_pending():
            return False

        has_suffixes = table.config.version.metadata_instants.have_suffixes
        requested = by_name.compaction_instant(table) if has_suffixes else self.issue_instant()
        if requested is None:
            return False

        chosen = [file_slice for partition in sorted(self.partitions) for file_slice in _compactable(table, partition)]
        plan = CompactionPlan(tuple(operation(file_slice, slice_costs(file_slice)) for file_slice in chosen))
        tasks = [_Task(table, self.data_timeline, file_slice, requested) for file_slice in chosen]
        self._carry_out(CompactionKind.BASE, requested, plan, _compact, tasks)
        return True

    def log_compact_when_due(self, blocks_min: int) -> bool:
        """Merge each log of at least so many blocks into one log file, once so many deltacommits came since the last
        time.

        Cost: a get for each log, if it is due. Seen: 1.0.2, 1.2.0, 0.15.0 (`HoodieBackedTableMetadataWriter`).
        """
        table = self.table
        if why_logs_not_due(table.timeline, blocks_min) or not self._has_nothing_pending():
            return False

        every = {partition: table.slices(partition) for partition in sorted(self.partitions)}
        plan = plan_log_compaction(
            chain.from_iterable(every.values()), taken=(), new_base_size_bytes=None,
            is_worth_it=lambda file_slice: self._is_worth_log_compaction(file_slice, blocks_min),
        )  # fmt: skip
        if not plan.operations:
            return False

        version = table.config.version
        has_suffixes = version.metadata_instants.have_suffixes
        requested = by_name.log_compaction_instant(table) if has_suffixes else self.issue_instant()
        if requested is None:
            return False

        is_after_slice = version.log_naming is LogNaming.AFTER_SLICE
        names = {partition: by_name.new_logs(table, partition) for partition in every} if is_after_slice else {}
        chosen = plan.file_groups
        tasks = [
            _Task(
                table, self.data_timeline, file_slice, requested, *names.get(partition, {}).get(file_slice.file_id, ())
            )
            for partition, file_slices in every.items()
            for file_slice in file_slices
            if (partition, file_slice.file_id) in chosen
        ]
        self._carry_out(CompactionKind.LOG, requested, plan, _log_compact, tasks)
        return True

    def _has_nothing_pending(self) -> bool:
        """Whether every log belongs to a completed data action, and no compaction is pending.

        An indexing may be pending on the data table's timeline: what is complete here of its index counts.
        A pending compaction still has logs upon it, which only its writer can carry out.

        Where a compaction is named after the newest delta commit, no data action up to that one may be pending.
        Seen: 0.15.0 cannot roll back an action older than such a compaction, and each of its cleans fails then
        (`HoodieBackedTableMetadataWriter.validateRollback`).
        Spec: format/metadata-table.md section 11.
        """
        timeline = self.table.timeline
        if any(i.action in _KINDS for i in timeline.pending):
            return False

        unfinished = {i.requested for i in self.data_timeline.pending if i.action != "indexing"}
        if self.table.config.version.metadata_instants.have_suffixes:
            newest = by_name.newest_deltacommit(self.table)
            return all(requested > newest for requested in unfinished)
        return all(i.requested not in unfinished for i in timeline.completed_writes)

    def _is_worth_log_compaction(self, file_slice: FileSlice, blocks_min: int) -> bool:
        """Whether the log has so many blocks, of more than one instant, that can be merged into one record a key."""
        reader = _log_reader(self.table, file_slice, self.data_timeline)
        has_many = len(reader.blocks) >= blocks_min and len({instant_time(block) for block in reader.blocks}) > 1
        return has_many and get_kind(file_slice.partition).can_merge_log(self.table, reader)

    def _carry_out(
        self, kind: CompactionKind, requested: str, plan: CompactionPlan,
        work: Callable[["_Task"], WriteStat | None], tasks: list["_Task"],
    ) -> None:  # fmt: skip
        actions = ActionTable(self.table.storage, self.table.timeline.layout, self.issue_instant, self.confirm)
        run = actions.begin(requested, kind.value, request=encode_compaction_plan(plan))

        stats: dict[str, list[WriteStat]] = {}
        for stat in self.executor.run(work, tasks):
            if stat is not None:
                stats.setdefault(stat.partition_path or "", []).append(stat)

        complete_deltacommit(self.table, run, stats, kind.operation, is_compaction=True)


def remove_pending_compactions(table: MetadataTable, *, confirm: Callable[[], None]) -> bool:
    """Undo compactions and log compactions of the metadata table that died. Returns whether there were any.

    Whoever holds the guard knows that none is running.
    Their files are deleted before their instants. Logs that were written since stay with the slice before, where
    readers find them by the rule of completion times. Nothing is lost: the next compaction plans anew.

    `confirm` raises if the table is no longer ours: the compaction may be running by now, or have completed, and its
    files may hold all that the metadata table knows.
    """
    has_any = False
    for instant in table.timeline.pending:
        if instant.action not in _KINDS:
            continue
        has_any = True

        # Logs are named after this compaction: only carrying it out shows what is older.
        if by_name.has_logs_upon(table, instant):
            continue

        confirm()
        if instant.action == CompactionKind.LOG.value:
            remove_logs(table, instant.requested)
        else:
            for folder in table.storage.list_folders(""):
                stale = [f.path for f in table.storage.list(folder) if f"_{instant.requested}.hfile" in f.path]
                table.storage.delete_many(stale)
        delete_pending_states(table.storage, table.timeline.layout, instant)
    return has_any


def clear_for_logs(storage: Storage, zone: tzinfo, version: TableVersion, *, confirm: Callable[[], None]) -> None:
    """Undo dead compactions before anything is logged, where logs are named after their slice.

    A writer that only completes its write has not looked for them. Its logs would be named after the dead compaction,
    which nobody could undo then, and the metadata table would never be compacted again.
    Requests: a get and a list in such versions, none in others. `confirm`: as of `remove_pending_compactions`.
    """
    if version.log_naming is LogNaming.AFTER_SLICE:
        remove_pending_compactions(open_metadata_table(storage, zone), confirm=confirm)


@dataclass(frozen=True, slots=True)
class _Task:
    """A file group to compact. `log`, `base_file`: as in `GroupTarget`."""

    table: MetadataTable
    data_timeline: Timeline
    file_slice: FileSlice
    requested: str
    log: NewLog | None = None
    base_file: str = ""

    @property
    def target(self) -> GroupTarget:
        file_slice = self.file_slice
        return GroupTarget(
            self.table.storage, file_slice.partition, file_slice.file_id, self.requested, self.table.record_schema,
            self.table.config.version.log_content, self.log, self.base_file,
        )  # fmt: skip


def _compact(task: _Task) -> WriteStat | None:
    """None if nothing is to be written. Seen: 0.15.0 makes no base file for a group that never had a record."""
    table, file_slice = task.table, task.file_slice
    base_file = base_file_name(file_slice.file_id, task.requested)
    cells = get_kind(file_slice.partition).compacted_cells(table, file_slice, task.data_timeline, base_file=base_file)
    if not len(cells) and file_slice.base_file is None and not table.config.version.compacts_empty_groups:
        return None
    return write_group_base(task.target, cells)


def _log_compact(task: _Task) -> WriteStat:
    reader = _log_reader(task.table, task.file_slice, task.data_timeline)
    merged = get_kind(task.file_slice.partition).merge_log(task.table, reader)
    assert merged is not None, "the plan has left it out"
    stat = write_group_log(task.target, merged.cells, merged.deletes, compacted=merged_instants(merged.blocks))
    return replace(stat, prev_commit=task.file_slice.base_instant)


def _log_reader(table: MetadataTable, file_slice: FileSlice, data_timeline: Timeline) -> SliceReader:
    return open_slice(table.storage, replace(file_slice, base_file=None), block_filter(table, data_timeline))


def _compactable(table: MetadataTable, partition: str) -> Iterator[FileSlice]:
    """The slices with logs beside the one that opened the file group, the slices without a base file, and those that
    were quiet for long: their base file keeps its instant on the timeline, and with it all later ones.
    """
    is_after_slice = table.config.version.log_naming is LogNaming.AFTER_SLICE
    writes = [i.requested for i in table.timeline.completed_writes]
    quiet_until = ""
    if not is_after_slice:
        quiet_until = writes[-_QUIET_WRITES_MAX] if len(writes) >= _QUIET_WRITES_MAX else table.timeline.start or ""
    for file_slice in table.slices(partition):
        is_logged = any(is_after_slice or log.name.instant != file_slice.base_instant for log in file_slice.log_files)
        if file_slice.base_file is None or is_logged or file_slice.base_instant < quiet_until:
            yield file_slice
