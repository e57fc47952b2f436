"""One write, from its input to its commit, the same on every engine."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.errors import Conflict, Invalid
from pyhudi.format.keys.record_keys import KeySpec
from pyhudi.format.names import LogFileName, join
from pyhudi.format.schema.arrow_types import refuse_deep_types
from pyhudi.format.schema.conversion import (
    RECORD_KEY,
    arrow_from_avro,
    avro_from_arrow,
    record_name,
    required_columns,
    with_meta_fields,
)
from pyhudi.format.timeline.records import CommitMetadata, WriteStat
from pyhudi.merge.rules import MergeMode
from pyhudi.table.facts.bucket_facts import facts_of_table
from pyhudi.table.facts.config import KeyKind, TableConfig
from pyhudi.table.read.plan import log_reading, table_rules
from pyhudi.table.view.commits import SCHEMA
from pyhudi.table.view.pending import read_pending_groups
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.layout import TimelineLayout
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.conflicts.verdict import judge_write
from pyhudi.txn.undo.pending_services import take_off_dead
from pyhudi.write.handles.base_file_writer import BaseFileSettings
from pyhudi.write.handles.key_filter import FilterSettings
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.input.inserts import combines_rows, refuse_unchecked, row_order
from pyhudi.write.input.key_settings import refuse_unplaceable
from pyhudi.write.input.made_keys import by_meta_field, finds_made_keys, refuse_without_keys
from pyhudi.write.input.schema import (
    TableColumns,
    carries_some_columns,
    columns_for_delete,
    evolved_schema,
    first_schema,
    refuse_unordered_types,
    refuse_unreadable_parts,
    refuse_unwritable_types,
)
from pyhudi.write.input.source import InputSpec, Operation, PreparedWrite, RowOrder, WriteSource
from pyhudi.write.input.tagging import keys_for, refuse_moving_parts, settles_partitions
from pyhudi.write.place.buckets import refuse_replacing_rings, refuse_unfit_for_buckets
from pyhudi.write.place.placement import place_rows
from pyhudi.write.place.plan import TaskKind, WritePlan
from pyhudi.write.place.replacement import find_partitions, plan_replacement, requested_content
from pyhudi.write.settings import WriteSettings


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did: its times, and rows by what became of them.

    `requested` and `completed` are None where there was nothing to do. `replaced`: file groups that it replaced as
    a whole; their rows are in none of the counts.
    """

    requested: str | None
    completed: str | None
    operation: str
    inserted: int
    updated: int
    deleted: int
    files: int
    size_bytes: int
    replaced: int = 0


def prepare_write(
    snapshot: Snapshot,
    source: WriteSource,
    operation: Operation,
    settings: WriteSettings,
    *,
    is_unordered: bool = False,
) -> PreparedWrite:
    """Check the input against the table and count it. Raises: Invalid, before the first byte is written.

    `is_unordered`: a delete whose rows win over what is stored, whatever their ordering values.
    """
    config = snapshot.config
    refuse_deep_types(source.schema)
    refuse_unchecked(operation, settings, table_name=config.name)
    buckets = facts_of_table(config, settings.bucket_options)
    refuse_without_keys(config, operation, settings, source.schema.names)
    keys = keys_for(operation, settings.keys.spec(snapshot.key_spec, config), settings)
    schema, text, is_partial = _checked_columns(snapshot, source.schema, operation, keys, settings, is_unordered)
    if buckets is not None:
        refuse_unfit_for_buckets(operation, settings, table_name=config.name)
    if finds_made_keys(config, operation):
        keys, schema = by_meta_field(keys), schema.append(pa.field(RECORD_KEY, pa.string()))
    _refuse_missing_facts(config, keys, schema, operation)
    refuse_unplaceable(keys, schema, is_custom=config.key_kind is KeyKind.CUSTOM)
    ordering = tuple(name for name in config.ordering if name in schema.names)
    required = tuple(name for name in required_columns(text) if name in schema.names)
    order = row_order(operation, keys, settings)
    spec = InputSpec(schema, keys, ordering if operation.is_tagged else (), required, order=order)
    if buckets is None and operation is Operation.UPSERT and keys.partition_by:
        refuse_moving_parts(table_rules(snapshot, schema), settings, table_name=config.name)
    settles = buckets is None and settles_partitions(operation, spec, settings)
    loses_arrival = order is not RowOrder.AS_ARRIVED and settings.combine_before_insert
    counted = source.count(replace(spec, numbers_rows=settles or loses_arrival))
    return PreparedWrite(operation, spec, text, snapshot.schema_text, counted, is_partial, buckets)


