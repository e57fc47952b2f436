"""The life of a write that works without the guard.

A write has two turns at the table. In the first it begins: its heartbeat and its lock say that it lives, and its
requested file is on the timeline. Then it works: it finds where its rows go, and writes files under names that no other
writer uses. In the second turn it completes, if what others did meanwhile allows that. A write may also hold the table
from its beginning to its end (`OneTurn`); then nobody can be in its way.

A write that fails is rolled back at once, in a turn of its own. If its process dies, the next writer does that.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol

from pyhudi.errors import Conflict, HudiError, LockLost, NotFound, OutcomeUnknown
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CommitMetadata
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.txn.action.run import ActionRun, delete_pending_states
from pyhudi.txn.action.service_action import show_life
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.conflicts.verdict import Judge, PlanOutdated
from pyhudi.txn.undo.rollback import run_rollback


class Turns(Protocol):
    """A writer's turns at a table. `is_alone`: nobody else can complete anything between them."""

    @property
    def is_alone(self) -> bool: ...

    def first(self) -> AbstractContextManager[WriteSession]:
        """The turn in which a write begins. What dead writers left is cleared up. Raises: as `write_session`."""

    def last(self) -> AbstractContextManager[WriteSession]:
        """The turn in which a write completes, or is rolled back."""


@dataclass(frozen=True, slots=True)
class TwoTurns:
    """The guard is held to begin and to complete a write, and free between."""

    begin: Callable[[], AbstractContextManager[WriteSession]]
    go_on: Callable[[], AbstractContextManager[WriteSession]]

    @property
    def is_alone(self) -> bool:
        return False

    def first(self) -> AbstractContextManager[WriteSession]:
        return self.begin()

    def last(self) -> AbstractContextManager[WriteSession]:
        return self.go_on()


@dataclass(frozen=True, slots=True)
class OneTurn:
    """A turn that lasts from a write's beginning to its end. Whoever opened `session` ends it."""

    session: WriteSession

    @property
    def is_alone(self) -> bool:
        return True

    @contextmanager
    def first(self) -> Iterator[WriteSession]:
        yield self.session

    def last(self) -> AbstractContextManager[WriteSession]:
        return self.first()


@dataclass(slots=True)
class RunningWrite:
    """A write that has begun.

    `session`: the turn in which it began; the write is planned upon its snapshot. `run`: its action. `life`: its signs
    of life, which end with it. `is_planned`: whether it may have put other files than its requested one.
    """

    turns: Turns
    session: WriteSession
    run: ActionRun
    life: ExitStack
    is_planned: bool = False

    def put_inflight(self, content: bytes) -> None:
        """Say on the timeline what the write is about to do, before it does anything."""
        self.is_planned = True
        self.run.put_inflight(content)

    def withdraw(self) -> None:
        """End a write that has put no file but its requested one. Nothing tells of it afterwards."""
        assert not self.is_planned
        table = self.run.table
        delete_pending_states(table.storage, table.layout, self.run.target)
        self.life.close()
        self.session.forget(self.run.target)

    @contextmanager
    def completing(
        self, metadata: CommitMetadata, judge: Judge, *, first: Callable[[WriteSession], None] | None = None
    ) -> Iterator[tuple[WriteSession, str]]:
        """Complete the write. Gives the turn, which goes on in the `with` block, and the write's completion time.

        `first`: is called in the turn before anything else.
        Raises: as `first` does; Conflict when what others did is in the write's way (PlanOutdated: it may be planned
        anew); as `ActionRun.complete` otherwise.
        """
        with self.turns.last() as session:
            if first is not None:
                first(session)
            completed = session.complete(self.run, metadata, judge, weighs_changes=True)
            self.life.close()
            session.forget(self.run.target)
            yield session, completed


def begin_write(
    turns: Turns, session: WriteSession, action: str, request: bytes, life: ExitStack, *, requested: str | None = None
) -> RunningWrite:
    """Begin a write in the turn `session`. `action`: commit, deltacommit or replacecommit. `request`: its content.

    `life`: shows the write's signs of life until it is closed. Order: lock and heartbeat, then the requested file.
    `requested`: the write's instant; None: a new one. The instants of a bootstrap are always the same.
    """
    table = session.table
    requested = table.issue_instant() if requested is None else requested
    show_life(session, requested, life)
    table.request(Instant(requested, action, "REQUESTED"), request)
    run = ActionRun(table, Instant(requested, action, "INFLIGHT"), session.state)
    return RunningWrite(turns, session, run, life)


@contextmanager
def rolled_back_on_failure(write: RunningWrite) -> Iterator[None]:
    """Roll the write back at once if the block raises an Exception, which is raised again.

    A write that fails before it is planned is withdrawn: there is nothing to roll back.
    Nothing is touched after OutcomeUnknown, since the write may have landed, nor after LockLost, since the table is no
    longer ours; then the next writer finds out what happened.
    """
    try:
        yield
    except (OutcomeUnknown, LockLost):
        raise
    except Exception as error:
        try:
            is_outdated = _roll_back(write) if write.is_planned else _withdraw(write)
        except HudiError as second:  # the write's own error says more; the next writer does the rollback
            error.add_note(f"{write.run.target.action} '{write.run.requested}' could not be rolled back yet: {second}")
            raise error from None
        if is_outdated and isinstance(error, (Conflict, NotFound)) and not isinstance(error, PlanOutdated):
            raise PlanOutdated(
                f"others wrote meanwhile what this write was planned upon; run it again: {error}"
            ) from error
        raise


def _withdraw(write: RunningWrite) -> bool:
    """Withdraw a write that failed. Returns whether others have completed writes since it began."""
    write.withdraw()
    table = write.run.table
    return _is_outdated(write, read_timeline(table.storage, table.layout, write.session.snapshot.zone))


def _roll_back(write: RunningWrite) -> bool:
    """Roll back a write that failed, unless somebody has done so. Returns whether its plan is outdated."""
    with write.turns.last() as session:
        table = session.table
        timeline = read_timeline(table.storage, table.layout, session.snapshot.zone)
        is_pending = any(instant.requested == write.run.requested for instant in timeline.pending)
        if is_pending:
            session.hold.confirm()
            run_rollback(table, timeline, write.run.target)
        write.life.close()
        return not is_pending or _is_outdated(write, timeline)


def _is_outdated(write: RunningWrite, now: Timeline) -> bool:
    """Whether others have completed writes since a write began."""
    upon = write.run.upon
    return upon is not None and not now.completed_requested_times <= upon.committed
