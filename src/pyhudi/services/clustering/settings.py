"""The settings of clustering: which file slices it takes, what it makes of them, and when it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self, get_args

from pyhudi.errors import Invalid
from pyhudi.options.table_facts import short_class_name
from pyhudi.options.values import OptionValues, count, factor, flag
from pyhudi.predicate.patterns import checked_java_regex
from pyhudi.table.facts.bucket_facts import RING_COUNT_MAX
from pyhudi.write.handles.compression import Compression, chosen_compression
from pyhudi.write.place.curves import Curve

STRATEGY: Final = "hoodie.clustering.plan.strategy.class"
EXECUTION: Final = "hoodie.clustering.execution.strategy.class"
FILTER: Final = "hoodie.clustering.plan.partition.filter.mode"
CURVE: Final = "hoodie.layout.optimize.strategy"
ORDER: Final = "hoodie.clustering.plan.strategy.file.slices.sort.by"
SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"
BEGIN_PARTITION: Final = "hoodie.clustering.plan.strategy.cluster.begin.partition"
END_PARTITION: Final = "hoodie.clustering.plan.strategy.cluster.end.partition"
REGEX: Final = "hoodie.clustering.plan.strategy.partition.regex.pattern"
SELECTED: Final = "hoodie.clustering.plan.strategy.partition.selected"
BUCKETS_MAX: Final = "hoodie.bucket.index.max.num.buckets"
BUCKETS_MIN: Final = "hoodie.bucket.index.min.num.buckets"
RESIZING_STRATEGY: Final = "SparkConsistentBucketClusteringPlanStrategy"
"""The strategy of Apache Hudi that resizes rings of buckets. Tables with rings are always resized, whatever is asked.
"""

SORT_AND_SIZE: Final = "SparkSortAndSizeExecutionStrategy"
SINGLE_FILE_SORT: Final = "SparkSingleFileSortExecutionStrategy"
"""By this strategy of Apache Hudi each file slice is sorted in itself, and stays one file of whatever size."""
STREAM_COPY: Final = "SparkStreamCopyClusteringExecutionStrategy"
_SINGLE_FILE_PLANS: Final = "SparkSingleFileSortPlanStrategy"
_STREAM_COPY_PLANS: Final = "SparkStreamCopyClusteringPlanStrategy"

_EXECUTIONS: Final[Mapping[str, str]] = {
    SORT_AND_SIZE: SORT_AND_SIZE,
    SINGLE_FILE_SORT: SINGLE_FILE_SORT,
    STREAM_COPY: STREAM_COPY,
    "SparkBinaryCopyClusteringExecutionStrategy": "SparkBinaryCopyClusteringExecutionStrategy",
    "JavaSortAndSizeExecutionStrategy": SORT_AND_SIZE,
    # Plans that resize rings name their strategy themselves.
    "SparkConsistentBucketClusteringExecutionStrategy": SORT_AND_SIZE,
    "SingleSparkJobConsistentHashingExecutionStrategy": SORT_AND_SIZE,
}
"""The strategies that carry plans out, by the names of Apache Hudi's classes, with those that our plans then name."""

_CURVES: Final[Mapping[str, Curve]] = {name.replace("-", ""): name for name in get_args(Curve)}


class PartitionFilter(StrEnum):
    """Which partitions a clustering looks into.

    RECENT_DAYS: the last ones by their paths. SELECTED: a range of paths. DAY_ROLLING: each hour of the day another
    share of them.
    """

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


class SliceOrder(StrEnum):
    """What decides which file slices of a partition come into one group.

    SIZE: the largest first. INSTANT_TIME: those first whose base file was written first.
    """

    SIZE = "SIZE"
    INSTANT_TIME = "INSTANT_TIME"


_STRATEGIES: Final[Mapping[str, PartitionFilter | None]] = {
    "SparkSizeBasedClusteringPlanStrategy": None,
    "JavaSizeBasedClusteringPlanStrategy": None,
    "SparkRecentDaysClusteringPlanStrategy": PartitionFilter.RECENT_DAYS,
    "JavaRecentDaysClusteringPlanStrategy": PartitionFilter.RECENT_DAYS,
    "SparkSelectedPartitionsClusteringPlanStrategy": PartitionFilter.SELECTED,
    _SINGLE_FILE_PLANS: None,
    _STREAM_COPY_PLANS: None,
    RESIZING_STRATEGY: None,
}
"""The strategies by the names of Apache Hudi's classes, with the filter that each of them sets.

Seen: 1.0.2 takes the second and third kind for the first, with this filter (`ClusteringPlanStrategy`).
"""


