"""Making a table of an existing folder of files: the arguments checked, the files looked at, then the bootstrap."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from pyhudi.api import frames
from pyhudi.api.access import attempt_number, commit_texts, locked_access, metadata_upkeep, table_access
from pyhudi.api.commit_callback import refuse_stored_callback
from pyhudi.engine.local.arrow_source import ArrowSource
from pyhudi.engine.local.executors import LocalExecutor, LocalSliceWork, worker_count
from pyhudi.errors import Invalid
from pyhudi.executor import Executor
from pyhudi.format.names import PROPERTIES, PROPERTIES_BACKUP
from pyhudi.format.properties import encode_table_properties
from pyhudi.format.schema.conversion import avro_from_arrow, record_name
from pyhudi.options.names import OWN_PREFIX
from pyhudi.options.read_options import SOURCE_FOLDER
from pyhudi.options.resolve import merge_options
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.bootstrap.folder import claim_folder, refuse_others
from pyhudi.services.bootstrap.layout import (
    FolderStyle,
    folder_style,
    path_columns,
    refuse_unsteady_paths,
    table_partition,
)
from pyhudi.services.bootstrap.plan import BootstrapPlan, PlacedSource, common_schema, plan_bootstrap
from pyhudi.services.bootstrap.rows import SourceRows
from pyhudi.services.bootstrap.run import BootstrapJob, OnProgress, run_bootstrap
from pyhudi.services.bootstrap.settings import SELECTOR, BootstrapSettings
from pyhudi.services.bootstrap.source import ListedSource, SourceCheck, SourceFacts, inspect_source, list_source
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.protocol import Storage, StorageLocation
from pyhudi.storage.withheld import WithheldStorage
from pyhudi.table.facts.config import BASE_FORMAT, TableConfig, table_config
from pyhudi.table.facts.creation import NewTable, column_names, make_folders, new_table_properties
from pyhudi.table.facts.key_properties import bare_name
from pyhudi.table.view.bootstrap import BOOTSTRAP_INSTANT, storage_kind
from pyhudi.table.view.snapshot import Snapshot, key_spec
from pyhudi.timeline.clock import Clock
from pyhudi.txn.action.session import HeartbeatSettings, TableAccess, WriteSession, refuse_unwritable, write_session
from pyhudi.txn.locks.guard import Guard
from pyhudi.txn.locks.providers.settings import LockSettings
from pyhudi.versions import NEW_TABLE_VERSION, VERSIONS
from pyhudi.write.handles.skeleton import SkeletonTarget
from pyhudi.write.input.schema import refuse_unordered_types
from pyhudi.write.input.source import Operation, PreparedWrite
from pyhudi.write.memory_settings import MemorySettings
from pyhudi.write.operation import base_file_settings
from pyhudi.write.preparation import prepare_write
from pyhudi.write.settings import WriteSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HIVE_STYLE: Final = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODED: Final = "hoodie.datasource.write.partitionpath.urlencode"

_OF_THE_CALL: Final = ("hoodie.bootstrap.", "hoodie.datasource.write.operation", OWN_PREFIX)
"""How options begin that say how the table is made. It does not store them."""

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

    `source`: where the files are. `spark`: the session whose cluster does the work, if any.
    """

    source: StorageLocation
    new: NewTable
    options: Mapping[str, str]
    on_progress: OnProgress | None = None
    spark: "SparkSession | None" = None


def _source_location(
    source: str | os.PathLike[str], table: StorageLocation, options: Mapping[str, str] | None
) -> StorageLocation:
    if options is None and storage_kind(parse_location(source).uri) == storage_kind(table.uri):
        options = dict(table.options)
    return parse_location(source, options)


