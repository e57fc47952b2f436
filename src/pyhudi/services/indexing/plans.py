"""Indexing actions on the timeline: plans that wait, the one that another process runs, and those that died.

A plan names the partitions of the metadata table that are to be built. Where a kind needs to know more, `index.json`
says it. Seen: when 1.2.0 schedules an index, it puts nothing but the plan, and it refuses to run a plan whose partition
is listed as inflight. File groups and lists come when the plan is run. Its indexer has no heartbeat.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC
from enum import Enum

from pyhudi.errors import NotFound
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.names import heartbeat_path
from pyhudi.format.timeline.action_files import decode_index_plan, encode_index_commit, encode_index_plan
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.instant_text import INSTANT_DIGITS, format_instant, parse_instant_ms
from pyhudi.format.timeline.records import IndexCommitMetadata, IndexPartitionInfo, IndexPlan
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.services.metadata.lists import MetadataLists, put_definitions
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline
from pyhudi.txn.action.run import ActionRun, Ending, delete_pending_states
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.locks.heartbeat import remove_heartbeat
from pyhudi.txn.locks.life import LifeTerms
from pyhudi.txn.locks.running import is_surely_dead
from pyhudi.write.metadata import by_name

INDEXING = "indexing"

_BEFORE_NEWEST_MS_MAX = 1_000
_TIMES_TRIED = 50
"""Of the times that are free the first ones are taken, one of so many, so that there are some for later plans."""


class Life(Enum):
    """What may be done to a pending indexing."""

    WAITING = "waits to be run"
    RUNNING = "is being run"
    DEAD = "died"
    FOREIGN = "was begun by another writer, which gives no sign of life"


@dataclass(frozen=True, slots=True)
class PendingIndexing:
    """An indexing that has not completed. `partitions`: of the metadata table; empty if its plan is gone."""

    instant: Instant
    partitions: tuple[str, ...]
    life: Life
    beat_age_ms: int = 0


def lists_of(session: WriteSession) -> MetadataLists:
    return MetadataLists(session.access.storage, session.access.clock.now_ms, session.hold.confirm)


def pending_indexings(session: WriteSession) -> list[PendingIndexing]:
    """Pending indexings in a turn at the table. Otherwise as `find_pending_indexings`."""
    return find_pending_indexings(session.snapshot, session.life())


def find_pending_indexings(snapshot: Snapshot, terms: LifeTerms) -> list[PendingIndexing]:
    """Pending indexings, oldest first. `terms`: by what one that was begun counts as dead.

    Cost: a get for each, and a head for the heartbeat of each one that was begun.
    """
    storage, timeline = snapshot.storage, snapshot.timeline
    found = []
    for instant in timeline.pending:
        if instant.action != INDEXING:
            continue

        path = timeline.layout.path(Instant(instant.requested, INDEXING, "REQUESTED"))
        try:
            infos = decode_index_plan(storage.get(path), path=path).index_partition_infos or ()
        except NotFound:
            infos = ()
        names = tuple(info.metadata_partition_path for info in infos if info.metadata_partition_path)
        found.append(PendingIndexing(instant, names, *_life(storage, terms, instant)))
    return found


def _life(storage: Storage, terms: LifeTerms, instant: Instant) -> tuple[Life, int]:
    if instant.state == "REQUESTED":
        return Life.WAITING, 0

    beat = storage.head(heartbeat_path(instant.requested))
    if beat is None:
        return Life.FOREIGN, 0
    age_ms = terms.now_ms - beat.modified_ms
    if is_surely_dead(terms.guard, storage, instant.requested):
        return Life.DEAD, age_ms
    return (Life.RUNNING if age_ms <= terms.expires_ms else Life.DEAD), age_ms


def put_plan(session: WriteSession, partitions: Collection[str], *, is_run_here: bool = False) -> Instant:
    """Put a plan on the timeline, under a new time. `is_run_here`: pyhudi runs it at once, see `_plan_time`.

    Others may run any other plan. Seen: 1.2.0 leaves files of writes that are later than the plan out of the index.
    """
    upto = last_write_before_pending(session.snapshot.timeline)
    infos = tuple(IndexPartitionInfo(1, name, upto, {}) for name in partitions)
    instant = Instant(_plan_time(session) if is_run_here else session.table.issue_instant(), INDEXING, "REQUESTED")
    return session.table.request(instant, encode_index_plan(IndexPlan(1, infos)))


def _plan_time(session: WriteSession) -> str:
    """A free time shortly before the newest completed action was requested; a new time where there is none.

    Seen: the writers of 1.0.2 and 1.2.0 make indexes that the table lacks, such as column statistics, at the time of
    the newest completed action, if that is an indexing. They roll back the deltacommit of that time first, and with it
    go the base files of the index that was built then: it is named, and finds nothing
    (`HoodieBackedTableMetadataWriter.generateUniqueInstantTime`). So an indexing must not be the newest.

    No instant of either timeline lies between that time and the newest action: none is taken for archived.
    A get and a list request.
    """
    fresh, data = session.table.issue_instant(), session.snapshot.timeline
    newest = max((i.requested for i in data if i.is_completed), default="")
    if not data.layout.has_completion_times or len(newest) != INSTANT_DIGITS:
        return fresh

    there = open_metadata_table(session.access.storage, session.snapshot.zone).timeline
    if there.start is None or there.start >= newest:
        return fresh
    instants = (i for timeline in (data, there) for i in timeline)
    times = [time for i in instants for time in (i.requested, i.completed) if time is not None and time < newest]

    newest_ms = parse_instant_ms(newest, UTC)  # the zone does not matter: only texts that are near each other count
    after_ms = max([newest_ms - _BEFORE_NEWEST_MS_MAX, *(parse_instant_ms(time, UTC) for time in times)])
    free_count = min(newest_ms - 1 - after_ms, _TIMES_TRIED)
    return fresh if free_count < 1 else format_instant(after_ms + 1 + int(fresh[-3:]) % free_count, UTC)


def last_write_before_pending(timeline: Timeline) -> str | None:
    """The newest completed write before the first pending one; None if there is none."""
    first = min((i.requested for i in timeline.pending if i.action in WRITE_ACTIONS), default=None)
    before = [i.requested for i in timeline.completed_writes if first is None or i.requested < first]
    return max(before, default=None)


def define(session: WriteSession, partition: str, definition: IndexDefinition | None) -> None:
    """Put an index's definition into `index.json`, where the plan's runner finds it. Must come before the plan."""
    if definition is not None:
        session.hold.confirm()
        put_definitions(session.access.storage, {partition: definition})


def undo(session: WriteSession, pending: PendingIndexing) -> None:
    """Take back everything of an indexing that nobody runs. An indexing that lacks only its last step is completed.

    Order: first nobody logs to its partitions any more, then their files are deleted, then the instants. The heartbeat
    goes last: by it the next indexer knows that this was one of pyhudi's. Every step can be repeated.
    """
    instant, lists = pending.instant, lists_of(session)
    config = lists.config()
    is_built = bool(pending.partitions) and set(pending.partitions) <= set(config.metadata_partitions)

    if is_built and instant.state == "INFLIGHT":
        complete_indexing(session, instant.requested, pending.partitions)
        remove_heartbeat(session.access.storage, instant.requested)
        return

    session.hold.confirm()
    lists.drop(set(pending.partitions) - set(config.metadata_partitions))
    remove_build(session, instant.requested)
    delete_pending_states(session.table.storage, session.table.layout, instant)
    remove_heartbeat(session.table.storage, instant.requested)


def remove_build(session: WriteSession, requested: str) -> None:
    """Delete the instants of the deltacommit that a build began, the completed one first."""
    table = open_metadata_table(session.access.storage, session.snapshot.zone)
    requested = by_name.indexing_instant(table, requested)
    for instant in table.timeline:
        if instant.requested == requested and instant.action == "deltacommit":
            session.hold.confirm()
            if instant.is_completed:
                table.storage.delete(table.timeline.layout.path(instant))
            delete_pending_states(table.storage, table.timeline.layout, instant)


def complete_indexing(session: WriteSession, requested: str, partitions: Collection[str]) -> str:
    """Say on the timeline that these partitions are built. Returns the completion time."""
    upto = max((i.requested for i in session.snapshot.timeline.completed_writes), default=None)
    infos = tuple(IndexPartitionInfo(1, name, upto, {}) for name in partitions)
    begun = ActionRun(session.table, Instant(requested, INDEXING, "INFLIGHT"))
    completed = begun.complete(Ending(encode_index_commit(IndexCommitMetadata(1, None, infos))))
    assert completed.completed is not None
    return completed.completed
