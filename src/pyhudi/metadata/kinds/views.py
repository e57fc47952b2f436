"""What an index gets to see: the table that has it, an action that changes it, the data that it is compared with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from pyhudi.executor import Executor
from pyhudi.format.metadata.groups import MetadataGroupId
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.metadata.record import FilesRecord
from pyhudi.format.names import BaseFileName
from pyhudi.format.timeline.records import CleanMetadata, CommitMetadata
from pyhudi.metadata.derive.changed_groups import (
    ChangedGroup,
    changed_groups,
    evolution_after,
    reading_after,
    schema_after,
)
from pyhudi.metadata.derive.column_bounds import FileBounds, IndexedColumn, read_bounds
from pyhudi.metadata.derive.keys import RowReading
from pyhudi.metadata.derive.stats import File, files_of, is_counted
from pyhudi.metadata.kinds.settings import ChosenColumns
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.table.slices.evolved import Evolution
from pyhudi.table.slices.slice_log import any_write
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import TableVersion


@dataclass(frozen=True)
class IndexedTable:
    """The indexes that a table has. `partitions`: of the metadata table `table`. `definitions`: those of `index.json`.

    `schema`: the data table's columns. `chosen`: the columns that the options ask statistics of. `schema_before`: reads
    the columns before the write that is taken in; None: nothing is written.
    """

    table: MetadataTable
    partitions: Sequence[str]
    definitions: Mapping[str, IndexDefinition]
    schema: pa.Schema
    chosen: ChosenColumns
    schema_before: Callable[[], pa.Schema] | None = None
    _groups: dict[str, list[MetadataGroupId]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def version(self) -> TableVersion:
        return self.table.config.version

    def groups(self, partition: str) -> list[MetadataGroupId]:
        """The ids of an index's file groups, one for each file. One list request, made once."""
        if partition not in self._groups:
            self._groups[partition] = self.table.group_ids(partition)
        return self._groups[partition]


@dataclass(frozen=True)
class CommitView:
    """A write, a compaction or a replacement whose files are written and whose action is still pending.

    `read_snapshot`: gives the table at this moment; called when an index needs it. `table_version`: of the metadata
    table. `finds_keys`: as in `changed_groups`.
    """

    read_snapshot: Callable[[], Snapshot]
    requested: str
    metadata: CommitMetadata
    table_version: TableVersion
    executor: Executor
    finds_keys: bool
    _bounds: dict[Sequence[IndexedColumn], list[FileBounds]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def snapshot(self) -> Snapshot:
        return self.read_snapshot()

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of rows once the action is complete, meta fields first."""
        return schema_after(self.snapshot, self.metadata)

    @cached_property
    def evolution(self) -> Evolution | None:
        """How files are read whose columns had other names, once the action is complete. None if none had."""
        return evolution_after(self.snapshot, self.metadata)

    @cached_property
    def groups(self) -> list[ChangedGroup]:
        """The file groups whose rows the action may change."""
        return changed_groups(self.snapshot, self.metadata, finds_keys=self.finds_keys)

    @cached_property
    def reading(self) -> RowReading:
        """How rows of these groups are read, as of before the action and after it."""
        action = next((i.action for i in self.snapshot.timeline if i.requested == self.requested), "commit")
        logs = reading_after(self.snapshot, self.requested, action, self.evolution)

        as_written = self.snapshot.as_written_with(self.evolution)
        return RowReading(self.snapshot.storage, self.schema, logs, as_written)

    @property
    def touched(self) -> list[str]:
        """The data partitions that the action wrote to, or replaced file groups of."""
        return sorted({*self.metadata.partition_to_write_stats, *(self.metadata.partition_to_replace_file_ids or {})})

    @property
    def new_files(self) -> list[File]:
        """The files of the action that have statistics."""
        return [
            (partition, name, stat.file_size_in_bytes or 0)
            for partition, stats in self.metadata.partition_to_write_stats.items()
            for stat in stats
            if is_counted(name := (stat.path or "").rpartition("/")[2])
        ]

    @property
    def new_base_files(self) -> list[tuple[str, BaseFileName]]:
        """Partition and name of the base files that the action wrote."""
        named = ((partition, BaseFileName.parse(name)) for partition, name, _ in self.new_files)
        return [(partition, name) for partition, name in named if name is not None]

    def bounds(self, columns: Sequence[IndexedColumn]) -> list[FileBounds]:
        """The bounds of these columns in the new files, read once. Memory: these bounds."""
        if columns not in self._bounds:
            self._bounds[columns] = read_bounds(
                self.snapshot, self.new_files, columns, self.schema, self.executor, evolution=self.evolution,
                counts=any_write,
            )  # fmt: skip
        return self._bounds[columns]


@dataclass(frozen=True)
class CleanView:
    """Files that a clean removed. `records`: what changes in the listing; None: what `metadata` says."""

    read_snapshot: Callable[[], Snapshot]
    metadata: CleanMetadata
    table_version: TableVersion
    records: Mapping[str, FilesRecord] | None = None

    @cached_property
    def snapshot(self) -> Snapshot:
        return self.read_snapshot()

    @property
    def schema(self) -> pa.Schema:
        return self.snapshot.schema_with_meta

    @cached_property
    def files(self) -> list[tuple[str, str]]:
        """Partition and name of the files that had statistics."""
        return [
            (partition, name)
            for partition, cleaned in self.metadata.partition_metadata.items()
            for name in cleaned.delete_path_patterns
            if is_counted(name)
        ]


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """The newest slices of a table, and what its metadata table says of them. Cost: reads the data that is indexed.

    `on_progress`: gets the number of data partitions that were compared, and of all data partitions.
    """

    snapshot: Snapshot
    indexes: MetadataIndexes
    executor: Executor
    on_progress: Callable[[int, int], None]

    def read_bounds(self, partition: str, columns: Sequence[IndexedColumn]) -> tuple[list[File], list[FileBounds]]:
        """The files of a data partition, and the bounds of these columns in them."""
        files, schema = files_of(self.snapshot.slices(partition)), self.snapshot.schema_with_meta
        evolution, counts = self.snapshot.evolution, self.snapshot.timeline.is_committed
        read = read_bounds(self.snapshot, files, columns, schema, self.executor, evolution=evolution, counts=counts)
        return files, read
