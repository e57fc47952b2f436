"""`expr_index_…`: statistics, or Bloom filters, of what is computed of a column."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import pyarrow as pa

from pyhudi.errors import Invalid
from pyhudi.format.metadata.groups import BLOOM_FILTERS, COLUMN_STATS
from pyhudi.format.metadata.index_definitions import IndexDefinition, expression_index_definition
from pyhudi.metadata.check.bounds import beyond
from pyhudi.metadata.check.differences import Difference, DifferenceKind
from pyhudi.metadata.derive.changes import InitialPartition, PartitionChange
from pyhudi.metadata.derive.column_bounds import bounds_table
from pyhudi.metadata.derive.expression_changes import (
    cleaned_expression_change,
    expression_change,
    initial_expression_change,
)
from pyhudi.metadata.derive.expression_values import count_unheld, read_expression_bounds
from pyhudi.metadata.derive.stats import File, files_of
from pyhudi.metadata.derive.stats_changes import merge_by_partition
from pyhudi.metadata.kinds.bloom_filters import read_bloom_filters
from pyhudi.metadata.kinds.column_stats import stats_version
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.expression_index import (
    EXPRESSION_PREFIXES,
    ExpressionIndex,
    expression_index,
    is_alike,
    is_expression_index,
    keeps_values,
    known_expressions,
)
from pyhudi.metadata.kinds.expression_statistics import MetadataExpressions, usable_filter, with_nulls
from pyhudi.metadata.kinds.protocol import IndexKind, TableIndex
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import EXPRESSION_COLUMN_OPTION, EXPRESSION_OPTION, IndexSettings
from pyhudi.metadata.kinds.stats_reading import read_column_stats, read_partition_stats
from pyhudi.metadata.kinds.views import CleanView, CommitView, IndexCheck, IndexedTable
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.table.prune.expression_pruning import ExpressionPruning, expression_pruning
from pyhudi.table.prune.file_statistics import FILES, Kept
from pyhudi.table.prune.index_pruning import IndexPruner, PrunedQuery, Slice
from pyhudi.table.prune.indexed_expression import parse_indexed_expression
from pyhudi.table.prune.pruning import PrunedBy
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import TableVersion

log = logging.getLogger("pyhudi")

_REQUEST: Final = "expr_index"
_REQUESTS: Final = (_REQUEST, COLUMN_STATS, BLOOM_FILTERS)
FILTER_OPTIONS: Final = {
    "hoodie.bloom.index.filter.type": "filtertype",
    "hoodie.index.bloom.num_entries": "numentries",
    "hoodie.index.bloom.fpp": "fpp",
    "hoodie.bloom.index.filter.dynamic.max.entries": "maxentries",
}
"""Option of a write for the filters of an index on an expression -> option of the index's definition."""


@dataclass(frozen=True, slots=True)
class ExpressionTableIndex(TableIndex):
    """An index on one expression. `index`: the expression, and the form in which the index is stored.

    `has_old_values`: some of its values were computed of a column of another type, and are others now.
    """

    partition: str
    index: ExpressionIndex
    has_old_values: bool = False

    @property
    def is_kept(self) -> bool:
        return not self.has_old_values

    def commit_changes(self, commit: CommitView) -> Iterator[PartitionChange]:
        yield expression_change(commit.snapshot, commit.requested, commit.metadata, self.index, commit.executor)

    def clean_changes(self, clean: CleanView) -> Iterator[PartitionChange]:
        yield cleaned_expression_change(self.index, clean.files, table_version=clean.table_version)

    def differences(self, check: IndexCheck) -> Iterator[Difference]:
        """Compares every file that a query reads, and every partition. Memory: the index's records of a partition."""
        compare = _statistics_differences if self.index.bloom is None else _filter_differences
        for partition in check.snapshot.listing.partitions():
            yield from compare(check, self.index, partition, files_of(check.snapshot.slices(partition)))


@dataclass(frozen=True, slots=True)
class ExpressionPruner(IndexPruner):
    """Rules out partitions and slices for a query that contains exactly the expression of an index."""

    statistics: MetadataExpressions
    label: str = "an index on an expression"

    def keep_partitions(
        self, query: PrunedQuery, partitions: Sequence[str]
    ) -> tuple[list[str], Sequence[PrunedBy]] | None:
        return self._pruning(query).partitions(partitions) if query.by_columns else None

    def match_slices(
        self, query: PrunedQuery, slices: Sequence[Slice], *, is_located: bool
    ) -> tuple[Kept, Sequence[PrunedBy]] | None:
        named = [(partition, paths) for partition, paths, _ in slices]
        return self._pruning(query).slices(named) if query.by_columns else None

    def _pruning(self, query: PrunedQuery) -> ExpressionPruning:
        return expression_pruning(self.statistics, query.predicate, besides=query.besides)


