"""`record_index`: where each record key is. Of the whole table, or of each data partition by itself."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.arrow_arrays import one_array
from pyhudi.format.metadata.groups import RECORD_INDEX
from pyhudi.format.metadata.index_definitions import IndexDefinition, record_index_definition
from pyhudi.format.metadata.key_records import decode_locations
from pyhudi.format.schema.conversion import FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.format.timeline.instant_text import format_instant, parse_instant_ms
from pyhudi.metadata.check.differences import Difference, DifferenceKind
from pyhudi.metadata.derive.changes import InitialPartition, PartitionChange
from pyhudi.metadata.derive.index_changes import record_index_changes
from pyhudi.metadata.derive.keys import LOCATED, key_changes, located_keys
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind, TableIndex
from pyhudi.metadata.kinds.records import Records, records_by_key
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import (
    GLOBAL_RECORD_INDEX_OPTION,
    PARTITIONED_RECORD_INDEX_OPTION,
    IndexSettings,
    RecordIndexForm,
)
from pyhudi.metadata.kinds.views import CommitView, IndexCheck, IndexedTable
from pyhudi.metadata.store.indexes import MetadataIndexes
from pyhudi.metadata.store.partition import MetadataPartition
from pyhudi.metadata.store.versions import RecordVersions
from pyhudi.table.prune.index_pruning import IndexPruner, PrunedQuery
from pyhudi.table.prune.key_pruning import LocatedSlices, locate_slices
from pyhudi.table.read.files import read_plan_batches
from pyhudi.table.read.plan import plan_snapshot, select_columns
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.versions import TableVersion

_PARTITIONED_REQUEST: Final = "partitioned_record_index"
_COMPARED: Final = (RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""The columns of rows that the index is compared with."""

_DIFFERENCES_MAX: Final = 1_000
"""The comparison ends after this many differences: the index is to be built anew anyway."""

_FILE_ID: Final = r"^\.?([^_]+).*$"
"""The file id within a file's name. Seen: rows of logs have the file id alone instead of a name."""

_STORED: Final = ("key", "partition", "file_id")


LOCATIONS: Final = pa.schema(
    [("key", pa.string()), ("partition", pa.string()), ("file_id", pa.string()), ("instant", pa.string())]
)
"""Where a record key is, and the instant that put it there."""


@dataclass(frozen=True, slots=True)
class RecordTableIndex(TableIndex):
    """The record index of one table. `is_partitioned`: the index is kept by data partition."""

    partition: str
    is_partitioned: bool

    def commit_changes(self, commit: CommitView) -> Iterator[PartitionChange]:
        """Memory: the keys that change."""
        keys = key_changes(commit.reading, commit.groups, commit.executor)
        instant_ms = parse_instant_ms(commit.requested, commit.snapshot.zone)
        yield from record_index_changes(
            keys.located, keys.gone, instant_ms=instant_ms,
            table_version=commit.table_version, is_partitioned=self.is_partitioned, index=self.partition,
        )  # fmt: skip

    def differences(self, check: IndexCheck) -> Iterator[Difference]:
        """Reads the key columns of the whole table."""
        columns = select_columns(check.snapshot, _COMPARED, meta_fields=True)
        plan = plan_snapshot(check.snapshot, schema=columns, predicate=None, where=None, query="snapshot")
        return _differences(check.indexes, read_plan_batches(check.snapshot.storage, plan))


@dataclass(frozen=True, slots=True)
class RecordLocations:
    """Where record keys are, by the record index that is ready."""

    indexes: MetadataIndexes

    @property
    def is_by_partition(self) -> bool:
        found = find_record_index(self.indexes)
        return found is not None and bool(found.groups) and None not in found.groups

    def locate(self, keys: pa.Array, partitions: Sequence[str]) -> Mapping[str, Collection[str] | None] | None:
        """Requests: one list of the index's partition, once; a few for each of its file groups that may hold a key.

        A partitioned index may have no file groups for a data partition. Its answer is None: nothing is known of it.
        """
        found = find_record_index(self.indexes)
        if found is None or not found.groups:
            return None

        known = [one for one in partitions if one in found.groups]
        is_global = None in found.groups
        located = located_groups([self._locations(keys, None)] if is_global else self._run(keys, known))

        unknown = () if is_global else set(partitions).difference(known)
        return {**located, **dict.fromkeys(unknown)}

    def _run(self, keys: pa.Array, partitions: Sequence[str]) -> list[pa.Table]:
        def locations(partition: str) -> pa.Table:
            return self._locations(keys, partition)

        executor = self.indexes.executor
        return [*map(locations, partitions)] if executor is None else executor.run(locations, partitions)

    def _locations(self, keys: pa.Array, partition: str | None) -> pa.Table:
        located = locate_records(self.indexes, keys, partition=partition)
        assert located is not None  # the index is there
        return located


