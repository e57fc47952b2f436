"""Compacting the metadata table: its base file and log files become one new base file."""

from collections.abc import Callable

from pyhudi.format.commit import encode_commit_avro, encode_compaction_plan
from pyhudi.format.metadata_record import FilesRecord, FileState
from pyhudi.format.schema import without_meta_fields
from pyhudi.metadata.files_partition import read_files_partition
from pyhudi.metadata.table import FILES, MetadataTable
from pyhudi.model.commit import CommitMetadata, CompactionOperation, CompactionPlan
from pyhudi.model.instant import Instant
from pyhudi.services.slice_costs import slice_costs
from pyhudi.timeline.active import Timeline
from pyhudi.txn.commit import complete, settle
from pyhudi.write.metadata_table import write_base_file


def remove_pending_compactions(table: MetadataTable, *, confirm: Callable[[], None]) -> None:
    """Undo compactions of the metadata table that died: whoever holds the guard knows that none runs.

    Their base files are deleted before their instants; logs written since stay with the slice before,
    whose completion rule finds them. Nothing is lost: the next compaction plans anew.

    `confirm` raises where the table is no longer ours: the compaction may be running by now, or have completed, and
    its base file may hold all that the metadata table knows.
    """
    layout = table.timeline.layout
    for instant in table.timeline.pending:
        if instant.action != "compaction":
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
    *,
    deltacommits_max: int,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> bool:
    """Compact the `files` partition once `deltacommits_max` deltacommits lie upon its base file.

    Runs before a commit's own change to the metadata table, under the guard, when no data action is
    half done: every log that it takes is of a completed one. Spec: format/metadata-table.md section 11.

    `confirm` raises where the table is no longer ours: whoever has it then deletes the base file of what it finds
    pending, and completing that would leave a table without its records.
    """
    if table.deltacommits_since_compaction < deltacommits_max:
        return False
    unfinished = {i.requested for i in data_timeline.pending}
    if any(i.requested in unfinished for i in table.timeline.completed_writes):
        return False
    requested = issue_instant()
    layout, storage = table.timeline.layout, table.storage
    records = dict(read_files_partition(table, data_timeline).records())
    plan = CompactionPlan(tuple(_operations(table)))
    storage.put_new(layout.path(Instant(requested, "compaction", "REQUESTED")), encode_compaction_plan(plan))
    storage.put_new(layout.path(Instant(requested, "compaction", "INFLIGHT")), b"")
    live = {key: _without_tombstones(record) for key, record in records.items()}
    stat = write_base_file(table, requested, live)
    metadata = CommitMetadata(
        {FILES: (stat,)}, "COMPACT", {"schema": without_meta_fields(table.record_schema)}, compacted=True
    )
    completed = Instant(requested, "compaction", "COMPLETED", issue_instant())
    confirm()
    settle(complete(storage, layout, completed, encode_commit_avro(metadata)), completed)
    return True


def _without_tombstones(record: FilesRecord) -> FilesRecord:
    return FilesRecord(record.type, {name: FileState(size, False) for name, size in record.live.items()})


def _operations(table: MetadataTable) -> list[CompactionOperation]:
    return [
        CompactionOperation(
            base_instant_time=piece.base_instant,
            delta_file_paths=tuple(log.name.format() for log in piece.log_files),
            data_file_path=piece.base_file.name.format() if piece.base_file else None,
            file_id=piece.file_id,
            partition_path=piece.partition,
            metrics=slice_costs(piece),
        )
        for piece in table.slices(FILES)
    ]
