"""Which indexes of the metadata table a writer wants, and how large their partitions are made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Self, TypeAlias

from pyhudi.errors import Invalid
from pyhudi.format.metadata_groups import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from pyhudi.metadata.index_facts import ChosenColumns
from pyhudi.model.option_values import OptionValues

_GLOBAL = "hoodie.metadata.global.record.level.index"
_PARTITIONED = "hoodie.metadata.record.level.index"
_RECORD_SIZE = 48

RecordIndexKind: TypeAlias = Literal["global", "partitioned"]

EXPRESSION = "hoodie.metadata.index.expression"
_FLAVOURS: Final[Mapping[str, str]] = {"COLUMN_STATS": COLUMN_STATS, "BLOOM_FILTERS": BLOOM_FILTERS}
_IDENTITY = "identity"

GROUPS_MAX = 10_000
"""File groups of one index at most. Each is a file that is made when the index is, so a table's properties could ask
for millions. Apache Hudi's own default ends here, too.
"""


def option_of(partition: str) -> str:
    """The option that switches an index on or off. `partition`: of the metadata table."""
    options = {
        COLUMN_STATS: "hoodie.metadata.index.column.stats.enable",
        PARTITION_STATS: "hoodie.metadata.index.partition.stats.enable",
        BLOOM_FILTERS: "hoodie.metadata.index.bloom.filter.enable",
        RECORD_INDEX: f"{_GLOBAL}.enable",
    }
    of_columns = partition.startswith(SECONDARY_INDEX_PREFIX)
    return options.get(partition, "hoodie.metadata.index.secondary.enable" if of_columns else f"{EXPRESSION}.enable")


@dataclass(frozen=True, slots=True)
class WantedExpression:
    """An index on an expression that writes are to build and keep. `flavour`: of what it is made, `column_stats` or
    `bloom_filters`. `options`: arguments of the function and, of filters, their shape. `name`: empty: its column's.
    """

    column: str
    function: str
    options: Mapping[str, str]
    flavour: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """`column_stats` to `secondary`: build it, drop it, or None: as the table has it. `expressions`: False: indexes on
    expressions are dropped; otherwise they stay as they are.

    `is_async`: what is to be built is left to an indexer, beside the writers. `columns`: that statistics are kept of.
    `secondary_columns`: of which a secondary index is to be there; `secondary_name`: what a new one is called, empty:
    as its column. `expression`: of which an index is to be there.
    File groups are counted at creation: those of record indexes by what the table holds, times `growth_factor`, in
    groups of `group_size_bytes`, within bounds; a data partition's own in a partitioned one.
    """

    column_stats: bool | None = None
    partition_stats: bool | None = None
    bloom_filters: bool | None = None
    global_record_index: bool | None = None
    partitioned_record_index: bool | None = None
    secondary: bool | None = None
    expressions: bool | None = None
    secondary_columns: tuple[str, ...] = ()
    secondary_name: str = ""
    expression: WantedExpression | None = None
    is_async: bool = False
    columns: ChosenColumns = field(default_factory=ChosenColumns)
    column_stats_groups: int = 2
    partition_stats_groups: int = 1
    bloom_filter_groups: int = 4
    expression_groups: int = 2
    global_groups: tuple[int, int] = (10, 10_000)
    partitioned_groups: tuple[int, int] = (1, 10)
    growth_factor: float = 2.0
    group_size_bytes: int = 1 << 30

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Raises: Invalid for a value that cannot be one, and for both kinds of a record index at once."""
        o, d = OptionValues(options), cls()
        asked = {
            "column_stats": _asked(options, option_of(COLUMN_STATS)),
            "partition_stats": _asked(options, option_of(PARTITION_STATS)),
            "bloom_filters": _asked(options, option_of(BLOOM_FILTERS)),
            "global_record_index": _asked(options, option_of(RECORD_INDEX)),
            "partitioned_record_index": _asked(options, f"{_PARTITIONED}.enable"),
            "secondary": _asked(options, "hoodie.metadata.index.secondary.enable"),
            "expressions": _asked(options, f"{EXPRESSION}.enable"),
        }
        if asked["global_record_index"] and asked["partitioned_record_index"]:
            raise Invalid(f"options '{_GLOBAL}.enable' and '{_PARTITIONED}.enable': expected one of them, found both")
        secondary_columns, secondary_name = _secondary(options)

        def groups(index: str, default: int) -> int:
            return o.count(f"{index}.file.group.count", default, most=GROUPS_MAX)

        return cls(
            **asked,
            is_async=o.flag("hoodie.metadata.index.async", d.is_async),
            secondary_columns=secondary_columns,
            secondary_name=secondary_name,
            expression=_expression(options) if asked["expressions"] else None,
            columns=ChosenColumns(
                _names(options, "hoodie.metadata.index.column.stats.column.list"),
                o.count("hoodie.metadata.index.column.stats.max.columns.to.index", d.columns.count_max),
            ),
            column_stats_groups=groups("hoodie.metadata.index.column.stats", d.column_stats_groups),
            partition_stats_groups=groups("hoodie.metadata.index.partition.stats", d.partition_stats_groups),
            bloom_filter_groups=groups("hoodie.metadata.index.bloom.filter", d.bloom_filter_groups),
            expression_groups=groups(EXPRESSION, d.expression_groups),
            global_groups=_bounds(o, _GLOBAL, d.global_groups),
            partitioned_groups=_bounds(o, _PARTITIONED, d.partitioned_groups),
            growth_factor=o.factor("hoodie.metadata.record.index.growth.factor", d.growth_factor),
            group_size_bytes=o.count("hoodie.metadata.record.index.max.filegroup.size", d.group_size_bytes),
        )

    @property
    def record_index(self) -> bool | None:
        """Whether one of either kind is to be there; None: as the table has it."""
        asked = (self.global_record_index, self.partitioned_record_index)
        return True if True in asked else False if False in asked else None

    @property
    def switched(self) -> dict[str, bool | None]:
        """What the options say of partitions of the metadata table that have one of their own."""
        return {
            COLUMN_STATS: self.column_stats, PARTITION_STATS: self.partition_stats,
            BLOOM_FILTERS: self.bloom_filters, RECORD_INDEX: self.record_index,
        }  # fmt: skip

    def switched_off_by(self, partition: str) -> str:
        """The option because of which every write drops this index; empty for none."""
        of_columns = partition.startswith(SECONDARY_INDEX_PREFIX)
        if self.switched.get(partition, self.secondary if of_columns else self.expressions) is not False:
            return ""
        by_other_kind = partition == RECORD_INDEX and self.global_record_index is None
        return f"{_PARTITIONED}.enable" if by_other_kind else option_of(partition)

    def group_count(self, record_count: int, kind: RecordIndexKind) -> int:
        """How many file groups a record index, or a data partition's part of one, gets for so many keys.

        Spec: format/metadata-table.md section 3.
        """
        least, most = self.global_groups if kind == "global" else self.partitioned_groups
        if least == most:
            return least
        per_group = max(1, self.group_size_bytes // _RECORD_SIZE)
        wanted = -(-int(record_count * self.growth_factor) // per_group)
        return max(least, min(wanted, most))


def _names(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in options.get(name, "").split(",") if one.strip())


def _secondary(options: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Columns, and the name of the index: of one column only."""
    columns, name = (
        _names(options, "hoodie.metadata.index.secondary.column"),
        options.get("hoodie.index.name", "").strip(),
    )
    if name and len(columns) > 1:
        raise Invalid(
            f"option 'hoodie.index.name'='{name}': expected one column in hoodie.metadata.index.secondary.column, "
            f"found {', '.join(columns)}"
        )
    return columns, name


def _expression(options: Mapping[str, str]) -> WantedExpression | None:
    """Of one column, as Apache Hudi has it from 1.0.1 on. Seen: it splits the options at each comma, and takes what
    stands behind the first `=` as it is; quotes, as in its own example, are taken off here.
    """
    column, told = options.get(f"{EXPRESSION}.column", "").strip(), options.get(f"{EXPRESSION}.options", "").strip()
    if not column:
        return None
    if not told:
        raise Invalid(f"option '{EXPRESSION}.column'='{column}': expected {EXPRESSION}.options, such as 'expr=lower'")
    arguments = {}
    for pair in told.split(","):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise Invalid(
                f"option '{EXPRESSION}.options'='{told}': expected name=value, parted by commas, found '{pair}'"
            )
        text = value.strip()
        is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
        arguments[name.strip()] = text[1:-1] if is_quoted else text
    function = arguments.pop("expr", _IDENTITY)
    kind = OptionValues(options).choice("hoodie.expression.index.type", "COLUMN_STATS", tuple(_FLAVOURS))
    return WantedExpression(column, function, arguments, _FLAVOURS[kind], options.get("hoodie.index.name", "").strip())


def _asked(options: Mapping[str, str], name: str) -> bool | None:
    return OptionValues(options).flag(name, False) if options.get(name, "").strip() else None


def _bounds(o: OptionValues, prefix: str, default: tuple[int, int]) -> tuple[int, int]:
    least = o.count(f"{prefix}.min.filegroup.count", default[0], most=GROUPS_MAX)
    most = o.count(f"{prefix}.max.filegroup.count", default[1], most=GROUPS_MAX)
    if least > most:
        raise Invalid(f"option '{prefix}.min.filegroup.count'={least:,}: expected at most the maximum of {most:,}")
    return least, most
