"""What the rest of the code asks a kind of index."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Protocol

import pyarrow as pa

from pyhudi.errors import Bug
from pyhudi.format.metadata.index_definitions import IndexDefinition
from pyhudi.format.metadata.keys import KeyHashing
from pyhudi.metadata.check.differences import Difference
from pyhudi.metadata.derive.changes import InitialPartition, PartitionChange
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.records import Records
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import IndexSettings
from pyhudi.metadata.kinds.views import CleanView, CommitView, IndexCheck, IndexedTable
from pyhudi.metadata.store.current_cells import read_current_cells
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.metadata.store.log_cells import LogCells, merge_log
from pyhudi.metadata.store.slice_records import SliceReader
from pyhudi.metadata.store.table import MetadataTable
from pyhudi.table.prune.index_pruning import IndexPruner
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.timeline.active import Timeline
from pyhudi.versions import TableVersion


class TableIndex(Protocol):
    """One index that a table has. `partition`: its partition of the metadata table.

    `hashing`: how its keys are spread over its file groups. `is_kept`: whether writes can keep the index true. The next
    write drops an index that is not kept; until then the index can still be compared with the data.
    """

    partition: str

    @property
    def hashing(self) -> KeyHashing:
        return KeyHashing.WHOLE

    @property
    def is_kept(self) -> bool:
        return True

    def commit_changes(self, commit: CommitView) -> Iterator[PartitionChange]:
        """What a write, a compaction or a replacement changes in the index. Memory: one change."""
        ...

    def clean_changes(self, clean: CleanView) -> Iterator[PartitionChange]:
        """What the removal of files changes. By default nothing: record keys, and entries that lead to them, stay."""
        return iter(())

    def differences(self, check: IndexCheck) -> Iterator[Difference]:
        """Where the index disagrees with the data.

        Only what misleads a reader is a difference: a value beyond its bound, a filter that is not the file's, a row
        that the index does not know. Missing statistics and bounds that are too wide are none: with them a reader only
        reads more.
        """
        ...


class IndexKind(Protocol):
    """One kind of index. A kind subclasses this, and overrides what differs from most kinds.

    `name`: the one metadata partition of this kind; for a kind with `prefixes`, the name of the kind itself.
    `prefixes`: how the names of its partitions begin, where a table may have several indexes of this kind.
    `request_names`: the names that `build_index` takes for it.
    `is_of_columns`: whether the table must have the index's columns before the index can be built.
    `tells_of_all_columns`: whether it tells of columns by their names that nobody need have asked for.
    `is_completed_later`: whether `completed` may add something to a definition.
    `pruning_rank`: when a query asks this kind. Low ranks come first: they are sharp and cheap.
    `tells_of_keys`: whether it says which record keys a base file may hold.
    `has_readable_keys`: whether people can look up its records by key.
    `tells_file_groups`: whether its records name the file group of a key, whichever it is.
    `needs_stored_keys`: whether it is made of record keys, as files store them.
    `has_groups_by_partition`: whether a data partition may have file groups of its own, which are made with it.
    `stats_type`: as in `current_cells`.
    """

    name: ClassVar[str]
    prefixes: ClassVar[tuple[str, ...]] = ()
    request_names: ClassVar[tuple[str, ...]] = ()
    is_of_columns: ClassVar[bool] = False
    tells_of_all_columns: ClassVar[bool] = False
    is_completed_later: ClassVar[bool] = False
    pruning_rank: ClassVar[int] = 0
    tells_of_keys: ClassVar[bool] = False
    has_readable_keys: ClassVar[bool] = False
    tells_file_groups: ClassVar[bool] = False
    needs_stored_keys: ClassVar[bool] = False
    has_groups_by_partition: ClassVar[bool] = False
    stats_type: ClassVar[int | None] = None

    def owns(self, partition: str) -> bool:
        """Whether a partition of the metadata table is an index of this kind."""
        return partition.startswith(self.prefixes) if self.prefixes else partition == self.name

    def is_in(self, table_version: TableVersion) -> bool:
        """Whether tables of a version may have indexes of this kind."""
        return table_version.has_index(self.name)

    def absent_forms(self, partition: str, table_version: TableVersion, *, is_partitioned: bool) -> list[str]:
        """What tables of a version lack of this index. `is_partitioned`: a record index is kept by partition."""
        return [] if self.is_in(table_version) else [partition]

    # The options of a write.

    def is_asked(self, settings: IndexSettings) -> bool | None:
        """Whether the options switch the kind on or off; None: each table keeps what it has."""
        return None

    def option(self, settings: IndexSettings) -> str:
        """The option that `is_asked` follows."""
        return ""

    def wanted(
        self, settings: IndexSettings, definitions: Mapping[str, IndexDefinition], table_version: TableVersion
    ) -> Mapping[str, str]:
        """The partitions that the options ask for -> the option that asks. `definitions`: the table's."""
        return {self.name: self.option(settings)} if self.is_asked(settings) else {}

    def refuse_taken_names(
        self, settings: IndexSettings, definitions: Mapping[str, IndexDefinition], table_version: TableVersion
    ) -> None:
        """Raises: Invalid where the options give an index a name that another one has."""
        return

    def may_be_built(self, settings: IndexSettings, present: Collection[str]) -> bool:
        """Whether a write builds what the options ask for, beside the partitions that are `present`.

        Raises: Invalid where the options do not fit together.
        """
        return True

    def falls_with(self, dropped: Collection[str], present: Collection[str]) -> bool:
        """Whether indexes of this kind cannot exist without the dropped ones. `present`: what the table has."""
        return False

    # Definitions.

    def definition(self, contents: IndexContents, partition: str) -> IndexDefinition | None:
        """The entry of `index.json` that the options give an index; None for a kind without an entry.

        Raises: Invalid for an index that the options do not describe, or that the table's columns do not allow.
        """
        return None

    def completed(self, contents: IndexContents, definition: IndexDefinition) -> IndexDefinition:
        """The definition, with what could not be known when the index was made, such as columns of an empty table."""
        return definition

    def can_build(
        self, partition: str, definitions: Callable[[], Mapping[str, IndexDefinition]], schema: pa.Schema
    ) -> bool:
        """Whether this release can build an index that somebody planned. `schema`: the table's columns."""
        return True

    # First records.

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        """The first records of an index, and its file groups.

        `definition`: None: as the options say. `requested`: the action that builds the index.
        """
        ...

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        """How many file groups a new index gets, by data partition, before its keys are known.

        Cost: at most the footers of a bounded number of files, which tell how many rows there may be.
        """
        ...

    # The indexes of a table.

    def known(self, table: IndexedTable) -> Iterable[TableIndex]:
        """The table's indexes of this kind, without those that this release cannot compute."""
        ...

    # Its file groups.

    def compacted_cells(
        self, table: MetadataTable, file_slice: FileSlice, data_timeline: Timeline, *, base_file: str
    ) -> pa.Table:
        """The records of a new base file of this name, as `CELLS`. Memory: the slice's cells twice."""
        return read_current_cells(table, file_slice, data_timeline, stats_type=self.stats_type)

    def can_merge_log(self, table: MetadataTable, reader: SliceReader) -> bool:
        """Whether the log can be merged so that each key has one record."""
        return True

    def merge_log(self, table: MetadataTable, reader: SliceReader) -> LogCells | None:
        """The merged log of a file group; None where the log cannot be merged. Memory: the log's cells, twice."""
        return merge_log(table, reader, stats_type=self.stats_type)

    # What it answers.

    def pruner(self, indexes: MetadataIndexes, snapshot: Snapshot) -> IndexPruner | None:
        """The part of a query's planning that asks indexes of this kind; None for a kind that rules nothing out."""
        return None

    def records(self, indexes: MetadataIndexes, partition: str, keys: Sequence[str]) -> Records:
        """The records under these keys, of a kind with `has_readable_keys`.

        Raises: Unsupported for an index that cannot tell.
        """
        raise Bug(f"metadata partition '{partition}': expected readable keys, found hashes")

    # Requests of `build_index`.

    def claims(self, request: IndexRequest) -> bool:
        """Whether a request is for an index of this kind."""
        return request.expression is None and request.kind in self.request_names

    def requested_partition(self, request: IndexRequest) -> str:
        """The partition that a request is for. Raises: Invalid for an argument that this kind does not take."""
        request.refuse_name()
        request.refuse_columns()
        return self.name

    def requested_definition(
        self, request: IndexRequest, contents: IndexContents, ready: Collection[str]
    ) -> IndexDefinition | None:
        """The definition of the requested index, checked against the table; None for a kind without definitions.

        `ready`: the partitions that the metadata table has. Raises: Invalid for a column that is missing or whose
        values the index cannot hold, and where another index is needed that is not there.
        """
        return None
