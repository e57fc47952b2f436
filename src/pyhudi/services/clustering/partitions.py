"""Which partitions a clustering looks into. Pure."""

from collections.abc import Sequence
from itertools import compress
from typing import assert_never

from pyhudi.predicate.patterns import whole_matches
from pyhudi.services.clustering.settings import ClusteringSettings, PartitionFilter

_HOURS_A_DAY = 24


def partitions_to_cluster(partitions: Sequence[str], settings: ClusteringSettings, *, hour: int) -> list[str]:
    """The partitions that are selected, match the pattern and pass the filter, in this order of the rules.

    `partitions`: the table's, or those of them that are asked about. `hour`: of the day, in the table's time zone.
    Example: of `2026/11/01` to `2026/11/09`, RECENT_DAYS with 2 days takes the 9th and the 8th, in this order.
    Seen: 1.0.2, 1.2.0 (`ClusteringPlanPartitionFilter`, `ClusteringPlanStrategy.getMatchedPartitions`).
    """
    chosen = [path for path in partitions if not settings.selected or path in settings.selected]
    if settings.partition_regex:
        chosen = list(compress(chosen, whole_matches(chosen, settings.partition_regex)))

    match settings.partition_filter:
        case PartitionFilter.NONE:
            return chosen
        case PartitionFilter.RECENT_DAYS:
            newest = sorted(chosen, reverse=True)[settings.days_skipped :]
            return newest[: settings.days] if settings.days else newest
        case PartitionFilter.SELECTED:
            first, last = settings.begin_partition, settings.end_partition
            return [path for path in chosen if (first is None or path >= first) and (last is None or path <= last)]
        case PartitionFilter.DAY_ROLLING:
            return [path for number, path in enumerate(sorted(chosen)) if number % _HOURS_A_DAY == hour]
        case _:
            assert_never(settings.partition_filter)
