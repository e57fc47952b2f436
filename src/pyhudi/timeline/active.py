"""The active timeline as a value. Each call of a table reads it anew."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import cached_property
from typing import TypeAlias, assert_never

from pyhudi.by_content import ByContent
from pyhudi.errors import NotFound
from pyhudi.format.timeline.instant import PENDING_SERVICE_ACTIONS, STATES, WRITE_ACTIONS, Instant
from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.history import History, NoHistory
from pyhudi.timeline.layout import TimelineLayout
from pyhudi.timeline.log_history import LogHistory
from pyhudi.timeline.lsm_history import LsmHistory
from pyhudi.versions import HistoryForm, TimelineKind


@dataclass(frozen=True)
class Timeline:
    """Every instant of the active timeline at its highest state, ordered by requested time.

    `until`: for time travel, the last requested time whose write is seen; None for now.
    `completed_until`: for a range of completion times, the last one whose write is seen; None for now, and on layout 1.
    `history`: the archived instants. Asking for them costs requests.
    `log_compactions`: the requested times of the log compactions on this timeline, in any state. They are kept apart
    because a completed log compaction is named a delta commit.
    `undone`: the requested times of writes that a pending restore is about to roll back. No reader sees them any more.
    """

    layout: TimelineLayout
    instants: tuple[Instant, ...]
    until: str | None = None
    history: History = field(default_factory=NoHistory, compare=False, repr=False)
    log_compactions: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    undone: frozenset[str] = frozenset()
    completed_until: str | None = None

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    @cached_property
    def completed_writes(self) -> tuple[Instant, ...]:
        """Completed instants that may have written data, ordered by requested time."""
        writes = (i for i in self.instants if i.is_completed and i.action in WRITE_ACTIONS)
        seen = (i for i in writes if self.until is None or i.requested <= self.until)
        return tuple(i for i in seen if i.requested not in self.undone and not self._is_late(i))

    def _is_late(self, instant: Instant) -> bool:
        return self.completed_until is not None and (instant.completed or "") > self.completed_until

    @cached_property
    def pending(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if not i.is_completed)

    @cached_property
    def pending_restores(self) -> tuple[Instant, ...]:
        """Pending restores. While there is one, only a listing of the storage tells which files the table has."""
        return tuple(i for i in self.pending if i.action == "restore")

    @cached_property
    def pending_services(self) -> tuple[Instant, ...]:
        """Pending compactions and clusterings. On layout 1 a pending replacecommit is included, as it may cluster."""
        services = PENDING_SERVICE_ACTIONS | {self.layout.kind.clustering}
        return tuple(i for i in self.pending if i.action in services)

    @cached_property
    def completed_requested_times(self) -> frozenset[str]:
        return frozenset(i.requested for i in self.completed_writes)

    @cached_property
    def completion_times(self) -> dict[str, str]:
        """Requested time -> completion time of completed writes."""
        return {i.requested: i.completed for i in self.completed_writes if i.completed is not None}

    @cached_property
    def start(self) -> str | None:
        """The requested time of the first write that no savepoint pins. Older instants are archived.

        If savepoints pin all writes, as right after a restore to a savepoint: the requested time of the last write, as
        later writes were not archived but rolled back.
        """
        writes = [i.requested for i in self.instants if i.comparable_action in WRITE_ACTIONS]
        return next(iter(self._not_pinned), max(writes, default=None))

    @cached_property
    def _not_pinned(self) -> tuple[str, ...]:
        """The requested times of the writes that no savepoint pins, in order."""
        pinned = {i.requested for i in self.instants if i.action == "savepoint" and i.is_completed}
        writes = (i.requested for i in self.instants if i.comparable_action in WRITE_ACTIONS)
        return tuple(requested for requested in writes if requested not in pinned)

    def may_have_archived_after(self, requested: str | None) -> bool:
        """Whether instants that were requested after this time may be archived. None: after any time. No request.

        The first write may be one that a savepoint pinned, which was deleted since: what was archived beyond it is
        later. So the second write bounds the archive.
        """
        if self.start is None or requested is None:
            return self.start is not None
        return requested < max((self.start, *self._not_pinned[1:2]))

    @cached_property
    def _pending_requested_times(self) -> frozenset[str]:
        return frozenset(i.requested for i in self.pending)

    def is_committed(self, requested: str) -> bool:
        """Whether a write at this requested time is completed: on this timeline, or archived before it.

        Spec: format/timeline.md section 7, "Committed test".
        """
        if requested in self.completed_requested_times:
            return True
        if requested in self._pending_requested_times or requested in self.undone:
            return False
        if self.until is not None and requested > self.until:
            return False
        if requested in self._late:
            return False
        if self.start is None:
            return False
        if requested < self.start:
            return True
        return requested < max(self.completed_requested_times, default="") and requested in self._archived_since_start

    @cached_property
    def _late(self) -> frozenset[str]:
        """The requested times of the writes that completed after the last one that is seen."""
        if self.completed_until is None:
            return frozenset()
        active = (i for i in self.instants if i.is_completed and i.action in WRITE_ACTIONS and self._is_late(i))
        archived = self.archived_writes(completed_after=self.completed_until)
        return frozenset(i.requested for i in (*active, *archived))

    @cached_property
    def _archived_since_start(self) -> frozenset[str]:
        """The requested times of archived writes that are later than the first write on this timeline.

        Archiving beyond a savepoint leaves the savepoint's commit behind; once the savepoint is deleted, that commit is
        the first. Seen: Apache Hudi reads no file of these writes, with the savepoint or without it (0.15.0, 1.0.2,
        1.2.0).
        """
        return frozenset(i.requested for i in self.archived_writes(requested_from=self.start))

    @cached_property
    def newest(self) -> str | None:
        """The newest time of any instant on this timeline, requested time or completion time.

        On layout 1 only requested times count. Completion times there are the dates of files, which a copy of the table
        may have changed.
        """
        requested = max((i.requested for i in self.instants), default=None)
        if requested is None or not self.layout.has_completion_times:
            return requested
        return max(requested, max((i.completed for i in self.instants if i.completed), default=""))

    def effective_time(self, instant: Instant) -> str:
        """The time that orders completed instants: the completion time, or on layout 1 the requested time."""
        if not self.layout.has_completion_times or instant.completed is None:
            return instant.requested
        return instant.completed

    def completion_time(self, requested: str) -> str | None:
        """The completion time of a write, active or archived; None if the write is pending or not known."""
        known = self.completion_times.get(requested)
        if known is not None or not self.is_committed(requested):
            return known
        archived = self.archived_writes(requested_from=requested, requested_until=requested)
        return archived[0].completed if archived else None

    def archived_writes(
        self,
        *,
        requested_from: str | None = None,
        requested_until: str | None = None,
        completed_after: str | None = None,
    ) -> tuple[Instant, ...]:
        """Completed writes that are only in the history, within the bounds that `History.instants` takes."""
        until = min((t for t in (requested_until, self.until) if t is not None), default=None)
        found = self.history.instants(
            requested_from=requested_from, requested_until=until, completed_after=completed_after
        )
        return tuple(i for i in found if i.action in WRITE_ACTIONS and not self.is_active(i))

    def is_active(self, instant: Instant) -> bool:
        """Whether an instant is on this active timeline, in any state."""
        return (instant.requested, instant.comparable_action) in self._active_keys

    @cached_property
    def _active_keys(self) -> frozenset[tuple[str, str]]:
        return frozenset((i.requested, i.comparable_action) for i in self.instants)

    def with_archived(self) -> tuple[Instant, ...]:
        """Every instant, archived and active, each once, by requested time."""
        archived = (i for i in self.history.instants() if not self.is_active(i))
        return tuple(sorted((*archived, *self.instants), key=lambda i: (i.requested, i.action)))

    def get_completed(self, requested: str) -> Instant:
        for instant in self.completed_writes:
            if instant.requested == requested:
                return instant
        raise NotFound(f"instant '{requested}': no completed write of that requested time on the active timeline")

    def up_to(self, requested: str) -> "Timeline":
        """This timeline as time travel to `requested` sees it. Spec: format/queries.md section 1, "Time travel"."""
        return replace(self, until=requested)

    def completed_by(self, completed: str) -> "Timeline":
        """This timeline as it was when this completion time had passed. Only where completion times are stored."""
        assert self.layout.has_completion_times
        return replace(self, completed_until=completed)


def read_timeline(storage: Storage, layout: TimelineLayout, zone: tzinfo) -> Timeline:
    """List the timeline's folder once and keep the highest state of each instant. One list request."""
    start = len(layout.folder) + 1
    files = tuple([(file.path[start:], file.modified_ms) for file in storage.list(layout.folder)])
    instants, log_compactions = _listed.get((layout.kind, zone, files), lambda: _instants(files, layout, zone))
    return Timeline(layout, instants, log_compactions=log_compactions, history=open_history(storage, layout))