def _with_mode(options: Mapping[str, object] | None, mode: str | None) -> Mapping[str, object]:
    """The options, with the argument `mode` as one of them. Raises: Invalid where they say it, too."""
    given = dict(options or {})
    if mode is None:
        return given
    if mode not in _SELECTOR_OF:
        raise Invalid(f"mode='{mode}': expected {' or '.join(_SELECTOR_OF)}")
    if SELECTOR in given:
        raise Invalid(f"mode='{mode}' and option '{SELECTOR}': expected one of them")
    return {**given, SELECTOR: _SELECTOR_OF[mode]}


def bootstrap_table(access: TableAccess, call: BootstrapCall, executor: Executor) -> None:
    """Make the table. Arguments and errors: as of `HudiTable.bootstrap`."""
    if not call.new.record_key:
        raise Invalid("record_key: expected the columns that make up the key of each row, found none")
    AfterCommitSettings.from_options(call.options)
    settings = replace(WriteSettings.from_options(call.options), lock=LockSettings.from_options(call.options, {}))
    modes = BootstrapSettings.from_options(call.options)
    extra = commit_texts(settings.commit_metadata(call.options))
    _refuse_places(access, call.source)
    refuse_others(access.storage)

    found = _look_at_source(call, modes, settings, executor)
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
                heartbeat=HeartbeatSettings(settings.heartbeat_interval_ms, settings.heartbeat_misses),
                participants=lambda *_: [], wait_ms=settings.lock_wait_ms,
            ),
            target=SkeletonTarget(
                access.location, call.source, BOOTSTRAP_INSTANT, epoch_ms, attempt_number(access.new_uuid),
                base_file_settings(settings).of_table(found.config), found.check.keys, found.config.has_parquet_metafiles,
            ),
            schema_text=avro_from_arrow(found.schema, record_name=record_name(call.new.name)),
            folder=_stored_uri(call.source), settings=settings, extra_metadata=extra, work=work,
            wave=_WAVE_A_WORKER * worker_count(executor) if cluster is None else 0,
            prepare=partial(_prepare_rows, own, call, settings, rows, executor, cluster),
            make_metadata=partial(_make_metadata, own, call, settings, executor),
            on_progress=call.on_progress or _no_progress,
        )
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Found:
    """What the source holds, and the table that it makes. `schema`: of its rows, without meta fields."""

    config: TableConfig
    properties: Mapping[str, str]
    check: SourceCheck
    schema: pa.Schema
    placed: tuple[PlacedSource, ...]


def _look_at_source(
    call: BootstrapCall, modes: BootstrapSettings, settings: WriteSettings, executor: Executor
) -> _Found:
    """List the source and read the footers of its files. Raises: Invalid, CorruptFile for what makes no table."""
    storage = open_storage(call.source)
    listed = list_source(storage)
    folders = {file.folder for file in listed}
    partition_by = tuple(map(bare_name, call.new.partition_by))
    decodes = modes.decodes_paths
    is_time_based = settings.keys.times is not None
    style = folder_style(folders, partition_by, is_time_based=is_time_based, decodes_paths=decodes)
    properties = _properties(call, style, listed[0].extension)
    config = table_config(properties, path=f"new table '{call.new.name}'")
    refuse_unwritable(config, f"new table '{call.new.name}'")
    keys = settings.keys.spec(key_spec(config), config)

    partitions = {folder: table_partition(folder, decodes_paths=decodes) for folder in sorted(folders)}
    check = SourceCheck(storage, keys, config.ordering)

    def inspect(file: ListedSource) -> SourceFacts:
        return inspect_source(check, file, partitions[file.folder])

    facts = executor.run(inspect, listed)
    columns = common_schema(facts)
    told = path_columns(tuple(partitions.values()), keys, columns.names)
    refuse_unsteady_paths(partitions.values(), keys, told)
    schema = pa.schema([*columns, *told])
    refuse_unordered_types(schema, config.ordering)

    placed = tuple(PlacedSource(one.file, one.rows, partitions[one.file.folder]) for one in facts if one.rows)
    if not placed:
        raise Invalid(f"{call.source.uri}: expected rows to bootstrap from, found {len(listed):,} files without any")
    return _Found(config, properties, check, schema, placed)


