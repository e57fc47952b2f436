"""The metadata table of a table: what it knows, whether that is true, and making, updating and deleting it."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.api import frames
from pyhudi.api.access import list_storage, locked_access, metadata_upkeep, table_access
from pyhudi.api.handle import prepare_call
from pyhudi.api.metadata.check import MetadataValidation, no_progress, validate_metadata
from pyhudi.api.metadata.perf import PARTITIONS_TIMED_MAX, ListingTimes, time_listings
from pyhudi.engine.local.executors import LocalExecutor
from pyhudi.errors import CorruptFile, Invalid, NotFound, Unsupported
from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.metadata.kinds.all_records import RecordSlice, read_records, record_columns, record_slices
from pyhudi.metadata.kinds.registry import KINDS, LISTING, find_kind
from pyhudi.metadata.store.files_partition import MetadataListing
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.metadata.store.table import MetadataTable, find_metadata_table, is_same_metadata_table
from pyhudi.options.arguments import several_texts
from pyhudi.options.resolve import merge_options
from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.storage.protocol import Storage
from pyhudi.table.view.listing import FileListing, StorageListing
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.txn.action.participants import CommitParticipant
from pyhudi.txn.action.session import TableAccess, write_session
from pyhudi.txn.locks.guard import Guard
from pyhudi.txn.locks.hold import Hold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ListedBy: TypeAlias = Literal["metadata", "storage"]
Progress: TypeAlias = Callable[[int, int], None]
_Answer = TypeVar("_Answer")

_READ_MAX: Final = 4
"""So often a call reads the metadata table because another call replaces it meanwhile."""

_FILES_SCHEMA = pa.schema(
    [("partition", pa.dictionary(pa.int32(), pa.string())), ("name", pa.string()), ("size_bytes", pa.int64())]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPartitionStats:
    """The files that a metadata partition is read from: the newest slice of each of its file groups."""

    name: str
    file_groups: int
    base_files: int
    base_bytes: int
    log_files: int
    log_bytes: int


@dataclass(frozen=True, slots=True)
class MetadataStats:
    """What the metadata table holds. `stored_*`: everything in its folder, its timeline and old slices too.

    `unused`: its partitions that the table's properties do not name, so that no reader uses them.
    """

    table_version: int
    partitions: tuple[MetadataPartitionStats, ...]
    unused: tuple[str, ...]
    data_partitions: int
    data_files: int
    deltacommits_since_compaction: int
    newest_instant: str | None
    pending_instants: int
    stored_files: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """The metadata partitions in use before and after a call that may change them."""

    before: tuple[str, ...]
    after: tuple[str, ...]


class TableMetadata:
    """The metadata table of a Hudi table. Each call reads the table anew.

    It opens where the metadata table is damaged, too: only the calls that need the damaged part raise CorruptFile,
    which names the file.
    """

    def __init__(self, access: TableAccess, options: Mapping[str, object], executor: Executor) -> None:
        """Use `open`, or `HudiTable.metadata`."""
        self._access, self._options = replace(access, open_listing=list_storage), dict(options)
        self._executor = executor

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        options: Mapping[str, object] | None = None,
        storage_options: Mapping[str, str] | None = None,
        storage: Storage | None = None,
        lock: Guard | None = None,
    ) -> Self:
        """The metadata table of the table at `path`. `options`: as of `HudiTable.open`.

        Raises: NotFound when the path holds no table; CorruptFile when its properties are torn.
        """
        access = table_access(path, storage_options=storage_options, storage=storage, lock=lock)
        found = cls(access, merge_options(write=options, opened=None, table={}), LocalExecutor())
        found._snapshot()
        return found

    @property
    def partitions_in_use(self) -> tuple[str, ...]:
        """The metadata partitions that readers use; none where the table has no metadata table."""
        return self._snapshot().config.metadata_partitions

    def list_partitions(self, *, listed_by: ListedBy = "metadata") -> list[str]:
        """The table's partition paths, sorted; `""` is the root of an unpartitioned table."""
        return self._list(listed_by, lambda listing: listing.partitions())

    def list_files(self, partitions: Iterable[str] | None = None, *, listed_by: ListedBy = "metadata") -> pa.Table:
        """The files of these partitions, or of all: columns partition (a dictionary), name, size_bytes.

        Raises: NotFound for a partition that the listing does not have.
        """
        wanted = None if partitions is None else several_texts(partitions, what="partitions", of="paths")
        return self._list(listed_by, partial(self._files_of, wanted))

    def _files_of(self, wanted: tuple[str, ...] | None, listing: FileListing) -> pa.Table:
        if wanted is None and isinstance(listing, MetadataListing):
            return _in_order(listing.all_files())
        known = listing.partitions()
        unknown = [] if wanted is None else sorted(set(wanted) - set(known))
        if unknown:
            raise NotFound(f"{self._access.location.uri}: no partition '{unknown[0]}'; it has {len(known):,}")
        parts = [_FILES_SCHEMA.empty_table()]
        for partition in known if wanted is None else wanted:
            files = listing.files(partition)
            columns = ([partition] * len(files), [f.name for f in files], [f.size_bytes for f in files])
            parts.append(pa.table(list(map(pa.array, columns, _FILES_SCHEMA.types)), schema=_FILES_SCHEMA))
        return pa.concat_tables(parts).unify_dictionaries()

    def stats(self) -> MetadataStats:
        """Its partitions and their files, and how far it is from its last compaction. One list request a folder."""
        return self._read(self._stats)

    def _stats(self, snapshot: Snapshot, table: MetadataTable) -> MetadataStats:
        in_use = snapshot.config.metadata_partitions
        folders = [folder for folder in table.storage.list_folders("") if folder != ".hoodie"]
        listing = _indexes(snapshot, table).read_files()
        stored = [file.size_bytes for file in table.storage.list("", recursive=True)]
        return MetadataStats(
            table_version=table.config.version.number,
            partitions=tuple(_partition_stats(table, name) for name in in_use),
            unused=tuple(sorted(set(folders) - set(in_use))),
            data_partitions=len(listing.partitions()),
            data_files=len(listing.all_files()),
            deltacommits_since_compaction=table.deltacommits_since_compaction,
            newest_instant=table.timeline.newest,
            pending_instants=len(table.timeline.pending),
            stored_files=len(stored),
            stored_bytes=sum(stored),
        )

    def lookup(self, keys: Iterable[str], *, metadata_partition: str = LISTING) -> dict[str, dict[str, Any] | None]:
        """What the metadata table holds under each key of one of its partitions; None where it holds nothing.

        Keys of `files` are partition paths, `.` for the root of an unpartitioned table, and `__all_partitions__`; of
        `record_index` record keys; of a secondary index values of its column, spelled as Java spells them.
        Raises: NotFound for a metadata partition that the table does not have; Unsupported for one whose keys are
        hashes, and for an index that cannot tell.
        """
        wanted = several_texts(keys, what="keys", of="keys")
        return self._read(partial(self._lookup, wanted, metadata_partition))

    def _lookup(
        self, wanted: tuple[str, ...], metadata_partition: str, snapshot: Snapshot, table: MetadataTable
    ) -> dict[str, dict[str, Any] | None]:
        self._refuse_absent(snapshot, metadata_partition)
        kind = find_kind(metadata_partition)
        if kind is None or not kind.has_readable_keys:
            names = ", ".join(one.name for one in KINDS if one.has_readable_keys)
            raise Unsupported(
                f"metadata partition '{metadata_partition}': keys are looked up in partitions of the kinds {names}"
            )
        return kind.records(_indexes(snapshot, table), metadata_partition, wanted)

    def read_records(self, metadata_partitions: Iterable[str] | None = None) -> pa.RecordBatchReader:
        """The records of these metadata partitions, or of all that are in use, merged, in Apache Hudi's columns.

        Columns: `key`, `type`, and a struct for each kind of record, null for other kinds: `filesystemMetadata`,
        `BloomFilterMetadata`, `ColumnStatsMetadata`, `recordIndexMetadata`, and from table version 8 on
        `SecondaryIndexMetadata`. A bound of a column is a struct with a member for each type: `member0`, `member1`, ….
        Memory: the records of one file group, encoded, twice. Raises: NotFound for a metadata partition that the table
        does not have; CorruptFile, naming the file.
        """
        snapshot, table, slices = self._records(metadata_partitions)
        batches = (batch for one in slices for batch in read_records(table, snapshot.timeline, one))
        return pa.RecordBatchReader.from_batches(record_columns(table), batches)

    def records_to_spark(self, spark: "SparkSession", metadata_partitions: Iterable[str] | None = None) -> "DataFrame":
        """As `read_records`, as a Spark DataFrame, read by tasks: a share of the file groups each."""
        snapshot, table, slices = self._records(metadata_partitions)
        engine = frames.spark_engine()
        return engine.records_to_dataframe(spark, self._access.location, table, snapshot.timeline, slices)

    def time_listings(
        self, *, partitions_max: int = PARTITIONS_TIMED_MAX, on_progress: Progress = no_progress
    ) -> ListingTimes:
        """How long listing takes by the storage and by the metadata table; both warm, the opening apart."""
        snapshot = self._snapshot()
        table = self._table(snapshot)
        return time_listings(snapshot, table, partitions_max=partitions_max, on_progress=on_progress)

    def validate(self, *, on_progress: Progress = no_progress) -> MetadataValidation:
        """Compare every partition of the metadata table with the data.

        Raises: Conflict when the table changed again and again while it was read; CorruptFile for a damaged file.
        """
        return validate_metadata(self._snapshot, self._table, on_progress=on_progress)

    def create(self, *, options: Mapping[str, object] | None = None) -> MetadataChange:
        """Make the metadata table anew from what is stored, with the indexes that it had, but for those that options
        switch off; an old one, whole or damaged, goes first.

        Meanwhile readers list the storage. Raises: Conflict while another writer holds the table; Unsupported for a
        table that this release cannot write.
        """
        return self._change("create", options)

    def update(self, *, options: Mapping[str, object] | None = None) -> MetadataChange:
        """Bring the metadata table to where the next write needs it: made where there is none, freed of what dead
        writers left, compacted when due, with the partitions that the options ask for.

        Raises: as `create`.
        """
        return self._change("update", options)

    def delete(self, *, options: Mapping[str, object] | None = None) -> MetadataChange:
        """Delete the metadata table. Readers list the storage from then on; the next write makes a new one, unless
        `hoodie.metadata.enable` is false. Raises: as `create`.
        """
        return self._change("delete", options)

    def _change(
        self, what: Literal["create", "update", "delete"], options: Mapping[str, object] | None
    ) -> MetadataChange:
        """Hold the table for a moment, with the upkeep of the metadata table as the only participant.

        What is to go goes before dead writes are rolled back, which a damaged metadata table would stop.
        """
        before = self.partitions_in_use
        asked = {**(options or {}), "hoodie.metadata.enable": "false" if what == "delete" else "true"}
        _, merged, settings = prepare_call(self._access, self._options, asked)
        clean = AfterCommitSettings.from_options(merged).clean

        def participants(current: Snapshot, issue: Callable[[], str], hold: Hold) -> list[CommitParticipant]:
            upkeep = metadata_upkeep(self._access, current, issue, settings, clean, hold, self._executor)
            if what == "create":
                upkeep.make_way(current)
            elif what == "delete":
                upkeep.drop()
            return [upkeep]

        access, purpose = locked_access(self._access, settings.lock), f"metadata {what}"
        with write_session(
            access,
            purpose=purpose,
            heartbeat=settings.heartbeat,
            participants=participants,
            wait_ms=settings.lock_wait_ms,
        ):
            return MetadataChange(before, self.partitions_in_use)

    def _snapshot(self) -> Snapshot:
        return self._access.snapshot()

    def _table(self, snapshot: Snapshot) -> MetadataTable:
        if not snapshot.config.has_metadata_table:
            raise NotFound(
                f"{self._access.location.uri}: the table has no metadata table yet; its next write makes "
                "one (unless hoodie.metadata.enable is false), and so does metadata.create()"
            )
        table = find_metadata_table(snapshot.storage, snapshot.zone)
        if table is None:
            raise NotFound(
                f"{self._access.location.uri}: the properties name a metadata table, which is gone; `metadata update`, "
                "or the next write, makes it anew with the indexes that are named"
            )
        return table

    def _records(self, asked: Iterable[str] | None) -> tuple[Snapshot, MetadataTable, list[RecordSlice]]:
        snapshot = self._snapshot()
        table = self._table(snapshot)
        if asked is None:
            return snapshot, table, record_slices(table, snapshot.config.metadata_partitions)
        names = several_texts(asked, what="metadata_partitions", of="names")
        for name in names:
            self._refuse_absent(snapshot, name)
        return snapshot, table, record_slices(table, names)

    def _refuse_absent(self, snapshot: Snapshot, metadata_partition: str) -> None:
        if metadata_partition not in snapshot.config.metadata_partitions:
            known = ", ".join(snapshot.config.metadata_partitions)
            raise NotFound(f"{self._access.location.uri}: no metadata partition '{metadata_partition}'; it has {known}")

    def _list(self, listed_by: ListedBy, ask: Callable[[FileListing], _Answer]) -> _Answer:
        if listed_by == "storage":
            snapshot = self._snapshot()
            return ask(StorageListing(snapshot.storage, nests=snapshot.config.may_nest_partitions))
        if listed_by != "metadata":
            raise Invalid(f"listed_by='{listed_by}': expected 'metadata' or 'storage'")
        return self._read(lambda snapshot, table: ask(_indexes(snapshot, table).read_files()))

    def _read(self, ask: Callable[[Snapshot, MetadataTable], _Answer]) -> _Answer:
        """What `ask` finds in the metadata table. Asked anew where another call replaced the table meanwhile: its files
        are gone then.
        """
        for _ in range(_READ_MAX - 1):
            snapshot = self._snapshot()
            table = self._table(snapshot)
            try:
                return ask(snapshot, table)
            except (CorruptFile, NotFound):
                if is_same_metadata_table(table, snapshot.storage, snapshot.zone):
                    raise
        snapshot = self._snapshot()
        return ask(snapshot, self._table(snapshot))


def _indexes(snapshot: Snapshot, table: MetadataTable) -> MetadataIndexes:
    return MetadataIndexes(snapshot.storage, snapshot.config, snapshot.timeline, snapshot.zone, table)


def _in_order(files: pa.Table) -> pa.Table:
    """All files of the metadata table as a listing shows them: by partition, and by name within it."""
    partition = one_array(files.column("partition"))  # of one dictionary, whose partitions are in order
    order = pa.table({"partition": partition.indices, "name": files.column("name")})
    chosen = pc.sort_indices(order, sort_keys=[("partition", "ascending"), ("name", "ascending")])
    return files.rename_columns(_FILES_SCHEMA.names).take(chosen)


def _partition_stats(table: MetadataTable, name: str) -> MetadataPartitionStats:
    slices = table.slices(name)
    bases = [file_slice.base_file.size_bytes for file_slice in slices if file_slice.base_file is not None]
    logs = [log.size_bytes for file_slice in slices for log in file_slice.log_files]
    return MetadataPartitionStats(
        name=name,
        file_groups=len(slices),
        base_files=len(bases),
        base_bytes=sum(bases),
        log_files=len(logs),
        log_bytes=sum(logs),
    )
