"""One class for a table: create or open it, write to it, ask it."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Self, TypeAlias, get_args

import pyarrow as pa

from pyhudi.api import frames
from pyhudi.api.access import data_skipping, list_storage, table_access
from pyhudi.api.commit_callback import refuse_stored_callback
from pyhudi.api.indexes import TableIndexes
from pyhudi.api.lookup import look_up, sought_keys
from pyhudi.api.metadata import TableMetadata
from pyhudi.api.scan import Scan
from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.errors import Invalid, hide_secrets
from pyhudi.executor import Executor
from pyhudi.format.names import PROPERTIES
from pyhudi.format.schema.conversion import avro_from_arrow, canonical_arrow, record_name, refuse_names_alike
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.instant_text import instant_from_user
from pyhudi.options.resolve import merge_options
from pyhudi.predicate import parse_predicate
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.compaction.many_logs import tell_of_logs
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.protocol import Storage
from pyhudi.table.changes.incremental import OnCleaned, commit_range, plan_incremental
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.facts.creation import NewTable, column_names, new_table_properties, write_new_table
from pyhudi.table.facts.key_properties import bare_name
from pyhudi.table.read.plan import plan_snapshot, select_columns
from pyhudi.table.view.cleaned import refuse_cleaned
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.session import TableAccess
from pyhudi.txn.locks.guard import Guard
from pyhudi.versions import NEW_TABLE_VERSION
from pyhudi.write.input.key_settings import refuse_unwritable_keys
from pyhudi.write.input.schema import refuse_unordered_types
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyhudi.table.read.plan import ReadPlan

TimeLike = str | date | datetime
Where: TypeAlias = Any  # Spark SQL text, or a pyarrow.compute.Expression, which has no type of its own


class HudiTable(TableIndexes):
    """A Hudi table on some storage.

    It holds no snapshot: each call reads the timeline and `hoodie.properties` anew, and a scan is bound to
    the timeline at the moment it is made. The type of the data that is handed in picks where a write
    runs: a Spark DataFrame on Spark, anything that speaks the Arrow PyCapsule stream interface in this process.
    """

    def __init__(self, access: TableAccess, options: Mapping[str, object], executor: Executor) -> None:
        """Use `create` or `open`."""
        self._access, self._options, self._executor = access, dict(options), executor
        self._facts = access.snapshot().config

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
        first write gives it.
        `properties`: table keys and writer keys alike, stored as the defaults of every later write.
        `storage`, `clock`, `random` (gives UUID texts), `lock`, `executor` (of writes in this process): for
        tests and embedding.

        Raises: Invalid when the path holds a table or other files; Unsupported for what this release cannot make.
        """
        access = table_access(
            path, storage_options=storage_options, storage=storage, clock=clock, random=random, lock=lock
        )
        given = merge_options(write=properties, opened=None, table={})
        refuse_stored_callback(given)
        WriteSettings.from_options(given)
        AfterCommitSettings.from_options(given)
        keys = column_names(record_key, what="record_key")
        partitions = column_names(partition_by, what="partition_by", has_kinds=True)
        order = column_names(ordering, what="ordering")
        columns = None if schema is None else canonical_arrow(frames.arrow_schema(schema))
        if columns is not None:
            _refuse_unfit_schema(columns, keys, partitions, order)
        new = NewTable(
            name=name,
            record_key=keys,
            partition_by=partitions,
            ordering=order,
            table_type=table_type,
            table_version=table_version,
            create_schema=None if columns is None else avro_from_arrow(columns, record_name=record_name(name)),
            properties=given,
        )
        stored = new_table_properties(new)
        refuse_unwritable_keys(stored, columns)
        write_new_table(access.storage, stored, epoch_ms=access.clock.now_ms())
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
        them leave its indexes alone.

        Raises: NotFound when the path holds no table; CorruptFile when its properties are torn; Unsupported
        for a table that this release does not know.
        """
        access = table_access(
            path, storage_options=storage_options, storage=storage, clock=clock, random=random, lock=lock
        )
        given = merge_options(write=options, opened=None, table={})
        AfterCommitSettings.from_options(given)
        if not WriteSettings.from_options(given).metadata_enabled:
            access = replace(access, open_listing=list_storage)
        return cls(access, options or {}, executor or LocalExecutor())

    @staticmethod
    def exists(path: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> bool:
        """Whether a table lies at `path`."""
        return open_storage(parse_location(path, storage_options)).head(PROPERTIES) is not None

    @property
    def path(self) -> str:
        return self._access.location.uri

    @property
    def name(self) -> str:
        return self._facts.name

    @property
    def table_type(self) -> str:
        return self._facts.table_type

    @property
    def table_version(self) -> int:
        return self._config().version.number

    @property
    def record_key(self) -> tuple[str, ...]:
        return self._facts.record_key

    @property
    def partition_by(self) -> tuple[str, ...]:
        return self._facts.partition_by

    @property
    def ordering(self) -> tuple[str, ...]:
        return self._facts.ordering

    @property
    def properties(self) -> Mapping[str, str]:
        """`hoodie.properties` as it is now."""
        return dict(self._config().properties)

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata table: what it knows, whether that is true, making it anew."""
        return TableMetadata(self._access, self._options, self._executor)

    def schema(self) -> pa.Schema:
        """The table's columns, without meta fields; none until the first write of a table created without any."""
        return self._access.snapshot().schema

    def timeline(self, history: bool = False) -> tuple[Instant, ...]:
        """The instants of the active timeline, by requested time; with `history` the archived ones, too."""
        timeline = self._access.snapshot().timeline
        return timeline.with_archived() if history else timeline.instants

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
        if query not in ("snapshot", "read_optimized"):
            raise Invalid(f"query='{query}': expected 'snapshot' or 'read_optimized'")
        snapshot = self._access.snapshot()
        label = query
        if as_of is not None:
            until = instant_from_user(as_of, snapshot.zone, what="as_of")
            refuse_cleaned(snapshot, until, asked=f"as_of='{as_of}'")
            snapshot, label = snapshot.at(until), f"{query} as of {until}"
        shown = snapshot.shown_columns(query)
        schema = select_columns(snapshot, columns, meta_fields=meta_fields, shown=shown)
        predicate = None if where is None else parse_predicate(where, shown.schema(snapshot.schema_with_meta))
        skipping = None
        if predicate is not None and as_of is None:  # indexes speak of the latest files
            skipping = data_skipping(self._access, snapshot, self._options, self._executor)
        plan = plan_snapshot(
            snapshot,
            schema=schema,
            predicate=predicate,
            where=None if where is None else str(where),
            query=label,
            shown=shown,
            with_logs=query == "snapshot",
            skipping=skipping,
        )
        tell_of_logs(self._access.location.uri, plan.files)
        return Scan(self._access.storage, plan, self._executor, self._to_spark)

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
        if on_cleaned not in get_args(OnCleaned):
            raise Invalid(f"on_cleaned={on_cleaned!r}: expected 'error' or 'rows'")
        snapshot = self._access.snapshot()
        shown = snapshot.shown_columns("incremental")
        schema = select_columns(snapshot, columns, meta_fields=meta_fields, shown=shown)
        predicate = None if where is None else parse_predicate(where, shown.schema(snapshot.schema_with_meta))
        span = commit_range(snapshot, start, end)
        plan = plan_incremental(
            snapshot,
            span,
            schema=schema,
            predicate=predicate,
            where=None if where is None else str(where),
            shown=shown,
            on_cleaned=on_cleaned,
        )
        return Scan(self._access.storage, plan, self._executor, self._to_spark)

    def lookup(self, keys: Any) -> pa.Table:
        """The rows of these record keys: their texts, values of the one key column, or Arrow data with the key columns.

        An absent key gives no row.

        Arrow data that has the partition columns, too, asks for each key in its partition. Reads no more than the best
        index that the table has leaves: its record index, its buckets, key ranges and Bloom filters.
        """
        snapshot = self._access.snapshot()
        given = merge_options(write=self._options, opened=None, table={})
        return look_up(snapshot, sought_keys(snapshot, keys), given, self._executor)

    def __repr__(self) -> str:
        path, version = hide_secrets(self.path), self._facts.version
        return f"HudiTable('{path}', name='{self.name}', {self.table_type}, version {version})"

    def _config(self) -> TableConfig:
        return self._access.snapshot().config

    def _to_spark(self, spark: "SparkSession", plan: "ReadPlan") -> "DataFrame":
        return frames.spark_engine().plan_to_dataframe(spark, self._access.location, plan)


def _refuse_unfit_schema(
    columns: pa.Schema, keys: tuple[str, ...], partitions: tuple[str, ...], order: tuple[str, ...]
) -> None:
    """Raises: Invalid if a new table's schema lacks a named column, or if it cannot be stored or ordered."""
    refuse_names_alike(columns)
    refuse_unordered_types(columns, order)
    for what, names in (("record_key", keys), ("partition_by", map(bare_name, partitions)), ("ordering", order)):
        missing = [name for name in names if name not in columns.names]
        if missing:
            raise Invalid(f"{what}: no column '{missing[0]}' in the schema, which has {', '.join(columns.names)}")
