"""The settings of compaction: which slices it takes, and when it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from pyhudi.options.table_facts import short_class_name
from pyhudi.options.values import OptionValues, count, flag
from pyhudi.predicate.patterns import checked_java_regex

TRIGGER = "hoodie.compact.inline.trigger.strategy"
_INLINE, _SCHEDULED = "hoodie.compact.inline", "hoodie.compact.schedule.inline"
_ASYNC = "hoodie.datasource.compaction.async.enable"
STRATEGY = "hoodie.compaction.strategy"
REGEX = "hoodie.compaction.partition.path.regex"


class CompactionTrigger(StrEnum):
    """What makes a compaction due.

    COMMITS: delta commits since the last completed compaction. COMMITS_AFTER_REQUEST: delta commits since the last
    scheduled compaction. TIME: the time since the last completed compaction. The other two: either, or both, of COMMITS
    and TIME.
    """

    COMMITS = "NUM_COMMITS"
    COMMITS_AFTER_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME = "TIME_ELAPSED"
    COMMITS_OR_TIME = "NUM_OR_TIME"
    COMMITS_AND_TIME = "NUM_AND_TIME"


class CompactionStrategy(StrEnum):
    """Which of the slices with logs a compaction takes. Each value is the Apache Hudi class that chooses this way."""

    LOG_SIZE = "LogFileSizeBasedCompactionStrategy"
    LOG_COUNT = "LogFileNumBasedCompactionStrategy"
    BOUNDED_IO = "BoundedIOCompactionStrategy"
    UNBOUNDED = "UnBoundedCompactionStrategy"
    NEWEST_DAYS = "DayBasedCompactionStrategy"
    RECENT_DAYS = "BoundedPartitionAwareCompactionStrategy"
    OLDER_DAYS = "UnBoundedPartitionAwareCompactionStrategy"
    PARTITION_REGEX = "PartitionRegexBasedCompactionStrategy"


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """Settings of compaction and log compaction; the defaults are Apache Hudi's.

    `strategy`, `next_strategies`: each strategy chooses from the slices that the one before it chose, as 1.2.0 chains
    them. `is_inline`: a compaction that is due follows each write. `is_scheduled_inline`: only its plan follows each
    write. `deltacommits_max`, `seconds_max`: what the trigger waits for. `io_mb_max`: mebibytes that one compaction may
    read and write together. `log_size_bytes_min`, `log_files_min`: the least size or count of a slice's logs, for
    LOG_SIZE and LOG_COUNT. `days_max`: how many partitions, or days back, for the strategies by day. `logs_enabled`:
    service processes compact logs; with `logs_inline` writes do, too. `log_blocks_min`: blocks that make a slice worth
    a log compaction. Spec: format/actions.md section 8.
    """

    is_inline: bool = flag(_INLINE, False)
    is_scheduled_inline: bool = flag(_SCHEDULED, False)
    trigger: CompactionTrigger = CompactionTrigger.COMMITS
    deltacommits_max: int = count("hoodie.compact.inline.max.delta.commits", 5)
    seconds_max: int = count("hoodie.compact.inline.max.delta.seconds", 3_600, least=0)
    strategy: CompactionStrategy = CompactionStrategy.LOG_SIZE
    next_strategies: tuple[CompactionStrategy, ...] = ()
    io_mb_max: int = count("hoodie.compaction.target.io", 512_000)
    log_size_bytes_min: int = count("hoodie.compaction.logfile.size.threshold", 0, least=0)
    log_files_min: int = count("hoodie.compaction.logfile.num.threshold", 0, least=0)
    days_max: int = count("hoodie.compaction.daybased.target.partitions", 10)
    partition_regex: str = ".*"
    logs_enabled: bool = flag("hoodie.log.compaction.enable", False)
    logs_inline: bool = False
    log_blocks_min: int = count("hoodie.log.compaction.blocks.threshold", 5)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """The settings that options ask for. Options that are not about compaction are ignored.

        Raises: Invalid for a bad value, naming the option, what was found and what was expected.
        """
        o, d = OptionValues(options), cls()

        strategies = _strategies(options.get(STRATEGY, "")) or (d.strategy,)
        declared = o.fields(cls)

        return cls(
            **declared,
            trigger=CompactionTrigger(o.choice(TRIGGER, d.trigger.value, tuple(t.value for t in CompactionTrigger))),
            strategy=strategies[0],
            next_strategies=strategies[1:],
            partition_regex=checked_java_regex(options.get(REGEX, "") or d.partition_regex, option=REGEX),
            logs_inline=declared["logs_enabled"] and o.flag("hoodie.log.compaction.inline", False),
        )


def _strategies(text: str) -> tuple[CompactionStrategy, ...]:
    """The strategies in a comma-separated list of class names.

    Seen: 1.2.0 runs several as one chain (`CompositeCompactionStrategy`).
    """
    known = tuple(strategy.value for strategy in CompactionStrategy)
    named = [short_class_name(name) for name in text.split(",") if name.strip()]
    return tuple(CompactionStrategy(OptionValues({STRATEGY: name}).choice(STRATEGY, "", known)) for name in named)


def compaction_of_batches(table_type: str, stated: Mapping[str, str]) -> dict[str, str]:
    """The options by which a compaction that is due follows a DataFrame or statement written to a table.

    None for copy-on-write tables, and where it is stated whether one does, or that it runs elsewhere.
    `stated`: the options and the table's properties. Seen: so do Apache Hudi's data source and its SQL.
    """
    if table_type != "MERGE_ON_READ":
        return {}
    values = OptionValues(stated)
    runs_elsewhere = values.flag(_SCHEDULED, False) or values.flag(_ASYNC, False)
    return {} if stated.get(_INLINE, "").strip() or runs_elsewhere else {_INLINE: "true"}
