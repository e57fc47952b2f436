"""What `build_index` is asked for, as a partition of the metadata table with its definition."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.index_definitions import IndexDefinition, record_index_definition
from pyhudi.format.metadata_groups import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from pyhudi.metadata.index_facts import ChosenColumns
from pyhudi.services.index_contents import IndexContents, secondary_partition
from pyhudi.write.metadata import by_name

IndexKind: TypeAlias = Literal[
    "column_stats", "partition_stats", "bloom_filters", "record_index", "partitioned_record_index", "secondary_index"
]
_NAME = re.compile(r"[A-Za-z0-9_]+")
_KINDS = ", ".join(f"'{kind}'" for kind in get_args(IndexKind))


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """`columns`: of column statistics those to keep them of, none: the first ones; of a secondary index the one.
    `name`: of a secondary index; None: its column's.
    """

    kind: str
    columns: tuple[str, ...] = ()
    name: str | None = None
    expression: str | None = None

    @property
    def partition(self) -> str:
        """Of the metadata table. Raises: Invalid, Unsupported for a kind, or an argument, that there is not."""
        if self.kind in ("expr_index", "expression_index", "func_index") or self.expression is not None:
            raise Unsupported(
                f"build_index('{self.kind}'): this release neither builds nor keeps an index on an expression; build a "
                "secondary index, or column statistics, on a column that holds the value"
            )
        match self.kind:
            case "secondary_index":
                return secondary_partition(self._name())
            case "record_index" | "partitioned_record_index":
                self._refuse_arguments(has_columns=False)
                return RECORD_INDEX
            case "partition_stats" | "bloom_filters":
                self._refuse_arguments(has_columns=False)
                return PARTITION_STATS if self.kind == "partition_stats" else BLOOM_FILTERS
            case "column_stats":
                self._refuse_arguments(has_columns=True)
                return COLUMN_STATS
        raise Invalid(f"build_index('{self.kind}'): expected one of {_KINDS}")

    def _name(self) -> str:
        if len(self.columns) != 1:
            found = ", ".join(self.columns) or "none"
            raise Invalid(f"build_index('secondary_index'): expected one column, found {found}")
        name = self.name if self.name is not None else self.columns[0]
        if not _NAME.fullmatch(name):
            raise Invalid(f"index name '{name}': expected letters, digits and underscores")
        return name

    def _refuse_arguments(self, *, has_columns: bool) -> None:
        if self.name is not None:
            raise Invalid(f"build_index('{self.kind}', name='{self.name}'): expected no name; there is one such index")
        if self.columns and not has_columns:
            raise Invalid(f"build_index('{self.kind}'): expected no columns, found {', '.join(self.columns)}")


def define_index(request: IndexRequest, contents: IndexContents, ready: Collection[str]) -> IndexDefinition | None:
    """The definition of what is asked for, held against the table; None for a kind that has none.

    `ready`: the partitions that the metadata table has.
    Raises: Invalid for a column that is not there or has no values that the index could hold, and for an index that
    another one has to be there for.
    """
    what, partition = f"build_index('{request.kind}')", request.partition
    if by_name.names_slices(contents.snapshot.config):
        if request.columns:
            raise Invalid(
                f"{what}: expected no columns, for tables of version {contents.snapshot.config.version} do not store "
                f"them, found {', '.join(request.columns)}; set hoodie.metadata.index.column.stats.column.list instead"
            )
        is_partitioned = request.kind == "partitioned_record_index"
        by_name.refuse_indexes(contents.snapshot.config, (partition,), is_partitioned=is_partitioned)
        return None
    if partition == RECORD_INDEX:
        return record_index_definition(is_partitioned=request.kind == "partitioned_record_index")
    if partition == PARTITION_STATS and COLUMN_STATS not in ready:
        raise Invalid(f"{what}: expected column statistics, of which it is made; build 'column_stats' first")
    if partition == COLUMN_STATS:
        return _column_stats(what, request, contents)
    if not partition.startswith(SECONDARY_INDEX_PREFIX):
        return None
    definitions = contents.stored_definitions()
    record_index = definitions.get(RECORD_INDEX)
    if RECORD_INDEX not in ready or (record_index is not None and record_index.is_partitioned):
        raise Invalid(
            f"{what}: expected a global record index, which finds the rows of its keys; build 'record_index' first"
        )
    return contents.secondary_definition(partition, request.columns[0], option=f"{what}: columns")


def _column_stats(what: str, request: IndexRequest, contents: IndexContents) -> IndexDefinition | None:
    if not request.columns:
        return contents.definition(COLUMN_STATS)
    columns = ChosenColumns(request.columns, contents.settings.columns.count_max)
    chosen = replace(contents, settings=replace(contents.settings, columns=columns)).definition(COLUMN_STATS)
    assert chosen is not None
    for column in request.columns:
        if column not in chosen.source_fields:
            schema = contents.snapshot.schema
            have = ", ".join(schema.names) or "none yet"
            is_there = column.partition(".")[0] in schema.names
            found = "whose values have no bounds" if is_there else f"that the table does not have: it has {have}"
            raise Invalid(f"{what}: expected columns with bounds, found '{column}' {found}")
    return chosen
