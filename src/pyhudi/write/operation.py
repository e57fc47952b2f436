"""One write, from its input to its commit, the same on every engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import Conflict, Invalid
from pyhudi.format.commit import decode_requested_replace, encode_commit_avro
from pyhudi.format.names import join
from pyhudi.format.schema import (
    arrow_from_avro,
    avro_from_arrow,
    record_name,
    required_columns,
    with_meta_fields,
)
from pyhudi.model.commit import CommitMetadata, WriteStat
from pyhudi.model.instant import Instant
from pyhudi.table.commits import SCHEMA, read_commit
from pyhudi.table.config import MergeMode, TableConfig
from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.snapshot import Snapshot
from pyhudi.txn.session import WriteSession
from pyhudi.write.base_file_writer import BaseFileSettings
from pyhudi.write.handle import WriteStatus, WriteTarget
from pyhudi.write.input_schema import columns_for_delete, columns_for_write, first_schema
from pyhudi.write.plan import WorkloadProfile, WritePlan, plan_write, record_size
from pyhudi.write.settings import WriteSettings
from pyhudi.write.source import InputSpec, Operation, WriteSource


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did: its times, and rows by what became of them.

    `requested` and `completed` are None where there was nothing to do.
    """

    requested: str | None
    completed: str | None
    operation: str
    inserted: int
    updated: int
    deleted: int
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PreparedWrite:
    """An input that was checked and counted, before anything of the table was touched."""

    operation: Operation
    spec: InputSpec
    schema_text: str
    counts: Mapping[str, int]


def prepare_write(snapshot: Snapshot, source: WriteSource, operation: Operation) -> PreparedWrite:
    """Check the input against the table and count it. Raises: Invalid, before the first byte is written."""
    config, keys = snapshot.config, snapshot.key_spec
    text = snapshot.schema_text
    if operation is Operation.DELETE:
        if text is None:
            raise Invalid(
                f"delete from table '{config.name}': expected rows to delete from, found a table without a schema"
            )
        schema = columns_for_delete(
            source.schema,
            snapshot.schema,
            needed=keys.columns,
            ordering=config.ordering,
            table_name=config.name,
        )
    elif text is None:
        schema = first_schema(source.schema)
        text = avro_from_arrow(schema, record_name=record_name(config.name))
        schema = arrow_from_avro(text)
    else:
        schema = columns_for_write(source.schema, snapshot.schema, table_name=config.name)
    _refuse_missing_facts(config, schema, operation)
    ordering = tuple(name for name in config.ordering if name in schema.names)
    required = tuple(name for name in required_columns(text) if name in schema.names)
    spec = InputSpec(schema, keys, ordering if operation.is_tagged else (), required)
    return PreparedWrite(operation, spec, text, source.count(spec))


def run_write(
    session: WriteSession,
    source: WriteSource,
    prepared: PreparedWrite,
    settings: WriteSettings,
    *,
    extra_metadata: Mapping[str, str],
) -> WriteResult:
    """Tag, plan, write, commit, under the session's guard.

    Requests: one listing, the key columns of the base files in the input's partitions (upsert and delete),
    one read and write a file group that changes, and a dozen small timeline files.
    """
    snapshot = session.snapshot
    if snapshot.schema_text is not None and snapshot.schema_text != prepared.schema_text:
        raise Conflict(
            f"table '{snapshot.config.name}': its schema changed while the input was read; run the write again"
        )
    slices = _slices(snapshot, prepared.counts)
    profile = _profile(source, prepared, slices)
    frozen = _clustering_groups(snapshot)
    plan = _plan(session, snapshot, prepared, profile, slices, frozen, settings)
    if not plan.tasks and not settings.allow_empty_commit:
        return WriteResult(None, None, prepared.operation.value.lower(), 0, 0, 0, files=0, size_bytes=0)
    inflight = CommitMetadata(_workload(plan), prepared.operation.value, {})
    with session.action(encode_commit_avro(inflight)) as requested:
        target = _target(session, prepared, settings, requested)
        statuses = source.write(target, plan) if plan.tasks else []
        extra = {**extra_metadata, SCHEMA: prepared.schema_text}
        metadata = CommitMetadata(write_stats(statuses), prepared.operation.value, extra)
        completed = session.complete(requested, metadata)
    session.forget(requested)
    return WriteResult(
        requested,
        completed,
        prepared.operation.value.lower(),
        inserted=sum(s.inserts for s in statuses),
        updated=sum(s.updates for s in statuses),
        deleted=sum(s.deletes for s in statuses),
        files=len(statuses),
        size_bytes=sum(s.size_bytes for s in statuses),
    )


def write_stats(statuses: Sequence[WriteStatus]) -> dict[str, tuple[WriteStat, ...]]:
    """The commit's statement of each file. Spec: format/actions.md section 1.1."""
    stats: dict[str, list[WriteStat]] = {}
    for status in sorted(statuses, key=lambda s: (s.partition, s.file_id)):
        stat = WriteStat(
            file_id=status.file_id, path=join(status.partition, status.file_name),
            prev_commit=status.previous_instant or "null", num_writes=status.writes, num_deletes=status.deletes,
            num_update_writes=status.updates, num_inserts=status.inserts, total_write_bytes=status.size_bytes,
            partition_path=status.partition, file_size_in_bytes=status.size_bytes,
            prev_base_file=status.previous_file,
        )  # fmt: skip
        stats.setdefault(status.partition, []).append(stat)
    return {partition: tuple(of) for partition, of in stats.items()}


