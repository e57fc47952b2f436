"""The metadata table as a table: its storage, facts, timeline and the slices of a partition."""

from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property

from pyhudi.errors import NotFound
from pyhudi.format.avro.schema_files import metadata_record_schema
from pyhudi.format.metadata.groups import MetadataGroupId
from pyhudi.format.names import (
    HOODIE,
    METADATA_TABLE,
    PARTITION_METAFILE,
    PROPERTIES,
    BaseFileName,
    LogFileName,
    is_partition_metafile,
    join,
)
from pyhudi.storage.protocol import Storage
from pyhudi.storage.sub import SubStorage
from pyhudi.table.facts.config import TableConfig, table_facts
from pyhudi.table.facts.properties_file import read_table_properties
from pyhudi.table.view.file_system_view import FileSlice, latest_slices
from pyhudi.table.view.listing import ListedFile
from pyhudi.table.view.snapshot import log_slicing
from pyhudi.timeline.active import Timeline, read_timeline
from pyhudi.versions import LogNaming


@dataclass(frozen=True, slots=True)
class ListedPartition:
    """The newest slices of a metadata partition as one list request gave them.

    `is_whole`: nothing hints that the partition was being deleted or made meanwhile, so that slices, base files or logs
    may be missing. While it is, its metadata file is not there. Up to version 7 a log is named after its slice, so that
    a slice without a base file may be one of a table made anew, whose instant the timeline does not know.
    """

    slices: tuple[FileSlice, ...]
    is_whole: bool


@dataclass(frozen=True)
class MetadataTable:
    """The metadata table as one call sees it. `storage` is rooted in its own folder."""

    storage: Storage
    config: TableConfig
    timeline: Timeline

    @property
    def record_schema(self) -> str:
        """The Avro schema that its records are written with."""
        return metadata_record_schema(self.config.version.metadata_schema)

    def slices(self, partition: str) -> list[FileSlice]:
        """The newest slices of one of its partitions. One list request."""
        return list(self.list_partition(partition).slices)

    def list_partition(self, partition: str) -> ListedPartition:
        """One of its partitions. One list request.

        File groups of other partitions beside its own are passed over. Seen: a clean of 1.0.2 or 1.2.0 logs what it
        deletes from the statistics of an expression to `column_stats/.expr-index-…`.
        """
        files = [ListedFile(file.path.rpartition("/")[2], file.size_bytes) for file in self.storage.list(partition)]
        found = latest_slices(partition, files, self.timeline, slicing=log_slicing(self.config))
        own = [one for one in found if MetadataGroupId.parse(one.file_id, partition=partition) is not None]
        slices = tuple(own or found)

        has_metafile = any(is_partition_metafile(file.name) for file in files)
        is_named_so = self.config.version.log_naming is LogNaming.AFTER_SLICE
        may_lack_bases = is_named_so and any(one.base_file is None for one in slices)
        return ListedPartition(slices, has_metafile and not may_lack_bases)

    def group_ids(self, partition: str) -> list[MetadataGroupId]:
        """The ids of a partition's file groups, one for each file. One list request."""
        return [one for one, _ in self.group_files(partition)]

    def group_files(self, partition: str) -> list[tuple[MetadataGroupId, str]]:
        """For each file of a partition the id of its file group, and the instant in its name. One list request."""
        found = []
        for file in self.storage.list(partition):
            text = file.path.rpartition("/")[2]
            name = BaseFileName.parse(text) or LogFileName.parse(text)
            group = MetadataGroupId.parse(name.file_id, partition=partition) if name is not None else None
            if name is not None and group is not None:
                found.append((group, name.requested if isinstance(name, BaseFileName) else name.instant))
        return found

    def has_partition(self, partition: str) -> bool:
        """Whether a partition was made and not deleted since, with file groups or without. One head request.

        Example: a record index by partition has no file group before the first key.
        """
        return self.storage.head(join(partition, PARTITION_METAFILE)) is not None

    @cached_property
    def deltacommits_since_compaction(self) -> int:
        """Completed deltacommits that came after the newest completed compaction."""
        writes = self.timeline.completed_writes
        when = self.timeline.effective_time
        newest = max((when(i) for i in writes if i.action == "commit"), default="")
        return sum(1 for i in writes if i.action == "deltacommit" and when(i) > newest)


def metadata_storage(storage: Storage) -> Storage:
    """The metadata table's folder of a data table's storage."""
    return SubStorage(storage, METADATA_TABLE)


def find_metadata_table(storage: Storage, zone: tzinfo) -> MetadataTable | None:
    """The metadata table; None if its properties or its timeline are gone, whoever removed them.

    Raises: CorruptFile, Unsupported as opening any table does.
    """
    try:
        table = open_metadata_table(storage, zone)
    except NotFound:
        return None
    return table if any(instant.is_completed for instant in table.timeline) else None


def is_same_metadata_table(table: MetadataTable, storage: Storage, zone: tzinfo) -> bool:
    """Whether the metadata table of the data table in `storage` still has the timeline that `table` knows.

    If not, files that `table` names may be gone. A get and a list request.
    """
    now = find_metadata_table(storage, zone)
    return now is not None and now.timeline.instants == table.timeline.instants


def delete_metadata_table(storage: Storage) -> None:
    """Delete the metadata table of the data table in `storage`, whatever its state.

    Order: its properties, so that nobody opens it from then on; its partitions; its timeline last, so that whoever
    opened it sees no partition with a part of the timeline.
    """
    own = metadata_storage(storage)
    own.delete(PROPERTIES)
    for folder in list(own.list_folders("")):
        if folder != HOODIE:
            delete_partition(own, folder)
    own.delete_prefix("")


def delete_partition(storage: Storage, partition: str) -> None:
    """Delete a partition of the metadata table in `storage`. Its metadata file goes first: see `ListedPartition`."""
    storage.delete(join(partition, PARTITION_METAFILE))
    storage.delete_prefix(partition)


def open_metadata_table(storage: Storage, zone: tzinfo) -> MetadataTable:
    """The metadata table of the data table in `storage`.

    Raises: NotFound, CorruptFile, Unsupported as opening any table does.
    """
    own = metadata_storage(storage)
    config = table_facts(read_table_properties(own), path=f"{own.location.uri}/.hoodie/hoodie.properties")
    return MetadataTable(own, config, read_timeline(own, config.layout, zone))
