"""What the metadata table has to say anew once it was taken back: the files that are not as they were at that time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyhudi.format.metadata_record import (
    FILES_TYPE,
    PARTITION_LIST_TYPE,
    PARTITIONS_KEY,
    FilesRecord,
    FileState,
    files_key,
)
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.model.commit import CleanMetadata, CleanPartitionMetadata
from pyhudi.table.file_system_view import LogSlicing
from pyhudi.table.listing import FileListing, StorageListing
from pyhudi.timeline.active import Timeline


@dataclass(frozen=True, slots=True)
class FilesSync:
    """The records of `files` that differ from the storage, by key, and the files that are gone, as a clean says it."""

    records: Mapping[str, FilesRecord]
    gone: CleanMetadata


def plan_sync(stored: Mapping[str, Mapping[str, int]], known: FileListing, partitions: frozenset[str]) -> FilesSync:
    """Compare the committed files that are stored (partition -> name -> bytes) with those that `files` lists.

    `partitions`: all that the storage has, some without such files. Spec: format/metadata-table.md section 8, row
    `restore`: cleans are not taken back, and rollback blocks of version 6 are new files.
    """
    records: dict[str, FilesRecord] = {}
    gone: dict[str, CleanPartitionMetadata] = {}
    listed = set(known.partitions())
    for partition in sorted({*stored, *listed}):
        there = stored.get(partition, {})
        before = {file.name: file.size_bytes for file in known.files(partition)} if partition in listed else {}
        states = {name: FileState(size, False) for name, size in there.items() if before.get(name) != size}
        lost = sorted(before.keys() - there.keys())
        states |= {name: FileState(0, is_deleted=True) for name in lost}
        if states:
            records[files_key(partition)] = FilesRecord(FILES_TYPE, states)
        if lost:
            gone[partition] = CleanPartitionMetadata(partition, "", tuple(lost), tuple(lost))
    changed = {files_key(p): FileState(0, False) for p in stored if p not in listed and stored[p]}
    changed |= {files_key(p): FileState(0, is_deleted=True) for p in listed - partitions}
    if changed:
        records[PARTITIONS_KEY] = FilesRecord(PARTITION_LIST_TYPE, changed)
    count = sum(len(of.delete_path_patterns) for of in gone.values())
    return FilesSync(records, CleanMetadata("", 0, count, "", "", gone))


def committed_files(listing: StorageListing, timeline: Timeline, slicing: LogSlicing) -> dict[str, dict[str, int]]:
    """Partition -> file name -> bytes, of the files whose instants are completed.

    Where logs are called after their slice all of them count: readers tell what is committed by the blocks.
    """
    return {partition: dict(_committed(listing, partition, timeline, slicing)) for partition in listing.partitions()}


def _committed(
    listing: StorageListing, partition: str, timeline: Timeline, slicing: LogSlicing
) -> Iterator[tuple[str, int]]:
    for file in listing.files(partition):
        base, logged = BaseFileName.parse(file.name), LogFileName.parse(file.name)
        instant = base.requested if base else logged.instant if logged else None
        is_by_name = logged is not None and slicing.is_by_name
        if is_by_name or (instant is not None and timeline.is_committed(instant)):
            yield file.name, file.size_bytes
