"""Which indexes a table's metadata table has, as far as they can be kept true."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.errors import Invalid, Unsupported
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
from pyhudi.format.schema import META_FIELDS
from pyhudi.format.stats_values import StatsVersion
from pyhudi.metadata.derive_stats import StatsFacts
from pyhudi.metadata.expression_index import ExpressionIndex, expression_index, is_expression_index
from pyhudi.metadata.table import MetadataTable
from pyhudi.model.versions import TableVersion

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class ChosenColumns:
    """Of which columns the options ask for statistics: these, or so many of the first ones."""

    names: tuple[str, ...] = ()
    count_max: int = 32


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

    table_version: TableVersion
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


def known_expressions(
    partitions: Iterable[str], definitions: Mapping[str, IndexDefinition], schema: pa.Schema
) -> tuple[ExpressionIndex, ...]:
    """Of these partitions the indexes on expressions that can be computed of these columns; of others the log tells."""
    found = []
    for name in sorted(name for name in partitions if is_expression_index(name) and name in definitions):
        try:
            found.append(expression_index(definitions[name], schema))
        except (Invalid, Unsupported) as error:
            log.info("%s", error)
    return tuple(found)


def _stats_facts(
    table_version: TableVersion,
    partitions: tuple[str, ...],
    definitions: Mapping[str, IndexDefinition],
    schema: pa.Schema,
    chosen: ChosenColumns,
) -> StatsFacts | None:
    """Partitions' statistics are kept where those of all columns that the index has can be made anew."""
    if COLUMN_STATS not in partitions:
        return None
    of = definitions.get(COLUMN_STATS)
    version = stats_version(table_version) if of is None or of.version is None else StatsVersion[of.version]
    own = () if of is None else tuple(name for name in of.source_fields if name not in META_FIELDS)
    facts = StatsFacts(version, table_version, own or chosen.names, chosen.count_max)
    able = {column.name for column in facts.columns(schema)}
    return replace(facts, of_partitions=PARTITION_STATS in partitions and able >= {*own})


def stats_version(table_version: TableVersion) -> StatsVersion:
    """How a new index of column statistics stores bounds."""
    return StatsVersion[table_version.index_version]


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
