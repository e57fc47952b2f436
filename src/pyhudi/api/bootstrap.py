"""Making a table of an existing folder of files: the arguments checked, the files looked at, then the bootstrap."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from pyhudi.api import frames
from pyhudi.api.access import attempt_number, commit_texts, locked_access, metadata_upkeep, table_access
from pyhudi.api.commit_callback import refuse_stored_callback
from pyhudi.engine.local.arrow_source import ArrowSource
from pyhudi.engine.local.executors import LocalExecutor, LocalSliceWork, worker_count
from pyhudi.errors import Invalid, Unsupported
from pyhudi.executor import Executor
from pyhudi.format.names import PROPERTIES, PROPERTIES_BACKUP
from pyhudi.format.properties import encode_table_properties
from pyhudi.format.schema.conversion import avro_from_arrow, record_name
from pyhudi.format.struct_fields import is_path
from pyhudi.options.read_options import SOURCE_FOLDER
from pyhudi.options.resolve import check_table_facts, find_fact, merge_options
from pyhudi.options.table_facts import Fact
from pyhudi.options.told_names import listed
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.bootstrap.folder import claim_folder, refuse_others
from pyhudi.services.bootstrap.look import look_at_source, stored_uri
from pyhudi.services.bootstrap.plan import BootstrapPlan, plan_bootstrap
from pyhudi.services.bootstrap.rows import SourceRows
from pyhudi.services.bootstrap.run import BootstrapJob, OnProgress, run_bootstrap
from pyhudi.services.bootstrap.settings import SELECTOR, BootstrapSettings
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.services.metadata.indexes import refuse_absent
from pyhudi.services.stored_defaults import check_defaults
from pyhudi.storage.open import parse_location
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.storage.scratch import sweep_once
from pyhudi.storage.withheld import WithheldStorage
from pyhudi.table.facts.creation import NewTable, column_names, make_folders
from pyhudi.table.view.bootstrap import BOOTSTRAP_INSTANT, storage_kind
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.session import TableAccess, WriteSession, write_session
from pyhudi.txn.locks.guard import Guard
from pyhudi.txn.locks.providers.settings import LockSettings
from pyhudi.versions import NEW_TABLE_VERSION
from pyhudi.write.file_settings import base_file_settings
from pyhudi.write.handles.skeleton import SkeletonTarget
from pyhudi.write.input.source import Operation, PreparedWrite, WriteSource
from pyhudi.write.memory_settings import SPILL_FOLDER, MemorySettings
from pyhudi.write.preparation import prepare_write
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPERATION: Final = "hoodie.datasource.write.operation"

_SELECTOR_OF: Final = {
    "METADATA_ONLY": "MetadataOnlyBootstrapModeSelector",
    "FULL_RECORD": "FullRecordBootstrapModeSelector",
}

_WAVE_A_WORKER: Final = 4


class BootstrapCalls:
    """The call that makes a table of files."""

    if TYPE_CHECKING:

        def __init__(self, access: TableAccess, options: Mapping[str, object], executor: Executor) -> None: ...

    @classmethod
    def bootstrap(
        cls,
        source: str | os.PathLike[str],
        path: str | os.PathLike[str],
        *,
        name: str,
        record_key: str | Sequence[str],
        partition_by: str | Sequence[str] | None = None,
        ordering: str | Sequence[str] | None = None,
        mode: str | None = None,
        table_type: str = "COPY_ON_WRITE",
        table_version: int = NEW_TABLE_VERSION,
        properties: Mapping[str, object] | None = None,
        options: Mapping[str, object] | None = None,
        on_progress: OnProgress | None = None,
        spark: "SparkSession | None" = None,
        storage_options: Mapping[str, str] | None = None,
        source_options: Mapping[str, str] | None = None,
        storage: Storage | None = None,
        clock: Clock | None = None,
        random: Callable[[], str] | None = None,
        lock: Guard | None = None,
        executor: Executor | None = None,
    ) -> Self:
        """Make a table at `path` of the Parquet or ORC files in the folder `source`, and open it.

        `mode`: `METADATA_ONLY` writes keys, and leaves all other columns where they are: the source must stay.
        `FULL_RECORD` writes all rows. None: as the options `hoodie.bootstrap.mode.selector...` say, which may choose by
        partition; without them METADATA_ONLY. Folders below the source are partitions, one for each column of
        `partition_by`. `properties`: stored as the defaults of later writes. `options`: of this call alone.
        `on_progress`: called with the number of source files done, and of all. `spark`: the session on whose cluster
        the work runs. `source_options`: as `storage_options`, for the source; None: the same, on the same kind of
        storage. All else: as `create`. The table is there once all of it is; a failure leaves none.

        Raises: Invalid for a path that holds a table or other files, and for a source that makes no table: no data
        file, files of several formats or schemas, without key columns, with null keys, folders that are not named
        after their rows' partitions; CorruptFile for a file that is not whole. All before anything is written.
        """
        access = table_access(
            path, storage_options=storage_options, storage=storage, clock=clock, random=random, lock=lock
        )
        stored = merge_options(write=properties, opened=None, table={})
        refuse_stored_callback(stored)
        new = NewTable(
            name=name, record_key=column_names(record_key, what="record_key"),
            partition_by=column_names(partition_by, what="partition_by", has_kinds=True),
            ordering=column_names(ordering, what="ordering"), table_type=table_type, table_version=table_version,
            create_schema=None, properties=stored,
        )  # fmt: skip
        location = _source_location(source, access.location, source_options)
        asked = merge_options(write=_with_mode(options, mode), opened=properties, table={})
        call = BootstrapCall(location, new, asked, on_progress, spark)
        worker = executor or LocalExecutor()
        bootstrap_table(access, call, worker)
        return cls(access, {}, worker)


@dataclass(frozen=True, slots=True)
class BootstrapCall:
    """What a caller says. `new`: the table, its base file format and folder style left open. `options`: all, as texts.

    `source`: where the files are. `spark`: the session whose cluster does the work, if any. `columns`: names that the
    table must have.
    """

    source: StorageLocation
    new: NewTable
    options: Mapping[str, str]
    on_progress: OnProgress | None = None
    spark: "SparkSession | None" = None
    columns: tuple[str, ...] = ()


def bootstrap_by_options(dataframe: "DataFrame", path: str, new: NewTable, options: Mapping[str, str]) -> None:
    """Make a table of the files that `hoodie.bootstrap.base.path` names, on the session of a DataFrame.

    Raises: Invalid where the DataFrame has columns that the files lack; as `HudiTable.bootstrap`.
    """
    folder = options.get(SOURCE_FOLDER, "")
    if not folder:
        raise Invalid(f"option '{SOURCE_FOLDER}': expected the folder with the files to bootstrap from, found none")
    spark = frames.spark_engine().session_of(dataframe)
    access = table_access(path)
    asked = BootstrapCall(
        _source_location(folder, access.location, None), new, options, spark=spark, columns=tuple(dataframe.columns)
    )
    bootstrap_table(access, asked, LocalExecutor())


def _source_location(
    source: str | os.PathLike[str], table: StorageLocation, options: Mapping[str, str] | None
) -> StorageLocation:
    if options is None and storage_kind(parse_location(source).uri) == storage_kind(table.uri):
        options = dict(table.options)
    return parse_location(source, options)


def _with_mode(options: Mapping[str, object] | None, mode: str | None) -> Mapping[str, object]:
    """The options, with the argument `mode` as one of them. Raises: Invalid where they say it, too.

    The operation's name may be among them, as it is for Spark's writer.
    """
    given = dict(options or {})
    if given.get(OPERATION) == "bootstrap":
        del given[OPERATION]
    if mode is None:
        return given
    if mode not in _SELECTOR_OF:
        raise Invalid(f"mode='{mode}': expected {' or '.join(_SELECTOR_OF)}")
    if SELECTOR in given:
        raise Invalid(f"mode='{mode}' and option '{SELECTOR}': expected one of them")
    return {**given, SELECTOR: _SELECTOR_OF[mode]}


def bootstrap_table(access: TableAccess, call: BootstrapCall, executor: Executor) -> None:
    """Make the table. Arguments and errors: as of `HudiTable.bootstrap`."""
    _refuse_facts(call.new)
    AfterCommitSettings.from_options(call.options)
    settings = replace(WriteSettings.from_options(call.options), lock=LockSettings.from_options(call.options, {}))
    modes = BootstrapSettings.from_options(call.options)
    extra = commit_texts(settings.commit_metadata(call.options))
    _refuse_places(access, call.source)
    refuse_others(access.storage)

    found = look_at_source(call.source, call.new, modes, settings, executor)
    check_table_facts(call.options, found.config.facts())
    check_defaults(found.config, merge_options(write=None, opened=None, table=found.properties))
    refuse_absent(found.config, settings)
    unknown = next((name for name in call.columns if name not in found.schema.names), None)
    if unknown is not None:
        raise Invalid(
            f"column '{unknown}' of the DataFrame: expected among the columns of the source's files, which are "
            f"{listed(found.schema.names)}; hand in a DataFrame without columns"
        )
    plan = plan_bootstrap(found.placed, modes, new_uuid=access.new_uuid, uri_of=_index_uri(call.source))
    _refuse_unfit(access, call, plan, settings)

    token = access.new_uuid()
    claim_folder(access, token, purpose=_purpose(call.new.name), wait_ms=settings.lock_wait_ms)
    epoch_ms = access.clock.now_ms()
    withheld = WithheldStorage(access.storage, (PROPERTIES, PROPERTIES_BACKUP))
    withheld.put(PROPERTIES, encode_table_properties(found.properties, epoch_ms=epoch_ms, is_update=False))
    make_folders(access.storage, found.properties)

    own = replace(locked_access(access, settings.lock), storage=withheld, source_folder=call.source.uri)
    cluster = frames.as_cluster(call.spark)
    work = LocalSliceWork(executor, withheld) if cluster is None else frames.spark_engine().SparkSliceWork(cluster)
    rows = SourceRows(call.source, plan.full, found.schema, found.check.keys)
    run_bootstrap(
        BootstrapJob(
            storage=access.storage, withheld=withheld, token=token, plan=plan,
            open_session=lambda: write_session(
                own, purpose=_purpose(call.new.name),
                heartbeat=settings.heartbeat,
                participants=lambda *_: [], wait_ms=settings.lock_wait_ms,
            ),
            target=SkeletonTarget(
                access.location, call.source, BOOTSTRAP_INSTANT, epoch_ms, attempt_number(access.new_uuid),
                base_file_settings(settings).of_table(found.config), found.check.keys,
                found.config.has_parquet_metafiles,
            ),
            schema_text=avro_from_arrow(found.schema, record_name=record_name(call.new.name)),
            folder=stored_uri(call.source), settings=settings, extra_metadata=extra, work=work,
            wave=_WAVE_A_WORKER * worker_count(executor) if cluster is None else 0,
            prepare=partial(_prepared_rows, own, call, settings, rows, executor, cluster),
            make_metadata=partial(_make_metadata, own, call, settings, executor),
            on_progress=call.on_progress or _no_progress,
        )
    )  # fmt: skip


def _refuse_facts(new: NewTable) -> None:
    """Refuse facts of a table that no bootstrap can make. Raises: Invalid, Unsupported."""
    if not new.record_key:
        raise Invalid("record_key: expected the columns that make up the key of each row, found none")
    columns = (*new.record_key, *new.partition_by, *new.ordering)
    if field := next(filter(is_path, columns), None):
        raise Unsupported(
            f"bootstrap by '{field}', the field of a struct: expected key, partition and ordering columns of their "
            "own; write the rows to a table by bulk_insert"
        )
    if find_fact(new.properties, Fact.KEY_GENERATOR) == "OTHER":
        raise Unsupported(
            "bootstrap with a key generator of your own: the source's folders are the partitions, whose paths such a "
            "generator would make; bootstrap with one of Apache Hudi's, or write the rows to a table by bulk_insert"
        )


def _refuse_places(access: TableAccess, source: StorageLocation) -> None:
    table, folder = access.location.uri.rstrip("/"), source.uri.rstrip("/")
    if f"{table}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{table}/"):
        raise Invalid(
            f"source '{folder}' and table '{table}': expected two folders beside each other, found one within the "
            "other; the source stays where it is, so choose another path for the table"
        )


def _refuse_unfit(access: TableAccess, call: BootstrapCall, plan: BootstrapPlan, settings: WriteSettings) -> None:
    """Refuse what a table cannot have whose first files hold the meta fields only. Raises: Invalid."""
    if not plan.tasks:
        return
    if settings.index_type == "BUCKET":
        raise Invalid(
            "option 'hoodie.index.type'='BUCKET': expected another index: source files are not cut by buckets; "
            "bootstrap with mode='FULL_RECORD', or without the option"
        )
    if storage_kind(access.location.uri) != storage_kind(call.source.uri):
        raise Invalid(
            f"source '{call.source.uri}' and table '{access.location.uri}': expected one kind of storage, as readers "
            "of the table read the source, too; bootstrap with mode='FULL_RECORD'"
        )


@contextmanager
def _prepared_rows(
    access: TableAccess,
    call: BootstrapCall,
    settings: WriteSettings,
    rows: SourceRows,
    executor: Executor,
    cluster: Any | None,
    snapshot: Snapshot,
) -> Iterator[PreparedWrite]:
    """The rows that are written whole, as the input of a bulk insert."""
    memory = MemorySettings.from_options(call.options)
    source: WriteSource
    if cluster is not None:
        engine = frames.spark_engine()
        source = engine.source_of(engine.dataframe_of_source(cluster, rows), access.location, memory)
    else:
        sweep_once(memory.spill_folder, setting=SPILL_FOLDER)
        stream = pa.RecordBatchReader.from_batches(rows.schema, rows.batches())
        source = ArrowSource(stream, access.storage, executor, memory)
    with closing(source):
        yield prepare_write(snapshot, source, Operation.BULK_INSERT, settings)


def _make_metadata(
    access: TableAccess, call: BootstrapCall, settings: WriteSettings, executor: Executor, session: WriteSession
) -> None:
    if settings.metadata_enabled:
        clean = CleanSettings.from_options(call.options)
        issue = session.table.issue_instant
        upkeep = metadata_upkeep(access, session.snapshot, issue, settings, clean, session.hold, executor)
        upkeep.begin(session.snapshot)


def _purpose(name: str) -> str:
    return f"bootstrap of table '{name}'"


def _index_uri(location: StorageLocation) -> str:
    return f"file:{location.uri}" if "://" not in location.uri else location.uri


def _no_progress(done: int, total: int) -> None:
    pass
