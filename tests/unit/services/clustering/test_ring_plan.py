"""A resizing could leave hashes without a bucket, merge buckets that are no neighbours, split for ever, or move rows of
a bucket that is as it should be.

Slices are made up; rules are checked on them, and on random ones.
"""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.format.keys.hashing_metadata import HashingMetadata, PlannedNode, RingNode
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.timeline.records import ClusteringGroup, ClusteringPlan
from pyhudi.index.planned_rings import is_resizing, nodes_of_group, planned_nodes
from pyhudi.services.clustering.plan import Sizing
from pyhudi.services.clustering.ring_plan import RingSizes, plan_resizing
from pyhudi.services.clustering.settings import ClusteringSettings
from pyhudi.table.view.file_system_view import BaseFile, FileSlice, LogFile

SIZING = Sizing("file:/table", new_base_size_bytes=100)
SIZES = RingSizes(split_bytes=200, merge_bytes=20, least=1, most=8)


def a_slice(ring: HashingMetadata, bucket: int, size: int, logs: int = 0) -> FileSlice:
    file_id = f"{ring.nodes[bucket].file_id_prefix}-0"
    base = BaseFile(BaseFileName(file_id, "0-0-0", "01", ".parquet"), size)
    names = [LogFileName(file_id, f"{n + 2:02}", 1, "0-0-0") for n in range(logs)]
    return FileSlice(ring.partition, file_id, "01", base, tuple(LogFile(name, 30) for name in names))


def plan(
    ring: HashingMetadata, sizes: dict[int, int], limits: RingSizes = SIZES, groups_max: int = 99
) -> ClusteringPlan:
    slices = [a_slice(ring, bucket, size) for bucket, size in sizes.items()]
    return plan_of(ring, slices, limits, groups_max)


def plan_of(
    ring: HashingMetadata, slices: list[FileSlice], limits: RingSizes = SIZES, groups_max: int = 99
) -> ClusteringPlan:
    numbers = count(1)
    return plan_resizing(
        {ring.partition: ring}, {ring.partition: slices}, lambda ring: limits, SIZING, groups_max=groups_max,
        new_uuid=lambda: f"00000000-0000-0000-0000-{next(numbers):012}",
    )  # fmt: skip


def changes(ring: HashingMetadata, of: ClusteringPlan) -> list[tuple[list[int], list[tuple[int, bool]]]]:
    """Of each group: the buckets whose rows move, and the last hashes of its nodes, each with whether it stays."""
    buckets = {f"{node.file_id_prefix}-0": number for number, node in enumerate(ring.nodes)}
    return [
        (
            [buckets[one.file_id or ""] for one in group.slices],
            [(node.last_hash, node.file_id_prefix is not None) for node in nodes_of_group(group, path="x")],
        )
        for group in of.input_groups or ()
    ]


def after(ring: HashingMetadata, of: ClusteringPlan) -> HashingMetadata:
    found = planned_nodes(of, path="x").get(ring.partition)
    return ring if found is None else ring.resized("02", found[1])


def test_a_large_bucket_is_split_in_the_middle_of_its_hashes() -> None:
    ring = HashingMetadata.initial("p", 2)
    assert [node.last_hash for node in ring.nodes] == [1_073_741_824, 2_147_483_647]

    assert changes(ring, plan(ring, {0: 201, 1: 200})) == [([0], [(536_870_911, True), (1_073_741_824, True)])]
    assert changes(ring, plan(ring, {0: 200, 1: 201})) == [([1], [(1_610_612_735, True), (2_147_483_647, True)])]
    assert changes(ring, plan_of(ring, [a_slice(ring, 0, 150, logs=2)]))  # logs count, too
    assert changes(ring, plan(ring, {0: 201, 1: 300}, RingSizes(200, 20, 1, 3)))[1:] == []  # no room for a second
    assert plan(ring, {0: 201}, RingSizes(200, 20, 1, 2)).input_groups == ()


def test_small_neighbours_are_merged_also_around_the_end_of_the_ring() -> None:
    ring = HashingMetadata.initial("p", 4)
    first, second, third, last = (node.last_hash for node in ring.nodes)

    assert changes(ring, plan(ring, {0: 100, 1: 5, 2: 5, 3: 100})) == [([1, 2], [(second, False), (third, True)])]
    assert changes(ring, plan(ring, {0: 5, 1: 100, 2: 100, 3: 5})) == [([3, 0], [(last, False), (first, True)])]
    assert changes(ring, plan(ring, {0: 5, 1: 100, 2: 5})) == []  # no neighbours
    assert changes(ring, plan(ring, {1: 5, 3: 5})) == []  # a bucket without a slice lies between
    two_stay = RingSizes(200, 20, 3, 8)
    assert changes(ring, plan(ring, dict.fromkeys(range(4), 5), two_stay)) == [([3, 0], [(last, False), (first, True)])]
    assert len(after(ring, plan(ring, dict.fromkeys(range(4), 1))).nodes) == 1
    assert plan(ring, dict.fromkeys(range(4), 5), RingSizes(200, 20, 4, 8)).input_groups == ()


