"""Writing the metadata table: its creation, a deltacommit for each commit, and undoing one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import tzinfo

from pyhudi.errors import Bug
from pyhudi.format.commit import encode_commit_avro, encode_rollback_metadata, encode_rollback_plan
from pyhudi.format.hfile.writer import encode_hfile
from pyhudi.format.instants import INIT_INSTANT
from pyhudi.format.log.delete import no_deletes
from pyhudi.format.log.writer import encode_delete_block, encode_hfile_block
from pyhudi.format.metadata_record import (
    FILES_TYPE,
    PARTITION_LIST_TYPE,
    PARTITIONS_KEY,
    FilesRecord,
    FileState,
    encode_files_record,
    files_key,
)
from pyhudi.format.names import PARTITION_METAFILE, PROPERTIES, BaseFileName, LogFileName, join
from pyhudi.format.properties import encode_partition_metadata, encode_table_properties
from pyhudi.format.schema import without_meta_fields
from pyhudi.metadata.table import FILES, FILES_GROUP, MetadataTable, metadata_storage, open_metadata_table
from pyhudi.model.commit import (
    CleanMetadata,
    CommitMetadata,
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
    WriteStat,
)
from pyhudi.model.instant import Instant
from pyhudi.storage.protocol import Storage
from pyhudi.table.config import TableConfig
from pyhudi.txn.commit import complete, settle
from pyhudi.txn.hold import Hold

WRITE_TOKEN = "0-0-0"


@dataclass(frozen=True)
class MetadataTableWriter:
    """Keeps the metadata table true with its data table: a participant of every commit.

    `issue_instant`: new times, later than any on either timeline. The caller holds the guard: `hold`, which is
    confirmed before files are deleted and before a deltacommit or a rollback completes.
    """

    storage: Storage
    zone: tzinfo
    issue_instant: Callable[[], str]
    hold: Hold

    def before_completion(self, requested: str, metadata: CommitMetadata) -> None:
        """One deltacommit at the write's own time, complete before the write is.

        A compaction that died after this is done anew under its time, with other files: then what is there under that
        time is written anew too. Spec: format/metadata-table.md section 8.
        """
        table = open_metadata_table(self.storage, self.zone)
        undo_deltacommit(table, requested, confirm=self.hold.confirm)
        write_deltacommit(
            table, requested, files_records(metadata), issue_instant=self.issue_instant, confirm=self.hold.confirm
        )

    def before_clean(self, requested: str, metadata: CleanMetadata) -> None:
        """One deltacommit at the clean's own time, complete before the clean is.

        What an earlier attempt left under that time is written anew: while the clean is pending nobody reads it, and
        no compaction takes it in. Spec: format/metadata-table.md section 8.
        """
        table = open_metadata_table(self.storage, self.zone)
        confirm = self.hold.confirm
        undo_deltacommit(table, requested, confirm=confirm)
        write_deltacommit(
            table, requested, cleaned_records(metadata), issue_instant=self.issue_instant, confirm=confirm
        )

    def roll_back(self, target: str, rollback: str) -> None:
        """Roll the target's deltacommit back, at the same time as the data table's rollback."""
        table = open_metadata_table(self.storage, self.zone)
        theirs = [i for i in table.timeline if i.requested == target and i.action == "deltacommit"]
        if theirs:
            roll_back_deltacommit(
                table, theirs[0], rollback, issue_instant=self.issue_instant, confirm=self.hold.confirm
            )


def files_records(metadata: CommitMetadata) -> dict[str, FilesRecord]:
    """What a commit changes in `files`, by key: its partitions, and the new files of each."""
    new: dict[str, dict[str, int]] = {}
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.path:
                files = new.setdefault(partition, {})
                files[stat.path.rpartition("/")[2]] = stat.file_size_in_bytes or 0
    return listing_records(new)


def cleaned_records(metadata: CleanMetadata) -> dict[str, FilesRecord]:
    """What a clean changes in `files`, by key: tombstones of the files, and of the partitions that are no more."""
    partitions = metadata.partition_metadata
    records = {
        files_key(partition): FilesRecord(
            FILES_TYPE, {name: FileState(0, is_deleted=True) for name in of.delete_path_patterns}
        )
        for partition, of in partitions.items()
    }
    gone = {files_key(p): FileState(0, is_deleted=True) for p, of in partitions.items() if of.is_partition_deleted}
    return {**records, PARTITIONS_KEY: FilesRecord(PARTITION_LIST_TYPE, gone)} if gone else records


def listing_records(files: Mapping[str, Mapping[str, int]]) -> dict[str, FilesRecord]:
    """Records for partitions and their files, the list of partitions among them."""
    records = {
        files_key(partition): FilesRecord(FILES_TYPE, {name: FileState(size, False) for name, size in of.items()})
        for partition, of in files.items()
    }
    partitions = {files_key(partition): FileState(0, False) for partition in files}
    return {**records, PARTITIONS_KEY: FilesRecord(PARTITION_LIST_TYPE, partitions)}


def write_deltacommit(
    table: MetadataTable,
    requested: str,
    records: Mapping[str, FilesRecord],
    *,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> None:
    """One log file with the records, between requested and completed.

    `confirm` raises where the table is no longer ours: the write may be rolled back by now, and a deltacommit that
    completes after that would name files that are gone.
    """
    storage, layout = table.storage, table.timeline.layout
    for state in ("REQUESTED", "INFLIGHT"):
        storage.put_new(layout.path(Instant(requested, "deltacommit", state)), b"")
    name = LogFileName(FILES_GROUP, requested, 1, WRITE_TOKEN).format()
    block = encode_hfile_block(
        encode_hfile(_cells(records, None), schema_text=table.record_schema),
        instant_time=requested,
        schema_text=table.record_schema,
    )
    storage.put(join(FILES, name), block)
    stat = WriteStat(
        file_id=FILES_GROUP, path=join(FILES, name), prev_commit=requested, num_writes=len(records),
        num_update_writes=len(records), total_write_bytes=len(block), partition_path=FILES,
        file_size_in_bytes=len(block), log_version=1, log_offset=0, base_file="", log_files=(name,),
    )  # fmt: skip
    completed = Instant(requested, "deltacommit", "COMPLETED", issue_instant())
    _complete(table, completed, stat, "UPSERT_PREPPED", confirm)


def undo_deltacommit(table: MetadataTable, requested: str, *, confirm: Callable[[], None]) -> None:
    """Take a deltacommit of an action that is pending back to inflight, its log files deleted; nothing for others.

    Order: the completed file goes first, so that no reader misses a log file of a deltacommit that looks whole.
    """
    theirs = next((i for i in table.timeline if i.requested == requested and i.action == "deltacommit"), None)
    if theirs is None:
        return
    confirm()
    if theirs.is_completed:
        table.storage.delete(table.timeline.layout.path(theirs))
    table.storage.delete_many(f.path for f in list(table.storage.list(FILES)) if _log_instant(f.path) == requested)


def roll_back_deltacommit(
    table: MetadataTable,
    target: Instant,
    rollback: str,
    *,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> None:
    """Delete what a deltacommit wrote and its instant, leaving a rollback in its place.

    Order: the completed file goes first, so that no reader takes the deltacommit for whole meanwhile.
    """
    storage, layout = table.storage, table.timeline.layout
    confirm()
    if target.is_completed:
        storage.delete(layout.path(target))
    names = [f.path for f in storage.list(FILES) if _log_instant(f.path) == target.requested]
    root = storage.location.uri.rstrip("/")
    paths = tuple(f"{root}/{name}" for name in names)
    info = InstantInfo(target.requested, "deltacommit")
    plan = RollbackPlan(info, (RollbackRequest(FILES, files_to_be_deleted=paths),) if paths else ())
    storage.put_new(layout.path(Instant(rollback, "rollback", "REQUESTED")), encode_rollback_plan(plan))
    storage.put_new(layout.path(Instant(rollback, "rollback", "INFLIGHT")), b"")
    confirm()
    storage.delete_many(names)
    done = RollbackMetadata(
        start_rollback_time=rollback, time_taken_in_millis=0, total_files_deleted=len(paths),
        commits_rollback=(target.requested,),
        partition_metadata={FILES: RollbackPartitionMetadata(FILES, paths)} if paths else {},
        instants_rollback=(info,),
    )  # fmt: skip
    already = any(i.requested == rollback and i.is_completed for i in table.timeline)
    if not already:
        completed = Instant(rollback, "rollback", "COMPLETED", issue_instant())
        confirm()
        settle(complete(storage, layout, completed, encode_rollback_metadata(done)), completed)
    for state in ("INFLIGHT", "REQUESTED"):
        storage.delete(layout.path(Instant(target.requested, "deltacommit", state)))


def create_metadata_table(
    storage: Storage,
    config: TableConfig,
    files: Mapping[str, Mapping[str, int]],
    *,
    epoch_ms: int,
    zone: tzinfo,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> None:
    """A new metadata table with the `files` partition, holding the given committed files (partition -> name -> bytes).

    Leftovers of an earlier one go first. The caller then names `files` in the data table's properties; until
    then nobody reads it. Spec: format/metadata-table.md sections 1, 7 and 13.
    """
    own = metadata_storage(storage)
    confirm()  # whoever took the table meanwhile may have made one and rely on it
    own.delete_prefix("")
    own.put(PROPERTIES, encode_table_properties(metadata_properties(config), epoch_ms=epoch_ms, is_update=False))
    table = open_metadata_table(storage, zone)
    layout = table.timeline.layout
    own.put_new(
        join(FILES, PARTITION_METAFILE),
        encode_partition_metadata(requested=INIT_INSTANT, partition=FILES, epoch_ms=epoch_ms),
    )
    for state in ("REQUESTED", "INFLIGHT"):
        own.put_new(layout.path(Instant(INIT_INSTANT, "deltacommit", state)), b"")
    # An empty delete block makes the file group visible even where it has no base file.
    log_name = LogFileName(FILES_GROUP, INIT_INSTANT, 1, WRITE_TOKEN).format()
    own.put(join(FILES, log_name), encode_delete_block(no_deletes(), instant_time=INIT_INSTANT))
    stat = write_base_file(table, INIT_INSTANT, listing_records(files))
    _complete(table, Instant(INIT_INSTANT, "deltacommit", "COMPLETED", issue_instant()), stat, "BULK_INSERT", confirm)


def write_base_file(table: MetadataTable, requested: str, records: Mapping[str, FilesRecord]) -> WriteStat:
    """The `files` group's base file at an instant, with all of the records."""
    name = BaseFileName(FILES_GROUP, WRITE_TOKEN, requested, ".hfile").format()
    content = encode_hfile(_cells(records, name), schema_text=table.record_schema)
    table.storage.put(join(FILES, name), content)
    return WriteStat(
        file_id=FILES_GROUP, path=join(FILES, name), prev_commit="null", num_writes=len(records),
        num_inserts=len(records),
        total_write_bytes=len(content), partition_path=FILES, file_size_in_bytes=len(content),
    )  # fmt: skip


