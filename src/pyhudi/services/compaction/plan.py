"""Which file slices a compaction or a log compaction takes. Pure rules over the slices of a table."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid
from pyhudi.format.timeline.records import CompactionOperation, CompactionPlan, ServiceStrategy
from pyhudi.predicate.patterns import parse_java_regex
from pyhudi.services.compaction.settings import CompactionSettings
from pyhudi.services.compaction.settings import CompactionStrategy as Strategy
from pyhudi.services.compaction.slice_costs import IO_MB, LOG_SIZE, slice_costs
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.pending import FileGroup

LOG_COMPACTION_CLASS = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
"""Seen: every plan of a log compaction names this class, also in releases that no longer have it (1.0.2, 1.2.0)."""

_DAY = re.compile(r"(\d{4})[/-](\d{1,2})[/-](\d{1,2})(?!\d)")

Operations = list[CompactionOperation]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The slices that strategies chose. `passed_over`: partitions with slices that a strategy left for later."""

    operations: Operations
    passed_over: list[str]


def partitions_to_compact(partitions: Iterable[str], settings: CompactionSettings, *, today: date) -> list[str]:
    """The partitions that the strategies look into. Strategies by day put the newest first; others keep the order.

    Seen: `RECENT_DAYS` takes the partitions from `days_max` days ago on, `OLDER_DAYS` the others (1.0.2, 1.2.0; their
    docs say the opposite). Raises: Invalid for a partition that names no day, when the strategy is by day.
    """
    chosen = list(partitions)
    for strategy in (settings.strategy, *settings.next_strategies):
        chosen = _partitions_of(chosen, strategy, settings, today=today)
    return chosen


def _partitions_of(
    partitions: Sequence[str], strategy: Strategy, settings: CompactionSettings, *, today: date
) -> list[str]:
    match strategy:
        case Strategy.NEWEST_DAYS:
            return sorted(partitions, key=_day_of, reverse=True)[: settings.days_max]
        case Strategy.RECENT_DAYS | Strategy.OLDER_DAYS:
            since, is_recent = today - timedelta(days=settings.days_max), strategy is Strategy.RECENT_DAYS
            chosen = [partition for partition in partitions if (_day_of(partition) >= since) is is_recent]
            return sorted(chosen, key=_day_of, reverse=True)
        case Strategy.PARTITION_REGEX:
            # The table's properties may hold the pattern. RE2 runs any pattern in time proportional to the paths.
            paths = pa.array(partitions, pa.string())
            return paths.filter(pc.match_substring_regex(paths, parse_java_regex(settings.partition_regex))).to_pylist()
        case _:
            return list(partitions)


def plan_compaction(
    slices: Iterable[FileSlice],
    settings: CompactionSettings,
    *,
    taken: Collection[FileGroup],
    new_base_size_bytes: int,
) -> CompactionPlan:
    """The compaction plan over the slices that have logs and that no pending service is about to rewrite.

    `slices`: the newest slice of each file group, in the order of `partitions_to_compact`, with the logs of completed
    delta commits. `new_base_size_bytes`: the size assumed for a base file that does not exist yet. The plan names the
    partitions of slices that were left for later, because Apache Hudi's incremental scheduling looks for them there.

    Cost: no request. Spec: format/actions.md section 8. Seen: 1.0.2, 1.2.0 (their strategies; ties are broken by
    partition and file id here, by arrival there).
    """
    candidates = [
        operation(file_slice, slice_costs(file_slice, new_base_size_bytes=new_base_size_bytes))
        for file_slice in slices
        if file_slice.log_files and (file_slice.partition, file_slice.file_id) not in taken
    ]
    chosen = _choose(candidates, settings)
    return CompactionPlan(
        tuple(chosen.operations),
        extra_metadata={},
        missing_schedule_partitions=tuple(dict.fromkeys(chosen.passed_over)),
    )