_Instants: TypeAlias = tuple[tuple[Instant, ...], frozenset[str]]
_listed: ByContent[tuple[TimelineKind, tzinfo, tuple[tuple[str, int], ...]], _Instants] = ByContent(
    16 << 20, lambda content, _: 500 * len(content[2])
)
"""The instants of folders that were listed before, by the names and times of their files."""


def _instants(files: tuple[tuple[str, int], ...], layout: TimelineLayout, zone: tzinfo) -> _Instants:
    """Each instant at its highest state, and the requested times of log compactions. `files`: names, modified when."""
    highest: dict[tuple[str, str], Instant] = {}
    log_compactions: set[str] = set()
    for name, modified_ms in files:
        instant = layout.parse(name)
        if instant is None:
            continue
        if instant.action == "logcompaction":
            log_compactions.add(instant.requested)
        # Layout 1: the file's modification time stands for the completion time.
        if instant.is_completed and instant.completed is None:
            instant = replace(instant, completed=format_instant(modified_ms, zone))

        key = instant.requested, instant.comparable_action
        known = highest.get(key)
        if known is None or STATES.index(instant.state) > STATES.index(known.state):
            highest[key] = instant

    return tuple(sorted(highest.values(), key=lambda i: (i.requested, i.action))), frozenset(log_compactions)


def open_history(storage: Storage, layout: TimelineLayout) -> History:
    """The archived instants of a timeline. No request yet."""
    match layout.kind.history:
        case HistoryForm.SORTED_FILES:
            return LsmHistory(storage, layout.history_folder, names_bound=layout.has_sorted_history)
        case HistoryForm.LOGS:
            beside = (layout.folder,) if layout.kind.may_archive_beside else ()
            return LogHistory(storage, layout.history_folder, *beside)
    assert_never(layout.kind.history)
