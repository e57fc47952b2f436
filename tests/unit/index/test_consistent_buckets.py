"""Two writers that go by different rings of a partition put one key in two file groups.

Which ring counts is told by markers, the timeline and, for a resizing that is no longer there, by the files that it
left; each of these, and what a dead resizing leaves, is a case here.
"""

import hashlib
import pickle
from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.engine.local.executors import SerialExecutor
from pyhudi.errors import CorruptFile, Invalid, Unsupported
from pyhudi.format.keys.bucket_hash import ring_hashes
from pyhudi.format.keys.hashing_metadata import HashingMetadata, RingNode, ring_folder
from pyhudi.format.timeline.instant import Instant
from pyhudi.index.bucket import FixedBuckets
from pyhudi.index.consistent_buckets import RingBuckets, find_ring, open_rings, refuse_replaced_nodes
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.layout import timeline_layout

EARLY, LATE = "20261121113815839", "20261121114000000"
INITIAL = HashingMetadata.initial("p", 4)
NEW = "11111111-1111-4111-8111-1111111111{}"


def resized(instant: str, *, number: int) -> HashingMetadata:
    """The initial ring with another file group for its third bucket."""
    nodes = list(INITIAL.nodes)
    nodes[2] = RingNode(nodes[2].last_hash, NEW.format(number))
    return replace(INITIAL, instant=instant, resizings=1, nodes=tuple(nodes))


def timeline(**states: str) -> Timeline:
    """Replacecommits at EARLY and LATE, `completed` or `pending`; those that are not named are not on it."""
    instants = []
    for name, requested in (("early", EARLY), ("late", LATE)):
        if states.get(name) == "completed":
            instants.append(Instant(requested, "replacecommit", "COMPLETED", requested))
        elif states.get(name) == "pending":
            instants.append(Instant(requested, "clustering", "INFLIGHT"))
    return Timeline(timeline_layout({"hoodie.timeline.layout.version": "2"}), tuple(instants))


def storage_of(*rings: HashingMetadata, marked: Collection[str] = ()) -> MemoryStorage:
    storage = MemoryStorage()
    for ring in rings:
        storage.put_new(ring.path, ring.encode())
    for instant in marked:
        storage.put_new(f"{ring_folder('p')}/{instant}.commit", b"")
    return storage


def found(storage: MemoryStorage, at: Timeline, live: Collection[str] = ()) -> str | None:
    ring = find_ring(storage, "p", at, lambda: live)
    return ring.instant if ring is not None else None


def test_a_key_goes_to_the_first_node_at_its_place_or_after_it() -> None:
    keys = pa.array([f"k{n}" for n in range(500)])
    places = ring_hashes(keys, ["id"]).tolist()
    ends = sorted({places[7], places[8] - 1, places[9] + 1, 900_000_000})
    nodes = tuple(RingNode(end, NEW.format(10 + n)) for n, end in enumerate(ends))
    rule = RingBuckets(replace(INITIAL, nodes=nodes), ("id",))

    expected = [next((n for n, end in enumerate(ends) if end >= place), 0) for place in places]

    assert rule.bucket_of(keys).tolist() == expected
    assert rule.bucket_of(keys).dtype == np.int32
    assert rule.bucket_count == len(ends)
    assert pickle.loads(pickle.dumps(rule)) == rule


@pytest.mark.parametrize(
    "key, fields, bucket, node",
    [
        ("id:__null__,name:x", ["id", "name"], 1081, 3036),
        ("id:__null__,name:x", ["id"], 31, 399),
        ("id:__empty__,name:x", ["id", "name"], 1081, 1826),
        ("id:1,name:10:20:30", ["id", "name"], 18275, 2469),
        ("id:a,b,c,name:d", ["id"], 987743, 2701),
        ("x,y", ["id"], 116836, 3929),
        (":,:", ["id"], 57191, 1477),
        ("größe:😀é漢,name:x", ["größe"], 786534, 1173),
        ("plain 😀", ["id"], 451386, 338),
        (",id:7,name:8", ["id"], 109538, 106),
        ("name,größe: 7,", ["größe"], 922925, 2790),
        ("a:b,id:c:d,e:f,g", ["id"], 97068, 489),
    ],
)
def test_both_engines_place_odd_keys_as_apache_hudi_does(key: str, fields: list[str], bucket: int, node: int) -> None:
    """Seen: `BucketIdentifier` and `ConsistentBucketIdentifier` of 1.2.0 give these."""
    ring = HashingMetadata.initial("größe=1/b", 5_000)
    keys = pa.array([key])

    assert FixedBuckets(1_000_003, tuple(fields)).bucket_of(keys).tolist() == [bucket]
    assert RingBuckets(ring, tuple(fields)).bucket_of(keys).tolist() == [node]


def test_a_large_ring_is_the_one_of_apache_hudi() -> None:
    """Seen: the bytes that 1.2.0 makes for this partition and count have this digest."""
    encoded = HashingMetadata.initial("größe=1/b", 5_000).encode()

    assert hashlib.md5(encoded, usedforsecurity=False).hexdigest() == "04ae2de3ff7ebdbeffad6ec2856a3229"


