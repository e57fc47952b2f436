"""Cleaning a table: finish pending cleans, then delete the files that the policy does not keep for readers."""

import logging
from dataclasses import dataclass, replace

from pyhudi.format.names import join
from pyhudi.format.timeline.records import ActionInstant, CleanerPlan, CleanFileInfo
from pyhudi.services.clean.execution import (
    CleanRun,
    DoneClean,
    carry_out_clean,
    forget_unplanned_clean,
    holds_nothing_but,
    request_clean,
)
from pyhudi.services.clean.inputs import (
    SAVEPOINTED,
    partitions_to_examine,
    read_protected,
    read_savepoints,
)
from pyhudi.services.clean.plan import CleanRules, earliest_to_retain, needed_by_newest, plan_partition
from pyhudi.services.clean.settings import CleanPolicy, CleanSettings
from pyhudi.table.view.cleaned import pending_cleans, planned_names, read_pending_plan
from pyhudi.table.view.commits import read_newest_clean
from pyhudi.table.view.snapshot import Snapshot, log_slicing
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.undo.leftovers import sweep_leftovers

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class CleanResult:
    """What a clean did, together with cleans that had been left pending and were finished first.

    `requested`, `completed`: times of the newest clean; None when there was none. `earliest_retained`: the requested
    time of the earliest commit whose readers find their files; None when the policy has none. `reason`: why nothing,
    or nothing new, was due; empty otherwise.
    """

    requested: str | None
    completed: str | None
    files_deleted: int
    partitions_deleted: int
    earliest_retained: str | None
    reason: str


def run_clean(session: WriteSession, settings: CleanSettings, *, is_asked: bool) -> CleanResult:
    """Finish pending cleans, then run a new one if there is anything to delete. The caller holds the guard.

    `is_asked`: clean now, however few commits there were since the last clean.
    """
    access = session.access
    snapshot = access.snapshot()
    run = CleanRun(session.table, snapshot.timeline, access.clock)
    done = finish_pending_cleans(run, snapshot)
    if done:
        snapshot = access.snapshot()

    planned = plan_clean(snapshot, settings, now_ms=access.clock.now_ms(), is_asked=is_asked)
    reason = planned if isinstance(planned, str) else ""
    if not isinstance(planned, str):
        requested = request_clean(run, planned)
        done = [*done, carry_out_clean(run, requested, planned)]

    if done:
        partitions = {partition for clean in done for partition in clean.metadata.partition_metadata}
        sweep_leftovers(
            access.storage, snapshot.config, partitions,
            now_ms=access.clock.now_ms(), heartbeat_expires_ms=session.heartbeat.expires_ms,
        )  # fmt: skip
    return _result(done, reason=reason)


def is_possibly_due(session: WriteSession, settings: CleanSettings) -> bool:
    """Whether a clean after this session's commit can find anything to do, judged by the session's snapshot alone.

    No request.
    """
    timeline = session.snapshot.timeline
    if pending_cleans(timeline):
        return True

    commits = len(timeline.completed_writes) + 1
    if settings.policy is CleanPolicy.COMMITS:
        return commits > settings.commits_retained
    return commits > 1


def finish_pending_cleans(run: CleanRun, snapshot: Snapshot) -> list[DoneClean]:
    """Carry out cleans of any writer that were left pending, oldest first.

    A rollback, a restore or a savepoint may have made the table need a file again since the plan was made. Such a file
    is spared. Requests: one get per clean, and one listing per partition of its plan.
    """
    done = []

    for instant in pending_cleans(run.timeline):
        plan = read_pending_plan(run.table.storage, run.timeline, instant)
        if plan is None:
            forget_unplanned_clean(run, instant.requested)
            continue

        spared = _still_needed(snapshot, plan)
        for partition, names in spared.items():
            log.warning(
                "clean '%s': %s file(s) in partition '%s' are needed again and stay, such as %s",
                instant.requested, len(names), partition, min(names),
            )  # fmt: skip

        log.info("finishing clean '%s', which was left pending", instant.requested)
        done.append(carry_out_clean(run, instant.requested, plan, still_needed=spared))
    return done


