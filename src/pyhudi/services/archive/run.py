"""Archiving: moving old instants from the active timeline into the history, for a table and its metadata table.

Order: an instant is put into the history before it is deleted from the timeline. On the timeline the files of pending
states are deleted first, then the completed files, oldest first. A crash at any step leaves every instant on the
timeline, in the history, or in both. Readers count an instant that is in both once. The next archival finds such an
instant and only deletes it from the timeline.

The guard is held for a batch of instants. Then other writers have their turn, and the rest is planned anew upon what
they left. Seen: Apache Hudi holds its lock until all instants are archived (`TimelineArchiverV2.archiveIfRequired`).
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

from pyhudi.format.names import TEMP, BaseFileName, LogFileName, marker_folder
from pyhudi.format.timeline.instant import Instant
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.services.archive import plan as archive_plan
from pyhudi.services.archive.plan import ArchivalPlan, Barrier, Keep, is_due, plan_archival
from pyhudi.services.archive.replaced_files import ReplacedFiles
from pyhudi.services.archive.settings import ArchiveSettings
from pyhudi.services.archive.targets import archive_target, instant_key
from pyhudi.services.compaction.plan_copies import remove_plan_copies
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.commits import read_newest_clean
from pyhudi.table.view.listing import walk
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.clock import Clock
from pyhudi.timeline.layout import TimelineLayout
from pyhudi.txn.action.service_action import OpenSession, awaited_session
from pyhudi.txn.action.session import WriteSession
from pyhudi.versions import LogNaming

log = logging.getLogger("pyhudi")

BATCH_INSTANTS_MAX = 50
"""How many instants one turn archives. On an object store this takes some ten seconds, of which writers wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveResult:
    """What an archival did.

    `archived`, `metadata_archived`: how many instants left the active timeline of the table, and of its metadata table.
    `reason`: why no instant of the table was archived; empty otherwise.
    """

    archived: int
    metadata_archived: int
    reason: str


@dataclass(frozen=True, slots=True)
class ArchiveTurn:
    """What one turn archived.

    `turns_left`: how many more turns the rest takes at most, of the table or its metadata table. `is_held_by_left`:
    replaced files hold the rest that a clean deletes only if it is asked for.
    """

    result: ArchiveResult
    turns_left: int = 0
    is_held_by_left: bool = False


def archive_when_due(session: WriteSession, settings: ArchiveSettings) -> ArchiveTurn:
    """Archive a batch after a commit of this session, if the timeline has too many writes. Else no request is made.

    What is left of a long timeline goes after the next commits, a batch each time.
    """
    writes = len(session.snapshot.timeline.completed_writes) + 1
    if writes <= settings.commits_max:
        reason = f"{writes} completed writes: expected more than {settings.commits_max}"
        return ArchiveTurn(ArchiveResult(archived=0, metadata_archived=0, reason=reason))
    return _archive_batch(session, settings, settings)


def run_archive(open_session: OpenSession, settings: ArchiveSettings, clock: Clock) -> ArchiveResult:
    """Archive what the settings allow, from the table's current state, in as many turns as there are batches.

    Cost: two or three gets and as many deletes per instant, a dozen requests a batch for the history, and as much again
    for the metadata table. A batch lists each partition once that its replacecommits replaced.
    Raises: Conflict while another writer holds the table.
    """
    with open_session() as session:
        turn = _archive_batch(session, settings, settings)
    done, left = [turn.result], turn.turns_left

    # The rest is due, too, although the timeline may be shorter by now than what makes an archival due.
    rest = replace(settings, commits_max=settings.commits_min)
    for _ in range(left):
        with awaited_session(open_session, clock, what="archive") as session:
            done.append(_archive_batch(session, settings, rest).result)
        if not done[-1].archived and not done[-1].metadata_archived:
            break

    return ArchiveResult(
        archived=sum(one.archived for one in done),
        metadata_archived=sum(one.metadata_archived for one in done),
        reason=done[0].reason,
    )


