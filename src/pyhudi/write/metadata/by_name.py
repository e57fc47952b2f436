"""The metadata table of table versions up to 6, where it differs: instants of its own have suffixes, logs are called
after their slice, and what is undone is voided by command blocks.

Spec: format/metadata-table.md sections 1, 7, 8 and 11. Seen: 0.15.0.
"""

from collections.abc import Callable, Iterator

from pyhudi.format.commit import encode_rollback_metadata, encode_rollback_plan
from pyhudi.format.log.headers import instant_time
from pyhudi.format.log.reader import scan_log
from pyhudi.format.log.source import MemoryLog
from pyhudi.format.names import LogFileName, join
from pyhudi.metadata.table import FILES, FILES_GROUP, MetadataTable
from pyhudi.model.commit import (
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
)
from pyhudi.model.instant import Instant
from pyhudi.table.config import TableConfig
from pyhudi.table.file_system_view import NewLog
from pyhudi.table.listing import StorageListing
from pyhudi.table.snapshot import log_slicing
from pyhudi.timeline.active import Timeline
from pyhudi.txn.commit import complete, settle
from pyhudi.txn.rollback_blocks import put_command_blocks
from pyhudi.write.log_names import next_log, slice_of_new_logs

INIT_BASE = "0" * 14
INIT_SUFFIX, COMPACTION_SUFFIX, ROLLBACK_SUFFIX = "010", "001", "006"

PROPERTIES = {
    "hoodie.timeline.layout.version": "1",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
}
"""What its properties have in place of those of later versions."""


def names_slices(config: TableConfig) -> bool:
    """Whether logs are called after their slices, and with that whether this module is the one to ask."""
    return log_slicing(config).is_by_name


def init_instant(data: Timeline) -> str:
    """The instant at which a metadata table is made over what is committed."""
    return f"{max((i.requested for i in data if i.is_completed), default=INIT_BASE)}{INIT_SUFFIX}"


def compaction_instant(table: MetadataTable) -> str:
    """That of its next compaction: its newest delta commit's, with a suffix."""
    newest = max(i.requested for i in table.timeline.completed_writes if i.action == "deltacommit")
    return f"{newest}{COMPACTION_SUFFIX}"


def new_log(table: MetadataTable) -> tuple[NewLog, str]:
    """What the next log of the `files` group is called, and the name of its slice's base file, empty without one.

    One list request.
    """
    piece = next(piece for piece in table.slices(FILES) if piece.file_id == FILES_GROUP)
    pending = max((i for i in table.timeline.pending if i.action == "compaction"), key=_requested, default=None)
    names = [file.name for file in StorageListing(table.storage).files(FILES)]
    base_file = piece.base_file.name.format() if piece.base_file is not None else ""
    return next_log(names, FILES_GROUP, slice_of_new_logs(piece.base_instant, pending)), base_file


def has_logs_upon(table: MetadataTable, compaction: Instant) -> bool:
    """Whether logs are called after a pending compaction: then it must be carried out, or readers miss what is before.

    A list request, where names say the slice.
    """
    if not names_slices(table.config):
        return False
    logs = (LogFileName.parse(file.name) for file in StorageListing(table.storage).files(FILES))
    return any(log is not None and log.instant == compaction.requested for log in logs)


def remove_blocks(table: MetadataTable, requested: str, *, rollback: str) -> None:
    """Take what a delta commit has logged away, so that it can be logged anew under its instant: files in which
    nothing else is go, others get a command block. A list request, and a get a log.
    """
    shared = []
    for log, size_bytes, instants in _logs_with(table, requested):
        if instants == {requested}:
            table.storage.delete(join(FILES, log.format()))
        else:
            shared.append(_request(table, log, size_bytes))
    put_command_blocks(table.storage, shared, rollback=rollback, target=requested)


def void_deltacommit(
    table: MetadataTable,
    target: Instant,
    data_rollback: str,
    *,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> None:
    """Roll a delta commit back by command blocks, as a rollback with a suffix to that of the data table.

    Order: the completed file goes first, so that no reader takes the delta commit for whole meanwhile.
    """
    storage, layout, rollback = table.storage, table.timeline.layout, f"{data_rollback}{ROLLBACK_SUFFIX}"
    confirm()
    if target.is_completed:
        storage.delete(layout.path(target))
    info = InstantInfo(target.requested, "deltacommit")
    requests = tuple(_request(table, log, size) for log, size, _ in _logs_with(table, target.requested))
    storage.put_new(
        layout.path(Instant(rollback, "rollback", "REQUESTED")), encode_rollback_plan(RollbackPlan(info, requests))
    )
    storage.put_new(layout.path(Instant(rollback, "rollback", "INFLIGHT")), b"")
    confirm()
    voided = put_command_blocks(storage, requests, rollback=rollback, target=target.requested)
    failed = {path: size for request in requests for path, size in (request.log_blocks_to_be_deleted or {}).items()}
    of_files = RollbackPartitionMetadata(
        FILES, rollback_log_files=voided.get(FILES, {}), log_files_from_failed_commit=failed
    )
    done = RollbackMetadata(
        start_rollback_time=rollback, time_taken_in_millis=0, total_files_deleted=0,
        commits_rollback=(target.requested,), partition_metadata={FILES: of_files} if requests else {},
        instants_rollback=(info,),
    )  # fmt: skip
    if not any(i.requested == rollback and i.is_completed for i in table.timeline):
        completed = Instant(rollback, "rollback", "COMPLETED", issue_instant())
        confirm()
        settle(complete(storage, layout, completed, encode_rollback_metadata(done)), completed)
    for state in ("INFLIGHT", "REQUESTED"):
        storage.delete(layout.path(Instant(target.requested, "deltacommit", state)))


def logs_of_rollback(metadata: RollbackMetadata) -> dict[str, dict[str, int]]:
    """The logs that a rollback of the data table leaves, by partition: those with its blocks, and those that they void.

    Which no commit lists, and readers must find.
    """
    found = {}
    for partition, of in metadata.partition_metadata.items():
        logs = {**(of.log_files_from_failed_commit or {}), **(of.rollback_log_files or {})}
        if logs:
            found[partition] = {path.rpartition("/")[2]: size for path, size in logs.items()}
    return found


def _logs_with(table: MetadataTable, requested: str) -> Iterator[tuple[LogFileName, int, frozenset[str]]]:
    """The logs that hold blocks of an instant, their bytes, and the instants of all of their blocks."""
    for file in StorageListing(table.storage).files(FILES):
        log = LogFileName.parse(file.name)
        if log is None or log.file_id != FILES_GROUP:
            continue
        path = join(FILES, file.name)
        blocks = scan_log(MemoryLog(table.storage.get(path)), file.size_bytes, path=path)
        instants = frozenset(instant_time(block) for block in blocks if block.damage is None)
        if requested in instants:
            yield log, file.size_bytes, instants


def _request(table: MetadataTable, log: LogFileName, size_bytes: int) -> RollbackRequest:
    path = f"{table.storage.location.uri.rstrip('/')}/{join(FILES, log.format())}"
    return RollbackRequest(FILES, log.file_id, log.instant, log_blocks_to_be_deleted={path: size_bytes})


def _requested(instant: Instant) -> str:
    return instant.requested