def _slices(snapshot: Snapshot, counts: Mapping[str, int]) -> dict[str, list[FileSlice]]:
    """The newest slices of the input's partitions that exist."""
    existing = set(snapshot.listing.partitions())
    return {partition: snapshot.slices(partition) for partition in sorted(counts) if partition in existing}


def _profile(
    source: WriteSource, prepared: PreparedWrite, slices: Mapping[str, Sequence[FileSlice]]
) -> WorkloadProfile:
    stored = [piece for of in slices.values() for piece in of if piece.base_file is not None]
    if not prepared.operation.is_tagged or not stored:
        nothing_stored = prepared.operation is Operation.DELETE
        return WorkloadProfile({} if nothing_stored else prepared.counts, {})
    profile = source.tag(stored)
    return WorkloadProfile({}, profile.updates) if prepared.operation is Operation.DELETE else profile


def _plan(
    session: WriteSession,
    snapshot: Snapshot,
    prepared: PreparedWrite,
    profile: WorkloadProfile,
    slices: Mapping[str, Sequence[FileSlice]],
    frozen: frozenset[tuple[str, str]],
    settings: WriteSettings,
) -> WritePlan:
    clash = sorted(key for key in profile.updates if key in frozen)
    if clash:
        raise Conflict(
            f"file group '{clash[0][1]}' in partition '{clash[0][0]}' is being clustered; run or roll back the pending "
            "clustering, then retry"
        )
    fills = prepared.operation is not Operation.BULK_INSERT
    free = {p: [s for s in of if (p, s.file_id) not in frozen] for p, of in slices.items()}
    return plan_write(
        profile,
        free,
        record_size_bytes=_record_size(snapshot, prepared.spec.schema, settings),
        file_size_max_bytes=settings.file_size_max_bytes,
        small_file_limit_bytes=settings.small_file_limit_bytes if fills else 0,
        new_uuid=session.access.new_uuid,
    )


def _record_size(snapshot: Snapshot, schema: pa.Schema, settings: WriteSettings) -> int:
    """Bytes a stored row, as the newest write with rows measured it; before that an estimate from the columns."""
    guess = min(settings.record_size_estimate_bytes, 40 + sum(_width(field.type) for field in schema))
    for instant in reversed(snapshot.timeline.completed_writes[-3:]):
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
        stats = [s for of in metadata.partition_to_write_stats.values() for s in of if s.num_writes]
        rows = sum(s.num_writes or 0 for s in stats)
        if rows >= 1_000:
            return record_size(rows, sum(s.file_size_in_bytes or 0 for s in stats), len(stats), default_bytes=guess)
    return guess


def _width(kind: pa.DataType) -> int:
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:
        return 24


def _clustering_groups(snapshot: Snapshot) -> frozenset[tuple[str, str]]:
    """File groups of pending clusterings, which must not be written to."""
    groups: set[tuple[str, str]] = set()
    for instant in snapshot.timeline.pending_services:
        if instant.action == "clustering":
            path = snapshot.timeline.layout.path(Instant(instant.requested, "clustering", "REQUESTED"))
            plan = decode_requested_replace(snapshot.storage.get(path), path=path)
            groups |= set(plan.file_groups)
    return frozenset(groups)


def _target(session: WriteSession, prepared: PreparedWrite, settings: WriteSettings, requested: str) -> WriteTarget:
    config = session.snapshot.config
    operation = prepared.operation
    avro_schema = with_meta_fields(prepared.schema_text)
    combines = {
        Operation.UPSERT: settings.combine_before_upsert,
        Operation.DELETE: settings.combine_before_delete,
        Operation.INSERT: settings.combine_before_insert,
        Operation.BULK_INSERT: settings.combine_before_insert,
    }[operation]
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
        combines=combines,
        matches_keys=operation.is_tagged,
        is_delete=operation is Operation.DELETE,
    )


def base_file_settings(settings: WriteSettings) -> BaseFileSettings:
    return BaseFileSettings(
        compression=settings.compression,
        file_size_max_bytes=settings.file_size_max_bytes,
        row_group_size_bytes=settings.row_group_size_bytes,
        page_size_bytes=settings.page_size_bytes,
        bloom_kind=settings.bloom_kind if settings.bloom_enabled else None,
        bloom_entries=settings.bloom_entries,
        bloom_false_positive_rate=settings.bloom_false_positive_rate,
        bloom_entries_max=settings.bloom_entries_max,
    )


def _workload(plan: WritePlan) -> dict[str, tuple[WriteStat, ...]]:
    """The workload profile that an inflight file states. Spec: format/actions.md section 1, step 4."""
    stats: dict[str, list[WriteStat]] = {}
    for task in plan.tasks:
        of = stats.setdefault(task.partition, [WriteStat(file_id="", prev_commit="null")])
        if task.base_file is not None:
            of.append(WriteStat(file_id=task.file_id, prev_commit=task.base_instant, num_update_writes=task.updates))
    inserts: dict[str, int] = {}
    for task in plan.tasks:
        inserts[task.partition] = inserts.get(task.partition, 0) + task.inserts
    return {
        partition: (WriteStat(file_id="", prev_commit="null", num_inserts=inserts[partition]), *of[1:])
        for partition, of in stats.items()
    }


def _refuse_missing_facts(config: TableConfig, schema: pa.Schema, operation: Operation) -> None:
    """The key, partition and ordering columns must be among the columns written."""
    ordering = () if operation is Operation.DELETE else config.ordering
    for what, names in (
        ("record key", config.record_key),
        ("partition", config.partition_by),
        ("ordering", ordering),
    ):
        for name in names:
            if name not in schema.names:
                raise Invalid(
                    f"table '{config.name}': {what} column '{name}' is missing from the input, which has "
                    f"{', '.join(schema.names)}"
                )