def _checked_columns(
    snapshot: Snapshot,
    incoming: pa.Schema,
    operation: Operation,
    keys: KeySpec,
    settings: WriteSettings,
    is_unordered: bool,
) -> tuple[pa.Schema, str, bool]:
    """The columns to carry, the table's schema from this write on, and whether rows hold some of its columns only."""
    config = snapshot.config
    text, is_partial = snapshot.schema_text, False
    if text is not None:
        refuse_unwritable_types(text, table_name=config.name)
    if operation is Operation.DELETE:
        if text is None:
            raise Invalid(
                f"delete from table '{config.name}': expected rows to delete from, found a table without a schema"
            )
        schema = columns_for_delete(
            incoming,
            snapshot.schema,
            needed=keys.columns,
            ordering=() if is_unordered else config.ordering,
            table_name=config.name,
        )
    elif text is None:
        schema = first_schema(incoming)
        text = avro_from_arrow(schema, record_name=record_name(config.name))
        schema = arrow_from_avro(text)
    else:
        table = TableColumns(config.name, text, snapshot.schema, keys.columns, config.ordering)
        is_partial = (
            operation is Operation.UPSERT
            and config.is_merge_on_read
            and config.version.has_partial_blocks
            and carries_some_columns(incoming, table, settings)
        )
        text = evolved_schema(incoming, table, settings, is_partial=is_partial)
        schema = arrow_from_avro(text)
        if is_partial:
            refuse_unreadable_parts(incoming, table, table_rules(snapshot, snapshot.schema))
            schema = pa.schema([field for field in schema if field.name in incoming.names])
    return schema, text, is_partial


def is_stale(prepared: PreparedWrite, snapshot: Snapshot) -> bool:
    """Whether the table's schema has changed since a write was prepared, to another one than the write brings itself.

    The input is then to be checked and counted anew. All else that a write goes by is read when it holds the table.
    """
    return snapshot.schema_text not in (prepared.schema_before, prepared.schema_text)


def run_write(
    session: WriteSession,
    prepared: PreparedWrite,
    settings: WriteSettings,
    *,
    extra_metadata: Mapping[str, str],
) -> WriteResult:
    """Place the rows, write, commit, under the session's guard.

    Requests: one listing, what the index reads of the base files in the input's partitions, or in all of them for
    a global index (upsert and delete; nothing by bucket), one read and write a file group that changes, and a dozen
    small timeline files.
    """
    session = _without_dead_services(session, prepared.operation, prepared.counted.counts)
    snapshot = session.snapshot
    if is_stale(prepared, snapshot):
        raise Conflict(
            f"table '{snapshot.config.name}': its schema changed while the input was read; run the write again"
        )
    placed = place_rows(session, prepared, settings)
    if not placed.plan.tasks and not any((placed.replaced or {}).values()) and not settings.allow_empty_commit:
        return nothing_to_do(prepared.operation)
    return commit_write(
        session,
        prepared.operation,
        placed.plan,
        extra_metadata={**extra_metadata, SCHEMA: prepared.schema_text},
        replaced=placed.replaced,
        write=lambda requested: placed.rows.write(_target(session, prepared, settings, requested), placed.plan),
    )


