"""The indexes of the metadata table as one call sees them: names, definitions, and their partitions, opened."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Final

from pyhudi.errors import NotFound
from pyhudi.executor import Executor
from pyhudi.format.metadata.index_definitions import IndexDefinition, decode_index_definitions
from pyhudi.format.names import join
from pyhudi.metadata.store.files_partition import MetadataListing, read_files_partition
from pyhudi.metadata.store.partition import MetadataPartition, open_partition
from pyhudi.metadata.store.table import MetadataTable, find_metadata_table, is_same_metadata_table
from pyhudi.storage.protocol import Storage
from pyhudi.table.facts.config import METADATA_PARTITIONS, TableConfig
from pyhudi.table.facts.properties_file import read_table_properties
from pyhudi.timeline.active import Timeline, read_timeline

log = logging.getLogger("pyhudi")

DEFINITIONS_PATH: Final = "hoodie.table.index.defs.path"
INDEX_DEFINITIONS: Final = ".hoodie/.index_defs/index.json"


@dataclass(frozen=True)
class MetadataIndexes:
    """The indexes that the data table's properties name as ready. Each partition is opened once, when it is needed.

    `storage`, `config`, `timeline`, `zone`: of the data table. `executor`: for look-ups in several file groups.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    zone: tzinfo
    table: MetadataTable
    executor: Executor | None = None
    _opened: dict[str, MetadataPartition] = field(default_factory=dict, compare=False, repr=False)
    _definitions: list[Mapping[str, IndexDefinition]] = field(default_factory=list, compare=False, repr=False)

    def find(self, partition: str) -> MetadataPartition | None:
        """A partition of the metadata table; None if it is missing or not ready.

        One list request; two gets and another list where the partition may be on its way out or in.
        """
        if partition not in self.config.metadata_partitions:
            return None

        if partition not in self._opened:
            found = open_partition(self.table, partition, self.timeline, executor=self.executor)
            if found.slices and not found.is_whole and not self._is_what_was_opened():
                found = replace(found, slices=())
            if not found.slices and not self.is_empty(partition):
                log.warning("%s: the index '%s' is gone, and not asked", self.storage.location.uri, partition)
            self._opened[partition] = found

        found = self._opened[partition]
        return found if found.slices or self.is_empty(partition) else None

    def is_empty(self, partition: str) -> bool:
        """Whether an index is there though it has no file groups: a partitioned record index before its first key.

        One head request.
        """
        definition = self.index_definitions().get(partition)
        return definition is not None and definition.is_partitioned and self.table.has_partition(partition)

    def read_files(self) -> MetadataListing:
        """The list of files. Raises: NotFound where another call deletes the metadata table or makes it anew, so that
        the list may not be whole.
        """
        listing = read_files_partition(self.table, self.timeline)
        if not listing.is_whole and not is_same_metadata_table(self.table, self.storage, self.zone):
            raise NotFound(f"{self.storage.location.uri}: the metadata table is being replaced; ask once more")
        return listing

    def is_current(self) -> bool:
        """Whether the data table still has the timeline and the indexes that this object knows. If so, look-ups that
        were made until now tell of the newest table. A get and a list request.
        """
        return self._has_same_names() and self._has_same_timeline()

    def are_there(self) -> bool:
        """Whether files that look-ups did not find were files of the newest table; else the indexes have gone, or their
        metadata table was made anew. Two gets and two list requests.
        """
        return self._is_what_was_opened() and self._has_same_timeline()

    def _is_what_was_opened(self) -> bool:
        """Whether the data table still names these indexes, of this metadata table. Two gets and a list request."""
        return self._has_same_names() and is_same_metadata_table(self.table, self.storage, self.zone)

    def _has_same_names(self) -> bool:
        now = read_table_properties(self.storage).get(METADATA_PARTITIONS)
        return now == self.config.properties.get(METADATA_PARTITIONS)

    def _has_same_timeline(self) -> bool:
        return read_timeline(self.storage, self.config.layout, self.zone).instants == self.timeline.instants

    def index_definitions(self) -> Mapping[str, IndexDefinition]:
        """The definitions, by partition of the metadata table. None of them before table version 8. One get."""
        if not self._definitions:
            path = self.config.properties.get(DEFINITIONS_PATH, INDEX_DEFINITIONS)
            path = INDEX_DEFINITIONS if path.startswith("/") or "://" in path else join("", path)
            self._definitions.append(read_definitions(self.storage, path))
        return self._definitions[0]


def read_definitions(storage: Storage, path: str = INDEX_DEFINITIONS) -> dict[str, IndexDefinition]:
    """The index definitions, by metadata partition; empty if their file is missing. Raises: CorruptFile."""
    try:
        content = storage.get(path)
    except NotFound:
        return {}
    return decode_index_definitions(content, path=path)


def open_indexes(
    storage: Storage, config: TableConfig, timeline: Timeline, zone: tzinfo, *, executor: Executor | None = None
) -> MetadataIndexes | None:
    """The indexes of a data table; None if it has no metadata table, or while a restore is under way.

    A get and a list request.
    """
    if not config.has_metadata_table or timeline.pending_restores:
        return None
    table = find_metadata_table(storage, zone)
    return MetadataIndexes(storage, config, timeline, zone, table, executor) if table is not None else None
