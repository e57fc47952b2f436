"""Hashing metadata: a partition's ring in the consistent hashing bucket index, and the file that holds the ring.

Spec: format/indexes.md section 5.
"""

import hashlib
import json
import re
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Self, TypeVar
from uuid import UUID

from pyhudi.errors import CorruptFile
from pyhudi.format.names import HOODIE
from pyhudi.format.pretty_json import pretty_json

BUCKET_INDEX = f"{HOODIE}/.bucket_index"
RINGS = f"{BUCKET_INDEX}/consistent_hashing_metadata"
COUNTS_BY_PARTITION = f"{BUCKET_INDEX}/partition_bucket_index_meta"
"""Rules that give partitions of the fixed bucket index their own bucket counts. Spec: format/indexes.md section 4."""

INITIAL_INSTANT = "00000000000000"
"""The instant of a partition's first ring, which no resizing has made."""

RING_HASH_MAX: Final = 0x7FFFFFFF
"""The last hash of a ring."""

_T = TypeVar("_T")

_VERSION = 0
_TAG = "NORMAL"
_REPLACED, _DELETED = "REPLACE", "DELETE"
"""The tags of nodes in the plan of a resizing."""
_PREFIX = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = re.compile(r"(?P<instant>[0-9]+)(?P<ending>\.hashing_meta|\.commit)")


@dataclass(frozen=True, slots=True)
class RingNode:
    """A bucket: the hashes behind those of the node before, up to and including `last_hash`."""

    last_hash: int
    file_id_prefix: str


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node that a resizing will change. `file_id_prefix`: that of the bucket's new file group; None: the node goes,
    and the next one of the ring takes its hashes.
    """

    last_hash: int
    file_id_prefix: str | None


@dataclass(frozen=True, slots=True)
class HashingMetadata:
    """The ring of one partition. The nodes are ordered by hash.

    `instant`: the instant of the resizing that made the ring. `initial_count`: the buckets that the partition began
    with. `resizings`: how many resizings the ring has behind it.
    """

    partition: str
    instant: str
    initial_count: int
    resizings: int
    nodes: tuple[RingNode, ...]

    @classmethod
    def initial(cls, partition: str, bucket_count: int) -> Self:
        """The ring that a partition begins with: the same on every machine."""
        step = (RING_HASH_MAX + bucket_count - 1) // bucket_count
        ends = [min(step * number, RING_HASH_MAX) for number in range(bucket_count + 1)]
        assert 1 <= bucket_count == len(set(ends)) - 1, bucket_count
        nodes = (RingNode(end, _prefix(partition, start, end)) for start, end in pairwise(ends))
        return cls(partition, INITIAL_INSTANT, bucket_count, 0, tuple(nodes))

    def resized(self, instant: str, planned: Iterable[PlannedNode]) -> Self:
        """The ring after a resizing at this instant."""
        nodes = {node.last_hash: node.file_id_prefix for node in self.nodes}
        for node in planned:
            if node.file_id_prefix is None:
                del nodes[node.last_hash]
            else:
                nodes[node.last_hash] = node.file_id_prefix
        made = tuple(RingNode(last_hash, prefix) for last_hash, prefix in sorted(nodes.items()))
        return replace(self, instant=instant, resizings=self.resizings + 1, nodes=made)

    @property
    def path(self) -> str:
        return f"{ring_folder(self.partition)}/{HashingFileName(self.instant, is_marker=False).format()}"

    def encode(self) -> bytes:
        """The file's bytes, as Apache Hudi 1.2.0 lays them out."""
        nodes = [{"value": n.last_hash, "fileIdPrefix": n.file_id_prefix, "tag": _TAG} for n in self.nodes]
        return pretty_json(
            {
                "version": _VERSION,
                "partitionPath": self.partition,
                "instant": self.instant,
                "numBuckets": self.initial_count,
                "seqNo": self.resizings,
                "nodes": nodes,
            }
        ).encode()

    @classmethod
    def decode(cls, content: bytes, *, path: str) -> Self:
        """The ring in a file's bytes. JSON members that are not known are passed over.

        Raises: CorruptFile for bytes that are no ring.
        """
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise CorruptFile(path, 0, expected="hashing metadata as JSON", found=str(error)) from None
        if not isinstance(value, dict):
            raise CorruptFile(path, 0, expected="a JSON object", found=type(value).__name__)

        _get_number(value, "version", path, least=_VERSION, most=_VERSION)
        listed = _get(value, "nodes", list, path)
        nodes = sorted((_node(item, path) for item in listed), key=lambda node: node.last_hash)
        _refuse_unusable(nodes, path)

        return cls(
            partition=_get(value, "partitionPath", str, path),
            instant=_get(value, "instant", str, path),
            initial_count=_get_number(value, "numBuckets", path, least=1, most=RING_HASH_MAX),
            resizings=_get_number(value, "seqNo", path, least=0, most=RING_HASH_MAX),
            nodes=tuple(nodes),
        )


