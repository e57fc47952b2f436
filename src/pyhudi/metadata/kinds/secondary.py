"""`secondary_index_…`: the record keys of each value of a column."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid, Unsupported
from pyhudi.executor import Executor
from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.keys.record_keys import value_text
from pyhudi.format.metadata.groups import RECORD_INDEX, SECONDARY_INDEX_PREFIX
from pyhudi.format.metadata.index_definitions import IndexDefinition, secondary_index_definition
from pyhudi.format.metadata.key_records import decode_secondary_entries
from pyhudi.format.metadata.keys import KeyHashing, secondary_prefixes, split_secondary_keys
from pyhudi.format.schema.conversion import RECORD_KEY
from pyhudi.format.timeline.records import MOVES
from pyhudi.metadata.check.differences import Difference, DifferenceKind
from pyhudi.metadata.derive.changed_groups import ChangedGroup
from pyhudi.metadata.derive.changes import InitialPartition, PartitionChange
from pyhudi.metadata.derive.index_changes import secondary_change, secondary_index_keys
from pyhudi.metadata.derive.keys import RowReading
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind, TableIndex
from pyhudi.metadata.kinds.record_index import RecordLocations, has_global, is_partitioned
from pyhudi.metadata.kinds.records import Records, records_by_key
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import (
    GLOBAL_RECORD_INDEX_OPTION,
    SECONDARY_COLUMN_OPTION,
    SECONDARY_OPTION,
    IndexSettings,
)
from pyhudi.metadata.kinds.views import CommitView, IndexCheck, IndexedTable
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.metadata.store.versions import RecordVersions
from pyhudi.options.told_names import listed
from pyhudi.table.prune.index_pruning import IndexPruner, PrunedQuery
from pyhudi.table.prune.key_pruning import LocatedSlices, keys_by_values, locate_slices
from pyhudi.table.read.plan import log_reading
from pyhudi.table.view.file_system_view import FileSlice
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import TableVersion

_NONE: Final = pa.array([], pa.string())

ENTRIES: Final = pa.schema([("value", pa.string()), ("record_key", pa.string())])
"""Values and the record keys of their rows."""


@dataclass(frozen=True, slots=True)
class SecondaryIndex(TableIndex):
    """The secondary index of one column.

    `is_second_version`: the index's definition has version V2. Then the value alone decides an entry's file group, and
    rows whose value is null have entries, too. In version V1 the whole key decides, and these rows have none.
    """

    partition: str
    column: str
    is_second_version: bool

    @property
    def hashing(self) -> KeyHashing:
        return KeyHashing.SECONDARY_PREFIX if self.is_second_version else KeyHashing.WHOLE

    def commit_changes(self, commit: CommitView) -> Iterator[PartitionChange]:
        """What the action changes, with the keys that it changes in memory."""
        if commit.metadata.operation_type in MOVES:
            return

        tasks = [_Task(commit.reading, group, self) for group in commit.groups]
        found = commit.executor.run(_changed_keys, tasks)
        before, after = (pa.concat_arrays([_NONE, *(keys[at] for keys in found)]) for at in (0, 1))
        yield secondary_change(self.partition, before, after, table_version=commit.table_version)

    def differences(self, check: IndexCheck) -> Iterator[Difference]:
        """The number of rows that have no entry, and of entries that have no row. Memory: all keys of the index."""
        snapshot = check.snapshot
        reading = RowReading(snapshot.storage, snapshot.schema_with_meta, log_reading(snapshot), snapshot.as_written)
        slices = [one for partition in snapshot.listing.partitions() for one in snapshot.slices(partition)]
        stored = self.keys(reading, slices, check.executor)

        found = check.indexes.find(self.partition)
        assert found is not None
        known = pa.concat_arrays([_NONE, *(part.newest().keys.cast(pa.string()) for part in found.scan())])

        missing, extra = _count_without(stored, known), _count_without(known, stored)
        if missing:
            yield Difference(self.partition, DifferenceKind.RECORD_MISSING, "", self.column, f"{missing:,} rows")
        if extra:
            yield Difference(
                self.partition, DifferenceKind.RECORD_COUNT, "", self.column, known=f"{extra:,} entries without a row"
            )

    def keys(self, reading: RowReading, slices: Iterable[FileSlice], executor: Executor) -> pa.Array:
        """The index keys of all rows in these file slices. Memory: all of these keys."""
        groups = (ChangedGroup(s.partition, s.file_id, None, s, may_change_keys=True) for s in slices)
        found = executor.run(_changed_keys, [_Task(reading, group, self) for group in groups])
        return pa.concat_arrays([_NONE, *(keys for _, keys in found)])


@dataclass(frozen=True, slots=True)
class _Task:
    """A file group whose keys of a secondary index are read as of before and after an action."""

    reading: RowReading
    group: ChangedGroup
    index: SecondaryIndex


@dataclass(frozen=True, slots=True)
class SecondaryIndexes:
    """The secondary indexes that a query may use. `schema`: the table's columns."""

    indexes: MetadataIndexes
    schema: pa.Schema

    def columns(self) -> Mapping[str, str]:
        """Metadata partition -> column of each index on one column whose values have one spelling. One get.

        Empty without a record index.
        """
        ready = set(self.indexes.config.metadata_partitions)
        if RECORD_INDEX not in ready or not any(name.startswith(SECONDARY_INDEX_PREFIX) for name in ready):
            return {}

        return {
            name: definition.source_fields[0]
            for name, definition in self.indexes.index_definitions().items()
            if name in ready and name.startswith(SECONDARY_INDEX_PREFIX)
            if len(definition.source_fields) == 1 and can_be_secondary(self.schema, definition.source_fields[0])
        }

    def keys_of(self, index: str, column: pa.Field, values: pa.Array) -> pa.Array | None:
        """The record keys of the rows that have one of these values; None if the index cannot tell.

        Requests: with an index of version V2 those of one file group for each value, else those of all file groups.
        """
        found = self.indexes.find(index)
        if found is None or not found.groups:
            return None

        texts = one_array(stored_text(pa.chunked_array([values]), column.name))
        entries = find_secondary(self.indexes, index.removeprefix(SECONDARY_INDEX_PREFIX), texts)
        return None if entries is None else one_array(entries.column("record_key").unique())


