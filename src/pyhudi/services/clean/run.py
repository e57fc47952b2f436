"""Cleaning a table: finish pending cleans, then delete the files that the policy does not keep for readers.

A clean of few files is carried out in the turn in which it is planned: that takes less time than a second turn. A
larger one deletes its files while others write. It holds the table to begin and to complete. What it deletes is needed
by no reader of a retained commit, and by no write that begins later. Those who may read older files leave out what a
pending clean names (`table/view/cleaned.py`).

A pending clean whose writer lives is left alone. Any other is finished by the next clean, under its own plan.
"""

import logging
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from pyhudi.errors import Conflict, LockLost, OutcomeUnknown, Unavailable
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CleanerPlan
from pyhudi.services.clean.execution import (
    BegunClean,
    CleanRun,
    DoneClean,
    begin_clean,
    carry_out_clean,
    complete_clean,
    forget_unplanned_clean,
    request_clean,
)
from pyhudi.services.clean.planning import plan_clean, still_needed
from pyhudi.services.clean.settings import CleanPolicy, CleanSettings
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.cleaned import pending_cleans, planned_names, read_pending_plan
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.service_action import OpenSession, awaited_session, show_life
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.locks.heartbeat import remove_heartbeat
from pyhudi.txn.locks.running import forget_running
from pyhudi.txn.undo.leftovers import sweep_leftovers

log = logging.getLogger("pyhudi")

IN_TURN_FILES_MAX = 100
"""How many files a clean deletes at most while it holds the table. On local disk this takes a few milliseconds."""
_FILES_AT_A_TIME = 1_000


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


@dataclass(frozen=True)
class CleanJob:
    """What cleans need that are carried out beside other writers.

    `open_session`: the turn in which a clean begins. `go_on`: the turn in which it completes.
    """

    settings: CleanSettings
    open_session: OpenSession
    go_on: OpenSession
    clock: Clock


@dataclass(frozen=True, slots=True)
class _Due:
    """A clean on the timeline that is too large for this turn. `is_new`: it was planned in this turn."""

    requested: str
    plan: CleanerPlan
    spared: dict[str, set[str]]
    is_new: bool


@dataclass(frozen=True, slots=True)
class CleanTurn:
    """What was done about cleans in one turn.

    `left`: the clean that is to be carried out beside other writers; None if there is none. `reason`: as in
    `CleanResult`.
    """

    done: tuple[DoneClean, ...]
    left: _Due | None
    reason: str

    @property
    def result(self) -> CleanResult:
        """What was done in this turn."""
        return _result(self.done, reason=self.reason)


@dataclass(frozen=True, slots=True)
class _Running:
    """A clean that this process carries out. `expires_ms`: after so long without a sign of life it counts as dead."""

    begun: BegunClean
    storage: Storage
    snapshot: Snapshot
    expires_ms: int


def run_cleans(job: CleanJob, *, is_asked: bool) -> CleanResult:
    """Finish every pending clean that nobody runs, oldest first, then plan a new one and carry it out.

    `is_asked`: clean now, however few commits there were since the last clean.
    Raises: Conflict while another writer holds the table.
    """
    done: list[DoneClean] = []
    while True:
        with ExitStack() as life:
            with job.open_session() as session:
                turn = clean_in_turn(session, job.settings, is_asked=is_asked)
                done += turn.done
                if turn.left is None:
                    return _result(done, reason=turn.reason)
                running = _begin(session, turn.left, life)
            done.append(_finish(job, running, life))
        if turn.left.is_new:
            return _result(done, reason="")


def clean_in_turn(session: WriteSession, settings: CleanSettings, *, is_asked: bool) -> CleanTurn:
    """Do what can be done at once, under the guard: small cleans, those that were left pending first.

    A clean that is too large is put on the timeline, and left. `is_asked`: as in `run_cleans`.
    """
    access = session.access
    snapshot = access.snapshot()
    run = CleanRun(session.table, snapshot.timeline, access.clock)
    life = session.life()
    done: list[DoneClean] = []
    reason = ""

    for instant in pending_cleans(snapshot.timeline):
        if life.living(access.storage, instant.requested) is not None:
            reason = f"clean '{instant.requested}' is being carried out by another writer"
            continue
        due = _left_pending(session, run, snapshot, instant)
        if due is not None and _is_large(due):
            return CleanTurn(tuple(done), due, "")
        if due is not None:
            done.append(carry_out_clean(run, due.requested, due.plan, still_needed=due.spared))
        _forget_dead(session, instant)

    if not reason:
        planned = _plan(session, access.snapshot() if done else snapshot, settings, is_asked=is_asked)
        if isinstance(planned, _Due) and _is_large(planned):
            return CleanTurn(tuple(done), planned, "")
        if isinstance(planned, _Due):
            done.append(carry_out_clean(run, planned.requested, planned.plan))
        else:
            reason = planned

    _sweep(session.heartbeat.expires_ms, access.clock, snapshot, done)
    return CleanTurn(tuple(done), None, reason)


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