def test_file_groups_have_the_ids_of_the_ring() -> None:
    rule = RingBuckets(INITIAL, ("id",))

    ids = [rule.file_id_of(bucket, lambda: "never") for bucket in range(4)]

    assert ids[3] == f"{INITIAL.nodes[3].file_id_prefix}-0"
    assert [rule.bucket_of_file(file_id) for file_id in ids] == [0, 1, 2, 3]
    assert rule.bucket_of_file(f"{INITIAL.nodes[3].file_id_prefix}-1") is None
    assert rule.bucket_of_file(f"{NEW.format(10)}-0") is None


def test_without_a_ring_there_is_none() -> None:
    assert found(storage_of(), timeline()) is None


@pytest.mark.parametrize(
    "marked, states, counts",
    [
        ((), {}, "00000000000000"),
        ((), {"early": "completed"}, EARLY),
        ((), {"early": "pending"}, "00000000000000"),
        ((), {"early": "completed", "late": "pending"}, EARLY),
        ((), {"early": "completed", "late": "completed"}, LATE),
        ((EARLY,), {}, EARLY),
        ((EARLY,), {"late": "completed"}, LATE),
        (("00000000000000",), {"early": "completed"}, EARLY),
        (("00000000000000", EARLY, LATE), {}, LATE),
    ],
)
def test_the_newest_ring_whose_resizing_is_complete_counts(
    marked: Collection[str], states: dict[str, str], counts: str
) -> None:
    storage = storage_of(INITIAL, resized(EARLY, number=10), resized(LATE, number=20), marked=marked)

    assert found(storage, timeline(**states)) == counts


def test_a_resizing_that_left_the_timeline_counts_by_the_files_that_only_it_can_have_made() -> None:
    storage = storage_of(INITIAL, resized(EARLY, number=10))
    kept, made = f"{INITIAL.nodes[0].file_id_prefix}-0", f"{NEW.format(10)}-0"

    assert found(storage, timeline(), live=[kept, made]) == EARLY  # archived
    assert found(storage, timeline(), live=[kept]) == "00000000000000"  # rolled back


def test_a_marker_without_its_ring_is_an_error_and_no_reason_to_go_by_another() -> None:
    storage = storage_of(INITIAL, marked=[EARLY])

    with pytest.raises(CorruptFile, match=f"{EARLY}.hashing_meta at byte 0: expected the ring that its marker says"):
        found(storage, timeline(early="completed"))


@pytest.mark.parametrize("other", [replace(INITIAL, partition="q"), replace(INITIAL, instant=LATE)])
def test_a_ring_in_the_wrong_place_is_an_error(other: HashingMetadata) -> None:
    storage = MemoryStorage()
    storage.put_new(INITIAL.path, other.encode())

    with pytest.raises(CorruptFile, match="expected the ring of"):
        found(storage, timeline())


def open_one(
    storage: MemoryStorage,
    at: Timeline,
    partition: str = "p",
    count: int = 4,
    check: Callable[[HashingMetadata], None] = lambda ring: None,
) -> HashingMetadata:
    return open_rings(
        storage,
        [partition],
        bucket_count=count,
        timeline=at,
        live_file_ids=lambda partition: (),
        check=check,
        executor=SerialExecutor(),
    )[partition]


@pytest.mark.parametrize("partition", ["p", "a=1/b=2", ""])
def test_the_first_write_to_a_partition_makes_its_ring(partition: str) -> None:
    storage = MemoryStorage()

    ring = open_one(storage, timeline(), partition)

    assert ring == HashingMetadata.initial(partition, 4)
    assert [file.path for file in storage.list("", recursive=True)] == [ring.path]
    assert open_one(storage, timeline(), partition, count=9) == ring  # what lies there counts


def test_of_two_first_writers_the_second_takes_what_the_first_one_made() -> None:
    class Late(MemoryStorage):
        """Another writer's ring appears between the listing and the put."""

        def put_new(self, path: str, content: bytes) -> bool:
            super().put_new(path, HashingMetadata.initial("p", 7).encode())
            return super().put_new(path, content)

    assert open_one(Late(), timeline()).initial_count == 7


def test_a_ring_that_does_not_fit_the_table_is_not_put() -> None:
    storage = MemoryStorage()

    def refuse(ring: HashingMetadata) -> None:
        raise Invalid(f"{ring.initial_count} buckets do not fit")

    with pytest.raises(Invalid, match="4 buckets do not fit"):
        open_one(storage, timeline(), check=refuse)
    assert list(storage.list("", recursive=True)) == []


def test_a_write_marks_a_resizing_so_that_it_counts_once_archived() -> None:
    storage = storage_of(INITIAL, resized(EARLY, number=10))

    assert open_one(storage, timeline(early="completed")).instant == EARLY
    assert storage.get(f"{ring_folder('p')}/{EARLY}.commit") == b""
    assert found(storage, timeline()) == EARLY


def test_a_ring_of_replaced_file_groups_is_not_written_to() -> None:
    refuse_replaced_nodes(INITIAL, {f"{NEW.format(10)}-0": LATE})
    with pytest.raises(Unsupported, match=f"the replacecommit {LATE} replaced"):
        refuse_replaced_nodes(INITIAL, {f"{INITIAL.nodes[1].file_id_prefix}-0": LATE})
