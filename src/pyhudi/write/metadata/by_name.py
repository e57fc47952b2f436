"""What is different in the metadata table of table versions 5 and 6.

Its own instants have suffixes. Logs are named after their slice. An undone block is voided by a command block. There
are fewer indexes, and no file defines them.
Spec: format/metadata-table.md sections 1, 7, 8 and 11. Seen: 0.13.1, 0.15.0.

Seen: readers of version 5 heed blocks of instants that the data table has completed, of the initial one, and of those
that end as an index's do (0.13.1 `HoodieBackedTableMetadata.getValidInstantTimestamps`). So there the metadata table is
made at the data table's newest instant, and a restore is told at its own.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping

from pyhudi.errors import Unsupported
from pyhudi.format.log.headers import instant_time
from pyhudi.format.log.reader import scan_log
from pyhudi.format.names import LogFileName, join
from pyhudi.format.timeline.action_files import encode_rollback_metadata, encode_rollback_plan
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import (
    InstantInfo,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
)
from pyhudi.metadata.kinds import registry
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.slices.slice_log import log_source
from pyhudi.table.view.file_system_view import NewLog
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.pending import read_pending_groups
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.run import ActionTable, Ending, delete_pending_states
from pyhudi.txn.undo.rollback_blocks import put_command_blocks
from pyhudi.txn.undo.rollback_plan import rollback_metadata
from pyhudi.versions import LogNaming, MetadataInstants, TableVersion
from pyhudi.write.handles.log_names import next_log, slice_of_new_logs

INIT_BASE = "0" * 14
COMPACTION_SUFFIX, RESTORE_SUFFIX, INDEXING_SUFFIX = "001", "003", "004"
LOG_COMPACTION_SUFFIX, ROLLBACK_SUFFIX = "005", "006"
_INIT_SUFFIXES = range(10, 1000)
_OF_DATA = re.compile(r"\d{17}")
_INIT = re.compile(r"(?:0{14}|\d{17})(?:0[1-9]\d|[1-9]\d\d)")


def kept_partitions(config: TableConfig, partitions: Collection[str]) -> set[str]:
    """The partitions among these that tables of this version have."""
    return registry.partitions_of_version(partitions, config.version)


def refuse_log_compaction(config: TableConfig, blocks_min: int | None) -> None:
    """Raises: Unsupported for log compactions of the metadata table, where tables of this version have none.

    `blocks_min`: from how many blocks on they are asked for; None: not at all.
    """
    if blocks_min is not None and not config.version.has_metadata_log_compaction:
        raise Unsupported(
            f"hoodie.metadata.log.compaction.enable=true: the metadata table of version {config.version} has no log "
            "compactions, and its readers would miss the merged blocks; leave the option out"
        )


def refuse_indexes(config: TableConfig, partitions: Collection[str], *, is_partitioned: bool = False) -> None:
    """Raises: Unsupported for indexes that tables of this version do not have, or that need stored record keys where
    the table has none. `is_partitioned`: the record index that is asked for is kept by partition.
    """
    unknown = registry.absent_forms(partitions, config.version, is_partitioned=is_partitioned)
    if unknown:
        raise Unsupported(
            f"metadata partitions {', '.join(unknown)}: tables of version {config.version} have none such, only "
            f"{', '.join(registry.names_of_version(config.version))} (global); leave out what asks for them"
        )
    of_keys = [] if config.has_meta_fields else registry.made_of_keys(partitions)
    if of_keys:
        raise Unsupported(
            f"metadata partitions {', '.join(of_keys)}: they are of record keys, which a table with "
            "hoodie.populate.meta.fields='false' does not store; leave out what asks for them"
        )


def init_instant(version: TableVersion, data: Timeline) -> str:
    """The instant at which a metadata table is made over what is committed.

    Example: the data table's newest completed instant, in version 6 followed by 010.
    """
    base = _newest_completed(data)
    return base if version.metadata_instants is MetadataInstants.ADOPTED else f"{base}{_INIT_SUFFIXES[0]:03d}"


def partition_instant(table: MetadataTable, data: Timeline, issue_instant: Callable[[], str]) -> str:
    """The instant at which a partition is made in a metadata table: one that no action has, not even an archived one.

    Version 5 knows a single ending for it, so the instant before the ending is a new one.
    """
    if table.config.version.metadata_instants is MetadataInstants.ADOPTED:
        return f"{issue_instant()}{INDEXING_SUFFIX}"
    base = _newest_completed(data)
    taken = {i.requested for i in table.timeline}
    archived = table.timeline.archived_writes(requested_from=base, requested_until=f"{base}999")
    taken |= {i.requested for i in archived}
    return next(instant for instant in (f"{base}{suffix:03d}" for suffix in _INIT_SUFFIXES) if instant not in taken)


def is_of_creation(table: MetadataTable, requested: str, data: Timeline) -> bool:
    """Whether an instant is one at which a partition is made under the guard.

    In version 5 that of an index which is built beside writers looks alike: then the data table has an action for it.
    """
    if table.config.version.metadata_instants is not MetadataInstants.ADOPTED:
        return _INIT.fullmatch(requested) is not None
    if not requested.endswith(INDEXING_SUFFIX) or is_of_data(requested):
        return False
    issued = requested.removesuffix(INDEXING_SUFFIX)
    return all(i.requested != issued for i in data)


def _newest_completed(data: Timeline) -> str:
    return max((i.requested for i in data if i.is_completed), default=INIT_BASE)


def is_of_data(requested: str) -> bool:
    """Whether an instant has the form of the data table's, without a suffix."""
    return _OF_DATA.fullmatch(requested) is not None


