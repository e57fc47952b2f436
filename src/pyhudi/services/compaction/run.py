"""Compacting a table.

The guard is held while the compaction is planned, and again while it commits. Other writers and readers go on while the
slices are merged. Every step can be repeated. A compaction that was stopped stays pending, and is done anew from its
plan under the same instant. Nothing here rolls it back, because other writers may already write upon its plan. Log
compaction goes the same way with other files, but may be given up.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CommitMetadata, CompactionPlan, WriteStat
from pyhudi.services.chosen_plans import chosen_of
from pyhudi.services.compaction.inputs import (
    CompactionKind,
    Scheduled,
    compaction_target,
    find_overtaking,
    read_plan,
    schedule,
    slice_tasks,
)
from pyhudi.services.compaction.settings import CompactionSettings
from pyhudi.services.compaction.trigger import why_logs_not_due, why_not_due
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.run import ActionRun
from pyhudi.txn.action.service_action import (
    OpenSession,
    awaited_session,
    begin_attempt,
    claim,
    given_back_on_failure,
    refuse_running,
    show_life,
    stats_by_partition,
)
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.conflicts.verdict import Judge, judge_log_compaction, judge_service
from pyhudi.txn.undo.rollback import run_rollback
from pyhudi.versions import LogNaming
from pyhudi.write.handles.base_file_writer import BaseFileSettings
from pyhudi.write.handles.compaction import CompactionTarget, SliceTask
from pyhudi.write.handles.slice_work import SliceWork
from pyhudi.write.log_settings import LogSettings
from pyhudi.write.stated_schema import StatedColumns, columns_of_service, stated_by_service

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """What compactions did, including those that had been left pending.

    `requested`, `completed`: times of the newest compaction; None when there was none. `completed` is also None when
    the compaction was scheduled only. `file_groups`: how many were compacted. `rows`, `size_bytes`: of all files that
    were written. `reason`: why nothing, or nothing new, was done; empty otherwise.
    """

    requested: str | None
    completed: str | None
    file_groups: int
    rows: int
    size_bytes: int
    reason: str


@dataclass(frozen=True)
class CompactionJob:
    """What compactions need.

    `work`: runs the slices' tasks, in this process or on Spark. `new_attempt`: gives each attempt a number of its own.
    """

    kind: CompactionKind
    settings: CompactionSettings
    base_files: BaseFileSettings
    logs: LogSettings
    open_session: OpenSession
    work: SliceWork
    clock: Clock
    new_attempt: Callable[[], int]


@dataclass(frozen=True, slots=True)
class _Done:
    requested: str
    completed: str
    stats: tuple[WriteStat, ...]


@dataclass(frozen=True, slots=True)
class _Begun:
    """An attempt at a compaction that this process has begun. `columns`: by which it writes rows."""

    run: ActionRun
    plan: CompactionPlan
    columns: StatedColumns
    work: CompactionTarget
    tasks: list[SliceTask]


def run_compactions(
    job: CompactionJob, *, is_asked: bool, plans: bool = True, only: Collection[str] | None = None
) -> CompactionResult:
    """Do every pending compaction, oldest first, then schedule a new one and do it.

    `is_asked`: schedule one even if the trigger says that none is due. `plans`: whether to schedule one at all.
    `only`: of the pending ones do those of these requested times; None: all.
    The table is held only at the beginning and at the end of each compaction.

    Raises: Conflict while another process runs one of them, or holds the table at the beginning.
    """
    done: list[_Done] = []
    while True:
        with ExitStack() as life:
            with job.open_session() as session:
                pending = chosen_of(pending_compactions(session.snapshot.timeline, job.kind), only)
                if pending and _give_up_overtaken(session, pending[0]):
                    continue

                claims = partial(claim, session, life=life)
                scheduled = None if pending or not plans else schedule(
                    session, job.kind, job.settings, job.base_files, is_asked=is_asked, claim=claims
                )  # fmt: skip
                instant = pending[0] if pending else scheduled.instant if scheduled is not None else None
                if instant is None:
                    nothing = "" if done else f"no {job.kind.value} is pending"
                    return _result(done, reason=scheduled.reason if scheduled is not None else nothing)

                begun = _begin(job, session, instant, life)
            done.append(_finish(job, begun, life))
        if not pending:
            return _result(done, reason="")


def schedule_compaction(job: CompactionJob, *, is_asked: bool) -> CompactionResult:
    """Put the plan of a compaction on the timeline. Whoever runs compactions next carries the plan out."""
    with job.open_session() as session:
        pending = pending_compactions(session.snapshot.timeline, job.kind)
        if pending and not is_asked:
            return _nothing(f"{job.kind.value} '{pending[0].requested}' is pending")

        scheduled: Scheduled = schedule(session, job.kind, job.settings, job.base_files, is_asked=is_asked)
        if scheduled.instant is None:
            return _nothing(scheduled.reason)
        groups = len(scheduled.plan.file_groups) if scheduled.plan is not None else 0
        return CompactionResult(
            requested=scheduled.instant.requested, completed=None, file_groups=groups, rows=0, size_bytes=0, reason=""
        )


def may_be_due(job: CompactionJob, snapshot: Snapshot) -> bool:
    """Whether an automatic run can find anything to do, judged by the timeline alone. No request."""
    if pending_compactions(snapshot.timeline, job.kind):
        return True
    if job.kind is CompactionKind.LOG:
        return not why_logs_not_due(snapshot.timeline, job.settings.log_blocks_min)
    return not why_not_due(snapshot.timeline, job.settings, now_ms=job.clock.now_ms(), zone=snapshot.zone)


def pending_compactions(timeline: Timeline, kind: CompactionKind) -> list[Instant]:
    """The pending compactions of a kind, oldest first."""
    return [instant for instant in timeline.pending if instant.action == kind.value]


def _give_up_overtaken(session: WriteSession, instant: Instant) -> bool:
    """Roll back a log compaction that cannot be finished. Returns whether it was rolled back.

    That is the case when a compaction has taken one of its file groups (`find_overtaking`). It is also the case when
    the log compaction died and logs are named after their slice: the names then do not tell which logs it wrote.
    """
    if instant.action != CompactionKind.LOG.value:
        return False

    other = find_overtaking(session.snapshot, instant, read_plan(session.snapshot, instant).file_groups)
    naming = session.snapshot.config.version.log_naming
    is_lost = instant.state == "INFLIGHT" and naming is LogNaming.AFTER_SLICE
    if other is None and not is_lost:
        return False

    refuse_running(session, instant)
    why = f"'{other.requested}' took its file groups" if other is not None else "it died"
    log.info("log compaction '%s' is given up: %s", instant.requested, why)
    run_rollback(session.table, session.snapshot.timeline, instant)
    return True


def _begin(job: CompactionJob, session: WriteSession, instant: Instant, life: ExitStack) -> _Begun:
    """Make a pending compaction ours, and give it a heartbeat until `life` ends."""
    plan = read_plan(session.snapshot, instant)
    tasks = slice_tasks(session.snapshot, instant, plan)
    columns = columns_of_service(session.snapshot, instant.requested)
    work = compaction_target(session, instant.requested, job.new_attempt(), columns, job.base_files, job.logs)
    run = begin_attempt(session, instant, frozenset(plan.file_groups))
    show_life(session, instant.requested, life)
    return _Begun(run, plan, columns, work, tasks)


def _finish(job: CompactionJob, begun: _Begun, life: ExitStack) -> _Done:
    """Do the work of a compaction and complete it. A compaction that fails stays pending."""
    target, what = begun.run.target, f"{begun.run.target.action} '{begun.run.target.requested}'"

    with given_back_on_failure(begun.run, life):
        stats = tuple(job.work.run(job.kind.handle, begun.work, begun.tasks))
        with awaited_session(job.open_session, job.clock, what=what) as session:
            metadata = _metadata(job.kind, stats, stated_by_service(session.snapshot, begun.columns))
            completed = session.complete(begun.run, metadata, _judge(job.kind, session, begun))
            life.close()
            session.forget(target)

    log.info("%s: compacted %d file groups", what, len(begun.tasks))
    return _Done(target.requested, completed, stats)


def _judge(kind: CompactionKind, session: WriteSession, begun: _Begun) -> Judge:
    if kind is not CompactionKind.LOG:
        return judge_service
    other = find_overtaking(session.snapshot, begun.run.target, begun.plan.file_groups)
    return partial(judge_log_compaction, overtaken_by=other.requested if other is not None else None)


def _metadata(kind: CompactionKind, stats: Sequence[WriteStat], stated: Mapping[str, str]) -> CommitMetadata:
    """The commit's metadata.

    Seen: 1.0.2 copies the plan's extra metadata into the commit; 1.2.0 does not, nor does pyhudi.
    """
    return CommitMetadata(stats_by_partition(stats), kind.operation, stated, compacted=True)


def _result(done: Sequence[_Done], *, reason: str) -> CompactionResult:
    stats = [stat for one in done for stat in one.stats]
    newest = done[-1] if done else None
    return CompactionResult(
        requested=newest.requested if newest else None,
        completed=newest.completed if newest else None,
        file_groups=sum(len({(stat.partition_path, stat.file_id) for stat in one.stats}) for one in done),
        rows=sum(stat.num_writes or 0 for stat in stats),
        size_bytes=sum(stat.file_size_in_bytes or 0 for stat in stats),
        reason=reason,
    )


def _nothing(reason: str) -> CompactionResult:
    return CompactionResult(requested=None, completed=None, file_groups=0, rows=0, size_bytes=0, reason=reason)