class ExpressionKind(IndexKind):
    """An index on an expression has one of two flavours: statistics of files and partitions, or filters of files."""

    name: ClassVar[str] = _REQUEST
    prefixes: ClassVar[tuple[str, ...]] = EXPRESSION_PREFIXES
    request_names: ClassVar[tuple[str, ...]] = (_REQUEST,)
    pruning_rank: ClassVar[int] = 5
    is_of_columns: ClassVar[bool] = True

    def is_asked(self, settings: IndexSettings) -> bool | None:
        return settings.expressions

    def option(self, settings: IndexSettings) -> str:
        return EXPRESSION_OPTION

    def wanted(
        self, settings: IndexSettings, definitions: Mapping[str, IndexDefinition], table_version: TableVersion
    ) -> Mapping[str, str]:
        wanted = _wanted(settings, definitions, table_version)
        return {} if wanted is None else {wanted.name: EXPRESSION_COLUMN_OPTION}

    def refuse_taken_names(
        self, settings: IndexSettings, definitions: Mapping[str, IndexDefinition], table_version: TableVersion
    ) -> None:
        wanted = _wanted(settings, definitions, table_version)
        other = None if wanted is None else definitions.get(wanted.name)
        if wanted is not None and other is not None and not is_alike(other, wanted):
            raise Invalid(
                f"{EXPRESSION_COLUMN_OPTION}: expected a name that no other index has, found '{other.name}' on "
                f"{other.function} of {', '.join(other.source_fields)}; give the new one another in hoodie.index.name"
            )

    def definition(self, contents: IndexContents, partition: str) -> IndexDefinition:
        wanted = _wanted(contents.settings, contents.stored_definitions(), contents.table_version)
        if wanted is None or wanted.name != partition:
            raise Invalid(f"index '{partition}': expected its definition, which says of what expression it is")
        _warn_of_filters(contents.snapshot, wanted)
        return wanted

    def can_build(
        self, partition: str, definitions: Callable[[], Mapping[str, IndexDefinition]], schema: pa.Schema
    ) -> bool:
        return bool(known_expressions([partition], definitions(), schema))

    def claims(self, request: IndexRequest) -> bool:
        return request.expression is not None or super().claims(request)

    def requested_partition(self, request: IndexRequest) -> str:
        if request.expression is None:
            raise Invalid(f"{request.what}: expected an expression, such as 'lower(name)'")
        if request.kind not in _REQUESTS:
            raise Invalid(
                f"build_index('{request.kind}', expression={request.expression!r}): expected {', '.join(_REQUESTS)}, "
                "of which one can be on an expression"
            )
        return f"{request.table_version.expression_prefix}{request.index_name()}"

    def requested_definition(
        self, request: IndexRequest, contents: IndexContents, ready: Collection[str]
    ) -> IndexDefinition:
        assert request.expression is not None
        snapshot, flavour = contents.snapshot, BLOOM_FILTERS if request.kind == BLOOM_FILTERS else COLUMN_STATS
        asked = parse_indexed_expression(request.expression, snapshot.schema)
        if request.columns not in ((), (asked.column,)):
            raise Invalid(
                f"{request.what}: expected the column '{asked.column}' of {asked.text}, "
                f"found '{', '.join(request.columns)}'"
            )

        blooms = {short: request.options[name] for name, short in FILTER_OPTIONS.items() if name in request.options}
        options = {**asked.options, **(blooms if flavour == BLOOM_FILTERS else {})}
        version, partition = stats_version(request.table_version).name, self.requested_partition(request)
        made = expression_index_definition(partition, flavour, asked.function, asked.column, options, version)

        # Refuses an expression that cannot be computed here, or whose values the index cannot hold.
        expression_index(made, snapshot.schema_with_meta)
        _warn_of_filters(snapshot, made)
        return made

    def known(self, table: IndexedTable) -> list[TableIndex]:
        found = known_expressions(table.partitions, table.definitions, table.schema)
        before, now = table.schema_before() if found and table.schema_before else None, table.schema
        return [ExpressionTableIndex(one.partition, one, not keeps_values(one, before, now)) for one in found]

    def pruner(self, indexes: MetadataIndexes, snapshot: Snapshot) -> IndexPruner:
        return ExpressionPruner(MetadataExpressions(indexes, snapshot.schema_with_meta))

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        """Covers the newest slices, and their partitions. Memory: the statistics, or the filters."""
        assert definition is not None
        index = expression_index(definition, contents.snapshot.schema_with_meta)
        change = initial_expression_change(contents.snapshot, requested, index, contents.readers)
        return InitialPartition(partition, [change], self.group_counts(contents, partition, definition))

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        return {None: contents.settings.expression_groups}