def _archive_batch(session: WriteSession, settings: ArchiveSettings, due: ArchiveSettings) -> ArchiveTurn:
    """Archive the oldest instants that may go, under the session's guard. `due`: `settings` in the first turn.

    In later turns it says when the rest is due. Then the metadata table may have a rest, and the table itself none.
    """
    access, confirm = session.access, session.hold.confirm
    snapshot = access.snapshot()
    keep = _keep(snapshot, due, now_ms=access.clock.now_ms())
    plan = _plan(snapshot, settings, keep, instants_max=BATCH_INSTANTS_MAX)
    if due is settings and not is_due(snapshot.timeline, keep):
        return ArchiveTurn(ArchiveResult(archived=0, metadata_archived=0, reason=plan.reason))

    batch = plan.instants[:BATCH_INSTANTS_MAX]
    carry_out_archival(snapshot.storage, snapshot.timeline.layout, snapshot.zone, batch, settings, confirm=confirm)
    if batch and snapshot.config.version.copies_compaction_plans:
        remove_plan_copies(snapshot.storage, before=batch[-1].requested)

    in_metadata, left = 0, _batches(len(plan.instants) - len(batch))
    if snapshot.config.has_metadata_table:
        in_metadata, of_metadata = _archive_metadata_table(snapshot, {instant_key(i) for i in batch}, due, confirm)
        left = max(left, of_metadata)
    result = ArchiveResult(archived=len(batch), metadata_archived=in_metadata, reason=plan.reason)
    return ArchiveTurn(result, left, is_held_by_left=plan.is_held_by_left)


def plan_of_archival(snapshot: Snapshot, settings: ArchiveSettings, *, now_ms: int) -> ArchivalPlan:
    """What an archival would take off the timeline now, in all of its turns. Nothing is changed.

    Requests: none where the timeline is short; else a few gets, one get for each replacecommit that would go, and one
    list for each partition that these replaced. Beyond a savepoint, listings as for a scan of the table.
    """
    return _plan(snapshot, settings, _keep(snapshot, settings, now_ms=now_ms))


