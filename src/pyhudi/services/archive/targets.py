"""The histories that archived instants are moved into. Each timeline layout has its own form of history."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Protocol, assert_never

from pyhudi.format.timeline.archived_log import ArchivedState
from pyhudi.format.timeline.instant import STATES, WRITE_ACTIONS, Instant, State
from pyhudi.format.timeline.instant_text import format_instant
from pyhudi.services.archive.settings import ArchiveSettings
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import open_history
from pyhudi.timeline.layout import TimelineLayout
from pyhudi.timeline.log_history import append_states, newest_states
from pyhudi.timeline.lsm_writer import ArchivedAction, append_actions, clean_history, compact_history
from pyhudi.versions import HistoryForm

Key = tuple[str, str]
"""Requested time and comparable action of an instant."""

Files = Mapping[Key, Sequence[Instant]]
"""The files of instants on the timeline, one per state."""


class ArchiveTarget(Protocol):
    """A history that archiving writes to."""

    def known(self, instants: Sequence[Instant]) -> set[Key]:
        """The keys of those instants that the history has already.

        Such an instant is in both because an archival died before it deleted the instant from the timeline.
        """

    def append(self, instants: Sequence[Instant], files: Files) -> None:
        """Add instants, given by requested time. Their files are read one instant at a time."""

    def tidy(self, settings: ArchiveSettings) -> None:
        """Merge small files once there are many, and delete files that nobody needs."""


def archive_target(
    storage: Storage, layout: TimelineLayout, zone: tzinfo, confirm: Callable[[], None]
) -> ArchiveTarget:
    """The history of a timeline layout.

    `confirm`: called before each change that others can see. `zone`: the time zone in which instants are written.
    """
    match layout.kind.history:
        case HistoryForm.SORTED_FILES:
            return _SortedFiles(storage, layout, confirm)
        case HistoryForm.LOGS:
            return _LogFiles(storage, layout, zone, confirm)
    assert_never(layout.kind.history)


def instant_key(instant: Instant) -> Key:
    return instant.requested, instant.comparable_action


@dataclass(frozen=True, slots=True)
class _SortedFiles:
    """The history of timeline layout 2: sorted Parquet files in layers."""

    storage: Storage
    layout: TimelineLayout
    confirm: Callable[[], None]

    def known(self, instants: Sequence[Instant]) -> set[Key]:
        history = open_history(self.storage, self.layout)
        found = history.instants(requested_from=instants[0].requested, requested_until=instants[-1].requested)
        return {instant_key(i) for i in found}

    def append(self, instants: Sequence[Instant], files: Files) -> None:
        completed = max(instant.completed or instant.requested for instant in instants)
        name = self.layout.history_name(instants[0], instants[-1], completed)
        actions = self._read_actions(instants, files)
        append_actions(self.storage, self.layout.history_folder, actions, name, confirm=self.confirm)

    def tidy(self, settings: ArchiveSettings) -> None:
        folder = self.layout.history_folder
        merges = compact_history(
            self.storage, folder, files_min=settings.files_per_merge, file_size_max_bytes=settings.file_size_max_bytes,
            confirm=self.confirm,
        )  # fmt: skip
        self.confirm()
        clean_history(self.storage, folder, manifests_kept=settings.manifests_kept + merges)

    def _read_actions(self, instants: Sequence[Instant], files: Files) -> Iterator[ArchivedAction]:
        """Each instant with its metadata and its plan from the timeline. Spec: format/timeline.md section 5, "plan"."""
        for instant in instants:
            states = {i.state: i for i in files[instant_key(instant)]}
            path = self.layout.path(instant)
            metadata = self.storage.get(path)
            if instant.action in WRITE_ACTIONS:
                metadata = self.layout.archived_commit(metadata, path=path)
            yield ArchivedAction(instant, metadata or None, self._read_plan(states))

    def _read_plan(self, states: Mapping[State, Instant]) -> bytes | None:
        requested = states.get("REQUESTED") or states.get("INFLIGHT")
        if requested is None:
            return None
        match requested.action:
            case "clean" | "compaction" | "logcompaction":
                return self.storage.get(self.layout.path(requested)) or None
            case "replacecommit" | "clustering":
                pending = [states[state] for state in ("INFLIGHT", "REQUESTED") if state in states]
                return next((content for i in pending if (content := self.storage.get(self.layout.path(i)))), None)
            case _:
                return None


@dataclass(frozen=True, slots=True)
class _LogFiles:
    """The history of timeline layout 1: log files."""

    storage: Storage
    layout: TimelineLayout
    zone: tzinfo
    confirm: Callable[[], None]

    def known(self, instants: Sequence[Instant]) -> set[Key]:
        """One list and one get: an archival that died has written to the newest file of the history, if at all."""
        return {instant_key(i) for i in newest_states(self.storage, self.layout.history_folder)}

    def append(self, instants: Sequence[Instant], files: Files) -> None:
        states = self._read_states(instants, files)
        append_states(self.storage, self.layout.history_folder, states, confirm=self.confirm)

    def tidy(self, settings: ArchiveSettings) -> None:
        """Do nothing. Seen: 0.15.0 merges archive files only where `hoodie.archive.merge.enable` is set."""

    def _read_states(self, instants: Sequence[Instant], files: Files) -> Iterator[ArchivedState]:
        for instant in instants:
            for state in sorted(files[instant_key(instant)], key=lambda i: STATES.index(i.state)):
                path = self.layout.path(state)
                info = self.storage.head(path)
                since = format_instant(info.modified_ms, self.zone) if info is not None else state.requested
                yield ArchivedState(state, since, self.storage.get(path), path)
