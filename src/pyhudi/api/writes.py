"""Writes of a table: each is checked, run and committed, and followed by the services that are due."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyhudi.api import frames
from pyhudi.api.access import commit_texts
from pyhudi.api.commit_callback import CommitCallback, OnCommit, tell_caller, tell_of_commit
from pyhudi.api.handle import TableHandle
from pyhudi.api.reporting import told_write
from pyhudi.api.service_calls.clustering import clustering_job
from pyhudi.api.service_calls.jobs import clean_job, compaction_job, slice_work
from pyhudi.engine.local.arrow_source import ArrowSource
from pyhudi.errors import Conflict, Invalid
from pyhudi.executor import Executor
from pyhudi.metrics.events import Replanned
from pyhudi.metrics.listeners import is_listening, tell
from pyhudi.metrics.measuring import count_retry
from pyhudi.options.arguments import several_texts
from pyhudi.options.resolve import PAYLOAD_CLASS, is_delete_payload, without_operation
from pyhudi.services.after_commit import (
    AfterCommitSettings,
    cluster_after_turn,
    end_outdated_clusterings,
    expire_after_turn,
    run_after_commit,
    run_after_turn,
    run_clean_left,
)
from pyhudi.services.compaction.many_logs import tell_of_commits
from pyhudi.services.expiry.plan import ExpiryPlan, ExpiryResult, plan_expiry
from pyhudi.services.expiry.settings import ExpirySettings
from pyhudi.storage.scratch import sweep_once
from pyhudi.table.facts.bucket_facts import facts_of_table
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.service_action import TURN_WAIT_MS
from pyhudi.txn.action.session import TableAccess, WriteSession
from pyhudi.txn.action.write import OneTurn, Turns, TwoTurns
from pyhudi.txn.conflicts.verdict import PlanOutdated
from pyhudi.versions import LogNaming
from pyhudi.write.input.inserts import as_deletes, updates_stored
from pyhudi.write.input.source import Operation, WriteSource
from pyhudi.write.memory_settings import SPILL_FOLDER, MemorySettings
from pyhudi.write.operation import (
    ChoosePartitions,
    StaleInput,
    WriteResult,
    nothing_to_do,
    run_delete_partitions,
    run_write,
)
from pyhudi.write.place.non_blocking import refuse_unfit_for_non_blocking
from pyhudi.write.place.replacement import find_partitions, match_partitions
from pyhudi.write.preparation import prepare_anew, prepare_write
from pyhudi.write.settings import WriteSettings

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class WriteCall:
    """What a caller says beside the rows. `extra_metadata`: stored in the commit. `on_commit`: told of the result.

    `own_texts`: stored in the commit, too, by pyhudi itself: which batch of a stream it holds.
    `may_begin`: looks at the table in the turn in which the write begins, and raises if the write must not be.
    `also_replaced`: the partitions that an overwrite replaces, whether or not it has rows for them.
    `may_replace`: looks at the partitions of its rows before it begins, and raises if one must not be replaced.
    """

    options: Mapping[str, object] | None = None
    extra_metadata: Mapping[str, str] | None = None
    on_commit: OnCommit | None = None
    may_begin: Callable[[Snapshot], None] | None = None
    also_replaced: frozenset[str] = frozenset()
    may_replace: Callable[[Collection[str]], None] | None = None
    own_texts: Mapping[str, str] = field(default_factory=dict)


NO_CALL = WriteCall()


def write(handle: TableHandle, operation: Operation, data: Any, call: WriteCall) -> WriteResult:
    """Write rows. `data`: a Spark DataFrame, or anything that speaks the Arrow stream interface."""
    return told_write(_write, handle, operation.value.lower(), call.options)(operation, data, call)


def _write(handle: TableHandle, operation: Operation, data: Any, call: WriteCall) -> WriteResult:
    snapshot, merged, settings = handle.prepare(call.options)
    deletes = is_delete_payload(merged.get(PAYLOAD_CLASS, ""))
    if deletes:
        operation = as_deletes(operation)
    elif updates_stored(operation, settings, snapshot.config):
        operation = Operation.UPSERT
    course = WriteCourse(handle, snapshot, merged, settings, operation, call)

    access, source = _source(handle, data, call.options)
    cluster = frames.cluster_of(data)
    try:
        prepared = prepare_write(snapshot, source, operation, settings, is_unordered=deletes)
        prepared = replace(prepared, also_replaced=call.also_replaced)
        if call.may_replace is not None:
            call.may_replace(prepared.counted.counts)

        def attempt(turns: Turns) -> WriteResult:
            nonlocal prepared
            while True:
                try:
                    return run_write(turns, prepared, settings, extra_metadata=course.extra, then=course.finish)
                except StaleInput:
                    now = access.snapshot()
                    prepared = prepare_anew(prepared, now, source, operation, settings, is_unordered=deletes)

        result = course.run(attempt, access, cluster)
        del prepared, attempt  # which hold the rows: a compaction that follows needs the memory
    finally:
        source.close()

    course.follow(result, access, cluster)
    return result


class WriteCourse:
    """What a write of rows does around its attempts, wherever its rows come from.

    Made before the input is read, so that bad options and arguments are refused first.
    Raises: Invalid.
    """

    def __init__(
        self,
        handle: TableHandle,
        snapshot: Snapshot,
        merged: Mapping[str, str],
        settings: WriteSettings,
        operation: Operation,
        call: WriteCall,
    ) -> None:
        self._handle, self._snapshot, self._settings, self._operation = handle, snapshot, settings, operation
        self._callback, self._on_commit = _callback(handle, call), call.on_commit
        self.extra = _extra(settings, merged, call)
        self._after = AfterCommitSettings.from_options(merged)
        self._options, self._may_begin = call.options, call.may_begin
        self._ending = _Ending(self._after, ends_clusterings=settings.passes_clusterings and settings.ends_clusterings)

    def finish(self, session: WriteSession) -> None:
        """What follows the commit in the turn that completed it."""
        self._ending.run(session)

    def run(self, attempt: Callable[[Turns], WriteResult], access: TableAccess, cluster: Any | None) -> WriteResult:
        """The result of an attempt that nothing was in the way of. `cluster`: whose tasks read data files."""
        readers = self._handle.readers(cluster)
        writer = _Writer(
            self._handle, access, self._settings, self._after, self._operation, readers, self._snapshot, self._may_begin
        )
        return writer.run(attempt)

    def follow(self, result: WriteResult, access: TableAccess, cluster: Any | None) -> None:
        """Tell who wants to know of the result, and run the services that are due and need no turn of the write."""
        handle, settings, after, ending = self._handle, self._settings, self._after, self._ending
        _tell(handle, result, self._callback, self._on_commit)
        uri = access.location.uri
        if ending.has_clean_left:
            run_clean_left(uri, clean_job(handle, access, settings, after.clean))
        if self._snapshot.config.table_type == "MERGE_ON_READ":
            if result.updated or result.deleted:
                assert ending.snapshot is not None
                tell_of_commits(uri, ending.snapshot.timeline, after.compaction)
            _compact_after(handle, access, settings, after, cluster)
        _cluster_after(handle, access, settings, after, cluster)
        expire_after_turn(uri, after.expiry, lambda: expire_partitions(handle, self._options, dry_run=False))


def delete_partitions(handle: TableHandle, partitions: Iterable[str], call: WriteCall) -> WriteResult:
    """As `HudiTable.delete_partitions`."""
    wanted = several_texts(partitions, what="partitions", of="paths")
    return delete_chosen(handle, lambda now: find_partitions(now.listing.partitions(), wanted), call)


def delete_chosen(handle: TableHandle, choose: ChoosePartitions, call: WriteCall) -> WriteResult:
    """Delete the partitions that `choose` names, in one commit; nothing is done where it names none.

    It is asked upon the table as it is now, and anew by each attempt.
    """
    return told_write(_delete_chosen, handle, Operation.DELETE_PARTITION.value.lower(), call.options)(choose, call)


def _delete_chosen(handle: TableHandle, choose: ChoosePartitions, call: WriteCall) -> WriteResult:
    snapshot, merged, settings = handle.prepare(call.options)
    callback = _callback(handle, call)
    extra = _extra(settings, merged, call)
    operation = Operation.DELETE_PARTITION
    refuse_unfit_for_non_blocking(
        snapshot.config, facts_of_table(snapshot.config, settings.bucket_options), operation, settings
    )
    if not choose(snapshot):
        return nothing_to_do(operation)

    after = AfterCommitSettings.from_options(merged)
    ending = _Ending(after, ends_clusterings=False)
    writer = _Writer(handle, handle.access, settings, after, operation, None, snapshot, call.may_begin)
    result = writer.run(lambda turns: run_delete_partitions(turns, choose, extra_metadata=extra, then=ending.run))
    if result.requested is not None:
        _tell(handle, result, callback, call.on_commit)
    if ending.has_clean_left:
        run_clean_left(handle.access.location.uri, clean_job(handle, handle.access, settings, after.clean))
    return result


def expire_partitions(handle: TableHandle, options: Mapping[str, object] | None, *, dry_run: bool) -> ExpiryResult:
    """As `HudiTable.expire_partitions`."""
    _, merged, _ = handle.prepare(options)
    settings = ExpirySettings.from_options(merged)
    plan = ExpiryPlan()

    def choose(now: Snapshot) -> Sequence[str]:
        nonlocal plan
        plan = plan_expiry(now, settings, now_ms=handle.access.clock.now_ms())
        return tuple(one.partition for one in plan.expired)

    if dry_run:
        choose(handle.access.snapshot())
        return ExpiryResult(None, None, plan.expired, plan.kept, plan.reason or "a dry run deletes nothing")

    done = delete_chosen(handle, choose, WriteCall(without_operation(options or {})))
    return ExpiryResult(done.requested, done.completed, plan.expired, plan.kept, plan.reason)


def partitions_like(handle: TableHandle, patterns: Iterable[str]) -> tuple[str, ...]:
    """As `HudiTable.partitions_like`."""
    wanted = several_texts(patterns, what="patterns", of="patterns")
    return match_partitions(handle.access.snapshot().listing.partitions(), wanted)


def partitions_of(handle: TableHandle, data: Any, options: Mapping[str, object] | None) -> tuple[str, ...]:
    """As `HudiTable.partitions_of`."""
    snapshot, _, settings = handle.prepare(options)
    # A delete by a global index would pass over them.
    in_partitions = replace(settings, index_type="SIMPLE", index_class="")
    _, source = _source(handle, data, options)
    try:
        return tuple(sorted(prepare_write(snapshot, source, Operation.DELETE, in_partitions).counted.counts))
    finally:
        source.close()


@dataclass
class _Ending:
    """What follows a commit in the writer's turn. `snapshot`: of that turn. `has_clean_left`: a clean is to come.

    `ends_clusterings`: pending clusterings of file groups that the write changed are taken off the timeline.
    """

    after: AfterCommitSettings
    ends_clusterings: bool
    snapshot: Snapshot | None = None
    has_clean_left: bool = False

    def run(self, session: WriteSession) -> None:
        if self.ends_clusterings:
            end_outdated_clusterings(session)
        self.has_clean_left = run_after_commit(session, self.after)
        self.snapshot = session.snapshot


@dataclass(frozen=True)
class _Writer:
    """Gives a write its turns at the table, and tries again where another writer was in its way.

    Where logs are named after their slice, two writers could give the same name, and a compaction that is planned
    beside a write would lose its log. There a write holds the table throughout.
    `opened`: the table as it was when the input was checked. `may_begin`: as of `WriteCall`.
    """

    handle: TableHandle
    access: TableAccess
    settings: WriteSettings
    after: AfterCommitSettings
    operation: Operation
    readers: Executor | None
    opened: Snapshot
    may_begin: Callable[[Snapshot], None] | None

    def run(self, attempt: Callable[[Turns], WriteResult]) -> WriteResult:
        """The result of an attempt that nothing was in the way of.

        After a conflict the write holds the table from its beginning to its end, so that the next attempt succeeds.
        Raises: Conflict, once the retries that the settings allow are used up.
        """
        config = self.opened.config
        is_alone = config.is_merge_on_read and config.version.log_naming is LogNaming.AFTER_SLICE
        left = self.settings.conflict_retries
        while True:
            try:
                return self._alone(attempt) if is_alone else attempt(TwoTurns(self._begin, self._go_on))
            except PlanOutdated as error:
                if not left:
                    raise
                count_retry()
                if is_listening():
                    operation = self.operation.value.lower()
                    tell(Replanned(self.access.location.uri, self.handle.name, operation, str(error)))
                log.info("%s: planned anew, as another writer was in the way: %s", self.access.location.uri, error)
            is_alone, left = True, left - 1

    def _alone(self, attempt: Callable[[Turns], WriteResult]) -> WriteResult:
        """The result of an attempt that holds the table from its beginning to its end."""
        with self._begin() as session:
            return attempt(OneTurn(session))

    @contextmanager
    def _begin(self) -> Iterator[WriteSession]:
        with self._session(self.settings.lock_wait_ms) as session:
            self._refuse_other_facts(session.snapshot.config)
            if self.may_begin is not None:
                self.may_begin(session.snapshot)
            yield session

    def _refuse_other_facts(self, now: TableConfig) -> None:
        then = self.opened.config
        if now.version != then.version:
            raise Conflict(
                f"table '{self.handle.name}': its version was {then.version} when the input was opened, and is "
                f"{now.version} now; run the write again"
            )
        if now.facts() != then.facts():
            raise Conflict(f"table '{self.handle.name}' was made anew while the input was read; open it again")

    def _go_on(self) -> AbstractContextManager[WriteSession]:
        return self._session(max(TURN_WAIT_MS, self.settings.lock_wait_ms), goes_on=True)

    def _session(self, wait_ms: int, *, goes_on: bool = False) -> AbstractContextManager[WriteSession]:
        return self.handle.session(
            self.settings, self.after.clean, self.operation.value.lower(), access=self.access, readers=self.readers,
            goes_on=goes_on, wait_ms=wait_ms,
        )  # fmt: skip


def _compact_after(
    handle: TableHandle, access: TableAccess, settings: WriteSettings, after: AfterCommitSettings, cluster: Any | None
) -> None:
    """Run the compactions that follow a write, once the table is free for others."""
    run_after_turn(
        access.location.uri, after.compaction, access.snapshot,
        lambda kind: compaction_job(
            handle, kind, access, settings, after, slice_work(handle, access, cluster)
        ),
    )  # fmt: skip


def _cluster_after(
    handle: TableHandle, access: TableAccess, settings: WriteSettings, after: AfterCommitSettings, cluster: Any | None
) -> None:
    """Run the clustering that follows a write, once the table is free for others."""
    cluster_after_turn(
        access.location.uri, after.clustering, access.snapshot,
        lambda: clustering_job(
            handle, access, settings, after, slice_work(handle, access, cluster)
        ),
    )  # fmt: skip


def _callback(handle: TableHandle, call: WriteCall) -> CommitCallback | None:
    """Whom the caller wants to be told."""
    return CommitCallback.from_options(handle.callers_options(call.options))


def _tell(
    handle: TableHandle, result: WriteResult, callback: CommitCallback | None, on_commit: OnCommit | None
) -> None:
    """Tell whoever wants to know of a write that is done."""
    if callback is not None and result.requested is not None:
        tell_of_commit(callback, handle.access.snapshot, result.requested)
    if on_commit is not None:
        tell_caller(on_commit, result)


def _source(handle: TableHandle, data: Any, options: Mapping[str, object] | None) -> tuple[TableAccess, WriteSource]:
    """Where the write runs: the data's type says."""
    memory = MemorySettings.from_options(handle.callers_options(options))
    sweep_once(memory.spill_folder, setting=SPILL_FOLDER)

    dataframe = frames.spark_dataframe(data)
    if dataframe is not None:
        engine, location = frames.spark_engine(), handle.access.location
        return engine.spark_access(handle.access, dataframe), engine.source_of(dataframe, location, memory)
    return handle.access, ArrowSource(frames.arrow_rows(data), handle.access.storage, handle.executor, memory)


def _extra(settings: WriteSettings, options: Mapping[str, str], call: WriteCall) -> dict[str, str]:
    """What goes into the commit beside its own. Raises: Invalid, also for an `on_commit` that cannot be called."""
    if call.on_commit is not None and not callable(call.on_commit):
        raise Invalid(f"on_commit={call.on_commit!r}: expected a function of the result")
    texts = commit_texts({**settings.commit_metadata(options), **commit_texts(call.extra_metadata)})
    return {**texts, **call.own_texts}
