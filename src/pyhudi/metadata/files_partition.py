"""The `files` partition: which partitions a table has and which files lie in them."""

from collections.abc import Callable, Iterator, Mapping
from datetime import tzinfo

from pyhudi.errors import CorruptFile
from pyhudi.format.hfile.reader import HFileReader
from pyhudi.format.log.block import BlockType
from pyhudi.format.log.source import MemoryLog
from pyhudi.format.metadata_record import (
    PARTITIONS_KEY,
    FilesRecord,
    decode_files_record,
    files_key,
    merge_files_records,
    partition_of_key,
)
from pyhudi.format.names import join
from pyhudi.metadata.table import FILES, MetadataTable, open_metadata_table
from pyhudi.storage.protocol import Storage
from pyhudi.table.config import TableConfig
from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.listing import FileListing, ListedFile, StorageListing
from pyhudi.table.slice_log import slice_blocks
from pyhudi.timeline.active import Timeline

_Values = dict[bytes, list[tuple[bytes, str]]]


class MetadataListing:
    """The file listing that the metadata table gives: two list requests and a get
    a file of it, whatever the table's size.

    Memory: the `files` partition's records as bytes; a record is decoded when its partition is asked for.
    """

    source = "metadata table"

    def __init__(self, values: Mapping[bytes, list[tuple[bytes, str]]]) -> None:
        self._values = values

    def partitions(self) -> list[str]:
        record = self._record(PARTITIONS_KEY)
        return sorted(partition_of_key(key) for key in record.live) if record is not None else []

    def files(self, partition: str) -> list[ListedFile]:
        record = self._record(files_key(partition))
        return [ListedFile(name, size) for name, size in sorted(record.live.items())] if record is not None else []

    def _record(self, key: str) -> FilesRecord | None:
        merged: FilesRecord | None = None
        for value, schema_text in self._values.get(key.encode(), ()):
            record = decode_files_record(value, schema_text)
            merged = record if merged is None else merge_files_records(merged, record)
        return merged

    def records(self) -> Iterator[tuple[str, FilesRecord]]:
        """Every record, merged, by key."""
        for key in sorted(self._values):
            record = self._record(key.decode())
            assert record is not None
            yield key.decode(), record


def open_listing(storage: Storage, config: TableConfig, timeline: Timeline, zone: tzinfo) -> FileListing:
    """The listing of the metadata table or, for a table without one, of the storage."""
    if not config.has_metadata_table:
        return StorageListing(storage)
    return read_files_partition(open_metadata_table(storage, zone), timeline)


def read_files_partition(table: MetadataTable, data_timeline: Timeline) -> MetadataListing:
    """The `files` partition as of the data table's timeline.

    Blocks of deltacommits whose data action has not completed are left out.
    Spec: format/metadata-table.md section 10.
    """
    is_valid = block_filter(table, data_timeline)
    values: _Values = {}
    for piece in table.slices(FILES):
        for key, value, schema_text in _slice_cells(table, piece, is_valid):
            values.setdefault(key, []).append((value, schema_text))
    return MetadataListing(values)


def block_filter(table: MetadataTable, data_timeline: Timeline) -> Callable[[str], bool]:
    """Which log blocks count, by their instant: those of completed deltacommits whose data action is not pending."""
    pending = {i.requested for i in data_timeline.pending}
    return lambda instant: instant not in pending and table.timeline.is_committed(instant)


def _slice_cells(
    table: MetadataTable, piece: FileSlice, is_valid: Callable[[str], bool]
) -> Iterator[tuple[bytes, bytes, str]]:
    """Key, value and schema of each cell of a slice, oldest first."""
    if piece.base_file is not None:
        path = join(piece.partition, piece.base_file.name.format())
        yield from _hfile_cells(table.storage.get(path), path)
    paths = [join(piece.partition, log.name.format()) for log in piece.log_files]
    contents = {path: table.storage.get(path) for path in paths}  # small: a request each is less than ranges of them
    logs = ((path, MemoryLog(content), len(content)) for path, content in contents.items())
    for block in slice_blocks(logs, is_valid):
        if block.type is BlockType.HFILE_DATA:
            yield from _hfile_cells(block.read_content(), block.path)


def _hfile_cells(content: bytes | memoryview, path: str) -> Iterator[tuple[bytes, bytes, str]]:
    reader = HFileReader(content, path=path)
    schema_text = reader.schema_text
    if schema_text is None:
        raise CorruptFile(path, 0, expected="an HFile with its values' schema", found="one without")
    for key, value in reader.scan():
        yield key, value, schema_text
