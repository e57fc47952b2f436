"""`column_stats`: the least and greatest value, the nulls and the sizes of each column in each file."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata.groups import COLUMN_STATS, COLUMN_STATS_TYPE
from pyhudi.format.metadata.index_definitions import IndexDefinition, column_stats_definition
from pyhudi.format.metadata.keys import column_stats_keys
from pyhudi.format.metadata.stats_values import StatsVersion
from pyhudi.format.schema.conversion import META_FIELDS, RECORD_KEY
from pyhudi.metadata.check.bounds import beyond
from pyhudi.metadata.check.differences import Difference
from pyhudi.metadata.derive.changes import InitialPartition, PartitionChange, binary_keys
from pyhudi.metadata.derive.column_bounds import IndexedColumn, bounds_schema, bounds_table, read_bounds
from pyhudi.metadata.derive.index_changes import removed_column_stats
from pyhudi.metadata.derive.stats import File, StatsFacts, is_counted, stored_bounds_rows
from pyhudi.metadata.derive.stats_changes import column_stats_change
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind, TableIndex
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import COLUMN_STATS_OPTION, ChosenColumns, IndexSettings
from pyhudi.metadata.kinds.stats_reading import read_column_stats
from pyhudi.metadata.kinds.views import CleanView, CommitView, IndexCheck, IndexedTable
from pyhudi.metadata.store.current_cells import current_cells
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.metadata.store.partition import open_partition
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.options.told_names import listed
from pyhudi.table.prune.file_statistics import FILES, Kept
from pyhudi.table.prune.index_pruning import IndexPruner, PrunedQuery, Slice, pruned_files
from pyhudi.table.prune.pruning import PrunedBy, match_slices
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import TableVersion


@dataclass(frozen=True, slots=True)
class ColumnStatsIndex(TableIndex):
    """The statistics of one table's files. `facts`: which columns have them."""

    partition: str
    facts: StatsFacts

    def commit_changes(self, commit: CommitView) -> Iterator[PartitionChange]:
        columns = self.facts.columns(commit.schema)
        bounds = commit.bounds(columns)
        yield column_stats_change(
            bounds, columns, self.facts.version, table_version=commit.table_version, index=self.partition
        )

    def clean_changes(self, clean: CleanView) -> Iterator[PartitionChange]:
        columns = self.facts.known_columns(clean.schema)
        yield removed_column_stats(columns, clean.files, table_version=clean.table_version, index=self.partition)

    def differences(self, check: IndexCheck) -> Iterator[Difference]:
        """Compares every file that a query reads. Memory: the statistics of a data partition's files."""
        columns = self.facts.columns(check.snapshot.schema_with_meta)
        for partition in check.snapshot.listing.partitions():
            files, bounds = check.read_bounds(partition, columns)
            table = pa.table([[p for p, _, _ in files], [name for _, name, _ in files]], schema=FILES)
            for column in columns:
                field = pa.field(column.name, column.type)
                known = read_column_stats(
                    check.indexes, field, partitions=[partition], files=table, index=self.partition, as_stored=True
                )
                assert known is not None
                yield from beyond(self.partition, partition, column, bounds_table(bounds, column), known, "file")


_FEW_SLICES = 4
"""Of so many slices that hold a query's keys, footers tell sooner than the index what else rules them out."""


@dataclass(frozen=True, slots=True)
class ColumnStatsPruner(IndexPruner):
    """Rules out slices by the bounds of their files."""

    indexes: MetadataIndexes
    label: str = COLUMN_STATS

    def match_slices(
        self, query: PrunedQuery, slices: Sequence[Slice], *, is_located: bool
    ) -> tuple[Kept, Sequence[PrunedBy]] | None:
        if not query.by_columns or (is_located and len(slices) <= _FEW_SLICES):
            return None
        named = [(partition, paths) for partition, paths, _ in slices]
        may = match_slices(self, query.predicate, named, besides=query.besides)
        return may, [pruned_files(self.label, slices, may)]

    def of_files(self, column: pa.Field, files: pa.Table) -> pa.Table | None:
        partitions = pc.unique(one_array(files.column("partition"))).to_pylist()
        return read_column_stats(self.indexes, column, partitions=partitions, files=files, index=COLUMN_STATS)