def test_the_first_bucket_of_a_merged_ring_is_split_around_its_end() -> None:
    """Its hashes begin behind the last node."""
    nodes = (
        RingNode(100, "00000000-0000-0000-0000-00000000000a"),
        RingNode(200, "00000000-0000-0000-0000-00000000000b"),
    )
    ring = HashingMetadata("p", "01", 4, 1, nodes)
    alone = HashingMetadata("p", "01", 4, 1, nodes[:1])
    narrow = HashingMetadata("p", "01", 4, 1, (nodes[0], RingNode(101, nodes[1].file_id_prefix)))

    assert changes(ring, plan(ring, {0: 201})) == [([0], [(1_073_741_974, True), (100, True)])]
    assert changes(alone, plan(alone, {0: 201})) == [([0], [(1_073_741_924, True), (100, True)])]
    assert changes(narrow, plan(narrow, {1: 201})) == []  # a single hash


def test_a_partition_keeps_the_count_that_it_began_with_unless_options_say_otherwise() -> None:
    ring = HashingMetadata.initial("p", 4)
    none = RingSizes.of_ring(ring, ClusteringSettings.from_options({}), 1_000)
    names = {"min": "hoodie.bucket.index.min.num.buckets", "max": "hoodie.bucket.index.max.num.buckets"}
    asked = RingSizes.of_ring(ring, ClusteringSettings.from_options({names["min"]: "2", names["max"]: "9"}), 1_000)
    odd = RingSizes.of_ring(ring, ClusteringSettings.from_options({names["min"]: "6", names["max"]: "3"}), 1_000)

    assert none == RingSizes(split_bytes=2_000, merge_bytes=200, least=4, most=4)
    assert (asked.least, asked.most) == (2, 9)
    assert odd == none


def test_what_a_plan_leaves_for_later_is_named() -> None:
    ring = HashingMetadata.initial("p", 2)
    made = plan(ring, {0: 201, 1: 201}, groups_max=1)

    assert is_resizing(made)
    assert len(made.input_groups or ()) == 1
    assert made.missing_schedule_partitions == ("p",)


@given(
    st.integers(1, 12), st.dictionaries(st.integers(0, 11), st.integers(0, 400)), st.integers(0, 300),
    st.integers(0, 200), st.integers(1, 12), st.integers(1, 16),
)  # fmt: skip
def test_every_hash_keeps_one_bucket_and_only_planned_buckets_change(
    buckets: int, sizes: dict[int, int], split: int, merge: int, least: int, most: int
) -> None:
    ring = HashingMetadata.initial("p", buckets)
    held = {bucket: size for bucket, size in sizes.items() if bucket < buckets}
    limits = RingSizes(split, min(merge, split), min(least, buckets), max(most, buckets))

    made = plan(ring, held, limits)

    now = after(ring, made)
    assert limits.least <= len(now.nodes) <= limits.most
    moved = {node.file_id_prefix for node in ring.nodes} - {node.file_id_prefix for node in now.nodes}
    planned = [one.file_id for group in made.input_groups or () for one in group.slices]
    assert {f"{prefix}-0" for prefix in moved} == set(planned)
    assert len(planned) == len(set(planned))
    for group in made.input_groups or ():
        kept = [node for node in nodes_of_group(group, path="x") if node.file_id_prefix is not None]
        assert len(kept) == group.num_output_file_groups
        assert (len(group.slices), len(kept)) in {(1, 2)} or len(kept) == 1 < len(group.slices)


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"clustering.group.partition": "p", "clustering.group.sequence.no": "x", "clustering.group.child.node": "[]"},
        {"clustering.group.partition": "p", "clustering.group.sequence.no": "0", "clustering.group.child.node": "[]"},
        {"clustering.group.partition": "p", "clustering.group.sequence.no": "0", "clustering.group.child.node": "{"},
        {
            "clustering.group.partition": "p", "clustering.group.sequence.no": "0",
            "clustering.group.child.node": '[{"value": 1, "fileIdPrefix": null, "tag": "REPLACE"}]',
        },
    ],
)  # fmt: skip
def test_a_plan_that_does_not_say_how_a_ring_changes_is_corrupt(extra: dict[str, str]) -> None:
    with pytest.raises(CorruptFile, match="plan"):
        planned_nodes(ClusteringPlan((ClusteringGroup(extra_metadata=extra),)), path="the plan")


def test_a_merged_node_is_gone_from_the_ring() -> None:
    ring = HashingMetadata.initial("p", 2)
    low, high = (node.last_hash for node in ring.nodes)
    made = ring.resized("02", [PlannedNode(low, None), PlannedNode(high, "00000000-0000-0000-0000-00000000000a")])

    assert (made.instant, made.resizings, made.initial_count) == ("02", 1, 2)
    assert made.nodes == (RingNode(high, "00000000-0000-0000-0000-00000000000a"),)
