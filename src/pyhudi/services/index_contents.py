"""What an index of the metadata table begins with: its records by the data files as they stand, its file groups, its
entry among the index definitions.

Spec: format/metadata-table.md sections 3 and 7.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import Invalid, Unsupported
from pyhudi.executor import Executor
from pyhudi.format.index_definitions import (
    IndexDefinition,
    column_stats_definition,
    expression_index_definition,
    record_index_definition,
    secondary_index_definition,
)
from pyhudi.format.instants import parse_instant_ms
from pyhudi.format.metadata_groups import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from pyhudi.format.metadata_keys import KeyHashing
from pyhudi.format.names import BaseFileName, LogFileName
from pyhudi.format.schema import META_FIELDS
from pyhudi.metadata.changed_groups import ChangedGroup
from pyhudi.metadata.changes import PartitionChange
from pyhudi.metadata.column_bounds import read_bounds
from pyhudi.metadata.derive_action import SecondaryTask, secondary_keys_of
from pyhudi.metadata.derive_blooms import read_blooms
from pyhudi.metadata.derive_keys import LOCATED, RowReading, located_keys
from pyhudi.metadata.derive_stats import StatsFacts, all_partition_stats, is_counted
from pyhudi.metadata.expression_changes import initial_expression_change
from pyhudi.metadata.expression_index import (
    expression_index,
    is_alike,
    is_expression_index,
)
from pyhudi.metadata.index_changes import bloom_change, record_index_changes, secondary_change
from pyhudi.metadata.index_facts import SecondaryIndex, can_be_secondary, stats_version
from pyhudi.metadata.indexes import read_definitions
from pyhudi.metadata.stats_changes import column_stats_change
from pyhudi.model.versions import TableVersion
from pyhudi.services.row_estimate import estimate_rows
from pyhudi.table.file_system_view import FileSlice
from pyhudi.table.read_plan import log_reading
from pyhudi.table.snapshot import Snapshot
from pyhudi.write.index_settings import IndexSettings, RecordIndexKind
from pyhudi.write.metadata import by_name
from pyhudi.write.metadata.creation import InitialPartition

log = logging.getLogger("pyhudi")


@dataclass(frozen=True)
class IndexContents:
    """Of one table as `snapshot` has it. `executor`: looks into the metadata table. `readers`: read the data files.

    `definition` in the methods: the index's own; None: as the options say.
    """

    snapshot: Snapshot
    settings: IndexSettings
    executor: Executor
    readers: Executor

    def definition(self, partition: str) -> IndexDefinition | None:
        """The entry of `index.json` that an index gets by the options; None for one that has none there.

        Up to version 6 there is no such file, and columns are those that the options of a write say.
        Raises: Invalid for a secondary index of a column that cannot have one; Unsupported for an index that tables of
        this version do not have.
        """
        if not self._version.has_index_definitions:
            is_partitioned = bool(self.settings.partitioned_record_index)
            by_name.refuse_indexes(self.snapshot.config, (partition,), is_partitioned=is_partitioned)
            return None
        if partition == COLUMN_STATS:
            names = tuple(column.name for column in self._stats(None).columns(self.snapshot.schema_with_meta))
            return column_stats_definition(names, stats_version(self._version).name)
        if partition == RECORD_INDEX:
            return record_index_definition(is_partitioned=bool(self.settings.partitioned_record_index))
        if partition.startswith(SECONDARY_INDEX_PREFIX):
            columns = secondary_partitions(self.settings, self.stored_definitions())
            if partition not in columns:
                raise Invalid(f"index '{partition}': expected a definition of it, or its column in the options")
            return self.secondary_definition(partition, columns[partition], option="secondary.column")
        if is_expression_index(partition):
            wanted = wanted_expression(self.settings, self.stored_definitions(), self._version)
            if wanted is None or wanted.name != partition:
                raise Invalid(f"index '{partition}': expected its definition, which says of what expression it is")
            warn_of_filters(self.snapshot, wanted)
            return wanted
        if partition not in (FILES, BLOOM_FILTERS, PARTITION_STATS):
            raise Unsupported(f"index '{partition}': this release does not build indexes of this kind")
        return None

    def stored_definitions(self) -> dict[str, IndexDefinition]:
        """Those of `index.json`."""
        return read_definitions(self.snapshot.storage)

    def secondary_definition(self, partition: str, column: str, *, option: str) -> IndexDefinition:
        """Raises: Invalid for a column that cannot have a secondary index. `option`: what named the column."""
        if not can_be_secondary(self.snapshot.schema, column):
            have = ", ".join(self.snapshot.schema.names) or "no column yet"
            named = "hoodie.metadata.index.secondary.column" if option == "secondary.column" else option
            raise Invalid(
                f"{named}='{column}': expected a column of text, whole numbers or dates "
                f"of table '{self.snapshot.config.name}', which has {have}"
            )
        name = partition.removeprefix(SECONDARY_INDEX_PREFIX)
        return secondary_index_definition(name, column, self._version.index_version)

    def initial(self, partition: str, definition: IndexDefinition | None, *, requested: str = "") -> InitialPartition:
        """Its records. `requested`: the action that builds it. Memory: of record and secondary indexes all keys; the
        Bloom filters.
        """
        settings, version = self.settings, self._version
        if partition == BLOOM_FILTERS:
            blooms = read_blooms(self.snapshot.storage, self._base_files(), self.readers)
            change = bloom_change(blooms, (), table_version=version)
            return InitialPartition(partition, [change], {None: settings.bloom_filter_groups})
        if partition == COLUMN_STATS:
            return self._column_stats(definition)
        if partition == PARTITION_STATS:
            of_files = read_definitions(self.snapshot.storage).get(COLUMN_STATS)
            change = all_partition_stats(self.snapshot, self._stats(of_files), self.executor)
            return InitialPartition(partition, [change], {None: settings.partition_stats_groups})
        if is_expression_index(partition):
            assert definition is not None
            index = expression_index(definition, self.snapshot.schema_with_meta)
            change = initial_expression_change(self.snapshot, requested, index, self.readers)
            return InitialPartition(partition, [change], {None: settings.expression_groups})
        if partition == RECORD_INDEX:
            is_partitioned = definition is not None and definition.is_partitioned
            return self._record_index("partitioned" if is_partitioned else "global")
        assert definition is not None
        return self._secondary(definition)

    def group_counts(self, partition: str, definition: IndexDefinition | None) -> dict[str | None, int]:
        """How many file groups it is opened with, before its keys are known: by the rows that the files may have.

        Cost: for record and secondary indexes the footers of a bounded number of files.
        """
        settings = self.settings
        match partition:
            case "bloom_filters":
                return {None: settings.bloom_filter_groups}
            case "column_stats":
                return {None: settings.column_stats_groups}
            case "partition_stats":
                return {None: settings.partition_stats_groups}
        if is_expression_index(partition):
            return {None: settings.expression_groups}
        rows = estimate_rows(self.snapshot.storage, self._all_slices)
        if partition == RECORD_INDEX and definition is not None and definition.is_partitioned:
            return {of: settings.group_count(count, "partitioned") for of, count in rows.items()}
        return {None: settings.group_count(sum(rows.values()), "global")}

    @property
    def _version(self) -> TableVersion:
        return self.snapshot.config.version

    def _column_stats(self, definition: IndexDefinition | None) -> InitialPartition:
        """Of every file of a completed write, as Apache Hudi indexes what is listed."""
        facts, schema = self._stats(definition), self.snapshot.schema_with_meta
        columns, listing = facts.columns(schema), self.snapshot.listing
        files = [
            (partition, file.name, file.size_bytes)
            for partition in listing.partitions()
            for file in listing.files(partition)
            if is_counted(file.name) and self._is_committed(file.name)
        ]
        bounds = read_bounds(self.snapshot.storage, files, columns, schema, self.readers)
        change = column_stats_change(bounds, columns, facts.version, table_version=self._version)
        return InitialPartition(COLUMN_STATS, [change], {None: self.settings.column_stats_groups})

    def _stats(self, definition: IndexDefinition | None) -> StatsFacts:
        chosen = self.settings.columns
        own = () if definition is None else tuple(n for n in definition.source_fields if n not in META_FIELDS)
        return StatsFacts(stats_version(self._version), self._version, own or chosen.names, chosen.count_max)

    def _is_committed(self, name: str) -> bool:
        base, log = BaseFileName.parse(name), LogFileName.parse(name)
        instant = base.requested if base else log.instant if log else ""
        return self.snapshot.timeline.is_committed(instant)

    def _record_index(self, kind: RecordIndexKind) -> InitialPartition:
        slices = self._all_slices
        tables = located_keys(self._reading(), slices, self.readers)
        by_partition: dict[str | None, int] = {}
        for piece, keys in zip(slices, tables, strict=True):
            of = piece.partition if kind == "partitioned" else None
            by_partition[of] = by_partition.get(of, 0) + len(keys)
        if kind == "global":
            by_partition.setdefault(None, 0)
        counts = {of: self.settings.group_count(count, kind) for of, count in by_partition.items()}
        return InitialPartition(RECORD_INDEX, self._located_changes(slices, tables, kind), counts)

    def _located_changes(
        self, slices: list[FileSlice], tables: list[pa.Table], kind: RecordIndexKind
    ) -> Iterator[PartitionChange]:
        """One change, or one a data partition. Seen: a key's instant is that of its base file."""
        zone = self.snapshot.zone
        partitions = sorted({piece.partition for piece in slices}) if kind == "partitioned" else [None]
        for partition in partitions:
            parts: list[PartitionChange] = []
            mine = [(s, t) for s, t in zip(slices, tables, strict=True) if partition in (None, s.partition)]
            for instant in sorted({piece.base_instant for piece, _ in mine}):
                of = pa.concat_tables([LOCATED.empty_table(), *(t for s, t in mine if s.base_instant == instant)])
                parts += record_index_changes(
                    of, LOCATED.empty_table(), instant_ms=parse_instant_ms(instant, zone),
                    table_version=self._version, is_partitioned=kind == "partitioned",
                )  # fmt: skip
            if parts:
                yield _united(parts, partition)

    def _secondary(self, definition: IndexDefinition) -> InitialPartition:
        partition, is_second = definition.name, definition.is_second_version
        index = SecondaryIndex(partition, definition.source_fields[0], is_second_version=is_second)
        reading = self._reading()
        groups = [ChangedGroup(s.partition, s.file_id, None, s, True) for s in self._all_slices]
        found = self.readers.run(secondary_keys_of, [SecondaryTask(reading, group, index) for group in groups])
        none = pa.array([], pa.string())
        keys = pa.concat_arrays([none, *(after for _, after in found)])
        change = secondary_change(partition, none, keys, table_version=self._version)
        hashing = KeyHashing.SECONDARY_PREFIX if is_second else KeyHashing.WHOLE
        return InitialPartition(partition, [change], {None: self.settings.group_count(len(keys), "global")}, hashing)

    def _reading(self) -> RowReading:
        return RowReading(self.snapshot.storage, self.snapshot.schema_with_meta, log_reading(self.snapshot))

    @cached_property
    def _all_slices(self) -> list[FileSlice]:
        return [s for partition in self.snapshot.listing.partitions() for s in self.snapshot.slices(partition)]

    def _base_files(self) -> Iterator[tuple[str, BaseFileName]]:
        """Every base file of a completed write, older slices' too, as Apache Hudi indexes what is listed."""
        for partition in self.snapshot.listing.partitions():
            for file in self.snapshot.listing.files(partition):
                name = BaseFileName.parse(file.name)
                if name is not None and self.snapshot.timeline.is_committed(name.requested):
                    yield partition, name


