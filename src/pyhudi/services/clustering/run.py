"""Clustering a table.

The guard is held while the clustering is planned, and again while it commits. Readers and writers go on meanwhile.
Every step can be repeated: a clustering that was stopped stays pending, and is done anew from its plan under the same
instant. A clustering never wins over a write: if a file group of its plan has changed since the plan was made, the
clustering is taken off the timeline, and the next one is planned upon what is there.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from pyhudi.errors import Invalid
from pyhudi.format.keys.hashing_metadata import HashingMetadata
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import ClusteringPlan, CommitMetadata, WriteStat
from pyhudi.index.doubled_logs import refuse_to_end_doubled
from pyhudi.index.planned_rings import becoming, is_resizing
from pyhudi.services.chosen_plans import chosen_of
from pyhudi.services.clustering.inputs import (
    clustering_target,
    find_outdated,
    group_tasks,
    groups_of,
    read_plan,
    schedule,
    slices_of,
)
from pyhudi.services.clustering.plan import OPERATION
from pyhudi.services.clustering.resizing import mark_rings, new_rings, put_rings, resize_tasks, rings_of_table
from pyhudi.services.clustering.settings import ClusteringSettings
from pyhudi.services.clustering.trigger import pending_clusterings, plan_path, why_not_due
from pyhudi.table.facts.bucket_facts import BucketFacts
from pyhudi.table.view.snapshot import Snapshot
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
from pyhudi.txn.conflicts.verdict import PlanOutdated, judge_clustering
from pyhudi.txn.undo.rollback import run_rollback
from pyhudi.write.clustering.groups import cluster_group
from pyhudi.write.clustering.resizing import resize_group
from pyhudi.write.handles.base_file_writer import BaseFileSettings
from pyhudi.write.handles.slice_work import SliceWork
from pyhudi.write.stated_schema import StatedColumns, columns_of_service, stated_by_service

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringResult:
    """What clusterings did, including those that had been left pending.

    `requested`, `completed`: times of the newest clustering; None when there was none. `completed` is also None when
    the clustering was scheduled only. `file_groups`: how many were replaced, or are planned to be. `files`, `rows`,
    `size_bytes`: of all files that were written. `given_up`: requested times of pending clusterings that were taken off
    the timeline, because their file groups had changed. `reason`: why nothing, or nothing new, was done; empty
    otherwise.
    """

    requested: str | None
    completed: str | None
    file_groups: int
    files: int
    rows: int
    size_bytes: int
    given_up: tuple[str, ...] = ()
    reason: str


@dataclass(frozen=True)
class ClusteringJob:
    """What clusterings need.

    `partitions`: only these are planned; None: as the settings say. `bucket_options`: what the table and the call state
    of the index.
    `work`: runs the groups' tasks, in this process or on Spark. `new_attempt`: gives each attempt a number of its own.
    """

    settings: ClusteringSettings
    base_files: BaseFileSettings
    bucket_options: Mapping[str, str]
    open_session: OpenSession
    work: SliceWork
    clock: Clock
    new_attempt: Callable[[], int]
    new_uuid: Callable[[], str]
    partitions: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class _Done:
    requested: str
    completed: str
    file_groups: int
    stats: tuple[WriteStat, ...]


@dataclass(frozen=True, slots=True)
class _Begun:
    """An attempt at a clustering that this process has begun.

    `columns`: by which it writes rows. `work`: writes the files. `rings`: those that it makes, if it resizes rings.
    """

    run: ActionRun
    plan: ClusteringPlan
    columns: StatedColumns
    work: Callable[[], list[WriteStat]]
    rings: tuple[HashingMetadata, ...] = ()


def run_clusterings(
    job: ClusteringJob, *, is_asked: bool, plans: bool = True, only: Collection[str] | None = None
) -> ClusteringResult:
    """Do every pending clustering, oldest first, then schedule a new one and do it.

    `is_asked`: schedule one even if the trigger says that none is due. `plans`: whether to schedule one at all.
    `only`: of the pending ones do those of these requested times; None: all.
    The table is held only at the beginning and at the end of each clustering.

    Raises: Conflict while another process runs one of them, or holds the table at the beginning, or where a write that
    completed meanwhile changed a file group of the clustering.
    """
    done: list[_Done] = []
    given_up: list[str] = []
    while True:
        with ExitStack() as life:
            with job.open_session() as session:
                rings = rings_of_table(session.snapshot, job.bucket_options, job.settings)
                pending = chosen_of(pending_clusterings(session.snapshot), only)
                if pending and _give_up_outdated(session, pending[0]):
                    given_up.append(pending[0].requested)
                    continue

                instant, reason = pending[0] if pending else None, ""
                if not pending and plans:
                    claims = partial(claim, session, life=life)
                    scheduled = schedule(
                        session,
                        job.settings,
                        job.base_files,
                        partitions=job.partitions,
                        rings=rings,
                        is_asked=is_asked,
                        claim=claims,
                    )
                    instant, reason = scheduled.instant, scheduled.reason
                if instant is None:
                    return _result(done, given_up, reason=reason or ("" if done else "no clustering is pending"))

                begun = _begin(job, session, instant, rings, life)
            done.append(_finish(job, begun, life))
        if not pending:
            return _result(done, given_up, reason="")


def schedule_clustering(job: ClusteringJob, *, is_asked: bool) -> ClusteringResult:
    """Put the plan of a clustering on the timeline. Whoever runs clusterings next carries the plan out."""
    with job.open_session() as session:
        rings = rings_of_table(session.snapshot, job.bucket_options, job.settings)
        pending = pending_clusterings(session.snapshot)
        if pending and not is_asked:
            return _result([], [], reason=f"clustering '{pending[0].requested}' is pending")

        scheduled = schedule(
            session, job.settings, job.base_files, partitions=job.partitions, rings=rings, is_asked=is_asked
        )
        if scheduled.instant is None or scheduled.plan is None:
            return _result([], [], reason=scheduled.reason)
        return ClusteringResult(
            requested=scheduled.instant.requested, completed=None, file_groups=len(groups_of(scheduled.plan)),
            files=0, rows=0, size_bytes=0, reason="",
        )  # fmt: skip


def may_be_due(job: ClusteringJob, snapshot: Snapshot) -> bool:
    """Whether an automatic run can find anything to do, judged by the timeline. Requests: as `why_not_due`."""
    return bool(pending_clusterings(snapshot)) or not why_not_due(snapshot, job.settings)


def take_off_outdated(session: WriteSession) -> tuple[str, ...]:
    """Take off the timeline those pending clusterings whose file groups have changed, and that nobody runs.

    Returns their requested times. Requests: a get and a few listings for each pending clustering.
    """
    found = pending_clusterings(session.snapshot)
    return tuple(instant.requested for instant in found if _give_up_outdated(session, instant))


def _give_up_outdated(session: WriteSession, instant: Instant) -> bool:
    """Roll back a clustering whose plan no longer holds. Returns whether it was rolled back."""
    why = _why_outdated(session.snapshot, instant)
    if not why:
        return False

    refuse_running(session, instant)
    refuse_to_end_doubled(session.access.storage, session.snapshot.timeline, instant.requested)
    log.info("clustering '%s' is given up: %s", instant.requested, why)
    run_rollback(session.table, session.snapshot.timeline, instant)
    return True


def _why_outdated(snapshot: Snapshot, instant: Instant) -> str:
    """Why the plan of a clustering no longer holds, for people; empty if it holds."""
    plan = read_plan(snapshot, instant)
    if changed := find_outdated(snapshot, instant, plan):
        return f"file group '{changed[1]}' in partition '{changed[0]}' has changed since it was planned"
    if is_resizing(plan) and new_rings(snapshot, instant, plan) is None:
        return "another resizing of the same ring has completed since it was planned"
    return ""


def _begin(
    job: ClusteringJob, session: WriteSession, instant: Instant, facts: BucketFacts | None, life: ExitStack
) -> _Begun:
    """Make a pending clustering ours, and give it a heartbeat until `life` ends.

    `facts`: of the table's rings, if it has rings. Raises: Invalid for a plan that does not fit the table.
    """
    snapshot = session.snapshot
    plan = read_plan(snapshot, instant)
    groups = group_tasks(snapshot, plan, new_uuid=job.new_uuid)
    columns = columns_of_service(snapshot, instant.requested)
    target = clustering_target(session, instant, plan, job.new_attempt(), columns, job.settings, job.base_files)
    _refuse_misfit(snapshot, instant, plan, facts)

    rings: dict[str, HashingMetadata] = {}
    work = partial(job.work.run, cluster_group, target, groups)
    if facts is not None:
        found = new_rings(snapshot, instant, plan)
        assert found is not None, "an outdated plan was given up in this turn"
        rings = found
        work = partial(job.work.run, resize_group, target, resize_tasks(snapshot, instant, plan, groups, rings, facts))

    run = begin_attempt(session, instant, groups_of(plan))
    show_life(session, instant.requested, life)
    return _Begun(run, plan, columns, work, tuple(rings.values()))


def _refuse_misfit(snapshot: Snapshot, instant: Instant, plan: ClusteringPlan, facts: BucketFacts | None) -> None:
    if is_resizing(plan) == (facts is not None):
        return
    what = "resizes rings of buckets" if is_resizing(plan) else "moves rows to any file group"
    has = "has rings of buckets" if facts is not None else "is not said to have rings"
    raise Invalid(
        f"{snapshot.storage.location.uri}: the plan of clustering '{instant.requested}' {what}, and the table {has} "
        f"(hoodie.index.type, hoodie.index.bucket.engine): set the options as the table was written, or take it off "
        f"the timeline: rollback('{instant.requested}')"
    )


def _finish(job: ClusteringJob, begun: _Begun, life: ExitStack) -> _Done:
    """Do the work of a clustering and complete it. One that fails stays pending; one that lost to a write goes."""
    target, what = begun.run.target, f"clustering '{begun.run.requested}'"

    with given_back_on_failure(begun.run, life):
        stats = tuple(begun.work())
        with awaited_session(job.open_session, job.clock, what=what) as session:
            metadata = _metadata(stats, begun.plan, stated_by_service(session.snapshot, begun.columns))
            moves = becoming(begun.plan, path=plan_path(session.snapshot, target))
            judge = partial(judge_clustering, groups=groups_of(begun.plan), becoming=moves)
            put_rings(session.access.storage, begun.rings)
            try:
                completed = session.complete(begun.run, metadata, judge, weighs_changes=True)
            except PlanOutdated:
                life.close()
                run_rollback(session.table, session.snapshot.timeline, target)
                raise
            mark_rings(session.access.storage, begun.rings)
            life.close()
            session.forget(target)

    log.info("%s: %d file groups became %d files", what, len(groups_of(begun.plan)), len(stats))
    return _Done(target.requested, completed, len(groups_of(begun.plan)), stats)


def _metadata(stats: Sequence[WriteStat], plan: ClusteringPlan, stated: Mapping[str, str]) -> CommitMetadata:
    replaced: dict[str, list[str]] = {}
    for one in slices_of(plan):
        replaced.setdefault(one.partition_path or "", []).append(one.file_id or "")
    return CommitMetadata(
        stats_by_partition(stats),
        OPERATION,
        stated,
        partition_to_replace_file_ids={partition: tuple(ids) for partition, ids in sorted(replaced.items())},
    )


def _result(done: Sequence[_Done], given_up: Sequence[str], *, reason: str) -> ClusteringResult:
    stats = [stat for one in done for stat in one.stats]
    newest = done[-1] if done else None
    return ClusteringResult(
        requested=newest.requested if newest else None,
        completed=newest.completed if newest else None,
        file_groups=sum(one.file_groups for one in done),
        files=len(stats),
        rows=sum(stat.num_writes or 0 for stat in stats),
        size_bytes=sum(stat.file_size_in_bytes or 0 for stat in stats),
        given_up=tuple(given_up),
        reason=reason,
    )
