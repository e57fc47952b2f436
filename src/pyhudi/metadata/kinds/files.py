"""`files`: the list of the table's partitions and of their files. It is there as long as the metadata table.

Spec: what Apache Hudi's metadata table validator compares, but file by file: where names and sizes agree, so do
the base files, file groups and file slices that are made of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from pyhudi.errors import Bug
from pyhudi.format.avro.schema_files import metadata_record_schema
from pyhudi.format.log.source import MemoryLog
from pyhudi.format.metadata.groups import FILES
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.metadata.record import PARTITIONS_KEY, FilesRecord, partition_of_key
from pyhudi.format.names import BaseFileName, LogFileName, join
from pyhudi.metadata.check.differences import Difference, DifferenceKind
from pyhudi.metadata.derive.changes import InitialPartition, PartitionChange
from pyhudi.metadata.derive.changes_files import cleaned_records, files_change, files_records
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind, TableIndex
from pyhudi.metadata.kinds.records import Records
from pyhudi.metadata.kinds.views import CleanView, CommitView, IndexCheck, IndexedTable
from pyhudi.metadata.store.files_partition import read_files_partition
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.metadata.store.log_cells import LogCells, merge_files_log
from pyhudi.metadata.store.slice_records import SliceReader
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import TableConfig
from pyhudi.table.slices.slice_log import slice_blocks
from pyhudi.table.view.cleaned import paths_being_cleaned
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.listing import FileListing, ListedFile, StorageListing
from pyhudi.timeline.active import Timeline
from pyhudi.versions import LogNaming, TableVersion


@dataclass(frozen=True, slots=True)
class FilesIndex(TableIndex):
    """The listing of one table."""

    partition: str = FILES

    def commit_changes(self, commit: CommitView) -> Iterator[PartitionChange]:
        yield _change(files_records(commit.metadata), commit.table_version)

    def clean_changes(self, clean: CleanView) -> Iterator[PartitionChange]:
        records = cleaned_records(clean.metadata) if clean.records is None else clean.records
        yield _change(records, clean.table_version)

    def differences(self, check: IndexCheck) -> Iterator[Difference]:
        snapshot = check.snapshot
        committed = CommittedFiles(snapshot.storage, snapshot.config, snapshot.timeline)
        known = read_files_partition(check.indexes.table, snapshot.timeline)
        return files_differences(
            StorageListing(snapshot.storage, nests=snapshot.config.may_nest_partitions), known, committed,
            paths_being_cleaned(snapshot), on_progress=check.on_progress,
        )  # fmt: skip


class FilesKind(IndexKind):
    """The listing is made with the metadata table, and dropped with it."""

    name: ClassVar[str] = FILES
    has_readable_keys: ClassVar[bool] = True

    def known(self, table: IndexedTable) -> list[TableIndex]:
        return [FilesIndex()]

    def compacted_cells(
        self, table: MetadataTable, file_slice: FileSlice, data_timeline: Timeline, *, base_file: str
    ) -> pa.Table:
        listing = read_files_partition(table, data_timeline)
        return listing.live_cells(table_version=table.config.version, base_file=base_file)

    def can_merge_log(self, table: MetadataTable, reader: SliceReader) -> bool:
        return merge_files_log(table, reader) is not None

    def merge_log(self, table: MetadataTable, reader: SliceReader) -> LogCells | None:
        return merge_files_log(table, reader)

    def records(self, indexes: MetadataIndexes, partition: str, keys: Sequence[str]) -> Records:
        """`keys`: partition paths, or the key of the list of partitions."""
        listing = indexes.read_files()
        known = set(listing.partitions())
        found: Records = {}

        for key in keys:
            if key == PARTITIONS_KEY:
                found[key] = {"partitions": sorted(known)}
            elif partition_of_key(key) in known:
                files = listing.files(partition_of_key(key))
                found[key] = {"files": {file.name: file.size_bytes for file in files}}
            else:
                found[key] = None
        return found

    def is_in(self, table_version: TableVersion) -> bool:
        return True

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        raise Bug("files: expected to be made with the metadata table, found a request to build it by itself")

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        raise Bug("files: expected to be made with the metadata table, found a request to build it by itself")


def _change(records: Mapping[str, FilesRecord], table_version: TableVersion) -> PartitionChange:
    return files_change(records, schema_text=metadata_record_schema(table_version.metadata_schema))


@dataclass(frozen=True)
class CommittedFiles:
    """Which stored files a reader may see, so that the metadata table must know them."""

    storage: Storage
    config: TableConfig
    timeline: Timeline

    def is_committed(self, partition: str, name: str) -> bool:
        """Whether a completed action wrote the file.

        A log's name tells from version 8 on; before, its blocks are read.
        """
        base = BaseFileName.parse(name)
        if base is not None:
            return self.timeline.is_committed(base.requested)

        log = LogFileName.parse(name)
        if log is None:
            return False

        if self.config.version.log_naming is LogNaming.AFTER_WRITE:
            return self.timeline.is_committed(log.instant)

        path = join(partition, name)
        content = self.storage.get(path)
        logs = [(path, MemoryLog(content), len(content))]
        return bool(slice_blocks(logs, self.timeline.is_committed))


def files_differences(
    stored: FileListing,
    known: FileListing,
    committed: CommittedFiles,
    going: Collection[str],
    *,
    on_progress: Callable[[int, int], None],
) -> Iterator[Difference]:
    """Every partition and file on which storage and metadata table disagree, by partition and name.

    The metadata table need not know files of actions that have not completed, nor partitions that hold nothing else.
    `going`: paths that a pending clean names. Such a file may be gone, while the metadata table has it until the clean
    completes. Requests: the storage's listing, and one get for each log of version 6 that the metadata table does not
    know.
    """
    of_storage, of_metadata = set(stored.partitions()), set(known.partitions())
    everywhere = sorted(of_storage | of_metadata)
    for done, partition in enumerate(everywhere):
        there = {file.name: file.size_bytes for file in _data_files(stored.files(partition))}
        named = {file.name: file.size_bytes for file in _data_files(known.files(partition))}
        listed = {name: size for name, size in named.items() if name in there or join(partition, name) not in going}
        missing = [name for name in there.keys() - listed.keys() if committed.is_committed(partition, name)]

        if partition not in of_metadata and missing:
            yield Difference(FILES, DifferenceKind.PARTITION_MISSING, partition)
        if partition not in of_storage and not there and (listed or not named):
            yield Difference(FILES, DifferenceKind.PARTITION_ABSENT, partition)
        yield from _file_differences(partition, there, listed, missing)
        on_progress(done + 1, len(everywhere))


def _file_differences(
    partition: str, there: Mapping[str, int], listed: Mapping[str, int], missing: Iterable[str]
) -> Iterator[Difference]:
    found = [Difference(FILES, DifferenceKind.FILE_MISSING, partition, name, f"{there[name]:,}") for name in missing]
    for name, size_bytes in listed.items():
        if name not in there:
            found.append(Difference(FILES, DifferenceKind.FILE_ABSENT, partition, name, known=f"{size_bytes:,}"))
        elif there[name] != size_bytes:
            found.append(Difference(FILES, DifferenceKind.SIZE, partition, name, f"{there[name]:,}", f"{size_bytes:,}"))
    yield from sorted(found, key=lambda difference: difference.name)


def _data_files(files: Iterable[ListedFile]) -> Iterator[ListedFile]:
    return (f for f in files if BaseFileName.parse(f.name) is not None or LogFileName.parse(f.name) is not None)
