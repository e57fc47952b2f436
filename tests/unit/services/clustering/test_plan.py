"""A plan could take a slice that others are about to rewrite, join slices of two partitions, make groups or files
larger than was asked for, or go on for ever rewriting what is as it should be.

Slices are made up; rules are checked on them, and on random ones.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import Invalid
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.timeline.records import ClusteringPlan
from pyhudi.options.entries import Kind
from pyhudi.options.names import check_known
from pyhudi.options.verdicts import find_entry
from pyhudi.services.clustering.partitions import partitions_to_cluster
from pyhudi.services.clustering.plan import Sizing, plan_clustering
from pyhudi.services.clustering.settings import ClusteringSettings, PartitionFilter, SliceOrder
from pyhudi.table.view.file_system_view import BaseFile, FileSlice, LogFile
from pyhudi.table.view.pending import FileGroup

SIZING = Sizing("file:/table", new_base_size_bytes=100)
SMALL = ClusteringSettings(small_file_limit_bytes=1_000, group_size_bytes_max=500, file_size_bytes=200)
SORTED = replace(SMALL, sort_columns=("a", "b"))


def a_slice(file_id: str, size: int | None, *, partition: str = "p", logs: int = 0, instant: str = "01") -> FileSlice:
    base = None if size is None else BaseFile(BaseFileName(file_id, "0-0-0", instant, ".parquet"), size)
    names = [LogFileName(file_id, f"{n + 2:02}", 1, "0-0-0") for n in range(logs)]
    return FileSlice(partition, file_id, instant, base, tuple(LogFile(name, 10) for name in names))


def plan(
    slices: list[FileSlice], settings: ClusteringSettings = SMALL, taken: Collection[FileGroup] = ()
) -> ClusteringPlan:
    return plan_clustering(slices, settings, SIZING, taken=taken)


def bundles(of: ClusteringPlan) -> list[tuple[list[str], int]]:
    """The file ids of each group, and how many files they are to become."""
    groups = of.input_groups or ()
    return [([one.file_id or "" for one in group.slices], group.num_output_file_groups or 0) for group in groups]


def test_the_largest_slices_come_first_and_a_group_is_full_when_the_next_would_overfill_it() -> None:
    slices = [a_slice("a", 100), a_slice("b", 300), a_slice("c", 200), a_slice("d", 250)]
    assert bundles(plan(slices)) == [(["b"], 2), (["d", "c"], 3)]  # a is alone, and would come out as it is
    assert bundles(plan(slices, SORTED)) == [(["b"], 2), (["d", "c"], 3), (["a"], 1)]


def test_a_slice_by_itself_is_taken_where_that_changes_something() -> None:
    assert bundles(plan([a_slice("a", 100)])) == []
    assert bundles(plan([a_slice("a", 100, logs=1)])) == [(["a"], 1)]
    assert bundles(plan([a_slice("a", 201)])) == [(["a"], 2)]
    assert bundles(plan([a_slice("a", 100)], SORTED)) == [(["a"], 1)]
    alone = replace(SORTED, takes_single=False)
    assert bundles(plan([a_slice("a", 300), a_slice("b", 300), a_slice("c", 100, logs=1)], alone)) == [(["b", "c"], 2)]


def test_large_slices_and_those_of_pending_services_are_left_alone() -> None:
    slices = [a_slice("a", 999), a_slice("b", 1_000), a_slice("c", 10), a_slice("d", 10)]
    assert bundles(plan(slices, SORTED, taken={("p", "c"), ("q", "d")})) == [(["a"], 5), (["d"], 1)]


def test_slices_of_two_partitions_never_come_together() -> None:
    slices = [a_slice("a", 10, partition="p"), a_slice("b", 10, partition="q"), a_slice("c", 10, partition="p")]
    assert bundles(plan(slices)) == [(["a", "c"], 1)]


def test_what_is_over_the_count_of_groups_is_named_for_later() -> None:
    slices = [a_slice(f"{part}{n}", 400, partition=part) for part in "pqr" for n in range(2)]
    found = plan(slices, replace(SORTED, groups_max=3))
    assert [ids for ids, _ in bundles(found)] == [["p0"], ["p1"], ["q0"]]
    assert found.missing_schedule_partitions == ("q", "r")


def test_slices_may_come_by_their_instants() -> None:
    slices = [a_slice("a", 200, instant="03"), a_slice("b", 300, instant="01"), a_slice("c", 200, instant="02")]
    by_time = replace(SMALL, slice_orders=(SliceOrder.INSTANT_TIME,))
    assert [ids for ids, _ in bundles(plan(slices, by_time))] == [["b", "c"]]
    both = replace(by_time, slice_orders=(SliceOrder.SIZE, SliceOrder.INSTANT_TIME))
    assert [ids for ids, _ in bundles(plan(slices, both))] == [["b", "c"]]


def test_a_slice_is_named_by_its_files_in_the_order_in_which_they_are_merged() -> None:
    group = (plan([a_slice("a", 2 << 20, logs=2)], replace(SORTED, small_file_limit_bytes=1 << 30)).input_groups or ())[
        0
    ]
    (one,) = group.slices
    assert one.data_file_path == "file:/table/p/a_0-0-0_01.parquet"
    assert one.delta_file_paths == ("file:/table/p/.a_02.log.1_0-0-0", "file:/table/p/.a_03.log.1_0-0-0")
    assert (one.file_id, one.partition_path, one.bootstrap_file_path) == ("a", "p", "")
    assert list((group.metrics or {}).items()) == [
        ("TOTAL_LOG_FILES", 2.0), ("TOTAL_IO_MB", 4.0), ("TOTAL_IO_READ_MB", 2.0), ("TOTAL_LOG_FILES_SIZE", 20.0),
        ("TOTAL_IO_WRITE_MB", 2.0),
    ]  # fmt: skip
    only_logs = (plan([a_slice("a", None, logs=1)], SORTED).input_groups or ())[0].slices[0]
    assert only_logs.data_file_path == ""


sizes = st.lists(st.tuples(st.sampled_from("pq"), st.none() | st.integers(0, 1_200), st.integers(0, 2)), max_size=20)


@given(sizes=sizes, is_sorted=st.booleans(), groups_max=st.integers(1, 6))
def test_random_plans_keep_the_rules(
    sizes: list[tuple[str, int | None, int]], is_sorted: bool, groups_max: int
) -> None:
    made = [a_slice(f"f{n}", size, partition=p, logs=logs) for n, (p, size, logs) in enumerate(sizes) if size or logs]
    slices = sorted(made, key=lambda one: one.partition)
    settings = replace(SORTED if is_sorted else SMALL, groups_max=groups_max)
    known: Mapping[str, FileSlice] = {one.file_id: one for one in slices}
    found = plan(slices, settings)
    assert found == plan(sorted(made, key=lambda one: (one.partition, -int(one.file_id[1:]))), settings)

    taken = [one.file_id or "" for group in found.input_groups or () for one in group.slices]
    assert len(taken) == len(set(taken))
    assert len(found.input_groups or ()) <= groups_max
    for group in found.input_groups or ():
        mine = [known[one.file_id or ""] for one in group.slices]
        bytes_of = [100 if one.base_file is None else one.base_file.size_bytes for one in mine]
        assert len({one.partition for one in mine}) == 1
        assert sum(bytes_of) <= settings.group_size_bytes_max or len(mine) == 1
        assert max(bytes_of) < settings.small_file_limit_bytes
        files = group.num_output_file_groups or 0
        assert files >= 1
        assert sum(bytes_of) <= files * settings.file_size_bytes


DAYS = [f"2026/11/{day:02}" for day in range(1, 10)]


@pytest.mark.parametrize(
    "settings,expected",
    [
        (ClusteringSettings(), DAYS),
        (ClusteringSettings(selected=(DAYS[3], "none")), [DAYS[3]]),
        (ClusteringSettings(partition_regex=r"2026/11/0[12]"), DAYS[:2]),
        (ClusteringSettings(partition_regex=r"2026/11"), []),  # the whole path must match
        (ClusteringSettings(partition_filter=PartitionFilter.RECENT_DAYS), [DAYS[8], DAYS[7]]),
        (ClusteringSettings(partition_filter=PartitionFilter.RECENT_DAYS, days=1, days_skipped=2), [DAYS[6]]),
        (ClusteringSettings(partition_filter=PartitionFilter.RECENT_DAYS, days=0), DAYS[::-1]),
        (
            ClusteringSettings(
                partition_filter=PartitionFilter.SELECTED, begin_partition=DAYS[2], end_partition=DAYS[4]
            ),
            DAYS[2:5],
        ),
        (ClusteringSettings(partition_filter=PartitionFilter.SELECTED, begin_partition=DAYS[7]), DAYS[7:]),
        (ClusteringSettings(partition_filter=PartitionFilter.DAY_ROLLING), [DAYS[5]]),
    ],
)
def test_partitions_are_chosen_by_the_filter(settings: ClusteringSettings, expected: list[str]) -> None:
    assert partitions_to_cluster(DAYS, settings, hour=5) == expected


PLAN = "hoodie.clustering.plan.strategy"
PACKAGE = "org.apache.hudi.client.clustering.plan.strategy"
EACH = [
    ("is_inline", "hoodie.clustering.inline", "true", True),
    ("is_scheduled_inline", "hoodie.clustering.schedule.inline", "true", True),
    ("commits_max", "hoodie.clustering.inline.max.commits", "7", 7),
    ("small_file_limit_bytes", f"{PLAN}.small.file.limit", "0", 0),
    ("group_size_bytes_max", f"{PLAN}.max.bytes.per.group", "7", 7),
    ("groups_max", f"{PLAN}.max.num.groups", "7", 7),
    ("file_size_bytes", f"{PLAN}.target.file.max.bytes", "7", 7),
    ("takes_single", f"{PLAN}.single.group.clustering.enabled", "false", False),
    ("sort_columns", f"{PLAN}.sort.columns", "a, b", ("a", "b")),
    ("curve", "hoodie.layout.optimize.strategy", "z-order", "z-order"),
    ("curve", "hoodie.layout.optimize.strategy", "ZORDER", "z-order"),
    ("curve", "hoodie.layout.optimize.strategy", "Hilbert", "hilbert"),
    ("slice_orders", f"{PLAN}.file.slices.sort.by", "INSTANT_TIME,size", (SliceOrder.INSTANT_TIME, SliceOrder.SIZE)),
    ("partition_filter", "hoodie.clustering.plan.partition.filter.mode", "day_rolling", PartitionFilter.DAY_ROLLING),
    (
        "partition_filter",
        f"{PLAN}.class",
        f"{PACKAGE}.SparkRecentDaysClusteringPlanStrategy",
        PartitionFilter.RECENT_DAYS,
    ),
    ("partition_filter", f"{PLAN}.class", "SparkSelectedPartitionsClusteringPlanStrategy", PartitionFilter.SELECTED),
    ("begin_partition", f"{PLAN}.cluster.begin.partition", "b", "b"),
    ("end_partition", f"{PLAN}.cluster.end.partition", "e", "e"),
    ("days", f"{PLAN}.daybased.lookback.partitions", "7", 7),
    ("days_skipped", f"{PLAN}.daybased.skipfromlatest.partitions", "7", 7),
    ("selected", f"{PLAN}.partition.selected", "a,b", ("a", "b")),
    ("partition_regex", f"{PLAN}.partition.regex.pattern", "a.*", "a.*"),
]


@pytest.mark.parametrize("field,option,text,value", EACH)
def test_an_option_arrives_in_its_field(field: str, option: str, text: str, value: object) -> None:
    check_known(option)
    assert find_entry(option).kind is Kind.SETTING
    assert ClusteringSettings.from_options({option: text}) == replace(ClusteringSettings(), **{field: value})  # type: ignore[arg-type]
    assert ClusteringSettings.from_options({option: " "}) == ClusteringSettings()


@pytest.mark.parametrize(
    "option,text,expected",
    [
        (f"{PLAN}.class", "com.mine.Strategy", "SparkSizeBasedClusteringPlanStrategy"),
        (f"{PLAN}.small.file.limit", "-1", "a whole number of at least 0"),
        (f"{PLAN}.file.slices.sort.by", "SIZE,NAME", "SIZE or INSTANT_TIME"),
        (f"{PLAN}.partition.regex.pattern", "(?<=a)b", "a regular expression that Java and RE2 read alike"),
        ("hoodie.layout.optimize.strategy", "peano", "linear or zorder or hilbert"),
    ],
)
def test_a_bad_value_is_refused_by_name(option: str, text: str, expected: str) -> None:
    with pytest.raises(Invalid, match=option) as refused:
        ClusteringSettings.from_options({option: text})
    assert expected in str(refused.value)
