"""What the metadata table must record after it was taken back: the files that differ from what they were then."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.format.metadata.record import (
    FILES_TYPE,
    PARTITION_LIST_TYPE,
    PARTITIONS_KEY,
    FilesRecord,
    FileState,
    files_key,
)
from pyhudi.format.timeline.records import CleanMetadata, CleanPartitionMetadata
from pyhudi.table.view.listing import FileListing


@dataclass(frozen=True, slots=True)
class FilesSync:
    """What differs. `records`: those of `files` that differ from the storage, by key. `gone`: the missing files, in the
    form of a clean.
    """

    records: Mapping[str, FilesRecord]
    gone: CleanMetadata


def plan_sync(stored: Mapping[str, Mapping[str, int]], known: FileListing, partitions: frozenset[str]) -> FilesSync:
    """Compare the committed files in the storage (partition -> name -> bytes) with the files that `files` lists.

    `partitions`: all that the storage has, some of them without committed files.
    Spec: format/metadata-table.md section 8, row `restore`: cleans are not taken back, and rollback blocks of version 6
    are new files.
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

    count = sum(len(removed.delete_path_patterns) for removed in gone.values())
    return FilesSync(records, CleanMetadata("", 0, count, "", "", gone))