@dataclass(frozen=True, slots=True)
class SecondaryPruner(IndexPruner):
    """Finds the file groups of a query that names values of a column, and no record keys."""

    indexes: MetadataIndexes
    schema: pa.Schema
    label: str = "a secondary index"

    def locate(self, query: PrunedQuery, partitions: Sequence[str]) -> LocatedSlices | None:
        if query.keys is not None:
            return None
        values, locations = SecondaryIndexes(self.indexes, self.schema), RecordLocations(self.indexes)
        found = keys_by_values(values, locations, query.predicate, query.besides)
        if found is None:
            return None
        index, keys = found
        return locate_slices(locations, query.snapshot, keys, partitions, index=index)


class SecondaryKind(IndexKind):
    """A secondary index gives the record keys of a value. A global record index then finds their rows.

    Record keys must be unique in the table. Otherwise the rows of a key in two partitions would share an entry.
    """

    name: ClassVar[str] = "secondary_index"
    prefixes: ClassVar[tuple[str, ...]] = (SECONDARY_INDEX_PREFIX,)
    has_readable_keys: ClassVar[bool] = True
    needs_stored_keys: ClassVar[bool] = True
    request_names: ClassVar[tuple[str, ...]] = ("secondary_index",)
    pruning_rank: ClassVar[int] = 2
    is_of_columns: ClassVar[bool] = True

    def is_asked(self, settings: IndexSettings) -> bool | None:
        return settings.secondary

    def option(self, settings: IndexSettings) -> str:
        return SECONDARY_OPTION

    def wanted(
        self, settings: IndexSettings, definitions: Mapping[str, IndexDefinition], table_version: TableVersion
    ) -> Mapping[str, str]:
        return dict.fromkeys(_wanted_columns(settings, definitions), SECONDARY_COLUMN_OPTION)

    def refuse_taken_names(
        self, settings: IndexSettings, definitions: Mapping[str, IndexDefinition], table_version: TableVersion
    ) -> None:
        for name, column in _wanted_columns(settings, definitions).items():
            other = definitions.get(name)
            if other is not None and other.source_fields != (column,):
                raise Invalid(
                    f"hoodie.index.name='{name}': expected a name that no other index has, found one of the column "
                    f"{', '.join(other.source_fields)}; give the index of '{column}' another"
                )

    def may_be_built(self, settings: IndexSettings, present: Collection[str]) -> bool:
        if RECORD_INDEX not in present or settings.partitioned_record_index:
            raise Invalid(
                f"{SECONDARY_COLUMN_OPTION}: expected a global record index beside a secondary index; "
                f"set {GLOBAL_RECORD_INDEX_OPTION}=true"
            )
        return True

    def falls_with(self, dropped: Collection[str], present: Collection[str]) -> bool:
        return RECORD_INDEX in dropped

    def definition(self, contents: IndexContents, partition: str) -> IndexDefinition:
        columns = _wanted_columns(contents.settings, contents.stored_definitions())
        if partition not in columns:
            raise Invalid(f"index '{partition}': expected a definition of it, or its column in the options")
        return _definition(contents, partition, columns[partition], named_by=SECONDARY_COLUMN_OPTION)

    def requested_partition(self, request: IndexRequest) -> str:
        return f"{SECONDARY_INDEX_PREFIX}{request.index_name()}"

    def requested_definition(
        self, request: IndexRequest, contents: IndexContents, ready: Collection[str]
    ) -> IndexDefinition:
        if not has_global(ready, contents.stored_definitions()):
            raise Invalid(
                f"{request.what}: expected a global record index, which finds the rows of its keys; "
                f"build '{RECORD_INDEX}' first"
            )
        partition = self.requested_partition(request)
        return _definition(contents, partition, request.columns[0], named_by=f"{request.what}: columns")

    def known(self, table: IndexedTable) -> list[TableIndex]:
        """The indexes on one column whose values have a text. None where record keys are unique in partitions only."""
        found: list[TableIndex] = []
        for name in sorted(name for name in table.partitions if self.owns(name)):
            own = table.definitions.get(name)
            if own is not None and len(own.source_fields) == 1 and can_be_secondary(table.schema, own.source_fields[0]):
                found.append(SecondaryIndex(name, own.source_fields[0], own.is_second_version))
        return [] if found and is_partitioned(table) else found

    def pruner(self, indexes: MetadataIndexes, snapshot: Snapshot) -> IndexPruner:
        return SecondaryPruner(indexes, snapshot.schema)

    def records(self, indexes: MetadataIndexes, partition: str, keys: Sequence[str]) -> Records:
        """`keys`: values of the column."""
        entries = find_secondary(indexes, partition.removeprefix(SECONDARY_INDEX_PREFIX), pa.array(keys, pa.string()))
        if entries is None:
            raise Unsupported(f"metadata partition '{partition}': the index has no definition, and cannot tell")
        return records_by_key(keys, entries, "value", "rows")

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        """Memory: all keys."""
        assert definition is not None
        index = SecondaryIndex(partition, definition.source_fields[0], definition.is_second_version)
        keys = index.keys(contents.reading(), contents.slices, contents.readers)
        change = secondary_change(partition, _NONE, keys, table_version=contents.table_version)
        counts: dict[str | None, int] = {None: contents.settings.group_count(len(keys), "global")}
        return InitialPartition(partition, [change], counts, index.hashing)

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        return {None: contents.settings.group_count(sum(contents.estimate_rows().values()), "global")}


