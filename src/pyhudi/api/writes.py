"""The calls of a table that write rows: each checks, runs and commits one write."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from pyhudi.api import frames
from pyhudi.api.access import attempt_number, commit_texts, metadata_upkeep
from pyhudi.api.commit_callback import CommitCallback, tell_of_commit
from pyhudi.engine.local.arrow_source import ArrowSource
from pyhudi.engine.local.executors import LocalSliceWork
from pyhudi.errors import Conflict, Invalid
from pyhudi.executor import Executor
from pyhudi.options.resolve import PAYLOAD_CLASS, check_table_facts, is_delete_payload, merge_options
from pyhudi.services.after_commit import AfterCommitSettings, run_after_commit, run_after_turn
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.services.compaction.inputs import CompactionKind
from pyhudi.services.compaction.many_logs import tell_of_commits
from pyhudi.services.compaction.run import CompactionJob
from pyhudi.services.compaction.settings import CompactionSettings
from pyhudi.storage.scratch import sweep_once
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.session import HeartbeatSettings, TableAccess, WriteSession, refuse_unwritable, write_session
from pyhudi.write.handles.compaction import SliceWork
from pyhudi.write.input.inserts import as_deletes
from pyhudi.write.input.source import Operation, WriteSource
from pyhudi.write.memory_settings import MemorySettings
from pyhudi.write.operation import (
    WriteResult,
    base_file_settings,
    is_stale,
    nothing_to_do,
    prepare_write,
    run_delete_partitions,
    run_write,
)
from pyhudi.write.place.replacement import find_partitions, match_partitions
from pyhudi.write.settings import WriteSettings

OnCommit = Callable[[WriteResult], None]


class TableWrites(ABC):
    """The write operations of `HudiTable`, which says how the table is reached."""

    _access: TableAccess
    _options: Mapping[str, object]
    _executor: Executor

    @property
    @abstractmethod
    def name(self) -> str:
        """The table's name."""

    def bulk_insert(
        self,
        data: Any,
        *,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Add rows without looking for their keys or filling small files: the fast way to load a table."""
        return self._write(Operation.BULK_INSERT, data, options, extra_metadata, on_commit)

    def insert(
        self,
        data: Any,
        *,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Add rows, into small files first.

        Their keys are not looked for, unless `hoodie.datasource.insert.dup.policy` is `drop` (rows whose key is stored
        are left out) or `fail` (one such row is an error, before anything is written).
        """
        return self._write(Operation.INSERT, data, options, extra_metadata, on_commit)

    def upsert(
        self,
        data: Any,
        *,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Replace the rows whose keys are stored, add the others.

        Keys are looked up within their partition. Of several rows of one key the greatest by the ordering
        column counts, the last to arrive on a tie; with event-time ordering a stored row that is greater stays.
        """
        return self._write(Operation.UPSERT, data, options, extra_metadata, on_commit)

    def delete(
        self,
        data: Any,
        *,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Delete the rows of these keys. `data`: rows, or only their key and partition columns.

        Without the ordering column a delete wins; with it the ordering decides. An absent key is no error.
        """
        return self._write(Operation.DELETE, data, options, extra_metadata, on_commit)

    def insert_overwrite(
        self,
        data: Any,
        *,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Replace the partitions that the rows lie in by the rows; other partitions stay."""
        return self._write(Operation.INSERT_OVERWRITE, data, options, extra_metadata, on_commit)

    def insert_overwrite_table(
        self,
        data: Any,
        *,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Replace all rows of the table by these; no rows empty it. Its history stays: `as_of` shows what was there."""
        return self._write(Operation.INSERT_OVERWRITE_TABLE, data, options, extra_metadata, on_commit)

    def delete_partitions(
        self,
        partitions: Sequence[str],
        *,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Delete all rows of these partitions, by their paths as they are stored, such as `["city=oslo"]`.

        All of them or none. Files stay until they are cleaned, so that `as_of` still shows the rows. No paths: nothing
        is done. Raises: NotFound for a path that is no partition; Conflict while a pending compaction or clustering is
        about to rewrite a file group of one.
        """
        if isinstance(partitions, str) or not isinstance(partitions, Iterable):
            raise Invalid(f"partitions={partitions!r}: expected a sequence of paths, such as ['{partitions}']")
        operation = Operation.DELETE_PARTITION
        snapshot, merged, settings = self._prepare(options)
        extra = _extra(settings, merged, extra_metadata, on_commit)
        callback = self._callback(options)
        chosen = find_partitions(snapshot.listing.partitions(), partitions)
        if not chosen:
            return nothing_to_do(operation)
        with self._commit(self._access, settings, merged, operation) as session:
            result = run_delete_partitions(session, chosen, extra_metadata=extra)
        return self._tell(result, callback, on_commit)

    def partitions_like(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """The table's partition paths that patterns match: `*` stands for any text.

        Raises: NotFound for a pattern that matches none.
        """
        return match_partitions(self._access.snapshot().listing.partitions(), patterns)

    def partitions_of(self, data: Any, *, options: Mapping[str, object] | None = None) -> tuple[str, ...]:
        """The partition paths that rows, or their key and partition columns, lie in, stored or not."""
        snapshot, _, settings = self._prepare(options)
        in_partitions = replace(settings, index_type="SIMPLE")  # a delete by a global index would pass over them
        _, source = self._source(data, options)
        try:
            return tuple(sorted(prepare_write(snapshot, source, Operation.DELETE, in_partitions).counts))
        finally:
            source.close()

    def _write(
        self,
        operation: Operation,
        data: Any,
        options: Mapping[str, object] | None,
        extra_metadata: Mapping[str, str] | None,
        on_commit: OnCommit | None,
    ) -> WriteResult:
        snapshot, merged, settings = self._prepare(options)
        extra = _extra(settings, merged, extra_metadata, on_commit)
        callback = self._callback(options)
        deletes = is_delete_payload(merged.get(PAYLOAD_CLASS, ""))
        if deletes:
            operation = as_deletes(operation)
        access, source = self._source(data, options)
        try:
            prepared = prepare_write(snapshot, source, operation, settings, is_unordered=deletes)
            readers = self._readers(frames.cluster_of(data))
            with self._commit(access, settings, merged, operation, readers) as session:
                if session.snapshot.config.facts() != snapshot.config.facts():
                    raise Conflict(f"table '{self.name}' was made anew while the input was read; open it again")
                if is_stale(prepared, session.snapshot):
                    prepared = prepare_write(session.snapshot, source, operation, settings, is_unordered=deletes)
                result = run_write(session, source, prepared, settings, extra_metadata=extra)
        finally:
            source.close()
        self._tell(result, callback, on_commit)
        if snapshot.config.table_type == "MERGE_ON_READ":
            if result.updated or result.deleted:
                compaction = CompactionSettings.from_options(merged)
                tell_of_commits(access.location.uri, session.snapshot.timeline, compaction)
            self._compact_after(access, settings, merged, data)
        return result

    def _prepare(self, options: Mapping[str, object] | None) -> tuple[Snapshot, Mapping[str, str], WriteSettings]:
        """The table as it is, and the options and settings of a write to it, checked."""
        snapshot = self._access.snapshot()
        refuse_unwritable(snapshot.config, self._access.location.uri)
        merged = merge_options(write=options, opened=self._options, table=snapshot.config.properties)
        check_table_facts(merged, snapshot.config.facts())
        settings = WriteSettings.from_options(merged)
        return snapshot, merged, settings

    @contextmanager
    def _commit(
        self,
        access: TableAccess,
        settings: WriteSettings,
        options: Mapping[str, str],
        operation: Operation,
        readers: Executor | None = None,
    ) -> Iterator[WriteSession]:
        """A session for a write, with the services that follow it."""
        after = AfterCommitSettings.from_options(options)
        with self._session(access, settings, after.clean, operation.value.lower(), readers=readers) as session:
            yield session
            run_after_commit(session, after)

    def _session(
        self,
        access: TableAccess,
        settings: WriteSettings,
        clean: CleanSettings,
        what: str,
        *,
        is_write: bool = True,
        takes_over: str | None = None,
        takes_back: str | None = None,
        readers: Executor | None = None,
    ) -> AbstractContextManager[WriteSession]:
        return write_session(
            access,
            purpose=f"{what} of table '{self.name}'",
            heartbeat=HeartbeatSettings(settings.heartbeat_interval_ms, settings.heartbeat_misses),
            participants=lambda current, issue, hold: [
                metadata_upkeep(access, current, issue, settings, clean, hold, self._executor, readers)
            ],
            is_write=is_write,
            takes_over=takes_over,
            takes_back=takes_back,
            wait_ms=settings.lock_wait_ms,
        )

    def _compact_after(
        self, access: TableAccess, settings: WriteSettings, options: Mapping[str, str], data: object
    ) -> None:
        """The compactions that follow a write, once the table is free for others."""
        after = AfterCommitSettings.from_options(options)
        run_after_turn(
            access.location.uri, after.compaction, access.snapshot,
            lambda kind: self._compaction_job(
                kind, access, settings, after, self._slice_work(access, frames.cluster_of(data))
            ),
        )  # fmt: skip

    def _compaction_job(
        self,
        kind: CompactionKind,
        access: TableAccess,
        settings: WriteSettings,
        after: AfterCommitSettings,
        work: SliceWork,
    ) -> CompactionJob:
        return CompactionJob(
            kind, after.compaction, base_file_settings(settings), settings.logs,
            open_session=lambda: self._session(access, settings, after.clean, kind.value),
            work=work, clock=access.clock, new_attempt=lambda: attempt_number(access.new_uuid),
        )  # fmt: skip

    def _slice_work(self, access: TableAccess, cluster: Any | None) -> SliceWork:
        """Where slices are compacted: on a Spark cluster (`frames.as_cluster`), or in this process without one."""
        work: SliceWork = LocalSliceWork(self._executor, access.storage)
        return work if cluster is None else frames.spark_engine().SparkSliceWork(cluster)

    def _readers(self, cluster: Any | None) -> Executor:
        """What reads the data files where an index is built, likewise."""
        return self._executor if cluster is None else frames.spark_engine().SparkExecutor(cluster)

    def _callback(self, options: Mapping[str, object] | None) -> CommitCallback | None:
        """Whom the caller wants to be told. The table's properties have no say: whoever wrote them could be anybody."""
        return CommitCallback.from_options(merge_options(write=options, opened=self._options, table={}))

    def _tell(self, result: WriteResult, callback: CommitCallback | None, on_commit: OnCommit | None) -> WriteResult:
        """Tell whoever wants to know of a write that is done."""
        if callback is not None and result.requested is not None:
            tell_of_commit(callback, self._access.snapshot, result.requested)
        if on_commit is not None:
            on_commit(result)
        return result

    def _source(self, data: Any, options: Mapping[str, object] | None) -> tuple[TableAccess, WriteSource]:
        """Where the write runs: the data's type says."""
        memory = MemorySettings.from_options(merge_options(write=options, opened=self._options, table={}))
        sweep_once(memory.spill_folder)
        dataframe = frames.spark_dataframe(data)
        if dataframe is not None:
            engine, location = frames.spark_engine(), self._access.location
            return engine.spark_access(self._access, dataframe), engine.source_of(dataframe, location, memory)
        return self._access, ArrowSource(frames.arrow_rows(data), self._access.storage, self._executor, memory)


def _extra(
    settings: WriteSettings,
    options: Mapping[str, str],
    extra_metadata: Mapping[str, str] | None,
    on_commit: OnCommit | None,
) -> dict[str, str]:
    """What goes into the commit beside its own. Raises: Invalid, also for an `on_commit` that cannot be called."""
    if on_commit is not None and not callable(on_commit):
        raise Invalid(f"on_commit={on_commit!r}: expected a function of the result")
    return commit_texts({**settings.commit_metadata(options), **commit_texts(extra_metadata)})
