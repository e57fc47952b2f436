"""How long listing takes, by the storage and by the metadata table.

Spec: RFC-15 (spec/001), "Performance numbers": the rows of `metadata perf`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pyhudi.errors import Invalid
from pyhudi.metadata.kinds.registry import LISTING
from pyhudi.metadata.store.files_partition import read_files_partition
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.table.view.file_system_view import FileSlice, all_slices, latest_slices
from pyhudi.table.view.listing import FileListing, StorageListing
from pyhudi.table.view.snapshot import Snapshot, log_slicing

T = TypeVar("T")

PARTITIONS_TIMED_MAX = 20
"""Partitions that are timed, spread over all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingTime:
    """One row: milliseconds of the storage's listing and of the metadata table's; a partition's are an average."""

    name: str
    group: str
    existing_ms: float
    metadata_ms: float

    @property
    def difference_percent(self) -> float:
        """How much longer the metadata table takes; negative where it is faster."""
        return (self.metadata_ms / self.existing_ms - 1) * 100 if self.existing_ms else 0.0


@dataclass(frozen=True, slots=True)
class ListingTimes:
    """Times of a table's listings. `open_ms`: reading the metadata table's files, which every warm row has behind it.

    `manifest`: its files that were read, with their bytes. `largest`: the partition with the most files.
    """

    open_ms: float
    manifest: tuple[tuple[str, int], ...]
    files: int
    partitions: int
    largest: str
    partitions_timed: int
    rows: tuple[ListingTime, ...]


def time_listings(
    snapshot: Snapshot, table: MetadataTable, *, partitions_max: int, on_progress: Callable[[int, int], None]
) -> ListingTimes:
    """Both listings side by side. Requests of the storage's: every folder twice, and the timed partitions' a row.

    Raises: Invalid for a number of partitions that is none.
    """
    if isinstance(partitions_max, bool) or not isinstance(partitions_max, int) or partitions_max < 1:
        raise Invalid(f"partitions_max={partitions_max!r}: expected a whole number of at least 1")
    manifest = _manifest(table)
    started = time.perf_counter()
    known = read_files_partition(table, snapshot.timeline)
    known.expect(known.partitions())  # nothing is read before it is asked for
    open_ms = _since_ms(started)

    stored = StorageListing(snapshot.storage, nests=snapshot.config.may_nest_partitions)
    existing_ms, _ = _timed(stored.partitions)
    metadata_ms, partitions = _timed(known.partitions)
    rows = [
        ListingTime(name="getAllPartitions", group="Partition lookup", existing_ms=existing_ms, metadata_ms=metadata_ms)
    ]

    chosen = _spread(partitions, partitions_max)
    total = len(_VIEWS) + 1
    rows.append(_average("getAllFilesInPartition", "Partition lookup", stored, known, chosen, _files))
    on_progress(1, total)

    counts = {partition: len(known.files(partition)) for partition in partitions}
    for number, (name, view) in enumerate(_VIEWS.items()):
        rows.append(_average(name, "File system view", stored, known, chosen, partial(view, snapshot)))
        on_progress(number + 2, total)

    return ListingTimes(
        open_ms=open_ms,
        manifest=manifest,
        files=sum(counts.values()),
        partitions=len(partitions),
        largest=max(counts, key=lambda partition: counts[partition], default=""),
        partitions_timed=len(chosen),
        rows=tuple(rows),
    )


def _files(listing: FileListing, partition: str) -> Sequence[object]:
    return listing.files(partition)


def _base_files(snapshot: Snapshot, listing: FileListing, partition: str) -> Sequence[object]:
    return [
        file_slice.base_file for file_slice in _slices(snapshot, listing, partition) if file_slice.base_file is not None
    ]


def _file_groups(snapshot: Snapshot, listing: FileListing, partition: str) -> Sequence[object]:
    return list(_groups(snapshot, listing, partition))


def _slices(snapshot: Snapshot, listing: FileListing, partition: str) -> list[FileSlice]:
    return [file_slice for file_slices in _groups(snapshot, listing, partition).values() for file_slice in file_slices]


def _latest_base_files(snapshot: Snapshot, listing: FileListing, partition: str) -> Sequence[object]:
    return [
        file_slice for file_slice in _latest_slices(snapshot, listing, partition) if file_slice.base_file is not None
    ]


def _latest_slices(snapshot: Snapshot, listing: FileListing, partition: str) -> list[FileSlice]:
    return latest_slices(partition, listing.files(partition), snapshot.timeline, slicing=log_slicing(snapshot.config))


def _latest_uncompacted_slices(snapshot: Snapshot, listing: FileListing, partition: str) -> Sequence[object]:
    """The newest slice of each group that no pending compaction began."""
    pending = {i.requested for i in snapshot.timeline.pending_services}
    found = []
    for file_slices in _groups(snapshot, listing, partition).values():
        complete = (file_slice for file_slice in file_slices if file_slice.base_instant not in pending)
        if (file_slice := next(complete, None)) is not None:
            found.append(file_slice)
    return found


def _groups(snapshot: Snapshot, listing: FileListing, partition: str) -> dict[str, tuple[FileSlice, ...]]:
    return all_slices(partition, listing.files(partition), snapshot.timeline, slicing=log_slicing(snapshot.config))


_VIEWS: dict[str, Callable[[Snapshot, FileListing, str], Sequence[object]]] = {
    "getAllBaseFiles": _base_files,
    "getAllFileGroups": _file_groups,
    "getAllFileSlices": _slices,
    "getLatestBaseFiles": _latest_base_files,
    "getLatestFileSlices": _latest_slices,
    "getLatestUnCompactedFileSlices": _latest_uncompacted_slices,
}


def _average(
    name: str,
    group: str,
    stored: FileListing,
    known: FileListing,
    partitions: Sequence[str],
    ask: Callable[[FileListing, str], object],
) -> ListingTime:
    """Both listings asked in turns, partition by partition."""
    existing_ms = metadata_ms = 0.0
    for partition in partitions:
        existing_ms += _timed(partial(ask, stored, partition))[0]
        metadata_ms += _timed(partial(ask, known, partition))[0]
    count = max(1, len(partitions))
    return ListingTime(name=name, group=group, existing_ms=existing_ms / count, metadata_ms=metadata_ms / count)


def _manifest(table: MetadataTable) -> tuple[tuple[str, int], ...]:
    files = []
    for file_slice in table.slices(LISTING):
        if file_slice.base_file is not None:
            files.append((file_slice.base_file.name.format(), file_slice.base_file.size_bytes))
        files += [(log.name.format(), log.size_bytes) for log in file_slice.log_files]
    return tuple(files)


def _spread(partitions: Sequence[str], count_max: int) -> list[str]:
    """At most so many of them, evenly spread, the first among them."""
    step = max(1, -(-len(partitions) // count_max))
    return list(partitions[::step])


def _timed(ask: Callable[[], T]) -> tuple[float, T]:
    started = time.perf_counter()
    answer = ask()
    return _since_ms(started), answer


def _since_ms(started: float) -> float:
    return (time.perf_counter() - started) * 1000