def find_secondary(indexes: MetadataIndexes, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table | None:
    """The record keys of these values, as `ENTRIES`; None if the index cannot tell.

    `name`: of the index, without the metadata partition's prefix. `values`: as Java spells them. Entries are as current
    as the index. Only an index of version V2 has entries for null. Seen: 1.0.2 writes none.
    """
    partition = f"{SECONDARY_INDEX_PREFIX}{name}"
    found, definition = indexes.find(partition), indexes.index_definitions().get(partition)
    if found is None or definition is None or (values.null_count and not definition.is_second_version):
        return None

    hashing = KeyHashing.SECONDARY_PREFIX if definition.is_second_version else KeyHashing.WHOLE
    prefixes = secondary_prefixes(pc.unique(values).cast(pa.string())).to_pylist()
    entries = [_entries(part) for part in found.lookup_prefixes(prefixes, hashing=hashing)]
    return pa.concat_tables([ENTRIES.empty_table(), *entries])


def can_be_secondary(schema: pa.Schema, column: str) -> bool:
    """Whether Apache Hudi spells the column's values as pyhudi does, in base files and in logs."""
    if column not in schema.names:
        return False
    kind = schema.field(column).type
    return pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind)


def _changed_keys(task: _Task) -> tuple[pa.Array, pa.Array]:
    """A file group's index keys before and after an action, without those that are in both."""
    before, after = (_keys(task, is_after=is_after) for is_after in (False, True))
    if not len(before) or not len(after):
        return before, after
    return before.filter(pc.invert(pc.is_in(before, after))), after.filter(pc.invert(pc.is_in(after, before)))


