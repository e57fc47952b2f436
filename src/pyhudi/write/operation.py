"""One write, from its checked input to its commit, the same on every engine."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from pyhudi.errors import Conflict
from pyhudi.format.keys.bucket_counts import BucketCounts
from pyhudi.format.schema.conversion import (
    arrow_from_avro,
    with_meta_fields,
)
from pyhudi.format.timeline.records import CommitMetadata
from pyhudi.merge.rules import MergeMode
from pyhudi.metrics.measuring import note_action, phase
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.read.plan import log_reading, table_rules
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import read_timeline
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.action.write import RunningWrite, Turns, begin_write, rolled_back_on_failure
from pyhudi.txn.conflicts.early import refuse_groups_of_others
from pyhudi.txn.conflicts.verdict import Judge
from pyhudi.txn.conflicts.writes import WriteRules, judge_write
from pyhudi.txn.undo.pending_services import take_off_dead
from pyhudi.write.commit_content import inflight_content, write_stats
from pyhudi.write.file_settings import base_file_settings, log_settings
from pyhudi.write.handles.target import WriteStatus, WriteTarget
from pyhudi.write.input.inserts import combines_rows
from pyhudi.write.input.source import Operation, PreparedWrite
from pyhudi.write.judge import judge_of, known_schemas
from pyhudi.write.place.buckets import put_counts, refuse_replacing_rings
from pyhudi.write.place.nested_partitions import Nesting, clear_folders_above
from pyhudi.write.place.non_blocking import appends_freely
from pyhudi.write.place.placement import place_rows
from pyhudi.write.place.plan import WritePlan
from pyhudi.write.place.replacement import plan_replacement, requested_content
from pyhudi.write.preparation import is_stale
from pyhudi.write.settings import WriteSettings
from pyhudi.write.stated_schema import columns_of_write

AfterCommit: TypeAlias = Callable[[WriteSession], None]
ChoosePartitions: TypeAlias = Callable[[Snapshot], Sequence[str]]


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


class StaleInput(Conflict):
    """The table's schema changed after the input was checked, before the write began. The input can be checked anew."""


def run_write(
    turns: Turns,
    prepared: PreparedWrite,
    settings: WriteSettings,
    *,
    extra_metadata: Mapping[str, str],
    then: AfterCommit,
    requested: str | None = None,
) -> WriteResult:
    """Place the rows, write and commit. The guard is held to begin and to complete the write only.

    `then`: what follows the commit in the turn that completed it. `requested`: as of `begin_write`.
    Requests: one listing, what the index reads of the base files in the input's partitions, or in all of them for
    a global index (upsert and delete; nothing by bucket), one read and write a file group that changes, and a dozen
    small timeline files.

    Raises: StaleInput before anything is written; PlanOutdated where the write may be planned anew from the same input.
    """
    operation = prepared.operation
    with ExitStack() as life:
        with phase("begin"), turns.first() as turn:
            session = _without_dead_services(turn, operation, {*prepared.counted.counts, *prepared.also_replaced})
            if is_stale(prepared, session.snapshot):
                raise StaleInput(
                    f"table '{session.snapshot.config.name}': its schema changed while the input was read; run the "
                    "write again"
                )
            write = _begin(turns, session, operation, life, requested)

        with rolled_back_on_failure(write):
            return _write_rows(write, prepared, settings, extra_metadata, then)


def run_row_change(
    turns: Turns,
    operation: Operation,
    make: Callable[[Snapshot], PreparedWrite],
    settings: WriteSettings,
    *,
    extra_metadata: Mapping[str, str],
    then: AfterCommit,
) -> WriteResult:
    """Write rows that are made of stored rows. Otherwise as `run_write`.

    `make`: the rows, made of the table as it is when the write begins, and checked against it. So a commit between
    reading and writing cannot be overlooked: others that change the same rows meanwhile are conflicts like any other.

    Raises: what `make` raises, with nothing written; PlanOutdated where the rows must be made anew.
    """
    with ExitStack() as life:
        with phase("begin"), turns.first() as session:
            write = _begin(turns, session, operation, life)

        with rolled_back_on_failure(write):
            with phase("place"):
                prepared = make(session.snapshot)
            is_rescaling = prepared.buckets is not None and prepared.buckets.rescaling is not None
            if not is_rescaling and not any(
                prepared.counted.counts.values()
            ):  # no row matched, whatever the settings say of empty commits
                write.withdraw()
                return nothing_to_do(operation)
            return _write_rows(write, prepared, settings, extra_metadata, then)