@dataclass(frozen=True, slots=True)
class RecordIndexPruner(IndexPruner):
    """Finds the file groups of a query that names record keys."""

    indexes: MetadataIndexes
    label: str = RECORD_INDEX

    def locate(self, query: PrunedQuery, partitions: Sequence[str]) -> LocatedSlices | None:
        if query.keys is None:
            return None
        return locate_slices(RecordLocations(self.indexes), query.snapshot, query.keys, partitions, index=self.label)


class RecordIndexKind(IndexKind):
    """A global index knows one file group of each record key. A partitioned index knows one in each data partition."""

    name: ClassVar[str] = RECORD_INDEX
    has_readable_keys: ClassVar[bool] = True
    tells_file_groups: ClassVar[bool] = True
    needs_stored_keys: ClassVar[bool] = True
    has_groups_by_partition: ClassVar[bool] = True
    request_names: ClassVar[tuple[str, ...]] = (RECORD_INDEX, _PARTITIONED_REQUEST)
    pruning_rank: ClassVar[int] = 1

    def absent_forms(self, partition: str, table_version: TableVersion, *, is_partitioned: bool) -> list[str]:
        found = super().absent_forms(partition, table_version, is_partitioned=is_partitioned)
        if is_partitioned and not table_version.has_partitioned_record_index:
            found.append("partitioned record index")
        return found

    def is_asked(self, settings: IndexSettings) -> bool | None:
        return settings.record_index

    def option(self, settings: IndexSettings) -> str:
        is_partitioned = settings.global_record_index is None and settings.partitioned_record_index is not None
        return PARTITIONED_RECORD_INDEX_OPTION if is_partitioned else GLOBAL_RECORD_INDEX_OPTION

    def definition(self, contents: IndexContents, partition: str) -> IndexDefinition:
        return record_index_definition(is_partitioned=bool(contents.settings.partitioned_record_index))

    def requested_definition(
        self, request: IndexRequest, contents: IndexContents, ready: Collection[str]
    ) -> IndexDefinition:
        return record_index_definition(is_partitioned=asks_partitioned(request))

    def known(self, table: IndexedTable) -> list[TableIndex]:
        return [RecordTableIndex(name, is_partitioned(table)) for name in table.partitions if self.owns(name)]

    def pruner(self, indexes: MetadataIndexes, snapshot: Snapshot) -> IndexPruner:
        return RecordIndexPruner(indexes)

    def records(self, indexes: MetadataIndexes, partition: str, keys: Sequence[str]) -> Records:
        """`keys`: record keys."""
        located = locate_records(indexes, pa.array(keys, pa.string()))
        assert located is not None  # the table names the index
        return records_by_key(keys, located, "key", "locations")

    def initial(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None, *, requested: str
    ) -> InitialPartition:
        """Memory: all keys."""
        kind, slices = _form(definition), contents.slices
        tables = located_keys(contents.reading(), slices, contents.readers)

        by_partition: dict[str | None, int] = {}
        for file_slice, keys in zip(slices, tables, strict=True):
            owner = file_slice.partition if kind == "partitioned" else None
            by_partition[owner] = by_partition.get(owner, 0) + len(keys)

        for owner in _owners(contents, kind):
            by_partition.setdefault(owner, 0)

        counts = {owner: contents.settings.group_count(count, kind) for owner, count in by_partition.items()}
        return InitialPartition(partition, _located_changes(contents, tables, kind), counts)

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        rows, kind = contents.estimate_rows(), _form(definition)
        by_partition = {
            owner: sum(rows.values()) if owner is None else rows.get(owner, 0) for owner in _owners(contents, kind)
        }
        return {owner: contents.settings.group_count(count, kind) for owner, count in by_partition.items()}