def plan_log_compaction(
    slices: Iterable[FileSlice],
    *,
    taken: Collection[FileGroup],
    is_worth_it: Callable[[FileSlice], bool],
    new_base_size_bytes: int | None,
) -> CompactionPlan:
    """The log compaction plan over all slices whose logs are worth it.

    `is_worth_it`: reads the logs, and is therefore asked last. `new_base_size_bytes`: see `slice_costs`.
    """
    return CompactionPlan(
        tuple(
            operation(file_slice, slice_costs(file_slice, new_base_size_bytes=new_base_size_bytes))
            for file_slice in slices
            if file_slice.log_files
            and (file_slice.partition, file_slice.file_id) not in taken
            and is_worth_it(file_slice)
        ),
        extra_metadata={},
        strategy=ServiceStrategy(LOG_COMPACTION_CLASS, strategy_params={}),
        preserve_hoodie_metadata=True,
        missing_schedule_partitions=(),
    )


def operation(file_slice: FileSlice, costs: dict[str, float]) -> CompactionOperation:
    """A slice as an operation of a plan: files by their bare names, logs in reading order."""
    return CompactionOperation(
        base_instant_time=file_slice.base_instant,
        delta_file_paths=tuple(log.name.format() for log in file_slice.log_files),
        data_file_path=file_slice.base_file.name.format() if file_slice.base_file else None,
        file_id=file_slice.file_id,
        partition_path=file_slice.partition,
        metrics=costs,
        bootstrap_file_path=None if file_slice.source is None else file_slice.source.uri,
    )


def _choose(candidates: Operations, settings: CompactionSettings) -> _Chosen:
    chosen = _Chosen(candidates, [])
    for strategy in (settings.strategy, *settings.next_strategies):
        found = _choose_by(chosen.operations, strategy, settings)
        chosen = _Chosen(found.operations, chosen.passed_over + found.passed_over)
    return chosen


def _choose_by(candidates: Operations, strategy: Strategy, settings: CompactionSettings) -> _Chosen:
    match strategy:
        case Strategy.LOG_SIZE:
            return _largest(candidates, lambda o: _cost(o, LOG_SIZE), settings.log_size_bytes_min, settings)
        case Strategy.LOG_COUNT:
            return _largest(candidates, lambda o: len(o.delta_file_paths or ()), settings.log_files_min, settings)
        case Strategy.BOUNDED_IO | Strategy.NEWEST_DAYS:
            return _within_io(candidates, settings)
        case Strategy.UNBOUNDED | Strategy.RECENT_DAYS | Strategy.OLDER_DAYS | Strategy.PARTITION_REGEX:
            return _Chosen(candidates, [])


def _largest(
    candidates: Operations, size: Callable[[CompactionOperation], float], least: int, settings: CompactionSettings
) -> _Chosen:
    """The largest candidates first, as far as the I/O budget goes. Candidates smaller than `least` are left out."""
    large = [o for o in candidates if size(o) >= least]
    large.sort(key=lambda o: (-size(o), o.partition_path or "", o.file_id or ""))
    small = [o.partition_path or "" for o in candidates if size(o) < least]
    chosen = _within_io(large, settings)
    return _Chosen(chosen.operations, small + chosen.passed_over)


def _within_io(candidates: Operations, settings: CompactionSettings) -> _Chosen:
    """The candidates in their order until the I/O budget is used up.

    The last candidate taken may exceed the budget, so that a huge slice cannot starve. Example: with a budget of 100
    and costs of 60, 90 and 10, the first two are taken.
    """
    left_mb = settings.io_mb_max
    taken: Operations = []
    passed_over: list[str] = []

    for candidate in candidates:
        if left_mb > 0:
            left_mb -= int(_cost(candidate, IO_MB))
            taken.append(candidate)
        else:
            passed_over.append(candidate.partition_path or "")
    return _Chosen(taken, passed_over)


def _cost(operation: CompactionOperation, name: str) -> float:
    return (operation.metrics or {}).get(name, 0.0)


def _day_of(partition: str) -> date:
    """The day that a partition path names, as `yyyy/MM/dd` or `yyyy-MM-dd`.

    Column names are skipped: `year=2026/month=11/day=01` is the day 2026/11/01.
    """
    values = "/".join(part.rpartition("=")[2] for part in partition.split("/"))
    match = _DAY.match(values)
    try:
        if match is not None:
            return date(*(int(number) for number in match.groups()))
    except ValueError:
        pass
    raise Invalid(
        f"partition '{partition}': expected a day, such as 2026/11/01, for a compaction strategy by days; choose "
        "another one (hoodie.compaction.strategy)"
    )
