"""`record_index`: where each record key is. Of the whole table, or of each data partition by itself."""

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.index_definitions import IndexDefinition, record_index_definition
from pyhudi.format.instants import parse_instant_ms
from pyhudi.format.metadata_groups import RECORD_INDEX
from pyhudi.metadata.changes import InitialPartition, PartitionChange
from pyhudi.metadata.derive_keys import LOCATED, located_keys
from pyhudi.metadata.index_changes import record_index_changes
from pyhudi.metadata.kinds.contents import IndexContents
from pyhudi.metadata.kinds.protocol import IndexKind
from pyhudi.metadata.kinds.request import IndexRequest
from pyhudi.metadata.kinds.settings import (
    GLOBAL_RECORD_INDEX_OPTION,
    PARTITIONED_RECORD_INDEX_OPTION,
    IndexSettings,
    RecordIndexForm,
)

_PARTITIONED_REQUEST: Final = "partitioned_record_index"
_PARTITIONED_SINCE: Final = 8


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
