"""Writes of a table: each is checked, run and committed, and followed by the services that are due."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyhudi.api import frames
from pyhudi.api.access import commit_texts
from pyhudi.api.commit_callback import CommitCallback, tell_of_commit
from pyhudi.api.handle import TableHandle
from pyhudi.api.services import compaction_job, slice_work
from pyhudi.engine.local.arrow_source import ArrowSource
from pyhudi.errors import Conflict, Invalid
from pyhudi.executor import Executor
from pyhudi.options.resolve import PAYLOAD_CLASS, is_delete_payload
from pyhudi.services.after_commit import AfterCommitSettings, run_after_commit, run_after_turn
from pyhudi.services.compaction.many_logs import tell_of_commits
from pyhudi.storage.scratch import sweep_once
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.service_action import TURN_WAIT_MS
from pyhudi.txn.action.session import TableAccess, WriteSession
from pyhudi.txn.action.write import OneTurn, Turns, TwoTurns
from pyhudi.txn.conflicts.verdict import PlanOutdated
from pyhudi.versions import LogNaming
from pyhudi.write.input.inserts import as_deletes
from pyhudi.write.input.source import Operation, WriteSource
from pyhudi.write.memory_settings import SPILL_FOLDER, MemorySettings
from pyhudi.write.operation import StaleInput, WriteResult, nothing_to_do, run_delete_partitions, run_write
from pyhudi.write.place.replacement import find_partitions, match_partitions
from pyhudi.write.preparation import prepare_write
from pyhudi.write.settings import WriteSettings

log = logging.getLogger("pyhudi")

OnCommit = Callable[[WriteResult], None]


@dataclass(frozen=True, slots=True)
class WriteCall:
    """What a caller says beside the rows. `extra_metadata`: stored in the commit. `on_commit`: told of the result."""

    options: Mapping[str, object] | None = None
    extra_metadata: Mapping[str, str] | None = None
    on_commit: OnCommit | None = None


def write(handle: TableHandle, operation: Operation, data: Any, call: WriteCall) -> WriteResult:
    """Write rows. `data`: a Spark DataFrame, or anything that speaks the Arrow stream interface."""
    snapshot, merged, settings = handle.prepare(call.options)
    deletes = is_delete_payload(merged.get(PAYLOAD_CLASS, ""))
    if deletes:
        operation = as_deletes(operation)
    course = WriteCourse(handle, snapshot, merged, settings, operation, call)

    access, source = _source(handle, data, call.options)
    cluster = frames.cluster_of(data)
    try:
        prepared = prepare_write(snapshot, source, operation, settings, is_unordered=deletes)

        def attempt(turns: Turns) -> WriteResult:
            nonlocal prepared
            while True:
                try:
                    return run_write(turns, prepared, settings, extra_metadata=course.extra, then=course.finish)
                except StaleInput:
                    now = access.snapshot()
                    prepared = prepare_write(now, source, operation, settings, is_unordered=deletes)

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
        self._last: Snapshot | None = None

    def finish(self, session: WriteSession) -> None:
        """What follows the commit in the turn that completed it."""
        run_after_commit(session, self._after)
        self._last = session.snapshot

    def run(self, attempt: Callable[[Turns], WriteResult], access: TableAccess, cluster: Any | None) -> WriteResult:
        """The result of an attempt that nothing was in the way of. `cluster`: whose tasks read data files."""
        readers = self._handle.readers(cluster)
        writer = _Writer(self._handle, access, self._settings, self._after, self._operation, readers, self._snapshot)
        return writer.run(attempt)

    def follow(self, result: WriteResult, access: TableAccess, cluster: Any | None) -> None:
        """Tell who wants to know of the result, and run the compactions that are due."""
        _tell(self._handle, result, self._callback, self._on_commit)
        if self._snapshot.config.table_type == "MERGE_ON_READ":
            if self._last is not None and (result.updated or result.deleted):
                tell_of_commits(access.location.uri, self._last.timeline, self._after.compaction)
            _compact_after(self._handle, access, self._settings, self._after, cluster)


def delete_partitions(handle: TableHandle, partitions: Sequence[str], call: WriteCall) -> WriteResult:
    """As `HudiTable.delete_partitions`."""
    if isinstance(partitions, str) or not isinstance(partitions, Iterable):
        raise Invalid(f"partitions={partitions!r}: expected a sequence of paths, such as ['{partitions}']")
    operation = Operation.DELETE_PARTITION
    snapshot, merged, settings = handle.prepare(call.options)
    callback = _callback(handle, call)
    extra = _extra(settings, merged, call)

    chosen = find_partitions(snapshot.listing.partitions(), partitions)
    if not chosen:
        return nothing_to_do(operation)

    after = AfterCommitSettings.from_options(merged)
    writer = _Writer(handle, handle.access, settings, after, operation, None, snapshot)
    result = writer.run(
        lambda turns: run_delete_partitions(
            turns, chosen, extra_metadata=extra, then=lambda session: run_after_commit(session, after)
        )
    )
    _tell(handle, result, callback, call.on_commit)
    return result


def partitions_like(handle: TableHandle, patterns: Sequence[str]) -> tuple[str, ...]:
    """As `HudiTable.partitions_like`."""
    return match_partitions(handle.access.snapshot().listing.partitions(), patterns)


def partitions_of(handle: TableHandle, data: Any, options: Mapping[str, object] | None) -> tuple[str, ...]:
    """As `HudiTable.partitions_of`."""
    snapshot, _, settings = handle.prepare(options)
    in_partitions = replace(settings, index_type="SIMPLE")  # a delete by a global index would pass over them
    _, source = _source(handle, data, options)
    try:
        return tuple(sorted(prepare_write(snapshot, source, Operation.DELETE, in_partitions).counted.counts))
    finally:
        source.close()


@dataclass(frozen=True)
class _Writer:
    """Gives a write its turns at the table, and tries again where another writer was in its way.

    Where logs are named after their slice, two writers could give the same name, and a compaction that is planned
    beside a write would lose its log. There a write holds the table throughout.
    `opened`: the table as it was when the input was checked.
    """

    handle: TableHandle
    access: TableAccess
    settings: WriteSettings
    after: AfterCommitSettings
    operation: Operation
    readers: Executor | None
    opened: Snapshot

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
                log.info("%s: planned anew, as another writer was in the way: %s", self.access.location.uri, error)
            is_alone, left = True, left - 1

    def _alone(self, attempt: Callable[[Turns], WriteResult]) -> WriteResult:
        """The result of an attempt that holds the table from its beginning to its end."""
        with self._begin() as session:
            return attempt(OneTurn(session))

    @contextmanager
    def _begin(self) -> Iterator[WriteSession]:
        with self._session(self.settings.lock_wait_ms) as session:
            if session.snapshot.config.facts() != self.opened.config.facts():
                raise Conflict(f"table '{self.handle.name}' was made anew while the input was read; open it again")
            yield session

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
        on_commit(result)


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
    return commit_texts({**settings.commit_metadata(options), **commit_texts(call.extra_metadata)})
