"""The metadata table's part in a commit: it is made if missing, kept true, compacted when due, and never stale."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial

import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.timeline.instant import WRITE_ACTIONS
from pyhudi.format.timeline.records import CleanMetadata, CommitMetadata, RollbackMetadata
from pyhudi.metadata.kinds import registry
from pyhudi.metadata.kinds.files import FilesIndex
from pyhudi.metadata.kinds.protocol import TableIndex
from pyhudi.metadata.kinds.settings import IndexSettings
from pyhudi.metadata.kinds.views import CleanView, CommitView, IndexedTable
from pyhudi.metadata.store.files_partition import open_listing, read_files_partition
from pyhudi.metadata.store.indexes import read_definitions
from pyhudi.metadata.store.table import MetadataTable, open_metadata_table
from pyhudi.services.clean.settings import CleanSettings
from pyhudi.services.metadata.clean import clean_metadata_table
from pyhudi.services.metadata.compaction import MetadataCompactor, clear_for_logs, remove_pending_compactions
from pyhudi.services.metadata.indexes import IndexBuilder, wanted_partitions
from pyhudi.services.metadata.lists import MetadataLists, put_definitions
from pyhudi.services.metadata.restore import plan_sync
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.view.committed_files import PartitionFiles, committed_files
from pyhudi.table.view.listing import StorageListing
from pyhudi.table.view.snapshot import Snapshot, log_slicing, read_snapshot
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.timeline.ahead import newest_heeded
from pyhudi.timeline.clock import Clock, issue_instant
from pyhudi.txn.locks.hold import Hold
from pyhudi.write.metadata import by_name
from pyhudi.write.metadata.creation import create_metadata_table, remove_pending_creations
from pyhudi.write.metadata.deltacommit import GroupsGone, Spreading, undo_unknown_deltacommits
from pyhudi.write.metadata.participant import MetadataTableWriter
from pyhudi.write.metadata.restore import MetadataRestore, plan_metadata_restore, restore_deltacommits

log = logging.getLogger("pyhudi")


@dataclass(frozen=True)
class MetadataTableUpkeep:
    """A participant of every commit of a table.

    `is_enabled`: if False, an existing metadata table is dropped, because nobody would keep it true.
    `deltacommits_max`: the metadata table is compacted after this many deltacommits. `log_blocks_min`: a log of it with
    this many blocks is log compacted; None: none is. `clean`: of the data table; the metadata table's own cleaning
    follows from it. `hold`: of the data table; confirmed before anything is deleted, completed or named in its
    properties. `executor`, `readers`: as in `IndexContents`. `finds_keys`: as in `changed_groups`.
    `source_folder`: as in `Snapshot`.
    """

    storage: Storage
    clock: Clock
    zone: tzinfo
    issue_instant: Callable[[], str]
    is_enabled: bool
    deltacommits_max: int
    log_blocks_min: int | None
    clean: CleanSettings
    hold: Hold
    executor: Executor
    readers: Executor
    indexes: IndexSettings
    finds_keys: bool
    source_folder: str | None = None

    def roll_back(self, target: str, rollback: str, metadata: RollbackMetadata) -> None:
        if (config := self._config()).has_metadata_table:
            self._writer(config, [FilesIndex()]).roll_back(target, rollback, metadata)

    def before_rollback(self, target: str, rollback: str) -> None:
        """Drop what was built from the files of a commit that is about to go, or was compacted with them."""
        if (config := self._config()).has_metadata_table:
            table = open_metadata_table(self.storage, self.zone)
            self._drop_made_since(config, table, target, rollback)

    def restore(self, to: str, restore: str) -> None:
        """Undo the deltacommits since `to`, then record which files differ from what they were then.

        Indexes that were built since then are dropped. If the metadata table cannot be taken back, all of it is given
        up, and the next writer makes it anew with its indexes. Spec: format/metadata-table.md section 8.
        """
        config = self._config()
        if not self.is_enabled:
            self._drop_all(config)
            return
        if not config.has_metadata_table:
            return

        table = open_metadata_table(self.storage, self.zone)
        self._come_after(table.timeline)

        found = self._drop_made_since(config, table, to, restore)
        if found is not None:
            restore_deltacommits(
                table, found, to, restore, issue_instant=self.issue_instant, confirm=self.hold.confirm
            )  # fmt: skip
            self._sync(restore)

    def _drop_made_since(
        self, config: TableConfig, table: MetadataTable, since: str, restore: str
    ) -> MetadataRestore | None:
        """Drop the indexes that were built since a commit. Returns what else of the metadata table came after it.

        None if the metadata table cannot be taken back: then all of it has been given up.
        """
        data = read_timeline(self.storage, config.layout, self.zone)
        kept = {i.requested for i in data if i.is_completed and i.action in (*WRITE_ACTIONS, "clean")}
        named = config.metadata_partitions_named
        found = plan_metadata_restore(table, since, restore, kept=kept, partitions=named)

        if isinstance(found, str):
            log.warning("%s: dropping the metadata table, to be made anew: %s", self.storage.location.uri, found)
            self.give_up()
            return None

        gone = {*found.created, *config.metadata_partitions_inflight} & named
        gone |= registry.dependents(gone, named) if gone else set()
        if gone:
            names = ", ".join(sorted(gone))
            log.warning("%s: dropping the metadata partitions %s, built since then", self.storage.location.uri, names)
            self._lists.drop(gone)

        return found

    def _sync(self, restore: str) -> None:
        config, table = self._config(), open_metadata_table(self.storage, self.zone)
        mine = next((i for i in table.timeline if i.action == "deltacommit" and i.requested >= restore), None)
        if mine is not None and mine.is_completed:
            return

        snapshot = self._read_snapshot()
        stored = {part.partition: part.by_name() for part in self._committed(snapshot)}
        sync = plan_sync(stored, read_files_partition(table, snapshot.timeline), frozenset(stored))

        indexes = self._kept(config, lambda: snapshot.schema_with_meta)
        clean = CleanView(lambda: snapshot, sync.gone, config.version, sync.records)
        requested = by_name.sync_instant(table, restore, self.issue_instant) if mine is None else mine.requested
        changes = (change for index in indexes for change in index.clean_changes(clean))
        self._writer(config, indexes).apply(requested, changes)
        self._drop_others(config, indexes)

    def drop(self) -> None:
        """Delete the metadata table, whatever its state. From then on readers list the storage."""
        self._lists.drop_table()

    def give_up(self) -> None:
        """As `drop`, but the next `begin` makes its indexes anew, even that of another process after a crash."""
        self._lists.give_up_table()

    def make_way(self, snapshot: Snapshot) -> None:
        """As `give_up`, once it is known that nothing refuses a new one. Lists the storage once more than `begin`.

        Raises: as `begin` does of a table without a metadata table. Then nothing has changed.
        """
        self._refuse_unfit(snapshot.config)
        for _ in self._committed(snapshot):
            pass
        self.give_up()

    def begin(self, snapshot: Snapshot) -> bool:
        """Create the metadata table if there is none. Else undo what is dead in it, and compact it when due."""
        config = snapshot.config
        if not self.is_enabled:
            return False
        self._refuse_unfit(config)

        if not config.has_metadata_table:
            create_metadata_table(
                self.storage, config, self._committed(snapshot), data_timeline=snapshot.timeline,
                epoch_ms=self.clock.now_ms(), zone=self.zone, executor=self.executor,
                issue_instant=self.issue_instant, confirm=self.hold.confirm,
            )  # fmt: skip
            self._lists.put(ready=[registry.LISTING], inflight=[])
            self._change_indexes(snapshot, self._config())
            return True

        first = table = open_metadata_table(self.storage, self.zone)
        named = config.metadata_partitions_named
        has_dead = remove_pending_creations(table, named, snapshot.timeline, confirm=self.hold.confirm)

        before, config = config, self._change_indexes(snapshot, config)
        if has_dead or config is not before:
            table = open_metadata_table(self.storage, self.zone)

        data = partial(read_timeline, self.storage, config.layout, self.zone)
        has_dead = undo_unknown_deltacommits(table, data, confirm=self.hold.confirm)
        if remove_pending_compactions(table, confirm=self.hold.confirm) or has_dead:
            table = open_metadata_table(self.storage, self.zone)

        if (self._newest(table.timeline) or "") > (self._newest(snapshot.timeline) or ""):
            self._come_after(table.timeline)  # a write died after it had begun here

        # What is being built has no base file yet, and must not get one that hides those to come.
        kept = {index.partition for index in self._kept(config, lambda: snapshot.schema_with_meta)}
        partitions = sorted(kept & {*config.metadata_partitions})

        compactor = MetadataCompactor(
            table, snapshot.timeline, partitions, self.executor, self.issue_instant, self.hold.confirm
        )
        has_compacted = compactor.compact_when_due(self.deltacommits_max)
        has_compacted_logs = False
        if self.log_blocks_min is not None and not has_compacted:
            has_compacted_logs = compactor.log_compact_when_due(self.log_blocks_min)

        clean_metadata_table(
            open_metadata_table(self.storage, self.zone) if has_compacted else table,
            self.clean.of_metadata_table(), self.zone, partitions,
            is_due=has_compacted, issue_instant=self.issue_instant, clock=self.clock, hold=self.hold,
        )  # fmt: skip
        return table is not first or has_compacted or has_compacted_logs

    def before_completion(self, requested: str, metadata: CommitMetadata) -> None:
        """Take the commit into `files` and the indexes. Every other partition would go stale and is dropped.

        Spec: format/metadata-table.md sections 8 and 14.
        """
        config = self._config()
        if not self.is_enabled:
            self._drop_all(config)
            return
        if not config.has_metadata_table:  # dropped while the write ran; the next write makes it anew
            return
        commit = CommitView(self._read_snapshot, requested, metadata, config.version, self.executor, self.finds_keys)
        indexes = self._kept(config, lambda: commit.schema, lambda: commit.snapshot.schema_with_meta)
        changes = (change for index in indexes for change in index.commit_changes(commit))
        try:
            self._writer(config, indexes).apply(requested, changes)
        except GroupsGone as error:
            self._drop_gone(error)
            return self.before_completion(requested, metadata)
        self._drop_others(config, indexes)

    def after_completion(self, requested: str, metadata: CommitMetadata) -> None:
        """Nothing: the metadata table took the commit in before."""

    def before_clean(self, requested: str, metadata: CleanMetadata) -> None:
        """Take the deleted files out of `files` and the indexes."""
        config = self._config()
        if not self.is_enabled:
            self._drop_all(config)
            return
        if not config.has_metadata_table:
            return
        clean = CleanView(self._read_snapshot, metadata, config.version)
        indexes = self._kept(config, lambda: clean.schema)
        changes = (change for index in indexes for change in index.clean_changes(clean))
        try:
            self._writer(config, indexes).apply(requested, changes)
        except GroupsGone as error:
            self._drop_gone(error)
            return self.before_clean(requested, metadata)
        self._drop_others(config, indexes)

    def _drop_gone(self, error: GroupsGone) -> None:
        """Drop an index whose folder somebody deleted: nobody can keep it true. An index that is being built stays."""
        config = self._config()
        if error.partition not in config.metadata_partitions:
            raise error

        gone = {error.partition, *registry.dependents({error.partition}, config.metadata_partitions_named)}
        log.warning(
            "%s: dropping the metadata partitions %s, of which nothing is left; build_index makes them anew",
            self.storage.location.uri, ", ".join(sorted(gone)),
        )  # fmt: skip
        self._lists.drop(gone)

    def _committed(self, snapshot: Snapshot) -> Iterator[PartitionFiles]:
        listing = StorageListing(self.storage, nests=snapshot.config.may_nest_partitions)
        return committed_files(listing, snapshot.timeline, log_slicing(snapshot.config))

    def _refuse_unfit(self, config: TableConfig) -> None:
        """Raises: Unsupported for indexes and services that such tables do not have, before anything is written."""
        by_name.refuse_log_compaction(config, self.log_blocks_min)
        if config.version.indexes is not None or not config.has_meta_fields:
            build, _ = wanted_partitions(self.indexes, config.metadata_partitions_named, {}, config.version)
            is_partitioned = bool(self.indexes.partitioned_record_index)
            by_name.refuse_indexes(config, build, is_partitioned=is_partitioned)

    def _change_indexes(self, snapshot: Snapshot, config: TableConfig) -> TableConfig:
        """Drop what the options switch off, and build what they switch on. Returns the table's config after that."""
        is_named = self.indexes.secondary_columns or self.indexes.expression is not None
        definitions = read_definitions(self.storage) if is_named else {}
        build, drop = wanted_partitions(self.indexes, config.metadata_partitions_named, definitions, config.version)

        if drop:
            log.info("%s: dropping the metadata partitions %s", self.storage.location.uri, ", ".join(sorted(drop)))
            self._lists.drop(drop)
            config = self._config()

        builder = IndexBuilder(
            snapshot, self.indexes, self.executor, self.readers,
            self.clock.now_ms(), self.issue_instant, self.hold.confirm,
        )  # fmt: skip

        lost = self._lost_indexes(snapshot, config)
        build |= lost.keys()

        # An index of a column that the first write brings is built by the next one.
        if build and not snapshot.schema.names:
            build = {name for name in build if not registry.get_kind(name).is_of_columns}

        for partition in sorted(build):
            definition = builder.build(partition, lost.get(partition))
            put_definitions(self.storage, {partition: definition} if definition is not None else {})
            ready = {*config.metadata_partitions, partition}
            self._lists.put(ready=ready, inflight=config.metadata_partitions_inflight)
            config = self._config()

        # What else is still noted needs columns first, or another tool has made it meanwhile: then it stays.
        if gone := set(config.metadata_partitions_lost) - lost.keys():
            self._lists.drop(gone - config.metadata_partitions_named)
            config = self._config()

        builder.complete_definitions(config)
        return config

    def _lost_indexes(self, snapshot: Snapshot, config: TableConfig) -> dict[str, IndexDefinition | None]:
        """The indexes to build anew, except those that the options switch off -> their definitions.

        An index that no definition describes any more, or that cannot be computed here, is gone; the log names it.
        """
        noted = by_name.kept_partitions(config, config.metadata_partitions_lost)
        missing = noted - config.metadata_partitions_named - {registry.LISTING}
        wanted = {name for name in missing if not registry.switched_off_by(self.indexes, name)}
        if not wanted:
            return {}

        definitions = read_definitions(self.storage)
        named = wanted | config.metadata_partitions_named
        kept = {index.partition for index in registry.kept_indexes(self._indexed(named, snapshot.schema_with_meta))}
        able = (wanted & kept) - registry.dependents(registry.names() - kept, wanted & kept)
        if able != wanted:
            names = ", ".join(sorted(wanted - able))
            log.warning("%s: the indexes %s are not made anew: build_index makes them", snapshot.config.name, names)
        return {name: definitions.get(name) for name in able}

    def _kept(
        self, config: TableConfig, schema: Callable[[], pa.Schema], before: Callable[[], pa.Schema] | None = None
    ) -> Sequence[TableIndex]:
        """The indexes that are kept true, among those that the table has or is getting. `schema`, `before`: columns."""
        if not config.has_indexes:
            return [FilesIndex()]
        named = by_name.kept_partitions(config, config.metadata_partitions_named)
        return registry.kept_indexes(replace(self._indexed(named, schema()), schema_before=before))

    def _indexed(self, partitions: Collection[str], columns: pa.Schema) -> IndexedTable:
        """These partitions of the metadata table, as indexes of the data table with these columns."""
        return IndexedTable(
            open_metadata_table(self.storage, self.zone), sorted(partitions), read_definitions(self.storage), columns,
            self.indexes.columns,
        )  # fmt: skip

    def _read_snapshot(self) -> Snapshot:
        return read_snapshot(self.storage, self.zone, open_listing, self.source_folder)

    def _drop_others(self, config: TableConfig, indexes: Sequence[TableIndex]) -> None:
        others = config.metadata_partitions_named - {index.partition for index in indexes}
        if others:
            log.warning(
                "%s: dropping the metadata partitions %s, which cannot be kept with the columns as they are now",
                self.storage.location.uri, ", ".join(sorted(others)),
            )  # fmt: skip
            self._lists.drop(others)

    def _drop_all(self, config: TableConfig) -> None:
        if config.metadata_partitions_named or config.metadata_partitions_lost:
            log.warning("%s: dropping the metadata table: hoodie.metadata.enable=false", self.storage.location.uri)
            self.drop()

    def _come_after(self, timeline: Timeline) -> None:
        """Make every new time later than any on a timeline, wherever the clock stands."""
        issue_instant(self.clock, self.zone, after=self._newest(timeline))

    def _newest(self, timeline: Timeline) -> str | None:
        return newest_heeded(timeline, self.clock, self.zone)

    def _config(self) -> TableConfig:
        return self._lists.config()

    @property
    def _lists(self) -> MetadataLists:
        return MetadataLists(self.storage, self.clock.now_ms, self.hold.confirm)

    def _writer(self, config: TableConfig, indexes: Sequence[TableIndex]) -> MetadataTableWriter:
        clear_for_logs(self.storage, self.zone, config.version, confirm=self.hold.confirm)
        new_groups = self.indexes.partitioned_groups[0]
        spreading = Spreading(self.executor, {index.partition: index.hashing for index in indexes}, new_groups)
        return MetadataTableWriter(self.storage, self.zone, self.issue_instant, self._come_after, self.hold, spreading)
