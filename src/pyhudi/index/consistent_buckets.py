"""The bucket index with consistent hashing: each partition has a ring of buckets, which can be resized one by one.

Spec: format/indexes.md section 5.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import CorruptFile, Unsupported
from pyhudi.executor import Executor
from pyhudi.format.keys.bucket_hash import ring_hashes
from pyhudi.format.keys.hashing_metadata import INITIAL_INSTANT, HashingFileName, HashingMetadata, ring_folder
from pyhudi.format.names import file_group_id
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import Timeline

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class RingBuckets:
    """The buckets of one partition, numbered along its ring. The ring states the ids of their file groups."""

    ring: HashingMetadata
    hash_fields: tuple[str, ...]

    @property
    def bucket_count(self) -> int:
        return len(self.ring.nodes)

    def bucket_of(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """The bucket of a key: the first node at or after the key's hash on the ring.

        After the last comes the first.
        """
        last_hashes = np.array([node.last_hash for node in self.ring.nodes], dtype=np.int32)
        found = np.searchsorted(last_hashes, ring_hashes(keys, self.hash_fields), side="left")
        return (found % len(last_hashes)).astype(np.int32)

    def file_id_of(self, bucket: int, new_uuid: Callable[[], str]) -> str:
        return file_group_id(self.ring.nodes[bucket].file_id_prefix, 0)

    def bucket_of_file(self, file_id: str) -> int | None:
        prefix, _, count = file_id.rpartition("-")
        if count != "0":
            return None
        return next((n for n, node in enumerate(self.ring.nodes) if node.file_id_prefix == prefix), None)


@dataclass(frozen=True, slots=True)
class RingFolder:
    """The ring files of a partition. `rings`: the instants that have a ring; `marked`: those that a marker confirms."""

    rings: frozenset[str]
    marked: frozenset[str]


def find_ring(
    storage: Storage, partition: str, timeline: Timeline, live_file_ids: Callable[[], Collection[str]]
) -> HashingMetadata | None:
    """The ring that is in force in a partition. None if the partition has none yet.

    `live_file_ids`: ids of the file groups that a reader sees in the partition. It is called only for a resizing that
    has no marker and is no longer on the timeline. Requests: a listing, and one file; one more for each such resizing.
    Raises: CorruptFile for a marked ring whose file is gone, and for bytes that are no ring.
    """
    folder = _list_folder(storage, partition)
    counted = max(folder.marked, default=None)
    if counted is not None and counted not in folder.rings:
        path = f"{ring_folder(partition)}/{HashingFileName(counted, is_marker=False).format()}"
        raise CorruptFile(path, 0, expected="the ring that its marker says counts", found="no file")

    ring = _read_ring(storage, partition, counted) if counted is not None else None

    # A newer ring without a marker counts if its resizing was completed; a crash may have kept it from being marked.
    newer = sorted(instant for instant in folder.rings if counted is None or instant > counted)
    for instant in newer:
        if instant == INITIAL_INSTANT:
            ring = _read_ring(storage, partition, instant)
            continue
        state = _state(timeline, instant)
        if state == "completed":
            ring = _read_ring(storage, partition, instant)
        # Archived or rolled back: the files that the resizing left tell which.
        elif state == "unknown":
            resized = _read_ring(storage, partition, instant)
            if _has_files(resized, ring, live_file_ids()):
                ring = resized
            else:
                log.info(
                    "the ring of partition '%s' at %s does not count: its resizing left nothing", partition, instant
                )
    return ring


def open_rings(
    storage: Storage,
    partitions: Sequence[str],
    *,
    bucket_count: int,
    timeline: Timeline,
    live_file_ids: Callable[[str], Collection[str]],
    check: Callable[[HashingMetadata], None],
    executor: Executor,
) -> dict[str, HashingMetadata]:
    """The ring of each partition, for a write. A partition without one gets the first ring, of `bucket_count` buckets.

    `check`: raises if the ring in force, or about to be created, must not be written by.
    Call it while holding the table's guard. If the write dies, any other writer would have left the same files.
    Requests: as `find_ring`, a put for a new ring, and a put for a missing marker.
    """

    def open_ring(partition: str) -> HashingMetadata:
        ring = find_ring(storage, partition, timeline, lambda: live_file_ids(partition))
        is_new = ring is None
        ring = HashingMetadata.initial(partition, bucket_count) if ring is None else ring

        check(ring)
        # Another writer may have put the same ring first: then that one counts.
        if is_new and not storage.put_new(ring.path, ring.encode()):
            ring = _read_ring(storage, partition, ring.instant)
            check(ring)

        if ring.instant != INITIAL_INSTANT:
            marker = HashingFileName(ring.instant, is_marker=True).format()
            storage.put_new(f"{ring_folder(partition)}/{marker}", b"")
        return ring

    return dict(zip(partitions, executor.run(open_ring, partitions), strict=True))


def refuse_replaced_nodes(ring: HashingMetadata, replaced: Mapping[str, str]) -> None:
    """Refuse to write by a ring that names a replaced file group: readers would not see rows written there.

    `replaced`: file id -> requested time, for the partition. Raises: Unsupported.
    """
    for node in ring.nodes:
        file_id = file_group_id(node.file_id_prefix, 0)
        if file_id in replaced:
            raise Unsupported(
                f"partition '{ring.partition}': its ring at {ring.instant} names file group '{file_id}', which the "
                f"replacecommit {replaced[file_id]} replaced, so that no reader would see rows written there; write to "
                "another partition, or make another table"
            )


def _list_folder(storage: Storage, partition: str) -> RingFolder:
    prefix = ring_folder(partition)
    names = [HashingFileName.parse(file.path.rpartition("/")[2]) for file in storage.list(prefix)]
    return RingFolder(
        rings=frozenset(name.instant for name in names if name is not None and not name.is_marker),
        marked=frozenset(name.instant for name in names if name is not None and name.is_marker),
    )


def _read_ring(storage: Storage, partition: str, instant: str) -> HashingMetadata:
    path = f"{ring_folder(partition)}/{HashingFileName(instant, is_marker=False).format()}"
    ring = HashingMetadata.decode(storage.get(path), path=path)
    for what, expected, found in (("partition", partition, ring.partition), ("instant", instant, ring.instant)):
        if expected != found:
            raise CorruptFile(path, 0, expected=f"the ring of {what} '{expected}'", found=f"that of '{found}'")
    return ring


def _state(timeline: Timeline, instant: str) -> str:
    """Whether a resizing is `completed`, `pending`, or `unknown`: archived, or rolled back."""
    if any(i.requested == instant for i in timeline.completed_writes):
        return "completed"
    return "pending" if any(i.requested == instant for i in timeline.pending) else "unknown"


def _has_files(resized: HashingMetadata, before: HashingMetadata | None, live: Collection[str]) -> bool:
    """Whether readers see a file group that only this resizing can have made.

    Seen: 1.2.0 takes any file group of the ring as proof, even one that the resizing left alone.
    """
    old = {node.file_id_prefix for node in before.nodes} if before is not None else set()
    made = {file_group_id(node.file_id_prefix, 0) for node in resized.nodes if node.file_id_prefix not in old}
    return not made.isdisjoint(live)