def _batches(instants: int) -> int:
    return -(-instants // BATCH_INSTANTS_MAX)


def _keep(snapshot: Snapshot, settings: ArchiveSettings, *, now_ms: int) -> Keep:
    hours_ago = settings.clean.hours_start(now_ms, snapshot.zone)
    keep = Keep(settings.commits_min, settings.commits_max)
    return archive_plan.commits_kept(snapshot.timeline, keep, settings.clean, hours_start=hours_ago)


def _plan(
    snapshot: Snapshot, settings: ArchiveSettings, keep: Keep, *, instants_max: int | None = None
) -> ArchivalPlan:
    """`instants_max`: so many of the plan's instants are sure to go; replaced files may hold later ones. None: all."""
    storage, timeline = snapshot.storage, snapshot.timeline
    if not is_due(timeline, keep):
        return plan_archival(timeline, keep, ())

    clean = read_newest_clean(storage, timeline)
    barriers = [archive_plan.pending_barrier(timeline)]
    if snapshot.config.table_type == "MERGE_ON_READ":
        barriers.append(archive_plan.compaction_barrier(timeline, settings.deltacommits_max))
    if settings.waits_for_clean:
        barriers.append(archive_plan.clean_barrier(clean))
    if snapshot.config.has_metadata_table:
        metadata = open_metadata_table(storage, snapshot.zone).timeline
        barriers.append(archive_plan.metadata_barrier(timeline, metadata))

    def planned() -> ArchivalPlan:
        return plan_archival(timeline, keep, _present(barriers), is_beyond_savepoint=settings.is_beyond_savepoint)

    plan, staying = planned(), archive_plan.first_staying(timeline)
    if staying is not None and plan.instants and plan.instants[-1].requested > staying.requested:
        barriers += _barriers_of_files(snapshot, is_beyond_savepoint=settings.is_beyond_savepoint)
        plan = planned()
    replaced = ReplacedFiles(snapshot, clean)
    barrier = archive_plan.replace_barrier(plan.instants[:instants_max], replaced.find)
    if barrier is None:
        return plan
    barriers.append(barrier)
    return replace(planned(), is_held_by_left=barrier.is_left)


def _barriers_of_files(snapshot: Snapshot, *, is_beyond_savepoint: bool) -> list[Barrier | None]:
    """The barriers that stored files are to writes behind an action that stays. Listings as for a scan of the table."""
    config, timeline = snapshot.config, snapshot.timeline
    holds_logs = config.is_merge_on_read and config.layout.has_completion_times
    if not holds_logs and not is_beyond_savepoint:
        return []

    bases, logs = set[str](), set[str]()
    for _, files in walk(snapshot.listing):
        for name in (file.name for file in files):
            if base := BaseFileName.parse(name):
                bases.add(base.requested)
            elif (log_name := LogFileName.parse(name)) and not log_name.is_cdc:
                logs.add(log_name.instant)

    found = [archive_plan.stored_logs_barrier(timeline, logs)] if holds_logs else []
    if is_beyond_savepoint and config.version.log_naming is LogNaming.AFTER_WRITE:
        found.append(archive_plan.savepoint_barrier(timeline, bases | logs))
    elif is_beyond_savepoint:
        found.append(archive_plan.savepoint_barrier(timeline, bases, from_slice=min(logs, default=None)))
    return found


def _archive_metadata_table(
    snapshot: Snapshot, gone: set[tuple[str, str]], settings: ArchiveSettings, confirm: Callable[[], None]
) -> tuple[int, int]:
    """Archive a batch of the metadata table's timeline, up to where the data table's begins now.

    Returns how many instants went, and how many batches are left.

    The metadata table keeps one write more than the data table. Seen: 1.0.2, 1.2.0 (`HoodieMetadataWriteUtils`).
    `gone`: keys of the instants that have just left the data table's timeline.
    """
    table = open_metadata_table(snapshot.storage, snapshot.zone)
    data = Timeline(snapshot.timeline.layout, tuple(i for i in snapshot.timeline if instant_key(i) not in gone))
    barriers = [
        archive_plan.pending_barrier(table.timeline),
        archive_plan.compaction_barrier(table.timeline, settings.metadata_deltacommits_max),
        archive_plan.data_barrier(data, is_beyond_savepoint=settings.is_beyond_savepoint),
    ]

    keep = Keep(settings.commits_min + 1, settings.commits_max + 1)
    if table.timeline.layout.has_completion_times and is_due(table.timeline, keep):
        partitions = snapshot.config.metadata_partitions
        bases = [one.base_instant for name in partitions for one in table.slices(name) if one.base_file is not None]
        barriers.append(archive_plan.quiet_barrier(bases))
    plan = plan_archival(table.timeline, keep, _present(barriers))
    batch = plan.instants[:BATCH_INSTANTS_MAX]
    carry_out_archival(table.storage, table.timeline.layout, snapshot.zone, batch, settings, confirm=confirm)
    return len(batch), _batches(len(plan.instants) - len(batch))


def _present(barriers: Sequence[Barrier | None]) -> list[Barrier]:
    return [barrier for barrier in barriers if barrier is not None]


def carry_out_archival(
    storage: Storage,
    layout: TimelineLayout,
    zone: tzinfo,
    instants: Sequence[Instant],
    settings: ArchiveSettings,
    *,
    confirm: Callable[[], None],
) -> None:
    """Move instants from the timeline into the history, then tidy the history up. `instants`: by requested time.

    `confirm` raises when the table is no longer ours. It is called before each step that others could see.
    """
    if not instants:
        return

    files = _files_of(storage, layout, instants)
    target = archive_target(storage, layout, zone, confirm)
    known = target.known(instants)
    new = [i for i in instants if instant_key(i) not in known]
    if new:
        target.append(new, files)

    confirm()
    _remove_markers(storage, instants)
    storage.delete_many(layout.path(i) for key in map(instant_key, instants) for i in files[key] if not i.is_completed)
    for instant in instants:
        for state in files[instant_key(instant)]:
            if state.is_completed:
                storage.delete(layout.path(state))

    target.tidy(settings)
    log.info("%s: archived %s instants up to '%s'", storage.location.uri, len(instants), instants[-1].requested)


def _files_of(
    storage: Storage, layout: TimelineLayout, instants: Sequence[Instant]
) -> dict[tuple[str, str], list[Instant]]:
    """The files of each instant on the timeline, one per state. One list request."""
    files: dict[tuple[str, str], list[Instant]] = {instant_key(i): [] for i in instants}
    for file in storage.list(layout.folder):
        found = layout.parse(file.path.rpartition("/")[2])
        if found is not None and instant_key(found) in files:
            files[instant_key(found)].append(found)
    return files


def _remove_markers(storage: Storage, instants: Sequence[Instant]) -> None:
    """Delete markers that dead writers left of instants that completed. One list request."""
    gone = {marker_folder(instant.requested) for instant in instants}
    for folder in storage.list_folders(TEMP):
        if folder in gone:
            storage.delete_prefix(folder)