def plan_clean(
    snapshot: Snapshot, settings: CleanSettings, *, now_ms: int, is_asked: bool, partitions: list[str] | None = None
) -> CleanerPlan | str:
    """The plan of a new clean; or, in words, why there is nothing to do. `partitions`: look only into these.

    Cost: one get for the last clean, and one get each for commits that have left the retained range since then,
    savepoints, pending services and replacecommits. Listings come from the metadata table, or take one list request
    per partition.
    """
    storage, timeline = snapshot.storage, snapshot.timeline
    last = read_newest_clean(storage, timeline)
    since = last.last_completed_commit if last is not None else ""
    fresh = sum(1 for write in timeline.completed_writes if write.requested > since)
    if not is_asked and fresh < settings.trigger_commits:
        return f"{fresh} commits since the last clean: expected {settings.trigger_commits} (hoodie.clean.trigger.*)"

    earliest = earliest_to_retain(
        timeline,
        settings,
        hours_start=settings.hours_start(now_ms, snapshot.zone),
        previous=(last.earliest_commit_to_retain if last is not None else "") or None,
    )
    if earliest is None and settings.policy is not CleanPolicy.VERSIONS:
        return f"every commit is within what {settings.policy.value} retains"

    savepoints = read_savepoints(storage, timeline)
    if partitions is None:
        partitions = partitions_to_examine(
            storage, timeline, last=last, earliest=earliest.requested if earliest else None,
            is_incremental=settings.is_incremental, savepoints=savepoints,
            every_partition=lambda: snapshot.listing.partitions(),
        )  # fmt: skip

    rules = _rules(snapshot, settings, earliest.requested if earliest else None)
    rules = replace(rules, protected=read_protected(storage, timeline, savepoints)) if partitions else rules
    files, emptied = _superfluous(snapshot, partitions, rules)
    if not files:
        return "no file is superfluous"

    return CleanerPlan(
        ActionInstant(earliest.requested, earliest.action, "COMPLETED") if earliest else None,
        timeline.completed_writes[-1].requested if timeline.completed_writes else "",
        settings.policy.value,
        file_paths_to_be_deleted_per_partition=files,
        partitions_to_be_deleted=emptied,
        extra_metadata={SAVEPOINTED: ",".join(savepoints.requested)} if savepoints.requested else {},
    )


def _superfluous(
    snapshot: Snapshot, partitions: list[str], rules: CleanRules
) -> tuple[dict[str, tuple[CleanFileInfo, ...]], tuple[str, ...]]:
    """The files to delete by partition, with absolute paths, and the partitions that will be empty after that."""
    root = snapshot.storage.location.uri.rstrip("/")
    files: dict[str, tuple[CleanFileInfo, ...]] = {}
    emptied = []
    snapshot.listing.expect(partitions)

    for partition in partitions:
        found = plan_partition(partition, snapshot.listing.files(partition), rules)
        if found.names:
            files[partition] = tuple(CleanFileInfo(f"{root}/{join(partition, name)}") for name in found.names)
        if found.is_replaced and partition and holds_nothing_but(snapshot.storage, partition, found.names):
            emptied.append(partition)
    return files, tuple(emptied)


def _still_needed(snapshot: Snapshot, plan: CleanerPlan) -> dict[str, set[str]]:
    """Partition -> names in a plan that are protected, or that a reader of the newest table state needs."""
    savepoints = read_savepoints(snapshot.storage, snapshot.timeline)
    rules = _rules(snapshot, CleanSettings(policy=CleanPolicy.VERSIONS), None)
    rules = replace(rules, protected=read_protected(snapshot.storage, snapshot.timeline, savepoints))

    needed: dict[str, set[str]] = {}
    for partition, names in planned_names(plan).items():
        found = needed_by_newest(partition, snapshot.listing.files(partition), rules) & set(names)
        if found:
            needed[partition] = found
    return needed


def _rules(snapshot: Snapshot, settings: CleanSettings, earliest: str | None) -> CleanRules:
    return CleanRules(
        policy=settings.policy,
        versions_retained=settings.versions_retained,
        earliest=earliest,
        timeline=snapshot.timeline,
        slicing=log_slicing(snapshot.config),
        replaced=snapshot.replaced,
    )


def _result(done: list[DoneClean], *, reason: str) -> CleanResult:
    newest = done[-1] if done else None
    return CleanResult(
        requested=newest.requested if newest else None,
        completed=newest.completed if newest else None,
        files_deleted=sum(clean.metadata.total_files_deleted for clean in done),
        partitions_deleted=sum(
            1
            for clean in done
            for cleaned in clean.metadata.partition_metadata.values()
            if cleaned.is_partition_deleted
        ),
        earliest_retained=(newest.metadata.earliest_commit_to_retain or None) if newest else None,
        reason=reason,
    )
