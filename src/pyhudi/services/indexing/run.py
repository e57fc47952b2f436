"""Building indexes of the metadata table beside the writers: a plan, the work without the table's guard, and the end.

Begin, under the guard: the file groups of the partition are made, without records, and the partition is listed as
inflight. From then on every writer logs its changes to it.

Work: the base files are written from the table as it was at the beginning, or at any time since. Whatever a log says of
a key is newer. The base files bear the time of the plan. All those logs complete later, so they lie upon the base
files.

End, under the guard: what completed since is searched for writers that did not see the list. Then the base files are
committed, readers find the partition, and the action completes.

A plan that dies is undone by whoever builds an index next. Spec: format/metadata-table.md section 12.
"""

import logging
from collections.abc import Mapping
from contextlib import ExitStack

from pyhudi.errors import Conflict, Invalid, LockLost, OutcomeUnknown
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.timeline.instant import Instant
from pyhudi.metadata.kinds import registry
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import IndexSettings
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.services.indexing.definitions import define_requested, define_wanted
from pyhudi.services.indexing.plans import (
    INDEXING,
    Life,
    PendingIndexing,
    define,
    lists_of,
    pending_indexings,
    put_plan,
    undo,
)
from pyhudi.services.indexing.work import Begun, IndexingJob, IndexResult, finish, open_groups
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.service_action import show_life
from pyhudi.txn.action.session import WriteSession
from pyhudi.write.metadata import by_name

log = logging.getLogger("pyhudi")


def build_index(job: IndexingJob, request: IndexRequest) -> IndexResult:
    """Build an index, or run the plan that waits for it. Does nothing if the index is there.

    Raises: Conflict while another process builds it, or holds the table at the beginning; Invalid for an index that
    cannot be.
    """
    partition = registry.requested_partition(request)
    with ExitStack() as life:
        with job.open_session() as session:
            if _has_index(session, partition):
                return _nothing(partition)
            _refuse_switched_off(job.settings, partition)

            waiting = _clear(session, (partition,))
            instant = waiting.instant if waiting is not None else None
            partitions = waiting.partitions if waiting is not None else (partition,)
            if instant is None:
                instant = _schedule(job, session, request, is_run_here=True)

            begun = _begin(job, session, instant, partitions, life)
            if begun is None:
                return _nothing(partition)
        return finish(job, begun, life)


def schedule_index(job: IndexingJob, request: IndexRequest) -> IndexResult:
    """Put the plan of an index on the timeline. Whoever runs indexings next builds it, pyhudi or Apache Hudi."""
    partition = registry.requested_partition(request)
    with job.open_session() as session:
        if _has_index(session, partition):
            return _nothing(partition)
        _refuse_switched_off(job.settings, partition)

        waiting = _clear(session, (partition,))
        instant = waiting.instant if waiting is not None else _schedule(job, session, request, is_run_here=False)
        return IndexResult((partition,), instant.requested, None, "")


def run_indexings(job: IndexingJob) -> list[IndexResult]:
    """Run every plan that waits, oldest first. Indexings that died are planned anew."""
    results: list[IndexResult] = []
    while True:
        with ExitStack() as life:
            with job.open_session() as session:
                pending = pending_indexings(session)

                dead = [indexing for indexing in pending if indexing.life is Life.DEAD]
                for indexing in dead:
                    _replan(session, indexing)
                if dead:
                    continue
                _drop_unclaimed(session)

                waiting = [indexing for indexing in pending if indexing.life is Life.WAITING]
                refusals = [why_not_run(session.snapshot, indexing) for indexing in waiting]
                if all(refusals):
                    return results + [_left(one, why) for one, why in zip(waiting, refusals, strict=True)]

                chosen = waiting[refusals.index("")]
                for partition in chosen.partitions:
                    _refuse_switched_off(job.settings, partition)
                begun = _begin(job, session, chosen.instant, chosen.partitions, life)
            results.append(finish(job, begun, life) if begun is not None else _nothing(*chosen.partitions))


def _replan(session: WriteSession, dead: PendingIndexing) -> None:
    """Put the plan of a dead indexing on the timeline anew, under a new time.

    The dead process may still write files: they bear the old time.
    """
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


def _refuse_switched_off(settings: IndexSettings, partition: str) -> None:
    """Refuse an index that the options switch off: the next write would drop it, or the end of the build."""
    option = registry.switched_off_by(settings, partition)
    if option:
        raise Invalid(
            f"index '{partition}': the options of the table or of this call say {option}=false, and the next write "
            f"would drop it again; take it away first: set_properties({{'{option}': None}}), where the table stores it"
        )


