"""Two writers must make the same ring of a partition, byte for byte, and a damaged one must not place any row."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import CorruptFile
from pyhudi.format.keys.hashing_metadata import HashingFileName, HashingMetadata, RingNode, ring_folder

PREFIX = "c47f2c8e-7d46-3b96-83f5-8eebc912150{}"


def a_ring(**changes: Any) -> dict[str, Any]:
    nodes = [{"value": n, "fileIdPrefix": PREFIX.format(n), "tag": "NORMAL"} for n in (5, 9)]
    ring = {"version": 0, "partitionPath": "p", "instant": "00000000000000", "numBuckets": 2, "seqNo": 0}
    return {**ring, "nodes": nodes, **changes}


@given(partition=st.text(max_size=10), count=st.integers(1, 300))
def test_a_ring_that_was_written_is_read_again(partition: str, count: int) -> None:
    ring = HashingMetadata.initial(partition, count)

    assert HashingMetadata.decode(ring.encode(), path="p") == ring
    places = [node.last_hash for node in ring.nodes]
    assert places == sorted(set(places))
    assert len(places) == count
    assert places[-1] == 0x7FFFFFFF


def test_the_most_buckets_that_a_table_may_begin_with_are_distinct() -> None:
    assert len(HashingMetadata.initial("p", 46_341).nodes) == 46_341
    with pytest.raises(AssertionError):
        HashingMetadata.initial("p", 60_000)


def test_nodes_are_read_in_any_order_and_unknown_members_passed_over() -> None:
    ring = a_ring(later="x")
    ring["nodes"].reverse()

    found = HashingMetadata.decode(json.dumps(ring).encode(), path="p")

    assert found.nodes == (RingNode(5, PREFIX.format(5)), RingNode(9, PREFIX.format(9)))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"version": 1}, "expected 'version' from 0 to 0, found 1"),
        ({"nodes": []}, "expected at least one node"),
        ({"nodes": None}, "expected 'nodes' of type list, found None"),
        ({"nodes": [1]}, "expected a JSON object for each node, found int"),
        ({"seqNo": "0"}, "expected 'seqNo' of type int, found '0'"),
        ({"seqNo": True}, "expected 'seqNo' of type int, found True"),
        ({"nodes": a_ring()["nodes"] * 2}, "expected nodes of distinct value, found '5' twice"),
        ({"nodes": [{**a_ring()["nodes"][0], "tag": "DELETE"}]}, "expected nodes with the tag NORMAL, found 'DELETE'"),
        ({"nodes": [{**a_ring()["nodes"][0], "value": -1}]}, "expected 'value' from 0 to 2,147,483,647, found -1"),
        ({"nodes": [{**a_ring()["nodes"][0], "fileIdPrefix": "../x"}]}, "expected a UUID as 'fileIdPrefix'"),
        (
            {"nodes": [a_ring()["nodes"][0], {**a_ring()["nodes"][0], "value": 7}]},
            "expected nodes of distinct fileIdPrefix",
        ),
    ],
)
def test_a_damaged_ring_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CorruptFile, match=message) as caught:
        HashingMetadata.decode(json.dumps(a_ring(**changes)).encode(), path="a/ring")
    assert caught.value.path == "a/ring"


@given(st.one_of(st.binary(max_size=40), st.sampled_from([b"[" * 100_000, b"[]", b""])))
def test_other_bytes_are_no_ring(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        HashingMetadata.decode(content, path="p")


def test_paths_and_names() -> None:
    assert ring_folder("") == ".hoodie/.bucket_index/consistent_hashing_metadata"
    assert HashingMetadata.initial("", 1).path == f"{ring_folder('')}/00000000000000.hashing_meta"
    assert HashingMetadata.initial("a=1/b=2", 1).path == f"{ring_folder('')}/a=1/b=2/00000000000000.hashing_meta"
    for name in ("00000000000000.hashing_meta", "20261121113815839.commit"):
        parsed = HashingFileName.parse(name)
        assert parsed is not None
        assert parsed.format() == name
    assert HashingFileName.parse(".00000000000000.hashing_meta.crc") is None
