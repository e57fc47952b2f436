"""An index on an expression: its column, what is computed of the column's values, and the form that is stored."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast, get_args

import pyarrow as pa

from pyhudi.errors import Invalid, Unsupported
from pyhudi.format.keys.bloom import (
    ENTRIES_DEFAULT,
    ENTRIES_MAX_DEFAULT,
    FALSE_POSITIVE_RATE_DEFAULT,
    BloomFilter,
    BloomKind,
)
from pyhudi.format.metadata.groups import BLOOM_FILTERS, COLUMN_STATS, EXPRESSION_INDEX_PREFIX, FUNCTIONAL_INDEX_PREFIX
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.metadata.stats_values import StatsVersion
from pyhudi.metadata.derive.column_bounds import IndexedColumn
from pyhudi.predicate.nodes import Node, type_of
from pyhudi.predicate.types import is_integer
from pyhudi.table.prune.indexed_expression import (
    EXPRESSION_OPTION,
    IndexedExpression,
    expression_node,
    has_order,
    has_text,
)

log = logging.getLogger("pyhudi")

EXPRESSION_PREFIXES: Final = (EXPRESSION_INDEX_PREFIX, FUNCTIONAL_INDEX_PREFIX)
_BLOOM_OPTIONS: Final = ("filtertype", "numentries", "fpp", "maxentries")


@dataclass(frozen=True, slots=True)
class BloomShape:
    """How new filters are made. Seen: the options of 1.0.2's definitions, and its defaults."""

    kind: BloomKind = "DYNAMIC_V0"
    entries: int = ENTRIES_DEFAULT
    false_positive_rate: float = FALSE_POSITIVE_RATE_DEFAULT
    entries_max: int = ENTRIES_MAX_DEFAULT

    def create(self) -> BloomFilter:
        return BloomFilter.create(
            self.kind, entries=self.entries, false_positive_rate=self.false_positive_rate, entries_max=self.entries_max
        )


@dataclass(frozen=True, slots=True)
class ExpressionIndex:
    """`partition`: of the metadata table. `source`: the column. `node`: what is computed of its values. `type`: of the
    computed values. `bloom`: the shape of the filters; None for an index of statistics.
    """

    partition: str
    source: str
    node: Node
    version: StatsVersion
    bloom: BloomShape | None = None

    @property
    def type(self) -> pa.DataType:
        return type_of(self.node)

    @property
    def column(self) -> IndexedColumn:
        """The name and type under which bounds are stored.

        Seen: the name is the column's, the type the expression's. 1.2.0 merges the bounds of all files of a partition,
        and refuses those of another type, NULL too.
        """
        return IndexedColumn(self.source, self.type, types_empty_files=True)


def is_expression_index(partition: str) -> bool:
    return partition.startswith(EXPRESSION_PREFIXES)


def is_alike(one: IndexDefinition, other: IndexDefinition) -> bool:
    """Whether two definitions describe the same index, whatever their names."""
    return _key(one) == _key(other)


def _key(definition: IndexDefinition) -> tuple[object, ...]:
    return definition.type.lower(), definition.source_fields, definition.function, dict(definition.options)


def expression_index(definition: IndexDefinition, schema: pa.Schema) -> ExpressionIndex:
    """The index that a definition describes, on a table of these columns.

    Raises: Invalid for a definition that does not fit the table or says what nobody knows; Unsupported for an
    expression that is not computed here, or whose values such an index cannot hold.
    """
    what = f"index '{definition.name}'"
    if len(definition.source_fields) != 1:
        raise Invalid(f"{what}: expected one column, found {', '.join(definition.source_fields) or 'none'}")

    blooms = {name: text for name, text in definition.options.items() if name in _BLOOM_OPTIONS}
    rest = {name: text for name, text in definition.options.items() if name not in (*blooms, EXPRESSION_OPTION)}

    expression = IndexedExpression(definition.function, definition.source_fields[0], rest)
    node = expression_node(expression, schema)
    kind, version = type_of(node), StatsVersion.V2 if definition.is_second_version else StatsVersion.V1

    match definition.type.lower():  # Seen: 1.0.2 and 1.2.0 write it as the options of a write say it
        case "column_stats":
            if blooms:
                raise Invalid(f"{what}: expected no {', '.join(blooms)} for an index of statistics")
            _require(has_order(kind), what, expression, kind, COLUMN_STATS)
            return ExpressionIndex(definition.name, expression.column, node, version)
        case "bloom_filters":
            _require(has_text(kind), what, expression, kind, BLOOM_FILTERS)
            return ExpressionIndex(definition.name, expression.column, node, version, _bloom_shape(what, blooms))
    raise Invalid(f"{what}: expected an index of {COLUMN_STATS} or {BLOOM_FILTERS}, found '{definition.type}'")


def known_expressions(
    partitions: Iterable[str], definitions: Mapping[str, IndexDefinition], schema: pa.Schema
) -> tuple[ExpressionIndex, ...]:
    """The indexes on expressions among these partitions that can be computed of these columns; the log names others."""
    found = []
    for name in sorted(name for name in partitions if is_expression_index(name) and name in definitions):
        try:
            found.append(expression_index(definitions[name], schema))
        except (Invalid, Unsupported) as error:
            log.info("%s", error)
    return tuple(found)


def keeps_values(index: ExpressionIndex, before: pa.Schema | None, now: pa.Schema) -> bool:
    """Whether the values that are stored are those which the column has in its type of now. `before`: None: the same.

    A whole number has the same in a wider type. In others it may have other ones: `length` counts the characters of a
    text and the bytes of binary, and a large integer is rounded as a float.
    """
    if before is None or index.source not in before.names:
        return True
    old, new = before.field(index.source).type, now.field(index.source).type
    return old == new or (is_integer(old) and is_integer(new) and old.bit_width < new.bit_width)


def _require(fits: bool, what: str, expression: IndexedExpression, kind: pa.DataType, flavour: str) -> None:
    if not fits:
        raise Unsupported(f"{what}: {expression.text} is {kind}, of which this release keeps no {flavour} in an index")


def _bloom_shape(what: str, options: Mapping[str, str]) -> BloomShape:
    made = BloomShape()
    kind = options.get("filtertype", made.kind)
    if kind not in get_args(BloomKind):
        raise Invalid(f"{what}: filtertype '{kind}': expected {' or '.join(get_args(BloomKind))}")

    try:
        shape = BloomShape(
            cast(BloomKind, kind), int(options.get("numentries", made.entries)),
            float(options.get("fpp", made.false_positive_rate)), int(options.get("maxentries", made.entries_max)),
        )  # fmt: skip
    except ValueError as error:
        raise Invalid(f"{what}: {error}") from error

    shape.create()
    return shape