def _clear(session: WriteSession, partitions: tuple[str, ...]) -> PendingIndexing | None:
    """Undo dead indexings. Returns the plan that waits for one of these partitions, or None.

    Raises: Conflict where another process builds one of them.
    """
    waiting = None
    for indexing in pending_indexings(session):
        mine = set(indexing.partitions) & set(partitions)
        match indexing.life:
            case Life.DEAD:
                log.info("indexing '%s' died and is undone", indexing.instant.requested)
                undo(session, indexing)
            case Life.WAITING if mine:
                waiting = indexing
            case Life.RUNNING | Life.FOREIGN if mine:
                age = f" (its heartbeat is {indexing.beat_age_ms:,} ms old)" if indexing.life is Life.RUNNING else ""
                raise Conflict(
                    f"indexing '{indexing.instant.requested}' of '{min(mine)}' {indexing.life.value}{age}; wait for it "
                    f"to end or, if it died, for {session.heartbeat.expires_ms:,} ms, or drop the index first"
                )

    _drop_unclaimed(session)
    return waiting


def _drop_unclaimed(session: WriteSession) -> None:
    """Drop partitions that are listed as being built, though no indexing on the timeline builds them. Plans stay."""
    pending = pending_indexings(session)
    claimed = {name for indexing in pending if indexing.life is not Life.WAITING for name in indexing.partitions}
    planned = {name for indexing in pending if indexing.life is Life.WAITING for name in indexing.partitions}
    unclaimed = set(lists_of(session).config().metadata_partitions_inflight) - claimed

    if unclaimed:
        definitions = read_definitions(session.access.storage)
        lists_of(session).drop(unclaimed)
        for name in sorted(unclaimed & planned):
            define(session, name, definitions.get(name))


def _schedule(job: IndexingJob, session: WriteSession, request: IndexRequest, *, is_run_here: bool) -> Instant:
    contents = job.contents(session.snapshot)
    ready = lists_of(session).config().metadata_partitions
    partition = registry.requested_partition(request)
    define(session, partition, define_requested(request, contents, ready))
    return put_plan(session, (partition,), is_run_here=is_run_here)


def _begin(
    job: IndexingJob, session: WriteSession, instant: Instant, partitions: tuple[str, ...], life: ExitStack
) -> Begun | None:
    """Begin a plan, with a heartbeat for as long as `life` lasts. From now on writers keep its partitions up to date.

    Partitions that are there, or being built, are left out. If none is left, the plan is taken back, and None returned.
    """
    requested, lists = instant.requested, lists_of(session)
    config = lists.config()
    taken = config.metadata_partitions_named
    left = tuple(name for name in partitions if name not in taken)

    if not left:
        undo(session, PendingIndexing(instant, (), Life.WAITING))
        return None

    contents = job.contents(session.snapshot)
    definitions = contents.stored_definitions()
    for name in left:
        if name not in definitions:
            define(session, name, define_wanted(contents, name))

    show_life(session, requested, life)
    inflight = session.table.begin(requested, INDEXING).target
    begun = Begun(requested, left, "", frozenset(), session.snapshot)

    try:
        begun = open_groups(job, session, begun)
        lists.put(ready=config.metadata_partitions, inflight={*config.metadata_partitions_inflight, *left})
    except (LockLost, OutcomeUnknown):
        raise
    except Exception:
        life.close()
        undo(session, PendingIndexing(inflight, left, Life.DEAD))
        raise
    return begun


def _nothing(*partitions: str) -> IndexResult:
    return IndexResult(partitions, None, None, f"{', '.join(partitions) or 'what was planned'}: is there already")


def why_not_run(snapshot: Snapshot, pending: PendingIndexing) -> str:
    """Why `run_indexings` leaves a pending indexing as it is, for people; empty if it does not.

    Requests: at most a get.
    """
    if pending.life in (Life.RUNNING, Life.FOREIGN):
        return f"indexing '{pending.instant.requested}' {pending.life.value}"
    if pending.life is Life.DEAD or _are_known(snapshot, pending.partitions):
        return ""
    return f"{', '.join(pending.partitions)}: this release does not build indexes of this kind; the plan stays"


def _are_known(snapshot: Snapshot, partitions: tuple[str, ...]) -> bool:
    def definitions() -> Mapping[str, IndexDefinition]:
        return read_definitions(snapshot.storage)

    kinds = {name: registry.find_kind(name) for name in partitions}
    schema = snapshot.schema_with_meta
    return all(kind is not None and kind.can_build(name, definitions, schema) for name, kind in kinds.items())


def _left(pending: PendingIndexing, why: str) -> IndexResult:
    return IndexResult(pending.partitions, pending.instant.requested, None, why)
