"""An action of a table, from requested to completed.

Every action goes this way: writes, services, rollbacks, restores, savepoints, indexing, and the actions of the
metadata table itself.

Begin: the holder of the table's guard puts the requested file, then the inflight file. Work: the guard is not needed.
Complete: the holder of the guard then takes the steps of `ActionRun.complete`, in their order.

A crash before the completed file leaves a pending action. The next writer takes the action back or completes it. A
crash after the completed file leaves markers and a heartbeat at most. The next writer removes them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyhudi.errors import Conflict
from pyhudi.format.timeline.instant import STATES, Instant
from pyhudi.metrics.events import VerdictGiven
from pyhudi.metrics.listeners import is_listening, tell
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.pending import FileGroup
from pyhudi.timeline.layout import TimelineLayout
from pyhudi.txn.action.markers import read_markers, remove_lost_files
from pyhudi.txn.action.outcome import put_completed, refuse_unlanded
from pyhudi.txn.action.participants import CommitParticipant
from pyhudi.txn.conflicts.verdict import Refused, TableState, Verdict, refuse


@dataclass(frozen=True, slots=True)
class Ending:
    """What an action is completed with.

    `content`: the bytes of the completed file. `tell`: tells a participant what the action did; None when no
    participant needs to know. `written`: the data files that the action says it wrote; None for an action that puts no
    markers. `verdict`: decides from the files that have markers whether the action may complete; None for an action
    that nothing can conflict with.
    """

    content: bytes
    tell: Callable[[CommitParticipant], None] | None = None
    written: frozenset[str] | None = None
    verdict: Callable[[frozenset[str]], Verdict] | None = None


@dataclass(frozen=True)
class ActionTable:
    """A table on which the holder of its guard begins and completes actions.

    `issue_instant`: gives a new time, later than any on the timeline. `confirm`: raises LockLost when the table is no
    longer ours. `participants`: what must stay true to the table, such as its metadata table; none for the metadata
    table itself.
    """

    storage: Storage
    layout: TimelineLayout
    issue_instant: Callable[[], str]
    confirm: Callable[[], None]
    participants: Sequence[CommitParticipant] = ()

    def request(self, instant: Instant, content: bytes) -> Instant:
        """Put the first file of a new action. Raises: Conflict when a file of this name exists."""
        if not self.storage.put_new(self.layout.path(instant), content):
            raise Conflict(
                f"{instant.action} '{instant.requested}': another writer requested one under this name; retry"
            )
        return instant

    def begin(
        self,
        requested: str,
        action: str,
        *,
        request: bytes | None = None,
        inflight: bytes = b"",
        upon: TableState | None = None,
    ) -> "ActionRun":
        """Put the requested file, then the inflight file. Files that an earlier attempt has put stay as they are.

        `request`: content of the requested file; None for an action that was requested before. `upon`: see `ActionRun`.
        """
        if request is not None:
            self.storage.put_new(self.layout.path(Instant(requested, action, "REQUESTED")), request)
        run = ActionRun(self, Instant(requested, action, "INFLIGHT"), upon)
        run.put_inflight(inflight)
        return run


@dataclass(frozen=True, slots=True)
class ActionRun:
    """An action that was begun.

    `table`: the table as it was held when the action began. `on` replaces it when the action completes in a later turn.
    `target`: the action's inflight instant. `upon`: the state of the table on which the action was planned, for the
    verdict; None for an action that needs no verdict.
    """

    table: ActionTable
    target: Instant
    upon: TableState | None = None

    @property
    def requested(self) -> str:
        return self.target.requested

    @property
    def planned(self) -> Mapping[FileGroup, Instant]:
        """The file groups in the plans of services that were pending when the action was planned."""
        return self.upon.planned if self.upon is not None else {}

    def put_inflight(self, content: bytes) -> None:
        """Say on the timeline what the action is about to do."""
        self.table.storage.put_new(self.table.layout.path(self.target), content)

    def on(self, table: ActionTable) -> "ActionRun":
        """The same action, to be completed in another turn at the table."""
        return replace(self, table=table)

    def complete(self, ending: Ending) -> Instant:
        """Complete the action. Returns its completed instant.

        Order: the verdict on what others did; the files of lost task attempts are deleted; participants take over what
        the action did; the completed file is put. The hold is confirmed before each step that others could see.

        Raises: Conflict when the verdict is against the action; LockLost when the table is no longer ours;
        OutcomeUnknown when nobody can say whether the action landed.
        """
        table = self.table
        self._reconcile(ending)

        if ending.tell is not None:
            for participant in table.participants:
                ending.tell(participant)

        completed = Instant(self.target.requested, self.target.action, "COMPLETED", table.issue_instant())
        table.confirm()
        refuse_unlanded(put_completed(table.storage, table.layout, completed, ending.content), completed)
        return completed

    def _reconcile(self, ending: Ending) -> None:
        """Ask for the verdict, then delete the files of lost task attempts.

        A lost attempt's file has a marker, and is not among the files that the action says it wrote.
        Spec: format/actions.md section 1.
        """
        if ending.written is None:
            return

        table = self.table
        markers = read_markers(table.storage, self.requested) or []
        if ending.verdict is not None:
            verdict = ending.verdict(frozenset(marker.data_path for marker in markers))
            self._tell_of(verdict)
            refuse(verdict)

        table.confirm()
        lost = [marker for marker in markers if marker.data_path not in ending.written]
        remove_lost_files(table.storage, self.requested, lost)

    def _tell_of(self, verdict: Verdict) -> None:
        if is_listening():
            why = verdict.why if isinstance(verdict, Refused) else ""
            tell(VerdictGiven(self.table.storage.location.uri, self.target.action, self.requested, why))


def delete_pending_states(storage: Storage, layout: TimelineLayout, instant: Instant) -> None:
    """Delete the inflight file of an action, then its requested file. In this order a crash leaves a known action."""
    for state in reversed(STATES[:-1]):
        storage.delete(layout.path(Instant(instant.requested, instant.action, state)))