def find_record_index(indexes: MetadataIndexes) -> MetadataPartition | None:
    """The record index; None where there is none that is ready."""
    return indexes.find(RECORD_INDEX)


def locate_records(
    indexes: MetadataIndexes, keys: pa.Array | pa.ChunkedArray, *, partition: str | None = None
) -> pa.Table | None:
    """Where record keys lie, as `LOCATIONS`; a key that the table does not have gives no row.

    `partition`: look in this data partition only. Without it, a partitioned index may give a key several locations.
    None if no record index is ready.
    """
    found = find_record_index(indexes)
    if found is None:
        return None

    is_partitioned = None not in found.groups
    where: list[str | None] = [None]
    if is_partitioned:
        where = list(found.groups) if partition is None else [partition]

    parts = [part for one in where for part in found.lookup(keys, data_partition=one)]
    located = pa.concat_tables([LOCATIONS.empty_table(), *(_decoded(part, indexes) for part in parts)])

    # A global index also finds the keys of other partitions.
    if partition is not None and not is_partitioned:
        located = located.filter(pc.equal(located.column("partition"), partition))
    return located


def located_groups(located: Iterable[pa.Table]) -> dict[str, set[str]]:
    """The file groups that locations name: partition -> file ids."""
    groups: dict[str, set[str]] = {}
    for found in located:
        pairs = found.group_by(["partition", "file_id"]).aggregate([])
        for partition, file_id in zip(pairs["partition"].to_pylist(), pairs["file_id"].to_pylist(), strict=True):
            groups.setdefault(partition, set()).add(file_id)
    return groups


def is_partitioned(table: IndexedTable) -> bool:
    """Whether a table's record index is kept by partition. The ids of its file groups say so.

    One list request, unless the index's definition says that the index is of the whole table. A definition that says
    that the index is kept by partition may be of an earlier one. Seen: 1.2.0, whose writers drop a record index that
    their options do not ask for, leaves the definition, and as it is when it builds the other kind.
    """
    if RECORD_INDEX not in table.partitions:
        return False

    own = table.definitions.get(RECORD_INDEX)
    if own is not None and not own.is_partitioned:
        return False

    owners = {group.data_partition for group in table.groups(RECORD_INDEX)}
    return None not in owners if owners else own is not None


def asks_partitioned(request: IndexRequest) -> bool:
    """Whether a request is for a record index that is kept by partition."""
    return request.kind == _PARTITIONED_REQUEST


def has_global(ready: Collection[str], definitions: Mapping[str, IndexDefinition]) -> bool:
    """Whether there is a record index of the whole table."""
    own = definitions.get(RECORD_INDEX)
    return RECORD_INDEX in ready and (own is None or not own.is_partitioned)


def has_partitioned(ready: Collection[str], definitions: Mapping[str, IndexDefinition]) -> bool:
    """Whether there is a record index that is kept by partition. The definition says it, as for `has_global`."""
    return RECORD_INDEX in ready and not has_global(ready, definitions)


def _form(definition: IndexDefinition | None) -> RecordIndexForm:
    return "partitioned" if definition is not None and definition.is_partitioned else "global"


def _owners(contents: IndexContents, kind: RecordIndexForm) -> list[str | None]:
    """The data partitions that have file groups of their own; None where all share the same.

    There are file groups even where there is no key: a global index of an empty table has its own, and so has a
    partition whose files are all replaced, but still listed. Seen: 1.2.0 makes file groups for a partition only if its
    writer finds it not listed, and fails to write to a partition without any (`getRecordTaggerPartitionedRLI`).
    """
    return [*contents.snapshot.listing.partitions()] if kind == "partitioned" else [None]


def _located_changes(
    contents: IndexContents, tables: list[pa.Table], kind: RecordIndexForm
) -> Iterator[PartitionChange]:
    """One change, or one for each data partition of a partitioned index. `tables`: the keys of each slice.

    Seen: the entry of a key states the instant of the base file.
    """
    slices, zone = contents.slices, contents.snapshot.zone
    partitions = sorted({one.partition for one in slices}) if kind == "partitioned" else [None]
    for partition in partitions:
        parts: list[PartitionChange] = []
        mine = [(s, t) for s, t in zip(slices, tables, strict=True) if partition in (None, s.partition)]
        for instant in sorted({one.base_instant for one, _ in mine}):
            located = pa.concat_tables([LOCATED.empty_table(), *(t for s, t in mine if s.base_instant == instant)])
            parts += record_index_changes(
                located, LOCATED.empty_table(), instant_ms=parse_instant_ms(instant, zone),
                table_version=contents.table_version, is_partitioned=kind == "partitioned", index=RECORD_INDEX,
            )  # fmt: skip

        if parts:
            yield _united(parts, partition)