class ColumnStatsKind(IndexKind):
    """Up to table version 6 this kind has no definition: the options of a write name its columns."""

    name: ClassVar[str] = COLUMN_STATS
    request_names: ClassVar[tuple[str, ...]] = (COLUMN_STATS,)
    pruning_rank: ClassVar[int] = 4
    stats_type: ClassVar[int | None] = COLUMN_STATS_TYPE
    tells_of_keys: ClassVar[bool] = True
    is_completed_later: ClassVar[bool] = True
    tells_of_all_columns: ClassVar[bool] = True

    def is_asked(self, settings: IndexSettings) -> bool | None:
        return settings.column_stats

    def option(self, settings: IndexSettings) -> str:
        return COLUMN_STATS_OPTION

    def definition(self, contents: IndexContents, partition: str) -> IndexDefinition:
        return _definition(contents, contents.settings.columns)

    def completed(self, contents: IndexContents, definition: IndexDefinition) -> IndexDefinition:
        """Names the columns, where statistics were switched on before the table had any column."""
        if own_columns(definition):
            return definition
        facts = stats_facts(contents.table_version, definition, contents.settings.columns)
        names = tuple(column.name for column in facts.columns(contents.snapshot.schema_with_meta))
        return replace(definition, source_fields=names)

    def requested_partition(self, request: IndexRequest) -> str:
        request.refuse_name()
        return self.name

    def requested_definition(
        self, request: IndexRequest, contents: IndexContents, ready: Collection[str]
    ) -> IndexDefinition:
        if not request.columns:
            return self.definition(contents, self.name)

        columns = ChosenColumns(request.columns, contents.settings.columns.count_max)
        chosen = _definition(contents, columns)

        for column in request.columns:
            if column not in chosen.source_fields:
                schema = contents.snapshot.schema
                have = listed(schema.names) or "none yet"
                is_there = column.partition(".")[0] in schema.names
                found = "whose values have no bounds" if is_there else f"that the table does not have: it has {have}"
                raise Invalid(f"{request.what}: expected columns with bounds, found '{column}' {found}")
        return chosen

    def known(self, table: IndexedTable) -> list[TableIndex]:
        return [ColumnStatsIndex(name, known_facts(table)) for name in table.partitions if self.owns(name)]

    def pruner(self, indexes: MetadataIndexes, snapshot: Snapshot) -> IndexPruner:
        return ColumnStatsPruner(indexes)

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        """Covers every file of a completed write."""
        facts, schema = initial_facts(contents, definition), contents.snapshot.schema_with_meta
        columns = facts.columns(schema)
        files = [
            (data_partition, file.name, file.size_bytes)
            for data_partition, file in contents.committed_files()
            if is_counted(file.name)
        ]

        snapshot = contents.snapshot
        bounds = read_bounds(
            snapshot, files, columns, schema, contents.readers, evolution=snapshot.evolution,
            counts=snapshot.timeline.is_committed,
        )  # fmt: skip
        change = column_stats_change(
            bounds, columns, facts.version, table_version=contents.table_version, index=partition
        )
        return InitialPartition(partition, [change], self.group_counts(contents, partition, definition))

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        return {None: contents.settings.column_stats_groups}


def stored_bounds_of(
    snapshot: Snapshot,
    files: Sequence[File],
    columns: Sequence[IndexedColumn],
    schema: pa.Schema,
    executor: Executor,
    *,
    evolution: Evolution | None,
) -> dict[str, pa.Table]:
    """What `column_stats` says of these files, by column. Files that it says nothing of are read.

    `evolution`: how files are read whose columns had other names; None if none had.
    Cost: one key is looked up for each file and column. Keys of one data partition and column lie side by side.
    Memory: the answer.
    """
    found = {column.name: [bounds_schema(column.type).empty_table()] for column in columns}
    if not files or not columns:
        return {name: pa.concat_tables(parts) for name, parts in found.items()}

    partitions = pa.array([partition for partition, _, _ in files], pa.string())
    names = pa.array([name for _, name, _ in files], pa.string())
    keys = {c.name: column_stats_keys(c.name, partitions, names) for c in columns}

    table = open_metadata_table(snapshot.storage, snapshot.zone)
    partition = open_partition(table, COLUMN_STATS, snapshot.timeline, executor=executor)

    told: dict[str, set[tuple[str, str]]] = {column.name: set() for column in columns}
    for part in partition.lookup(pa.concat_arrays(list(keys.values()))):
        cells = current_cells(table, part, stats_type=COLUMN_STATS_TYPE)
        for column in columns:
            wanted = binary_keys(keys[column.name])
            rows = stored_bounds_rows(cells, wanted, column, partitions, names, table.record_schema)
            told[column.name] |= set(zip(rows["partition"].to_pylist(), rows["file"].to_pylist(), strict=True))
            found[column.name].append(rows)

    for column in columns:
        missing = [file for file in files if file[:2] not in told[column.name]]
        counts = snapshot.timeline.is_committed
        read = read_bounds(snapshot, missing, [column], schema, executor, evolution=evolution, counts=counts)
        found[column.name].append(bounds_table(read, column))
    return {name: pa.concat_tables(parts) for name, parts in found.items()}


def read_key_ranges(indexes: MetadataIndexes, partitions: Sequence[str]) -> pa.Table | None:
    """The statistics of record keys in these partitions' files, in the form that `read_column_stats` gives."""
    return read_column_stats(indexes, pa.field(RECORD_KEY, pa.string()), partitions=partitions, index=COLUMN_STATS)


def known_facts(table: IndexedTable) -> StatsFacts:
    """The columns and form of the statistics that a table has."""
    return stats_facts(table.version, table.definitions.get(COLUMN_STATS), table.chosen)


def initial_facts(contents: IndexContents, definition: IndexDefinition | None) -> StatsFacts:
    """The columns and form of an index that is being built: the form is that of new indexes."""
    version, chosen = stats_version(contents.table_version), contents.settings.columns
    return StatsFacts(version, contents.table_version, own_columns(definition) or chosen.names, chosen.count_max)


def stats_facts(table_version: TableVersion, definition: IndexDefinition | None, chosen: ChosenColumns) -> StatsFacts:
    """Which columns have statistics, and how they are stored: as the definition says, or else the options."""
    stated = None if definition is None else definition.version
    version = stats_version(table_version) if stated is None else StatsVersion[stated]
    return StatsFacts(version, table_version, own_columns(definition) or chosen.names, chosen.count_max)


def stats_version(table_version: TableVersion) -> StatsVersion:
    """How a new index of column statistics stores bounds."""
    return StatsVersion[table_version.index_version]


def _definition(contents: IndexContents, chosen: ChosenColumns) -> IndexDefinition:
    facts = stats_facts(contents.table_version, None, chosen)
    names = tuple(column.name for column in facts.columns(contents.snapshot.schema_with_meta))
    return column_stats_definition(names, facts.version.name)


def own_columns(definition: IndexDefinition | None) -> tuple[str, ...]:
    """The table's own columns that a definition names."""
    return () if definition is None else tuple(n for n in definition.source_fields if n not in META_FIELDS)
