"""Which indexes a table's metadata table has, as far as they can be kept true."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.format.index_definitions import IndexDefinition
from pyhudi.format.metadata_groups import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
    MetadataGroupId,
)
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.metadata.derive_stats import StatsFacts
from pyhudi.metadata.expression_index import ExpressionIndex
from pyhudi.metadata.kinds.column_stats import own_columns, stats_facts
from pyhudi.metadata.kinds.expression import known_expressions
from pyhudi.metadata.kinds.settings import ChosenColumns
from pyhudi.metadata.table import MetadataTable


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    """`partition`: of the metadata table.

    `is_second_version`: its definition is of version V2: keys are placed by their values alone, and rows whose value
    is null are in it, which before they are not.
    """

    partition: str
    column: str
    is_second_version: bool


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """The indexes beside `files` that are kept true."""

    table_version: int
    has_bloom_filters: bool = False
    has_record_index: bool = False
    is_partitioned: bool = False
    secondary: tuple[SecondaryIndex, ...] = ()
    stats: StatsFacts | None = None
    expressions: tuple[ExpressionIndex, ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """Those of the metadata table, sorted, `files` among them."""
        named = [
            *([COLUMN_STATS] if self.stats is not None else []),
            *([PARTITION_STATS] if self.stats is not None and self.stats.of_partitions else []),
            *([BLOOM_FILTERS] if self.has_bloom_filters else []),
            *([RECORD_INDEX] if self.has_record_index else []),
            *(index.partition for index in self.secondary),
            *(index.partition for index in self.expressions),
        ]
        return tuple(sorted([FILES, *named]))

    @property
    def hashed_by_prefix(self) -> frozenset[str]:
        """Secondary indexes whose keys are placed by their values alone."""
        return frozenset(index.partition for index in self.secondary if index.is_second_version)


def index_facts(
    table: MetadataTable,
    partitions: tuple[str, ...],
    definitions: Mapping[str, IndexDefinition],
    schema: pa.Schema,
    chosen: ChosenColumns,
) -> IndexFacts:
    """What of these partitions of the metadata table can be kept true.

    A secondary index can where it is defined over one column of today's `schema` whose values have a text, and record
    keys are unique in the table, not only in partitions; one on an expression where that can be computed.
    One list request where there is a record index.
    """
    version = table.config.version
    secondary = []
    for name in sorted(name for name in partitions if name.startswith(SECONDARY_INDEX_PREFIX)):
        of = definitions.get(name)
        if of is not None and len(of.source_fields) == 1 and can_be_secondary(schema, of.source_fields[0]):
            secondary.append(SecondaryIndex(name, of.source_fields[0], of.is_second_version))
    has_record_index = RECORD_INDEX in partitions
    is_partitioned = has_record_index and _is_partitioned(table, definitions)
    return IndexFacts(
        version,
        has_bloom_filters=BLOOM_FILTERS in partitions,
        has_record_index=has_record_index,
        is_partitioned=is_partitioned,
        stats=_stats_facts(version, partitions, definitions, schema, chosen),
        secondary=() if is_partitioned else tuple(secondary),
        expressions=known_expressions(partitions, definitions, schema),
    )


def _stats_facts(
    table_version: int,
    partitions: tuple[str, ...],
    definitions: Mapping[str, IndexDefinition],
    schema: pa.Schema,
    chosen: ChosenColumns,
) -> StatsFacts | None:
    """Partitions' statistics are kept where those of all columns that the index has can be made anew."""
    if COLUMN_STATS not in partitions:
        return None
    own = definitions.get(COLUMN_STATS)
    facts = stats_facts(table_version, own, chosen)
    able = {column.name for column in facts.columns(schema)}
    return replace(facts, of_partitions=PARTITION_STATS in partitions and able >= {*own_columns(own)})


def can_be_secondary(schema: pa.Schema, column: str) -> bool:
    """Whether a column's values have a text that Apache Hudi would spell alike, whatever stores them."""
    if column not in schema.names:
        return False
    kind = schema.field(column).type
    return pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind)


def _is_partitioned(table: MetadataTable, definitions: Mapping[str, IndexDefinition]) -> bool:
    if RECORD_INDEX in definitions:
        return definitions[RECORD_INDEX].is_partitioned
    for file in table.storage.list(RECORD_INDEX):
        name = file.path.rpartition("/")[2]
        parsed = BaseFileName.parse(name) or LogFileName.parse(name)
        of = MetadataGroupId.parse(parsed.file_id, partition=RECORD_INDEX) if parsed is not None else None
        if of is not None:
            return of.data_partition is not None
    return False