def _keys(task: _Task, *, is_after: bool) -> pa.Array:
    file_slice = task.group.after if is_after else task.group.before
    rows = task.reading.rows(file_slice, list(dict.fromkeys([RECORD_KEY, task.index.column])))
    texts = one_array(stored_text(rows.column(task.index.column), task.index.column))
    return secondary_index_keys(texts, one_array(rows.column(RECORD_KEY)), has_nulls=task.index.is_second_version)


def stored_text(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Values as Java prints what Avro stores. A date is its number of days, so 1970-01-02 is `1`."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return value_text(column, name)


def _wanted_columns(settings: IndexSettings, definitions: Mapping[str, IndexDefinition]) -> dict[str, str]:
    """Metadata partition -> column of the secondary indexes that the options ask for.

    A column that has an index keeps it, whatever its name. Seen: 1.2.0 names a new index by `hoodie.index.name`, or
    else by its column, and puts the prefix in front where the name lacks it.
    """
    if settings.secondary is False:
        return {}
    defined = {
        one.source_fields[0]: name
        for name, one in definitions.items()
        if name.startswith(SECONDARY_INDEX_PREFIX) and len(one.source_fields) == 1
    }

    found = {}
    for column in settings.secondary_columns:
        short = (settings.secondary_name or column).removeprefix(SECONDARY_INDEX_PREFIX)
        found[defined.get(column, f"{SECONDARY_INDEX_PREFIX}{short}")] = column
    return found


def _definition(contents: IndexContents, partition: str, column: str, *, named_by: str) -> IndexDefinition:
    """Raises: Invalid for a column that cannot have a secondary index. `named_by`: what named the column."""
    snapshot = contents.snapshot
    if not can_be_secondary(snapshot.schema, column):
        have = listed(snapshot.schema.names) or "no column yet"
        raise Invalid(
            f"{named_by}='{column}': expected a column of text, whole numbers or dates "
            f"of table '{snapshot.config.name}', which has {have}"
        )
    name, version = partition.removeprefix(SECONDARY_INDEX_PREFIX), contents.table_version.index_version
    return secondary_index_definition(name, column, version)


def _count_without(keys: pa.Array, others: pa.Array) -> int:
    return len(keys) - int(pc.sum(pc.is_in(keys, others)).as_py() or 0)


def _entries(part: RecordVersions) -> pa.Table:
    newest = part.newest()
    if not len(newest):
        return ENTRIES.empty_table()

    gone = newest.decode(
        lambda values, text: pa.table({"gone": decode_secondary_entries(values, text, path=newest.path)})
    )
    assert gone is not None

    keys = newest.keys.filter(one_array(pc.invert(gone.column("gone"))))
    if not len(keys):
        return ENTRIES.empty_table()
    return pa.Table.from_arrays(list(split_secondary_keys(keys)), schema=ENTRIES)
