"""Restoring a table to a commit: the checks before the first byte is written, and the work after the restore.

The restore itself, and how it goes on after a crash: `txn/undo/restore.py`. Spec: format/actions.md section 6.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass

from pyhudi.errors import Conflict, HudiError, Invalid, NotFound
from pyhudi.format.names import join
from pyhudi.format.timeline.action_files import decode_savepoint
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.services.clean.inputs import read_savepoints
from pyhudi.services.indexing.plans import Life, pending_indexings, undo
from pyhudi.table.view.cleaned import pending_cleans, refuse_cleaned, refuse_cleaned_below, refuse_cleaned_of
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.pending import is_clustering
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.ahead import newest_heeded
from pyhudi.timeline.clock import issue_instant
from pyhudi.txn.action.service_action import refuse_running
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.undo.restore import RestoreDone, RestoreRun, carry_out_restore, request_restore
from pyhudi.txn.undo.restore_plan import archived_after, plan_restore, taken_back

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """What a restore did.

    `requested`, `completed`: times of the restore; None when nothing was to be done, and `reason` says why.
    `restored_to`: the commit that is the newest now. `rolled_back`: requested times of the writes that are gone, in the
    order in which they were rolled back. `dropped`: partitions of the metadata table that were deleted, because they
    could not be brought back to that commit.
    """

    requested: str | None
    completed: str | None
    restored_to: str
    rolled_back: tuple[str, ...] = ()
    files_deleted: int = 0
    dropped: tuple[str, ...] = ()
    reason: str = ""


def restore_table(session: WriteSession, requested: str) -> RestoreResult:
    """Take a table back to the commit requested at this time, under the guard.

    A restore to the same commit that had died was finished when the session began. If nothing was written since, the
    result tells of that restore.
    """
    snapshot, storage = session.snapshot, session.access.storage
    to = snapshot.timeline.get_completed(requested)
    plan = plan_restore(
        snapshot.timeline, to, is_merge_on_read=snapshot.config.is_merge_on_read,
        is_clustering=lambda instant: is_clustering(storage, snapshot.timeline, instant),
    )  # fmt: skip
    undone = [info.requested for info in plan.instants_to_rollback]
    before = snapshot.config.metadata_partitions_named

    if undone:
        _refuse(session, to, undone)
        now = clear_the_way(session)
        run = RestoreRun(session.table, now.config, now.timeline)
        done = carry_out_restore(run, request_restore(run, plan))
    else:
        finished = [restored for restored in session.restored if restored.to == requested]
        if not finished:
            return RestoreResult(
                requested=None, completed=None, restored_to=requested, reason="nothing was written after this commit"
            )
        done = finished[-1]

    make_metadata_table(session)
    return _result(done, before - session.access.snapshot().config.metadata_partitions_named)


def refuse_busy(session: WriteSession) -> None:
    """Refuse while others are at work. Writes that died have been rolled back when the session began.

    Raises: Conflict while a write, a compaction, a clustering, a clean or an indexing runs.
    """
    for instant in session.snapshot.timeline.pending:
        if instant.action in WRITE_ACTIONS and not is_clustering(
            session.access.storage, session.snapshot.timeline, instant
        ):
            raise Conflict(f"{instant.action} '{instant.requested}' is running; wait for it to end, then try again")
    for instant in (*session.snapshot.timeline.pending_services, *pending_cleans(session.snapshot.timeline)):
        refuse_running(session, instant)
    for indexing in pending_indexings(session):
        if indexing.life is Life.RUNNING:
            raise Conflict(
                f"indexing '{indexing.instant.requested}' is being run (its heartbeat is {indexing.beat_age_ms:,} ms "
                "old); wait for it to end"
            )


def clear_the_way(session: WriteSession) -> Snapshot:
    """Get the table ready for taking back completed writes. Returns its snapshot after that.

    Indexings that nobody runs are undone, because their index speaks of files that will be deleted. An instant is
    issued here, so that later ones come after every instant of the metadata table. An instant there that is later than
    the coming rollback or restore would be taken for its work.
    """
    access, snapshot = session.access, session.snapshot
    for indexing in pending_indexings(session):
        if indexing.life is not Life.RUNNING:
            log.warning("%s: the indexing '%s' is undone", access.location.uri, indexing.instant.requested)
            undo(session, indexing)

    if snapshot.config.has_metadata_table:
        timeline = open_metadata_table(access.storage, snapshot.zone).timeline
        newest = newest_heeded(timeline, access.clock, snapshot.zone)
        issue_instant(access.clock, snapshot.zone, after=newest)
    return access.snapshot()


def _refuse(session: WriteSession, to: Instant, undone: Collection[str]) -> None:
    snapshot = session.snapshot
    timeline = snapshot.timeline
    refuse_busy(session)

    later = [i.requested for i in timeline if i.action == "savepoint" and i.requested in undone]
    if later:
        raise Invalid(
            f"restore to '{to.requested}': expected no savepoint of a commit that it rolls back, found "
            f"{', '.join(later)}; delete_savepoint('{later[0]}') first{', and the others' if later[1:] else ''}"
        )

    archived = archived_after(timeline, to, is_merge_on_read=snapshot.config.is_merge_on_read)
    gone = [write.requested for write in archived]
    if gone:
        raise Invalid(
            f"restore to '{to.requested}': expected every write since then on the active timeline, found that "
            f"'{gone[0]}' was archived, which cannot be rolled back any more (hoodie.archive.beyond.savepoint)"
        )

    # A savepoint keeps its files from cleans, so its commit may be older than what cleans retained.
    savepoints = read_savepoints(session.access.storage, timeline)
    if to.requested not in savepoints.requested:
        refuse_cleaned(snapshot, to.requested, asked=f"restore to '{to.requested}'")
    else:
        _refuse_missing(snapshot, to.requested)
    _refuse_out_of_order(snapshot, to)


def _refuse_out_of_order(snapshot: Snapshot, to: Instant) -> None:
    """Refuse where writes that were requested before `to` complete after it, or the other way round, and cleans, which
    go by requested times, took what the restore needs. One get for each such write.
    """
    timeline, asked = snapshot.timeline, f"restore to '{to.requested}'"
    undone = taken_back(timeline, to, is_merge_on_read=snapshot.config.is_merge_on_read)
    for write in timeline.completed_writes:
        if write.requested < to.requested and write.requested in undone:
            metadata = read_commit(snapshot.storage, timeline, write)
            refuse_cleaned_below(snapshot, write, metadata, asked=asked)
        if write.requested > to.requested and write.requested not in undone:
            refuse_cleaned_of(snapshot, read_commit(snapshot.storage, timeline, write), undone=undone, asked=asked)


def _refuse_missing(snapshot: Snapshot, requested: str) -> None:
    """Refuse a savepoint that names a file that is gone. One list request per partition.

    A file may be gone because a clean deleted it before the savepoint was made.
    """
    listing = StorageListing(snapshot.storage)
    instant = next(i for i in snapshot.timeline if i.action == "savepoint" and i.requested == requested)
    path = snapshot.timeline.layout.path(instant)
    for partition, saved in decode_savepoint(snapshot.storage.get(path), path=path).partition_metadata.items():
        there = {file.name for file in listing.files(partition)}
        for name in saved.savepoint_data_file:
            if name.rpartition("/")[2] not in there:
                lost = join(partition, name)
                raise NotFound(f"restore to '{requested}': its savepoint names '{lost}', which is gone")


def make_metadata_table(session: WriteSession) -> None:
    """Make the metadata table anew if the rollback or restore had to drop it.

    A failure here is only logged: the rollback or restore itself has completed.
    """
    access = session.access
    if access.snapshot().config.has_metadata_table or not session.snapshot.config.has_metadata_table:
        return

    try:
        for participant in session.table.participants:
            participant.begin(access.snapshot())
    except HudiError as error:
        log.warning("%s: the next write makes the metadata table: %s", access.location.uri, error)


def _result(done: RestoreDone, dropped: Collection[str]) -> RestoreResult:
    rollbacks = [
        one for instant_rollbacks in done.metadata.rollbacks.values() for one in instant_rollbacks if one is not None
    ]
    return RestoreResult(
        requested=done.requested, completed=done.completed, restored_to=done.to,
        rolled_back=done.metadata.instants_to_rollback,
        files_deleted=sum(one.total_files_deleted for one in rollbacks),
        dropped=tuple(sorted(dropped)),
    )  # fmt: skip