def run_delete_partitions(
    session: WriteSession, partitions: Sequence[str], *, extra_metadata: Mapping[str, str]
) -> WriteResult:
    """Replace every file group of these partitions by nothing. Their files stay until a clean removes them.

    Requests: a listing of each partition, and a dozen small timeline files. Raises: NotFound for an unknown partition.
    """
    operation = Operation.DELETE_PARTITION
    session = _without_dead_services(session, operation, partitions)
    snapshot = session.snapshot
    chosen = find_partitions(snapshot.listing.partitions(), partitions)
    refuse_replacing_rings(snapshot, chosen)
    pending = read_pending_groups(snapshot.storage, snapshot.timeline)
    replaced = plan_replacement(snapshot, operation, chosen, pending)
    extra = {**extra_metadata, **({SCHEMA: snapshot.schema_text} if snapshot.schema_text is not None else {})}
    return commit_write(
        session, operation, WritePlan(()), extra_metadata=extra, replaced=replaced, write=lambda requested: []
    )


def _without_dead_services(session: WriteSession, operation: Operation, partitions: Collection[str]) -> WriteSession:
    """The session after dead services that stand in the way of a replacement were rolled back."""
    if not operation.replaces_groups or not session.snapshot.timeline.pending_services:
        return session
    chosen = None if operation is Operation.INSERT_OVERWRITE_TABLE else frozenset(partitions)
    has_changed = take_off_dead(session, chosen)
    return replace(session, snapshot=session.access.snapshot()) if has_changed else session


def nothing_to_do(operation: Operation) -> WriteResult:
    return WriteResult(None, None, operation.value.lower(), 0, 0, 0, files=0, size_bytes=0)


def commit_write(
    session: WriteSession,
    operation: Operation,
    plan: WritePlan,
    *,
    extra_metadata: Mapping[str, str],
    replaced: Mapping[str, tuple[str, ...]] | None,
    write: Callable[[str], list[WriteStatus]],
) -> WriteResult:
    """Carry a plan out between requested and completed. `write` does so, given the requested time, where it has tasks.

    `replaced`: partition -> file ids that go; None for a write that replaces none.
    """
    layout = session.snapshot.timeline.layout
    inflight, action = inflight_content(layout, operation, plan), _action(session.snapshot.config, replaced)
    with session.begin_write(action, request=requested_content(operation), inflight=inflight) as run:
        statuses = write(run.requested) if plan.tasks else []
        metadata = CommitMetadata(
            write_stats(statuses, plan), operation.value, extra_metadata, partition_to_replace_file_ids=replaced
        )
        completed = session.complete(run, metadata, judge_write)
    session.forget(run.target)

    return WriteResult(
        run.requested,
        completed,
        operation.value.lower(),
        inserted=sum(s.inserts for s in statuses),
        updated=sum(s.updates for s in statuses),
        deleted=sum(s.deletes for s in statuses),
        files=len(statuses),
        size_bytes=sum(s.size_bytes for s in statuses),
        replaced=sum(len(of) for of in (replaced or {}).values()),
    )


def _action(config: TableConfig, replaced: Mapping[str, tuple[str, ...]] | None) -> str:
    """Spec: format/actions.md section 1, step 2."""
    if replaced is not None:
        return "replacecommit"
    return "deltacommit" if config.is_merge_on_read else "commit"


def write_stats(statuses: Sequence[WriteStatus], plan: WritePlan) -> dict[str, tuple[WriteStat, ...]]:
    """The commit's statement of each file. Spec: format/actions.md section 1.1.

    Seen: up to version 6 a log's statement names the base file and the logs beside which it lies; later ones do not.
    """
    stats: dict[str, list[WriteStat]] = {}
    slices = {task.number: (task.base_file or "", task.log.beside) for task in plan.tasks if task.log is not None}
    for status in sorted(statuses, key=lambda s: (s.partition, s.file_id, s.log_version or 0)):
        stat = WriteStat(
            file_id=status.file_id, path=join(status.partition, status.file_name),
            prev_commit=status.previous_instant or "null", num_writes=status.writes, num_deletes=status.deletes,
            num_update_writes=status.updates, num_inserts=status.inserts, total_write_bytes=status.size_bytes,
            partition_path=status.partition, file_size_in_bytes=status.size_bytes,
            prev_base_file=status.previous_file,
        )  # fmt: skip
        if status.log_version is not None:
            name = LogFileName.parse(status.file_name)
            assert name is not None
            base_file, beside = slices.get(status.task_number, ("", ()))
            stat = replace(
                stat, prev_commit=name.instant, log_version=name.version, log_offset=0, base_file=base_file,
                log_files=(*beside, status.file_name),
            )  # fmt: skip
        stats.setdefault(status.partition, []).append(stat)
    return {partition: tuple(of) for partition, of in stats.items()}


