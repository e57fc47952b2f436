"""Building indexes of the metadata table beside the writers: a plan, the work without the table's guard, the end of it.

Begin, under the guard: the partition's file groups are opened, without records, and it is listed as inflight. From
then on every writer logs its changes to it. Work: the base files, by the table as it was at the beginning or at any
time since: whatever a log says of a key is newer. They bear the time of the plan, which is before any of those logs
complete, so that those lie on top. End, under the guard: what completed since is looked through for writers that did
not see the list; then the base files are committed, readers find the partition, the action completes.

A plan that dies is undone by whoever builds an index next. Spec: format/metadata-table.md section 12.
"""

import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from pyhudi.errors import Conflict, HudiError, Invalid, LockLost, NotFound, OutcomeUnknown
from pyhudi.executor import Executor
from pyhudi.format.metadata_groups import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from pyhudi.metadata.expression_index import EXPRESSION_PREFIXES, is_expression_index
from pyhudi.metadata.index_facts import known_expressions
from pyhudi.metadata.indexes import read_definitions
from pyhudi.metadata.table import open_metadata_table
from pyhudi.model.commit import WriteStat
from pyhudi.model.instant import WRITE_ACTIONS, Instant
from pyhudi.services.index_contents import IndexContents
from pyhudi.services.indexing_plans import (
    INDEXING,
    Life,
    PendingIndexing,
    complete_indexing,
    define,
    lists_of,
    pending_indexings,
    put_plan,
    undo,
)
from pyhudi.services.indexing_request import IndexRequest, define_index
from pyhudi.table.commits import read_commit
from pyhudi.table.snapshot import Snapshot
from pyhudi.timeline.clock import Clock
from pyhudi.txn.heartbeat import beating, remove_heartbeat
from pyhudi.txn.service_action import OpenSession, awaited_session
from pyhudi.txn.session import WriteSession
from pyhudi.write.index_settings import IndexSettings
from pyhudi.write.metadata import by_name
from pyhudi.write.metadata.creation import open_partition, write_bases
from pyhudi.write.metadata.deltacommit import complete_deltacommit

log = logging.getLogger("pyhudi")

_SNAPSHOTS_MAX = 3


@dataclass(frozen=True, slots=True)
class IndexResult:
    """`partitions`: of the metadata table. `completed`: None where it was scheduled only. `reason`: why nothing was
    done; empty otherwise.
    """

    partitions: tuple[str, ...]
    requested: str | None
    completed: str | None
    reason: str


@dataclass(frozen=True)
class IndexingJob:
    """What indexers need. `read_snapshot`: the table as it is now. `check_timeout_ms`: how long writers that did not
    see the list may keep it from completing.
    """

    settings: IndexSettings
    open_session: OpenSession
    read_snapshot: Callable[[], Snapshot]
    executor: Executor
    clock: Clock
    check_timeout_ms: int


@dataclass(frozen=True, slots=True)
class _Begun:
    """A build that is ours. `begun`: a time at which no writer was at work and the list was put. `known`: what had
    completed then.
    """

    requested: str
    partitions: tuple[str, ...]
    begun: str
    known: frozenset[str]
    snapshot: Snapshot


class _Lost(Conflict):
    """The build is not ours any more: nothing of it is to be touched."""


def build_index(job: IndexingJob, request: IndexRequest) -> IndexResult:
    """Build an index, or run the plan that waits for it. Nothing where it is there.

    Raises: Conflict while another process builds it, or holds the table at the beginning; Invalid for what cannot be.
    """
    partition = request.partition
    with ExitStack() as life:
        with job.open_session() as session:
            if _has_index(session, partition):
                return _nothing(partition)
            waiting = _clear(session, (partition,))
            instant = waiting.instant if waiting is not None else None
            partitions = waiting.partitions if waiting is not None else (partition,)
            if instant is None:
                instant = _schedule(job, session, request)
            begun = _begin(job, session, instant, partitions, life)
            if begun is None:
                return _nothing(partition)
        return _finish(job, begun, life)


def schedule_index(job: IndexingJob, request: IndexRequest) -> IndexResult:
    """Put the plan of an index on the timeline; whoever runs indexings next builds it, pyhudi or Apache Hudi."""
    partition = request.partition
    with job.open_session() as session:
        if _has_index(session, partition):
            return _nothing(partition)
        waiting = _clear(session, (partition,))
        instant = waiting.instant if waiting is not None else _schedule(job, session, request)
        return IndexResult((partition,), instant.requested, None, "")


def run_indexings(job: IndexingJob) -> list[IndexResult]:
    """Run every plan that waits, oldest first; those that died are planned anew."""
    results: list[IndexResult] = []
    while True:
        with ExitStack() as life:
            with job.open_session() as session:
                pending = pending_indexings(session)
                dead = [of for of in pending if of.life is Life.DEAD]
                for of in dead:
                    _replan(session, of)
                if dead:
                    continue
                _drop_unclaimed(session)
                waiting = [of for of in pending if of.life is Life.WAITING and _are_known(session, of.partitions)]
                if not waiting:
                    return results + [_unknown(of) for of in pending if of.life is Life.WAITING]
                chosen = waiting[0]
                begun = _begin(job, session, chosen.instant, chosen.partitions, life)
            results.append(_finish(job, begun, life) if begun is not None else _nothing(*chosen.partitions))


