"""The work of building indexes: their file groups, their base files, and the end of it. `run` decides what is built."""

import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from pyhudi.errors import Conflict, HudiError, LockLost, NotFound, OutcomeUnknown
from pyhudi.executor import Executor
from pyhudi.format.timeline.instant import WRITE_ACTIONS, Instant
from pyhudi.format.timeline.records import WriteStat
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.registry import get_kind
from pyhudi.metadata.kinds.settings import IndexSettings
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.services.indexing.plans import INDEXING, Life, PendingIndexing, complete_indexing, lists_of, undo
from pyhudi.table.view.commits import read_commit
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.service_action import OpenSession, awaited_session
from pyhudi.txn.action.session import WriteSession
from pyhudi.txn.locks.heartbeat import remove_heartbeat
from pyhudi.write.metadata import by_name
from pyhudi.write.metadata.creation import open_partition, write_bases
from pyhudi.write.metadata.deltacommit import complete_deltacommit

log = logging.getLogger("pyhudi")

_SNAPSHOTS_MAX = 3


@dataclass(frozen=True, slots=True)
class IndexResult:
    """What was done. `partitions`: of the metadata table. `completed`: None if the index was only scheduled. `reason`:
    why nothing was done; else empty.
    """

    partitions: tuple[str, ...]
    requested: str | None
    completed: str | None
    reason: str


@dataclass(frozen=True)
class IndexingJob:
    """What an indexer needs. `read_snapshot`: gives the table as it is now. `check_timeout_ms`: for how long writers
    that did not see the list may keep the build from completing. `executor`, `readers`: as in `IndexContents`.
    """

    settings: IndexSettings
    open_session: OpenSession
    read_snapshot: Callable[[], Snapshot]
    executor: Executor
    readers: Executor
    clock: Clock
    check_timeout_ms: int

    def contents(self, snapshot: Snapshot) -> IndexContents:
        return IndexContents(snapshot, self.settings, self.executor, self.readers)


@dataclass(frozen=True, slots=True)
class Begun:
    """A build that belongs to this process. `begun`: a time at which no writer was at work and the partitions were
    listed. `known`: what had completed by then.
    """

    requested: str
    partitions: tuple[str, ...]
    begun: str
    known: frozenset[str]
    snapshot: Snapshot


class _Lost(Conflict):
    """The build belongs to this process no longer: nothing of it must be touched."""


def open_groups(job: IndexingJob, session: WriteSession, begun: Begun) -> Begun:
    """Make the file groups of all partitions, without records.

    What writers logged there before goes. Under the guard.
    """
    table = open_metadata_table(session.access.storage, session.snapshot.zone)
    contents = job.contents(session.snapshot)
    definitions = contents.stored_definitions()
    for name in begun.partitions:
        open_partition(
            table, by_name.indexing_instant(table, begun.requested), name,
            get_kind(name).group_counts(contents, name, definitions.get(name)),
            epoch_ms=job.clock.now_ms(), executor=job.executor, confirm=session.hold.confirm,
        )  # fmt: skip

    known = frozenset(i.requested for i in session.snapshot.timeline if i.is_completed)
    return replace(begun, begun=session.table.issue_instant(), known=known, snapshot=session.snapshot)


def finish(job: IndexingJob, begun: Begun, life: ExitStack) -> IndexResult:
    """Build the partitions and complete the action. If that fails, everything is taken back."""
    what, until_ms = f"{INDEXING} '{begun.requested}'", job.clock.now_ms() + job.check_timeout_ms
    completed = None
    try:
        while True:
            stats = _write_all(job, begun)
            with awaited_session(job.open_session, job.clock, what=what) as session:
                _refuse_lost(session, begun)
                late = _late_writes(session, begun)

                if not late:
                    completed = _complete(session, begun, stats)
                    life.close()
                    remove_heartbeat(session.access.storage, begun.requested)
                    break

                if job.clock.now_ms() >= until_ms:
                    raise Conflict(f"{what}: '{late[0]}' did not keep the new index up to date; build it anew")
                log.info("%s begins anew: '%s' did not log to it", what, late[0])
                begun = open_groups(job, session, begun)
    except (_Lost, OutcomeUnknown, LockLost):
        raise
    except Exception as error:
        life.close()
        if completed is not None:
            log.warning("%s is complete; the next writer clears up after it, which failed: %s", what, error)
            return IndexResult(begun.partitions, begun.requested, completed, "")
        ours = PendingIndexing(Instant(begun.requested, INDEXING, "INFLIGHT"), begun.partitions, Life.DEAD)
        try:
            with awaited_session(job.open_session, job.clock, what=what) as session:
                undo(session, ours)
        except HudiError as second:
            error.add_note(f"{what} could not be undone yet, the next one does it: {second}")
        raise

    log.info("%s: built %s", what, ", ".join(begun.partitions))
    return IndexResult(begun.partitions, begun.requested, completed, "")