def _united(parts: list[PartitionChange], data_partition: str | None) -> PartitionChange:
    """The parts as one change. No part has a key twice; where several parts have a key, the last of them counts."""
    if len(parts) == 1:
        return parts[0]

    cells = pa.concat_tables([part.cells for part in parts])
    keys = cells.column("key")
    if pc.count_distinct(keys).as_py() < len(keys):
        numbered = pa.table({"key": keys, "row": np.arange(len(keys))})
        last = numbered.group_by("key").aggregate([("row", "max")]).column("row_max")
        cells = cells.take(last.combine_chunks())
    return PartitionChange(parts[0].partition, cells, data_partition=data_partition)


def _differences(indexes: MetadataIndexes, rows: Iterable[pa.RecordBatch]) -> Iterator[Difference]:
    """Every row that the index lacks or has elsewhere; then the counts of rows and of keys, if they differ.

    `rows`: all rows of the table, with the columns `_COMPARED`. Memory: a batch, and the locations of its keys.
    """
    shown = stored_count = 0
    for batch in rows:
        stored_count += len(batch)
        for difference in _batch_differences(indexes, batch):
            yield difference
            shown += 1
            if shown == _DIFFERENCES_MAX:
                yield _count(f"more than {_DIFFERENCES_MAX:,} rows differ: the comparison ended here", "")
                return

    found = find_record_index(indexes)
    known_count = 0 if found is None else sum(len(part.newest()) for part in found.scan())
    if known_count != stored_count:
        yield _count(f"{stored_count:,} rows", f"{known_count:,} keys")


def _batch_differences(indexes: MetadataIndexes, batch: pa.RecordBatch) -> Iterator[Difference]:
    ids = pc.replace_substring_regex(batch.column(FILE_NAME), _FILE_ID, r"\1")
    stored = pa.table([batch.column(RECORD_KEY), batch.column(PARTITION_PATH), ids], names=_STORED)
    located = locate_records(indexes, stored.column("key"))
    assert located is not None

    # A partitioned index may give a key several locations: one that agrees is enough.
    wrong = stored.join(located.select(_STORED), keys=list(_STORED), join_type="left anti")
    if not len(wrong):
        return

    known = located.select(_STORED).rename_columns(["key", "known_partition", "known_file_id"])
    for row in wrong.join(known, keys="key", join_type="left outer").slice(0, _DIFFERENCES_MAX).to_pylist():
        is_missing = row["known_file_id"] is None
        yield Difference(
            RECORD_INDEX,
            DifferenceKind.RECORD_MISSING if is_missing else DifferenceKind.RECORD_VALUE,
            row["partition"],
            row["key"],
            stored=row["file_id"],
            known="" if is_missing else f"{row['known_partition']}/{row['known_file_id']}",
        )


def _count(stored: str, known: str) -> Difference:
    return Difference(RECORD_INDEX, DifferenceKind.RECORD_COUNT, "", stored=stored, known=known)


def _decoded(part: RecordVersions, indexes: MetadataIndexes) -> pa.Table:
    newest = part.newest()
    decoded = newest.decode(lambda values, text: decode_locations(values, text, path=newest.path))
    if decoded is None:
        return LOCATIONS.empty_table()

    # Many keys share an instant: each instant is spelled once.
    encoded = one_array(decoded.column("instant_ms")).dictionary_encode()
    texts = [None if ms is None else format_instant(ms, indexes.zone) for ms in encoded.dictionary.to_pylist()]
    instants = pa.array(texts, pa.string()).take(encoded.indices)

    columns = [newest.keys.cast(pa.string()), decoded.column("partition"), decoded.column("file_id"), instants]
    return pa.Table.from_arrays(columns, schema=LOCATIONS)