def _replan(session: WriteSession, dead: PendingIndexing) -> None:
    """Put the plan of a dead indexing anew, under a new time: files that its process may yet write bear the old one."""
    lists, storage = lists_of(session), session.access.storage
    left = tuple(name for name in dead.partitions if name not in lists.config().metadata_partitions)
    from_before = read_definitions(storage)
    undo(session, dead)
    for name in left:
        define(session, name, from_before.get(name))
    if left:
        put_plan(session, left)


def _has_index(session: WriteSession, partition: str) -> bool:
    config = lists_of(session).config()
    by_name.refuse_indexes(config, (partition,))
    if not config.has_metadata_table:
        raise Invalid(
            f"index '{partition}': expected a metadata table; the table is written with hoodie.metadata.enable=false"
        )
    return partition in config.metadata_partitions


def _clear(session: WriteSession, partitions: tuple[str, ...]) -> PendingIndexing | None:
    """Undo dead indexings; the plan that waits for one of these partitions.

    Raises: Conflict where another process builds one of them.
    """
    waiting = None
    for of in pending_indexings(session):
        mine = set(of.partitions) & set(partitions)
        match of.life:
            case Life.DEAD:
                log.info("indexing '%s' died and is undone", of.instant.requested)
                undo(session, of)
            case Life.WAITING if mine:
                waiting = of
            case Life.RUNNING | Life.FOREIGN if mine:
                age = f" (its heartbeat is {of.beat_age_ms:,} ms old)" if of.life is Life.RUNNING else ""
                raise Conflict(
                    f"indexing '{of.instant.requested}' of '{min(mine)}' {of.life.value}{age}; wait for it to end or, "
                    f"if it died, for {session.heartbeat.expires_ms:,} ms, or drop the index first"
                )
    _drop_unclaimed(session)
    return waiting


def _drop_unclaimed(session: WriteSession) -> None:
    """Drop what is listed as being built, and that no indexing on the timeline builds; plans for it stay."""
    pending = pending_indexings(session)
    claimed = {name for of in pending if of.life is not Life.WAITING for name in of.partitions}
    planned = {name for of in pending if of.life is Life.WAITING for name in of.partitions}
    unclaimed = set(lists_of(session).config().metadata_partitions_inflight) - claimed
    if unclaimed:
        definitions = read_definitions(session.access.storage)
        lists_of(session).drop(unclaimed)
        for name in sorted(unclaimed & planned):
            define(session, name, definitions.get(name))


def _schedule(job: IndexingJob, session: WriteSession, request: IndexRequest) -> Instant:
    contents = IndexContents(session.snapshot, job.settings, job.executor)
    ready = lists_of(session).config().metadata_partitions
    define(session, request.partition, define_index(request, contents, ready))
    return put_plan(session, (request.partition,))


def _begin(
    job: IndexingJob, session: WriteSession, instant: Instant, partitions: tuple[str, ...], life: ExitStack
) -> _Begun | None:
    """Make a plan ours, with a heartbeat for as long as `life`: from now on writers keep its partitions up to date.

    None where all of them are there: then the plan goes. Partitions that are there, or are being built, are left out.
    """
    storage, requested, lists = session.access.storage, instant.requested, lists_of(session)
    config = lists.config()
    taken = config.metadata_partitions_named
    left = tuple(name for name in partitions if name not in taken)
    if not left:
        undo(session, PendingIndexing(instant, (), Life.WAITING))
        return None
    contents = IndexContents(session.snapshot, job.settings, job.executor)
    definitions = contents.stored_definitions()
    for name in left:
        if name not in definitions:
            define(session, name, contents.definition(name))
    life.enter_context(beating(storage, requested, interval_ms=session.heartbeat.interval_ms))
    inflight = Instant(requested, INDEXING, "INFLIGHT")
    storage.put_new(session.snapshot.timeline.layout.path(inflight), b"")
    begun = _Begun(requested, left, "", frozenset(), session.snapshot)
    try:
        begun = _open_groups(job, session, begun)
        lists.put(ready=config.metadata_partitions, inflight={*config.metadata_partitions_inflight, *left})
    except (LockLost, OutcomeUnknown):
        raise
    except Exception:
        life.close()
        undo(session, PendingIndexing(inflight, left, Life.DEAD))
        raise
    return begun


def _open_groups(job: IndexingJob, session: WriteSession, begun: _Begun) -> _Begun:
    """File groups of all partitions, without records; what writers logged there before goes. Under the guard."""
    table = open_metadata_table(session.access.storage, session.snapshot.zone)
    contents = IndexContents(session.snapshot, job.settings, job.executor)
    definitions = contents.stored_definitions()
    for name in begun.partitions:
        open_partition(
            table, by_name.indexing_instant(table, begun.requested), name,
            contents.group_counts(name, definitions.get(name)),
            epoch_ms=job.clock.now_ms(), executor=job.executor, confirm=session.hold.confirm,
        )  # fmt: skip
    known = frozenset(i.requested for i in session.snapshot.timeline if i.is_completed)
    return replace(begun, begun=session.issue_instant(), known=known, snapshot=session.snapshot)