def _write_rows(
    write: RunningWrite,
    prepared: PreparedWrite,
    settings: WriteSettings,
    extra_metadata: Mapping[str, str],
    then: AfterCommit,
) -> WriteResult:
    """Place the rows of a write that has begun, write them and commit; or withdraw it where there is nothing to do."""
    session, operation = write.session, prepared.operation
    with phase("place"):
        placed = place_rows(session, prepared, settings, write.run.planned)
    rescaling = prepared.buckets.rescaling if prepared.buckets is not None else None
    has_work = rescaling is not None or placed.plan.tasks or any((placed.replaced or {}).values())
    if not has_work and not settings.allow_empty_commit:
        write.withdraw()
        return nothing_to_do(operation)

    is_sure = write.turns.is_alone or appends_freely(prepared, settings)
    if settings.detects_conflicts_early and not is_sure:
        _refuse_early(session, write.run.requested, placed.plan)
    columns = columns_of_write(session.snapshot, prepared.schema_text, write.run.requested)
    target = _target(session, prepared, settings, write.run.requested, columns.evolution)
    judge = judge_of(session, prepared, settings, placed.plan)
    work = _Work(
        placed.plan, placed.replaced, lambda: placed.rows.write(target, placed.plan),
        None if rescaling is None else rescaling.counts, placed.nesting,
    )  # fmt: skip
    extra = {**extra_metadata, **columns.extra_metadata}
    return _carry_out(write, operation, work, extra, judge, then)


def run_delete_partitions(
    turns: Turns, choose: ChoosePartitions, *, extra_metadata: Mapping[str, str], then: AfterCommit
) -> WriteResult:
    """Replace every file group of some partitions by nothing. Their files stay until a clean removes them.

    `choose`: says which partitions, by the table as it is when the write begins. A write that is planned anew asks
    again. Requests: a listing of each partition, and a dozen small timeline files. Raises: as `choose` does.
    """
    operation = Operation.DELETE_PARTITION
    with ExitStack() as life:
        with phase("begin"), turns.first() as turn:
            chosen = choose(turn.snapshot)
            session = _without_dead_services(turn, operation, chosen)
            snapshot = session.snapshot
            if session is not turn:
                chosen = choose(snapshot)
            if not chosen:
                return nothing_to_do(operation)
            refuse_replacing_rings(snapshot, chosen)
            write = _begin(turns, session, operation, life)

        with rolled_back_on_failure(write):
            replaced = plan_replacement(snapshot, operation, chosen, write.run.planned)
            work = _Work(WritePlan(()), replaced, lambda: [])
            text = snapshot.schema_text
            stated = {} if text is None else columns_of_write(snapshot, text, write.run.requested).extra_metadata
            extra = {**extra_metadata, **stated}
            rules = WriteRules(
                looks_keys_up=False, is_global=False, by_bucket=False, shares_logs=False,
                schemas=known_schemas(snapshot.config, text),
            )  # fmt: skip
            return _carry_out(write, operation, work, extra, partial(judge_write, rules=rules), then)


def _begin(
    turns: Turns, session: WriteSession, operation: Operation, life: ExitStack, requested: str | None = None
) -> RunningWrite:
    action = _action(session.snapshot.config, operation)
    return begin_write(turns, session, action, requested_content(operation), life, requested=requested)


def _refuse_early(session: WriteSession, requested: str, plan: WritePlan) -> None:
    """Raises: PlanOutdated where a running write changes a file group of the plan."""
    snapshot = session.snapshot
    now = read_timeline(snapshot.storage, snapshot.timeline.layout, snapshot.zone)
    refuse_groups_of_others(snapshot.storage, now, requested, {(task.partition, task.file_id) for task in plan.tasks})


def _without_dead_services(session: WriteSession, operation: Operation, partitions: Collection[str]) -> WriteSession:
    """The session after dead services that stand in the way of a replacement were rolled back."""
    if not operation.replaces_groups or not session.snapshot.timeline.pending_services:
        return session
    chosen = None if operation is Operation.INSERT_OVERWRITE_TABLE else frozenset(partitions)
    has_changed = take_off_dead(session, chosen)
    return replace(session, snapshot=session.access.snapshot()) if has_changed else session