def _properties(call: BootstrapCall, style: FolderStyle, extension: str) -> Mapping[str, str]:
    """The properties of the table. Options that contradict the source are refused. Spec: format/bootstrap.md section 2.

    Raises: Invalid, Unsupported.
    """
    asked = {name: text for name, text in call.new.properties.items() if not name.startswith(_OF_THE_CALL)}
    flags = {HIVE_STYLE: style.is_hive_style, URL_ENCODED: style.is_url_encoded}
    for name, is_so in flags.items():
        said = asked.get(name, "").strip().lower()
        if said and said != str(is_so).lower() and (is_so or name == HIVE_STYLE):
            raise Invalid(f"option '{name}'='{said}': expected '{str(is_so).lower()}', as the source's folders are named")
        asked[name] = said or str(is_so).lower()
    base_format = extension.removeprefix(".").upper()
    if asked.get(BASE_FORMAT, base_format).upper() != base_format:
        raise Invalid(f"option '{BASE_FORMAT}'='{asked[BASE_FORMAT]}': expected {base_format}, as the source's files are")
    asked[BASE_FORMAT] = base_format

    made = new_table_properties(replace(call.new, properties=asked))
    name, kind = VERSIONS[call.new.table_version].bootstrap_index
    return {**made, SOURCE_FOLDER: _stored_uri(call.source), name: kind}



def _refuse_places(access: TableAccess, source: StorageLocation) -> None:
    table, folder = access.location.uri.rstrip("/"), source.uri.rstrip("/")
    if f"{table}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{table}/"):
        raise Invalid(
            f"source '{folder}' and table '{table}': expected two folders beside each other, found one within the other; "
            "the source stays where it is, so choose another path for the table"
        )


def _refuse_unfit(access: TableAccess, call: BootstrapCall, plan: BootstrapPlan, settings: WriteSettings) -> None:
    """Refuse what a table cannot have whose first files hold the meta fields only. Raises: Invalid."""
    if not plan.tasks:
        return
    if settings.index_type == "BUCKET":
        raise Invalid(
            "option 'hoodie.index.type'='BUCKET': expected another index: source files are not cut by buckets; bootstrap "
            "with mode='FULL_RECORD', or without the option"
        )
    if storage_kind(access.location.uri) != storage_kind(call.source.uri):
        raise Invalid(
            f"source '{call.source.uri}' and table '{access.location.uri}': expected one kind of storage, as readers of "
            "the table read the source, too; bootstrap with mode='FULL_RECORD'"
        )


def _prepare_rows(
    access: TableAccess,
    call: BootstrapCall,
    settings: WriteSettings,
    rows: SourceRows,
    executor: Executor,
    cluster: Any | None,
    snapshot: Snapshot,
) -> PreparedWrite:
    """The rows that are written whole, as the input of a bulk insert."""
    memory = MemorySettings.from_options(call.options)
    if cluster is not None:
        engine = frames.spark_engine()
        dataframe = engine.dataframe_of_source(cluster, rows)
        return prepare_write(snapshot, engine.source_of(dataframe, access.location, memory), Operation.BULK_INSERT, settings)
    stream = pa.RecordBatchReader.from_batches(rows.schema, rows.batches())
    source = ArrowSource(stream, access.storage, executor, memory)
    return prepare_write(snapshot, source, Operation.BULK_INSERT, settings)


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


def _stored_uri(location: StorageLocation) -> str:
    """The source as the table's properties have it. Seen: a local folder as `file:///a/b`, its files as `file:/a/b/c`."""
    return f"file://{location.uri}" if "://" not in location.uri else location.uri


def _index_uri(location: StorageLocation) -> str:
    return f"file:{location.uri}" if "://" not in location.uri else location.uri


def _no_progress(done: int, total: int) -> None:
    pass
