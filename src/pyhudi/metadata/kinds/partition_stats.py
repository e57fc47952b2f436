"""`partition_stats`: the statistics of columns over all files of each partition, made of `column_stats`."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata.groups import COLUMN_STATS, PARTITION_STATS, PARTITION_STATS_TYPE
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.metadata.keys import partition_stats_keys
from pyhudi.format.schema.conversion import COMMIT_TIME, RECORD_KEY
from pyhudi.metadata.check.bounds import beyond
from pyhudi.metadata.check.differences import Difference
from pyhudi.metadata.derive.changed_groups import changed_groups, slices_after
from pyhudi.metadata.derive.changes import InitialPartition, PartitionChange
from pyhudi.metadata.derive.column_bounds import bounds_table
from pyhudi.metadata.derive.stats import StatsFacts, files_of
from pyhudi.metadata.derive.stats_changes import merge_by_partition, partition_stats_change
from pyhudi.metadata.kinds.column_stats import initial_facts, known_facts, own_columns, stored_bounds_of
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind, TableIndex
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import PARTITION_STATS_OPTION, IndexSettings
from pyhudi.metadata.kinds.stats_reading import read_partition_stats
from pyhudi.metadata.kinds.views import CommitView, IndexCheck, IndexedTable
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.table.prune.index_pruning import IndexPruner, PrunedQuery
from pyhudi.table.prune.pruning import PrunedBy, match_partitions
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.table.view.undoings import newest_undoings


@dataclass(frozen=True, slots=True)
class PartitionStatsIndex(TableIndex):
    """The statistics of one table's partitions. `facts`: which columns have them.

    `has_columns`: whether this release can compute all columns of the index.
    """

    partition: str
    facts: StatsFacts
    has_columns: bool

    @property
    def is_kept(self) -> bool:
        return self.has_columns

    def commit_changes(self, commit: CommitView) -> Iterator[PartitionChange]:
        """Covers the partitions that the action touched. Memory: the statistics of all of their files."""
        snapshot, schema, facts = commit.snapshot, commit.schema, self.facts
        columns, touched = facts.columns(schema), commit.touched
        new = commit.bounds(columns)

        # What is stored tells of the files that stay; what was just read tells of the new ones.
        groups = changed_groups(snapshot, commit.metadata, with_rewrites=True)
        needed = files_of(one for partition in touched for one in slices_after(snapshot, partition, groups))
        written = {file[:2] for file in commit.new_files}
        staying = [file for file in needed if file[:2] not in written]
        old = stored_bounds_of(snapshot, staying, columns, schema, commit.executor, evolution=commit.evolution)

        after = {file[:2] for file in needed}
        mine = [one for one in new if (one.partition, one.file) in after]
        by_column = {c.name: pa.concat_tables([old[c.name], bounds_table(mine, c)]) for c in columns}
        version = commit.table_version
        yield partition_stats_change(
            by_column, columns, touched, facts.version, table_version=version, index=self.partition
        )

    def differences(self, check: IndexCheck) -> Iterator[Difference]:
        """Compares every partition. Memory: the statistics of a data partition's files."""
        columns = self.facts.columns(check.snapshot.schema_with_meta)
        for partition in check.snapshot.listing.partitions():
            _, bounds = check.read_bounds(partition, columns)
            for column in columns:
                field = pa.field(column.name, column.type)
                known = _read(check.indexes, field, [partition], as_stored=True)
                assert known is not None
                stored = merge_by_partition(bounds_table(bounds, column))
                yield from beyond(self.partition, partition, column, stored, known, "partition")


@dataclass(frozen=True, slots=True)
class PartitionStatsPruner(IndexPruner):
    """Rules out partitions by the bounds of all of their files, as far as these are sure (`_SureStatistics`)."""

    indexes: MetadataIndexes
    label: str = PARTITION_STATS

    def keep_partitions(
        self, query: PrunedQuery, partitions: Sequence[str]
    ) -> tuple[list[str], Sequence[PrunedBy]] | None:
        if not query.by_columns or not self.indexes.config.has_known_statistics:
            return None
        sure = _SureStatistics(self.indexes, partitions)
        may = match_partitions(sure, query.predicate, partitions, besides=query.besides)
        ruled_out = set(compress(partitions, (~may).tolist()))
        ruled_out -= _of_writes_undone(self.indexes, sorted(ruled_out))
        kept = [partition for partition in partitions if partition not in ruled_out]
        return kept, [PrunedBy(self.label, partitions=len(ruled_out))]

    def of_partitions(self, column: pa.Field, partitions: Sequence[str]) -> pa.Table | None:
        """All that is stored."""
        return _read(self.indexes, column, partitions)