def _write_all(job: IndexingJob, begun: Begun) -> dict[str, list[WriteStat]]:
    """The base files of all partitions.

    If a clean deletes files meanwhile, they are made of the table as it is then.
    """
    snapshot = begun.snapshot
    for attempt in range(_SNAPSHOTS_MAX):
        contents = job.contents(snapshot)
        table = open_metadata_table(snapshot.storage, snapshot.zone)
        definitions, instant = contents.stored_definitions(), by_name.indexing_instant(table, begun.requested)

        with suppress(*([NotFound] if attempt < _SNAPSHOTS_MAX - 1 else [])):
            return {
                name: write_bases(
                    table,
                    instant,
                    get_kind(name).initial(contents, name, definitions.get(name), requested=begun.requested),
                    job.executor,
                )
                for name in begun.partitions
            }

        snapshot = job.read_snapshot()
    raise AssertionError("the last attempt returns or raises")


def _refuse_lost(session: WriteSession, begun: Begun) -> None:
    mine = [i for i in session.snapshot.timeline.pending if i.requested == begun.requested and i.action == INDEXING]
    inflight = lists_of(session).config().metadata_partitions_inflight
    what = f"{INDEXING} '{begun.requested}'"
    if not mine or mine[0].state != "INFLIGHT":
        raise _Lost(f"{what}: another run took this build for dead and undid it; run it again")
    if not set(begun.partitions) <= set(inflight):
        raise Conflict(f"{what}: another writer dropped the index while it was being built; run it again")


def _late_writes(session: WriteSession, begun: Begun) -> list[str]:
    """Actions since the beginning that the partitions may not know of.

    This concerns actions that are not in the metadata table, and actions that began before the partitions were listed
    and logged nothing to them.
    """
    table, found = open_metadata_table(session.access.storage, session.snapshot.zone), []
    taken = {i.requested: i for i in table.timeline if i.is_completed and i.action == "deltacommit"}

    for instant in session.snapshot.timeline:
        is_change = instant.action in WRITE_ACTIONS or instant.action in ("clean", "restore")
        if not is_change or not instant.is_completed or instant.requested in begun.known:
            continue

        mine = taken.get(instant.requested)
        if mine is None:
            if not table.timeline.is_committed(instant.requested):
                found.append(instant.requested)
        elif instant.requested < begun.begun:
            logged = read_commit(table.storage, table.timeline, mine).partition_to_write_stats
            if not set(begun.partitions) <= set(logged):
                found.append(instant.requested)

    return found


def _complete(session: WriteSession, begun: Begun, stats: dict[str, list[WriteStat]]) -> str:
    """Order: the base files count, readers find them, the action is complete. If this process dies after the first two
    steps, the next indexer takes the last one.
    """
    table = open_metadata_table(session.access.storage, session.snapshot.zone)
    session.hold.confirm()
    actions = replace(session.table, storage=table.storage, layout=table.timeline.layout, participants=())
    run = actions.begin(by_name.indexing_instant(table, begun.requested), "deltacommit", request=b"")
    complete_deltacommit(table, run, stats, "BULK_INSERT")

    lists = lists_of(session)
    config = lists.config()
    lists.put(
        ready={*config.metadata_partitions, *begun.partitions},
        inflight=set(config.metadata_partitions_inflight) - set(begun.partitions),
    )
    return complete_indexing(session, begun.requested, begun.partitions)
