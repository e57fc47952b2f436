"""Which indexes of the metadata table a writer wants, and how large their partitions are made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Self, TypeAlias

from pyhudi.errors import Invalid
from pyhudi.format.metadata.groups import BLOOM_FILTERS, COLUMN_STATS
from pyhudi.options.values import OptionValues, count, factor, flag

COLUMN_STATS_OPTION: Final = "hoodie.metadata.index.column.stats.enable"
PARTITION_STATS_OPTION: Final = "hoodie.metadata.index.partition.stats.enable"
BLOOM_FILTERS_OPTION: Final = "hoodie.metadata.index.bloom.filter.enable"
SECONDARY_OPTION: Final = "hoodie.metadata.index.secondary.enable"
SECONDARY_COLUMN_OPTION: Final = "hoodie.metadata.index.secondary.column"
EXPRESSION: Final = "hoodie.metadata.index.expression"
EXPRESSION_OPTION: Final = f"{EXPRESSION}.enable"
EXPRESSION_COLUMN_OPTION: Final = f"{EXPRESSION}.column"
_GLOBAL: Final = "hoodie.metadata.global.record.level.index"
_PARTITIONED: Final = "hoodie.metadata.record.level.index"
GLOBAL_RECORD_INDEX_OPTION: Final = f"{_GLOBAL}.enable"
PARTITIONED_RECORD_INDEX_OPTION: Final = f"{_PARTITIONED}.enable"
_RECORD_SIZE = 48

RecordIndexForm: TypeAlias = Literal["global", "partitioned"]

_FLAVOURS: Final[Mapping[str, str]] = {"COLUMN_STATS": COLUMN_STATS, "BLOOM_FILTERS": BLOOM_FILTERS}
_IDENTITY = "identity"

GROUPS_MAX = 10_000
"""The most file groups that one index may have. Each is a file that is made with the index. Without this bound a
table's properties could ask for millions. Apache Hudi's own default ends at the same number.
"""


@dataclass(frozen=True, slots=True)
class ChosenColumns:
    """The columns that the options ask statistics of: those named, or else the first `count_max`."""

    names: tuple[str, ...] = ()
    count_max: int = 32


@dataclass(frozen=True, slots=True)
class WantedExpression:
    """An index on an expression that writes build and keep.

    `flavour`: what the index is made of, `column_stats` or `bloom_filters`. `options`: arguments of the function and,
    for filters, their shape. `name`: empty: the column's name.
    """

    column: str
    function: str
    options: Mapping[str, str]
    flavour: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Which indexes a writer wants. `column_stats` to `secondary`: True: build it; False: drop it; None: leave it as it
    is. `expressions`: False: drop the indexes on expressions; otherwise they stay.

    `is_async`: an indexer beside the writers builds what is to be built. `columns`: those that have statistics.
    `secondary_columns`: each gets a secondary index. `secondary_name`: name of a new one; empty: the column's name.
    `expression`: gets an index.
    The number of file groups is chosen when an index is made. A record index has groups of `group_size_bytes`, enough
    for the table's keys times `growth_factor`, within bounds. A partitioned one counts each data partition by itself.
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
    is_async: bool = flag("hoodie.metadata.index.async", False)
    columns: ChosenColumns = field(default_factory=ChosenColumns)
    column_stats_groups: int = 2
    partition_stats_groups: int = 1
    bloom_filter_groups: int = 4
    expression_groups: int = 2
    global_groups: tuple[int, int] = (10, 10_000)
    partitioned_groups: tuple[int, int] = (1, 10)
    growth_factor: float = factor("hoodie.metadata.record.index.growth.factor", 2.0)
    group_size_bytes: int = count("hoodie.metadata.record.index.max.filegroup.size", 1 << 30)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Raises: Invalid for a value that cannot be one, and for both kinds of a record index at once."""
        o, d = OptionValues(options), cls()
        global_record_index = _asked(options, GLOBAL_RECORD_INDEX_OPTION)
        partitioned_record_index = _asked(options, PARTITIONED_RECORD_INDEX_OPTION)
        if global_record_index and partitioned_record_index:
            raise Invalid(
                f"options '{GLOBAL_RECORD_INDEX_OPTION}' and '{PARTITIONED_RECORD_INDEX_OPTION}': "
                "expected one of them, found both"
            )

        expressions = _asked(options, EXPRESSION_OPTION)
        secondary_columns, secondary_name = _secondary(options)

        def groups(index: str, default: int) -> int:
            return o.count(f"{index}.file.group.count", default, most=GROUPS_MAX)

        return cls(
            **o.fields(cls),
            column_stats=_asked(options, COLUMN_STATS_OPTION),
            partition_stats=_asked(options, PARTITION_STATS_OPTION),
            bloom_filters=_asked(options, BLOOM_FILTERS_OPTION),
            global_record_index=global_record_index,
            partitioned_record_index=partitioned_record_index,
            secondary=_asked(options, SECONDARY_OPTION),
            expressions=expressions,
            secondary_columns=secondary_columns,
            secondary_name=secondary_name,
            expression=_expression(options) if expressions else None,
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
        )

    @property
    def record_index(self) -> bool | None:
        """Whether one of either kind is to be there; None: as the table has it."""
        asked = (self.global_record_index, self.partitioned_record_index)
        return True if True in asked else False if False in asked else None

    def group_count(self, record_count: int, kind: RecordIndexForm) -> int:
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
    """The columns that get secondary indexes, and the index's name, which can be told for one column only."""
    columns, name = (
        _names(options, SECONDARY_COLUMN_OPTION),
        options.get("hoodie.index.name", "").strip(),
    )
    if name and len(columns) > 1:
        raise Invalid(
            f"option 'hoodie.index.name'='{name}': expected one column in hoodie.metadata.index.secondary.column, "
            f"found {', '.join(columns)}"
        )
    return columns, name


def _expression(options: Mapping[str, str]) -> WantedExpression | None:
    """The index on an expression that the options ask for: on one column, as in Apache Hudi from 1.0.1 on.

    Seen: Apache Hudi splits the options at each comma, and takes what stands behind the first `=` as it is. Its own
    example has quotes there; here they are taken off.
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