@dataclass(frozen=True)
class _SureStatistics:
    """Statistics of partitions that are of all of their rows.

    Apache Hudi leaves files out of which it knows nothing, so that bounds and nulls are those of the other files. Such
    statistics count fewer values than those of the record key, which every file has. It also passes over null bounds
    of a file. So texts, bytes and floating point tell nothing here: of a text of some 4 kB, and of NaN, Parquet footers
    state no bounds. Column statistics of files tell of them.
    Seen: 1.0.2, 1.2.0 (`HoodieColumnRangeMetadata.merge`).
    """

    indexes: MetadataIndexes
    partitions: Sequence[str]

    @cached_property
    def _keys(self) -> pa.Table | None:
        return _read(self.indexes, pa.field(RECORD_KEY, pa.string()), self.partitions)

    def of_partitions(self, column: pa.Field, partitions: Sequence[str]) -> pa.Table | None:
        if not _has_bounds_in_every_file(column.type):
            return None
        found = _read(self.indexes, column, partitions)
        return None if found is None or self._keys is None else _of_all_rows(found, self._keys)


def _of_writes_undone(indexes: MetadataIndexes, partitions: Sequence[str]) -> set[str]:
    """The partitions whose statistics may be of a write that was rolled back, and of none since.

    Their newest commit time is of no committed write, or is earlier than a rollback of the partition's files: the write
    may have deleted rows alone. Once the rollback is archived it is no longer seen.
    Seen: 1.0.2, 1.1.1, 1.2.0, whose rollbacks build the index first where the table has none, and do not renew it.
    """
    commits = _read(indexes, pa.field(COMMIT_TIME, pa.string()), partitions) if partitions else None
    if commits is None:
        return set()

    undone = newest_undoings(indexes.storage, indexes.timeline)
    newest = zip(*(commits.column(name).to_pylist() for name in ("partition", "max")), strict=True)
    return {
        partition
        for partition, time in newest
        if time is not None and (not indexes.timeline.is_committed(time) or time < undone.get(partition, ""))
    }


class PartitionStatsKind(IndexKind):
    """This kind has no definition: its columns are those of the column statistics, without which it cannot exist."""

    name: ClassVar[str] = PARTITION_STATS
    request_names: ClassVar[tuple[str, ...]] = (PARTITION_STATS,)
    pruning_rank: ClassVar[int] = 3
    stats_type: ClassVar[int | None] = PARTITION_STATS_TYPE
    tells_of_all_columns: ClassVar[bool] = True

    def is_asked(self, settings: IndexSettings) -> bool | None:
        return settings.partition_stats

    def option(self, settings: IndexSettings) -> str:
        return PARTITION_STATS_OPTION

    def may_be_built(self, settings: IndexSettings, present: Collection[str]) -> bool:
        return COLUMN_STATS in present

    def falls_with(self, dropped: Collection[str], present: Collection[str]) -> bool:
        return COLUMN_STATS in dropped or COLUMN_STATS not in present

    def requested_definition(
        self, request: IndexRequest, contents: IndexContents, ready: Collection[str]
    ) -> IndexDefinition | None:
        if COLUMN_STATS not in ready:
            raise Invalid(
                f"{request.what}: expected column statistics, of which it is made; build '{COLUMN_STATS}' first"
            )
        return None

    def known(self, table: IndexedTable) -> list[TableIndex]:
        """No index without column statistics."""
        if COLUMN_STATS not in table.partitions:
            return []
        facts = known_facts(table)
        able = {column.name for column in facts.columns(table.schema)}
        has_columns = able >= {*own_columns(table.definitions.get(COLUMN_STATS))}
        return [PartitionStatsIndex(name, facts, has_columns) for name in table.partitions if self.owns(name)]

    def pruner(self, indexes: MetadataIndexes, snapshot: Snapshot) -> IndexPruner:
        return PartitionStatsPruner(indexes)

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        """Covers every partition, by what `column_stats` says of its files."""
        facts = initial_facts(contents, contents.stored_definitions().get(COLUMN_STATS))
        change = _initial_stats(contents.snapshot, facts, contents.executor)
        return InitialPartition(partition, [change], self.group_counts(contents, partition, definition))

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        return {None: contents.settings.partition_stats_groups}


def _read(
    indexes: MetadataIndexes, column: pa.Field, partitions: Sequence[str], *, as_stored: bool = False
) -> pa.Table | None:
    return read_partition_stats(
        indexes, column, partitions=partitions, index=PARTITION_STATS, as_stored=as_stored, keys_of=partition_stats_keys
    )


def _has_bounds_in_every_file(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_temporal(kind) or kind == pa.bool_()
    )


def _of_all_rows(found: pa.Table, keys: pa.Table) -> pa.Table:
    """The statistics that count as many values as those of the record keys in the same partitions."""
    rows = keys.column("value_count").take(pc.index_in(found.column("partition"), one_array(keys.column("partition"))))
    return found.filter(pc.fill_null(pc.equal(found.column("value_count"), rows), False))


def _initial_stats(snapshot: Snapshot, facts: StatsFacts, executor: Executor) -> PartitionChange:
    """The statistics of every partition, made of what `column_stats` says of its files."""
    schema = snapshot.schema_with_meta
    columns, partitions = facts.columns(schema), snapshot.listing.partitions()
    files = files_of(file_slice for partition in partitions for file_slice in snapshot.slices(partition))
    by_column = stored_bounds_of(snapshot, files, columns, schema, executor, evolution=snapshot.evolution)
    change = partition_stats_change(
        by_column, columns, (), facts.version, table_version=facts.table_version, index=PARTITION_STATS
    )
    assert not len(change.deletes)
    return change