def _finish(job: IndexingJob, begun: _Begun, life: ExitStack) -> IndexResult:
    """Build and complete. Where that fails everything is taken back."""
    what, until_ms = f"{INDEXING} '{begun.requested}'", job.clock.now_ms() + job.check_timeout_ms
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
                begun = _open_groups(job, session, begun)
    except (_Lost, OutcomeUnknown, LockLost):
        raise
    except Exception as error:
        life.close()
        ours = PendingIndexing(Instant(begun.requested, INDEXING, "INFLIGHT"), begun.partitions, Life.DEAD)
        try:
            with awaited_session(job.open_session, job.clock, what=what) as session:
                undo(session, ours)
        except HudiError as second:
            error.add_note(f"{what} could not be undone yet, the next one does it: {second}")
        raise
    log.info("%s: built %s", what, ", ".join(begun.partitions))
    return IndexResult(begun.partitions, begun.requested, completed, "")


def _write_all(job: IndexingJob, begun: _Begun) -> dict[str, list[WriteStat]]:
    """The base files of all partitions. When a clean takes files away meanwhile, by the table as it is then."""
    snapshot = begun.snapshot
    for attempt in range(_SNAPSHOTS_MAX):
        contents = IndexContents(snapshot, job.settings, job.executor)
        table = open_metadata_table(snapshot.storage, snapshot.zone)
        definitions, instant = contents.stored_definitions(), by_name.indexing_instant(table, begun.requested)
        with suppress(*([NotFound] if attempt < _SNAPSHOTS_MAX - 1 else [])):
            return {
                name: write_bases(
                    table,
                    instant,
                    contents.initial(name, definitions.get(name), requested=begun.requested),
                    job.executor,
                )
                for name in begun.partitions
            }
        snapshot = job.read_snapshot()
    raise AssertionError("the last attempt returns or raises")


def _refuse_lost(session: WriteSession, begun: _Begun) -> None:
    mine = [i for i in session.snapshot.timeline.pending if i.requested == begun.requested and i.action == INDEXING]
    inflight = lists_of(session).config().metadata_partitions_inflight
    what = f"{INDEXING} '{begun.requested}'"
    if not mine or mine[0].state != "INFLIGHT":
        raise _Lost(f"{what}: another process took this build for dead and undid it; run it again")
    if not set(begun.partitions) <= set(inflight):
        raise Conflict(f"{what}: another writer dropped the index while it was being built; run it again")


def _late_writes(session: WriteSession, begun: _Begun) -> list[str]:
    """Actions since the beginning that the partitions may not know of: those that are not in the metadata table, and
    those that began before the list was put and logged nothing to them.
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


def _complete(session: WriteSession, begun: _Begun, stats: dict[str, list[WriteStat]]) -> str:
    """Order: the base files count, readers find them, the action is complete. After the first two the next indexer
    finishes the last one.
    """
    table = open_metadata_table(session.access.storage, session.snapshot.zone)
    session.hold.confirm()
    requested = by_name.indexing_instant(table, begun.requested)
    for state in ("REQUESTED", "INFLIGHT"):
        table.storage.put_new(table.timeline.layout.path(Instant(requested, "deltacommit", state)), b"")
    completed = Instant(requested, "deltacommit", "COMPLETED", session.issue_instant())
    complete_deltacommit(table, completed, stats, "BULK_INSERT", session.hold.confirm)
    lists = lists_of(session)
    config = lists.config()
    lists.put(
        ready={*config.metadata_partitions, *begun.partitions},
        inflight=set(config.metadata_partitions_inflight) - set(begun.partitions),
    )
    return complete_indexing(session, begun.requested, begun.partitions)


def _nothing(*partitions: str) -> IndexResult:
    return IndexResult(partitions, None, None, f"{', '.join(partitions) or 'what was planned'}: is there already")


def _are_known(session: WriteSession, partitions: tuple[str, ...]) -> bool:
    of_expressions = {name for name in partitions if is_expression_index(name)}
    if of_expressions:
        definitions = read_definitions(session.access.storage)
        found = known_expressions(of_expressions, definitions, session.snapshot.schema_with_meta)
        of_expressions -= {index.partition for index in found}
    names = (FILES, COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS, RECORD_INDEX)
    prefixes = (SECONDARY_INDEX_PREFIX, *EXPRESSION_PREFIXES)
    return not of_expressions and all(name in names or name.startswith(prefixes) for name in partitions)


def _unknown(pending: PendingIndexing) -> IndexResult:
    reason = f"{', '.join(pending.partitions)}: this release does not build indexes of this kind; the plan stays"
    return IndexResult(pending.partitions, pending.instant.requested, None, reason)