def secondary_partition(name: str) -> str:
    """The metadata partition of a secondary index; by its column where it has no name of its own."""
    return f"{SECONDARY_INDEX_PREFIX}{name}"


def secondary_partitions(settings: IndexSettings, definitions: Mapping[str, IndexDefinition]) -> dict[str, str]:
    """Metadata partition -> column of the secondary indexes that the options ask for.

    An index that a column has already is that one, whatever it is called. Seen: 1.2.0 calls a new one by
    `hoodie.index.name`, or else by its column, behind the prefix where that is not part of the name.
    """
    defined = {
        of.source_fields[0]: name
        for name, of in definitions.items()
        if name.startswith(SECONDARY_INDEX_PREFIX) and len(of.source_fields) == 1
    }
    found = {}
    for column in settings.secondary_columns:
        short = (settings.secondary_name or column).removeprefix(SECONDARY_INDEX_PREFIX)
        found[defined.get(column, f"{SECONDARY_INDEX_PREFIX}{short}")] = column
    return found


def warn_of_filters(snapshot: Snapshot, definition: IndexDefinition) -> None:
    """Say what an index on an expression that is about to be made keeps others from.

    Seen: 1.0.2 and 1.2.0 make a filter of each log file, and fail at it, in tables of their own, too.
    """
    if snapshot.config.table_type == "MERGE_ON_READ" and definition.type == BLOOM_FILTERS:
        log.warning(
            "%s: with the index '%s', Bloom filters of an expression, Apache Hudi 1.0.2 and 1.2.0 cannot write to this "
            "merge-on-read table: they fail at their first log file; statistics of the expression keep them from "
            "nothing, drop_index('%s') lets them in again",
            snapshot.storage.location.uri, definition.name, definition.name,
        )  # fmt: skip


def wanted_expression(
    settings: IndexSettings, definitions: Mapping[str, IndexDefinition], table_version: TableVersion
) -> IndexDefinition | None:
    """The index on an expression that the options ask for, if any.

    One that is there already is that one, whatever it is called; its column's name, or `hoodie.index.name`, behind the
    prefix, is a new one's. Seen: 1.0.2, 1.2.0 (`HoodieTableMetadataUtil.getSecondaryOrExpressionIndexName`).
    """
    of = settings.expression
    if of is None:
        return None
    prefix = table_version.expression_prefix
    name = f"{prefix}{(of.name or of.column).removeprefix(prefix)}"
    version = stats_version(table_version).name
    made = expression_index_definition(name, of.flavour, of.function, of.column, of.options, version)
    alike = (one.name for one in definitions.values() if is_expression_index(one.name) and is_alike(one, made))
    return replace(made, name=next(alike, name))


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