def _wanted(
    settings: IndexSettings, definitions: Mapping[str, IndexDefinition], table_version: TableVersion
) -> IndexDefinition | None:
    """The index on an expression that the options ask for; None if they ask for none.

    A table that has an index on this expression keeps it, whatever its name. A new index is named by
    `hoodie.index.name`, or else by its column, behind the prefix.
    Seen: 1.0.2, 1.2.0 (`HoodieTableMetadataUtil.getSecondaryOrExpressionIndexName`).
    """
    asked = settings.expression
    if asked is None:
        return None

    prefix = table_version.expression_prefix
    name = f"{prefix}{(asked.name or asked.column).removeprefix(prefix)}"
    version = stats_version(table_version).name
    made = expression_index_definition(name, asked.flavour, asked.function, asked.column, asked.options, version)

    alike = (one.name for one in definitions.values() if is_expression_index(one.name) and is_alike(one, made))
    return replace(made, name=next(alike, name))


def _warn_of_filters(snapshot: Snapshot, definition: IndexDefinition) -> None:
    """Warn that new filters of an expression keep Apache Hudi from writing to a merge-on-read table.

    Seen: 1.0.2 and 1.2.0 make a filter for each log file, and fail at it, in tables that they made, too.
    """
    if snapshot.config.table_type == "MERGE_ON_READ" and definition.type == BLOOM_FILTERS:
        log.warning(
            "%s: with the index '%s', Bloom filters of an expression, Apache Hudi 1.0.2 and 1.2.0 cannot write to this "
            "merge-on-read table: they fail at their first log file; statistics of the expression keep them from "
            "nothing, drop_index('%s') lets them in again",
            snapshot.storage.location.uri, definition.name, definition.name,
        )  # fmt: skip


def _statistics_differences(
    check: IndexCheck, index: ExpressionIndex, partition: str, files: list[File]
) -> Iterator[Difference]:
    snapshot, field = check.snapshot, pa.field(index.source, index.type)
    read = read_expression_bounds(
        snapshot, files, index, snapshot.schema_with_meta, check.executor, evolution=snapshot.evolution,
        counts=snapshot.timeline.is_committed,
    )  # fmt: skip
    bounds = bounds_table(read, index.column)

    table = pa.table([[p for p, _, _ in files], [name for _, name, _ in files]], schema=FILES)
    of_files = read_column_stats(
        check.indexes, field, partitions=[partition], files=table, index=index.partition, as_stored=True
    )
    whole = read_partition_stats(check.indexes, field, partitions=[partition], index=index.partition, as_stored=True)
    known, known_whole = with_nulls(of_files), with_nulls(whole)
    assert known is not None
    assert known_whole is not None

    yield from beyond(index.partition, partition, index.column, bounds, known, "file")
    merged = merge_by_partition(bounds)
    yield from beyond(index.partition, partition, index.column, merged, known_whole, "partition")


def _filter_differences(
    check: IndexCheck, index: ExpressionIndex, partition: str, files: list[File]
) -> Iterator[Difference]:
    snapshot = check.snapshot
    known = read_bloom_filters(check.indexes, partition, [name for _, name, _ in files], index=index.partition)
    assert known is not None

    by_name = {file[1]: file for file in files}
    for row in known.to_pylist():
        bloom, file = usable_filter(row, index.partition), by_name[row["file"]]
        schema = snapshot.schema_with_meta
        missing = (
            0
            if bloom is None
            else count_unheld(
                snapshot,
                file,
                index,
                schema,
                bloom,
                evolution=snapshot.evolution,
                counts=snapshot.timeline.is_committed,
            )
        )
        if missing:
            yield Difference(
                index.partition, DifferenceKind.RECORD_VALUE, partition, f"{index.source} {row['file']}",
                stored=f"{missing:,} rows that the filter lacks",
            )  # fmt: skip
