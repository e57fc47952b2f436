"""Archiving: old instants move from the active timeline into the history, of a table and of its metadata table.

Order: the history has an instant before the timeline loses it; of the timeline's files those of pending states go
first, then the completed ones, oldest first. A crash at any step leaves every instant on the timeline, in the
history, or in both, which readers count once; the next archival finds what is in both and only deletes.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyhudi.errors import NotFound, Unsupported
from pyhudi.format.commit import decode_cleaner_plan
from pyhudi.format.instants import format_instant
from pyhudi.format.lsm import HistoryFileName
from pyhudi.format.names import TEMP, marker_folder
from pyhudi.metadata.table import open_metadata_table
from pyhudi.model.commit import CleanerPlan
from pyhudi.model.instant import Instant, State
from pyhudi.services import archive_plan
from pyhudi.services.archive_plan import ArchivalPlan, Barrier, Keep, is_due, plan_archival
from pyhudi.services.archive_settings import ArchiveSettings
from pyhudi.storage.protocol import Storage
from pyhudi.table.commits import read_newest_clean
from pyhudi.table.snapshot import Snapshot
from pyhudi.timeline.active import Timeline, open_history
from pyhudi.timeline.layout import TimelineLayout
from pyhudi.timeline.lsm_writer import ArchivedAction, append_actions, clean_history, compact_history
from pyhudi.txn.session import WriteSession

log = logging.getLogger("pyhudi")

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """What an archival did: instants that left the active timeline of the table, and of its metadata table.

    `reason`: why none of the table's did; empty otherwise.
    """

    archived: int
    metadata_archived: int
    reason: str


def archive_when_due(session: WriteSession, settings: ArchiveSettings) -> ArchiveResult:
    """What follows a commit of this session. No request while the timeline has no more writes than it may."""
    writes = len(session.snapshot.timeline.completed_writes) + 1
    if writes <= settings.commits_max:
        return ArchiveResult(0, 0, f"{writes} completed writes: expected more than {settings.commits_max}")
    return run_archive(session, settings)


def run_archive(session: WriteSession, settings: ArchiveSettings) -> ArchiveResult:
    """Archive what the settings allow, of the table as it is now, under the session's guard.

    Cost: two or three gets and as many deletes an instant, a dozen requests for the history, and as much again for
    the metadata table.
    """
    access, confirm = session.access, session.hold.confirm
    snapshot = access.snapshot()
    keep = _keep(snapshot, settings, now_ms=access.clock.now_ms())
    if not is_due(snapshot.timeline, keep):
        return ArchiveResult(0, 0, plan_archival(snapshot.timeline, keep, ()).reason)
    if not snapshot.config.layout.has_completion_times:
        raise Unsupported(
            f"{access.location.uri}: table version {snapshot.config.version}: this release archives version 8 and later"
        )
    plan = _plan(snapshot, settings, keep)
    carry_out_archival(snapshot.storage, snapshot.timeline.layout, plan.instants, settings, confirm=confirm)
    in_metadata = 0
    if snapshot.config.has_metadata_table:
        in_metadata = _archive_metadata_table(snapshot, {_key(i) for i in plan.instants}, settings, confirm)
    return ArchiveResult(len(plan.instants), in_metadata, plan.reason)


def _keep(snapshot: Snapshot, settings: ArchiveSettings, *, now_ms: int) -> Keep:
    hours_ago = format_instant(now_ms - settings.clean.hours_retained * HOUR_MS, snapshot.zone)
    keep = Keep(settings.commits_min, settings.commits_max)
    return archive_plan.commits_kept(snapshot.timeline, keep, settings.clean, hours_start=hours_ago)


def _plan(snapshot: Snapshot, settings: ArchiveSettings, keep: Keep) -> ArchivalPlan:
    storage, timeline = snapshot.storage, snapshot.timeline
    clean = read_newest_clean(storage, timeline)
    barriers = [
        archive_plan.pending_barrier(timeline),
        archive_plan.replace_barrier(timeline, clean, _newest_clean_plan(storage, timeline)),
    ]
    if snapshot.config.table_type == "MERGE_ON_READ":
        barriers.append(archive_plan.compaction_barrier(timeline, settings.deltacommits_max))
    if settings.waits_for_clean:
        barriers.append(archive_plan.clean_barrier(clean))
    if snapshot.config.has_metadata_table:
        metadata = open_metadata_table(storage, snapshot.zone).timeline
        barriers.append(archive_plan.metadata_barrier(timeline, metadata))
    return plan_archival(timeline, keep, _present(barriers), is_beyond_savepoint=settings.is_beyond_savepoint)


def _newest_clean_plan(storage: Storage, timeline: Timeline) -> CleanerPlan | None:
    cleans = [i for i in timeline if i.action == "clean" and i.is_completed]
    if not cleans:
        return None
    path = timeline.layout.path(Instant(cleans[-1].requested, "clean", "REQUESTED"))
    try:
        content = storage.get(path)
    except NotFound:
        return None
    return decode_cleaner_plan(content, path=path) if content else None


def _archive_metadata_table(
    snapshot: Snapshot, gone: set[tuple[str, str]], settings: ArchiveSettings, confirm: Callable[[], None]
) -> int:
    """Archive the metadata table's timeline as far as the data table's begins now. Returns how many instants went.

    It keeps one write more than the data table. Seen: 1.0.2, 1.2.0 (`HoodieMetadataWriteUtils`).
    """
    table = open_metadata_table(snapshot.storage, snapshot.zone)
    data = Timeline(snapshot.timeline.layout, tuple(i for i in snapshot.timeline if _key(i) not in gone))
    barriers = [
        archive_plan.pending_barrier(table.timeline),
        archive_plan.compaction_barrier(table.timeline, settings.metadata_deltacommits_max),
        archive_plan.data_barrier(data, is_beyond_savepoint=settings.is_beyond_savepoint),
    ]
    keep = Keep(settings.commits_min + 1, settings.commits_max + 1)
    plan = plan_archival(table.timeline, keep, _present(barriers))
    carry_out_archival(table.storage, table.timeline.layout, plan.instants, settings, confirm=confirm)
    return len(plan.instants)


def _present(barriers: Sequence[Barrier | None]) -> list[Barrier]:
    return [barrier for barrier in barriers if barrier is not None]


def carry_out_archival(
    storage: Storage,
    layout: TimelineLayout,
    instants: Sequence[Instant],
    settings: ArchiveSettings,
    *,
    confirm: Callable[[], None],
) -> None:
    """Move instants, by requested time, from the timeline into the history; then tidy the history up.

    `confirm` raises where the table is no longer ours: asked before each step that others could see.
    """
    if not instants:
        return
    folder = layout.history_folder
    files = _files_of(storage, layout, instants)
    known = _already_archived(storage, layout, instants)
    new = [i for i in instants if _key(i) not in known]
    if new:
        name = HistoryFileName(new[0].requested, new[-1].requested, 0)
        append_actions(storage, folder, _read_actions(storage, layout, new, files), name, confirm=confirm)
    confirm()
    _remove_markers(storage, instants)
    storage.delete_many(layout.path(i) for key in map(_key, instants) for i in files[key] if not i.is_completed)
    for instant in instants:
        for state in files[_key(instant)]:
            if state.is_completed:
                storage.delete(layout.path(state))
    merges = compact_history(
        storage, folder, files_min=settings.files_per_merge, file_size_max_bytes=settings.file_size_max_bytes,
        confirm=confirm,
    )  # fmt: skip
    confirm()
    clean_history(storage, folder, manifests_kept=settings.manifests_kept + merges)
    log.info("%s: archived %s instants up to '%s'", storage.location.uri, len(instants), instants[-1].requested)


def _key(instant: Instant) -> tuple[str, str]:
    return instant.requested, instant.comparable_action


def _files_of(
    storage: Storage, layout: TimelineLayout, instants: Sequence[Instant]
) -> dict[tuple[str, str], list[Instant]]:
    """The files of each instant on the timeline, one a state. One list request."""
    files: dict[tuple[str, str], list[Instant]] = {_key(i): [] for i in instants}
    for file in storage.list(layout.folder):
        found = layout.parse(file.path.rpartition("/")[2])
        if found is not None and _key(found) in files:
            files[_key(found)].append(found)
    return files


def _already_archived(storage: Storage, layout: TimelineLayout, instants: Sequence[Instant]) -> set[tuple[str, str]]:
    """Those of the instants that the history has: an archival died before it had deleted them."""
    history = open_history(storage, layout)
    found = history.instants(requested_from=instants[0].requested, requested_until=instants[-1].requested)
    return {_key(i) for i in found}


def _read_actions(
    storage: Storage,
    layout: TimelineLayout,
    instants: Sequence[Instant],
    files: dict[tuple[str, str], list[Instant]],
) -> Iterator[ArchivedAction]:
    """What the timeline says of each instant, read one at a time. Spec: format/timeline.md section 5, "plan"."""
    for instant in instants:
        states = {i.state: i for i in files[_key(instant)]}
        metadata = storage.get(layout.path(instant))
        yield ArchivedAction(instant, metadata or None, _read_plan(storage, layout, states))


def _read_plan(storage: Storage, layout: TimelineLayout, states: Mapping[State, Instant]) -> bytes | None:
    requested = states.get("REQUESTED") or states.get("INFLIGHT")
    if requested is None:
        return None
    match requested.action:
        case "clean" | "compaction" | "logcompaction":
            return storage.get(layout.path(requested)) or None
        case "replacecommit" | "clustering":
            pending = [states[state] for state in ("INFLIGHT", "REQUESTED") if state in states]
            return next((content for i in pending if (content := storage.get(layout.path(i)))), None)
        case _:
            return None


def _remove_markers(storage: Storage, instants: Sequence[Instant]) -> None:
    """Markers that a dead writer left of instants that completed. One list request."""
    gone = {marker_folder(instant.requested) for instant in instants}
    for folder in storage.list_folders(TEMP):
        if folder in gone:
            storage.delete_prefix(folder)