def nothing_to_do(operation: Operation) -> WriteResult:
    return WriteResult(None, None, operation.value.lower(), 0, 0, 0, files=0, size_bytes=0)


@dataclass(frozen=True, slots=True)
class _Work:
    """What a write does between requested and completed.

    `replaced`: partition -> file ids that go; None for a write that replaces none. `write`: carries the plan out.
    `counts`: the rules for bucket counts that a rescaling makes. `nesting`: the folders above its new partitions.
    """

    plan: WritePlan
    replaced: Mapping[str, tuple[str, ...]] | None
    write: Callable[[], list[WriteStatus]]
    counts: BucketCounts | None = None
    nesting: Nesting = field(default_factory=Nesting)


def _carry_out(
    write: RunningWrite, operation: Operation, work: _Work, extra: Mapping[str, str], judge: Judge, then: AfterCommit
) -> WriteResult:
    """Write the files of a plan and complete the write."""
    run, replaced = write.run, work.replaced
    write.put_inflight(inflight_content(run.table.layout, operation, work.plan))
    note_action(run.target.action)
    if work.counts is not None:  # a rollback deletes them, and the action has one from here on
        put_counts(write.session.access.storage, work.counts, run.requested)
    with phase("write"):
        statuses = work.write() if work.plan.tasks else []

    metadata = CommitMetadata(
        write_stats(
            statuses, work.plan, keeps_changes=write.session.snapshot.config.change_mode is not None,
            requested=run.requested,
        ),
        operation.value, extra, partition_to_replace_file_ids=replaced,
    )  # fmt: skip
    free = partial(clear_folders_above, work.nesting, write.session.snapshot.timeline, run.requested)
    with phase("complete"), write.completing(metadata, judge, first=free) as (session, completed):
        then(session)

    again = {task.number for task in work.plan.doubled}
    own = [status for status in statuses if status.task_number not in again]
    return WriteResult(
        run.requested,
        completed,
        operation.value.lower(),
        inserted=sum(s.inserts for s in own),
        updated=sum(s.updates for s in own),
        deleted=sum(s.deletes for s in own),
        files=len(statuses),
        size_bytes=sum(s.size_bytes for s in statuses),
        replaced=sum(len(file_ids) for file_ids in (replaced or {}).values()),
    )


def _action(config: TableConfig, operation: Operation) -> str:
    """Spec: format/actions.md section 1, step 2."""
    if operation.replaces_groups:
        return "replacecommit"
    return "deltacommit" if config.is_merge_on_read else "commit"


def _target(
    session: WriteSession,
    prepared: PreparedWrite,
    settings: WriteSettings,
    requested: str,
    evolution: Evolution | None,
) -> WriteTarget:
    config = session.snapshot.config
    operation = prepared.operation
    avro_schema = with_meta_fields(prepared.schema_text)
    ordering = prepared.spec.carried_ordering
    reading = log_reading(session.snapshot)

    return WriteTarget(
        location=session.access.location,
        requested=requested,
        epoch_ms=session.access.clock.now_ms(),
        schema=arrow_from_avro(avro_schema),
        avro_schema=avro_schema,
        settings=base_file_settings(settings).of_table(config),
        ordering=ordering,
        compares_stored=operation.is_tagged and bool(ordering) and config.merge_mode is MergeMode.EVENT_TIME,
        combines=combines_rows(operation, settings),
        matches_keys=operation.is_tagged,
        drops_marked=operation.drops_marked,
        is_delete=operation is Operation.DELETE,
        sorts_rows=prepared.spec.order.is_by_key,
        made_keys_prefix=f"{requested}_" if prepared.spec.keys.makes_keys else "",
        logs=log_settings(settings, config),
        log_marker=config.version.log_marker,
        is_partial=prepared.is_partial,
        rules=table_rules(session.snapshot, prepared.spec.schema).with_defaults(avro_schema),
        reading=None if reading is None else reading.with_evolution(evolution),
        change_mode=config.change_mode,
        as_written=session.snapshot.as_written_with(evolution),
        has_parquet_metafiles=config.has_parquet_metafiles,
    )
