"""What an action changes in `files`: the partition of the metadata table that lists partitions and their files."""

from collections.abc import Mapping

from pyhudi.format.metadata_record import (
    FILES_TYPE,
    PARTITION_LIST_TYPE,
    PARTITIONS_KEY,
    FilesRecord,
    FileState,
    encode_files_record,
    files_key,
)
from pyhudi.metadata.changes import PartitionChange, cells_of
from pyhudi.metadata.table import FILES
from pyhudi.model.commit import CleanMetadata, CommitMetadata


def files_change(
    records: Mapping[str, FilesRecord], *, schema_text: str, base_file: str | None = None
) -> PartitionChange:
    """The change that puts these records, by key. `base_file`: the HFile that they go into; None for a log."""
    encoded = {key: encode_files_record(of, schema_text, base_file_name=base_file) for key, of in records.items()}
    return PartitionChange(FILES, cells_of(encoded))


def files_records(metadata: CommitMetadata) -> dict[str, FilesRecord]:
    """What a commit changes in `files`, by key: its partitions, and the new files of each."""
    new: dict[str, dict[str, int]] = {}
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.path:
                files = new.setdefault(partition, {})
                files[stat.path.rpartition("/")[2]] = stat.file_size_in_bytes or 0
    return listing_records(new)


def cleaned_records(metadata: CleanMetadata) -> dict[str, FilesRecord]:
    """What a clean changes in `files`, by key: tombstones of the files, and of the partitions that are no more."""
    partitions = metadata.partition_metadata
    records = {
        files_key(partition): FilesRecord(
            FILES_TYPE, {name: FileState(0, is_deleted=True) for name in of.delete_path_patterns}
        )
        for partition, of in partitions.items()
    }
    gone = {files_key(p): FileState(0, is_deleted=True) for p, of in partitions.items() if of.is_partition_deleted}
    return {**records, PARTITIONS_KEY: FilesRecord(PARTITION_LIST_TYPE, gone)} if gone else records


def listing_records(files: Mapping[str, Mapping[str, int]]) -> dict[str, FilesRecord]:
    """Records for partitions and their files, the list of partitions among them."""
    records = {
        files_key(partition): FilesRecord(FILES_TYPE, {name: FileState(size, False) for name, size in of.items()})
        for partition, of in files.items()
    }
    partitions = {files_key(partition): FileState(0, False) for partition in files}
    return {**records, PARTITIONS_KEY: FilesRecord(PARTITION_LIST_TYPE, partitions)}