def metadata_properties(config: TableConfig) -> dict[str, str]:
    """The properties of a data table's metadata table. Spec: format/metadata-table.md section 1."""
    if not config.layout.has_completion_times:
        raise Bug(f"a metadata table for table version {config.version} is not written by this release")
    return {
        "hoodie.table.name": f"{config.name}_metadata",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(config.version),
        "hoodie.table.initial.version": str(config.version),
        "hoodie.timeline.layout.version": str(config.layout.version),
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.table.timeline.timezone": "UTC" if config.is_utc else "LOCAL",
    }


def _complete(
    table: MetadataTable, instant: Instant, stat: WriteStat, operation: str, confirm: Callable[[], None]
) -> None:
    metadata = CommitMetadata({FILES: (stat,)}, operation, {"schema": without_meta_fields(table.record_schema)})
    confirm()
    settle(complete(table.storage, table.timeline.layout, instant, encode_commit_avro(metadata)), instant)


def _cells(records: Mapping[str, FilesRecord], base_file: str | None) -> Iterable[tuple[bytes, bytes]]:
    return sorted(
        (key.encode(), encode_files_record(record, base_file_name=base_file)) for key, record in records.items()
    )


def _log_instant(path: str) -> str | None:
    name = LogFileName.parse(path.rpartition("/")[2])
    return name.instant if name else None