@dataclass(frozen=True, slots=True)
class ClusteringSettings:
    """Settings of clustering. Sizes are bytes of base files. The defaults are Apache Hudi's.

    `is_inline`: a clustering that is due follows each write. `is_scheduled_inline`: only its plan follows each write.
    `commits_max`: commits since the last clustering that make one due.
    `small_file_limit_bytes`: only file slices with smaller base files are taken. `group_size_bytes_max`: slices that
    are clustered together have so many bytes at most. `groups_max`: groups of slices in one plan. `file_size_bytes`:
    what a group is written to. `takes_single`: a slice may be a group by itself.
    `sort_columns`: rows are written in the order of these; none: in the order in which they are stored. `curve`: what
    that order is. `slice_orders`: the order in which slices come into groups.
    `execution`: the strategy that plans name; Apache Hudi carries them out by it. `takes_slices_alone`: each slice is a
    group by itself, and becomes one file. `asked_compression`: the codec that is asked for; None: row groups that are
    copied keep theirs.
    `partition_filter`, `begin_partition`, `end_partition`, `days`, `days_skipped`, `selected`, `partition_regex`: the
    partitions that are looked into. `begin_partition` and `end_partition` are in the range, and None is no bound.

    Of rings of buckets: `asks_for_rings`: the strategy that was asked for resizes rings. `split_factor`: a bucket is
    split if its file slice has more than so many times the largest size of a base file. `merge_factor`: neighbours are
    merged if each of them has at most so many times that size. `buckets_min`, `buckets_max`: how many buckets a
    partition keeps or gets; 0: as many as it began with.
    Spec: format/actions.md section 9; format/indexes.md section 5.
    """

    is_inline: bool = flag("hoodie.clustering.inline", False)
    is_scheduled_inline: bool = flag("hoodie.clustering.schedule.inline", False)
    commits_max: int = count("hoodie.clustering.inline.max.commits", 4)
    small_file_limit_bytes: int = count("hoodie.clustering.plan.strategy.small.file.limit", 314_572_800, least=0)
    group_size_bytes_max: int = count("hoodie.clustering.plan.strategy.max.bytes.per.group", 2_147_483_648)
    groups_max: int = count("hoodie.clustering.plan.strategy.max.num.groups", 30)
    file_size_bytes: int = count("hoodie.clustering.plan.strategy.target.file.max.bytes", 1_073_741_824)
    takes_single: bool = flag("hoodie.clustering.plan.strategy.single.group.clustering.enabled", True)
    sort_columns: tuple[str, ...] = ()
    curve: Curve = "linear"
    slice_orders: tuple[SliceOrder, ...] = (SliceOrder.SIZE,)
    execution: str = SORT_AND_SIZE
    takes_slices_alone: bool = False
    asked_compression: Compression | None = None
    partition_filter: PartitionFilter = PartitionFilter.NONE
    begin_partition: str | None = None
    end_partition: str | None = None
    days: int = count("hoodie.clustering.plan.strategy.daybased.lookback.partitions", 2, least=0)
    days_skipped: int = count("hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions", 0, least=0)
    selected: tuple[str, ...] = ()
    partition_regex: str = ""
    asks_for_rings: bool = False
    split_factor: float = factor("hoodie.bucket.index.split.threshold", 2.0)
    merge_factor: float = factor("hoodie.bucket.index.merge.threshold", 0.2)
    buckets_min: int = count(BUCKETS_MIN, 0, least=0, most=RING_COUNT_MAX)
    buckets_max: int = count(BUCKETS_MAX, 0, least=0, most=RING_COUNT_MAX)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """The settings that options ask for. Options that are not about clustering are ignored.

        Raises: Invalid for a bad value, naming the option, what was found and what was expected.
        """
        o, d = OptionValues(options), cls()
        strategy = short_class_name(options.get(STRATEGY, ""))
        named = OptionValues({STRATEGY: strategy}).choice(STRATEGY, next(iter(_STRATEGIES)), tuple(_STRATEGIES))
        execution = _execution(options, named)
        kinds = tuple(kind.value for kind in PartitionFilter)
        asked = PartitionFilter(o.choice(FILTER, d.partition_filter.value, kinds))

        curve = options.get(CURVE, "").strip().lower().replace("-", "")
        return cls(
            **o.fields(cls),
            sort_columns=_names(options.get(SORT_COLUMNS, "")),
            curve=_CURVES[OptionValues({CURVE: curve}).choice(CURVE, d.curve, tuple(_CURVES))],
            slice_orders=_orders(options.get(ORDER, "")) or d.slice_orders,
            execution=execution,
            takes_slices_alone=named == _SINGLE_FILE_PLANS,
            asked_compression=chosen_compression(o, None),
            partition_filter=_STRATEGIES[named] or asked,
            begin_partition=options.get(BEGIN_PARTITION, "").strip() or None,
            end_partition=options.get(END_PARTITION, "").strip() or None,
            selected=_names(options.get(SELECTED, "")),
            asks_for_rings=named == RESIZING_STRATEGY,
            partition_regex=checked_java_regex(options.get(REGEX, "").strip(), option=REGEX),
        )


def _execution(options: Mapping[str, str], plans: str) -> str:
    """The strategy that plans name. Raises: Invalid for one that does not fit the plans.

    Seen: 1.2.0 plans copies with their own strategy, whatever is asked (`SparkStreamCopyClusteringPlanStrategy`), and
    a clustering of single files fails on a group of several slices.
    """
    asked = short_class_name(options.get(EXECUTION, ""))
    found = _EXECUTIONS[OptionValues({EXECUTION: asked}).choice(EXECUTION, SORT_AND_SIZE, tuple(_EXECUTIONS))]
    if found == SINGLE_FILE_SORT and plans != _SINGLE_FILE_PLANS:
        raise Invalid(
            f"option '{EXECUTION}'='{asked}': expected '{STRATEGY}'='{_SINGLE_FILE_PLANS}' beside it, found '{plans}': "
            "it takes groups of one file slice only"
        )
    return STREAM_COPY if plans == _STREAM_COPY_PLANS else found


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _orders(text: str) -> tuple[SliceOrder, ...]:
    known = tuple(order.value for order in SliceOrder)
    return tuple(SliceOrder(OptionValues({ORDER: name}).choice(ORDER, "", known)) for name in _names(text))