def _left_pending(session: WriteSession, run: CleanRun, snapshot: Snapshot, instant: Instant) -> _Due | None:
    """A pending clean of any writer that nobody runs. None if it had no plan: then it is taken off the timeline.

    A rollback, a restore or a savepoint may have made the table need a file again since the plan was made. Such a file
    is spared. Requests: one get, and one listing per partition of its plan.
    """
    plan = read_pending_plan(session.access.storage, run.timeline, instant)
    if plan is None:
        forget_unplanned_clean(run, instant.requested)
        return None

    spared = still_needed(snapshot, plan)
    for partition, names in spared.items():
        log.warning(
            "clean '%s': %s file(s) in partition '%s' are needed again and stay, such as %s",
            instant.requested, len(names), partition, min(names),
        )  # fmt: skip

    log.info("finishing clean '%s', which was left pending", instant.requested)
    return _Due(instant.requested, plan, spared, is_new=False)


def _plan(session: WriteSession, snapshot: Snapshot, settings: CleanSettings, *, is_asked: bool) -> _Due | str:
    """A new clean, put on the timeline; or, in words, why there is nothing to do."""
    run = CleanRun(session.table, snapshot.timeline, session.access.clock)
    planned = plan_clean(snapshot, settings, now_ms=session.access.clock.now_ms(), is_asked=is_asked)
    if isinstance(planned, str):
        return planned
    return _Due(request_clean(run, planned), planned, {}, is_new=True)


def _is_large(due: _Due) -> bool:
    return sum(map(len, planned_names(due.plan).values())) > IN_TURN_FILES_MAX


def _begin(session: WriteSession, due: _Due, life: ExitStack) -> _Running:
    """Make a clean ours, and give signs of life until `life` ends."""
    run = CleanRun(session.table, session.snapshot.timeline, session.access.clock)
    show_life(session, due.requested, life)
    begun = begin_clean(run, due.requested, due.plan, still_needed=due.spared)
    return _Running(begun, session.access.storage, session.snapshot, session.heartbeat.expires_ms)


def _finish(job: CleanJob, running: _Running, life: ExitStack) -> DoneClean:
    """Delete the files of a clean, then complete it.

    A clean that fails stays pending. Its heartbeat is removed, so that the next clean can finish it at once.
    """
    requested, storage = running.begun.requested, running.storage
    try:
        _delete(job.clock, running)
        with awaited_session(job.go_on, job.clock, what=f"clean '{requested}'") as session:
            timeline = session.snapshot.timeline
            if not any(instant.requested == requested for instant in pending_cleans(timeline)):
                raise Conflict(f"clean '{requested}': another writer took it for dead, and has completed it")
            done = complete_clean(CleanRun(session.table, timeline, job.clock), running.begun)
            life.close()
            session.forget(running.begun.action.target)
    except (Conflict, LockLost, OutcomeUnknown):  # another process may run it by now, or it may have landed
        raise
    except Exception:
        life.close()
        with suppress(Unavailable):
            remove_heartbeat(storage, requested)
        raise

    _sweep(running.expires_ms, job.clock, running.snapshot, [done])
    return done


def _delete(clock: Clock, running: _Running) -> None:
    """Delete the files of a clean, without the guard.

    Raises: Conflict if this process stood still for so long that others took it for dead. They may have spared files
    that are needed again.
    """
    paths, alive_ms = running.begun.paths, clock.now_ms()
    for start in range(0, len(paths), _FILES_AT_A_TIME):
        now_ms = clock.now_ms()
        if now_ms - alive_ms > running.expires_ms:
            raise Conflict(
                f"clean '{running.begun.requested}': stood still for {now_ms - alive_ms:,} ms, so that others may have "
                "taken it for dead; if it is still pending, the next clean finishes it"
            )
        running.storage.delete_many(paths[start : start + _FILES_AT_A_TIME])
        alive_ms = now_ms


def _forget_dead(session: WriteSession, instant: Instant) -> None:
    """Remove the signs of life that the dead writer of a clean has left."""
    remove_heartbeat(session.access.storage, instant.requested)
    forget_running(session.access.guard, instant.requested)


def _sweep(expires_ms: int, clock: Clock, snapshot: Snapshot, done: list[DoneClean]) -> None:
    if done:
        partitions = {partition for clean in done for partition in clean.metadata.partition_metadata}
        sweep_leftovers(
            snapshot.storage, snapshot.config, partitions, now_ms=clock.now_ms(), heartbeat_expires_ms=expires_ms
        )  # fmt: skip


def _result(done: Sequence[DoneClean], *, reason: str) -> CleanResult:
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