@dataclass(frozen=True, slots=True)
class HashingFileName:
    """The name of a ring's file, or of the empty marker file beside it that makes the ring valid."""

    instant: str
    is_marker: bool

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """The parsed name, or None for any other file."""
        match = _NAME.fullmatch(name)
        return cls(match["instant"], match["ending"] == ".commit") if match else None

    def format(self) -> str:
        return f"{self.instant}{'.commit' if self.is_marker else '.hashing_meta'}"


def encode_planned_nodes(nodes: Iterable[PlannedNode]) -> str:
    """The nodes of one group of a resizing's plan, as the plan has them. Seen: 1.0.2, 1.2.0."""
    return pretty_json(
        [
            {
                "value": node.last_hash,
                "fileIdPrefix": node.file_id_prefix,
                "tag": _DELETED if node.file_id_prefix is None else _REPLACED,
            }
            for node in nodes
        ]
    )


def decode_planned_nodes(text: str, *, path: str) -> tuple[PlannedNode, ...]:
    """The nodes of one group of a resizing's plan. `path`: of the plan, for errors.

    Raises: CorruptFile for a text that says no nodes.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(path, 0, expected="nodes of a ring as JSON", found=str(error)) from None
    if not isinstance(value, list) or not value:
        raise CorruptFile(path, 0, expected="a JSON list of nodes", found=repr(value)[:100])

    nodes = tuple(_planned_node(item, path) for item in value)
    _refuse_doubles("value", [node.last_hash for node in nodes], path)
    return nodes


def ring_folder(partition: str) -> str:
    """The folder of a partition's rings."""
    return f"{RINGS}/{partition}" if partition else RINGS


def _prefix(partition: str, start: int, end: int) -> str:
    """The name UUID (MD5, without a namespace) of a range of hashes in a partition."""
    named = struct.pack(">qq", start, end) + partition.encode()
    return str(UUID(bytes=hashlib.md5(named, usedforsecurity=False).digest(), version=3))


def _node(item: object, path: str) -> RingNode:
    if not isinstance(item, dict):
        raise CorruptFile(path, 0, expected="a JSON object for each node", found=type(item).__name__)
    tag = _get(item, "tag", str, path)
    if tag != _TAG:
        raise CorruptFile(path, 0, expected=f"nodes with the tag {_TAG}", found=f"'{tag}'")
    last_hash = _get_number(item, "value", path, least=0, most=RING_HASH_MAX)
    prefix = _get(item, "fileIdPrefix", str, path)
    if not _PREFIX.fullmatch(prefix):
        raise CorruptFile(path, 0, expected="a UUID as 'fileIdPrefix'", found=f"'{prefix}'")
    return RingNode(last_hash, prefix)


def _planned_node(item: object, path: str) -> PlannedNode:
    if not isinstance(item, dict):
        raise CorruptFile(path, 0, expected="a JSON object for each node", found=type(item).__name__)
    tag = _get(item, "tag", str, path)
    last_hash = _get_number(item, "value", path, least=0, most=RING_HASH_MAX)
    if tag == _DELETED:
        return PlannedNode(last_hash, None)
    prefix = item.get("fileIdPrefix")
    if tag != _REPLACED or not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
        raise CorruptFile(
            path, 0, expected=f"a node that is gone ({_DELETED}) or replaced ({_REPLACED}, with a UUID)",
            found=f"'{tag}' of {prefix!r}",
        )  # fmt: skip
    return PlannedNode(last_hash, prefix)


def _refuse_unusable(nodes: list[RingNode], path: str) -> None:
    if not nodes:
        raise CorruptFile(path, 0, expected="at least one node", found="none")
    _refuse_doubles("value", [node.last_hash for node in nodes], path)
    _refuse_doubles("fileIdPrefix", [node.file_id_prefix for node in nodes], path)


def _refuse_doubles(what: str, values: Sequence[object], path: str) -> None:
    double = next((value for value, count in Counter(values).items() if count > 1), None)
    if double is not None:
        raise CorruptFile(path, 0, expected=f"nodes of distinct {what}", found=f"'{double}' twice")


def _get(value: dict[str, Any], name: str, kind: type[_T], path: str) -> _T:
    found = value.get(name)
    if type(found) is not kind:
        raise CorruptFile(path, 0, expected=f"'{name}' of type {kind.__name__}", found=repr(found))
    return found


def _get_number(value: dict[str, Any], name: str, path: str, *, least: int, most: int) -> int:
    number = _get(value, name, int, path)
    if not least <= number <= most:
        raise CorruptFile(path, 0, expected=f"'{name}' from {least:,} to {most:,}", found=f"{number:,}")
    return number
