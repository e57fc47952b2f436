"""What an action changes in `files`: the partition of the metadata table that lists partitions and their files."""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.metadata.files import encode_files
from pyhudi.format.metadata.groups import FILES
from pyhudi.format.metadata.record import (
    FILES_TYPE,
    PARTITION_LIST_TYPE,
    PARTITIONS_KEY,
    FilesRecord,
    FileState,
    encode_files_record,
    files_key,
)
from pyhudi.format.timeline.records import CleanMetadata, CommitMetadata
from pyhudi.metadata.derive.changes import CELLS, PartitionChange, binary_keys, cells_of
from pyhudi.table.view.committed_files import PartitionFiles
from pyhudi.versions import TableVersion


def files_change(records: Mapping[str, FilesRecord], *, schema_text: str) -> PartitionChange:
    """The change that puts these records into a log. `records`: by key."""
    encoded = {key: encode_files_record(record, schema_text) for key, record in records.items()}
    return PartitionChange(FILES, cells_of(encoded))


def files_cells(
    keys: pa.Array, entries: pa.Table, *, table_version: TableVersion, base_file: str | None = None
) -> pa.Table:
    """Records of `files` as `CELLS`, made by columns.

    `keys`: large binary, each once. `entries`: as `FILES_COLUMNS`, ascending by `record`, which is the position of the
    entry's key in `keys`. `base_file`: the HFile that the records go into; None for a log.
    """
    is_list = pc.equal(keys, PARTITIONS_KEY.encode()).to_numpy(zero_copy_only=False)
    types = np.where(is_list, PARTITION_LIST_TYPE, FILES_TYPE)
    values = encode_files(
        types, entries, len(keys), table_version=table_version.metadata_schema, base_file_name=base_file
    )
    return pa.table([keys, values.cast(pa.large_binary())], schema=CELLS)


def initial_files_change(
    parts: Iterable[PartitionFiles], *, table_version: TableVersion, base_file: str
) -> PartitionChange:
    """The change that puts all files of a table, and the list of its partitions, into a base file of this name.

    Works by columns: millions of files do not become objects. Memory: names and sizes, and the records.
    """
    held = sorted(parts, key=lambda part: files_key(part.partition))
    keys = [files_key(part.partition) for part in held]
    listed = PartitionFiles("", pa.array(keys, pa.string()), pa.array(np.zeros(len(keys), np.int64)))

    every = [listed, *held]
    names = pa.concat_arrays([part.names.cast(pa.large_string()) for part in every])
    entries = pa.table(
        {
            "record": np.repeat(np.arange(len(every), dtype=np.int32), [len(part.names) for part in every]),
            "name": names,
            "size": pa.concat_arrays([part.sizes for part in every]),
            "is_deleted": np.zeros(len(names), np.bool_),
        }
    )

    every_key = binary_keys(pa.array([PARTITIONS_KEY, *keys], pa.string()))
    return PartitionChange(FILES, files_cells(every_key, entries, table_version=table_version, base_file=base_file))


def files_records(metadata: CommitMetadata) -> dict[str, FilesRecord]:
    """What a commit changes in `files`, by key: its partitions, and the new files of each."""
    new: dict[str, dict[str, int]] = {}
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.path:
                files = new.setdefault(partition, {})
                files[stat.path.rpartition("/")[2]] = stat.file_size_in_bytes or 0
                files |= {path.rpartition("/")[2]: size_bytes for path, size_bytes in (stat.cdc_stats or {}).items()}
    return listing_records(new)


def cleaned_records(metadata: CleanMetadata) -> dict[str, FilesRecord]:
    """What a clean changes in `files`, by key: tombstones of the removed files, and of partitions that are gone."""
    partitions = metadata.partition_metadata
    records = {
        files_key(partition): FilesRecord(
            FILES_TYPE, {name: FileState(0, is_deleted=True) for name in cleaned.delete_path_patterns}
        )
        for partition, cleaned in partitions.items()
    }
    gone = {
        files_key(p): FileState(0, is_deleted=True) for p, cleaned in partitions.items() if cleaned.is_partition_deleted
    }
    return {**records, PARTITIONS_KEY: FilesRecord(PARTITION_LIST_TYPE, gone)} if gone else records


def listing_records(files: Mapping[str, Mapping[str, int]]) -> dict[str, FilesRecord]:
    """Records for partitions and their files, together with the list of partitions."""
    records = {
        files_key(partition): FilesRecord(FILES_TYPE, {name: FileState(size, False) for name, size in sizes.items()})
        for partition, sizes in files.items()
    }
    partitions = {files_key(partition): FileState(0, False) for partition in files}
    return {**records, PARTITIONS_KEY: FilesRecord(PARTITION_LIST_TYPE, partitions)}