def indexing_instant(table: MetadataTable, requested: str) -> str:
    """The instant here of an index that is built beside writers. `requested`: of its plan in the data table."""
    return f"{requested}{INDEXING_SUFFIX}" if _has_suffixes(table) else requested


def sync_instant(table: MetadataTable, restore: str, issue_instant: Callable[[], str]) -> str:
    """The instant of the delta commit that follows a restore. `restore`: the requested time of the data table's."""
    match table.config.version.metadata_instants:
        case MetadataInstants.ADOPTED:
            return restore
        case MetadataInstants.SUFFIXED:
            return f"{issue_instant()}{RESTORE_SUFFIX}"
        case MetadataInstants.ISSUED:
            return issue_instant()


def _has_suffixes(table: MetadataTable) -> bool:
    return table.config.version.metadata_instants.have_suffixes


def compaction_instant(table: MetadataTable) -> str | None:
    """The instant of the table's next compaction: that of its newest delta commit, with a suffix.

    None after a log compaction, which has a suffix itself: there is nothing new to compact.
    """
    newest = newest_deltacommit(table)
    return None if newest in table.timeline.log_compactions else f"{newest}{COMPACTION_SUFFIX}"


def log_compaction_instant(table: MetadataTable) -> str | None:
    """The instant of the table's next log compaction: that of its newest delta commit, with a suffix.

    None after a delta commit that has a suffix: readers would not know two suffixes.
    """
    newest = newest_deltacommit(table)
    return f"{newest}{LOG_COMPACTION_SUFFIX}" if is_of_data(newest) else None


def newest_deltacommit(table: MetadataTable) -> str:
    """The requested time of the newest completed delta commit of the metadata table."""
    return max(i.requested for i in table.timeline.completed_writes if i.action == "deltacommit")


def new_logs(table: MetadataTable, partition: str) -> dict[str, tuple[NewLog, str]]:
    """File group -> the name of its next log, and the name of its slice's base file, empty if there is none.

    Two list requests, and a get for each pending compaction.
    """
    pending = read_pending_groups(table.storage, table.timeline)
    names: dict[str, list[str]] = {}
    for file in StorageListing(table.storage).files(partition):
        log = LogFileName.parse(file.name)
        if log is not None:
            names.setdefault(log.file_id, []).append(file.name)

    found = {}
    for file_slice in table.slices(partition):
        upon = slice_of_new_logs(file_slice.base_instant, pending.get((partition, file_slice.file_id)))
        base_file = file_slice.base_file.name.format() if file_slice.base_file is not None else ""
        found[file_slice.file_id] = next_log(names.get(file_slice.file_id, ()), file_slice.file_id, upon), base_file

    return found


def has_logs_upon(table: MetadataTable, compaction: Instant) -> bool:
    """Whether logs are named after a pending compaction. Then it must be carried out, or readers miss what is older.

    One list request for each partition, in versions whose log names tell the slice.
    """
    if table.config.version.log_naming is LogNaming.AFTER_WRITE:
        return False
    return any(log.instant == compaction.requested for _, log, _ in _logs(table))


def remove_blocks(table: MetadataTable, requested: str, *, rollback: str) -> None:
    """Take away what a delta commit has logged, so that it can be logged anew under its instant.

    A file that holds nothing else is deleted; any other gets a command block. A list request for each partition, and a
    get for each log.
    """
    shared = []
    for partition, log, size_bytes, instants in _logs_with(table, requested):
        if instants == {requested}:
            table.storage.delete(join(partition, log.format()))
        else:
            shared.append(_request(table, partition, log, size_bytes))
    put_command_blocks(table.storage, shared, rollback=rollback, target=requested)


