"""The class that users hold: a signature and a sentence for each call. What a call does is in the module it names."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import pyarrow as pa

from pyhudi.api import queries, writes
from pyhudi.api.access import list_storage, note_experimental, table_access
from pyhudi.api.bootstrap import BootstrapCalls
from pyhudi.api.changes import ChangeCalls
from pyhudi.api.commit_callback import OnCommit
from pyhudi.api.creation import make_table
from pyhudi.api.handle import TableHandle
from pyhudi.api.metadata.table import TableMetadata
from pyhudi.api.own_names import load_named
from pyhudi.api.queries import TimeLike, Where
from pyhudi.api.rows.calls import RowCalls
from pyhudi.api.rows.rescaling import RescaleCalls
from pyhudi.api.scan import Scan
from pyhudi.api.service_calls import savepoints
from pyhudi.api.service_calls.alteration import AlterCalls
from pyhudi.api.service_calls.expiry import ExpiryCalls
from pyhudi.api.service_calls.properties import PropertyCalls
from pyhudi.api.service_calls.versions import VersionCalls
from pyhudi.api.writes import WriteCall
from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.errors import HudiError, hide_secrets
from pyhudi.executor import Executor
from pyhudi.format.names import PROPERTIES
from pyhudi.format.timeline.instant import Instant
from pyhudi.options.read_options import SOURCE_FOLDER
from pyhudi.options.resolve import merge_options, option_texts
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.undo.restore import RestoreResult
from pyhudi.services.undo.rollback import RollbackResult
from pyhudi.services.undo.savepoint import Savepoint, read_savepoint_list
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.protocol import Storage
from pyhudi.table.changes.incremental import OnCleaned
from pyhudi.table.facts.config import TableConfig
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.session import TableAccess
from pyhudi.txn.locks.guard import Guard
from pyhudi.versions import NEW_TABLE_VERSION
from pyhudi.write.input.source import Operation
from pyhudi.write.operation import WriteResult
from pyhudi.write.settings import WriteSettings


class HudiTable(
    BootstrapCalls, VersionCalls, ChangeCalls, RowCalls, ExpiryCalls, AlterCalls, RescaleCalls, PropertyCalls
):  # fmt: skip
    """A Hudi table on some storage.

    It holds no snapshot: each call reads the timeline and `hoodie.properties` anew, each property below the latter, and
    a scan is bound to the timeline at the moment it is made. The type of the data that is handed in picks where a write
    runs: a Spark DataFrame on Spark, anything that speaks the Arrow PyCapsule stream interface in this process.
    """

    def __init__(self, access: TableAccess, options: Mapping[str, object], executor: Executor) -> None:
        """Use `create` or `open`."""
        note_experimental(facts := access.config(), access.location.uri)
        self._access = access
        self._handle = TableHandle(access, dict(options), executor, facts.name)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str,
        record_key: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] | None = None,
        ordering: str | Sequence[str] | None = None,
        schema: Any = None,
        table_type: str = "COPY_ON_WRITE",
        table_version: int = NEW_TABLE_VERSION,
        properties: Mapping[str, object] | None = None,
        storage_options: Mapping[str, str] | None = None,
        storage: Storage | None = None,
        clock: Clock | None = None,
        random: Callable[[], str] | None = None,
        lock: Guard | None = None,
        executor: Executor | None = None,
    ) -> Self:
        """Make a new table at `path` and open it.

        `record_key`, `partition_by`, `ordering`: a column name or several; `record_key` None: the writer makes
        keys up; `partition_by` with kinds, such as `["city:SIMPLE", "day:TIMESTAMP"]`: a custom key generator;
        `ordering` None: the row that is committed last wins. `schema`: anything with an Arrow schema; None: the
        first write gives it. `properties`: table keys and writer keys alike, stored as the defaults of later writes.
        `storage`, `clock`, `random` (gives UUID texts), `lock`, `executor` (of local writes): for tests and embedding.

        Raises: Invalid when the path holds a table or other files; Unsupported for what this release cannot make.
        """
        access = table_access(
            path, storage_options=storage_options, storage=storage, clock=clock, random=random, lock=lock
        )
        make_table(access, name, record_key, partition_by, ordering, schema, table_type, table_version, properties)
        return cls(access, {}, executor or LocalExecutor())

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        options: Mapping[str, object] | None = None,
        storage_options: Mapping[str, str] | None = None,
        storage: Storage | None = None,
        clock: Clock | None = None,
        random: Callable[[], str] | None = None,
        lock: Guard | None = None,
        executor: Executor | None = None,
    ) -> Self:
        """Open the table at `path`. `options`: defaults of this handle's writes; `hoodie.metadata.enable` false also
        makes its reads list the storage instead of asking the metadata table; `hoodie.enable.data.skipping` false makes
        them leave its indexes alone; `hoodie.bootstrap.base.path` says where the files are now that the table was
        bootstrapped from.

        Raises: NotFound when the path holds no table; CorruptFile when its properties are torn; Unsupported
        for a table that this release does not know.
        """
        access = table_access(
            path, storage_options=storage_options, storage=storage, clock=clock, random=random, lock=lock
        )
        load_named(options)
        given = merge_options(write=options, opened=None, table={})
        AfterCommitSettings.from_options(given)
        if not WriteSettings.from_options(given).metadata_enabled:
            access = replace(access, open_listing=list_storage)
        source_folder = option_texts(options or {}).get(SOURCE_FOLDER) or None
        return cls(replace(access, source_folder=source_folder), options or {}, executor or LocalExecutor())

    @staticmethod
    def exists(path: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> bool:
        """Whether a table lies at `path`."""
        return open_storage(parse_location(path, storage_options)).head(PROPERTIES) is not None

    @property
    def path(self) -> str:
        return self._access.location.uri

    @property
    def name(self) -> str:
        return self._facts().name

    @property
    def table_type(self) -> str:
        return self._facts().table_type

    @property
    def table_version(self) -> int:
        return self._facts().version.number

    @property
    def record_key(self) -> tuple[str, ...]:
        return self._facts().record_key

    @property
    def partition_by(self) -> tuple[str, ...]:
        return self._facts().partition_by

    @property
    def ordering(self) -> tuple[str, ...]:
        return self._facts().ordering

    @property
    def properties(self) -> Mapping[str, str]:
        """`hoodie.properties` as it is now."""
        return dict(self._facts().properties)

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata table: what it knows, whether that is true, making it anew."""
        return TableMetadata(self._access, self._handle.options, self._handle.executor)

    def schema(self) -> pa.Schema:
        """The table's columns, without meta fields; none until the first write of a table created without any."""
        return self._access.snapshot().schema

    def timeline(self, history: bool = False) -> tuple[Instant, ...]:
        """The instants of the active timeline, by requested time; with `history` the archived ones, too.

        An indexing stands where it completed: it has a requested time before that of the newest action, for the sake of
        Apache Hudi's next index.
        """
        timeline = self._access.snapshot().timeline
        instants = timeline.with_archived() if history else timeline.instants
        return tuple(sorted(instants, key=_place)) if timeline.layout.has_completion_times else instants

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        as_of: TimeLike | None = None,
        query: str = "snapshot",
        meta_fields: bool = True,
    ) -> Scan:
        """The table's rows, now or as of a moment.

        `columns`: these, in this order; None: all. `where`: Spark SQL predicate text, or a
        `pyarrow.compute.Expression`. `as_of`: commits requested at or before it count. `query`: `snapshot`, or
        `read_optimized`, which leaves the logs of a merge-on-read table alone and reads its base files.
        """
        return queries.scan(self._handle, columns, where, as_of, query, meta_fields=meta_fields)

    def incremental(
        self,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        meta_fields: bool = True,
        on_cleaned: OnCleaned = "error",
    ) -> Scan:
        """The rows that commits in `(start, end]` wrote last, as they stood at its end.

        By completion time (by requested time on table version 6). `start` None, `"earliest"` or `"000"`:
        from the beginning; `end` None: to the latest. Deleted rows do not appear.

        `on_cleaned`: what to do where files of the range were cleaned away after their rows had changed again:
        `"error"`, or `"rows"`, which gives the rows of the range that are left.
        Raises: NotFound then, with the earliest start that can be answered; Invalid for a start after the end.
        """
        return queries.incremental(self._handle, start, end, columns, where, on_cleaned, meta_fields=meta_fields)

    def lookup(self, keys: Any) -> pa.Table:
        """The rows of these record keys: their texts, values of the one key column, or Arrow data with the key columns.

        An absent key gives no row. Arrow data that has the partition columns, too, asks for each key in its partition.
        Reads no more than the best index leaves: the record index, buckets, key ranges or Bloom filters of the table.
        """
        return queries.lookup(self._handle, keys)

    def bulk_insert(
        self,
        data: Any,
        *,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Add rows without looking for their keys or filling small files: the fast way to load a table."""
        call = WriteCall(options, extra_metadata, on_commit)
        return writes.write(self._handle, Operation.BULK_INSERT, data, call)

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
        call = WriteCall(options, extra_metadata, on_commit)
        return writes.write(self._handle, Operation.INSERT, data, call)

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
        call = WriteCall(options, extra_metadata, on_commit)
        return writes.write(self._handle, Operation.UPSERT, data, call)

    def insert_overwrite(
        self,
        data: Any,
        *,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Replace the partitions that the rows lie in by the rows; other partitions stay."""
        call = WriteCall(options, extra_metadata, on_commit)
        return writes.write(self._handle, Operation.INSERT_OVERWRITE, data, call)

    def insert_overwrite_table(
        self,
        data: Any,
        *,
        options: Mapping[str, object] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        on_commit: OnCommit | None = None,
    ) -> WriteResult:
        """Replace all rows of the table by these; no rows empty it. Its history stays: `as_of` shows what was there."""
        call = WriteCall(options, extra_metadata, on_commit)
        return writes.write(self._handle, Operation.INSERT_OVERWRITE_TABLE, data, call)

    def delete_partitions(
        self,
        partitions: Iterable[str],
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
        return writes.delete_partitions(self._handle, partitions, WriteCall(options, extra_metadata, on_commit))

    def partitions_like(self, patterns: Iterable[str]) -> tuple[str, ...]:
        """The table's partition paths that patterns match: `*` stands for any text.

        Raises: NotFound for a pattern that matches none.
        """
        return writes.partitions_like(self._handle, patterns)

    def partitions_of(self, data: Any, *, options: Mapping[str, object] | None = None) -> tuple[str, ...]:
        """The partition paths that rows, or their key and partition columns, lie in, stored or not."""
        return writes.partitions_of(self._handle, data, options)

    def savepoint(
        self,
        instant: str | None = None,
        *,
        user: str = "",
        comment: str = "",
        options: Mapping[str, object] | None = None,
    ) -> Savepoint:
        """Keep a commit: its files are not cleaned, and it is not archived, until the savepoint is deleted.

        `instant`: its requested time; None: the newest commit. `user`, `comment`: stored with it.
        Raises: NotFound for a commit that is not on the active timeline, or whose files were cleaned away; Invalid for
        one that has a savepoint, and for a table without any; Conflict while another writer holds the table.
        """
        return savepoints.put(self._handle, instant, user=user, comment=comment, options=options)

    def savepoints(self) -> tuple[Savepoint, ...]:
        """The table's savepoints, by requested time. One get each."""
        return read_savepoint_list(self._access.snapshot())

    def delete_savepoint(self, instant: str, *, options: Mapping[str, object] | None = None) -> Savepoint:
        """Delete a savepoint; returns what it was. Files that nothing else needs go with the next clean.

        Raises: NotFound where there is none; Conflict while another writer holds the table.
        """
        return savepoints.delete(self._handle, instant, options)

    def restore(self, instant: str, *, options: Mapping[str, object] | None = None) -> RestoreResult:
        """Take the table back to a commit, for good: every write since then is rolled back, its files are deleted.

        `instant`: the requested time of a commit with a savepoint, or of any other whose files are all there. The
        metadata table goes back with it, or is made anew. From the moment the restore is requested readers see the
        table as it will be; one that dies is brought to its end by the next write or restore. Readers that began
        before may miss files. Nothing is done where nothing came after the commit.
        Raises: NotFound for a commit that is not on the active timeline, or whose files were cleaned away; Invalid
        where savepoints or archived writes came after it; Conflict while another writer, compaction or indexing runs.
        """
        return savepoints.restore(self._handle, instant, options)

    def rollback(self, instant: str, *, options: Mapping[str, object] | None = None) -> RollbackResult:
        """Take back the newest write, for good: its files are deleted, the table is as before it.

        `instant`: its requested time, or that of a write that died, which the next write would roll back anyway. The
        metadata table goes back with it. From its first step on readers see the table without the write; a rollback
        that dies is brought to its end by the next write. Readers that began before may miss files.
        Raises: NotFound for a write that is not on the active timeline, or where files that the commit before it needs
        were cleaned away; Invalid for one that is not the newest (`restore` takes several back), has a savepoint, or
        changed no row; Conflict while another writer, compaction or indexing runs.
        """
        return savepoints.rollback(self._handle, instant, options)

    def _facts(self) -> TableConfig:
        """`hoodie.properties` as it is now. One get: several facts of one moment are asked of one answer."""
        return self._access.config()

    def __repr__(self) -> str:
        path = hide_secrets(self.path)
        try:
            now = self._facts()
        except HudiError as error:  # whoever looks at a handle is not to end in an error
            return f"HudiTable('{path}', {type(error).__name__})"
        return f"HudiTable('{path}', name='{now.name}', {now.table_type}, version {now.version})"


def _place(instant: Instant) -> str:
    """The time by which an instant is listed."""
    is_done = instant.action == "indexing" and instant.completed is not None
    return str(instant.completed) if is_done else instant.requested
