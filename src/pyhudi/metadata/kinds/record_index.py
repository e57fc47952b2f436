"""`record_index`: where each record key is. Of the whole table, or of each data partition by itself."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.index_definitions import IndexDefinition, record_index_definition
from pyhudi.format.instants import parse_instant_ms
from pyhudi.format.metadata_groups import RECORD_INDEX
from pyhudi.format.schema import FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.metadata.changes import InitialPartition, PartitionChange
from pyhudi.metadata.check import Difference, DifferenceKind
from pyhudi.metadata.derive_keys import LOCATED, key_changes, located_keys
from pyhudi.metadata.index_changes import record_index_changes
from pyhudi.metadata.indexes import MetadataIndexes
from pyhudi.metadata.key_indexes import locate_records
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind, TableIndex
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import (
    GLOBAL_RECORD_INDEX_OPTION,
    PARTITIONED_RECORD_INDEX_OPTION,
    IndexSettings,
    RecordIndexForm,
)
from pyhudi.metadata.kinds.views import CommitView, IndexCheck, IndexedTable
from pyhudi.table.read_files import read_plan_batches
from pyhudi.table.read_plan import plan_snapshot, select_columns

_PARTITIONED_REQUEST: Final = "partitioned_record_index"
_PARTITIONED_SINCE: Final = 8
_COMPARED: Final = (RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""The columns of rows that the index is compared with."""

_DIFFERENCES_MAX: Final = 1_000
"""After so many the comparison ends: the index is to be made anew anyway."""

_FILE_ID: Final = r"^\.?([^_]+).*$"
"""The file id within a file's name. Seen: rows of logs have the id alone there."""

_STORED: Final = ("key", "partition", "file_id")


@dataclass(frozen=True, slots=True)
class RecordTableIndex(TableIndex):
    """The record index of one table. `is_partitioned`: kept by partition."""

    partition: str
    is_partitioned: bool

    def commit_changes(self, commit: CommitView) -> Iterator[PartitionChange]:
        """Memory: the keys that change."""
        keys = key_changes(commit.reading, commit.groups, commit.executor)
        instant_ms = parse_instant_ms(commit.requested, commit.snapshot.zone)
        yield from record_index_changes(
            keys.located, keys.gone, instant_ms=instant_ms,
            table_version=commit.table_version, is_partitioned=self.is_partitioned,
        )  # fmt: skip

    def differences(self, check: IndexCheck) -> Iterator[Difference]:
        """Reads the key columns of the whole table."""
        columns = select_columns(check.snapshot, _COMPARED, meta_fields=True)
        plan = plan_snapshot(check.snapshot, schema=columns, predicate=None, where=None, query="snapshot")
        return _differences(check.indexes, read_plan_batches(check.snapshot.storage, plan))


class RecordIndexKind(IndexKind):
    """One form of it is kept by partition: there a key may be in several of them."""

    name: ClassVar[str] = RECORD_INDEX
    since: ClassVar[int] = 6
    request_names: ClassVar[tuple[str, ...]] = (RECORD_INDEX, _PARTITIONED_REQUEST)

    def absent_forms(self, partition: str, table_version: int, *, is_partitioned: bool) -> list[str]:
        found = super().absent_forms(partition, table_version, is_partitioned=is_partitioned)
        return [
            *found,
            *(["partitioned record index"] if is_partitioned and table_version < _PARTITIONED_SINCE else []),
        ]

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
        if kind == "global":
            by_partition.setdefault(None, 0)
        counts = {owner: contents.settings.group_count(count, kind) for owner, count in by_partition.items()}
        return InitialPartition(partition, _located_changes(contents, tables, kind), counts)

    def group_counts(
        self, contents: IndexContents, partition: str, definition: IndexDefinition | None
    ) -> dict[str | None, int]:
        rows, kind = contents.estimate_rows(), _form(definition)
        by_partition = rows if kind == "partitioned" else {None: sum(rows.values())}
        return {owner: contents.settings.group_count(count, kind) for owner, count in by_partition.items()}


def is_partitioned(table: IndexedTable) -> bool:
    """Whether a table's record index is kept by partition; by its file groups where nothing defines it."""
    if RECORD_INDEX not in table.partitions:
        return False
    if RECORD_INDEX in table.definitions:
        return table.definitions[RECORD_INDEX].is_partitioned
    return any(group.data_partition is not None for group in table.groups(RECORD_INDEX))


def asks_partitioned(request: IndexRequest) -> bool:
    """Whether a request is for a record index that is kept by partition."""
    return request.kind == _PARTITIONED_REQUEST


def has_global(ready: Collection[str], definitions: Mapping[str, IndexDefinition]) -> bool:
    """Whether there is a record index of the whole table."""
    own = definitions.get(RECORD_INDEX)
    return RECORD_INDEX in ready and (own is None or not own.is_partitioned)


def _form(definition: IndexDefinition | None) -> RecordIndexForm:
    return "partitioned" if definition is not None and definition.is_partitioned else "global"


def _located_changes(
    contents: IndexContents, tables: list[pa.Table], kind: RecordIndexForm
) -> Iterator[PartitionChange]:
    """One change, or one a data partition. `tables`: the keys of each slice. Seen: a key's instant is that of its base
    file.
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
                table_version=contents.table_version, is_partitioned=kind == "partitioned",
            )  # fmt: skip
        if parts:
            yield _united(parts, partition)


def _united(parts: list[PartitionChange], data_partition: str | None) -> PartitionChange:
    """One change of parts, none of which has a key twice; of a key that several have, the last part counts."""
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
    """Every row that the index does not know, or places elsewhere; then how many keys it has too many.

    `rows`: all of the table, with `_COMPARED`. Memory: a batch of them and its keys' locations.
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
    found = indexes.find(RECORD_INDEX)
    assert found is not None  # the caller looked
    known_count = sum(len(part.newest()) for part in found.scan())
    if known_count != stored_count:
        yield _count(f"{stored_count:,} rows", f"{known_count:,} keys")


def _batch_differences(indexes: MetadataIndexes, batch: pa.RecordBatch) -> Iterator[Difference]:
    ids = pc.replace_substring_regex(batch.column(FILE_NAME), _FILE_ID, r"\1")
    stored = pa.table([batch.column(RECORD_KEY), batch.column(PARTITION_PATH), ids], names=_STORED)
    located = locate_records(indexes, stored.column("key"))
    assert located is not None
    # In an index that is kept by partition a key may have several locations: one that agrees is enough.
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