def _target(session: WriteSession, prepared: PreparedWrite, settings: WriteSettings, requested: str) -> WriteTarget:
    config = session.snapshot.config
    operation = prepared.operation
    avro_schema = with_meta_fields(prepared.schema_text)
    ordering = tuple(name for name in config.ordering if name in prepared.spec.schema.names)
    return WriteTarget(
        location=session.access.location,
        requested=requested,
        epoch_ms=session.access.clock.now_ms(),
        schema=arrow_from_avro(avro_schema),
        avro_schema=avro_schema,
        settings=base_file_settings(settings),
        ordering=ordering,
        compares_stored=operation.is_tagged and bool(ordering) and config.merge_mode is MergeMode.EVENT_TIME,
        combines=combines_rows(operation, settings),
        matches_keys=operation.is_tagged,
        drops_marked=operation.drops_marked,
        is_delete=operation is Operation.DELETE,
        sorts_rows=prepared.spec.order is not RowOrder.AS_ARRIVED,
        made_keys_prefix=f"{requested}_" if prepared.spec.keys.makes_keys else "",
        logs=settings.logs if config.version.has_log_positions else replace(settings.logs, writes_positions=False),
        log_marker=config.version.log_marker,
        is_partial=prepared.is_partial,
        rules=table_rules(session.snapshot, prepared.spec.schema),
        reading=log_reading(session.snapshot),
    )


def base_file_settings(settings: WriteSettings) -> BaseFileSettings:
    return BaseFileSettings(
        compression=settings.compression,
        file_size_max_bytes=settings.file_size_max_bytes,
        row_group_size_bytes=settings.row_group_size_bytes,
        page_size_bytes=settings.page_size_bytes,
        bloom=_filter_settings(settings) if settings.bloom_enabled else None,
    )


def _filter_settings(settings: WriteSettings) -> FilterSettings:
    return FilterSettings(
        settings.bloom_kind,
        settings.bloom_entries,
        settings.bloom_false_positive_rate,
        settings.bloom_entries_max,
    )


def inflight_content(layout: TimelineLayout, operation: Operation, plan: WritePlan) -> bytes:
    """What the inflight file of an operation holds."""
    return layout.encode_commit(CommitMetadata(_workload(plan), operation.value, {}))


def _workload(plan: WritePlan) -> dict[str, tuple[WriteStat, ...]]:
    """The workload profile that an inflight file states. Spec: format/actions.md section 1, step 4."""
    stats: dict[str, list[WriteStat]] = {}
    for task in plan.tasks:
        of = stats.setdefault(task.partition, [WriteStat(file_id="", prev_commit="null")])
        if task.kind is not TaskKind.CREATE:
            of.append(WriteStat(file_id=task.file_id, prev_commit=task.base_instant, num_update_writes=task.updates))
    inserts: dict[str, int] = {}
    for task in plan.tasks:
        inserts[task.partition] = inserts.get(task.partition, 0) + task.inserts
    return {
        partition: (WriteStat(file_id="", prev_commit="null", num_inserts=inserts[partition]), *of[1:])
        for partition, of in stats.items()
    }


def _refuse_missing_facts(config: TableConfig, keys: KeySpec, schema: pa.Schema, operation: Operation) -> None:
    """The key, partition and ordering columns must be among the columns written."""
    ordering = () if operation is Operation.DELETE else config.ordering
    refuse_unordered_types(schema, config.ordering)
    for what, names in (
        ("record key", keys.record_key),
        ("partition", keys.partition_by),
        ("ordering", ordering),
    ):
        for name in names:
            if name not in schema.names:
                raise Invalid(
                    f"table '{config.name}': {what} column '{name}' is missing from the input, which has "
                    f"{', '.join(schema.names)}"
                )
