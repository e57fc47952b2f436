"""A compaction could come too early or never, take the wrong slices, or starve a huge one: the rules over values."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi import Invalid
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.instant_text import parse_instant_ms
from pyhudi.format.timeline.records import CompactionPlan
from pyhudi.services.compaction.plan import partitions_to_compact, plan_compaction, plan_log_compaction
from pyhudi.services.compaction.settings import CompactionSettings, CompactionStrategy, CompactionTrigger
from pyhudi.services.compaction.trigger import why_logs_not_due, why_not_due
from pyhudi.table.view.file_system_view import BaseFile, FileSlice, LogFile
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import timeline_layout

MIB = 1 << 20
LAYOUT = timeline_layout({"hoodie.timeline.layout.version": "2"})


def at(second: int) -> str:
    return f"20261121{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}000"


def slice_of(file_id: str, *, logs: tuple[int, ...] = (10,), base: int | None = 100, partition: str = "p") -> FileSlice:
    """A slice whose base file and logs have so many mebibytes."""
    base_file = None if base is None else BaseFile(BaseFileName(file_id, "0-0-0", at(1), ".parquet"), base * MIB)
    found = tuple(LogFile(LogFileName(file_id, at(2 + n), 1, "0-0-0"), size * MIB) for n, size in enumerate(logs))
    return FileSlice(partition, file_id, at(1), base_file, found)


def planned(*slices: FileSlice, taken: tuple[tuple[str, str], ...] = (), **settings: object) -> CompactionPlan:
    made = CompactionSettings(**settings)  # type: ignore[arg-type]
    return plan_compaction(slices, made, taken=taken, new_base_size_bytes=120 * MIB)


def ids(plan: CompactionPlan) -> list[str]:
    return [file_id for _, file_id in plan.file_groups]


def test_only_slices_with_logs_that_no_other_service_has_are_taken() -> None:
    plan = planned(slice_of("a"), slice_of("b", logs=()), slice_of("c"), taken=(("p", "c"), ("q", "a")))

    assert ids(plan) == ["a"]
    assert plan.operations is not None
    assert plan.operations[0].delta_file_paths == (f".a_{at(2)}.log.1_0-0-0",)
    assert plan.operations[0].data_file_path == f"a_0-0-0_{at(1)}.parquet"


def test_the_plan_states_what_each_slice_costs_in_whole_mebibytes() -> None:
    without, with_base = planned(slice_of("a", logs=(3, 4)), slice_of("b", base=None)).operations or ()

    assert with_base.metrics == {
        "TOTAL_LOG_FILES": 2.0, "TOTAL_LOG_FILES_SIZE": 7.0 * MIB,
        "TOTAL_IO_READ_MB": 107.0, "TOTAL_IO_WRITE_MB": 100.0, "TOTAL_IO_MB": 207.0,
    }  # fmt: skip
    assert without.metrics == {
        "TOTAL_LOG_FILES": 1.0, "TOTAL_LOG_FILES_SIZE": 10.0 * MIB,
        "TOTAL_IO_READ_MB": 10.0, "TOTAL_IO_WRITE_MB": 120.0, "TOTAL_IO_MB": 130.0,
    }  # fmt: skip


def test_the_largest_logs_come_first_until_the_budget_is_used_up() -> None:
    slices = (slice_of("a", logs=(5,)), slice_of("b", logs=(9,)), slice_of("c", logs=(7,)))

    assert ids(planned(*slices)) == ["b", "c", "a"]
    assert ids(planned(*slices, io_mb_max=210)) == ["b", "c"]
    huge = planned(*slices, io_mb_max=1)
    assert ids(huge) == ["b"]
    assert huge.missing_schedule_partitions == ("p",)


def test_slices_below_a_threshold_are_left_and_their_partitions_named() -> None:
    slices = (slice_of("a", logs=(1, 1, 1), partition="x"), slice_of("b", logs=(9,), partition="y"))
    by_size = planned(*slices, log_size_bytes_min=5 * MIB)
    by_count = planned(*slices, strategy=CompactionStrategy.LOG_COUNT, log_files_min=2)

    assert (ids(by_size), by_size.missing_schedule_partitions) == (["b"], ("x",))
    assert (ids(by_count), by_count.missing_schedule_partitions) == (["a"], ("y",))


def test_a_chain_of_strategies_takes_of_what_the_one_before_left() -> None:
    slices = (slice_of("a", logs=(1, 1, 1), partition="x"), slice_of("b", logs=(9,), partition="y"))
    chain = planned(
        *slices, strategy=CompactionStrategy.LOG_SIZE, next_strategies=(CompactionStrategy.LOG_COUNT,),
        log_size_bytes_min=2 * MIB, log_files_min=2,
    )  # fmt: skip
    assert (ids(chain), chain.missing_schedule_partitions) == (["a"], ("y",))
    settings = CompactionSettings(
        strategy=CompactionStrategy.PARTITION_REGEX, partition_regex="^2026/11",
        next_strategies=(CompactionStrategy.NEWEST_DAYS,), days_max=1,
    )  # fmt: skip
    partitions = ["2026/11/01", "2026/11/02", "2026/12/01", "oslo"]
    assert partitions_to_compact(partitions, settings, today=date(2026, 12, 2)) == ["2026/11/02"]


def test_unbounded_strategies_take_all_as_they_come() -> None:
    slices = (slice_of("a", logs=(5,)), slice_of("b", logs=(9,)))
    for strategy in ("UNBOUNDED", "RECENT_DAYS", "OLDER_DAYS", "PARTITION_REGEX"):
        assert ids(planned(*slices, strategy=CompactionStrategy[strategy], io_mb_max=1)) == ["a", "b"]
    assert ids(planned(*slices, strategy=CompactionStrategy.BOUNDED_IO, io_mb_max=1)) == ["a"]


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 300)), max_size=8), st.integers(1, 900))
def test_no_slice_starves_and_the_budget_is_passed_by_the_last_one_only(
    sizes: list[tuple[int, int]], budget: int
) -> None:
    slices = [slice_of(f"g{n}", logs=(log,), base=base) for n, (log, base) in enumerate(sizes)]
    plan = planned(*slices, io_mb_max=budget)
    costs = [int((o.metrics or {})["TOTAL_IO_MB"]) for o in plan.operations or ()]

    assert bool(costs) == bool(slices)
    assert sum(costs[:-1]) < budget or len(costs) <= 1
    assert len(costs) == len(slices) or sum(costs) >= budget


@pytest.mark.parametrize(
    "strategy,expected",
    [
        ("NEWEST_DAYS", ["2026/11/21", "dt=2026-11-20"]),
        ("RECENT_DAYS", ["2026/11/21", "dt=2026-11-20", "year=2026/month=11/day=19"]),
        ("OLDER_DAYS", ["2026/11/18"]),
    ],
)
def test_strategies_by_day_look_at_the_days_of_partitions(strategy: str, expected: list[str]) -> None:
    partitions = ["2026/11/18", "year=2026/month=11/day=19", "2026/11/21", "dt=2026-11-20"]
    settings = CompactionSettings(strategy=CompactionStrategy[strategy], days_max=2)

    assert partitions_to_compact(partitions, settings, today=date(2026, 11, 21)) == expected
    with pytest.raises(Invalid, match="expected a day"):
        partitions_to_compact(["oslo"], settings, today=date(2026, 11, 21))


def test_a_pattern_may_match_anywhere_in_a_partition_path() -> None:
    settings = CompactionSettings(strategy=CompactionStrategy.PARTITION_REGEX, partition_regex="os")
    assert partitions_to_compact(["city=oslo", "rome"], settings, today=date(2026, 1, 1)) == ["city=oslo"]
    everything = partitions_to_compact(["b", "a"], CompactionSettings(), today=date(2026, 1, 1))
    assert everything == ["b", "a"]


def test_a_log_compaction_is_planned_as_apache_hudi_writes_it() -> None:
    plan = plan_log_compaction(
        [slice_of("a", logs=(1, 1)), slice_of("b"), slice_of("c", logs=(1, 1)), slice_of("d", logs=())],
        taken=[("p", "c")], is_worth_it=lambda piece: len(piece.log_files) > 1, new_base_size_bytes=MIB,
    )  # fmt: skip

    assert ids(plan) == ["a"]
    assert plan.preserve_hoodie_metadata is True
    assert plan.strategy is not None
    assert plan.strategy.class_name == "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"


def timeline(*done: str, compaction: int | None = None, pending: int | None = None) -> Timeline:
    """Delta commits, each of `requested-completed` in seconds, and a compaction that was requested at a second."""
    instants = []
    for text in done:
        requested, _, completed = text.partition("-")
        instants.append(Instant(at(int(requested)), "deltacommit", "COMPLETED", at(int(completed))))
    if compaction is not None:
        instants.append(Instant(at(compaction), "commit", "COMPLETED", at(compaction + 5)))
    if pending is not None:
        instants.append(Instant(at(pending), "compaction", "REQUESTED"))
    return Timeline(LAYOUT, tuple(sorted(instants, key=lambda i: i.requested)))


def is_due(of: Timeline, *, now: int = 1_000, **settings: object) -> bool:
    made = CompactionSettings(**settings)  # type: ignore[arg-type]
    return not why_not_due(of, made, now_ms=parse_instant_ms(at(now), UTC), zone=UTC)


def test_delta_commits_count_that_completed_since_the_last_compaction_was_requested() -> None:
    before_and_after = timeline("1-2", "3-11", "12-13", compaction=10)

    assert is_due(before_and_after, deltacommits_max=2)
    assert not is_due(before_and_after, deltacommits_max=3)
    assert is_due(timeline("1-2", "3-4"), deltacommits_max=2)
    assert not is_due(timeline(), deltacommits_max=1)


def test_after_the_last_request_counts_from_a_pending_compaction_on() -> None:
    trigger = CompactionTrigger.COMMITS_AFTER_REQUEST
    pending = timeline("1-2", "3-4", "12-13", pending=10)

    assert is_due(pending, trigger=trigger, deltacommits_max=1)
    assert not is_due(pending, trigger=trigger, deltacommits_max=2)
    assert is_due(pending, deltacommits_max=3)
    assert is_due(timeline("1-2", "3-4"), trigger=trigger, deltacommits_max=2)


def test_time_counts_from_the_last_compaction_or_else_the_first_delta_commit() -> None:
    time, either, both = CompactionTrigger.TIME, CompactionTrigger.COMMITS_OR_TIME, CompactionTrigger.COMMITS_AND_TIME
    young, old = timeline("100-101"), timeline("1-2", compaction=400)

    assert is_due(young, trigger=time, seconds_max=900)
    assert not is_due(young, trigger=time, seconds_max=901)
    assert is_due(old, trigger=time, seconds_max=600)
    assert not is_due(old, trigger=time, seconds_max=601)
    assert is_due(young, trigger=either, seconds_max=901, deltacommits_max=1)
    assert is_due(young, trigger=either, seconds_max=900, deltacommits_max=9)
    assert not is_due(young, trigger=either, seconds_max=901, deltacommits_max=9)
    assert is_due(young, trigger=both, seconds_max=900, deltacommits_max=1)
    assert not is_due(young, trigger=both, seconds_max=901, deltacommits_max=1)
    assert not is_due(young, trigger=both, seconds_max=900, deltacommits_max=9)


def test_a_log_compaction_can_be_due_once_there_are_as_many_delta_commits_as_blocks_are_wanted() -> None:
    assert not why_logs_not_due(timeline("1-2", "3-4"), 2)
    assert "blocks.threshold" in why_logs_not_due(timeline("1-2"), 2)


def test_a_log_compaction_counts_the_delta_commits_since_the_one_before() -> None:
    done = replace(timeline("1-2", "3-4", "5-8", "6-7", "9-10"), log_compactions=frozenset({at(6)}))
    assert not why_logs_not_due(done, 2)  # those that completed at 8, after the log compaction was requested, and 10
    assert "2 delta commits" in why_logs_not_due(done, 3)


@pytest.mark.parametrize(
    "options,expected",
    [
        ({}, CompactionSettings()),
        ({"hoodie.compact.inline": "true"}, CompactionSettings(is_inline=True)),
        (
            {"hoodie.compaction.strategy": "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy"},
            CompactionSettings(strategy=CompactionStrategy.UNBOUNDED),
        ),
        (
            {"hoodie.compaction.strategy": "DayBasedCompactionStrategy, LogFileNumBasedCompactionStrategy"},
            CompactionSettings(
                strategy=CompactionStrategy.NEWEST_DAYS, next_strategies=(CompactionStrategy.LOG_COUNT,)
            ),
        ),
        (
            {"hoodie.compaction.strategy": "DayBasedCompactionStrategy"},
            CompactionSettings(strategy=CompactionStrategy.NEWEST_DAYS),
        ),
        (
            {"hoodie.compact.inline.trigger.strategy": "num_or_time", "hoodie.compaction.target.io": "7"},
            CompactionSettings(trigger=CompactionTrigger.COMMITS_OR_TIME, io_mb_max=7),
        ),
        ({"hoodie.log.compaction.inline": "true"}, CompactionSettings()),
        (
            {"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.enable": "true"},
            CompactionSettings(logs_enabled=True, logs_inline=True),
        ),
    ],
)
def test_options_become_settings(options: Mapping[str, str], expected: CompactionSettings) -> None:
    assert CompactionSettings.from_options(options) == expected


@pytest.mark.parametrize(
    "name,text",
    [
        ("hoodie.compact.inline", "maybe"),
        ("hoodie.compact.inline.max.delta.commits", "0"),
        ("hoodie.compaction.strategy", "com.example.Mine"),
        ("hoodie.compaction.partition.path.regex", "("),
        ("hoodie.compaction.partition.path.regex", "(?=a)b"),
        ("hoodie.compaction.partition.path.regex", "a{1000}{1000}"),
        ("hoodie.compact.inline.max.delta.commits", "9" * 5_000),
        ("hoodie.compact.inline.trigger.strategy", "NEVER"),
    ],
)
def test_a_value_that_cannot_be_one_is_refused_by_its_name(name: str, text: str) -> None:
    with pytest.raises(Invalid, match=name):
        CompactionSettings.from_options({name: text})


def test_a_pattern_of_the_tables_properties_does_not_run_for_ever() -> None:
    """Backtracking over this pattern takes a step for each way to part the text: 2 to the power of 60."""
    settings = CompactionSettings.from_options(
        {
            "hoodie.compaction.strategy": "PartitionRegexBasedCompactionStrategy",
            "hoodie.compaction.partition.path.regex": "^(a+)+$",
        }
    )

    assert partitions_to_compact(["a" * 60 + "b", "aa"], settings, today=date(2026, 12, 2)) == ["aa"]
