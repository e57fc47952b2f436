"""`column_stats`: the least and greatest value, the nulls and the sizes of each column in each file."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.index_definitions import IndexDefinition, column_stats_definition
from pyhudi.format.metadata_groups import COLUMN_STATS
from pyhudi.format.schema import META_FIELDS
from pyhudi.format.stats_values import StatsVersion
from pyhudi.metadata.bounds_check import beyond
from pyhudi.metadata.changes import InitialPartition, PartitionChange
from pyhudi.metadata.check import Difference
from pyhudi.metadata.column_bounds import bounds_table, read_bounds
from pyhudi.metadata.column_stats import read_column_stats
from pyhudi.metadata.derive_stats import StatsFacts, is_counted
from pyhudi.metadata.index_changes import removed_column_stats
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind, TableIndex
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import COLUMN_STATS_OPTION, ChosenColumns, IndexSettings
from pyhudi.metadata.kinds.views import CleanView, CommitView, IndexCheck, IndexedTable
from pyhudi.metadata.stats_changes import column_stats_change
from pyhudi.table.file_statistics import FILES


@dataclass(frozen=True, slots=True)
class ColumnStatsIndex(TableIndex):
    """The statistics of one table's files. `facts`: of which columns."""

    partition: str
    facts: StatsFacts

    def commit_changes(self, commit: CommitView) -> Iterator[PartitionChange]:
        columns = self.facts.columns(commit.schema)
        bounds = commit.bounds(columns)
        yield column_stats_change(bounds, columns, self.facts.version, table_version=commit.table_version)

    def clean_changes(self, clean: CleanView) -> Iterator[PartitionChange]:
        columns = self.facts.known_columns(clean.schema)
        yield removed_column_stats(columns, clean.files, table_version=clean.table_version)

    def differences(self, check: IndexCheck) -> Iterator[Difference]:
        """Of every file that a query reads. Memory: the statistics of a data partition's files."""
        columns = self.facts.columns(check.snapshot.schema_with_meta)
        for partition in check.snapshot.listing.partitions():
            files, bounds = check.read_bounds(partition, columns)
            table = pa.table([[p for p, _, _ in files], [name for _, name, _ in files]], schema=FILES)
            for column in columns:
                field = pa.field(column.name, column.type)
                known = read_column_stats(check.indexes, field, partitions=[partition], files=table)
                assert known is not None
                yield from beyond(self.partition, partition, column, bounds_table(bounds, column), known, "file")


class ColumnStatsKind(IndexKind):
    """Up to version 6 nothing defines it: its columns are those that the options of a write say."""

    name: ClassVar[str] = COLUMN_STATS
    since: ClassVar[int] = 6
    request_names: ClassVar[tuple[str, ...]] = (COLUMN_STATS,)
    is_completed_later: ClassVar[bool] = True

    def is_asked(self, settings: IndexSettings) -> bool | None:
        return settings.column_stats

    def option(self, settings: IndexSettings) -> str:
        return COLUMN_STATS_OPTION

    def definition(self, contents: IndexContents, partition: str) -> IndexDefinition:
        return _definition(contents, contents.settings.columns)

    def completed(self, contents: IndexContents, definition: IndexDefinition) -> IndexDefinition:
        """Name the columns of statistics that were switched on before the table had any."""
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
                have = ", ".join(schema.names) or "none yet"
                is_there = column.partition(".")[0] in schema.names
                found = "whose values have no bounds" if is_there else f"that the table does not have: it has {have}"
                raise Invalid(f"{request.what}: expected columns with bounds, found '{column}' {found}")
        return chosen

    def known(self, table: IndexedTable) -> list[TableIndex]:
        return [ColumnStatsIndex(name, known_facts(table)) for name in table.partitions if self.owns(name)]

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        """Of every file of a completed write."""
        facts, schema = initial_facts(contents, definition), contents.snapshot.schema_with_meta
        columns = facts.columns(schema)
        files = [
            (partition, file.name, file.size_bytes)
            for partition, file in contents.committed_files()
            if is_counted(file.name)
        ]
        bounds = read_bounds(contents.snapshot.storage, files, columns, schema, contents.readers)
        change = column_stats_change(bounds, columns, facts.version, table_version=contents.table_version)
        return InitialPartition(partition, [change], self.group_counts(contents, partition, definition))

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        return {None: contents.settings.column_stats_groups}


def known_facts(table: IndexedTable) -> StatsFacts:
    """Of an index that a table has."""
    return stats_facts(table.version, table.definitions.get(COLUMN_STATS), table.chosen)


def initial_facts(contents: IndexContents, definition: IndexDefinition | None) -> StatsFacts:
    """Of an index that is being built: in the form that new indexes have."""
    version, chosen = stats_version(contents.table_version), contents.settings.columns
    return StatsFacts(version, contents.table_version, own_columns(definition) or chosen.names, chosen.count_max)


def stats_facts(table_version: int, definition: IndexDefinition | None, chosen: ChosenColumns) -> StatsFacts:
    """Which columns an index has statistics of, and how it stores them: by its definition, or else by the options."""
    stated = None if definition is None else definition.version
    version = stats_version(table_version) if stated is None else StatsVersion[stated]
    return StatsFacts(version, table_version, own_columns(definition) or chosen.names, chosen.count_max)


def stats_version(table_version: int) -> StatsVersion:
    """How a new index of column statistics stores bounds."""
    return StatsVersion.V2 if table_version >= 9 else StatsVersion.V1


def _definition(contents: IndexContents, chosen: ChosenColumns) -> IndexDefinition:
    facts = stats_facts(contents.table_version, None, chosen)
    names = tuple(column.name for column in facts.columns(contents.snapshot.schema_with_meta))
    return column_stats_definition(names, facts.version.name)


def own_columns(definition: IndexDefinition | None) -> tuple[str, ...]:
    """The table's own columns that a definition names."""
    return () if definition is None else tuple(n for n in definition.source_fields if n not in META_FIELDS)