def void_deltacommit(
    table: MetadataTable,
    target: Instant,
    data_rollback: str,
    *,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> None:
    """Roll back a delta commit by command blocks, as a rollback whose instant is the data table's with a suffix.

    Order: the completed file goes first, so that no reader takes the delta commit for whole meanwhile.
    """
    storage, layout, rollback = table.storage, table.timeline.layout, f"{data_rollback}{ROLLBACK_SUFFIX}"
    confirm()
    if target.is_completed:
        storage.delete(layout.path(target))

    info = InstantInfo(target.requested, "deltacommit")
    requests = tuple(
        _request(table, partition, log, size) for partition, log, size, _ in _logs_with(table, target.requested)
    )

    actions = ActionTable(storage, layout, issue_instant, confirm)
    run = actions.begin(rollback, "rollback", request=encode_rollback_plan(RollbackPlan(info, requests)))

    confirm()
    voided = put_command_blocks(storage, requests, rollback=rollback, target=target.requested)
    done = rollback_metadata(RollbackPlan(info, requests), rollback, voided)
    if not any(i.requested == rollback and i.is_completed for i in table.timeline):
        run.complete(Ending(encode_rollback_metadata(done)))
    delete_pending_states(storage, layout, Instant(target.requested, "deltacommit", "INFLIGHT"))


def void_deltacommits(
    table: MetadataTable, targets: Mapping[str, InstantInfo], *, rollback: str
) -> dict[str, RollbackMetadata]:
    """Void what several delta commits have logged by command blocks of the instant `rollback`, newest commit first.

    Returns what was done, by target. Can be repeated. A get for each log, and a list request for each partition and
    target.
    """
    requests: dict[str, list[RollbackRequest]] = {target: [] for target in sorted(targets, reverse=True)}
    for partition, log, size_bytes, instants in _logs_by_instants(table):
        for target in instants & set(targets):
            requests[target].append(_request(table, partition, log, size_bytes))

    done = {}
    for target, own_requests in requests.items():
        voided = put_command_blocks(table.storage, own_requests, rollback=rollback, target=target)
        done[target] = rollback_metadata(RollbackPlan(targets[target], tuple(own_requests)), rollback, voided)
    return done


def logs_of_rollback(metadata: RollbackMetadata) -> dict[str, dict[str, int]]:
    """The logs that a rollback of the data table leaves, by partition: the logs with its blocks, and the logs they
    void.

    No commit lists these logs, but readers must find them.
    """
    found = {}
    for partition, rolled_back in metadata.partition_metadata.items():
        logs = {**(rolled_back.log_files_from_failed_commit or {}), **(rolled_back.rollback_log_files or {})}
        if logs:
            found[partition] = {path.rpartition("/")[2]: size for path, size in logs.items()}
    return found


def _logs(table: MetadataTable) -> Iterator[tuple[str, LogFileName, int]]:
    """Partition, name and bytes of every log."""
    listing = StorageListing(table.storage)
    for partition in table.storage.list_folders(""):
        if not partition.startswith("."):
            for file in listing.files(partition):
                log = LogFileName.parse(file.name)
                if log is not None:
                    yield partition, log, file.size_bytes


def _logs_with(table: MetadataTable, requested: str) -> Iterator[tuple[str, LogFileName, int, frozenset[str]]]:
    """The logs that hold blocks of an instant, with their partition and bytes, and the instants of all of their blocks.

    Order: by partition.
    """
    return (found for found in _logs_by_instants(table) if requested in found[-1])


def _logs_by_instants(table: MetadataTable) -> Iterator[tuple[str, LogFileName, int, frozenset[str]]]:
    """Every log with its partition, its bytes and the instants of its blocks. A get for each log."""
    for partition, log, size_bytes in _logs(table):
        path = join(partition, log.format())
        blocks = scan_log(*log_source(table.storage, path, size_bytes)[1:], path=path)
        yield partition, log, size_bytes, frozenset(instant_time(block) for block in blocks if block.damage is None)


def _request(table: MetadataTable, partition: str, log: LogFileName, size_bytes: int) -> RollbackRequest:
    path = f"{table.storage.location.uri.rstrip('/')}/{join(partition, log.format())}"
    return RollbackRequest(partition, log.file_id, log.instant, log_blocks_to_be_deleted={path: size_bytes})
