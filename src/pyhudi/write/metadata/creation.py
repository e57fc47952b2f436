"""A new metadata table, and a new partition in one that exists."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

import pyarrow as pa

from pyhudi.errors import Conflict
from pyhudi.executor import Executor
from pyhudi.format.names import PARTITION_METAFILE, PROPERTIES, join
from pyhudi.format.properties import encode_partition_metadata, encode_table_properties
from pyhudi.format.timeline.instant_text import INIT_INSTANT
from pyhudi.format.timeline.records import WriteStat
from pyhudi.merge.mergers import EVENT_TIME_ID, PAYLOAD_ID
from pyhudi.metadata.derive.changes import CELLS, InitialPartition, PartitionChange, no_keys
from pyhudi.metadata.derive.changes_files import initial_files_change
from pyhudi.metadata.kinds.registry import LISTING, is_listing
from pyhudi.metadata.store.groups import group_ids, list_groups, rows_by_group
from pyhudi.metadata.store.table import (
    MetadataTable,
    delete_metadata_table,
    delete_partition,
    metadata_storage,
    open_metadata_table,
)
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.view.committed_files import PartitionFiles
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.run import ActionTable, delete_pending_states
from pyhudi.versions import KeyGeneratorForm, Merging
from pyhudi.write.metadata import by_name
from pyhudi.write.metadata.deltacommit import complete_deltacommit
from pyhudi.write.metadata.group_files import GroupTarget, base_file_name, write_group_base, write_group_log

_LAST_INIT_INSTANT = f"{999:017d}"


def create_metadata_table(
    storage: Storage,
    config: TableConfig,
    files: Iterable[PartitionFiles],
    *,
    data_timeline: Timeline,
    epoch_ms: int,
    zone: tzinfo,
    executor: Executor,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> None:
    """A new metadata table with the `files` partition, which holds the given committed files.

    Leftovers of an earlier table are deleted first. The caller then names `files` in the data table's properties;
    until then nobody reads the new table. Spec: format/metadata-table.md sections 1, 7 and 13.
    """
    own = metadata_storage(storage)

    # If another writer took the table meanwhile, it may rely on a metadata table that it made.
    confirm()
    delete_metadata_table(storage)
    own.put(PROPERTIES, encode_table_properties(metadata_properties(config), epoch_ms=epoch_ms, is_update=False))
    table = open_metadata_table(storage, zone)

    has_suffixes = config.version.metadata_instants.have_suffixes
    init = by_name.init_instant(config.version, data_timeline) if has_suffixes else INIT_INSTANT
    (group,) = group_ids(config.version, LISTING, 1)
    change = initial_files_change(files, table_version=config.version, base_file=base_file_name(group, init))
    _write_partition(
        table, init, InitialPartition(change.partition, [change], {None: 1}),
        epoch_ms=epoch_ms, executor=executor, issue_instant=issue_instant, confirm=confirm,
    )  # fmt: skip


def create_partition(
    table: MetadataTable,
    initial: InitialPartition,
    *,
    data_timeline: Timeline,
    epoch_ms: int,
    executor: Executor,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> None:
    """A new partition in a metadata table, under the first init instant that is free.

    Leftovers of an earlier partition are deleted first. `data_timeline`: of the data table; up to version 6 an init
    instant is its newest completed instant with a suffix.
    The caller then names the partition in the data table's properties; until then nobody reads it.
    Memory: a change and its files. Spec: format/metadata-table.md section 7.
    """
    assert not is_listing(initial.partition)
    confirm()
    delete_partition(table.storage, initial.partition)

    has_suffixes = table.config.version.metadata_instants.have_suffixes
    if has_suffixes:
        requested = by_name.partition_instant(table, data_timeline, issue_instant)
    else:
        requested = free_init_instant(table)
    _write_partition(
        table, requested, initial, epoch_ms=epoch_ms, executor=executor, issue_instant=issue_instant, confirm=confirm
    )


def free_init_instant(table: MetadataTable) -> str:
    """The first of the instants `00000000000000000`, `…001` and so on that no action has, not even an archived one."""
    taken = {i.requested for i in table.timeline}
    taken |= {i.requested for i in table.timeline.archived_writes(requested_until=_LAST_INIT_INSTANT)}
    return next(instant for instant in (f"{number:017d}" for number in range(len(taken) + 1)) if instant not in taken)


def remove_pending_creations(
    table: MetadataTable, partitions: Collection[str], data_timeline: Timeline, *, confirm: Callable[[], None]
) -> bool:
    """Undo creations of partitions whose writers died. Returns whether there were any. Nobody reads their files.

    `partitions`: those that the data table names; folders of all others are deleted. `data_timeline`: of the data
    table. The instants go last, so that a crash in between leaves them to be found.
    """
    has_suffixes = table.config.version.metadata_instants.have_suffixes
    dead = [
        i
        for i in table.timeline.pending
        if i.action == "deltacommit"
        and (
            by_name.is_of_creation(table, i.requested, data_timeline)
            if has_suffixes
            else i.requested <= _LAST_INIT_INSTANT
        )
    ]
    if not dead:
        return False

    confirm()
    for folder in list(table.storage.list_folders("")):
        if not folder.startswith(".") and folder not in partitions:
            delete_partition(table.storage, folder)

    for instant in dead:
        delete_pending_states(table.storage, table.timeline.layout, instant)
    return True


def open_partition(
    table: MetadataTable,
    requested: str,
    partition: str,
    group_counts: Mapping[str | None, int],
    *,
    epoch_ms: int,
    executor: Executor,
    confirm: Callable[[], None],
) -> None:
    """Make file groups without records, so that writers can log to them while the base files are being built.

    Leftovers are deleted first. A log that writers put there belongs to the slice of a base file at `requested`,
    because it completes later.
    """
    confirm()
    delete_partition(table.storage, partition)
    _put_metafile(table, requested, partition, epoch_ms)
    executor.run(_open_group, _groups(table, requested, partition, group_counts))


def write_bases(table: MetadataTable, requested: str, initial: InitialPartition, executor: Executor) -> list[WriteStat]:
    """The base files of a partition whose file groups were opened. The storage says how many groups there are.

    Readers find them once a deltacommit at `requested` is complete. Memory: a change and its files.
    """
    stats: list[WriteStat] = []
    for change in initial.changes:
        data_partition = change.data_partition
        counts = {data_partition: len(list_groups(table, initial.partition, data_partition))}
        if not counts[data_partition]:
            where = initial.partition if data_partition is None else f"{initial.partition} of '{data_partition}'"
            raise Conflict(f"metadata partition '{where}': expected its file groups, found none: it was dropped")
        stats += executor.run(_write_base, _bases(table, requested, change, replace(initial, group_counts=counts)))
    return stats


def _put_metafile(table: MetadataTable, requested: str, partition: str, epoch_ms: int) -> None:
    content = encode_partition_metadata(requested=requested, partition=partition, epoch_ms=epoch_ms)
    table.storage.put_new(join(partition, PARTITION_METAFILE), content)


def _groups(
    table: MetadataTable, requested: str, partition: str, group_counts: Mapping[str | None, int]
) -> list[GroupTarget]:
    return [
        GroupTarget(table.storage, partition, file_id, requested, table.record_schema, table.config.version.log_content)
        for data_partition, count in group_counts.items()
        for file_id in group_ids(table.config.version, partition, count, data_partition)
    ]


def _write_partition(
    table: MetadataTable,
    requested: str,
    initial: InitialPartition,
    *,
    epoch_ms: int,
    executor: Executor,
    issue_instant: Callable[[], str],
    confirm: Callable[[], None],
) -> None:
    partition = initial.partition
    actions = ActionTable(table.storage, table.timeline.layout, issue_instant, confirm)
    run = actions.begin(requested, "deltacommit", request=b"")

    # An empty delete block makes a file group visible even where it has no base file.
    executor.run(_open_group, _groups(table, requested, partition, initial.group_counts))
    stats = []
    for change in initial.changes:
        stats += executor.run(_write_base, _bases(table, requested, change, initial))

    # Readers who opened an earlier table tell by this file that the partition is whole.
    _put_metafile(table, requested, partition, epoch_ms)
    complete_deltacommit(table, run, {partition: stats}, "BULK_INSERT")


@dataclass(frozen=True, slots=True)
class _BaseTask:
    target: GroupTarget
    cells: pa.Table


def _bases(
    table: MetadataTable, requested: str, change: PartitionChange, initial: InitialPartition
) -> Sequence[_BaseTask]:
    """The base files of a change. A group without records has none."""
    assert not len(change.deletes)
    count = initial.group_counts[change.data_partition]
    groups = group_ids(table.config.version, change.partition, count, change.data_partition)
    rows_of = rows_by_group(change.cells.column("key").combine_chunks(), len(groups), initial.hashing)
    return [
        _BaseTask(
            GroupTarget(
                table.storage,
                change.partition,
                file_id,
                requested,
                table.record_schema,
                table.config.version.log_content,
            ),
            change.cells.take(rows),
        )
        for file_id, rows in zip(groups, rows_of, strict=True)
        if len(rows)
    ]


def _open_group(target: GroupTarget) -> None:
    write_group_log(target, CELLS.empty_table(), no_keys())


def _write_base(task: _BaseTask) -> WriteStat:
    return write_group_base(task.target, task.cells)


def metadata_properties(config: TableConfig) -> dict[str, str]:
    """The properties of a data table's metadata table. Spec: format/metadata-table.md section 1."""
    common = {
        "hoodie.table.name": f"{config.name}_metadata",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(config.version),
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.table.timeline.timezone": "UTC" if config.is_utc else "LOCAL",
    }

    version = config.version
    if version.key_generator is KeyGeneratorForm.KIND:
        keys = {"hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA"}
    else:
        keys = {"hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator"}

    if version.merging is Merging.PAYLOAD:
        merging = {version.strategy_property: EVENT_TIME_ID}
    else:
        merging = {"hoodie.record.merge.mode": "CUSTOM", version.strategy_property: PAYLOAD_ID}

    return {**common, **version.new_timeline_properties(), **keys, **merging}
