"""What `build_index` is asked for, as a partition of the metadata table with its definition."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, get_args

from pyhudi.errors import Invalid
from pyhudi.format.index_definitions import (
    IndexDefinition,
    expression_index_definition,
    record_index_definition,
)
from pyhudi.format.metadata_groups import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from pyhudi.metadata.expression_index import expression_index, is_expression_index
from pyhudi.metadata.index_facts import ChosenColumns, stats_version
from pyhudi.model.versions import NEW_TABLE_VERSION, VERSIONS, TableVersion
from pyhudi.services.index_contents import IndexContents, secondary_partition, warn_of_filters
from pyhudi.table.indexed_expression import parse_indexed_expression
from pyhudi.write.metadata import by_name

IndexKind: TypeAlias = Literal[
    "column_stats", "partition_stats", "bloom_filters", "record_index", "partitioned_record_index", "secondary_index",
    "expr_index",
]  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9_]+")
_EXPRESSION_KINDS: Final = ("expr_index", COLUMN_STATS, BLOOM_FILTERS)
_BLOOM_OPTIONS: Final = {
    "hoodie.bloom.index.filter.type": "filtertype",
    "hoodie.index.bloom.num_entries": "numentries",
    "hoodie.index.bloom.fpp": "fpp",
    "hoodie.bloom.index.filter.dynamic.max.entries": "maxentries",
}
"""What the options may say of the filters of an index on an expression -> the option of its definition."""
_KINDS = ", ".join(f"'{kind}'" for kind in get_args(IndexKind))


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """`columns`: of column statistics those to keep them of, none: the first ones; of a secondary index the one; of an
    index on an `expression` the one that it is of, if any is named. `name`: of the latter two; None: their column's.
    `options`: of the call and the table.
    """

    kind: str
    columns: tuple[str, ...] = ()
    name: str | None = None
    expression: str | None = None
    table_version: TableVersion = VERSIONS[NEW_TABLE_VERSION]
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def partition(self) -> str:
        """Of the metadata table. Raises: Invalid for a kind, or an argument, that there is not."""
        if self.expression is not None and self.kind not in _EXPRESSION_KINDS:
            raise Invalid(
                f"build_index('{self.kind}', expression={self.expression!r}): expected {', '.join(_EXPRESSION_KINDS)}, "
                "of which one can be on an expression"
            )
        if self.expression is not None:
            return f"{self.table_version.expression_prefix}{self._name()}"
        match self.kind:
            case "expr_index":
                raise Invalid("build_index('expr_index'): expected an expression, such as 'lower(name)'")
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
        if len(self.columns) != 1 and (self.expression is None or self.columns or self.name is None):
            found = ", ".join(self.columns) or "none"
            raise Invalid(f"build_index('{self.kind}'): expected one column, found {found}")
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
    if not contents.snapshot.config.version.has_index_definitions:
        if request.columns:
            raise Invalid(
                f"{what}: expected no columns, for tables of version {contents.snapshot.config.version} do not store "
                f"them, found {', '.join(request.columns)}; set hoodie.metadata.index.column.stats.column.list instead"
            )
        is_partitioned = request.kind == "partitioned_record_index"
        by_name.refuse_indexes(contents.snapshot.config, (partition,), is_partitioned=is_partitioned)
        return None
    if is_expression_index(partition):
        return _on_expression(what, request, contents)
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


def _on_expression(what: str, request: IndexRequest, contents: IndexContents) -> IndexDefinition:
    assert request.expression is not None
    snapshot, flavour = contents.snapshot, BLOOM_FILTERS if request.kind == BLOOM_FILTERS else COLUMN_STATS
    of = parse_indexed_expression(request.expression, snapshot.schema)
    if request.columns not in ((), (of.column,)):
        raise Invalid(f"{what}: expected the column '{of.column}' of {of.text}, found '{', '.join(request.columns)}'")
    blooms = {short: request.options[name] for name, short in _BLOOM_OPTIONS.items() if name in request.options}
    options = {**of.options, **(blooms if flavour == BLOOM_FILTERS else {})}
    version = stats_version(request.table_version).name
    made = expression_index_definition(request.partition, flavour, of.function, of.column, options, version)
    expression_index(made, snapshot.schema_with_meta)
    warn_of_filters(snapshot, made)
    return made


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
